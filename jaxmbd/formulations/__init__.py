"""Other formulations of the same description: oracles that share no kinematics code."""

from jaxmbd.formulations.absolute import AbsoluteSolution, absolute_accelerations

__all__ = ["AbsoluteSolution", "absolute_accelerations"]
