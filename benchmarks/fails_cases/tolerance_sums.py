"""First-order tolerance sums, allocations, Sobol indices: closed forms and drawn samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np

from fails_cases.judged import CRASHED, REFUSED, WRONG, Judged, compare
from jaxmbd import sampling
from jaxmbd import statistics as st

PER_CASE = 12
_SUMS = "sums over all pairs of numbers"
NUMBERS = {
    "statistics.Sensitivity.parts": "products of derivatives and deviations",
    "statistics.Sensitivity.spread": f"{_SUMS}; drawn normal samples",
    "statistics.Sensitivity.shares": _SUMS,
    "statistics.Sensitivity.nominal": "a quadratic function in NumPy",
    "statistics.Sensitivity.gradient": "derivatives of a quadratic function in closed form",
    "statistics.Sensitivity.std": "those that were given",
    "statistics.Allocation.factors": "Lagrange's multiplier by bisection; a search of one factor",
    "statistics.Allocation.cost": "sum of prices at the oracle's factors",
    "statistics.Allocation.before": "the normal law of the sum of variances",
    "statistics.Allocation.after": "the normal law at the oracle's factors",
    "statistics.SobolIndices.base": "a loop over the base samples",
    "statistics.SobolIndices.left_out": "a loop over the base samples",
    "statistics.SobolIndices.first": "closed form of a product of sums",
    "statistics.SobolIndices.total": "closed form of a product of sums",
    "statistics.SobolIndices.second": "closed form of a product of sums",
}


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Random sums of tolerances; one compiled function, and few Sobol designs."""
    for k in range(max(1, round(size / PER_CASE))):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        for judge in (_sums, _allocation, _correlated, _indices, _gradient)[: 5 if k < 2 else 4]:
            try:
                yield from judge(rng, text)
            except Exception as error:
                said = f"{judge.__name__}: {type(error).__name__}: {error}"[:250]
                yield Judged("statistics.Allocation.factors", CRASHED, math.nan, f"{said} | {text}")


