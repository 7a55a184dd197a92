"""Outputs one can name: observables of an instant, and the experiments that observe them.

An *observable* is a quantity at an instant (`Travel`, `Toe`, `Reaction`, `Element`, …): a small
value with unit and meaning. An *experiment* (`Configuration`, `Settle`, `Sweep`, `Driven`,
`Motion`, or several `Together`) is a function from a `Mechanism` to named arrays: observables over
its axis, or reduced along it (``Toe("upright").span()``), with a status, and the reason of a
failure.

An experiment's ``declare(mech)`` has units, meanings, dimensions and coordinates of its outputs;
``problems(mech)`` is a list of everything that is wrong with it for a mechanism, ``check(mech)``
raises it; ``trajectory(mech)`` is the whole course for one mechanism; ``describe()`` determines it.
"""

from jaxmbd.observe.angles import (
    AngleBetween,
    Camber,
    Coordinate,
    CoordinateRate,
    DirectionAngle,
    Toe,
    wheel_axis,
)
from jaxmbd.observe.at_rest import Configuration, Settle, Sweep
from jaxmbd.observe.driven import Driven, constant_speed
from jaxmbd.observe.experiment import (
    REASONS,
    XYZ,
    Axis,
    Curves,
    Declaration,
    Experiment,
    Failure,
    Together,
    Trajectory,
    called,
    settled_failure,
    status_text,
    stays_open,
)
from jaxmbd.observe.forces import (
    AxialForce,
    ClosureError,
    ContactForce,
    DriveEffort,
    DrivingPower,
    Element,
    Energy,
    Function,
    HoldingEffort,
    Reaction,
    ToothForce,
    is_rod,
)
from jaxmbd.observe.motion import Motion
from jaxmbd.observe.observable import (
    REDUCTIONS,
    Observable,
    Output,
    Reduced,
    as_point,
    described,
    model_point,
    unknown_point,
)
from jaxmbd.observe.points import (
    Acceleration,
    Distance,
    DistanceRate,
    Position,
    Travel,
    Velocity,
)
from jaxmbd.observe.ratios import MechanicalAdvantage, SpeedRatio
from jaxmbd.observe.shaking import ShakingForce, ShakingMoment
from jaxmbd.observe.snapshot import Snapshot, element_measures
from jaxmbd.observe.unheld import Looked, degrees_not_held, unheld_joints

__all__ = [
    "REASONS",
    "REDUCTIONS",
    "Acceleration",
    "AngleBetween",
    "AxialForce",
    "Axis",
    "Camber",
    "ClosureError",
    "ContactForce",
    "Coordinate",
    "CoordinateRate",
    "Declaration",
    "DirectionAngle",
    "Distance",
    "DistanceRate",
    "DriveEffort",
    "Driven",
    "DrivingPower",
    "Element",
    "Energy",
    "Experiment",
    "Function",
    "HoldingEffort",
    "MechanicalAdvantage",
    "Motion",
    "Observable",
    "Output",
    "Configuration",
    "Position",
    "Reaction",
    "Reduced",
    "Settle",
    "ShakingForce",
    "ShakingMoment",
    "Snapshot",
    "SpeedRatio",
    "Sweep",
    "Together",
    "ToothForce",
    "Toe",
    "Trajectory",
    "Travel",
    "Velocity",
    "constant_speed",
    "described",
    "element_measures",
]
