"""Curves that are wanted: deviations by loops over places, optima by normal equations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import jaxmbd as mbd
from fails_cases.judged import Judged, compare, or_crash
from jaxmbd.design import Between, Curve

PER_CASE = 4
_LOOP = "place by place: the target, or the nearest value in the band"
NUMBERS = {
    "design.Curve.deviation": _LOOP,
    "design.Curve.residuals": f"{_LOOP}, over scale and root of the count",
    "minimize, curves": "weighed normal equations of a polynomial's coefficients",
}


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Random curves, and polynomials that are brought to random targets."""
    for k in range(max(2, round(size / PER_CASE))):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        yield from or_crash("design.Curve.deviation", _deviations(rng, text), text)
        if k % 20 == 0:
            yield from or_crash("minimize, curves", _polynomial(rng, text), text)


def _deviations(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    n, size = int(rng.integers(1, 9)), 10.0 ** rng.uniform(-6, 3)
    y, scale = size * rng.normal(size=n), 10.0 ** rng.uniform(-3, 3, n)
    low = np.where(rng.random(n) < 0.3, -np.inf, size * rng.normal(size=n))
    high = np.where(rng.random(n) < 0.3, np.inf, np.maximum(low, size * rng.normal(size=n)))
    kind = str(rng.choice(["target", "both", "lower", "upper"]))
    limits = {
        "target": {"target": np.nan_to_num(low, neginf=0.0)},
        "both": {"lower": low, "upper": high},
        "lower": {"lower": low},
        "upper": {"upper": high},
    }[kind]
    curve, wanted = Curve("y", **limits, scale=scale), []
    for i in range(n):
        if kind == "target":
            wanted.append(y[i] - limits["target"][i])
        elif "lower" in limits and y[i] < low[i]:
            wanted.append(y[i] - low[i])
        elif "upper" in limits and y[i] > high[i]:
            wanted.append(y[i] - high[i])
        else:
            wanted.append(0.0)
    found = curve.deviation({"y": y})
    yield compare(
        "design.Curve.deviation", found, wanted, limit=1e-15, scale=size, detail=f"{kind}, {text}"
    )
    wanted = [d / s / n**0.5 for d, s in zip(wanted, scale, strict=True)]
    found = curve.residuals({"y": y})
    yield compare(
        "design.Curve.residuals", found, wanted, limit=1e-14,
        scale=size / float(scale.min()), detail=f"{kind}, {text}",
    )  # fmt: skip


def _polynomial(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    x = np.linspace(-1.0, 1.0, 9)
    powers, targets = x[:, None] ** np.arange(3), rng.normal(size=(2, 9))
    scales = 10.0 ** rng.uniform(-1, 1, (2, 9))

    def value(s):
        return powers @ s["c"]

    goals = [Curve(value, t, scale=s) for t, s in zip(targets, scales, strict=True)]
    limits = Between(-50.0 * np.ones(3), 50.0 * np.ones(3), start=np.zeros(3))
    found = mbd.minimize(goals, None, {"c": limits})
    weights = np.sum(1.0 / scales**2, axis=0)
    wanted = np.linalg.solve(
        powers.T @ (weights[:, None] * powers), powers.T @ np.sum(targets / scales**2, axis=0)
    )
    ok = found.status == "optimal"
    got = list(found.values.values())
    yield compare("minimize, curves", got, wanted, limit=1e-7, scale=1.0, detail=text, ok=ok)
