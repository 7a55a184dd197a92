"""Other formulations of the same description, used for independent checks and on their own."""

from jaxmbd.formulations.absolute import (
    AbsoluteSolution,
    absolute_accelerations,
    absolute_forward_dynamics,
)
from jaxmbd.formulations.constraint_matrices import (
    ConstraintWrenches,
    constraint_matrix_reactions,
    determinate_projections,
)
from jaxmbd.formulations.euler_parameter_rates import (
    EulerParameterBall,
    with_euler_parameter_rates,
)
from jaxmbd.formulations.lagrange import lagrange_efforts
from jaxmbd.formulations.particles import (
    EquivalentParticles,
    Invariants,
    ParticleCount,
    ParticleSolution,
    chain_accelerations,
    dependent_particle,
    equivalent_particles,
    invariants,
    least_forms,
    mass_distribution,
    particle_accelerations,
    particle_accelerations_of_state,
    particle_count,
)

__all__ = [
    "AbsoluteSolution",
    "ConstraintWrenches",
    "EquivalentParticles",
    "EulerParameterBall",
    "Invariants",
    "ParticleCount",
    "ParticleSolution",
    "absolute_accelerations",
    "absolute_forward_dynamics",
    "chain_accelerations",
    "constraint_matrix_reactions",
    "dependent_particle",
    "determinate_projections",
    "equivalent_particles",
    "invariants",
    "lagrange_efforts",
    "least_forms",
    "mass_distribution",
    "particle_accelerations",
    "particle_accelerations_of_state",
    "particle_count",
    "with_euler_parameter_rates",
]
