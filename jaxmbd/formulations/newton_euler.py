"""Terms of the Newton-Euler equations of all bodies: inertia, and loads other than reactions.

For each body, about its centre of mass (COM) and in world axes,

    M ṫ = f + (joint wrenches),  M = diag(R I Rᵀ, m 1),  f = [n − ω × (R I Rᵀ) ω; F + m g]

with ``t = [ω; v of the COM]``. `f` gathers gravity, the gyroscopic moment, the force elements and
the efforts along the joints' coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.constraints import points
from jaxmbd.formulations.state import StateMotion, effort_directions, speed_rows
from jaxmbd.model import Armature, Effort


def world_inertia(motion: StateMotion, body: str) -> Float[Array, "3 3"]:
    """Inertia of a body about its COM [kg m²], world axes: ``R I Rᵀ``."""
    r = motion.rotation(body)
    return r @ jnp.asarray(motion.mech.inertia(body), r.dtype) @ r.T


def body_masses(motion: StateMotion) -> Float[Array, "twists twists"]:
    """``diag(R I Rᵀ, m 1)`` of all bodies in the order of their declaration, and the armatures."""
    bodies = motion.mech.structure.bodies
    mass = jnp.zeros((6 * len(bodies), 6 * len(bodies)), motion.mech.dtype)
    for i, name in enumerate(bodies):
        k, eye = 6 * i, jnp.eye(3, dtype=mass.dtype)
        mass = mass.at[k : k + 3, k : k + 3].set(world_inertia(motion, name))
        mass = mass.at[k + 3 : k + 6, k + 3 : k + 6].set(motion.mech.bodies[name].mass * eye)
    for wrenches, inertia, rows, _ in _armatures(motion):
        mass = mass + (wrenches * inertia) @ rows
    return mass


def _armatures(motion: StateMotion) -> list[tuple[Array, Array, Array, Array]]:
    """Of each armature: wrenches (6n, nv) of unit efforts on all bodies, a, and ``v̇ = J ṫ + β``."""
    bodies, out = motion.mech.structure.bodies, []
    for name, joint_name in motion.mech.structure.armatures:
        joint, s, a, b = motion.halves(joint_name)
        rows, rate = speed_rows(joint, s, a, b, motion.pair_twist(joint_name))
        efforts = effort_directions(joint, s, a, b)
        _, x = points(s, a, b)
        wrenches = jnp.zeros((6 * len(bodies), joint.nv), rate.dtype)
        speeds = jnp.zeros((joint.nv, 6 * len(bodies)), rate.dtype)
        for half, (body, sign) in enumerate(((joint.a, -1.0), (joint.b, 1.0))):
            if body == "ground":
                continue
            part, arm = slice(6 * bodies.index(body), 6 * bodies.index(body) + 6), x
            arm = arm - motion.pose(body).com
            moments = efforts[:3] + jnp.cross(arm, efforts[3:].T).T
            both = sign * jnp.concatenate([moments, efforts[3:]])
            wrenches = wrenches.at[part].add(both)
            speeds = speeds.at[:, part].add(rows[:, 6 * half : 6 * half + 6])
        element = motion.mech.forces[name]
        assert isinstance(element, Armature)
        out.append((wrenches, element.along(joint.nv), speeds, rate))
    return out


def body_loads(
    motion: StateMotion, efforts: Mapping[str, Any] | None = None
) -> Float[Array, "twists"]:
    """`applied_wrenches` minus gyroscopic moments and those of armatures (6n,); same arguments."""
    turning = []
    for name in motion.mech.structure.bodies:
        inertia, omega = world_inertia(motion, name), motion.angular_velocity(name)
        turning += [jnp.cross(omega, inertia @ omega), jnp.zeros(3, omega.dtype)]
    total = applied_wrenches(motion, efforts) - jnp.concatenate(turning)
    return total - sum(w @ (a * rate) for w, a, _, rate in _armatures(motion))


def applied_wrenches(
    motion: StateMotion, efforts: Mapping[str, Any] | None = None
) -> Float[Array, "twists"]:
    """Wrenches [n; f] about the COMs, world axes: gravity, force elements and efforts.

    Args:
        motion: the state.
        efforts: joint to efforts along its speeds, one number or (nv,) [N·m or N].

    Raises:
        ValueError: efforts on an unknown joint, or of the wrong shape.
    """
    mech, total = motion.mech, {}
    for name in mech.structure.bodies:
        weight = mech.bodies[name].mass * mech.field()
        total[name] = jnp.concatenate([jnp.zeros_like(weight), weight])

    def add(body: str, x: Array, moment: Array, force: Array) -> None:
        if body != "ground":
            about_com = moment + jnp.cross(x - motion.pose(body).com, force)
            total[body] = total[body] + jnp.concatenate([about_com, force])

    acting = _given(motion, efforts or {})
    for name in mech.structure.forces:
        for load in mech.forces[name].loads(motion):
            if isinstance(load, Effort):
                acting.append((load.joint, load.value))
            else:
                add(load.body, load.point, load.moment, load.force)
    for name, value in acting:
        joint, s, a, b = motion.halves(name)
        columns = effort_directions(joint, s, a, b)
        wrench, (_, x) = columns @ _sized(name, value, columns), points(s, a, b)
        add(joint.b, x, wrench[:3], wrench[3:])
        add(joint.a, x, -wrench[:3], -wrench[3:])
    return jnp.concatenate([total[n] for n in mech.structure.bodies])


def _given(motion: StateMotion, efforts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    unknown = [n for n in efforts if n not in motion.sketches]
    if unknown:
        raise ValueError(f"efforts on {unknown}, which are no joints: {list(motion.sketches)}")
    return list(efforts.items())


def _sized(name: str, value: Any, columns: Array) -> Array:
    value, size = jnp.asarray(value, columns.dtype), columns.shape[1:]
    if value.shape not in ((), size):
        raise ValueError(
            f"effort on joint '{name}' has shape {value.shape}; give one number or {size}"
        )
    return jnp.broadcast_to(value, size)
