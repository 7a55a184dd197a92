"""Matrices of which only blocks are stored, because the others are known to be zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.numerics.block_factors import Pattern


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


Rows = Array | BlockRows
Columns = Array | BlockColumns


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


def dense(rows: Rows) -> Array:
    """The matrix as an array."""
    return rows.array() if isinstance(rows, BlockRows) else rows


def only(rows: Rows, which: np.ndarray, columns: np.ndarray) -> Rows:
    """The matrix, zero outside of some rows (n,) and columns (nv,), both given by booleans."""
    if not isinstance(rows, BlockRows):
        return jnp.where(np.outer(which, columns), rows, 0.0)
    s, found = rows.sparsity, []
    for i, (block, place) in enumerate(zip(rows.blocks, s.rows, strict=True)):
        here = np.concatenate([columns[:0], *(columns[list(c)] for c in s.speeds(i))])
        found.append(only(block, which[place.start : place.stop], here))
    return BlockRows(tuple(found), s)


def squared_rows(rows: Rows, weight: Array | None = None, *, factor: Array | None = None) -> Array:
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


def largest(rows: Rows) -> Array:
    """The largest size of an element; 0 if there is none."""
    if not isinstance(rows, BlockRows):
        return jnp.max(jnp.abs(rows), initial=0.0)
    return jnp.max(jnp.stack([jnp.max(jnp.abs(block), initial=0.0) for block in rows.blocks]))
