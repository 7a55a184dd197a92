"""Statistics of samples: of few, missing, equal, tied or far from zero, against exact sums."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from fails_cases.judged import CRASHED, REFUSED, WRONG, Judged, compare
from jaxmbd import statistics as st

SHARE = 4.0
_MOMENTS = "sums of fractions over the samples that have a value"
_ORDER = "loops over the sorted samples"
NUMBERS = {
    "statistics.counted": "a loop over the samples",
    "statistics.Envelope.count": "a loop over the samples",
    "statistics.Envelope.left_out": "a loop over the samples",
    "statistics.Envelope.mean": _MOMENTS,
    "statistics.Envelope.std": _MOMENTS,
    "statistics.Envelope.low": _ORDER,
    "statistics.Envelope.high": _ORDER,
    "statistics.Envelope.levels": "those that were asked for",
    "statistics.Envelope.quantiles": _ORDER,
    "statistics.Capability.count": "a loop over the samples",
    "statistics.Capability.left_out": "a loop over the samples",
    "statistics.Capability.mean": _MOMENTS,
    "statistics.Capability.std": _MOMENTS,
    "statistics.Capability.cp": _MOMENTS,
    "statistics.Capability.cpk": _MOMENTS,
    "statistics.Capability.passed": "a loop over the samples",
    "statistics.Capability.fraction": "a loop over the samples",
    "statistics.Capability.least": "Wilson's formula; binomial sums, bisected",
    "statistics.Capability.most": "Wilson's formula; binomial sums, bisected",
    "statistics.proportion_interval": "Wilson's formula; binomial sums, bisected",
    "statistics.Worst.largest": _ORDER,
    "statistics.Worst.smallest": _ORDER,
    "statistics.Worst.farthest": _ORDER,
    "statistics.Worst.critical": _ORDER,
    "statistics.Worst.margin": _ORDER,
    "statistics.Worst.left_out": "a loop over the samples",
    "statistics.Convergence.counts": "rising whole numbers up to the samples that have a value",
    "statistics.Convergence.estimate": f"{_MOMENTS}; {_ORDER}",
    "statistics.Convergence.low": f"{_MOMENTS}; order statistics by binomial sums",
    "statistics.Convergence.high": f"{_MOMENTS}; order statistics by binomial sums",
    "statistics.Convergence.left_out": "a loop over the samples",
    "statistics.Association.values": "mean ranks by comparing all pairs; sums of fractions",
    "statistics.Association.count": "a loop over the samples",
    "statistics.Association.left_out": "a loop over the samples",
    "statistics.Separation.larger": "all pairs of a failed and a passed sample",
    "statistics.Separation.chance": "normal law of the count of pairs, with ties",
    "statistics.Separation.failed": _ORDER,
    "statistics.Separation.passed": _ORDER,
    "statistics.failure_counts": "a loop over the samples",
}
PER_CASE = 40
LIMIT = 1e-9


def judged(seed: int, size: int) -> Iterator[Judged]:
    """All statistics of some samples, again and again."""
    for k in range(max(1, round(size / PER_CASE))):
        rng = np.random.default_rng([seed, k])
        kind, values, ok = samples(rng)
        text = f"samples {kind}, default_rng([{seed}, {k}])"
        for judge in (_spread, _limits, _worst, _settling, _associations, _failures):
            try:
                yield from judge(rng, values, ok, text)
            except ValueError as error:
                yield from _refused(judge, values, ok, text, error)
            except Exception as error:
                number = next(iter(NUMBERS))
                said = f"{judge.__name__}: {type(error).__name__}: {error}"[:200]
                yield Judged(number, CRASHED, math.nan, f"{said} | {text}")


KINDS = (
    "normal", "far from zero", "one", "two", "equal", "tied", "some missing", "all missing",
    "infinite", "long", "sorted", "tiny",
)  # fmt: skip


def samples(rng: np.random.Generator) -> tuple[str, np.ndarray, np.ndarray]:
    """Kind, values (n,) and which of them succeeded."""
    kind = str(rng.choice(KINDS))
    n = {"one": 1, "two": 2, "long": 200}.get(kind, int(rng.integers(3, 60)))
    x = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3) + rng.normal()
    if kind == "far from zero":
        x = x + 10.0 ** rng.uniform(3, 6)
    elif kind == "equal":
        x = np.full(n, x[0])
    elif kind == "tied":
        x = rng.choice([-1.0, 0.0, 0.1, 0.3], n)
    elif kind == "sorted":
        x = np.sort(x)
    elif kind == "tiny":
        x = x * 1e-150
    ok = np.ones(n, bool)
    if kind in ("some missing", "infinite", "long"):
        ok = rng.random(n) < 0.8
        x[rng.random(n) < 0.2] = np.nan if kind != "infinite" else np.inf
    if kind == "all missing":
        ok[:] = rng.random() < 0.5
        x[ok] = np.nan
    return kind, x, ok


def kept_of(values: np.ndarray, ok: np.ndarray) -> list[float]:
    """The values that count."""
    return [float(x) for x, good in zip(values, ok, strict=True) if good and math.isfinite(x)]


def mean_of(x: list[float]) -> float:
    """The mean of exact sums."""
    return float(sum(map(Fraction, x)) / len(x)) if x else math.nan


def std_of(x: list[float]) -> float:
    """The standard deviation (n − 1) of exact sums."""
    if len(x) < 2:
        return math.nan
    mean = sum(map(Fraction, x)) / len(x)
    return root(sum((Fraction(y) - mean) ** 2 for y in x) / (len(x) - 1))


def root(x: Any) -> float:
    """√x of a fraction, scaled so that it neither over- nor underflows."""
    if x == 0:
        return 0.0
    power = (x.numerator.bit_length() - x.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(float(x / Fraction(4) ** power)), power)


def quantile_of(x: list[float], level: float) -> float:
    """The quantile by straight lines between the sorted values, the ends at 0 and 1."""
    ordered = sorted(x)
    at = Fraction(level) * (len(x) - 1)
    below = min(int(at), len(x) - 1)
    above = min(below + 1, len(x) - 1)
    a, b = Fraction(ordered[below]), Fraction(ordered[above])
    return float(a + (at - below) * (b - a))


def binomial(k: int, n: int, p: float) -> float:
    """P(K ≤ k) of n trials."""
    if k < 0 or k >= n:
        return 0.0 if k < 0 else 1.0
    logs = (
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
        + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(k + 1)
    )  # fmt: skip
    return min(1.0, math.fsum(map(math.exp, logs)))


def interval(passed: int, n: int, confidence: float, method: str) -> tuple[float, float]:
    """Wilson's interval, or Clopper's and Pearson's."""
    tail = 0.5 - 0.5 * confidence
    if method == "wilson":
        z, p = NormalDist().inv_cdf(1.0 - tail), passed / n
        middle = (p + z * z / (2 * n)) / (1.0 + z * z / n)
        half = z / (1.0 + z * z / n) * math.sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n))
        return (0.0 if passed == 0 else middle - half), (1.0 if passed == n else middle + half)
    low = 0.0 if passed == 0 else _bisected(lambda p: 1.0 - binomial(passed - 1, n, p) - tail)
    high = 1.0 if passed == n else _bisected(lambda p: tail - binomial(passed, n, p))
    return low, high


