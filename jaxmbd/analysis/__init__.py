"""Analyses of a mechanism: mobility, assembly, simulation, equilibrium, linearisation."""

from jaxmbd.analysis.assembly import Assembly, assemble
from jaxmbd.analysis.driven import DrivenMotion, simulate_driven
from jaxmbd.analysis.freedoms import Mobility, mobility
from jaxmbd.analysis.known import PointCoordinate, PointTravel
from jaxmbd.analysis.linearization import linearize
from jaxmbd.analysis.margin import ClosureMargin, closure_margin, dead_centre
from jaxmbd.analysis.modes import Linearization, Modes
from jaxmbd.analysis.projection import project
from jaxmbd.analysis.redundant_rows import Redundancy, RedundantRow, redundancy
from jaxmbd.analysis.rollout import Solution
from jaxmbd.analysis.simulation import simulate
from jaxmbd.analysis.small_loads import flexibility
from jaxmbd.analysis.state_check import StateCheck, check_state
from jaxmbd.analysis.statics import Equilibrium, equilibrium
from jaxmbd.analysis.status import Status
from jaxmbd.analysis.velocity import assemble_acceleration, assemble_velocity

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
