"""Force elements."""

from jaxmbd.model.forces.actuators import Actuator, BodyActuator, Controlled
from jaxmbd.model.forces.anti_roll_bar import AntiRollBar, TorsionBar
from jaxmbd.model.forces.applied import JointTorque, PointForce, Torque
from jaxmbd.model.forces.armature import Armature
from jaxmbd.model.forces.base import Effort, ElementMotion, ForceElement, Load, Measure
from jaxmbd.model.forces.belt import Belt
from jaxmbd.model.forces.bushing import Bushing
from jaxmbd.model.forces.joint_friction import JointDrag, JointFriction
from jaxmbd.model.forces.laws import (
    LAWS,
    DamperCurve,
    Reflected,
    SignedSquare,
    Table,
    law_name,
    register_law,
)
from jaxmbd.model.forces.roads import WavyRoad
from jaxmbd.model.forces.soft_joint import SoftJoint
from jaxmbd.model.forces.spring_damper import SpringDamper, TorsionSpring
from jaxmbd.model.forces.stops import BumpStop, JointLimit
from jaxmbd.model.forces.tyres import PacejkaTyre, Tyre
from jaxmbd.model.numbers import FunctionLaw

FORCE_TYPES: dict[str, type[ForceElement]] = {
    cls.__name__: cls
    for cls in (
        SpringDamper,
        TorsionSpring,
        PointForce,
        Torque,
        JointTorque,
        Tyre,
        Bushing,
        SoftJoint,
        BumpStop,
        JointLimit,
        AntiRollBar,
        TorsionBar,
        JointFriction,
        PacejkaTyre,
        JointDrag,
        Armature,
        Actuator,
        BodyActuator,
        Belt,
    )
}
"""The force elements by name, as files name them."""

__all__ = [
    "FORCE_TYPES",
    "LAWS",
    "Controlled",
    "DamperCurve",
    "Effort",
    "ForceElement",
    "FunctionLaw",
    "Load",
    "Measure",
    "ElementMotion",
    "Reflected",
    "SignedSquare",
    "Table",
    "WavyRoad",
    "law_name",
    "register_law",
    *FORCE_TYPES,
]
