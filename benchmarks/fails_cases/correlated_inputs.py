"""Inputs that scatter together, what they cause, and how many samples have a value.

Drawn samples are the oracle of correlations: a mean of n products of standard numbers is off by
``√(kurtosis / n)``. The error of a Sobol index ``S = U / V``, means of ``u_i`` and ``v_i``, is that
of its first-order change by each base sample, ``ψ_i = (u_i − U − S (v_i − V)) / V``: ``std ψ/√n``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy import stats

from fails_cases.judged import CRASHED, FLAGGED, RIGHT, WRONG, Judged, compare
from jaxmbd import sampling as s
from jaxmbd import statistics as st

PER_CASE = 14
_DRAWN = "correlations of drawn samples"
_JACKKNIFE = "first-order changes of the index by each base sample"
_LOOP = "a loop over the samples"
NUMBERS = {
    "sampling.Sampler.covariance": f"what was given; {_DRAWN}",
    "sampling.Sampler.independent": f"what was given; {_DRAWN}",
    "sampling.Sampler.rank_correlation": f"{_DRAWN}; 6/π asin(r/2) of normal numbers",
    "statistics.Sensitivity.contributions": "sums over all pairs of numbers",
    "statistics.Sensitivity.correlation": "the covariance that was given, over its deviations",
    "statistics.SobolIndices.first_error": _JACKKNIFE,
    "statistics.SobolIndices.total_error": _JACKKNIFE,
    "statistics.SobolIndices.second_error": _JACKKNIFE,
    "statistics.ValueCount.samples": _LOOP,
    "statistics.ValueCount.count": _LOOP,
    "statistics.ValueCount.failed": _LOOP,
    "statistics.ValueCount.missing": _LOOP,
    "statistics.computed": _LOOP,
}
DRAWN = 4096
UNLIKELY = 6.5
"""Standard deviations that chance does not reach."""


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Samplers, sums of correlated numbers, Sobol designs and tables of samples."""
    for k in range(max(1, round(size / PER_CASE))):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        for judge in (_ranks, _normal, _contributions, _errors, _counts):
            try:
                yield from judge(rng, text)
            except Exception as error:
                said = f"{judge.__name__}: {type(error).__name__}: {error}"[:250]
                yield Judged(
                    "sampling.Sampler.rank_correlation", CRASHED, math.nan, f"{said} | {text}"
                )


def _law(rng: np.random.Generator) -> Any:
    return [
        s.Normal(float(10.0 ** rng.uniform(-3, 3))),
        s.Uniform(float(10.0 ** rng.uniform(-3, 3))),
        s.LogNormal(float(rng.uniform(0.01, 0.3))),
        s.Choice(np.sort(rng.normal(size=int(rng.integers(2, 6))))),
    ][rng.integers(4)]


def _independence(sampler: Any, links: bool, text: str) -> Judged:
    """No link must be denied; that there are none need not be noticed."""
    said = bool(sampler.independent)
    outcome = RIGHT if said != links else WRONG if links else FLAGGED
    return Judged("sampling.Sampler.independent", outcome, math.nan, text)


