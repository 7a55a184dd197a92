"""The KKT system of a closed-loop mechanism, factored once and solved as often as needed.

``[M −Jᵀ; J 0] [x; λ] = [f; c]``: M is factored along the tree, then the Schur complement
``A = J M⁻¹ Jᵀ``. Rows of A that add no rank are skipped, so constraints may be redundant; the
multipliers of least norm are computed separately (`least_norm`).

M may be singular (massless links, on them three revolutes in gimbal lock). Each sample's pivots
tell: where one vanishes, ``M + α JᵀJ`` is factored instead, which gives the same motion. That is
rare, and costs other samples next to nothing. A motion with neither inertia nor constraint is
indeterminate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics.inertia import joint_space_inertia
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.kinematics.scales import row_scale, scaled_jacobian
from jaxmbd.lanes import rarely
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.consistency import solution
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
    """

    mass: Array
    jacobian: Array
    scale: Array


class Factors(NamedTuple):
    """Factors of a KKT system.

    Attributes:
        lower, pivots: ``Lᵀ D L`` of M, with 1 for pivots that vanish.
        sound: (nv,), which do not.
        half: ``L⁻ᵀ Jᵀ`` (nv, nc).
        schur: rank-revealing factors of A: lower, pivots, and which rows are kept.
    """

    lower: Array
    pivots: Array
    sound: Array
    half: Array
    schur: RankRevealed

    @property
    def regular(self) -> Array:
        """Whether no pivot vanishes."""
        return jnp.all(self.sound)


def kkt_system(m: MotionState) -> System:
    """The KKT matrices at a configuration."""
    return System(joint_space_inertia(m), scaled_jacobian(m), row_scale(m))


def factor_kkt(mass: Array, jacobian: Array) -> Factors:
    """Factor a KKT system."""
    diagonal = jnp.asarray(jnp.diagonal(mass))
    floor = tolerances.rounding(mass.dtype, 64) * diagonal
    lower, pivots, sound = ltdl(mass, floor)
    half = ltdl_backward(lower, jacobian.T)
    if jacobian.shape[0] == 0:
        none = jnp.zeros((0, 0), mass.dtype)
        schur = RankRevealed(none, jnp.zeros(0, mass.dtype), jnp.zeros(0, bool))
        return Factors(lower, pivots, sound, half, schur)
    # Rows that are rounding error are detected by their length in J, not in the metric of M⁻¹, in
    # which the rows of a heavy loop are short compared with those of a light one.
    squares = jnp.sum(jacobian * jacobian, axis=1)
    schur = ldlt_rank_revealing(half.T @ (half / pivots[:, None]), squares=squares)
    return Factors(lower, pivots, sound, half, schur)


def _augmented(k: Factors, jacobian: Array) -> tuple[Factors, Array]:
    """Factors of the system with ``M + α JᵀJ`` in place of M, and α.

    α is the ratio of the traces of M and ``JᵀJ``. With ``J x = c`` the equation of motion becomes
    ``(M + α JᵀJ) x = f + Jᵀ (λ + α c)``.
    """
    mass = k.lower.T @ (jnp.where(k.sound, k.pivots, 0.0)[:, None] * k.lower)
    alpha = _or_one(jnp.trace(mass)) / _or_one(jnp.sum(jacobian * jacobian))
    return factor_kkt(mass + alpha * (jacobian.T @ jacobian), jacobian), alpha


def _or_one(x: Array) -> Array:
    return jnp.where(x > 0.0, x, 1.0)


def _substitute(k: Factors, force: Array, rhs: Array) -> Array:
    """``[x; −λ]`` (nv + nc, m), with λ zero in redundant rows, by substitution with the factors."""
    y = ltdl_backward(k.lower, force)
    if rhs.shape[0] == 0:
        return ltdl_forward(k.lower, y / k.pivots[:, None])
    multipliers = ldlt_solve(*k.schur, rhs - k.half.T @ (y / k.pivots[:, None]))
    y = y + k.half @ multipliers
    return jnp.concatenate([ltdl_forward(k.lower, y / k.pivots[:, None]), -multipliers])


def _solution(k: Factors, jacobian: Array, force: Array, rhs: Array) -> Array:
    """``[x; −λ]`` (nv + nc, m); x is NaN if a motion is indeterminate."""
    z = _substitute(k, force, rhs)
    other = jnp.full_like(z, jnp.nan)
    if rhs.shape[0]:
        other = rarely(~k.regular, _light_solution, other, k, jacobian, force, rhs)
    return jnp.where(k.regular, z, other)


def _light_solution(k: Factors, jacobian: Array, force: Array, rhs: Array) -> Array:
    full, alpha = _augmented(k, jacobian)
    x, push = jnp.split(_substitute(full, force, rhs), [force.shape[0]])
    return jnp.concatenate([jnp.where(full.regular, x, jnp.nan), push + alpha * rhs])


