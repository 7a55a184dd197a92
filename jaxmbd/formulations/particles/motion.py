"""The motion that particles describe, as force elements see it, and forces on the particles.

Rotations, angular velocities and joint coordinates are computed from the particles alone. The loads
on a body are reduced to the force R and the moment G_1 about its particle 1 of Attia's (2) and (3);
`geometry.distribute` distributes them to the particles where those are the unknowns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.formulations.particles.geometry import spin
from jaxmbd.formulations.particles.system import ParticleSystem, Positions
from jaxmbd.model import GROUND, Armature, Effort, ForceElement, Free, JointFriction, Spherical
from jaxmbd.spatial import cross, quaternion_from_matrix


class ParticleMotion:
    """The motion as force elements need it, from positions and velocities of the particles."""

    def __init__(self, system: ParticleSystem, r: Positions, v: Positions, t: Any):
        self.system, self.mech, self.t = system, system.mech, t
        self.r, self.v = r, v
        self._spins = {b: spin(r[b], v[b]) for b in r}

    def drawn(self, at: Any) -> Array:
        """Drawn coordinates (3,) [m] of a point."""
        return self.mech.point(at)

    def point(self, body: str, at: Any) -> tuple[Array, Array]:
        """World position [m] and velocity [m/s] of the point of `body` drawn at `at`."""
        c = self.system.of_point(body, self.drawn(at))
        return c @ self.r[body], c @ self.v[body]

    def rotation(self, body: str) -> Array:
        """Rotation (3, 3) of `body` from its drawn orientation: ``Σ d dᵀ_drawn / ℓ²``."""
        frame = self.system.frames[body]
        if frame.edges.shape[0] == 1:
            raise ValueError(f"body '{body}' has two particles and so no orientation; give it 3")
        return (self.r[body][1:] - self.r[body][0]).T @ frame.edges / frame.square

    def angular_velocity(self, body: str) -> Array:
        """Angular velocity [rad/s] of `body`, world axes; a rod's without spin."""
        return self._spins[body]

    def joint(self, name: str) -> tuple[Array, Array]:
        """Coordinates (nq,) and speeds (nv,) of a joint; angles in (-π, π]."""
        q = self.system.coordinates(name, self.r)
        if q is not None:
            rates = jax.jvp(lambda r: self.system.coordinates(name, r), (self.r,), (self.v,))[1]
            return q, rates
        joint, (half_a, half_b) = self.mech.joint(name), self.system.halves[name]
        r_a = self.rotation(joint.a)
        q = quaternion_from_matrix(r_a.T @ self.rotation(joint.b))
        v = r_a.T @ (self._spins[joint.b] - self._spins[joint.a])
        if isinstance(joint, Spherical):
            return q, v
        if not isinstance(joint, Free):
            raise ValueError(f"joint '{name}', a {type(joint).__name__}, has no coordinates")
        xa, _ = self.point(joint.a, half_a.point)
        xb, vb = self.point(joint.b, half_b.point)
        arm = xb - self.r[joint.a][0]
        slip = vb - self.v[joint.a][0] - cross(self._spins[joint.a], arm)
        return jnp.concatenate([q, r_a.T @ (xb - xa)]), jnp.concatenate([v, r_a.T @ slip])


class ParticleLoads:
    """Loads on all bodies: R [N] and G_1 about particle 1 [N·m], and efforts on joints."""

    def __init__(self, motion: ParticleMotion, inputs: Mapping[str, Any]):
        system, self.motion = motion.system, motion
        zero = jnp.zeros(3, system.mech.dtype)
        self.force = dict.fromkeys(system.top.bodies, zero)
        self.moment = dict.fromkeys(system.top.bodies, zero)
        self.efforts: list[tuple[str, Array]] = []
        """Efforts on joints whose coordinates are functions of the particles."""
        self.lost = zero
        """Moments along rods' axes, which move no particle [N·m]."""
        names = [e.name for e in system.mech.structure.joints]
        unknown = [n for n in inputs if n not in names]
        if unknown:
            raise ValueError(f"inputs on {unknown}, which are no joints: {names}")
        for body in system.top.bodies:
            part = system.mech.bodies[body]
            x, _ = motion.point(body, system.mech.com(body))
            weight = jnp.asarray(part.mass) * system.mech.field()
            self.add(body, x, weight, zero)
        for name in system.mech.structure.forces:
            _refuse_reactive(name, system.mech.forces[name])
            for load in system.mech.forces[name].loads(motion):
                if isinstance(load, Effort):
                    self.add_effort(load.joint, load.value)
                else:
                    self.add(load.body, load.point, load.force, load.moment)
        for name, value in inputs.items():
            self.add_effort(name, value)

    def add(self, body: str, x: Array, force: Array, moment: Array) -> None:
        """A force [N] at the world point `x` [m] and a moment [N·m]."""
        if body == GROUND:
            return
        r = self.motion.r[body]
        about = moment + cross(x - r[0], force)
        if r.shape[0] == 2:
            d = r[1] - r[0]
            self.lost = self.lost + jnp.abs(d @ about) / jnp.sqrt(d @ d)
        self.force[body] = self.force[body] + force
        self.moment[body] = self.moment[body] + about

    def add_effort(self, name: str, value: Any) -> None:
        """An effort along the speeds of a joint, a number or (nv,) [N·m or N]."""
        motion = self.motion
        joint = motion.mech.joint(name)
        value = jnp.asarray(value, motion.mech.dtype)
        if value.shape not in ((), (joint.nv,)) or joint.nq == 0:
            raise ValueError(
                f"effort on joint '{name}' has shape {value.shape}; give a number or "
                f"({joint.nv if joint.nq else 0},)"
            )
        value = jnp.broadcast_to(value, (joint.nv,))
        if not isinstance(joint, (Spherical, Free)):
            self.efforts.append((name, value))
            return
        r_a, half = motion.rotation(joint.a), motion.system.halves[name][1]
        x, _ = motion.point(joint.b, half.point)
        moment, force = r_a @ value[:3], jnp.zeros(3, value.dtype)
        if isinstance(joint, Free):
            force = r_a @ value[3:]
        self.add(joint.b, x, force, moment)
        self.add(joint.a, x, -force, -moment)


def _refuse_reactive(name: str, element: ForceElement) -> None:
    if isinstance(element, JointFriction):
        raise ValueError(
            f"friction '{name}' needs the reaction of joint '{element.joint}', which shared "
            "particles do not have: leave it out and give its effort with inputs= (from "
            "jaxmbd.dynamics.friction_efforts)"
        )
    if isinstance(element, Armature):
        raise ValueError(
            f"armature '{name}' is an inertia along coordinates, which particles do not have: "
            "leave it out, or give the body that turns the inertia"
        )
