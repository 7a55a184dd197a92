"""Force elements."""

from jaxmbd.model.forces.applied import JointTorque, PointForce, Torque
from jaxmbd.model.forces.base import Effort, ForceElement, FunctionLaw, Load, Motion
from jaxmbd.model.forces.laws import LAWS, SignedSquare, Table, law_name, register_law
from jaxmbd.model.forces.spring_damper import SpringDamper, TorsionSpring
from jaxmbd.model.forces.tyre import Tyre

FORCE_TYPES: dict[str, type[ForceElement]] = {
    cls.__name__: cls
    for cls in (SpringDamper, TorsionSpring, PointForce, Torque, JointTorque, Tyre)
}

__all__ = [
    "FORCE_TYPES",
    "LAWS",
    "Effort",
    "ForceElement",
    "FunctionLaw",
    "Load",
    "Motion",
    "SignedSquare",
    "Table",
    "law_name",
    "register_law",
    *FORCE_TYPES,
]
