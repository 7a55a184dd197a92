"""Equations of motion: DeNOC, mass matrix, bias, KKT, forward and inverse dynamics, reactions."""

from jaxmbd.dynamics.bearing_edges import EdgeForces, edge_forces
from jaxmbd.dynamics.bias_forces import bias
from jaxmbd.dynamics.denoc_matrices import DeNOC, denoc, denoc_equations
from jaxmbd.dynamics.forward import forward_dynamics, kinetic_energy, potential_energy
from jaxmbd.dynamics.friction import friction_efforts
from jaxmbd.dynamics.inertia import mass_matrix
from jaxmbd.dynamics.inverse import inverse_dynamics
from jaxmbd.dynamics.reactions import joint_reactions

__all__ = [
    "DeNOC",
    "EdgeForces",
    "bias",
    "denoc",
    "denoc_equations",
    "edge_forces",
    "forward_dynamics",
    "friction_efforts",
    "inverse_dynamics",
    "joint_reactions",
    "kinetic_energy",
    "mass_matrix",
    "potential_energy",
]
