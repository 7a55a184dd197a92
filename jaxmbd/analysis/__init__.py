"""Analyses of a mechanism: mobility, assembly, simulation, equilibrium, linearisation."""

from jaxmbd.analysis.assembly import Assembly, Opening, assemble, attempt, opening, places
from jaxmbd.analysis.balance import balance_at_rest, flexibility, settled_speeds
from jaxmbd.analysis.dead_centres import ClosureMargin, closure_margin, dead_centre
from jaxmbd.analysis.dense_output import states_at
from jaxmbd.analysis.driven import DrivenMotion, simulate_driven
from jaxmbd.analysis.freedoms import (
    REDUNDANT,
    Mobility,
    Redundancy,
    RedundantRow,
    mobility,
    redundancy,
)
from jaxmbd.analysis.known import (
    JointCoordinate,
    Key,
    Known,
    PointCoordinate,
    PointTravel,
    closing_rows,
    drawn_value,
    efforts_at,
    held_name,
    is_angle,
    known_values,
    parse_inputs,
    parse_known,
    point_of,
)
from jaxmbd.analysis.linearization import Linearization, Modes, linearize
from jaxmbd.analysis.methods import (
    RK4,
    DormandPrince,
    DormandPrince8,
    Event,
    Occurrences,
    Record,
    Rodas,
    SemiImplicitEuler,
)
from jaxmbd.analysis.projection import project
from jaxmbd.analysis.run_account import Account
from jaxmbd.analysis.simulation import RunEnd, Solution, simulate
from jaxmbd.analysis.statics import Equilibrium, equilibrium
from jaxmbd.analysis.status import StateCheck, Status, check_state, closure_error
from jaxmbd.analysis.velocity import asked_rows, assemble_acceleration, assemble_velocity, is_met

__all__ = [
    "RK4",
    "Assembly",
    "ClosureMargin",
    "DormandPrince",
    "DormandPrince8",
    "DrivenMotion",
    "Equilibrium",
    "Event",
    "Linearization",
    "Mobility",
    "Modes",
    "Occurrences",
    "PointCoordinate",
    "PointTravel",
    "Redundancy",
    "RedundantRow",
    "Rodas",
    "RunEnd",
    "SemiImplicitEuler",
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
    "states_at",
]
