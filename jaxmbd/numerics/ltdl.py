"""``H = Lᵀ D L`` along a tree: factorisation of a mass matrix without fill-in."""

from __future__ import annotations

import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float

from jaxmbd.numerics.small_arrays import outer, same_type, spread, where
from jaxmbd.numerics.traced_once import traced_once
from jaxmbd.numerics.triangular import unit_lower_solve


@traced_once
def ltdl(
    h: Float[Array, "n n"], floor: Float[Array, " n"] | None = None
) -> tuple[Float[Array, "n n"], Float[Array, " n"], Bool[Array, " n"]]:
    """``H = Lᵀ D L`` with unit lower `L`, from the last row upward (Featherstone 2008, 6.5).

    For a mass matrix whose coordinates are numbered from root to leaf, `L` has a nonzero only
    where one coordinate supports another: there is no fill-in between branches.

    Args:
        h: symmetric, positive semidefinite.
        floor: lower bound that the size of each pivot must exceed; by default zero.

    Returns:
        `L` (n, n), the pivots `D` (n,), and whether each exceeds its floor; one that does not is
        replaced by 1. A negative pivot (a body of negative mass) is no rounding error.
    """
    n = h.shape[0]
    unit = np.eye(n, dtype=h.dtype)
    rows, pivots, sound = [], [], []
    for k in range(n - 1, -1, -1):
        row, pivot = h[k, :k], h[k, k:]
        least = spread(0.0, (1,), h.dtype) if floor is None else floor[k : k + 1]
        above = lax.gt(lax.abs(pivot), least)
        d = where(above, pivot, 1.0)
        factor = lax.div(row, spread(d, row.shape, h.dtype))
        h = lax.sub(h[:k, :k], outer(factor, row))
        rows.append(lax.concatenate([factor, unit[k, k:]], 0))
        pivots.append(d)
        sound.append(above)
    lower = lax.reshape(lax.concatenate(rows[::-1], 0), (n, n))
    return lower, lax.concatenate(pivots[::-1], 0), lax.concatenate(sound[::-1], 0)


@traced_once
def ltdl_backward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve ``Lᵀ y = b`` for the factor of `ltdl`."""
    lower, b = same_type(lower, b)
    out = []
    for k in range(lower.shape[0] - 1, -1, -1):
        row = b[k:]
        out.append(row)
        b = lax.sub(b[:k], outer(lower[k, :k], row[0]))
    return lax.concatenate(out[::-1], 0)


@traced_once
def ltdl_forward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve ``L x = b`` for the factor of `ltdl`."""
    return unit_lower_solve(lower, b)


@traced_once
def ltdl_solve(a: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solve ``A x = b`` for a small positive definite matrix."""
    lower, pivots, _ = ltdl(a)
    y = ltdl_backward(lower, b[:, None]) / pivots[:, None]
    return ltdl_forward(lower, y)[:, 0]
