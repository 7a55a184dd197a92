"""The KKT system of a closed-loop mechanism, factored once and solved as often as needed.

``[M −Jᵀ; J 0] [x; λ] = [f; c]``: M is factored along the tree, then the Schur complement
``A = J M⁻¹ Jᵀ``. Rows of A that add no rank are skipped, so redundant constraints are harmless;
the multipliers of least norm are found on request.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics.inertia import joint_space_inertia
from jaxmbd.kinematics.closure import closure_jacobian
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.spatial.factor import (
    ldlt_rank_revealing,
    ldlt_solve,
    ltdl,
    ltdl_backward,
    ltdl_forward,
    minimum_norm,
)


class KKT(NamedTuple):
    """A factored KKT system; rows of J are scaled so that all multipliers are in newtons.

    Attributes:
        lower, pivots: ``Lᵀ D L`` of M, or of ``M + α JᵀJ``.
        alpha: α, or zero.
        jacobian: scaled J (nc, nv).
        half: ``L⁻ᵀ Jᵀ`` (nv, nc).
        schur, schur_pivots, kept: rank-revealing factors of A; `kept` is false in redundant rows.
        scale: (nc,) that was applied to the rows.
        determinate: (nv,), false where a pivot shows neither inertia nor constraint.
    """

    lower: Array
    pivots: Array
    alpha: Array | float
    jacobian: Array
    half: Array
    schur: Array
    schur_pivots: Array
    kept: Array
    scale: Array
    determinate: Array


def mechanism_length(mech: Mechanism) -> Array:
    """A typical length [m]: the spread of hardpoints and centres of mass; one where they coincide."""
    points = [jnp.asarray(x) for x in mech.points.values()]
    points += [mech.com(body) for body in mech.structure.bodies]
    stack = jax.lax.stop_gradient(jnp.stack(points))
    square = jnp.mean(jnp.sum((stack - jnp.mean(stack, axis=0)) ** 2, axis=1))
    return jnp.where(square > 0.0, jnp.sqrt(jnp.where(square > 0.0, square, 1.0)), 1.0)


def row_scale(m: MotionState) -> Array:
    """(nc,): one for force rows, the mechanism's length for moment rows."""
    moment = np.array([kind == "moment" for kind in m.top.row_kinds], bool)
    if not moment.any():
        return jnp.ones(m.top.nc, m.q.dtype)
    return jnp.where(moment, mechanism_length(m.mech), 1.0).astype(m.q.dtype)


def factor_kkt(m: MotionState) -> KKT:
    """Factor the KKT system at a configuration.

    Where bodies are known to lack inertia (``topology.light``) M may be singular, and
    ``M + α JᵀJ`` is factored instead: with ``f + α Jᵀ c`` for f it has the same solution.
    """
    mass, scale = joint_space_inertia(m), row_scale(m)
    jacobian = scale[:, None] * closure_jacobian(m)
    alpha: Array | float = 0.0
    if m.top.light and m.top.nc:
        rows = jnp.sum(jacobian * jacobian)
        alpha = jax.lax.stop_gradient(jnp.trace(mass) / jnp.where(rows > 0.0, rows, 1.0))
        mass = mass + alpha * (jacobian.T @ jacobian)
    lower, pivots = ltdl(mass)
    eps = jnp.finfo(m.q.dtype).eps
    determinate = pivots > 64.0 * eps * jnp.diagonal(mass)
    if m.top.nc == 0:
        none = jnp.zeros((0, 0), m.q.dtype)
        empty = none[0:0].reshape(0)
        half = jnp.zeros((m.top.nv, 0), m.q.dtype)
        kept = jnp.zeros(0, bool)
        return KKT(lower, pivots, alpha, jacobian, half, none, empty, kept, scale, determinate)
    half = ltdl_backward(lower, jacobian.T)
    schur = half.T @ (half / jnp.where(determinate, pivots, 1.0)[:, None])
    factors = ldlt_rank_revealing(schur, float(eps) ** 0.64)
    return KKT(lower, pivots, alpha, jacobian, half, *factors, scale, determinate)


def solve_kkt(
    kkt: KKT, force: Array, rhs: Array, *, least_norm: bool = True
) -> tuple[Array, Array]:
    """X (nv,) and λ (nc,) of ``M x = force + Jᵀ λ``, ``J x = rhs``.

    NaN where a motion has neither inertia nor constraint.

    Args:
        kkt: the factored system.
        force: (nv,).
        rhs: (nc,).
        least_norm: give redundant multipliers their least norm (moments over the mechanism's
            length); x is the same either way.
    """
    if kkt.scale.shape[0] == 0:
        x = _inertia_solve(kkt, ltdl_backward(kkt.lower, force[:, None])[:, 0])
        return _where_determinate(kkt, x), rhs
    rhs = kkt.scale * rhs
    if not isinstance(kkt.alpha, float):
        force = force + kkt.alpha * (kkt.jacobian.T @ rhs)
    y = ltdl_backward(kkt.lower, force[:, None])[:, 0]
    pivots = jnp.where(kkt.determinate, kkt.pivots, 1.0)
    b = rhs - kkt.half.T @ (y / pivots)
    multipliers = ldlt_solve(kkt.schur, kkt.schur_pivots, kkt.kept, b)
    x = _inertia_solve(kkt, y + kkt.half @ multipliers)
    if least_norm:
        multipliers = minimum_norm(kkt.schur, kkt.kept, multipliers)
    return _where_determinate(kkt, x), _where_determinate(kkt, kkt.scale * multipliers)


def _inertia_solve(kkt: KKT, y: Array) -> Array:
    pivots = jnp.where(kkt.determinate, kkt.pivots, 1.0)
    return ltdl_forward(kkt.lower, (y / pivots)[:, None])[:, 0]


def _where_determinate(kkt: KKT, x: Array) -> Array:
    return jnp.where(jnp.all(kkt.determinate), x, jnp.nan)