def conditioning(system: System) -> Array:
    """The least ratio of pivot to diagonal element of M times that of A, from 0 (singular) to 1.

    The relative error of accelerations is about ε divided by it. It is 0 if a motion is
    indeterminate; where M is singular it is that of ``M + α JᵀJ``.
    """
    k = factor_kkt(system.mass, system.jacobian)
    none = jnp.zeros((), system.mass.dtype)
    if system.jacobian.shape[0]:
        none = rarely(~k.regular, _light_conditioning, none, k, system.jacobian)
    return jnp.where(k.regular, _share(k), none)


def _light_conditioning(k: Factors, jacobian: Array) -> Array:
    full, _ = _augmented(k, jacobian)
    return jnp.where(full.regular, _share(full), 0.0)


def _share(k: Factors) -> Array:
    diagonal = jnp.sum(k.lower**2 * k.pivots[:, None], axis=0)
    gram = jnp.sum(k.half**2 / k.pivots[:, None], axis=0)
    rows = jnp.where(k.schur.kept, k.schur.pivots / gram, 1.0)
    return jnp.min(k.pivots / diagonal, initial=1.0) * jnp.min(rows, initial=1.0)


def determinate(system: System) -> Array:
    """Whether every motion has inertia or a constraint."""
    k = factor_kkt(system.mass, system.jacobian)
    if system.jacobian.shape[0] == 0:
        return k.regular
    return k.regular | rarely(
        ~k.regular, lambda *x: _augmented(*x)[0].regular, k.regular, k, system.jacobian
    )


def indeterminate(system: System) -> np.ndarray:
    """(nv,), which motions have neither inertia nor constraint; on the host only.

    They are those of the null space of M and J together.
    """
    mass, rows = np.asarray(system.mass), np.asarray(system.jacobian)
    size = np.sqrt(np.where(np.diag(mass) > 0.0, np.diag(mass), 1.0))
    _, values, motions = np.linalg.svd(np.concatenate([mass / np.outer(size, size), rows / size]))
    found = np.zeros(len(size), bool)
    for motion in motions[values <= tolerances.rank(mass.dtype) * values[0]]:
        found |= np.abs(motion) > 1e-6
    return found


def solve_kkt(
    system: System, force: Array, rhs: Array, *, test: bool = True, metric: bool = False
) -> tuple[Array, Array]:
    """Solve ``M x = force + Jᵀ λ``, ``J x = rhs`` for x (nv, m) and λ (nc, m), with m right sides.

    With redundant rows λ is one of the solutions (see `least_norm`); x is NaN if a motion has
    neither inertia nor constraint. The derivative is that of the equations, ``K ẋ = ḃ − K̇ x``,
    with the factors of K: written ``[M Jᵀ; J 0] [x; −λ] = [f; c]`` K is symmetric, and so is the
    solution operator.

    Args:
        system: the matrices.
        force: (nv, m).
        rhs: (nc, m), of the unscaled rows.
        test: whether tangents are NaN where redundant rows become inconsistent
            (`jaxmbd.numerics.consistency`); False if the caller tests them.
        metric: whether M is only a metric, in which motions without inertia may have any.
    """
    mass, jacobian = system.mass, system.jacobian
    nc, nv = jacobian.shape
    constant = jax.lax.stop_gradient((mass, jacobian))
    k = factor_kkt(*constant)
    rhs = system.scale[:, None] * rhs

    def product(z: Array) -> Array:
        x, push = z[:nv], z[nv:]
        return jnp.concatenate([mass @ x + jacobian.T @ push, jacobian @ x])

    def solve(_: Any, b: Array) -> Array:
        if metric:
            return _substitute(k, b[:nv], b[nv:])
        return _solution(k, constant[1], b[:nv], b[nv:])

    b = jnp.concatenate([force, rhs])
    z = jax.lax.custom_linear_solve(product, b, solve, symmetric=True)
    if test and nc:
        x, still = z[:nv], jax.lax.stop_gradient(z[:nv])
        largest = jax.lax.stop_gradient(jnp.max(jnp.abs(jacobian)))
        terms = [rhs, jacobian @ still, largest * x]
        z = solution(z.reshape(-1), jacobian @ x - rhs, terms).reshape(z.shape)
    return z[:nv], -system.scale[:, None] * z[nv:]


def rows_met(system: System, x: Array, rhs: Array, size: Array) -> Array:
    """Whether ``J x = rhs`` to 5e-7 of `size`, the size of the rows' terms, in skipped rows too."""
    miss = system.jacobian @ x - system.scale * rhs
    return jnp.all(jnp.abs(miss) <= tolerances.carrying(x.dtype) * size)


def least_norm(system: System, multipliers: Array) -> Array:
    """λ (nc,) of least norm (moments divided by the mechanism's length) with the same ``Jᵀ λ``."""
    if multipliers.shape[0] < 2:
        return multipliers
    lower, _, kept = factor_kkt(system.mass, system.jacobian).schur
    return system.scale * minimum_norm(lower, kept, multipliers / system.scale)
