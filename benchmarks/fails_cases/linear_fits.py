"""Linear identifications, of a pendulum's mass and an offset, against least squares in NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import jaxmbd as mbd
from fails_cases.judged import Judged, compare, or_crash
from jaxmbd.design import Within
from jaxmbd.identification import identifiability, identify_each
from jaxmbd.observe import HoldingEffort, Sweep

PER_CASE = 22
_FIT = "normal equations of the pendulum's torque in closed form"
_LOOP = "a loop over the samples"
_NOISE = "noise over the distances of the closed form's columns"
NUMBERS = {
    "identify": _FIT,
    "identification.Identified.estimates": _FIT,
    "identification.Identified.values": _FIT,
    "identification.Identified.standard_errors": _FIT,
    "identification.Identified.errors": _FIT,
    "identification.Identified.covariance": _FIT,
    "identification.Identified.correlation": _FIT,
    "identification.Identified.degrees_of_freedom": _LOOP,
    "identification.Identified.noise_levels": "what was given; root of the squares that are left",
    "identification.Identified.residuals": _FIT,
    "identification.Identified.converged": "that a linear fit within its limits has one minimum",
    "identification.Identified.ambiguities": "rank of the closed form's columns",
    "identification.Identified.checks": "one channel was measured",
    "identification.ResidualCheck.count": _LOOP,
    "identification.ResidualCheck.missing": _LOOP,
    "identification.ResidualCheck.outliers": _LOOP,
    "identification.ResidualCheck.rms": _LOOP,
    "identification.ResidualCheck.neighbours": _LOOP,
    "identification.ResidualCheck.correlated": f"{_LOOP}, four deviations of chance",
    "identification.Interval.value": _FIT,
    "identification.Interval.low": f"{_FIT}, SciPy's normal and Student's laws",
    "identification.Interval.high": f"{_FIT}, SciPy's normal and Student's laws",
    "identification.Interval.lowest": f"{_FIT}, SciPy's normal and Student's laws",
    "identification.Interval.highest": f"{_FIT}, SciPy's normal and Student's laws",
    "identification.Interval.places": "the sweep's angles",
    "identification.Identifiability.errors": _NOISE,
    "identification.Identifiability.correlation": _NOISE,
    "identification.Identifiability.without": f"{_NOISE}, of the other channel alone",
    "identification.Identifiability.sigma": "what was given",
    "identification.Identifiability.ambiguities": "rank of the closed form's columns",
    "identification.Ambiguity.determined": "that torque has mass times gravity alone",
    "identification.Ambiguity.open": "unknowns less the rank",
    "identification.Combination.coefficients": "that torque has mass times gravity alone",
    "identification.Combination.product": "that torque has mass times gravity alone",
    "identification.Combination.value": "mass times gravity",
    "identification.Combination.error": _NOISE,
}
UNKNOWN: tuple[str, str] = ("bodies/bob/mass", "offset/torque")
WEIGHT, NOISE = 9.81, 0.05


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Many sets of data of one sweep, some of their samples missing: two batches."""
    rng = np.random.default_rng(seed)
    angles = np.linspace(0.0, float(rng.uniform(0.3, 3.0)), 12)
    weigh = Sweep({"hinge": angles}, {"torque": HoldingEffort("hinge")})
    columns = np.stack([-WEIGHT * np.cos(angles), np.ones(12)], axis=1)
    count = max(2, round(size / PER_CASE / 2))
    for noise in ({"torque": NOISE}, None):
        data = [_measured(rng, columns) for _ in range(count)]
        text = f"angles to {angles[-1]:.3f}, noise {noise}, default_rng({seed})"
        yield from or_crash("identify", _fits(weigh, columns, angles, data, noise, text), text)
    text = f"default_rng({seed})"
    parts = (
        _expected(weigh, columns, text),
        _without(angles, columns, text),
        _patterns(rng, count, text),
    )
    for cases in parts:
        yield from or_crash("identification.Identifiability.errors", cases, text)


def _fits(
    weigh: Sweep, columns: Any, angles: Any, data: list[Any], noise: Any, text: str
) -> Iterator[Judged]:
    found = identify_each(
        mbd.zoo.simple_pendulum(),
        {UNKNOWN[0]: Within(0.6), UNKNOWN[1]: Within(5.0)},
        [{"torque": y} for y in data], weigh, noise=noise,
    )  # fmt: skip
    for k, (fit, y) in enumerate(zip(found, data, strict=True)):
        yield from _fitted(fit, y, columns, angles, noise is None, f"data {k}, {text}")


def _measured(rng: np.random.Generator, columns: np.ndarray) -> np.ndarray:
    true = np.array([rng.uniform(0.7, 1.3), rng.normal()])
    y = columns @ true + NOISE * rng.normal(size=len(columns))
    y[rng.random(len(y)) < float(rng.choice([0.0, 0.3, 0.6]))] = np.nan
    while np.isfinite(y).sum() < 4:
        y[rng.integers(len(y))] = columns[0] @ true
    return y


