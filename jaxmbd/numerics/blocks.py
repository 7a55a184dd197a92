"""Matrices of which only blocks are stored, because the others are zero, and their factors.

Blocks of rows are eliminated in the given order. Those below the diagonal of L are known
beforehand (symbolic factorisation: George and Liu 1981, chapter 5). Each block of columns is
eliminated in the dense matrix of the rows where it has an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.lanes import traced_once
from jaxmbd.numerics.factorisations import (
    Doubt,
    eliminate_columns,
    independence,
    unit_lower_solve,
    unit_lower_transpose_solve,
)


class Pattern(NamedTuple):
    """The blocks of a triangular factor; static.

    Attributes:
        sizes: rows of each block.
        below: for each block of columns the later blocks of rows in which it has an entry.
    """

    sizes: tuple[int, ...]
    below: tuple[tuple[int, ...], ...]

    def front(self, k: int) -> tuple[int, ...]:
        """Blocks of rows in which the block of columns k has an entry."""
        return (k, *self.below[k])

    def height(self, k: int) -> int:
        """The number of these rows."""
        return sum(self.sizes[i] for i in self.front(k))

    @property
    def multiplications(self) -> int:
        """As many as the factorisation takes: for each column the square of its length."""
        heights = ((self.height(k), n) for k, n in enumerate(self.sizes))
        return sum((h - i) ** 2 for h, n in heights for i in range(n))

    def split(self, x: Array) -> list[Array]:
        """The blocks of a vector or matrix."""
        ends = [sum(self.sizes[: i + 1]) for i in range(len(self.sizes))]
        return [x[end - n : end] for end, n in zip(ends, self.sizes, strict=True)]

    def split_front(self, k: int, x: Array) -> list[tuple[int, Array]]:
        """The blocks of an array with the rows of `front`."""
        return list(zip(self.front(k), self._cut(k, x), strict=True))

    def _cut(self, k: int, x: Array) -> list[Array]:
        return Pattern(tuple(self.sizes[i] for i in self.front(k)), ()).split(x)


def filled(sizes: Iterable[int], entries: Iterable[tuple[int, int]]) -> Pattern:
    """The pattern of the factor of a symmetric matrix with entries in the given blocks."""
    sizes = tuple(sizes)
    below: list[set[int]] = [set() for _ in sizes]
    for i, j in entries:
        if i != j:
            below[min(i, j)].add(max(i, j))
    for rows in below:
        if rows:
            first = min(rows)
            below[first] |= rows - {first}
    return Pattern(sizes, tuple(tuple(sorted(rows)) for rows in below))


def normal_pattern(p: Pattern) -> Pattern:
    """The pattern of the factor of ``LᵀL``."""
    fronts = [set(p.front(k)) for k in range(len(p.sizes))]
    pairs = ((i, j) for j, a in enumerate(fronts) for i, b in enumerate(fronts) if i > j and a & b)
    return filled(p.sizes, pairs)


class BlockRankRevealed(eqx.Module):
    """Factors of a semidefinite matrix, as `RankRevealed`.

    Attributes:
        panels: for each block of columns of L its rows in `Pattern.front`.
        pivots: D (n,), 1 in redundant rows.
        kept: (n,), false for redundant rows.
        pattern: of L.
    """

    panels: tuple[Array, ...]
    pivots: Array
    kept: Array
    pattern: Pattern = eqx.field(static=True)

    @traced_once
    def solve(self, b: Array) -> Array:
        """The basic solution of ``A x = b`` (n, m): zero in redundant rows."""
        y = self._lower_solve(b)
        y = jnp.where(self.kept[:, None], y / self.pivots[:, None], 0.0)
        return self._lower_transpose_solve(y)

    def _lower_solve(self, b: Array) -> Array:
        x = self.pattern.split(b)
        for k, panel in enumerate(self.panels):
            x[k], changes = _forward(panel, x[k])
            for i, change in self.pattern.split_front(k, changes)[1:]:
                x[i] = x[i] - change
        return jnp.concatenate(x)

    def _lower_transpose_solve(self, b: Array) -> Array:
        x = self.pattern.split(b)
        for k in range(len(x) - 1, -1, -1):
            later = [x[i] for i in self.pattern.below[k]]
            x[k] = _backward(self.panels[k], x[k], jnp.concatenate([x[k][:0], *later]))
        return jnp.concatenate(x)

    @traced_once
    def minimum_norm(self, x: Array) -> Array:
        """The solution (n,) of least norm of ``A x = b``, from its basic solution.

        It is in the range of A, which is that of G, the kept columns of L: ``x = G w`` with
        ``GᵀG w = Gᵀ x``, which has few blocks, as L has. Vectors of the null space would have none
        that are zero. The equations square the condition number; a second solution, for the
        residual, makes up for that (Björck 1987).
        """
        kept = [k[:, 0] for k in self.pattern.split(self.kept[:, None])]
        g = Panels(tuple(p * k for p, k in zip(self.panels, kept, strict=True)), self.pattern)
        normal = block_ldlt(g.normal(kept), normal_pattern(self.pattern))
        x = x[:, None]
        found = g @ normal.solve(g.transposed(x))
        return (found + g @ normal.solve(g.transposed(x - found)))[:, 0]


class Panels(NamedTuple):
    """A matrix with the blocks of a lower triangular one: `panels` as in `BlockRankRevealed`."""

    panels: tuple[Array, ...]
    pattern: Pattern

    def __matmul__(self, x: Array) -> Array:
        parts = self.pattern.split(x)
        out = [jnp.zeros_like(part) for part in parts]
        for k, panel in enumerate(self.panels):
            for i, change in self.pattern.split_front(k, panel @ parts[k]):
                out[i] = out[i] + change
        return jnp.concatenate(out)

    def transposed(self, x: Array) -> Array:
        """``Gᵀ x`` (n, m)."""
        parts, p = self.pattern.split(x), self.pattern
        rows = [jnp.concatenate([parts[i] for i in p.front(k)]) for k in range(len(parts))]
        return jnp.concatenate([a.T @ b for a, b in zip(self.panels, rows, strict=True)])

    def normal(self, kept: list[Array]) -> dict[tuple[int, int], Array]:
        """The lower blocks of ``GᵀG``, with 1 on the diagonal of columns that are zero."""
        p, found = self.pattern, {}
        blocks = [dict(p.split_front(k, panel)) for k, panel in enumerate(self.panels)]
        pattern = normal_pattern(p)
        for j, panel in enumerate(self.panels):
            found[j, j] = panel.T @ panel + jnp.diag(jnp.where(kept[j], 0.0, 1.0))
            for i in pattern.below[j]:
                if common := [k for k in blocks[j] if k in blocks[i]]:
                    a, b = (jnp.concatenate([blocks[n][k] for k in common]) for n in (i, j))
                    found[i, j] = a.T @ b
        return found


@traced_once
def _forward(panel: Array, b: Array) -> tuple[Array, Array]:
    """``L₁⁻¹ b``, and its product with the panel, of which the first rows are not used."""
    n = b.shape[0]
    x = unit_lower_solve(panel[:n], b)
    return x, jnp.concatenate([jnp.zeros_like(b), panel[n:] @ x])


@traced_once
def _backward(panel: Array, b: Array, later: Array) -> Array:
    n = b.shape[0]
    return unit_lower_transpose_solve(panel[:n], b - panel[n:].T @ later if len(later) else b)


def block_ldlt(
    a: dict[tuple[int, int], Array],
    pattern: Pattern,
    *,
    squares: Array | None = None,
    tolerance: float = 0.0,
    doubt: Doubt = Doubt(),  # noqa: B008
) -> BlockRankRevealed:
    """``A = L D Lᵀ`` of a positive semidefinite matrix.

    Args:
        a: its lower blocks (i, j), i ≥ j, without those that are zero.
        pattern: of L (`filled`).
        squares: squared lengths of the rows that `a` is the Gram matrix of, for the test of rows
            that are rounding error; by default there is none.
        tolerance: a squared sine, as for `ldlt_rank_revealing`.
        doubt: what is known of the rows.
    """
    n = range(len(pattern.sizes))
    lengths = jnp.concatenate([jnp.diagonal(a[k, k]) for k in n])
    real, floor = independence(lengths, squares, tolerance, doubt)
    reals, floors = ([y[:, 0] for y in pattern.split(x[:, None])] for x in (real, floor))
    a, panels, pivots, kept = dict(a), [], [], []
    for k in n:
        front = pattern.front(k)
        rows = jnp.concatenate([reals[i] for i in front])
        panel, d, keep, rest = eliminate_columns(_front(a, pattern, k), floors[k], rows)
        panels.append(panel)
        pivots.append(d)
        kept.append(keep)
        _put_back(a, pattern, k, rest)
    return BlockRankRevealed(tuple(panels), jnp.concatenate(pivots), jnp.concatenate(kept), pattern)


def _front(a: dict[tuple[int, int], Array], p: Pattern, k: int) -> Array:
    """The rows and columns of `front` (k), with zeros above the diagonal blocks."""
    front, dtype = p.front(k), a[k, k].dtype

    def block(i: int, j: int) -> Array:
        none = i < j or (i, j) not in a
        return jnp.zeros((p.sizes[i], p.sizes[j]), dtype) if none else a[i, j]

    rows = [jnp.concatenate([block(i, j) for j in front], axis=1) for i in front]
    return jnp.concatenate(rows)


def _put_back(a: dict[tuple[int, int], Array], p: Pattern, k: int, rest: Array) -> None:
    below = p.below[k]
    sub = Pattern(tuple(p.sizes[i] for i in below), ())
    for n, (i, rows) in enumerate(zip(below, sub.split(rest), strict=True)):
        for j, block in list(zip(below, sub.split(rows.T), strict=True))[: n + 1]:
            a[i, j] = block.T


class Sparsity(NamedTuple):
    """Which blocks of rows depend on which groups of columns; static.

    Attributes:
        columns: the groups, consecutive.
        rows: the blocks, consecutive.
        touched: for each block the groups that it depends on, ascending.
        gram: the pattern of the Gram matrix of the rows, if groups are orthogonal.
    """

    columns: tuple[range, ...]
    rows: tuple[range, ...]
    touched: tuple[tuple[int, ...], ...]
    gram: Pattern

    def speeds(self, block: int) -> tuple[range, ...]:
        """The columns of a block of rows."""
        return tuple(self.columns[k] for k in self.touched[block])


def turned(x: Array, k: int, turn: Array) -> Array:
    """Three rows from the k-th on, multiplied by `turn` (3, 3)."""
    return jnp.concatenate([x[:k], turn @ x[k : k + 3], x[k + 3 :]])


class BlockRows(eqx.Module):
    """A matrix of which each block of rows is stored with the columns that it depends on.

    Attributes:
        blocks: the stored parts.
        sparsity: where they are.
    """

    blocks: tuple[Array, ...]
    sparsity: Sparsity = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.sparsity.rows[-1].stop, self.sparsity.columns[-1].stop

    @property
    def T(self) -> BlockColumns:  # noqa: N802
        """The transpose."""
        return BlockColumns(self)

    def __matmul__(self, x: Array) -> Array:
        pairs = enumerate(self.blocks)
        return jnp.concatenate([b @ taken(x, self.sparsity.speeds(i)) for i, b in pairs])

    def scaled(self, factors: Array) -> BlockRows:
        """The rows multiplied by numbers."""
        pairs = zip(self.blocks, self.sparsity.rows, strict=True)
        found = tuple(factors[r.start : r.stop, None] * b for b, r in pairs)
        return BlockRows(found, self.sparsity)

    def turned(self, k: int, turn: Array) -> BlockRows:
        """Three rows from the k-th on, which are in one block, multiplied by `turn` (3, 3)."""
        found = [
            turned(b, k - r.start, turn) if k in r else b
            for b, r in zip(self.blocks, self.sparsity.rows, strict=True)
        ]
        return BlockRows(tuple(found), self.sparsity)

    def like(self, x: Array) -> BlockRows:
        """A matrix that has zeros in the same places."""
        rows = [x[r.start : r.stop] for r in self.sparsity.rows]
        found = [taken(part.T, self.sparsity.speeds(i)).T for i, part in enumerate(rows)]
        return BlockRows(tuple(found), self.sparsity)

    def part(self, block: int, group: int) -> Array:
        """The columns of one group in one block of rows."""
        s, start = self.sparsity, 0
        for k in s.touched[block]:
            if k == group:
                return self.blocks[block][:, start : start + len(s.columns[k])]
            start += len(s.columns[k])
        return jnp.zeros((len(s.rows[block]), len(s.columns[group])), self.blocks[block].dtype)

    def parts(self, block: int, groups: Sequence[int]) -> Array:
        """The columns of some groups in one block of rows."""
        if tuple(groups) == self.sparsity.touched[block]:
            return self.blocks[block]
        return jnp.concatenate([self.part(block, k) for k in groups], axis=1)

    def gram(self, weight: Array) -> dict[tuple[int, int], Array]:
        """The lower blocks (i, j) of ``A W Aᵀ`` with the diagonal `weight` of W⁻¹."""
        s = self.sparsity
        found = {}
        for j, touched in enumerate(s.touched):
            for i in (j, *s.gram.below[j]):
                if common := [k for k in touched if k in s.touched[i]]:
                    w = taken(weight, [s.columns[k] for k in common])
                    found[i, j] = self.parts(i, common) @ (self.parts(j, common) / w).T
        return found

    def array(self) -> Array:
        """The matrix with its zeros."""
        every = range(len(self.sparsity.columns))
        return jnp.concatenate([self.parts(i, every) for i in range(len(self.blocks))])


class BlockColumns(eqx.Module):
    """The transpose of `rows`."""

    rows: BlockRows

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.rows.shape[1], self.rows.shape[0]

    @property
    def T(self) -> BlockRows:  # noqa: N802
        """The transpose."""
        return self.rows

    def __matmul__(self, x: Array) -> Array:
        s = self.rows.sparsity
        parts = [jnp.zeros((len(columns), *x.shape[1:]), x.dtype) for columns in s.columns]
        for i, (block, rows) in enumerate(zip(self.rows.blocks, s.rows, strict=True)):
            found, start = block.T @ x[rows.start : rows.stop], 0
            for k in s.touched[i]:
                parts[k] = parts[k] + found[start : start + len(s.columns[k])]
                start += len(s.columns[k])
        return jnp.concatenate(parts)


AnyRows = Array | BlockRows
AnyColumns = Array | BlockColumns


def taken(x: Array, parts: Sequence[range]) -> Array:
    """Some ranges of the first axis."""
    found = [x[part.start : part.stop] for part in merged(parts)]
    return found[0] if len(found) == 1 else jnp.concatenate(found or [x[:0]])


def merged(parts: Sequence[range]) -> list[range]:
    """Ranges in ascending order, with neighbours joined."""
    out: list[range] = []
    for part in parts:
        if out and out[-1].stop == part.start:
            out[-1] = range(out[-1].start, part.stop)
        else:
            out.append(part)
    return out


def dense(rows: AnyRows) -> Array:
    """The matrix as an array."""
    return rows.array() if isinstance(rows, BlockRows) else rows


def squared_rows(
    rows: AnyRows, weight: Array | None = None, *, factor: Array | None = None
) -> Array:
    """Squared lengths of the rows; each column's square is times `factor` and over `weight`."""
    if not isinstance(rows, BlockRows):
        square = rows * rows
        square = square if factor is None else square * factor
        return jnp.sum(square if weight is None else square / weight, axis=1)
    parts = []
    for i, block in enumerate(rows.blocks):
        w, f = (None if x is None else taken(x, rows.sparsity.speeds(i)) for x in (weight, factor))
        parts.append(squared_rows(block, w, factor=f))
    return jnp.concatenate(parts)


def only(rows: AnyRows, which: np.ndarray, columns: np.ndarray) -> AnyRows:
    """The matrix, zero outside of some rows (n,) and columns (nv,), both given by booleans."""
    if not isinstance(rows, BlockRows):
        return jnp.where(np.outer(which, columns), rows, 0.0)
    s, found = rows.sparsity, []
    for i, (block, place) in enumerate(zip(rows.blocks, s.rows, strict=True)):
        here = np.concatenate([columns[:0], *(columns[list(c)] for c in s.speeds(i))])
        found.append(only(block, which[place.start : place.stop], here))
    return BlockRows(tuple(found), s)


def largest(rows: AnyRows) -> Array:
    """The largest size of an element; 0 if there is none."""
    if not isinstance(rows, BlockRows):
        return jnp.max(jnp.abs(rows), initial=0.0)
    return jnp.max(jnp.stack([jnp.max(jnp.abs(block), initial=0.0) for block in rows.blocks]))
