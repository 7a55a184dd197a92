"""The KKT system of a closed-loop mechanism, factored once and solved as often as needed.

``[M −Jᵀ; J 0] [x; λ] = [f; c]``: M is factored along the tree, then the Schur complement
``A = J M⁻¹ Jᵀ``. Rows of A that add no rank are skipped, so constraints may be redundant; the
multipliers of least norm are computed separately (`least_norm`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from jaxmbd.dynamics.inertia import joint_space_inertia
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.kinematics.scales import row_scale, scaled_jacobian
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.consistency import tested
from jaxmbd.numerics.ltdl import ltdl, ltdl_backward, ltdl_forward
from jaxmbd.numerics.rank_revealing import (
    RankRevealed,
    ldlt_rank_revealing,
    ldlt_solve,
    minimum_norm,
)


class System(NamedTuple):
    """The matrices of a KKT system; rows of J are scaled so that all multipliers are in newtons.

    Attributes:
        mass: M (nv, nv).
        jacobian: scaled J (nc, nv).
        scale: (nc,), the factors applied to the rows.
        singular: whether M may be singular because some bodies lack inertia.
    """

    mass: Array
    jacobian: Array
    scale: Array
    singular: bool


class Factors(NamedTuple):
    """Factors of a KKT system.

    Attributes:
        lower, pivots: ``Lᵀ D L`` of M, or of ``M + α JᵀJ``.
        alpha: α, or None.
        half: ``L⁻ᵀ Jᵀ`` (nv, nc).
        schur: rank-revealing factors of A: lower, pivots, and which rows are kept.
        determinate: (nv,), false if a pivot vanishes: the motion has neither inertia nor
            constraint.
    """

    lower: Array
    pivots: Array
    alpha: Array | None
    half: Array
    schur: RankRevealed
    determinate: Array


def kkt_system(m: MotionState) -> System:
    """The KKT matrices at a configuration."""
    singular = bool(m.top.light) and m.top.nc > 0
    return System(joint_space_inertia(m), scaled_jacobian(m), row_scale(m), singular)


def factor_kkt(singular: bool, mass: Array, jacobian: Array) -> Factors:
    """Factor a KKT system.

    If M may be singular, ``M + α JᵀJ`` is factored instead, which has the same solution with
    ``f + α Jᵀ c`` for f.
    """
    alpha = None
    if singular:
        rows = jnp.sum(jacobian * jacobian)
        alpha = jax.lax.stop_gradient(jnp.trace(mass) / jnp.where(rows > 0.0, rows, 1.0))
        mass = mass + alpha * (jacobian.T @ jacobian)
    lower, pivots, determinate = ltdl(
        mass, tolerances.rounding(mass.dtype, 64) * jnp.diagonal(mass)
    )
    if jacobian.shape[0] == 0:
        none = jnp.zeros((0, 0), mass.dtype)
        schur = RankRevealed(none, none[:, 0:0].reshape(0), jnp.zeros(0, bool))
        return Factors(lower, pivots, alpha, jacobian.T, schur, determinate)
    half = ltdl_backward(lower, jacobian.T)
    # Rows that are rounding error are detected by their length in J, not in the metric of M⁻¹, in
    # which the rows of a heavy loop are short compared with those of a light one.
    squares = jnp.sum(jacobian * jacobian, axis=1)
    schur = ldlt_rank_revealing(half.T @ (half / pivots[:, None]), squares=squares)
    return Factors(lower, pivots, alpha, half, schur, determinate)


def _substitute(k: Factors, jacobian: Array, force: Array, rhs: Array) -> tuple[Array, Array]:
    """Solutions x (nv, m) and basic λ (nc, m), by substitution with the factors."""
    if jacobian.shape[0] == 0:
        y = ltdl_backward(k.lower, force)
        x = ltdl_forward(k.lower, y / k.pivots[:, None])
        return x, x[:0]  # not rhs: the empty result must vary along a device mesh as x does
    if k.alpha is not None:
        force = force + k.alpha * (jacobian.T @ rhs)
    y = ltdl_backward(k.lower, force)
    multipliers = ldlt_solve(*k.schur, rhs - k.half.T @ (y / k.pivots[:, None]))
    y = y + k.half @ multipliers
    return ltdl_forward(k.lower, y / k.pivots[:, None]), multipliers


class _How(NamedTuple):
    singular: bool
    tested: bool


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solve(
    how: _How, mass: Array, jacobian: Array, force: Array, rhs: Array
) -> tuple[Array, Array]:
    k = factor_kkt(how.singular, mass, jacobian)
    x, multipliers = _substitute(k, jacobian, force, rhs)
    return jnp.where(jnp.all(k.determinate), x, jnp.nan), multipliers


@_solve.defjvp
def _solve_jvp(how: _How, primals: Any, tangents: Any) -> Any:
    """Implicit differentiation, ``K ẋ = ḃ − K̇ x`` with the factors of K.

    NaN if skipped rows are not satisfied (`jaxmbd.numerics.consistency`).
    """
    mass, jacobian, force, rhs = primals
    dmass, djacobian, dforce, drhs = tangents
    k = factor_kkt(how.singular, mass, jacobian)
    x, multipliers = _substitute(k, jacobian, force, rhs)
    dforce = dforce - dmass @ x + djacobian.T @ multipliers
    opened = djacobian @ x
    tangent = _substitute(k, jacobian, dforce, drhs - opened)
    if how.tested and jacobian.shape[0]:
        miss = jacobian @ tangent[0] + opened - drhs
        terms = [drhs, opened, jnp.max(jnp.abs(jacobian)) * tangent[0]]
        flat, restore = ravel_pytree(tangent)
        tangent = restore(tested(flat, miss, terms))
    return (jnp.where(jnp.all(k.determinate), x, jnp.nan), multipliers), tangent


def solve_kkt(
    system: System, force: Array, rhs: Array, *, test: bool = True
) -> tuple[Array, Array]:
    """Solve ``M x = force + Jᵀ λ``, ``J x = rhs`` for x (nv, m) and λ (nc, m), with m right sides.

    λ is zero in redundant rows; x is NaN if a motion has neither inertia nor constraint.

    Args:
        system: the matrices.
        force: (nv, m).
        rhs: (nc, m), of the unscaled rows.
        test: whether tangents are NaN where redundant rows become inconsistent; False if the
            caller tests them.
    """
    how = _How(system.singular, test)
    scale = system.scale[:, None]
    x, multipliers = _solve(how, system.mass, system.jacobian, force, scale * rhs)
    return x, scale * multipliers


def rows_met(system: System, x: Array, rhs: Array, size: Array) -> Array:
    """Whether ``J x = rhs`` to 5e-7 of `size`, the size of the rows' terms, in skipped rows too."""
    miss = system.jacobian @ x - system.scale * rhs
    return jnp.all(jnp.abs(miss) <= tolerances.carrying(x.dtype) * size)


def conditioning(system: System) -> Array:
    """The least ratio of pivot to diagonal element of M times that of A, from 0 (singular) to 1.

    The relative error of accelerations is about ε divided by it.
    """
    k = factor_kkt(system.singular, system.mass, system.jacobian)
    mass = system.mass
    if k.alpha is not None:
        mass = mass + k.alpha * (system.jacobian.T @ system.jacobian)
    share = jnp.asarray(jnp.where(k.determinate, k.pivots / jnp.diagonal(mass), 0.0))
    kept = jnp.min(share, initial=1.0)
    gram = jnp.sum(k.half * k.half / k.pivots[:, None], axis=0)
    rows = jnp.where(k.schur.kept, k.schur.pivots / gram, 1.0)
    return kept * jnp.min(rows, initial=1.0)


def least_norm(system: System, multipliers: Array) -> Array:
    """λ (nc,) of least norm (moments divided by the mechanism's length) with the same ``Jᵀ λ``."""
    if multipliers.shape[0] < 2:
        return multipliers
    lower, _, kept = factor_kkt(system.singular, system.mass, system.jacobian).schur
    return system.scale * minimum_norm(lower, kept, multipliers / system.scale)