def _fitted(
    found: Any, y: np.ndarray, columns: np.ndarray, angles: np.ndarray, estimated: bool, text: str
) -> Iterator[Judged]:
    from scipy import stats

    name, here = "identification.Identified.", np.isfinite(y)
    a = columns[here]
    normal = np.linalg.inv(a.T @ a)
    best = normal @ (a.T @ y[here])
    left = y - columns @ best
    free = int(here.sum()) - 2
    sigma = math.sqrt(np.nansum(left**2) / free) if estimated else NOISE
    covariance = sigma**2 * normal
    errors = np.sqrt(np.diag(covariance))
    steep = math.sqrt(float(np.linalg.cond(a)))  # of the search, which ends at 1e-10 of the squares
    if abs(best[0] - 1.0) > 0.59 or abs(best[1]) > 4.9:
        return  # beyond the limits
    # The search ends where the squares change by less than 1e-10 of themselves: 1e-5 of an error.
    limit = 1e-4
    off = (found.estimates - best) / errors
    yield compare(f"{name}estimates", off, [0.0, 0.0], limit=limit, scale=1.0, detail=text)
    off = (np.array([found.values[n] for n in UNKNOWN]) - best) / errors
    yield compare(f"{name}values", off, [0.0, 0.0], limit=limit, scale=1.0, detail=text)
    yield compare("identify", off, [0.0, 0.0], limit=limit, scale=1.0, detail=text)
    for ending, got in (
        ("standard_errors", found.standard_errors),
        ("errors", [found.errors[n] for n in UNKNOWN]),
    ):
        ratio = np.array(got) / errors
        yield compare(f"{name}{ending}", ratio, [1.0, 1.0], limit=1e-6 * steep, detail=text)
    scale = np.outer(errors, errors)
    ratio, unit = found.covariance / scale, covariance / scale
    yield compare(f"{name}covariance", ratio, unit, limit=1e-6 * steep, detail=text)
    yield compare(f"{name}correlation", found.correlation, unit, limit=1e-6 * steep, detail=text)
    yield compare(
        f"{name}degrees_of_freedom", found.degrees_of_freedom, free, limit=0.0, detail=text
    )
    level = found.noise_levels["torque"]
    yield compare(f"{name}noise_levels", level, sigma, limit=1e-6, detail=text)
    yield compare(f"{name}residuals", found.residuals, left / sigma, limit=1e-4, detail=text)
    yield compare(f"{name}converged", found.converged, True, limit=0.0, detail=text)
    yield compare(f"{name}ambiguities", len(found.ambiguities), 0, limit=0.0, detail=text)
    yield compare(f"{name}checks", len(found.checks), 1, limit=0.0, detail=text)
    check, r = found.checks[0], (left / sigma)[here]
    near = r[np.abs(r) <= 4.0]
    key = "identification.ResidualCheck."
    for ending, wanted in (
        ("count", len(r)),
        ("missing", 12 - len(r)),
        ("outliers", len(r) - len(near)),
        ("rms", math.sqrt(math.fsum(near**2) / len(near)) if len(near) else math.nan),
    ):
        yield compare(f"{key}{ending}", getattr(check, ending), wanted, limit=1e-6, detail=text)
    yield from _predicted(found, columns, best, covariance, sigma, angles, (
        stats.t.ppf(0.975, free) if estimated else stats.norm.ppf(0.975)), text)  # fmt: skip


def _predicted(
    found: Any, columns: np.ndarray, best: np.ndarray, covariance: np.ndarray, sigma: float,
    angles: np.ndarray, factor: Any, text: str,
) -> Iterator[Judged]:  # fmt: skip
    got, key = found.predict(level=0.95)["torque"], "identification.Interval."
    value = columns @ best
    sure = np.sqrt(np.sum((columns @ covariance) * columns, axis=1))
    half, whole = factor * sure, factor * np.hypot(sure, sigma)
    for ending, wanted in (
        ("value", value),
        ("low", value - half),
        ("high", value + half),
        ("lowest", value - whole),
        ("highest", value + whole),
        ("places", angles),
    ):
        yield compare(
            f"{key}{ending}", getattr(got, ending), wanted, limit=1e-5, scale=1.0, detail=text
        )


