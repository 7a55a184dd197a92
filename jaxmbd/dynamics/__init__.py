"""Equations of motion: DeNOC, mass matrix, bias, KKT, forward and inverse dynamics, reactions."""

from jaxmbd.dynamics.bias import bias
from jaxmbd.dynamics.denoc import DeNOC, denoc, denoc_equations
from jaxmbd.dynamics.forward import forward_dynamics, kinetic_energy, potential_energy
from jaxmbd.dynamics.inertia import mass_matrix
from jaxmbd.dynamics.inverse import inverse_dynamics
from jaxmbd.dynamics.reactions import joint_reactions

__all__ = [
    "DeNOC",
    "bias",
    "denoc",
    "denoc_equations",
    "forward_dynamics",
    "inverse_dynamics",
    "joint_reactions",
    "kinetic_energy",
    "mass_matrix",
    "potential_energy",
]