def _sums(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    d = int(rng.integers(1, 6))
    g, s = rng.normal(size=d), 10.0 ** rng.uniform(-4, 2, d)
    g[rng.random(d) < 0.2] = 0.0
    if rng.random() < 0.1:
        g[:] = 0.0
    r = None
    if rng.random() < 0.6:
        a = rng.normal(size=(d, int(rng.integers(1, d + 1))))  # also singular
        v = a @ a.T + 1e-300 * np.eye(d)
        r = v / np.sqrt(np.outer(np.diag(v), np.diag(v)))
    names = tuple(f"x{i}" for i in range(d))
    found = st.Sensitivity(names, names, np.array(1.0), g, s, r)
    whole = np.eye(d) if r is None else r
    each = [math.fsum(g[i] * s[i] * whole[i, j] * g[j] * s[j] for j in range(d)) for i in range(d)]
    variance, size = math.fsum(each), float(np.sum(np.abs(g * s)))
    key = "statistics.Sensitivity."
    wanted = [float(x * y) for x, y in zip(g, s, strict=True)]
    yield compare(f"{key}parts", found.parts, wanted, limit=1e-15, detail=text)
    # The root of what is left of numbers that cancel.
    off = abs(float(found.spread) ** 2 - max(variance, 0.0))
    yield compare(f"{key}spread", off, 0.0, limit=1e-13, scale=size**2, detail=text)
    drawn = rng.normal(size=(4000, d))
    values, vectors = np.linalg.eigh(whole)
    y = (drawn * np.sqrt(np.maximum(values, 0.0))) @ vectors.T @ (g * s)
    off = abs(float(np.var(y)) - variance)  # √(2/n) of a normal one's variance, six times
    yield compare(
        f"{key}spread", off, 0.0, limit=0.14, scale=max(variance, 1e-12 * size**2), detail=text
    )
    if variance > 1e-6 * size**2 or size == 0.0:
        shares = np.array(each) / variance if size else np.zeros(d)
        yield compare(f"{key}shares", found.shares, shares, limit=1e-9, scale=1.0, detail=text)


def _yield(mean: float, std: float, low: float, high: float) -> float:
    law = NormalDist()

    def below(x: float) -> float:
        z = (x - mean) / std if math.isfinite(x) else math.copysign(40.0, x)
        return law.cdf(z)

    return below(high) - below(low)


def _largest(mean: float, low: float, high: float, share: float) -> float:
    """The standard deviation that keeps that share, by bisection of its logarithm."""
    reach = min(mean - low, high - mean)
    a, b = math.log(1e-4 * reach), math.log(1e4 * reach)
    for _ in range(80):
        c = 0.5 * (a + b)
        a, b = (c, b) if _yield(mean, math.exp(c), low, high) > share else (a, c)
    return math.exp(0.5 * (a + b))


def _limit(rng: np.random.Generator, spread: float) -> tuple[float, float, float]:
    """Mean and limits: both, or one at infinity."""
    mean, room = float(rng.normal()), spread * rng.uniform(0.5, 4.0, 2)
    kind = rng.integers(4)
    low = -math.inf if kind == 0 else mean - float(room[0])
    return mean, low, math.inf if kind == 1 else mean + float(room[1])


def _allocation(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Independent inputs and one limit: 1/f² of each price over 2 λ f of its variance."""
    d, least = int(rng.integers(1, 6)), float(rng.choice([0.05, 0.3]))
    g, s = rng.normal(size=d), 10.0 ** rng.uniform(-2, 1, d)
    v, prices = (g * s) ** 2, 10.0 ** rng.uniform(-1, 1, d)
    mean, low, high = _limit(rng, math.sqrt(v.sum()))
    share = float(rng.choice([0.9, 0.99, 0.9973]))
    names = tuple(f"x{i}" for i in range(d))
    limit = st.Limit(st.Sensitivity(names, names, np.array(mean), g, s), low, high)
    bound = _largest(mean, low, high, share) ** 2
    text = f"limits {low} {high}, least {least}, {text}"

    def factors(multiplier: float) -> np.ndarray:
        return np.clip((prices / (2.0 * multiplier * v)) ** (1.0 / 3.0), least, 1.0)

    cost = dict(zip(names, prices, strict=True))
    if least**2 * v.sum() > bound * (1.0 + 1e-9):
        try:
            st.allocate([limit], share, cost=cost, least=least)
            outcome = WRONG
        except ValueError:
            outcome = REFUSED
        yield Judged("statistics.Allocation.factors", outcome, math.nan, f"impossible, {text}")
        return
    a, b = -80.0, 80.0
    for _ in range(120):
        c = 0.5 * (a + b)
        a, b = (c, b) if factors(math.exp(c)) ** 2 @ v > bound else (a, c)
    f = np.ones(d) if v.sum() <= bound else factors(math.exp(b))
    found = st.allocate([limit], share, cost=cost, least=least)
    yield from _allocated(
        found, f, prices, limit, v.sum(), float(f**2 @ v), (mean, low, high), text
    )


def _allocated(
    found: Any, f: np.ndarray, prices: np.ndarray, limit: Any, old: float, new: float, ends: Any,
    text: str,
) -> Iterator[Judged]:  # fmt: skip
    key = "statistics.Allocation."
    got = list(found.factors.values())
    cost = float(prices @ (1.0 / f - 1.0))
    yield compare(f"{key}factors", got, f, limit=1e-4, detail=text)
    yield compare(f"{key}cost", found.cost, cost, limit=1e-6, scale=prices.sum(), detail=text)
    mean, low, high = ends
    before, after = (_yield(mean, math.sqrt(x), low, high) for x in (old, new))
    yield compare(f"{key}before", found.before, [before], limit=1e-12, detail=text)
    yield compare(f"{key}after", found.after, [after], limit=1e-6, detail=text)


def _correlated(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Two inputs that scatter together: the second factor follows from the first."""
    s, r = 10.0 ** rng.uniform(-1, 1, 2), float(rng.choice([-0.6, 0.5, 0.9]))
    prices, names, share = 10.0 ** rng.uniform(-1, 1, 2), ("x0", "x1"), 0.99
    whole = np.array([[s[0] ** 2, r * s[0] * s[1]], [r * s[0] * s[1], s[1] ** 2]])
    mean, low, high = _limit(rng, math.sqrt(whole.sum()))
    rows = np.array([[1.0, r], [r, 1.0]])
    limit = st.Limit(st.Sensitivity(names, names, np.array(mean), np.ones(2), s, rows), low, high)
    bound = _largest(mean, low, high, share) ** 2
    if whole.sum() <= bound or 0.05**2 * whole.sum() > 0.9 * bound:
        return

    def second(x: float) -> float:
        """The largest factor, of 1 at most, that keeps the limit; NaN if none."""
        p, q = x * whole[0, 1], x * x * whole[0, 0] - bound
        inside = p * p - whole[1, 1] * q
        if inside < 0.0:
            return math.nan
        low, high = ((-p + sign * math.sqrt(inside)) / whole[1, 1] for sign in (-1.0, 1.0))
        return min(high, 1.0) if high >= 0.05 and low <= 1.0 else math.nan

    def cost(x: float) -> float:
        y = second(x)
        return math.inf if math.isnan(y) else float(prices @ (1.0 / np.array([x, y]) - 1.0))

    grid = np.linspace(0.05, 1.0, 2001)
    for _ in range(4):
        best = float(min(grid, key=cost))
        step = grid[1] - grid[0]
        grid = np.linspace(max(best - step, 0.05), min(best + step, 1.0), 201)
    f = np.array([best, second(best)])
    found = st.allocate([limit], share, cost=dict(zip(names, prices, strict=True)))
    text = f"correlated {r}, limits {low} {high}, {text}"
    yield compare(
        "statistics.Allocation.cost", found.cost, cost(best),
        limit=1e-6, scale=prices.sum(), detail=text,
    )  # fmt: skip
    new = float(f @ whole @ f)
    for ending, got, variance in (
        ("before", found.before, whole.sum()),
        ("after", found.after, new),
    ):
        wanted = [_yield(mean, math.sqrt(variance), low, high)]
        yield compare(f"statistics.Allocation.{ending}", got, wanted, limit=1e-6, detail=text)


def _indices(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """``(a x + b y)(1 + c z)`` of independent uniform numbers, some rows missing."""
    a, b, c = rng.uniform(0.3, 2.0, 3) * rng.choice([0.0, 1.0], 3, p=[0.2, 0.8])
    inputs = {n: (0.0, sampling.Uniform(math.sqrt(3.0))) for n in "xyz"}
    design = sampling.Saltelli(1024, second_order=True)
    sampler = sampling.Sampler(inputs, design, seed=int(rng.integers(1000)))
    x = sampler.draw(0, sampler.count)
    y = (a * x["x"] + b * x["y"]) * (1.0 + c * x["z"]) + float(rng.normal())
    bad = rng.random(len(y)) < float(rng.choice([0.0, 0.002]))
    if a == b == 0.0:
        y[:] = y[0]
    y[bad] = np.nan
    rows = bad.reshape(1024, -1).any(axis=1)
    found = st.sobol_indices(design, sampler.space, y)
    key, text = "statistics.SobolIndices.", f"a {a:.3f} b {b:.3f} c {c:.3f}, {text}"
    yield compare(f"{key}base", found.base, int((~rows).sum()), limit=0.0, detail=text)
    yield compare(f"{key}left_out", found.left_out, int(rows.sum()), limit=0.0, detail=text)
    xx, yy, xz, yz = a * a, b * b, (a * c) ** 2, (b * c) ** 2
    variance = (xx + yy + xz + yz) or 1.0
    wanted = np.array([xx, yy, 0.0]) / variance
    yield compare(f"{key}first", found.first, wanted, limit=0.2, scale=1.0, detail=text)
    wanted = np.array([xx + xz, yy + yz, xz + yz]) / variance
    yield compare(f"{key}total", found.total, wanted, limit=0.2, scale=1.0, detail=text)
    second = np.asarray(found.second)
    pairs = [second[0, 1], second[0, 2], second[1, 2]]
    wanted = np.array([0.0, xz, yz]) / variance
    yield compare(f"{key}second", pairs, wanted, limit=0.3, scale=1.0, detail=text)


def _gradient(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Of ``p·A p + b k`` by the components of p and by k."""
    a, b, p, k = rng.normal(size=(3, 3)), float(rng.normal()), rng.normal(size=3), rng.normal()
    s = np.array([0.1, 0.0, 0.2])
    found = st.sensitivities(
        lambda x: {"y": x["p"] @ a @ x["p"] + b * x["k"]},
        {"p": p, "k": float(k)},
        {"p": s, "k": 0.3},
    )["y"]
    key, slope = "statistics.Sensitivity.", (a + a.T) @ p
    value = float(p @ a @ p + b * k)
    yield compare(f"{key}nominal", found.nominal, value, limit=1e-13, scale=10.0, detail=text)
    wanted = np.array([slope[0], slope[2], b])
    yield compare(f"{key}gradient", found.gradient, wanted, limit=1e-13, scale=10.0, detail=text)
    yield compare(f"{key}std", found.std, [0.1, 0.2, 0.3], limit=1e-15, detail=text)