def _bisected(rising: Any) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rising(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)


def _refused(
    judge: Any, values: np.ndarray, ok: np.ndarray, text: str, error: ValueError
) -> Iterator[Judged]:
    """An error is right only where no sample counts."""
    number = {
        _spread: "statistics.Envelope.mean",
        _worst: "statistics.Worst.largest",
        _settling: "statistics.Convergence.estimate",
    }.get(judge, "statistics.Capability.passed")
    right = judge in (_spread, _worst, _settling) and not kept_of(values, ok)
    yield Judged(number, REFUSED if right else WRONG, math.nan, f"{error} | {text}")


def _spread(rng: Any, values: np.ndarray, ok: np.ndarray, text: str) -> Iterator[Judged]:
    name, x = "statistics.Envelope.", kept_of(values, ok)
    yield exact("statistics.counted", st.counted(values, ok).sum(), len(x), text)
    levels = [0.0, float(rng.random()), 0.5, 1.0]
    found = st.envelope(values, ok, levels=levels)
    size = max(map(abs, x), default=0.0)
    yield exact(f"{name}count", found.count, len(x), text)
    yield exact(f"{name}left_out", found.left_out, len(values) - len(x), text)
    yield compare(f"{name}mean", found.mean, mean_of(x), limit=1e-13, scale=size, detail=text)
    yield compare(f"{name}std", found.std, std_of(x), limit=1e-12, scale=size, detail=text)
    yield exact(f"{name}low", found.low, min(x), text)
    yield exact(f"{name}high", found.high, max(x), text)
    yield exact(f"{name}levels", found.levels, levels, text)
    expected = [quantile_of(x, level) for level in levels]
    yield compare(
        f"{name}quantiles", found.quantiles, expected, limit=1e-13, scale=size, detail=text
    )


