"""The smallest number of particles for each body of a mechanism."""

from __future__ import annotations

from jaxmbd.formulations.particles.accelerations import particle_matrix
from jaxmbd.formulations.particles.masses import mass_distribution
from jaxmbd.formulations.particles.system import ParticleSystem
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
