"""How many equations a mechanism has in point coordinates.

The smallest number of particles for each body of a mechanism.
"""

from __future__ import annotations

from typing import NamedTuple

import jax

from jaxmbd.formulations.particles.accelerations import particle_matrix
from jaxmbd.formulations.particles.masses import mass_distribution
from jaxmbd.formulations.particles.system import Forms, ParticleSystem
from jaxmbd.model import Mechanism, PointForce, SpringDamper, in_space


def least_forms(mech: Mechanism) -> dict[str, int]:
    """The smallest `forms`: two primary particles for each body that is a rod, else three.

    A body counts as a rod if it has the inertia of a rod or is massless, is carried by a ball joint
    and connected to others by balls and rods, and if its centre of mass and all attachment points
    of joints, springs and forces lie on one line. Such a body has no spin. Flat bodies need no
    special case: three particles represent any body, since the fourth follows from them.

    Raises:
        ValueError: for traced numbers, because the result determines array shapes.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import least_forms
        >>> least_forms(mbd.zoo.rssr())  # its coupler has an inertia about its axis
        {'crank': 3, 'coupler': 3, 'rocker': 3}
    """
    mech = in_space(mech)
    return {body: 2 if _is_rod(mech, body) else 3 for body in mech.structure.bodies}


def _is_rod(mech: Mechanism, body: str) -> bool:
    if mass_distribution(mech.bodies[body]) not in ("rod", "massless"):
        return False
    acting = [e for e in mech.forces.values() if body in e.bodies]
    if any(type(e) not in (SpringDamper, PointForce) for e in acting):
        return False
    try:
        system = ParticleSystem(mech, {body: 2})
        particle_matrix(system, body)
        for element in acting:
            for field, at in element.points.items():
                if getattr(element, {"at_a": "a"}.get(field, "b")) == body:
                    system.of_point(body, mech.point(at))
        system.of_point(body, mech.com(body))
    except ValueError:
        return False
    return True


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
