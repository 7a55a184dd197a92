"""Agents of random sizes and their returns, against networks and direct sums in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from scipy.stats import norm

from fails_cases.judged import Judged, compare
from jaxmbd import ml

PER_CASE = 6
_NETWORK = "layers of tanh units in NumPy"
NUMBERS = {
    "ml.Scale.updated": "mean and variance of all observations at once",
    "ml.best_action": _NETWORK,
    "ml.drawn_action": f"{_NETWORK}, and JAX's normal number of the key",
    "ml.log_density": "SciPy's normal density",
    "ml.value": _NETWORK,
    "ml.lambda_returns": "sums over all steps ahead, term by term",
}
LIMIT = 1e-11


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Agents and rows of steps at random."""
    for k in range(max(4, size // PER_CASE)):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        yield from _agent(rng, text)
        yield from _returns(rng, text)


def _agent(rng: Any, text: str) -> Iterator[Judged]:
    seen, actions, hidden = rng.integers(1, 6), rng.integers(1, 4), rng.integers(0, 3)
    sizes = [seen, *rng.integers(1, 9, hidden)]
    policy, worth = (
        [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in zip(s, s[1:], strict=False)]
        for s in ([*sizes, actions], [*sizes, 1])
    )
    rows = rng.normal(size=(int(rng.integers(3, 40)), seen)) * 10.0 ** rng.uniform(-3, 3, seen)
    rows = rows + rng.normal(size=seen)
    cut = len(rows) // 2
    scale = ml.Scale(np.zeros(()), np.zeros(seen), np.ones(seen)).updated(rows[:cut])
    scale = scale.updated(rows[cut:])
    for got, want in ((scale.mean, rows.mean(0)), (scale.variance, rows.var(0))):
        yield compare("ml.Scale.updated", got, want, limit=LIMIT, detail=text)
    spread, centre = 0.3 * rng.normal(size=actions), rng.normal(size=actions)
    half, at = 10.0 ** rng.uniform(-2, 2, actions), rows[0]
    agent = ml.Agent(policy, spread, worth, scale, centre, half)

    def network(layers: Any) -> np.ndarray:
        x = (at - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-12)
        for w, b in layers[:-1]:
            x = np.tanh(w @ x + b)
        return layers[-1][0] @ x + layers[-1][1]

    best, key = centre + half * np.tanh(network(policy)), jax.random.key(int(rng.integers(1e6)))
    noise = np.asarray(jax.random.normal(key, (int(actions),), float))
    drawn = best + half * np.exp(spread) * noise
    density = np.sum(norm.logpdf((drawn - centre) / half, (best - centre) / half, np.exp(spread)))
    big = float(np.max(np.abs(centre) + half))
    for name, got, want, size in (
        ("best_action", ml.best_action(agent, at), best, big),
        ("drawn_action", ml.drawn_action(agent, at, key), drawn, big),
        ("log_density", ml.log_density(agent, at, drawn), density, 1.0),
        ("value", ml.value(agent, at), network(worth)[0], 1.0),
    ):
        yield compare(f"ml.{name}", got, want, limit=1e-9, scale=size, detail=text)


def _returns(rng: Any, text: str) -> Iterator[Judged]:
    n, discount, trace = int(rng.integers(1, 12)), rng.uniform(), rng.uniform()
    reward, ahead = rng.normal(size=(2, n))
    over, cut = rng.random((2, n)) < 0.2
    got = ml.lambda_returns(reward, over, cut, ahead, discount=discount, trace=trace)

    def total(t: int) -> float:
        """The mean over all lengths k, of weight ``(1 − λ) λᵏ``, of k rewards and a value."""
        found, weight, gained = 0.0, 1.0, 0.0
        for k in range(t, n):
            gained += (1.0 - discount) * discount ** (k - t) * reward[k]
            if over[k]:
                return found + weight * gained
            here = gained + discount ** (k - t + 1) * ahead[k]
            if cut[k] or k == n - 1:
                return found + weight * here
            found += weight * (1.0 - trace) * here
            weight *= trace
        return found

    want = [total(t) for t in range(n)]
    yield compare("ml.lambda_returns", got, want, limit=LIMIT, scale=1.0, detail=text)
