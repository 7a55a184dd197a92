"""The KKT system of a closed-loop mechanism, factored once and solved as often as needed.

``[M −Jᵀ; J 0] [x; λ] = [f; c]``. Constraints may be redundant; the multipliers of least norm are
computed separately (`least_norm`). M may be singular (`jaxmbd.dynamics.kkt_factors`), but a motion
with neither inertia nor constraint is indeterminate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.dynamics.kkt_factors import Factors, factor_kkt, firmness, solve_factored
from jaxmbd.dynamics.mass_operator import (
    MassOperator,
    mass_array,
    mass_diagonal,
    mass_operator,
    mass_size,
)
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.kinematics.own_rows import OwnRows, own_rows, row_doubt, stored_jacobian
from jaxmbd.kinematics.scales import speed_units
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.block_rows import Rows, dense, largest, squared_rows
from jaxmbd.numerics.consistency import believed, solution
from jaxmbd.numerics.rank_revealing import Doubt, RankRevealed


class System(NamedTuple):
    """The matrices of a KKT system, with all multipliers in newtons.

    Attributes:
        mass: M (nv, nv), an array or an operator.
        jacobian: J (nc, nv) of own rows, an array or its blocks.
        own: the scale and directions of own rows.
        doubt: how far the state is off the constraints, where rows may be redundant.
        units: of the speeds (nv,), if they are not all angles or all travels.
    """

    mass: MassOperator
    jacobian: Rows
    own: OwnRows
    doubt: Doubt = Doubt()
    units: Array | None = None


def kkt_system(m: MotionState, *, recursive: bool | None = None) -> System:
    """The KKT matrices at a configuration; `recursive` chooses M (`mass_operator`)."""
    mass, own = mass_operator(m, recursive=recursive), own_rows(m)
    return System(mass, stored_jacobian(m, own), own, row_doubt(m), _units(m))


def _units(m: MotionState) -> Array | None:
    return speed_units(m.mech) if len(set(m.top.speed_kinds)) > 1 else None


def _factors(system: System) -> Factors:
    size = mass_size(system.mass)
    return factor_kkt(system.mass, system.jacobian, size, system.doubt, system.units)


def conditioning(system: System) -> Array:
    """The least ratio of pivot to diagonal element of M times that of A, from 0 (singular) to 1.

    The relative error of accelerations is about ε divided by it. Motions without inertia count by
    how firmly the constraints determine them; it is 0 if one is indeterminate, or if a pivot is
    negative, which only a negative mass or inertia makes it.
    """
    k = _factors(system)
    own = jnp.where(k.sound, k.pivots, 1.0)
    diagonal = jnp.where(k.sound, mass_diagonal(system.mass), 1.0)
    gram = squared_rows(k.half.T, k.pivots)
    rows = jnp.where(k.schur.kept, k.schur.pivots / gram, 1.0)
    share = jnp.min(own / diagonal, initial=1.0) * jnp.min(rows, initial=1.0)
    return jnp.where(jnp.any(k.pivots < 0.0), 0.0, share * firmness(k))


def determinate(system: System) -> Array:
    """Whether every motion has inertia or a constraint."""
    return firmness(_factors(system)) > 0.0


def indeterminate(system: System) -> np.ndarray:
    """(nv,), which motions have neither inertia nor constraint; on the host only.

    They are those of the null space of M and J together.
    """
    mass, rows = np.asarray(mass_array(system.mass)), np.asarray(dense(system.jacobian))
    size = np.sqrt(np.where(np.diag(mass) > 0.0, np.diag(mass), 1.0))
    _, values, motions = np.linalg.svd(np.concatenate([mass / np.outer(size, size), rows / size]))
    found = np.zeros(len(size), bool)
    for motion in motions[values <= tolerances.rank(mass.dtype) * values[0]]:
        found |= np.abs(motion) > 1e-6
    return found


def solve_kkt(
    system: System,
    force: Array,
    rhs: Array,
    *,
    test: bool = True,
    metric: bool = False,
    idle: bool = False,
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
        idle: whether motions with neither inertia nor constraint may have any, instead of NaN.
    """
    mass, jacobian = system.mass, system.jacobian
    nc, nv = jacobian.shape
    constant = lax.stop_gradient((mass, jacobian))
    size = None if metric else mass_size(constant[0])
    k = factor_kkt(*constant, size, system.doubt, lax.stop_gradient(system.units))
    rhs = system.own.of(rhs)

    def product(z: Array) -> Array:
        x, push = z[:nv], z[nv:]
        return jnp.concatenate([mass @ x + jacobian.T @ push, jacobian @ x])

    def solve(_: Any, b: Array) -> Array:
        return solve_factored(k, b[:nv], b[nv:], metric=metric, idle=idle)

    b = jnp.concatenate([force, rhs])
    z = lax.custom_linear_solve(product, b, solve, symmetric=True)
    if test and nc:
        x, still = z[:nv], lax.stop_gradient(z[:nv])
        size = lax.stop_gradient(largest(jacobian))
        terms = [rhs, jacobian @ still, size * x]
        # Where the rows leave no freedom x is the rounding error of forces that cancel.
        mass = jnp.max(mass_diagonal(constant[0]), initial=0.0)
        cancels = size * (constant[1].T @ z[nv:]) / jnp.where(mass > 0.0, mass, 1.0)
        miss = believed(jacobian @ x - rhs, system.doubt.error)
        z = solution(z.reshape(-1), miss, terms, [cancels]).reshape(z.shape)
    return z[:nv], -system.own.multipliers(z[nv:])


def rows_met(system: System, x: Array, rhs: Array, size: Array) -> Array:
    """Whether ``J x = rhs`` to 5e-7 of `size`, the size of the rows' terms, in skipped rows too."""
    miss = system.jacobian @ x - system.own.of(rhs)
    return jnp.all(jnp.abs(miss) <= tolerances.carrying(x.dtype) * size)


def least_norm(
    system: System, multipliers: Array, groups: Sequence[Sequence[int]] | None = None
) -> Array:
    """λ (nc,) of least norm (moments divided by the mechanism's length) with the same ``Jᵀ λ``.

    Args:
        system: the matrices.
        multipliers: λ of the same rows, zero in those that are skipped as redundant.
        groups: `Topology.row_groups`; by default all rows are one group.
    """
    n = multipliers.shape[0]
    if n < 2 or (groups is not None and len(groups) == n):
        return multipliers
    schur, own = _factors(system).schur, system.own.own_multipliers(multipliers)
    if isinstance(schur, RankRevealed):
        return system.own.multipliers(schur.minimum_norm(own, groups))
    return system.own.multipliers(schur.minimum_norm(own))
