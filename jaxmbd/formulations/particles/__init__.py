"""Equivalent particles (Attia): point coordinates, and a recursive method for serial chains."""

from jaxmbd.formulations.particles.accelerations import (
    ParticleSolution,
    particle_accelerations,
    particle_accelerations_of_state,
)
from jaxmbd.formulations.particles.bodies import (
    EquivalentParticles,
    Invariants,
    dependent_particle,
    equivalent_particles,
    invariants,
    mass_distribution,
)
from jaxmbd.formulations.particles.chain import chain_accelerations
from jaxmbd.formulations.particles.system import ParticleCount, least_forms, particle_count

__all__ = [
    "EquivalentParticles",
    "Invariants",
    "ParticleCount",
    "ParticleSolution",
    "chain_accelerations",
    "dependent_particle",
    "equivalent_particles",
    "invariants",
    "least_forms",
    "mass_distribution",
    "particle_accelerations",
    "particle_accelerations_of_state",
    "particle_count",
]
