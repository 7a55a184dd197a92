"""Momentum of a mechanism as a whole, and its centre of mass."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxmbd.dynamics.inertia import world_inertias
from jaxmbd.kinematics import Accelerations, MotionState, motion_state
from jaxmbd.lanes import whole
from jaxmbd.model import Mechanism
from jaxmbd.spatial import cross


@whole
def centre_of_mass(mech: Mechanism, q: Array) -> Array:
    """World position (3,) [m] of the centre of mass of all moving bodies: ``Σ m x / Σ m``.

    NaN if all bodies are massless.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.double_pendulum()
        >>> mbd.centre_of_mass(m, mbd.neutral(m)).tolist()
        [0.0, -1.5, 0.0]
    """
    return _centre(motion_state(mech, q))


@whole
def momentum(mech: Mechanism, q: Array, v: Array, about: Any = None) -> Array:
    """Angular and linear momentum (6,) ``[h; p]`` [kg m²/s; kg m/s] of all moving bodies.

    ``p = Σ m u`` and ``h = Σ I ω + (x − c) × m u``, with x and u the positions and velocities of
    the centres of mass. Without loads from the ground p and h about the centre of mass are
    constant, but for the weight, which changes p by ``Σ m g`` a second. The spin of rotors
    (`Armature`), which have no place of their own, does not count.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        v: speeds (nv,).
        about: the point c of the world [m]; by default the centre of mass.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.momentum(m, mbd.neutral(m), [3.0], about=(0.0, 0.0, 0.0)).tolist()
        [0.0, 0.0, 3.0, 0.0, -3.0, 0.0]
    """
    m = motion_state(mech, q, v)
    c = _centre(m) if about is None else jnp.asarray(about, m.q.dtype)
    angular = linear = jnp.zeros(3, m.q.dtype)
    motions = world_inertias(m), m.pos.com, m.vel.angular, m.vel.linear
    for body, inertia, x, w, u in zip(m.top.bodies, *motions, strict=True):
        push = mech.bodies[body].mass * u
        angular, linear = angular + inertia @ w + cross(x - c, push), linear + push
    return jnp.concatenate([angular, linear])


def momentum_rate(m: MotionState, acc: Accelerations, about: Array) -> Array:
    """Rates (6,) ``[dh/dt; dp/dt]`` [N·m; N] of the `momentum` about a point at rest in the world.

    ``dp/dt = Σ m a`` and ``dh/dt = Σ I α + ω × I ω + (x − c) × m a``.
    """
    angular = linear = jnp.zeros(3, m.q.dtype)
    motions = world_inertias(m), m.pos.com, m.vel.angular, acc.angular, acc.linear
    for body, inertia, x, w, alpha, a in zip(m.top.bodies, *motions, strict=True):
        push = m.mech.bodies[body].mass * a
        turn = inertia @ alpha + cross(w, inertia @ w)
        angular, linear = angular + turn + cross(x - about, push), linear + push
    return jnp.concatenate([angular, linear])


def _centre(m: MotionState) -> Array:
    moment, total = jnp.zeros(3, m.q.dtype), jnp.zeros((), m.q.dtype)
    for body, com in zip(m.top.bodies, m.pos.com, strict=True):
        mass = m.mech.bodies[body].mass
        moment, total = moment + mass * com, total + mass
    return jnp.where(total == 0.0, jnp.nan, moment / total)
