"""Dense Cholesky factorisation and triangular solves, unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node, Unsupported
from jaxmbd.lanes.trace.arrays import Value, empty, scalars
from jaxmbd.lanes.trace.registry import rule
from jaxmbd.lanes.trace.rules.arithmetic import result_dtype


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
