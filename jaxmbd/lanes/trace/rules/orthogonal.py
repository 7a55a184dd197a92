"""Orthogonal factorisations of small matrices: QR, eigenvalues of symmetric ones, singular values.

Samples differ in the rotations that they need, so these are repeated until the last one is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import NUMPY, Node, Unsupported
from jaxmbd.lanes.trace.arrays import Value, empty, scalars, shaped
from jaxmbd.lanes.trace.interpreter import rule
from jaxmbd.lanes.trace.rules.control import any_of
from jaxmbd.lanes.trace.rules.derivatives import by_its_rule
from jaxmbd.lanes.trace.rules.linear_algebra import dot
from jaxmbd.lanes.trace.rules.sorting import less, sorted_items

LARGEST = 600
"""Most work, m n min(m, n), on a matrix (m, n): that of 8 × 8 numbers or of 16 × 6."""
SWEEPS = 30
"""Most sweeps of Jacobi's method, which needs about six for eight rows."""


def _each(g: Graph, a: Value, name: Any, fn: Callable[[Graph, np.ndarray], Any]) -> list[Value]:
    """The results, which are arrays, of a function of each matrix; found once in a region."""
    given, found = scalars(g, a), {}
    m, n = given.shape[-2:]
    if m * n * min(m, n) > LARGEST:
        raise Unsupported(f"of {m} × {n} numbers (at most 8 × 8, 12 × 7, 16 × 6, …)")
    for place in np.ndindex(*given.shape[:-2]):
        one = np.array(given[place], object)
        key = (name, g.region, *one.reshape(-1))
        if key not in g.calls:
            g.calls[key] = fn(g, one)
        found[place] = g.calls[key]
    some = next(iter(found.values()), None)
    if some is None:
        raise Unsupported("of no matrix")
    out = [empty((*given.shape[:-2], *x.shape)) for x in some]
    for place, arrays in found.items():
        for whole, x in zip(out, arrays, strict=True):
            whole[(*place, ...)] = x
    return out


def _finite(g: Graph, nodes: Sequence[Node]) -> Node:
    """Whether all are finite."""
    ok = g.const(True, "i1")
    for x in nodes:
        ok = g.op("and", ok, g.op("lt", g.op("abs", x), g.const(float("inf"), x.dtype)))
    return ok


def _where(g: Graph, condition: Node, x: np.ndarray, other: Node) -> np.ndarray:
    return np.asarray(np.frompyfunc(lambda n: g.op("select", condition, n, other), 1, 1)(x), object)


def _scaled(g: Graph, a: np.ndarray) -> tuple[np.ndarray, Node]:
    """Numbers by the largest magnitude among them, and this, or 1 where it is zero."""
    size = g.const(0.0, a.flat[0].dtype)
    for x in a.reshape(-1):
        size = g.op("max", size, g.op("abs", x))
    size = g.op("select", g.op("eq", size, g.const(0.0, size.dtype)), _one(g, a), size)
    return np.asarray(np.frompyfunc(lambda x: g.op("div", x, size), 1, 1)(a), object), size


def _one(g: Graph, a: np.ndarray) -> Node:
    return g.const(1.0, a.flat[0].dtype)


def _identity(g: Graph, n: int, dtype: str) -> np.ndarray:
    zero, one = g.const(0.0, dtype), g.const(1.0, dtype)
    return np.array([[one if i == j else zero for j in range(n)] for i in range(n)], object)


# QR


@rule("qr")
def _qr(g: Graph, eqn: Any, a: Value) -> list[Value]:
    """``A = Q R`` by Householder's reflections, with the signs of LAPACK."""
    if eqn.params["pivoting"]:
        raise Unsupported("with pivots")
    full = eqn.params["full_matrices"]
    given = scalars(g, a)
    outs = _each(g, given, (_qr, full), lambda g, a: reflected(g, a, full))
    return by_its_rule(g, eqn, [given], outs)


def reflected(g: Graph, a: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray]:
    """Q and R of a matrix (m, n); with the first min(m, n) columns of Q, or with all."""
    (m, n), k = a.shape, min(a.shape)
    r, mirrors = a.copy(), []
    for j in range(min(m - 1, n)):
        v, tau, r[j, j] = _mirror(g, r[j:, j])
        r[j + 1 :, j] = g.const(0.0, tau.dtype)
        _reflect(g, r[j:, j + 1 :], v, tau)
        mirrors.append((v, tau))
    q = _identity(g, m, a.flat[0].dtype)[:, : m if full else k]
    for j, (v, tau) in reversed(list(enumerate(mirrors))):
        _reflect(g, q[j:, j:], v, tau)
    return q, r if full else r[:k]


