"""Fixed-step integrators: one step of (q, v) under a given acceleration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.kinematics import coordinate_rates, step_coordinates
from jaxmbd.model.mechanism import Mechanism

Acceleration = Callable[[Any, Array, Array], Array]
"""(t, q, v) → v̇ (nv,)."""


def rk4_step(
    mech: Mechanism, acceleration: Acceleration, t: Any, q: Array, v: Array, h: Any
) -> tuple[Array, Array]:
    """Kutta's fourth-order step ``y + h/6 (k1 + 2 k2 + 2 k3 + k4)``.

    The stages are a loop, so the dynamics is compiled once. Quaternions leave unit length by O(h⁵)
    only and are then normalised.
    """
    nodes = jnp.array([0.0, 0.5, 0.5, 1.0], q.dtype)
    weights = jnp.array([1.0, 2.0, 2.0, 1.0], q.dtype) / 6.0

    def stage(carry: Any, coefficients: tuple[Array, Array]) -> tuple[Any, None]:
        (kq, kv), (sum_q, sum_v) = carry
        node, weight = coefficients
        qs, vs = q + h * node * kq, v + h * node * kv
        kq, kv = coordinate_rates(mech, qs, vs), acceleration(t + h * node, qs, vs)
        return ((kq, kv), (sum_q + weight * kq, sum_v + weight * kv)), None

    zero = (jnp.zeros_like(q), jnp.zeros_like(v))
    (_, (sum_q, sum_v)), _ = lax.scan(
        jax.checkpoint(stage, prevent_cse=False), (zero, zero), (nodes, weights)
    )
    return normalise(mech, q + h * sum_q, v), v + h * sum_v


def semi_implicit_euler_step(
    mech: Mechanism, acceleration: Acceleration, t: Any, q: Array, v: Array, h: Any
) -> tuple[Array, Array]:
    """First order, speeds first: ``v' = v + h v̇(t, q, v)``, then q moves with v'."""
    v = v + h * acceleration(t, q, v)
    return step_coordinates(mech, q, h * v), v


def normalise(mech: Mechanism, q: Array, v: Array) -> Array:
    """Bring the quaternions of q to unit length, signs kept."""
    return step_coordinates(mech, q, 0.0 * v)


INTEGRATORS = {"rk4": rk4_step, "semi_implicit_euler": semi_implicit_euler_step}
