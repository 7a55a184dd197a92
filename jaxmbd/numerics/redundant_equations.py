"""Equations that may be redundant: their least-norm solutions, and the derivatives of solutions.

The solution is ``x = W Aᵀ (A W Aᵀ + μ 1)⁻¹ b``. Where ``r(x, p) = 0`` determines x, its tangent ẋ
solves ``A ẋ = −r_p ṗ`` with A = ∂r/∂x. Rows of A that add no rank are skipped, and the solution of
the others is the tangent only if it satisfies the skipped rows too: there is no derivative in a
direction ṗ that makes the redundant equations inconsistent (such as moving one pin of a planar
linkage out of the plane). So all rows are tested, and the tangent is NaN if one is not satisfied.

This holds for forward mode. Reverse mode acts on cotangents, which specify no direction, so nothing
can be tested: its gradient is exact along every direction in which the derivative exists, and its
product with any other direction is meaningless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.lanes import flagged, rarely
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.blocks import AnyRows, BlockRankRevealed, BlockRows, block_ldlt, squared_rows
from jaxmbd.numerics.factorisations import (
    Doubt,
    RankRevealed,
    ldlt_rank_revealing,
    minimum_norm_by_rows,
)
from jaxmbd.numerics.small_arrays import generic
from jaxmbd.numerics.tolerances import redundancy

P = TypeVar("P")
_UNROLLED = 2
"""Up to this many columns are unrolled, which exploits the zeros of the unit directions."""
_ITERATIONS = 30
_FEW = 12
"""Up to this many rows, loops over them save no code."""


class FactoredRows(NamedTuple):
    """Rows ``A`` with the factors of their Gram matrix ``A W Aᵀ``.

    Factors of an array have no derivatives; solutions have those of the undamped equations.

    Attributes:
        rows: `A` (n, nv), an array or its blocks.
        weight: the diagonal of `W` (nv,), or None for the identity.
        gram: the factors; None if there are no rows.
    """

    rows: AnyRows
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
        y = self._multipliers(b.reshape(b.shape[0], -1))
        return self._weighted(self.rows.T @ y).reshape(self.rows.shape[1], *b.shape[1:])

    def balancing(self, f: Array) -> Array:
        """Multipliers y (n,) of kept rows with ``Aᵀ y = f`` (nv,), by weighted least squares."""
        if self.gram is None:
            return jnp.zeros(0, self._dtype)
        return self._multipliers((self.rows @ self._weighted(f))[:, None])[:, 0]

    def _multipliers(self, b: Array) -> Array:
        """``(A W Aᵀ)⁻¹ b`` (n, m), whose derivatives are solutions too."""
        gram: Any = self.gram
        if isinstance(self.rows, BlockRows):
            return gram.solve(b)

        def times(y: Array) -> Array:
            return self.rows @ self._weighted(self.rows.T @ y)

        solved = lax.custom_linear_solve(times, b, lambda _, b: gram.solve(b), symmetric=True)
        return jnp.asarray(solved)

    def _weighted(self, x: Array) -> Array:
        return x if self.weight is None else (x.T * self.weight).T

    def consistent(self, b: Array) -> Array:
        """The part (n,) of b that ``A x`` can be; what redundant rows contradict is left out.

        It is b's projection onto the range of A, so that x is the solution of least squares. Not
        for reverse mode (`lanes.rarely`).
        """
        if self.gram is None or b.shape[0] < 2:
            return b
        return rarely(~jnp.all(self.gram.kept), _without_null, b, self.gram, b)


class SplitRows:
    """Rows of which some have one element each: these are solved first, the others without them.

    Solutions are those of `FactoredRows`, as long as the rows do not contradict each other.

    Attributes:
        rows: `A` (n, nv).
        free: the other rows in the other columns.
    """

    def __init__(self, rows: Array, weight: Array, single: Sequence[tuple[int, int]]):
        """Factor rows; `single` has row and column of each of those with one element."""
        self.rows = rows
        self._first, self._known = np.array(single, int).reshape(-1, 2).T
        self._rest = np.delete(np.arange(rows.shape[0]), self._first)
        self._open = np.delete(np.arange(rows.shape[1]), self._known)
        self.free = factor_rows(rows[self._rest][:, self._open], weight[self._open])
        self._sizes = rows[self._first, self._known]
        self._beside = rows[self._rest][:, self._known]

    def solve(self, b: Array) -> Array:
        """Least-norm x (nv,) with ``A x = b``."""
        known = b[self._first] / self._sizes
        rest = self.free.solve(b[self._rest] - self._beside @ known)
        return _joined(known, rest, self._known, self._open)

    def balancing(self, f: Array) -> Array:
        """Multipliers y (n,) with ``Aᵀ y = f``; zero in rows that are redundant."""
        rest = self.free.balancing(f[self._open])
        first = (f[self._known] - self._beside.T @ rest) / self._sizes
        return _joined(first, rest, self._first, self._rest)


def _joined(a: Array, b: Array, at_a: np.ndarray, at_b: np.ndarray) -> Array:
    """A vector with a and b in their places."""
    return jnp.concatenate([a, b])[np.argsort(np.concatenate([at_a, at_b]))]


def _without_null(gram: RankRevealed | BlockRankRevealed, b: Array) -> Array:
    if isinstance(gram, RankRevealed) and b.shape[0] > _FEW:
        return minimum_norm_by_rows(gram.lower, gram.kept, b)
    return gram.minimum_norm(b)


def factor_rows(
    rows: AnyRows,
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
    fixed, by = lax.stop_gradient((rows, weight))
    gram = (fixed if by is None else fixed * by) @ fixed.T
    if damping is not None:
        size = jnp.trace(gram) / gram.shape[0]
        gram = gram + damping * size * np.eye(gram.shape[0], dtype=gram.dtype)
    return FactoredRows(rows, weight, ldlt_rank_revealing(gram, doubt=doubt))


def _factored_blocks(rows: BlockRows, weight: Array | None, doubt: Doubt) -> BlockRankRevealed:
    dtype = rows.blocks[0].dtype
    inverse = jnp.ones(rows.shape[1], dtype) if weight is None else 1.0 / weight
    squares = squared_rows(rows, inverse)
    a, pattern = rows.gram(inverse), rows.sparsity.gram
    return block_ldlt(a, pattern, squares=squares, tolerance=redundancy(dtype), doubt=doubt)


def column_span(rows: Array) -> tuple[Array, Array]:
    """The projection onto the span of the columns of `rows` (n, n), by Gram-Schmidt; its rank."""
    n, count = rows.shape
    least = tolerances.consistency(rows.dtype)
    longest = jnp.sqrt(jnp.max(jnp.sum(rows * rows, axis=0)))
    span, rank = jnp.zeros((n, n), rows.dtype), jnp.zeros((), rows.dtype)
    for k in range(count):
        new = rows[:, k] - span @ rows[:, k]
        new = new - span @ new
        size = jnp.sqrt(new @ new)
        kept = size > least * longest
        new = jnp.where(kept, new / jnp.where(kept, size, 1.0), 0.0)
        span, rank = span + jnp.outer(new, new), rank + kept
    return span, rank


def soft_directions(rows: Array, through: Array, count: int) -> Array:
    """Left singular vectors (count, n) of the smallest singular values, by inverse iteration.

    They are looked for in the span of the projection `through` (n, n).
    """
    n = rows.shape[0]
    eye = jnp.eye(n, dtype=rows.dtype)
    gram = rows @ rows.T
    size = jnp.trace(gram) / n
    shift = tolerances.rounding(rows.dtype, 1e4) * size * eye
    factors = ldlt_rank_revealing(gram + 1e3 * size * (eye - through) + shift, tolerance=0.0)

    def improved(_: Any, u: Array) -> Array:
        u = factors.solve(u.T).T
        modes = u[:0]
        for x in u:
            for _ in range(2):
                x = x - modes.T @ (modes @ x)
            size = jnp.sqrt(x @ x)
            modes = jnp.concatenate([modes, (x / jnp.where(size > 0.0, size, 1.0))[None]])
        return modes

    start = generic(count * n, rows.dtype).reshape(count, n) @ through
    return lax.fori_loop(0, _ITERATIONS, improved, start)


def jacobian(fn: Callable[[Array], Any], x: Array) -> Any:
    """``∂fn/∂x`` of each array in ``fn(x)``, with the components of x along the last axis.

    `jax.jacfwd` maps the tangent over n directions, which a compiler to scalars unrolls n times;
    here the tangent map is the body of a loop, so the program size is independent of n.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.numerics.redundant_equations import jacobian
        >>> jacobian(lambda x: x[:2] * x[2], jnp.array([1.0, 2.0, 3.0])).tolist()
        [[3.0, 0.0, 1.0], [0.0, 3.0, 2.0]]
    """
    if x.shape[0] <= _UNROLLED:
        return jax.jacfwd(fn)(x)

    def column(direction: Array) -> Any:
        return jax.jvp(fn, (x,), (direction,))[1]

    columns = lax.map(column, jnp.eye(x.shape[0], dtype=x.dtype))
    return jax.tree_util.tree_map(lambda c: jnp.moveaxis(c, 0, -1), columns)


def tested(x: Array, miss: Array, terms: Sequence[Any], given: Any = ()) -> Array:
    """The tangent x (n,), or NaN if a row's residual exceeds `tolerances.consistency` of its terms.

    For the rule of a `jax.custom_jvp`: all arguments are linear in the tangents.

    Args:
        x: tangent of the solution.
        miss: residual of each row.
        terms: terms of the rows, in the rows' unit, which set the scale of the residuals.
        given: tangents that the rows depend on; their rounding error adds to the tolerance.
    """
    tolerance = tolerances.consistency(x.dtype)
    least = tolerances.rounding(x.dtype, 1e4) / tolerance
    leaves = jax.tree_util.tree_leaves(given)
    floats = [y for y in leaves if getattr(y, "dtype", None) == x.dtype]
    parts = [*(jnp.ravel(y) for y in terms), *(least * jnp.ravel(y) for y in floats)]
    return flagged(x, jnp.ravel(miss), jnp.concatenate([jnp.zeros(1, x.dtype), *parts]), tolerance)


def finite_where(ok: Array, numbers: P, tangents: Any) -> tuple[P, Any]:
    """The numbers that an equation depends on, and their tangents, harmless unless `ok`.

    The numbers are then finite and the tangents, and cotangents, zero: a failed sample cannot spoil
    the gradient of numbers that a batch shares.
    """

    def finite(x: Any) -> Array:
        fine = ok | jnp.isfinite(lax.stop_gradient(x))
        return jnp.asarray(jnp.where(fine, x, jnp.ones_like(x)))

    def known(x: Any) -> Array:
        return jnp.asarray(jnp.where(ok, x, jnp.zeros_like(x)))

    tree_map = jax.tree_util.tree_map
    return tree_map(finite, numbers), tree_map(known, tangents)


def believed(miss: Array, error: Array | None) -> Array:
    """Residuals of rows that are known to the relative `error` only, less where that is larger.

    Of redundant rows with an error the tangents contradict each other by as much.
    """
    if error is None:
        return miss
    tolerance = tolerances.consistency(miss.dtype)
    return miss * (tolerance / jnp.maximum(error, tolerance))


def nan_where(bad: Array, rates: Array) -> Array:
    """``rates``, NaN where `bad`; its transpose makes cotangents NaN there that are not zero."""

    def forward(_: Callable[[Array], Array], rates: Array) -> Array:
        return jnp.where(bad, jnp.nan, rates)

    def backward(_: Callable[[Array], Array], cotangents: Array) -> Array:
        return jnp.where(bad & (cotangents != 0.0), jnp.nan, cotangents)

    return jax.lax.custom_linear_solve(lambda x: x, rates, forward, backward)


@jax.custom_jvp
def solution(x: Array, miss: Array, terms: Sequence[Any], given: Any = ()) -> Array:
    """The identity of x; its tangent is `tested` with the tangents of the other arguments."""
    del miss, terms, given
    return x


@solution.defjvp
def _solution_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return primals[0], tested(*tangents)