def exact(number: str, found: Any, expected: Any, text: str) -> Judged:
    """A whole number, or one that is one of the samples."""
    return compare(number, found, expected, limit=0.0, detail=text)


def _two_limits(rng: Any, x: list[float], values: np.ndarray) -> tuple[float | None, float | None]:
    """Limits about the values, at some of them, or at infinity."""
    a, b = sorted(rng.normal(size=2) * (np.ptp(x) if x else 1.0) * 2.0 + (x[0] if x else 0.0))
    a, b = float(a), float(b)
    if x and rng.random() < 0.2:
        a, b = min(x), max(x)
    if not a < b:
        b = a + max(1.0, abs(a))
    kind = rng.integers(5)
    if kind == 0:
        return None, b
    if kind == 1:
        return a, None
    if kind == 2:
        return -math.inf, b
    return a, b


def _limits(rng: Any, values: np.ndarray, ok: np.ndarray, text: str) -> Iterator[Judged]:
    name, x = "statistics.Capability.", kept_of(values, ok)
    low, high = _two_limits(rng, x, values)
    text = f"limits {low} {high}, {text}"
    confidence, method = (
        float(rng.choice([0.5, 0.95, 0.9973])),
        str(rng.choice(["wilson", "exact"])),
    )
    found = st.capability(values, ok, low=low, high=high, confidence=confidence, method=method)
    size = max(map(abs, x), default=0.0)
    yield exact(f"{name}count", found.count, len(x), text)
    yield exact(f"{name}left_out", found.left_out, len(values) - len(x), text)
    mean, std = mean_of(x), std_of(x)
    yield compare(f"{name}mean", found.mean, mean, limit=1e-13, scale=size, detail=text)
    yield compare(f"{name}std", found.std, std, limit=1e-12, scale=size, detail=text)
    a, b = -math.inf if low is None else low, math.inf if high is None else high
    passed = sum(a <= y <= b for y in x)
    yield exact(f"{name}passed", found.passed, passed, text)
    n = len(values)
    yield compare(f"{name}fraction", found.fraction, passed / n, limit=1e-15, detail=text)
    least, most = interval(passed, n, confidence, method)
    yield compare(f"{name}least", found.least, least, limit=LIMIT, scale=1e-3, detail=text)
    yield compare(f"{name}most", found.most, most, limit=LIMIT, scale=1e-3, detail=text)
    pair = st.proportion_interval(passed, n, confidence, method)
    expected = (least, most)
    yield compare("statistics.proportion_interval", pair, expected, limit=LIMIT, detail=text)
    # Of their inverses, which are finite where nothing scatters.
    width = math.nan if low is None or high is None else b - a
    room = min(mean - a, b - mean)
    for ending, value, inverse, scale in (
        ("cp", found.cp, 6.0 * std / width, size / (width or 1.0)),
        ("cpk", found.cpk, 3.0 * std / room if room else math.inf, size / (abs(room) or 1.0)),
    ):
        if math.isinf(inverse) or abs(scale) > 1e8:  # the mean at a limit: what is left is rounding
            continue
        back = math.inf if value == 0.0 else 1.0 / value
        if math.isinf(back) and inverse == 0.0:
            back = 0.0
        if std == 0.0 and room < 0.0 and ending == "cpk":
            right = -math.copysign(abs(back), value)  # -inf
            back, inverse = (right if value < 0.0 else math.nan), 0.0
        yield compare(
            f"{name}{ending}", back, inverse, limit=1e-9, scale=max(scale, 1e-6), detail=text
        )


