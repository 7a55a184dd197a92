"""Analyses of a mechanism: mobility, assembly, simulation, equilibrium, linearisation."""

from jaxmbd.analysis.all_assemblies import Assemblies, assemblies
from jaxmbd.analysis.all_circuits import Circuit, Circuits, circuits
from jaxmbd.analysis.assembly import Assembly, Opening, assemble, attempt, opening, places
from jaxmbd.analysis.balance import (
    balance_at_rest,
    flexibility,
    holding_efforts,
    settled_speeds,
)
from jaxmbd.analysis.dead_centres import ClosureMargin, closure_margin, dead_centre
from jaxmbd.analysis.dense_output import states_at
from jaxmbd.analysis.driven import (
    DrivenCourse,
    DrivenMotion,
    driven_course,
    simulate_driven,
    spin_lines,
    spin_rows,
)
from jaxmbd.analysis.drivers import parse_drivers
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
    single_rows,
)
from jaxmbd.analysis.linearization import Linearization, Modes, linearize
from jaxmbd.analysis.method_choice import MethodChoice, choose_method
from jaxmbd.analysis.methods import (
    RK4,
    DormandPrince,
    DormandPrince8,
    Event,
    GeneralizedAlpha,
    Occurrences,
    Record,
    Rodas,
    SemiImplicitEuler,
    Variational,
)
from jaxmbd.analysis.programs import program
from jaxmbd.analysis.projection import project
from jaxmbd.analysis.run_account import Account
from jaxmbd.analysis.simulation import run_start, simulate
from jaxmbd.analysis.solution import RunEnd, Solution
from jaxmbd.analysis.statics import Equilibrium, equilibrium
from jaxmbd.analysis.status import StateCheck, Status, check_state, closure_error
from jaxmbd.analysis.velocity import asked_rows, assemble_acceleration, assemble_velocity, is_met
from jaxmbd.analysis.verification import Agreement, Difference, Verification, verify
from jaxmbd.analysis.work_balance import EnergyBalance, energy_balance

__all__ = [
    "RK4",
    "Agreement",
    "Assemblies",
    "Assembly",
    "Circuit",
    "Circuits",
    "ClosureMargin",
    "Difference",
    "DormandPrince",
    "DormandPrince8",
    "DrivenMotion",
    "EnergyBalance",
    "Equilibrium",
    "Event",
    "GeneralizedAlpha",
    "Linearization",
    "MethodChoice",
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
    "Variational",
    "Verification",
    "assemblies",
    "assemble",
    "assemble_acceleration",
    "assemble_velocity",
    "check_state",
    "choose_method",
    "circuits",
    "closure_margin",
    "dead_centre",
    "energy_balance",
    "equilibrium",
    "flexibility",
    "linearize",
    "mobility",
    "project",
    "redundancy",
    "simulate",
    "simulate_driven",
    "states_at",
    "verify",
]
