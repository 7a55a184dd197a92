"""What the user writes: bodies, joints, force elements, drives, and the mechanism they make."""

from jaxmbd.model.body import Body
from jaxmbd.model.drive import Drive
from jaxmbd.model.forces import (
    JointTorque,
    PointForce,
    SignedSquare,
    SpringDamper,
    Table,
    Torque,
    TorsionSpring,
    Tyre,
    register_law,
)
from jaxmbd.model.joints import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)
from jaxmbd.model.mechanism import Mechanism

__all__ = [
    "Body",
    "Cylindrical",
    "Drive",
    "Fixed",
    "Free",
    "Helical",
    "JointTorque",
    "Mechanism",
    "Planar",
    "PointForce",
    "Prismatic",
    "Revolute",
    "Rod",
    "SignedSquare",
    "Spherical",
    "SpringDamper",
    "Table",
    "Torque",
    "TorsionSpring",
    "Tyre",
    "Universal",
    "register_law",
]