def _worst(rng: Any, values: np.ndarray, ok: np.ndarray, text: str) -> Iterator[Judged]:
    name, x = "statistics.Worst.", kept_of(values, ok)
    low, high = _two_limits(rng, x, values)
    nominal = float(rng.choice([0.0, np.mean(x) if x else 1.0]))
    text = f"limits {low} {high}, nominal {nominal}, {text}"
    found = st.worst(values, ok, nominal=nominal, low=low, high=high)
    a, b = -math.inf if low is None else low, math.inf if high is None else high

    def far(y: float) -> float:
        return abs(y - nominal)

    def margin(y: float) -> float:
        return min(y - a, b - y)

    yield exact(f"{name}largest", values[found.largest], max(x), text)
    yield exact(f"{name}smallest", values[found.smallest], min(x), text)
    yield exact(f"{name}farthest", far(values[found.farthest]), max(map(far, x)), text)
    yield exact(f"{name}critical", margin(values[found.critical]), min(map(margin, x)), text)
    yield exact(f"{name}margin", found.margin, min(map(margin, x)), text)
    good = all(ok[k] for k in (found.largest, found.smallest, found.farthest, found.critical))
    yield exact(f"{name}left_out", (found.left_out, good), (len(values) - len(x), 1), text)


def _settling(rng: Any, values: np.ndarray, ok: np.ndarray, text: str) -> Iterator[Judged]:
    name, x = "statistics.Convergence.", kept_of(values, ok)
    confidence, level = float(rng.choice([0.5, 0.95])), float(rng.choice([0.05, 0.5, 0.99]))
    found = st.convergence_of_mean(values, ok, points=5, confidence=confidence)
    counts = found.counts
    rises = np.all(np.diff(counts) > 0) and counts[0] >= 1 and counts[-1] == len(x)
    yield exact(f"{name}counts", rises, True, text)
    yield exact(f"{name}left_out", found.left_out, len(values) - len(x), text)
    size = max(map(abs, x))
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    mean = np.array([mean_of(x[:n]) for n in counts])
    half = np.array([z * std_of(x[:n]) / math.sqrt(n) if n > 1 else math.inf for n in counts])
    known = np.isfinite(half)
    yield compare(f"{name}estimate", found.estimate, mean, limit=1e-12, scale=size, detail=text)
    # The root of a difference of squares: half of the digits where nothing scatters.
    for ending, ends in (("low", mean - half), ("high", mean + half)):
        got = getattr(found, ending)
        yield compare(
            f"{name}{ending}", got[known], ends[known], limit=1e-7, scale=size, detail=text
        )
        if not known.all():
            there = np.isinf(got[~known]).all()
            yield exact(f"{name}{ending}", there, True, f"one sample, {text}")
    found = st.convergence_of_quantile(values, level, ok, points=4, confidence=confidence)
    expected = [quantile_of(x[:n], level) for n in found.counts]
    yield compare(f"{name}estimate", found.estimate, expected, limit=1e-13, scale=size, detail=text)
    tail = 0.5 - 0.5 * confidence
    for k, n in enumerate(found.counts.tolist()):
        ordered = [-math.inf, *sorted(x[:n]), math.inf]
        chances = [binomial(i, n, level) for i in range(n + 1)]
        either: dict[str, set[float]] = {"low": set(), "high": set()}
        for nudge in (-1e-12, 1e-12):  # where a chance is the tail itself, either rank
            below = next(i for i, p in enumerate(chances) if p >= tail + nudge)
            above = next(i for i, p in enumerate(chances) if 1.0 - p <= tail + nudge) + 1
            either["low"].add(ordered[below])
            either["high"].add(ordered[min(above, n + 1)])
        for ending, allowed in either.items():
            right = float(getattr(found, ending)[k]) in allowed
            yield exact(f"{name}{ending}", right, True, f"quantile {level} of {n}, {text}")


