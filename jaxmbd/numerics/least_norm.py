"""Least-norm solutions of equations that may be redundant: ``x = W Aᵀ (A W Aᵀ + μ 1)⁻¹ b``."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.lanes import rarely
from jaxmbd.numerics.block_factors import BlockRankRevealed, block_ldlt
from jaxmbd.numerics.block_rows import BlockRows, Rows, squared_rows
from jaxmbd.numerics.rank_revealing import Doubt, RankRevealed, ldlt_rank_revealing
from jaxmbd.numerics.small_arrays import inner, trace
from jaxmbd.numerics.tolerances import redundancy


class FactoredRows(NamedTuple):
    """Rows ``A`` with the factors of their Gram matrix ``A W Aᵀ``.

    Attributes:
        rows: `A` (n, nv), an array or its blocks.
        weight: the diagonal of `W` (nv,), or None for the identity.
        gram: the factors; None if there are no rows.
    """

    rows: Rows
    weight: Array | None
    gram: RankRevealed | BlockRankRevealed | None

    @property
    def rank(self) -> Array:
        """The number of rows that are not redundant, in the rows' floating-point type."""
        if self.gram is None:
            return jnp.zeros((), self._dtype)
        return jnp.sum(self.gram.kept.astype(self._dtype))

    @property
    def _dtype(self) -> Any:
        return jax.tree_util.tree_leaves(self.rows)[0].dtype

    def solve(self, b: Array) -> Array:
        """Least-norm x (nv,) or (nv, m) with ``A x = b`` in the kept rows; b is (n,) or (n, m)."""
        if self.gram is None:
            return jnp.zeros((self.rows.shape[1], *b.shape[1:]), self._dtype)
        y = self.gram.solve(b.reshape(b.shape[0], -1))
        x = (self.rows.T @ y).reshape(self.rows.shape[1], *b.shape[1:])
        return x if self.weight is None else (x.T * self.weight).T

    def consistent(self, b: Array) -> Array:
        """The part (n,) of b that ``A x`` can be; what redundant rows contradict is left out.

        It is b's projection onto the range of A, so that x is the solution of least squares. Not
        for reverse mode (`lanes.rarely`).
        """
        if self.gram is None or b.shape[0] < 2:
            return b
        return rarely(~jnp.all(self.gram.kept), _without_null, b, self.gram, b)


def _without_null(gram: RankRevealed | BlockRankRevealed, b: Array) -> Array:
    return gram.minimum_norm(b)


def factor_rows(
    rows: Rows,
    weight: Array | None = None,
    damping: Any = None,
    doubt: Doubt = Doubt(),  # noqa: B008
) -> FactoredRows:
    """Factor ``A W Aᵀ + μ 1``.

    Args:
        rows: `A` (n, nv), an array or its blocks.
        weight: the diagonal of `W` (nv,); by default the identity.
        damping: μ relative to the mean diagonal element of ``A W Aᵀ``; by default none; of arrays.
        doubt: what is known of the rows.
    """
    if rows.shape[0] == 0:
        return FactoredRows(rows, weight, None)
    if isinstance(rows, BlockRows):
        return FactoredRows(rows, weight, _factored_blocks(rows, weight, doubt))
    gram = inner(rows if weight is None else rows * weight, rows)
    if damping is not None:
        size = trace(gram) / gram.shape[0]
        gram = gram + damping * size * np.eye(gram.shape[0], dtype=gram.dtype)
    return FactoredRows(rows, weight, ldlt_rank_revealing(gram, doubt=doubt))


def _factored_blocks(rows: BlockRows, weight: Array | None, doubt: Doubt) -> BlockRankRevealed:
    dtype = rows.blocks[0].dtype
    inverse = jnp.ones(rows.shape[1], dtype) if weight is None else 1.0 / weight
    squares = squared_rows(rows, inverse)
    a, pattern = rows.gram(inverse), rows.sparsity.gram
    return block_ldlt(a, pattern, squares=squares, tolerance=redundancy(dtype), doubt=doubt)
