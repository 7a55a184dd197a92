"""Factorisations of small matrices: Cholesky's, LU with triangular solves, eigenvalues.

Samples differ in the pivots and rotations that they need, so these are selected, not branched to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import NUMPY, Node, Unsupported
from jaxmbd.lanes.trace.arrays import Value, empty, scalars, shaped
from jaxmbd.lanes.trace.interpreter import rule
from jaxmbd.lanes.trace.rules.arithmetic import result_dtype
from jaxmbd.lanes.trace.rules.control import any_of
from jaxmbd.lanes.trace.rules.derivatives import by_its_rule
from jaxmbd.lanes.trace.rules.sorting import less, sorted_items

LARGEST_LU = 24
"""Most rows and columns of an LU factorisation."""
LARGEST_EIGH = 10
"""Most rows of a matrix whose eigenvalues are found."""
SWEEPS = 30
"""Most sweeps of Jacobi's method, which needs about six for eight rows."""


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


@rule("eigh")
def _eigh(g: Graph, eqn: Any, a: Value) -> list[Value]:
    """``A V = V diag(w)`` with ascending w; NaN if A is not finite."""
    p, n = eqn.params, a.shape[-1]
    if n > LARGEST_EIGH:
        raise Unsupported(f"of {n} rows (at most {LARGEST_EIGH})")
    if not p["sort_eigenvalues"] or p["subset_by_index"] not in (None, (0, n)):
        raise Unsupported("of some eigenvalues, or unsorted ones")
    given = scalars(g, a)
    vectors, values = empty(given.shape), empty(given.shape[:-1])
    for place in np.ndindex(*given.shape[:-2]):
        one = given[place] if p["lower"] else given[place].T
        values[place], vectors[place] = _eigenpairs(g, np.array(one, object))
    return by_its_rule(g, eqn, [given], [vectors, values])


def _eigenpairs(g: Graph, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues and vectors of a matrix given by its lower triangle; found once in a region.

    JAX's derivative asks for those of ``(A + Aᵀ)/2`` again.
    """
    n = len(a)
    places = [(i, j) for i in range(n) for j in range(i + 1)]
    given = [a[place] for place in places]
    known = g.calls.get((_eigenpairs, g.region, *given))
    if known is None:
        known = g.calls[(_eigenpairs, g.region, *given)] = _by_rotations(g, places, given)
        half = g.const(0.5, given[0].dtype)
        again = [g.op("mul", g.op("add", x, x), half) for x in given]
        g.calls[(_eigenpairs, g.region, *again)] = known
    return known


def _by_rotations(g: Graph, places: list[Any], given: list[Node]) -> Any:
    """Jacobi's cyclic method: sweeps over all elements off the diagonal, each rotated to zero.

    Rotations as by Rutishauser (Numerische Mathematik 9, 1966). A sample is done when each element
    is below the rounding of both diagonal elements beside it.
    """
    n, dtype = places[-1][0] + 1, given[0].dtype
    zero, one = g.const(0.0, dtype), g.const(1.0, dtype)
    finite = g.const(True, "i1")
    for x in given:
        small = g.op("lt", g.op("abs", x), g.const(float("inf"), dtype))
        finite = g.op("and", finite, small)
    start = [g.op("stop", x) for x in given]  # the loop is not differentiated, but JAX's rule is
    start += [one if i == j else zero for i in range(n) for j in range(n)]

    def unfinished(a: dict[Any, Node]) -> Node:
        eps = g.const(np.finfo(NUMPY[dtype]).eps, dtype)
        flags = []
        for (i, j), x in a.items():
            if i != j:
                least = g.op("min", *(g.op("abs", a[k, k]) for k in (i, j)))
                flags.append(g.op("gt", g.op("abs", x), g.op("mul", eps, least)))
        return any_of(g, flags)

    def sweep(index: Node, carries: list[Node]) -> tuple[list[Node], list[Any]]:
        a = dict(zip(places, carries, strict=False))
        (v,) = shaped(carries[len(places) : -1], [(n, n)])
        for i, j in places:
            if i != j:
                _rotate(g, a, v, j, i)
        new = [*a.values(), *v.reshape(-1)]
        going = carries[-1]
        kept = [g.op("select", going, x, old) for x, old in zip(new, carries[:-1], strict=True)]
        again = g.op("lt", index, g.const(SWEEPS - 1, index.dtype))
        return [*kept, g.op("and", g.op("and", going, again), unfinished(a))], []

    going = g.op("and", finite, unfinished(dict(zip(places, start, strict=False))))
    out = g.loop(None, [*start, going], sweep, until=True)
    a = dict(zip(places, out, strict=False))
    (v,) = shaped(out[len(places) : -1], [(n, n)])
    items = [[a[i, i], *v[:, i]] for i in range(n)]
    nan = g.const(float("nan"), dtype)
    found = np.array(sorted_items(g, items, lambda x, y: less(g, y[0], x[0]), n), object)
    found = np.asarray(np.frompyfunc(lambda x: g.op("select", finite, x, nan), 1, 1)(found))
    return found[:, 0], found[:, 1:].T


def _rotate(g: Graph, a: dict[Any, Node], v: np.ndarray, p: int, q: int) -> None:
    """Rotate the columns p < q of V, and of A its rows as well, such that ``A[q, p] = 0``."""
    x = a[q, p]
    zero, one = g.const(0.0, x.dtype), g.const(1.0, x.dtype)
    slope = g.op("div", g.op("sub", a[q, q], a[p, p]), g.op("add", x, x))
    size = g.op("add", g.op("abs", slope), _length(g, slope))
    t = g.op("select", g.op("eq", x, zero), zero, g.op("copysign", g.op("div", one, size), slope))
    cosine = g.op("div", one, _length(g, t))
    sine = g.op("mul", t, cosine)
    tau = g.op("div", sine, g.op("add", one, cosine))
    a[p, p] = g.op("sub", a[p, p], g.op("mul", t, x))
    a[q, q] = g.op("add", a[q, q], g.op("mul", t, x))
    a[q, p] = zero
    for r in range(len(v)):
        v[r, p], v[r, q] = _turned(g, v[r, p], v[r, q], sine, tau)
        if r not in (p, q):
            first, second = (max(r, p), min(r, p)), (max(r, q), min(r, q))
            a[first], a[second] = _turned(g, a[first], a[second], sine, tau)


def _length(g: Graph, x: Node) -> Node:
    """``√(1 + x²)``."""
    return g.op("sqrt", g.op("add", g.const(1.0, x.dtype), g.op("mul", x, x)))


def _turned(g: Graph, x: Node, y: Node, sine: Node, tau: Node) -> tuple[Node, Node]:
    """``x cos − y sin`` and ``x sin + y cos``, with ``tau = sin/(1 + cos)``."""
    first = g.op("add", y, g.op("mul", tau, x))
    second = g.op("sub", x, g.op("mul", tau, y))
    return g.op("sub", x, g.op("mul", sine, first)), g.op("add", y, g.op("mul", sine, second))