def correlation(x: list[float], y: list[float]) -> float:
    """Pearson's coefficient by exact sums; NaN where one of the two is constant."""
    if not x:
        return math.nan
    a, b = ([Fraction(v) - sum(map(Fraction, z)) / len(z) for v in z] for z in (x, y))
    aa, bb = sum(v * v for v in a), sum(v * v for v in b)
    ab = sum(v * w for v, w in zip(a, b, strict=True))
    if aa == 0 or bb == 0:
        return math.nan
    return math.copysign(root(Fraction(ab) ** 2 / (aa * bb)), ab)


def ranks_of(x: list[float]) -> list[float]:
    """Mean ranks by comparing all pairs."""
    return [0.5 + sum(y < z for y in x) + 0.5 * sum(y == z for y in x) for z in x]


def _associations(rng: Any, values: np.ndarray, ok: np.ndarray, text: str) -> Iterator[Judged]:
    name, n = "statistics.Association.", len(values)
    kept = [i for i in range(n) if ok[i] and math.isfinite(values[i])]
    inputs = {
        "free": rng.normal(size=n),
        "follows": np.where(np.isfinite(values), values, 0.0) * rng.choice([-1.0, 2.0]),
        "tied": rng.choice([0.1, 0.3, 0.7], n),
        "only where it failed": np.where(np.isin(np.arange(n), kept), 0.1, 0.2),
        "constant": np.full(n, 0.1),
    }
    ranks = bool(rng.random() < 0.5)
    text = f"{'ranks' if ranks else 'values'}, {text}"
    found = st.correlations(inputs, values, ok, ranks=ranks)
    yield exact(f"{name}count", found.count, len(kept), text)
    yield exact(f"{name}left_out", found.left_out, n - len(kept), text)
    y = [float(values[i]) for i in kept]
    for label, value in zip(found.names, found.values, strict=True):
        x = [float(inputs[label][i]) for i in kept]
        wanted = correlation(ranks_of(x), ranks_of(y)) if ranks else correlation(x, y)
        # Where nothing varies it is shown as none.
        wanted = 0.0 if math.isnan(wanted) else wanted
        spread = min(np.ptp(z) / (max(map(abs, z)) or 1.0) or 1.0 for z in (x, y)) if x else 1.0
        limit = 1e-9 if ranks else 1e-12 / spread
        yield compare(
            f"{name}values", value, wanted, limit=limit, scale=1.0, detail=f"{label}, {text}"
        )


def _failures(rng: Any, values: np.ndarray, ok: np.ndarray, text: str) -> Iterator[Judged]:
    n, name = len(values), "statistics.Separation."
    status = rng.choice([0, 0, 1, 2, -7], n)
    counts = st.failure_counts(status, {1: "open"})
    named = {"open": 1, "status 2": 2, "status -7": -7}
    expected = {t: sum(int(s) == k for s in status) for t, k in named.items()}
    right = counts == {t: c for t, c in expected.items() if c}
    yield exact("statistics.failure_counts", right, True, text)
    inputs = {"free": rng.normal(size=n), "tied": rng.choice([0.1, 0.3], n)}
    for found in st.failure_map(inputs, ok):
        x = inputs[found.name]
        failed, passed = list(x[~ok]), list(x[ok])
        pairs = math.fsum((f > p) + 0.5 * (f == p) for f in failed for p in passed)
        m, k = len(failed), len(passed)
        tied = sum(t**3 - t for t in Counter(x.tolist()).values()) / ((m + k) * (m + k - 1))
        sigma = math.sqrt(m * k * (m + k + 1 - tied) / 12.0)
        chance = 2.0 * NormalDist().cdf(-abs(pairs - 0.5 * m * k) / sigma)
        for ending, wanted in (
            ("larger", pairs / (m * k)),
            ("chance", chance),
            ("failed", quantile_of(failed, 0.5)),
            ("passed", quantile_of(passed, 0.5)),
        ):
            yield compare(
                f"{name}{ending}", getattr(found, ending), wanted,
                limit=LIMIT, scale=1e-3, detail=f"{found.name}, {text}",
            )  # fmt: skip
