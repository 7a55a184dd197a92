"""Analyses of a mechanism: mobility, assembly, simulation, equilibrium, linearisation."""

from jaxmbd.analysis.assembly import Assembly, Opening, assemble, attempt, opening, places
from jaxmbd.analysis.balance import balance_at_rest
from jaxmbd.analysis.driven import DrivenMotion, simulate_driven
from jaxmbd.analysis.freedoms import Mobility, Redundancy, RedundantRow, mobility, redundancy
from jaxmbd.analysis.inputs import efforts_at, parse_inputs
from jaxmbd.analysis.known import (
    JointCoordinate,
    Key,
    Known,
    PointCoordinate,
    PointTravel,
    closing_rows,
    drawn_value,
    held_name,
    is_angle,
    known_values,
    parse_known,
    point_of,
)
from jaxmbd.analysis.linearization import Linearization, Modes, linearize
from jaxmbd.analysis.margin import ClosureMargin, closure_margin, dead_centre
from jaxmbd.analysis.projection import project
from jaxmbd.analysis.settled_motion import settled_speeds
from jaxmbd.analysis.simulation import Solution, simulate
from jaxmbd.analysis.small_loads import flexibility
from jaxmbd.analysis.state_check import StateCheck, check_state
from jaxmbd.analysis.statics import Equilibrium, equilibrium
from jaxmbd.analysis.status import Status, closure_error
from jaxmbd.analysis.velocity import asked_rows, assemble_acceleration, assemble_velocity, is_met

__all__ = [
    "Assembly",
    "ClosureMargin",
    "DrivenMotion",
    "Equilibrium",
    "Linearization",
    "Mobility",
    "Modes",
    "PointCoordinate",
    "PointTravel",
    "Redundancy",
    "RedundantRow",
    "Solution",
    "StateCheck",
    "Status",
    "assemble",
    "assemble_acceleration",
    "assemble_velocity",
    "check_state",
    "closure_margin",
    "dead_centre",
    "equilibrium",
    "flexibility",
    "linearize",
    "mobility",
    "project",
    "redundancy",
    "simulate",
    "simulate_driven",
]
