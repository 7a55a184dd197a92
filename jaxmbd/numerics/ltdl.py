"""``H = Lᵀ D L`` along a tree: factorisation of a mass matrix without fill-in."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from jaxmbd.numerics.triangular import unit_lower_solve


def ltdl(
    h: Float[Array, "n n"], floor: Float[Array, " n"] | None = None
) -> tuple[Float[Array, "n n"], Float[Array, " n"], Bool[Array, " n"]]:
    """``H = Lᵀ D L`` with unit lower `L`, from the last row upward (Featherstone 2008, 6.5).

    For a mass matrix whose coordinates are numbered from root to leaf, `L` has a nonzero only
    where one coordinate supports another: there is no fill-in between branches.

    Args:
        h: symmetric, positive semidefinite.
        floor: lower bound that each pivot must exceed; by default zero.

    Returns:
        `L` (n, n), the pivots `D` (n,), and whether each exceeds its floor; one that does not is
        replaced by 1.
    """
    n = h.shape[0]
    rows, pivots, sound = [], [], []
    for k in range(n - 1, -1, -1):
        above = h[k, k] > (0.0 if floor is None else floor[k])
        d = jnp.where(above, h[k, k], 1.0)
        row = h[k, :k]
        factor = row / d
        h = h[:k, :k] - factor[:, None] * row[None, :]
        rows.append(jnp.concatenate([factor, jnp.ones(1, h.dtype), jnp.zeros(n - k - 1, h.dtype)]))
        pivots.append(d)
        sound.append(above)
    return jnp.stack(rows[::-1]), jnp.stack(pivots[::-1]), jnp.stack(sound[::-1])


def ltdl_backward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve ``Lᵀ y = b`` for the factor of `ltdl`."""
    out = []
    for k in range(lower.shape[0] - 1, -1, -1):
        out.append(b[k])
        b = b[:k] - lower[k, :k, None] * b[k]
    return jnp.stack(out[::-1])


def ltdl_forward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve ``L x = b`` for the factor of `ltdl`."""
    return unit_lower_solve(lower, b)


def ltdl_solve(a: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solve ``A x = b`` for a small positive definite matrix."""
    lower, pivots, _ = ltdl(a)
    y = ltdl_backward(lower, b[:, None]) / pivots[:, None]
    return ltdl_forward(lower, y)[:, 0]
