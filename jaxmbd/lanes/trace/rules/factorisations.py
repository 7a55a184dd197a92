"""Triangular factorisations of small matrices, Cholesky's and LU, and triangular solves.

Samples differ in the pivots that they need, so rows are selected, not branched to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node, Unsupported
from jaxmbd.lanes.trace.arrays import Value, empty, scalars
from jaxmbd.lanes.trace.interpreter import rule
from jaxmbd.lanes.trace.rules.arithmetic import result_dtype

LARGEST_LU = 24
"""Most rows and columns of an LU factorisation."""


@rule("cholesky", "cholesky_p")
def _cholesky(g: Graph, eqn: Any, a: Value) -> Value:
    """``A = L Lᵀ``, column by column; NaN if A is not positive definite."""
    a, dtype = scalars(g, a), result_dtype(eqn)
    out = np.full(a.shape, g.const(0.0, dtype), object)
    n = a.shape[-1]
    for batch in np.ndindex(*a.shape[:-2]):
        lower = out[batch]
        for j in range(n):
            d = _less_products(g, a[batch][j, j], lower[j, :j], lower[j, :j])
            root = g.op("sqrt", d)
            lower[j, j] = root
            for i in range(j + 1, n):
                rest = _less_products(g, a[batch][i, j], lower[i, :j], lower[j, :j])
                lower[i, j] = g.op("div", rest, root)
    return out


def _less_products(g: Graph, x: Node, a: Any, b: Any) -> Node:
    for p, q in zip(a, b, strict=True):
        x = g.op("sub", x, g.op("mul", p, q))
    return x


@rule("triangular_solve")
def _triangular_solve(g: Graph, eqn: Any, a: Value, b: Value) -> Value:
    """``op(A) X = B`` or ``X op(A) = B`` by substitution."""
    p = eqn.params
    if p.get("conjugate_a") and not p["transpose_a"]:
        raise Unsupported("conjugate_a")
    a, b = scalars(g, a), scalars(g, b)
    out = empty(b.shape)
    for batch in np.ndindex(*a.shape[:-2]):
        m, right, lower = a[batch], b[batch], p["lower"]
        if p["transpose_a"]:
            m, lower = m.T, not lower
        if p["left_side"]:
            out[batch] = _substitute(g, m, right, lower, p["unit_diagonal"])
        else:
            out[batch] = _substitute(g, m.T, right.T, not lower, p["unit_diagonal"]).T
    return out


def _substitute(g: Graph, a: np.ndarray, b: np.ndarray, lower: bool, unit: bool) -> np.ndarray:
    n = a.shape[0]
    x = empty(b.shape)
    order = range(n) if lower else range(n - 1, -1, -1)
    for i in order:
        known = range(i) if lower else range(i + 1, n)
        for c in range(b.shape[1]):
            rest = _less_products(g, b[i, c], [a[i, k] for k in known], [x[k, c] for k in known])
            x[i, c] = rest if unit else g.op("div", rest, a[i, i])
    return x


@rule("lu")
def _lu(g: Graph, eqn: Any, a: Value) -> list[Value]:
    """``A[permutation] = L U`` with LAPACK's pivots: the first largest magnitude in each column."""
    a = scalars(g, a)
    *batch, m, n = a.shape
    if max(m, n) > LARGEST_LU:
        raise Unsupported(f"of {m} × {n} numbers (at most {LARGEST_LU} × {LARGEST_LU})")
    factors, rows = np.array(a, object), empty((*batch, m))
    pivots = empty((*batch, min(m, n)))
    rows[...] = [g.const(k, "i32") for k in range(m)]
    for place in np.ndindex(*batch):
        # The number of a row is its last column, and so is exchanged with it.
        table = np.column_stack([factors[place], rows[place]])
        for j in range(min(m, n)):
            chosen = dict(enumerate(_largest(g, table[j:, j]), j + 1))
            pivots[(*place, j)] = _exchange(g, table, j, chosen)
            _eliminate(g, table[:, :n], j)
        factors[place], rows[place] = table[:, :n], table[:, n]
    return [factors, pivots, rows]


def _largest(g: Graph, column: np.ndarray) -> list[Node]:
    """For each element but the first, whether it is the first of largest magnitude."""
    best, wins = g.op("abs", column[0]), []
    for x in column[1:]:
        size = g.op("abs", x)
        wins.append(g.op("gt", size, best))
        best = g.op("select", wins[-1], size, best)
    beaten = g.const(False, "i1")
    for k in reversed(range(len(wins))):
        last = g.op("and", wins[k], g.op("not", beaten))
        beaten, wins[k] = g.op("or", beaten, wins[k]), last
    return wins


def _exchange(g: Graph, table: np.ndarray, j: int, chosen: dict[int, Node]) -> Node:
    """Exchange row j with that one of others, if any, which is chosen; its index."""
    first, index = table[j].copy(), g.const(j, "i32")
    for i, here in chosen.items():
        index = g.op("select", here, g.const(i, "i32"), index)
        for c, old in enumerate(first):
            x = table[i, c]
            table[i, c] = g.op("select", here, old, x)
            table[j, c] = g.op("select", here, x, table[j, c])
    return index


def _eliminate(g: Graph, a: np.ndarray, j: int) -> None:
    """Column j of L, and what remains of the rows below j; a pivot of zero divides nothing."""
    zero, one = g.const(0.0, a[j, j].dtype), g.const(1.0, a[j, j].dtype)
    pivot = g.op("select", g.op("eq", a[j, j], zero), one, a[j, j])
    for i in range(j + 1, len(a)):
        a[i, j] = g.op("div", a[i, j], pivot)
        for c in range(j + 1, a.shape[1]):
            a[i, c] = g.op("sub", a[i, c], g.op("mul", a[i, j], a[j, c]))


@rule("lu_pivots_to_permutation")
def _permutation(g: Graph, eqn: Any, pivots: Value) -> Value:
    """The rows that exchanges of row k with row ``pivots[k]``, one after the other, bring about."""
    pivots, m = scalars(g, pivots), eqn.params["permutation_size"]
    out = empty((*pivots.shape[:-1], m))
    for place in np.ndindex(*pivots.shape[:-1]):
        table = np.array([[g.const(k, "i32")] for k in range(m)], object)
        for j, p in enumerate(pivots[place]):
            chosen = {i: g.op("eq", p, g.const(i, p.dtype)) for i in range(m) if i != j}
            _exchange(g, table, j, chosen)
        out[place] = table[:, 0]
    return out
