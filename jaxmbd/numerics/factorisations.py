"""Small dense factorisations, unrolled on static shapes.

- Substitution with unit triangular factors, and ``A = L U`` without pivoting, for matrices whose
  leading minors are well away from zero;
- ``P A = L U`` of any regular matrix, by selects;
- ``H = Lᵀ D L`` along a tree: a mass matrix without fill-in;
- ``A = L D Lᵀ`` of a semidefinite matrix, and its basic and least-norm solutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float

from jaxmbd.lanes import traced_once
from jaxmbd.numerics.tolerances import faintness, redundancy, rounding

# In unrolled loops every step has arrays of its own size, for which functions of `jax.numpy` are
# traced anew. These use primitives, which halves the time that tracing a factorisation takes.


def _less_outer(a: Array, column: Array, row: Array) -> Array:
    """``a − column rowᵀ``."""
    left, right = (lax.broadcast_in_dim(x, a.shape, (k,)) for k, x in enumerate((column, row)))
    return lax.sub(a, lax.mul(left, right))


def _over(x: Array, divisor: Array) -> Array:
    """An array (n,) divided by a number (1,)."""
    return lax.div(x, lax.broadcast_in_dim(divisor, x.shape, (0,)))


def _where(mask: Array, x: Array, otherwise: float) -> Array:
    """An array (n,) where the mask (n,) holds, else a constant."""
    return lax.select(mask, x, lax.full_like(x, otherwise))


def _product(a: Array, b: Array) -> Array:
    """``aᵀ b`` of a (n, k) and b (n,) or (n, m)."""
    return lax.dot_general(a, b, (((0,), (0,)), ((), ())))


@traced_once
def unit_lower_solve(lower: Array, b: Array) -> Array:
    """Solve ``L x = b`` for unit lower triangular L."""
    x = b[:1]
    for k in range(1, lower.shape[0]):
        x = jnp.concatenate([x, b[k : k + 1] - lax.dot(lower[k : k + 1, :k], x)])
    return x


@traced_once
def unit_lower_transpose_solve(lower: Array, b: Array) -> Array:
    """Solve ``Lᵀ x = b`` for unit lower triangular L."""
    n = lower.shape[0]
    x = b[n - 1 :]
    for k in range(n - 2, -1, -1):
        x = jnp.concatenate([b[k : k + 1] - _product(lower[k + 1 :, k : k + 1], x), x])
    return x


def symmetric(a: Array) -> Array:
    """The symmetric matrix with the upper triangle of `a`; its lower triangle is not used."""
    return jnp.where(np.triu(np.ones(a.shape, bool)), a, a.T)


@traced_once
def unpivoted_lu(a: Array) -> tuple[Array, Array]:
    """``A = L U`` with unit lower triangular L; a zero pivot is replaced by 1."""
    n = a.shape[0]
    if n == 0:
        return a, a
    rows, columns = [], []
    for k in range(n):
        pivot = jnp.where(a[0, 0] == 0.0, 1.0, a[0, 0])
        row, column = a[0, 1:], a[1:, 0] / pivot
        done = jnp.zeros(k, a.dtype)
        rows.append(jnp.concatenate([done, pivot[None], row]))
        columns.append(jnp.concatenate([done, jnp.ones(1, a.dtype), column]))
        a = _less_outer(a[1:, 1:], column, row)
    return jnp.stack(columns, axis=1), jnp.stack(rows)


@traced_once
def lu_solve(lower: Array, upper: Array, b: Array) -> Array:
    """Solve ``L U x = b`` (n,)."""
    if lower.shape[0] == 0:
        return b
    y: list[Array] = []
    for k in range(lower.shape[0]):
        y.append(b[k] - (lower[k, :k] @ jnp.stack(y) if k else 0.0))
    x: list[Array] = []
    for k in range(lower.shape[0] - 1, -1, -1):
        rest = upper[k, k + 1 :] @ jnp.stack(x[::-1]) if x else 0.0
        x.append((y[k] - rest) / upper[k, k])
    return jnp.stack(x[::-1])


class PivotedLU(NamedTuple):
    """``A = L U`` with rows exchanged, so that multipliers are at most one in size.

    Attributes:
        upper: U (n, n); its lower triangle is not used.
        multipliers: by column k, of the rows below (n − 1 − k,).
        exchanged: by column k, whether the row below was exchanged for the pivot row, one after
            the other (n − 1 − k,).
    """

    upper: Array
    multipliers: tuple[Array, ...]
    exchanged: tuple[Array, ...]

    def solve(self, b: Array) -> Array:
        """X (n,) with ``A x = b``."""
        return _pivoted_solve(self, b)


@traced_once
def pivoted_lu(a: Float[Array, "n n"]) -> PivotedLU:
    """``A = L U`` with partial pivoting.

    In each column the pivot row is compared with each row below in turn and exchanged for it by
    selects if that has the larger element: that needs no indices known only when it runs. A zero
    pivot is left, and gives what is not finite.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.numerics import pivoted_lu
        >>> pivoted_lu(jnp.array([[0.0, 2.0], [4.0, 0.0]])).solve(jnp.array([2.0, 4.0])).tolist()
        [1.0, 1.0]
    """
    n, upper, multipliers, exchanged = a.shape[0], [], [], []
    for k in range(n):
        top, *rows = lax.split(a, [1] * (n - k))
        largest, *sizes = lax.split(lax.abs(a[:, 0]), [1] * (n - k))
        below, flags = [], []
        for row, size in zip(rows, sizes, strict=True):
            flag = lax.gt(size, largest)
            largest = lax.select(flag, size, largest)
            exchange = lax.broadcast_in_dim(flag, row.shape, (0,))
            below.append(lax.select(exchange, top, row))
            top = lax.select(exchange, row, top)
            flags.append(flag)
        top = lax.squeeze(top, (0,))
        upper.append(lax.concatenate([jnp.zeros(k, a.dtype), top], 0))
        if not below:
            break
        rest = lax.concatenate(below, 0)
        column = _over(rest[:, 0], top[:1])
        a = _less_outer(rest[:, 1:], column, top[1:])
        multipliers.append(column)
        exchanged.append(lax.concatenate(flags, 0))
    return PivotedLU(jnp.stack(upper) if upper else a, tuple(multipliers), tuple(exchanged))


@traced_once
def _pivoted_solve(lu: PivotedLU, b: Array) -> Array:
    n, y = b.shape[0], []
    for column, flags in zip(lu.multipliers, lu.exchanged, strict=True):
        (top, *rows), below = lax.split(b, [1] * b.shape[0]), []
        for flag, x in zip(lax.split(flags, [1] * len(rows)), rows, strict=True):
            below.append(lax.select(flag, top, x))
            top = lax.select(flag, x, top)
        b = lax.sub(lax.concatenate(below, 0), lax.mul(column, lax.broadcast(top[0], column.shape)))
        y.append(top)
    x = b / lu.upper[n - 1, n - 1 :] if n else b
    for k in reversed(range(n - 1)):
        known = lax.dot(lu.upper[k : k + 1, k + 1 :], x)
        x = lax.concatenate([(y[k] - known) / lu.upper[k, k : k + 1], x], 0)
    return x


@traced_once
def ltdl(
    h: Float[Array, "n n"], floor: Float[Array, " n"] | None = None
) -> tuple[Float[Array, "n n"], Float[Array, " n"], Bool[Array, " n"]]:
    """``H = Lᵀ D L`` with unit lower `L`, from the last row upward (Featherstone 2008, 6.5).

    For a mass matrix whose coordinates are numbered from root to leaf, `L` has a nonzero only
    where one coordinate supports another: there is no fill-in between branches.

    A pivot is ``h_kk − Σ l² d``, with an error of about that of ``h_kk`` plus ``l²`` times those of
    the pivots d, which are large in comparison where little was left of a diagonal element. Those
    are taken as of their own diagonal elements: passed on from pivot to pivot the bound would grow
    with each body of a chain, where the errors do not.

    Args:
        h: symmetric, positive semidefinite.
        floor: rounding errors (n,) of its diagonal; a pivot must exceed its own. By default zero.

    Returns:
        `L` (n, n), the pivots `D` (n,), and whether each exceeds its error; one that does not is
        replaced by 1. A negative pivot (a body of negative mass) is no rounding error.
    """
    n = h.shape[0]
    unit = np.eye(n, dtype=h.dtype)
    rows, pivots, sound = [], [], []
    amplified = floor
    for k in range(n - 1, -1, -1):
        row, pivot = h[k, :k], h[k, k:]
        above = jnp.abs(pivot) > (0.0 if amplified is None else amplified[k : k + 1])
        d = _where(above, pivot, 1.0)
        factor = _over(row, d)
        h = _less_outer(h[:k, :k], factor, row)
        if floor is not None and amplified is not None:
            passed_on = lax.mul(lax.mul(factor, factor), lax.broadcast(floor[k], (k,)))
            amplified = lax.add(amplified[:k], passed_on)
        rows.append(jnp.concatenate([factor, unit[k, k:]]))
        pivots.append(d)
        sound.append(above)
    return jnp.stack(rows[::-1]), jnp.concatenate(pivots[::-1]), jnp.concatenate(sound[::-1])


@traced_once
def ltdl_backward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve ``Lᵀ y = b`` for the factor of `ltdl`."""
    out = []
    for k in range(lower.shape[0] - 1, -1, -1):
        row = b[k:]
        out.append(row)
        b = _less_outer(b[:k], lower[k, :k], row[0])
    return jnp.concatenate(out[::-1])


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