def _mirror(g: Graph, x: np.ndarray) -> tuple[np.ndarray, Node, Node]:
    """v, τ and β of ``(I − τ v vᵀ) x = β e₁`` with ``v₁ = 1``; τ = 0 if x is a multiple of e₁."""
    one, zero = _one(g, x), g.const(0.0, x[0].dtype)
    x, size = _scaled(g, x)
    rest = dot(g, x[1:], x[1:], zero.dtype)
    still = g.op("eq", rest, zero)
    length = g.op("sqrt", g.op("add", g.op("mul", x[0], x[0]), rest))
    beta = g.op("neg", g.op("copysign", length, x[0]))
    far = g.op("select", still, one, g.op("sub", x[0], beta))
    v = [g.op("div", n, far) for n in x[1:]]
    tau = g.op("select", still, zero, g.op("div", g.op("sub", beta, x[0]), beta))
    beta = g.op("select", still, x[0], beta)
    return np.array([one, *v], object), tau, g.op("mul", beta, size)


def _reflect(g: Graph, a: np.ndarray, v: np.ndarray, tau: Node) -> None:
    for c in range(a.shape[1]):
        share = g.op("mul", tau, dot(g, v, a[:, c], tau.dtype))
        for i, x in enumerate(v):
            a[i, c] = g.op("sub", a[i, c], g.op("mul", share, x))


# Rotations


@rule("eigh")
def _eigh(g: Graph, eqn: Any, a: Value) -> list[Value]:
    """``A V = V diag(w)`` with ascending w; NaN if A is not finite."""
    p, n = eqn.params, a.shape[-1]
    if not p["sort_eigenvalues"] or p["subset_by_index"] not in (None, (0, n)):
        raise Unsupported("of some eigenvalues, or unsorted ones")
    given = scalars(g, a)
    lower = given if p["lower"] else np.swapaxes(given, -1, -2)
    lower = np.asarray(np.frompyfunc(_again, 1, 1)(lower), object)
    return by_its_rule(g, eqn, [given], _each(g, lower, _eigh, _eigenpairs))


def _again(x: Node) -> Node:
    """Instead of (x + x)/2, x, as JAX's derivative has it of symmetric matrices."""
    if x.op == "mul":
        for half, total in (x.args, x.args[::-1]):
            if half.constant and half.data == 0.5 and total.op == "add":
                first, second = total.args
                return first if first is second else x
    return x