def _ranks(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Three inputs, two pairs of which are linked by their ranks."""
    laws = [_law(rng) for _ in range(3)]
    given = {
        ("a", "b"): float(rng.choice([0.0, -0.6, 0.4])),
        ("b", "c"): float(rng.uniform(-0.5, 0.5)),
    }
    if rng.random() < 0.3:
        given = {}
    inputs = {n: (float(rng.uniform(1, 2)), law) for n, law in zip("abc", laws, strict=True)}
    sampler = s.Sampler(
        inputs, s.MonteCarlo(), count=DRAWN, seed=int(rng.integers(99)), correlation=given or None
    )
    text = f"{[str(x)[:60] for x in laws]}, {given}, {text}"
    if sampler.problems():
        outcome = RIGHT if any(isinstance(x, s.Choice) for x in laws) else WRONG
        yield Judged("sampling.Sampler.rank_correlation", outcome, math.nan, f"refused, {text}")
        return
    yield _independence(sampler, any(given.values()), text)
    found = sampler.rank_correlation()
    told = {frozenset(p[:2]): p[2] for p in found.pairs} if found is not None else {}
    x = sampler.draw(0, DRAWN)
    for pair in (("a", "b"), ("b", "c"), ("a", "c")):
        r = told.get(frozenset(pair), 0.0)
        drawn = float(np.corrcoef(*(stats.rankdata(x[n]) for n in pair))[0, 1])
        yield compare(
            "sampling.Sampler.rank_correlation", r, drawn,
            limit=UNLIKELY / math.sqrt(DRAWN), scale=1.0, detail=f"{pair}, {text}",
        )  # fmt: skip
        if not any(isinstance(inputs[n][1], s.Choice) for n in pair):
            yield compare(
                "sampling.Sampler.rank_correlation", r, given.get(pair, 0.0),
                limit=1e-9, scale=1.0, detail=f"{pair} as given, {text}",
            )  # fmt: skip
    matrix, names = np.array(sampler.covariance().matrix), sampler.covariance().names
    columns = np.stack([x[n] for n in names])
    std = columns.std(axis=1)
    drawn = np.cov(columns) / np.outer(std, std)
    # Of a product of two standard numbers; its own variance is at most that of log-normal ones.
    limit = 2.0 * UNLIKELY / math.sqrt(DRAWN)
    yield compare(
        "sampling.Sampler.covariance", matrix / np.outer(std, std), drawn,
        limit=limit, scale=1.0, detail=text,
    )  # fmt: skip


def _normal(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Jointly normal numbers: a vector and a number, also of a singular covariance."""
    a = rng.normal(size=(4, int(rng.integers(1, 5)))) * 10.0 ** rng.uniform(-3, 3, (4, 1))
    diagonal = bool(rng.random() < 0.2)
    v = a @ a.T
    v = np.diag(np.diag(v)) if diagonal else v
    given = s.Covariance(["p", "k"], v)
    inputs = {"p": (np.zeros(3), None), "k": (1.0, None)}
    sampler = s.Sampler(inputs, s.Sobol(), count=DRAWN, correlation=given)
    text = f"covariance of rank {a.shape[1]}, {text}"
    if problems := sampler.problems():
        yield Judged("sampling.Sampler.covariance", CRASHED, math.nan, f"{problems[0]} | {text}")
        return
    std = np.sqrt(np.diag(v))
    scale = np.outer(std, std)
    found = sampler.covariance()
    yield compare(
        "sampling.Sampler.covariance", np.array(found.matrix) / scale, v / scale,
        limit=1e-9, detail=text,
    )  # fmt: skip
    yield _independence(sampler, not diagonal, text)
    ranks = sampler.rank_correlation()
    told = {frozenset(p[:2]): p[2] for p in ranks.pairs} if ranks is not None else {}
    names = ("p/x", "p/y", "p/z", "k")
    for i in range(4):
        for j in range(i):
            r = np.clip(v[i, j] / scale[i, j], -1.0, 1.0)
            want = 6.0 / math.pi * math.asin(0.5 * r)
            got = told.get(frozenset((names[i], names[j])), 0.0)
            yield compare(
                "sampling.Sampler.rank_correlation", got, want,
                limit=1e-9, scale=1.0, detail=f"{names[j]} and {names[i]}, {text}",
            )  # fmt: skip
    yield from _gradients(rng, v, text)


def _gradients(rng: np.random.Generator, v: np.ndarray, text: str) -> Iterator[Judged]:
    g = rng.normal(size=4)
    found = st.sensitivities(
        lambda x: {"y": g[:3] @ x["p"] + g[3] * x["k"]},
        {"p": np.zeros(3), "k": 1.0}, s.Covariance(["p", "k"], v),
    )["y"]  # fmt: skip
    std = np.sqrt(np.diag(v))
    key, wanted = "statistics.Sensitivity.", v / np.outer(std, std)
    yield compare(f"{key}correlation", found.correlation, wanted, limit=1e-14, detail=text)
    each = [math.fsum(g[i] * v[i, j] * g[j] for j in range(4)) for i in range(4)]
    size = float(np.sum(np.abs(g * std))) ** 2
    yield compare(
        f"{key}contributions", found.contributions, each, limit=1e-13, scale=size, detail=text
    )


def _contributions(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Of outputs of any shape; NaN where a derivative does not exist."""
    d, shape = int(rng.integers(1, 6)), [(), (3,), (2, 2)][rng.integers(3)]
    g, std = rng.normal(size=(*shape, d)), 10.0 ** rng.uniform(-6, 6, d)
    if rng.random() < 0.2:
        g[..., 0] = np.nan
    names, r = tuple(f"x{i}" for i in range(d)), None
    if rng.random() < 0.6:
        a = rng.normal(size=(d, d))
        v = a @ a.T
        r = v / np.sqrt(np.outer(np.diag(v), np.diag(v)))
    found = st.Sensitivity(names, names, np.zeros(shape), g, std, r)
    whole = np.eye(d) if r is None else r
    wanted = np.zeros_like(g)
    for at in np.ndindex(shape):
        y = g[at] * std
        for i in range(d):
            terms = [y[i] * whole[i, j] * y[j] for j in range(d) if r is not None or i == j]
            wanted[(*at, i)] = math.fsum(terms) if np.all(np.isfinite(terms)) else math.nan
    yield compare(
        "statistics.Sensitivity.contributions", found.contributions, wanted,
        limit=1e-13, scale=float(np.nansum(np.abs(g * std), axis=-1).max()) ** 2, detail=text,
    )  # fmt: skip


def _errors(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """``a x + b y + c x y`` of uniform numbers, or no variation at all."""
    a, b, c = rng.uniform(0.3, 2.0, 3) * rng.choice([0.0, 1.0], 3, p=[0.1, 0.9])
    n, confidence = 512, float(rng.choice([0.5, 0.95]))
    design = s.Saltelli(n, second_order=True)
    inputs = {m: (0.0, s.Uniform(1.0)) for m in "xy"}
    sampler = s.Sampler(inputs, design, seed=int(rng.integers(99)))
    x = sampler.draw(0, sampler.count)
    y = a * x["x"] + b * x["y"] + c * x["x"] * x["y"] + float(rng.normal())
    found = st.sobol_indices(
        design, sampler.space, y, confidence=confidence, resamples=200, seed=int(rng.integers(99))
    )
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    rows = y.reshape(n, -1) - y.mean()
    A, ab, ba, B = rows[:, 0], rows[:, 1:3].T, rows[:, 3:5].T, rows[:, 5]
    if np.ptp(y) == 0.0:
        first = total = [0.0, 0.0]
        second = 0.0
    else:
        first = [z * _spread(A, B, B * (ab[j] - A)) for j in (0, 1)]
        total = [z * _spread(A, B, 0.5 * (A - ab[j]) ** 2) for j in (0, 1)]
        mixed = ba[0] * ab[1] - A * B - B * (ab[0] - A) - B * (ab[1] - A)
        second = z * _spread(A, B, mixed)
    # Deviations of 200 resamples are known to 5 %; six times that.
    text = f"a {a:.3f} b {b:.3f} c {c:.3f}, confidence {confidence}, {text}"
    key = "statistics.SobolIndices."
    for ending, got, want in (
        ("first_error", found.first_error, first),
        ("total_error", found.total_error, total),
        ("second_error", np.asarray(found.second_error)[0, 1], second),
    ):
        for i, (x_, y_) in enumerate(zip(np.atleast_1d(got), np.atleast_1d(want), strict=True)):
            said = f"factor {i}, {text}"
            yield compare(f"{key}{ending}", x_, y_, limit=0.3, scale=1e-3, detail=said)


def _spread(A: np.ndarray, B: np.ndarray, u: np.ndarray) -> float:
    """The standard error of mean u over the variance of A and B."""
    middle = 0.5 * (A.mean() + B.mean())
    v = 0.5 * ((A - middle) ** 2 + (B - middle) ** 2)
    change = (u - u.mean() - u.mean() / v.mean() * (v - v.mean())) / v.mean()
    return float(change.std() / math.sqrt(len(u)))


def _counts(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """A table of samples: computed or not, failed or not, with a value or without."""
    import xarray

    n = int(rng.integers(1, 40))
    status = rng.choice([0, 0, 0, 2, 5, -1], n)
    number, curve = rng.normal(size=n), rng.normal(size=(n, 3))
    number[rng.random(n) < 0.2] = rng.choice([np.nan, np.inf])
    curve[rng.random((n, 3)) < 0.1] = np.nan
    role = {"role": "output"}
    table: dict[str, Any] = {
        "number": ("sample", number, role),
        "curve": (("sample", "place"), curve, role | {"path": "a/curve"}),
        "status": ("sample", status, {"role": "status"}),
    }
    found = st.value_counts(xarray.Dataset(table))
    text = f"{n} samples, {text}"
    there = [int(x) != -1 for x in status]
    yield compare(
        "statistics.computed", st.computed(xarray.Dataset(table)), there, limit=0.0, detail=text
    )
    samples = sum(there)
    failed = sum(int(x) not in (0, -1) for x in status)
    for name, values in (("number", number[:, None]), ("a/curve", curve)):
        count = sum(
            int(k) == 0 and all(math.isfinite(y) for y in row)
            for k, row in zip(status, values, strict=True)
        )
        each = {
            "samples": samples,
            "count": count,
            "failed": failed,
            "missing": samples - failed - count,
        }
        for ending, wanted in each.items():
            got = getattr(found[name], ending)
            yield compare(
                f"statistics.ValueCount.{ending}", got, wanted, limit=0.0, detail=f"{name}, {text}"
            )