class RankRevealed(NamedTuple):
    """Factors of a semidefinite matrix, from `ldlt_rank_revealing`.

    Attributes:
        lower: `L` (n, n).
        pivots: `D` (n,), 1 in redundant rows.
        kept: (n,), false for redundant rows.
    """

    lower: Float[Array, "n n"]
    pivots: Float[Array, " n"]
    kept: Bool[Array, " n"]

    def solve(self, b: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """The basic solution of ``A x = b`` (`ldlt_solve`)."""
        return ldlt_solve(*self, b)

    def least_norm(self, b: Float[Array, " n"]) -> Float[Array, " n"]:
        """The solution of least norm of ``A x = b``."""
        x = self.solve(b[:, None])[:, 0]
        return minimum_norm(self.lower, self.kept, x) if x.shape[0] > 1 else x

    def minimum_norm(
        self, x: Float[Array, " n"], groups: Sequence[Sequence[int]] | None = None
    ) -> Float[Array, " n"]:
        """The solution of least norm, from the basic one (`minimum_norm`).

        Args:
            x: the basic solution.
            groups: rows such that none is a combination of rows of other groups; by default they
                are one group. Vectors of the null space have entries in one group only, and in a
                group of one row the basic solution is that of least norm.
        """
        groups = [range(x.shape[0])] if groups is None else groups
        if len(groups) == 1:
            return minimum_norm(self.lower, self.kept, x)
        parts = []
        for rows in map(np.asarray, groups):
            part = x[rows]
            if len(rows) > 1:
                part = minimum_norm(self.lower[rows][:, rows], self.kept[rows], part)
            parts.append(part)
        order = np.argsort(np.concatenate([np.asarray(rows) for rows in groups]))
        return jnp.concatenate(parts)[order]


class Doubt(NamedTuple):
    """What is known of rows beforehand, so that their own errors do not decide about their rank.

    Rows that are redundant in a mechanism are so on its constraints only. At a distance ε from them
    pivots of redundant rows are of the size ε², and say nothing.

    Attributes:
        error: relative error ε of the rows: a sine or relative length below it counts as zero;
            None if they are exact to rounding.
        rounding: length up to which a row is rounding error, as all of them may be; None if it is
            only known relative to the longest.
        loops: of the first rows, which are those of loops; None if all are. Others, as those of
            gears, have a length that says nothing of the loops, and are never rounding error.
    """

    error: Array | None = None
    rounding: Array | None = None
    loops: Array | None = None


@partial(traced_once, static=("tolerance",))
def ldlt_rank_revealing(
    a: Float[Array, "n n"],
    tolerance: float | None = None,
    squares: Float[Array, " n"] | None = None,
    doubt: Doubt = Doubt(),  # noqa: B008
) -> RankRevealed:
    """``A = L D Lᵀ`` of a positive semidefinite matrix, skipping rows that add no rank.

    `a` is the Gram matrix of some rows. A pivot divided by its diagonal element is the squared sine
    of the angle between a row and the span of the previous rows. If that is below `tolerance` the
    row is redundant: its pivot is set to 1 and its column to zero (for a semidefinite matrix, the
    column of a zero pivot is zero). Rows much shorter than the longest, in double precision by a
    factor of 1.5e-8, are redundant too: they are rounding error (moment rows of a planar loop) or
    have lost half of their digits (a row close to a singular position where it vanishes).

    Args:
        a: symmetric, positive semidefinite.
        tolerance: a squared sine; by default `tolerances.redundancy`.
        squares: squared lengths of the rows for the latter test; by default the diagonal of `a`,
            which is not suitable if `a` is a Gram matrix with very unequal weights.
        doubt: what is known of the rows.
    """
    tolerance = redundancy(a.dtype) if tolerance is None else tolerance
    lengths = jnp.diagonal(a)
    # Entries of a are products of two rows, so these are squared lengths.
    squares = lengths if squares is None else squares
    real, floor = independence(lengths, squares, tolerance, doubt)
    return RankRevealed(*eliminate_columns(a, floor, real)[:3])


def independence(
    lengths: Float[Array, " n"],
    squares: Float[Array, " n"] | None,
    tolerance: float,
    doubt: Doubt = Doubt(),  # noqa: B008
) -> tuple[Bool[Array, " n"], Float[Array, " n"]]:
    """Which rows are no rounding error, and the pivot that each must exceed.

    Args:
        lengths: the diagonal of the Gram matrix.
        squares: squared lengths of the rows; by default none is rounding error.
        tolerance: a squared sine.
        doubt: what is known of the rows.
    """
    error = None if doubt.error is None else doubt.error**2
    if squares is None:
        real = jnp.asarray(np.ones(lengths.shape, bool))
    else:
        loops = _loops(doubt, len(squares))
        longest = jnp.max(squares if loops is None else jnp.where(loops, squares, 0.0))
        shortest = _at_least(faintness(lengths.dtype), error) * longest
        if doubt.rounding is not None:
            shortest = jnp.maximum(shortest, doubt.rounding**2)
        real = squares > shortest
        real = real if loops is None else real | ~loops
    return real, _at_least(tolerance, error) * lengths


def _loops(doubt: Doubt, n: int) -> Array | None:
    """Which of n rows are those of loops; None if all are."""
    if doubt.loops is None:
        return None
    return jnp.concatenate([doubt.loops, np.zeros(n - len(doubt.loops), bool)])


def _at_least(least: float, x: Array | None) -> Any:
    return least if x is None else jnp.maximum(x, least)


@traced_once
def eliminate_columns(
    a: Float[Array, "n n"], floor: Float[Array, " m"], real: Bool[Array, " n"]
) -> tuple[Float[Array, "n m"], Float[Array, " m"], Bool[Array, " m"], Array]:
    """The first m columns of L, their pivots and which are kept, and the rest of A without them.

    Args:
        a: symmetric, positive semidefinite; its upper triangle is not used.
        floor: what the pivots must exceed.
        real: whether a row is no rounding error.
    """
    unit = np.eye(a.shape[0], dtype=a.dtype)
    columns, pivots, kept = [], [], []
    for k in range(floor.shape[0]):
        pivot, below = a[:1, 0], a[1:, 0]
        keep = real[k : k + 1] & (pivot > floor[k : k + 1])
        d = _where(keep, pivot, 1.0)
        column = _over(_where(keep & real[k + 1 :], below, 0.0), d)
        a = _less_outer(a[1:, 1:], column, below)
        columns.append(jnp.concatenate([unit[k, : k + 1], column]))
        pivots.append(d)
        kept.append(keep)
    return jnp.stack(columns, axis=1), jnp.concatenate(pivots), jnp.concatenate(kept), a


@traced_once
def ldlt_solve(
    lower: Float[Array, "n n"],
    pivots: Float[Array, " n"],
    kept: Bool[Array, " n"],
    b: Float[Array, "n m"],
) -> Float[Array, "n m"]:
    """The basic solution of ``A x = b``: zero in the rows that `ldlt_rank_revealing` skipped.

    Their columns of `L` are zero, so nothing follows from what stands in these rows.
    """
    y = unit_lower_solve(lower, b)
    y = jnp.where(kept[:, None], y / pivots[:, None], 0.0)
    return unit_lower_transpose_solve(lower, y)


@traced_once
def minimum_norm(
    lower: Float[Array, "n n"], kept: Bool[Array, " n"], x: Float[Array, " n"]
) -> Float[Array, " n"]:
    """The solution of least norm of ``A x = b``, from its basic solution `x`.

    D is zero in redundant rows, so the null space of ``A = L D Lᵀ`` is spanned by their columns of
    ``L⁻ᵀ``. With these as columns of `Z` (zero in kept columns) the solution is
    ``x − Z (ZᵀZ + K)⁻¹ Zᵀ x``, where `K` is the identity on the kept columns.
    """
    redundant = jnp.where(kept, 0.0, 1.0).astype(x.dtype)
    z = unit_lower_transpose_solve(lower, jnp.diag(redundant))
    return x - z @ ltdl_solve(z.T @ z + jnp.diag(1.0 - redundant), z.T @ x)


@traced_once
def minimum_norm_by_rows(
    lower: Float[Array, "n n"], kept: Bool[Array, " n"], x: Float[Array, " n"]
) -> Float[Array, " n"]:
    """`minimum_norm` in loops over the rows of L: a tenth of the code, but more operations.

    With ``Z = L⁻ᵀ R``, where R is the identity on redundant rows, it is ``x − Z w`` with
    ``ZᵀZ w = Zᵀ x``, which conjugate gradients solve: on redundant rows no eigenvalue is below 1.
    """
    n = lower.shape[0]
    units = jnp.asarray(np.eye(n, dtype=x.dtype))
    strict = lower - units

    def forward(b: Array) -> Array:
        """``L⁻¹ b``."""

        def row(y: Array, given: tuple[Array, ...]) -> tuple[Array, None]:
            below, unit, one = given
            return y + unit * (one - below @ y), None

        return lax.scan(row, jnp.zeros_like(b), (strict, units, b))[0]

    def backward(b: Array) -> Array:
        """``L⁻ᵀ b``."""

        def row(b: Array, given: tuple[Array, ...]) -> tuple[Array, None]:
            below, unit = given
            return b - below * (unit @ b), None

        return lax.scan(row, b, (strict, units), reverse=True)[0]

    def onto_null(y: Array) -> Array:
        """``Zᵀ y``."""
        return jnp.where(kept, 0.0, forward(y))

    first = onto_null(x)
    least = rounding(x.dtype) ** 2 * (first @ first)

    def more(state: tuple[Array, ...]) -> Array:
        return (state[4] > least) & (state[0] < 2 * n + 4)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        count, z, residual, p, square = state
        along = backward(p)
        curvature = along @ along
        a = square / jnp.where(curvature > 0.0, curvature, 1.0)
        residual = residual - a * onto_null(along)
        new = residual @ residual
        return count + 1, z + a * along, residual, residual + new / square * p, new

    state = jnp.zeros((), jnp.int32), jnp.zeros_like(x), first, first, first @ first
    return x - lax.while_loop(more, step, state)[1]