def _eigenpairs(g: Graph, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvectors and values of a matrix given by its lower triangle.

    Jacobi's cyclic method: sweeps over all elements off the diagonal, each rotated to zero, as by
    Rutishauser (Numerische Mathematik 9, 1966). A sample is done when each element is below the
    rounding of both diagonal elements beside it.
    """
    n, dtype = len(a), a[0, 0].dtype
    places = [(i, j) for i in range(n) for j in range(i + 1)]
    given = [a[place] for place in places]
    eps = g.const(np.finfo(NUMPY[dtype]).eps, dtype)

    def unfinished(a: dict[Any, Node]) -> Node:
        flags = []
        for (i, j), x in a.items():
            if i != j:
                least = g.op("min", *(g.op("abs", a[k, k]) for k in (i, j)))
                flags.append(g.op("gt", g.op("abs", x), g.op("mul", eps, least)))
        return any_of(g, flags)

    def sweep(nodes: Sequence[Node]) -> tuple[list[Node], Node]:
        a = dict(zip(places, nodes, strict=False))
        (v,) = shaped(nodes[len(places) :], [(n, n)])
        for q, p in places:
            if p != q:
                _rotate(g, a, v, p, q)
        return [*a.values(), *v.reshape(-1)], unfinished(a)

    finite = _finite(g, given)
    going = g.op("and", finite, unfinished(dict(zip(places, given, strict=True))))
    out = _swept(g, [*given, *_identity(g, n, dtype).reshape(-1)], going, sweep)
    w, (v,) = dict(zip(places, out, strict=False)), shaped(out[len(places) :], [(n, n)])
    items = [[w[i, i], *v[:, i]] for i in range(n)]
    found = np.array(sorted_items(g, items, lambda x, y: less(g, y[0], x[0]), n), object)
    found = _where(g, finite, found, g.const(float("nan"), dtype))
    return found[:, 1:].T, found[:, 0]


Sweep = Callable[[Sequence[Node]], tuple[list[Node], Node]]
"""New values, and whether another sweep is needed."""


def _swept(g: Graph, start: Sequence[Node], going: Node, sweep: Sweep) -> list[Node]:
    """Values after sweeps; those of a sample that needs no more stay as they are."""

    def body(index: Node, carries: list[Node]) -> tuple[list[Node], list[Any]]:
        *old, going = carries
        new, more = sweep(old)
        kept = [g.op("select", going, x, y) for x, y in zip(new, old, strict=True)]
        more = g.op("and", more, g.op("lt", index, g.const(SWEEPS - 1, index.dtype)))
        return [*kept, g.op("and", going, more)], []

    # JAX's rules give the derivatives; the loop has none.
    start = [g.op("stop", x) for x in start]
    return g.loop(None, [*start, going], body, until=True)[:-1]


def _rotate(g: Graph, a: dict[Any, Node], v: np.ndarray, p: int, q: int) -> None:
    """Rotate the columns p < q of V, and of A its rows as well, such that ``A[q, p] = 0``."""
    x = a[q, p]
    t, sine, tau = _rotation(g, a[p, p], a[q, q], x)
    a[p, p] = g.op("sub", a[p, p], g.op("mul", t, x))
    a[q, q] = g.op("add", a[q, q], g.op("mul", t, x))
    a[q, p] = g.const(0.0, x.dtype)
    for r in range(len(v)):
        v[r, p], v[r, q] = _turned(g, v[r, p], v[r, q], sine, tau)
        if r not in (p, q):
            first, second = (max(r, p), min(r, p)), (max(r, q), min(r, q))
            a[first], a[second] = _turned(g, a[first], a[second], sine, tau)


def _rotation(g: Graph, first: Node, second: Node, x: Node) -> tuple[Node, Node, Node]:
    """The tangent and the sine of the angle that makes [[first, x], [x, second]] diagonal.

    The third is ``sine/(1 + cosine)``; the angle is at most 45°.
    """
    zero, one = g.const(0.0, x.dtype), g.const(1.0, x.dtype)
    slope = g.op("div", g.op("sub", second, first), g.op("add", x, x))
    size = g.op("add", g.op("abs", slope), _length(g, slope))
    t = g.op("select", g.op("eq", x, zero), zero, g.op("copysign", g.op("div", one, size), slope))
    cosine = g.op("div", one, _length(g, t))
    sine = g.op("mul", t, cosine)
    return t, sine, g.op("div", sine, g.op("add", one, cosine))


def _length(g: Graph, x: Node) -> Node:
    """``√(1 + x²)``."""
    return g.op("sqrt", g.op("add", g.const(1.0, x.dtype), g.op("mul", x, x)))


def _turned(g: Graph, x: Node, y: Node, sine: Node, tau: Node) -> tuple[Node, Node]:
    """``x cos − y sin`` and ``x sin + y cos``, with ``tau = sin/(1 + cos)``."""
    first = g.op("add", y, g.op("mul", tau, x))
    second = g.op("sub", x, g.op("mul", tau, y))
    return g.op("sub", x, g.op("mul", sine, first)), g.op("add", y, g.op("mul", sine, second))


@rule("svd")
def _svd(g: Graph, eqn: Any, a: Value) -> list[Value]:
    """``A = U diag(s) Vᵀ`` with descending s; NaN if A is not finite."""
    p, given = eqn.params, scalars(g, a)
    m, n = given.shape[-2:]
    if p["subset_by_index"] not in (None, (0, min(m, n))):
        raise Unsupported("of some singular values")
    full = p["full_matrices"]
    high = given if m >= n else np.swapaxes(given, -1, -2)
    u, s, v = _each(g, high, (_svd, full), lambda g, a: _singular(g, a, full))
    if m < n:
        u, v = v, u
    outs = [s, u, np.swapaxes(v, -1, -2)] if p["compute_uv"] else [s]
    return by_its_rule(g, eqn, [given], outs)


def _singular(g: Graph, a: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s and V of a matrix (m, n) with m ≥ n.

    One-sided rotations (Hestenes, J. SIAM 6, 1958) make the columns orthogonal; their lengths are
    s. U is that of their QR factorisation, which also gives directions to columns without length.
    """
    (m, n), dtype = a.shape, a[0, 0].dtype
    limit = g.const(m * np.finfo(NUMPY[dtype]).eps, dtype)
    finite = _finite(g, list(a.reshape(-1)))
    scaled, scale = _scaled(g, a)

    def sweep(nodes: Sequence[Node]) -> tuple[list[Node], Node]:
        (c,), more = shaped(nodes, [(m + n, n)]), []  # the columns, and V below them
        for q in range(n):
            for p in range(q):
                first, second, x = (
                    dot(g, c[:m, i], c[:m, j], dtype) for i, j in ((p, p), (q, q), (p, q))
                )
                sizes = g.op("mul", g.op("sqrt", first), g.op("sqrt", second))
                more.append(g.op("gt", g.op("abs", x), g.op("mul", limit, sizes)))
                _, sine, tau = _rotation(g, first, second, x)
                for r in range(m + n):
                    c[r, p], c[r, q] = _turned(g, c[r, p], c[r, q], sine, tau)
        return list(c.reshape(-1)), any_of(g, more)

    start = np.concatenate([scaled, _identity(g, n, dtype)])
    (c,) = shaped(_swept(g, list(start.reshape(-1)), finite, sweep), [(m + n, n)])
    items = [[g.op("sqrt", dot(g, x[:m], x[:m], dtype)), *x] for x in c.T]
    found = np.array(sorted_items(g, items, lambda x, y: less(g, x[0], y[0]), n), object)
    u, r = reflected(g, found[:, 1 : m + 1].T, full)
    for j in range(n):
        back = g.op("lt", r[j, j], g.const(0.0, dtype))
        u[:, j] = [g.op("select", back, g.op("neg", x), x) for x in u[:, j]]
    s = np.array([g.op("mul", x, scale) for x in found[:, 0]], object)
    nan = g.const(float("nan"), dtype)
    u, s, v = (_where(g, finite, x, nan) for x in (u, s, found[:, m + 1 :].T))
    return u, s, v
