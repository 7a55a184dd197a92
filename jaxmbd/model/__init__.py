"""The user's description: bodies, joints, force elements, drives, couplings, mechanisms."""

from jaxmbd.model.body import Body
from jaxmbd.model.coupling import COUPLING_TYPES, BaseCoupling, Coupling, Gear
from jaxmbd.model.description import Description, is_planar
from jaxmbd.model.drive import DRIVE_TYPES, Drive, PointDrive, value_and_rates
from jaxmbd.model.finite import finite_numbers, finite_squares, has_literal_zeros
from jaxmbd.model.forces import (
    FORCE_TYPES,
    LAWS,
    Actuator,
    AntiRollBar,
    Armature,
    Belt,
    BodyActuator,
    BumpStop,
    Bushing,
    Controlled,
    DamperCurve,
    Effort,
    ForceElement,
    FunctionLaw,
    JointDrag,
    JointFriction,
    JointLimit,
    JointTorque,
    Load,
    Measure,
    PacejkaTyre,
    PointForce,
    SignedSquare,
    SoftJoint,
    SpringDamper,
    Table,
    Torque,
    TorsionBar,
    TorsionSpring,
    Tyre,
    WavyRoad,
    law_name,
    register_law,
)
from jaxmbd.model.forces.base import (
    ElasticConnection,
    RubbingElement,
    coordinate_units,
    effort_along,
    effort_measures,
)
from jaxmbd.model.forces.spring_damper import distance
from jaxmbd.model.gear_mesh import GearMesh, PlacedMesh, ToothForces
from jaxmbd.model.joints import (
    JOINT_TYPES,
    Cam,
    Cylindrical,
    Fixed,
    FlatFollower,
    Free,
    Helical,
    Joint,
    ParallelAxes,
    PerpendicularAxes,
    Planar,
    PointOnCurve,
    PointOnLine,
    PointOnPlane,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)
from jaxmbd.model.joints.base import Closing, J, Look, with_directions
from jaxmbd.model.mechanism import Edge, Mechanism, Structure, declared
from jaxmbd.model.numbers import (
    GROUND,
    ComRef,
    PointRef,
    Reflection,
    Toward,
    Units,
    changed,
    is_concrete,
    number,
    point,
    vector_in_space,
)
from jaxmbd.model.part import Part
from jaxmbd.model.parts import is_registered, register_type, renamed
from jaxmbd.model.plausibility import name_pairs, warn_of_implausible
from jaxmbd.model.points import UNITS, CheckedPoints, TablePoints, named_points, used_points
from jaxmbd.model.rack_and_pinion import RackAndPinion
from jaxmbd.model.sampled import (
    Sampled,
    corners_in,
    function_and_numbers,
    increasing,
    next_time,
    prepared,
)
from jaxmbd.model.transformations import in_space, mirror, soften
from jaxmbd.model.validation import description_problems, problems_text, reached_bodies

__all__ = [
    "Actuator",
    "AntiRollBar",
    "Armature",
    "Belt",
    "Body",
    "BodyActuator",
    "BumpStop",
    "Bushing",
    "Cam",
    "Coupling",
    "Cylindrical",
    "DamperCurve",
    "Drive",
    "Fixed",
    "FlatFollower",
    "Free",
    "Gear",
    "GearMesh",
    "Helical",
    "JointDrag",
    "JointFriction",
    "JointLimit",
    "JointTorque",
    "Mechanism",
    "PacejkaTyre",
    "ParallelAxes",
    "PerpendicularAxes",
    "Planar",
    "PointDrive",
    "PointForce",
    "PointOnCurve",
    "PointOnLine",
    "PointOnPlane",
    "Prismatic",
    "RackAndPinion",
    "Revolute",
    "Rod",
    "Sampled",
    "SignedSquare",
    "SoftJoint",
    "Spherical",
    "SpringDamper",
    "Table",
    "Torque",
    "TorsionBar",
    "TorsionSpring",
    "Tyre",
    "Universal",
    "WavyRoad",
    "in_space",
    "mirror",
    "register_law",
    "register_type",
    "soften",
]
