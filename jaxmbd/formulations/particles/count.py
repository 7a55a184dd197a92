"""How many equations a mechanism has in point coordinates."""

from __future__ import annotations

from typing import NamedTuple

import jax

from jaxmbd.formulations.particles.system import Forms, ParticleSystem
from jaxmbd.model import Mechanism, in_space


class ParticleCount(NamedTuple):
    """Numbers of particles, unknowns and conditions of a mechanism in point coordinates.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import particle_count
        >>> particle_count(mbd.zoo.simple_pendulum(), forms=3).differential
        1
    """

    particles: int
    """Particles whose coordinates are unknown: shared ones once, the ground's not."""
    coordinates: int
    """Unknown accelerations, three for each particle."""
    distances: int
    """Conditions within bodies."""
    joints: int
    """Conditions of joints that share no particles, cut joints and rods among them."""
    held: int
    """Conditions of couplings and drives."""

    @property
    def constraints(self) -> int:
        """All conditions."""
        return self.distances + self.joints + self.held

    @property
    def differential(self) -> int:
        """Number of differential equations of motion: coordinates − constraints.

        Attia counts in this way ("5 differential equations of motion + 22 geometric constraints");
        his sum, 27, is `coordinates`. Negative if there are more conditions than coordinates
        because of redundancy.
        """
        return self.coordinates - self.constraints

    @property
    def with_multipliers(self) -> int:
        """Size of the KKT system: coordinates and one multiplier for each condition."""
        return self.coordinates + self.constraints


def particle_count(mech: Mechanism, *, forms: Forms = 4) -> ParticleCount:
    """Count the particles, unknowns and conditions of a mechanism in point coordinates.

    Args:
        mech: the mechanism.
        forms: primary particles of every body, or of bodies by name (`particle_accelerations`).

    Raises:
        ValueError: a joint has no conditions on points, or a body does not fit its form.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import particle_count
        >>> count = particle_count(mbd.zoo.rssr(), forms=3)
        >>> count.particles, count.coordinates, count.constraints
        (4, 12, 10)
    """
    system = ParticleSystem(in_space(mech), forms)
    r = {b: frame.points for b, frame in system.frames.items()}

    def rows(name: str) -> int:
        return jax.eval_shape(lambda: system.joint_rows(name, r)).shape[0]

    return ParticleCount(
        particles=system.count,
        coordinates=3 * system.count,
        distances=sum(len(system.pairs(b)) for b in system.top.bodies),
        joints=sum(rows(name) for name in system.halves),
        held=len(system.top.couplings) + len(system.top.drives),
    )