def _expected(weigh: Any, columns: np.ndarray, text: str) -> Iterator[Judged]:
    """Of mass and offset; and of mass and gravity, of which there is only the product."""
    name, noise = "identification.Identifiability.", {"torque": NOISE}
    vary: dict[str, Any] = {n: Within(0.5) for n in UNKNOWN}
    found = identifiability(mbd.zoo.simple_pendulum(), vary, weigh, noise)
    covariance = NOISE**2 * np.linalg.inv(columns.T @ columns)
    errors = np.sqrt(np.diag(covariance))
    ratio = np.array([found.errors[n] for n in UNKNOWN]) / errors
    steep = float(np.linalg.cond(columns))
    yield compare(f"{name}errors", ratio, [1.0, 1.0], limit=1e-10 * steep, detail=text)
    unit = covariance / np.outer(errors, errors)
    yield compare(f"{name}correlation", found.correlation, unit, limit=1e-10 * steep, detail=text)
    yield compare(f"{name}sigma", found.sigma, np.full(12, NOISE), limit=0.0, detail=text)
    yield compare(f"{name}ambiguities", len(found.ambiguities), 0, limit=0.0, detail=text)
    pair: tuple[str, str] = ("bodies/bob/mass", "gravity/y")
    found = identifiability(mbd.zoo.simple_pendulum(), {n: Within(0.5) for n in pair}, weigh, noise)
    inverse = [1.0 / found.errors[n] for n in pair]
    yield compare(f"{name}errors", inverse, [0.0, 0.0], limit=0.0, scale=1.0, detail=text)
    yield compare(
        f"{name}correlation", found.correlation, np.full((2, 2), np.nan), limit=0.0, detail=text
    )
    yield compare(f"{name}ambiguities", len(found.ambiguities), 1, limit=0.0, detail=text)
    group = found.ambiguities[0]
    key = "identification.Ambiguity."
    yield compare(f"{key}determined", len(group.determined), 1, limit=0.0, detail=text)
    yield compare(f"{key}open", len(group.open), 1, limit=0.0, detail=text)
    whole, key = group.determined[0], "identification.Combination."
    c = np.array(whole.coefficients)
    yield compare(f"{key}product", whole.product, True, limit=0.0, detail=text)
    yield compare(f"{key}coefficients", c / c[0], [1.0, 1.0], limit=1e-6, detail=text)
    value = WEIGHT ** c[0]  # of a mass of 1 kg, and gravity along −y
    yield compare(f"{key}value", abs(whole.value), value, limit=1e-6, detail=text)
    lever = float(np.linalg.norm(columns[:, 0] / WEIGHT))
    error = NOISE / lever * abs(c[0]) * value / WEIGHT
    yield compare(f"{key}error", whole.error, error, limit=1e-6, detail=text)


def _without(angles: np.ndarray, columns: np.ndarray, text: str) -> Iterator[Judged]:
    """Two channels, the torque and twice the torque: each alone tells as much as its noise lets."""
    torque = HoldingEffort("hinge")
    weigh = Sweep({"hinge": angles}, {"torque": torque, "twice": 2.0 * torque})
    noise = {"torque": NOISE, "twice": 7.0 * NOISE}
    mass = UNKNOWN[0]
    found = identifiability(mbd.zoo.simple_pendulum(), {mass: Within(0.5)}, weigh, noise)
    lever = float(np.linalg.norm(columns[:, 0]))
    for channel, wanted in (("torque", 3.5 * NOISE / lever), ("twice", NOISE / lever)):
        got = found.without[channel][mass]
        yield compare(
            "identification.Identifiability.without", got, wanted,
            limit=1e-8, detail=f"without {channel}, {text}",
        )  # fmt: skip


def _patterns(rng: np.random.Generator, count: int, text: str) -> Iterator[Judged]:
    """Residuals of many data: noise alone, or a wave of its size beside it."""
    angles = np.linspace(0.0, 2.0, 80)
    weigh = Sweep({"hinge": angles}, {"torque": HoldingEffort("hinge")})
    data, waves = [], []
    for _ in range(count):
        y = -WEIGHT * np.cos(angles) + NOISE * rng.normal(size=80)
        waves.append(bool(rng.random() < 0.5))
        y += 3.0 * NOISE * np.sin(8.0 * angles) if waves[-1] else 0.0
        y[rng.random(80) < float(rng.choice([0.0, 0.3]))] = np.nan
        data.append(y)
    fits = identify_each(
        mbd.zoo.simple_pendulum(), {UNKNOWN[0]: Within(0.6)}, [{"torque": y} for y in data],
        weigh, noise={"torque": NOISE},
    )  # fmt: skip
    key = "identification.ResidualCheck."
    for k, (fit, y, wave) in enumerate(zip(fits, data, waves, strict=True)):
        here, check = np.isfinite(y), fit.checks[0]
        a = -WEIGHT * np.cos(angles)
        left = (y - a * float(a[here] @ y[here]) / float(a[here] @ a[here])) / NOISE
        r = [min(max(float(x), -4.0), 4.0) for x in left]  # outliers count as four deviations
        pairs = [x * z for x, z in zip(r[1:], r[:-1], strict=True) if math.isfinite(x * z)]
        square = math.fsum(x * x for x in r if math.isfinite(x)) / int(here.sum())
        wanted = math.fsum(pairs) / len(pairs) / square
        said = f"data {k}, wave {wave}, {text}"
        yield compare(
            f"{key}neighbours", check.neighbours, wanted, limit=1e-4, detail=said, scale=1.0
        )
        # Four deviations of chance: none of these data has them without a wave, most have with one.
        deviations = abs(wanted) * math.sqrt(len(pairs))
        if abs(deviations - 4.0) > 0.01:
            expected = deviations > 4.0
            yield compare(f"{key}correlated", check.correlated, expected, limit=0.0, detail=said)
