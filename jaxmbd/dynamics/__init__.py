"""Equations of motion: DeNOC, mass matrix, bias, KKT, forward and inverse dynamics, reactions."""

from jaxmbd.dynamics.bias_forces import (
    Inputs,
    applied_loads,
    bias,
    inertia_efforts,
    joint_efforts,
    load_sizes,
)
from jaxmbd.dynamics.denoc_matrices import DeNOC, denoc, denoc_equations
from jaxmbd.dynamics.forward import (
    applied_efforts,
    check_determinate,
    forward_dynamics,
    kinetic_energy,
    potential_energy,
)
from jaxmbd.dynamics.forward_derivatives import forward_slopes
from jaxmbd.dynamics.friction import friction_efforts, rubbing_joints, solve_motion
from jaxmbd.dynamics.inertia import armature_diagonal, mass_matrix, rotor_energy, world_inertias
from jaxmbd.dynamics.inverse import (
    actuated_columns,
    check_actuated,
    inverse_dynamics,
    required_efforts,
    share_efforts,
)
from jaxmbd.dynamics.kkt import (
    Factors,
    System,
    conditioning,
    determinate,
    kkt_factors,
    kkt_system,
    least_norm,
    mass_operator,
    rows_met,
    solve_kkt,
)
from jaxmbd.dynamics.loop_embedding import Embedding, embedding
from jaxmbd.dynamics.reactions import (
    EdgeForces,
    edge_forces,
    joint_reactions,
    reactions_and_friction,
    rubbing_effort,
)
from jaxmbd.dynamics.total_momentum import centre_of_mass, momentum, momentum_rate

__all__ = [
    "DeNOC",
    "EdgeForces",
    "bias",
    "centre_of_mass",
    "denoc",
    "denoc_equations",
    "edge_forces",
    "forward_dynamics",
    "friction_efforts",
    "inverse_dynamics",
    "joint_reactions",
    "kinetic_energy",
    "mass_matrix",
    "momentum",
    "potential_energy",
]
