"""Tolerance allocation: which scatter to tighten, and by how much, for a wanted yield.

To first order an output's variance is Σ v_i f_i², with v_i what factor i contributes now and f_i
what its scatter is multiplied with. A wanted yield bounds the standard deviation of each output.
The cost of a part rises as its tolerance shrinks, cost_i (1/f_i − 1) (Chase and Greenwood 1988);
the cheapest f is the solution of a convex problem in f_i².
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jaxmbd.sampling import Distribution, Scaled
from jaxmbd.sampling.normal_law import normal_probability
from jaxmbd.statistics.sensitivity import Sensitivity


class Limit(NamedTuple):
    """What a scalar output should keep, and how it scatters.

    Attributes:
        sensitivity: of the output.
        low, high: limits; infinite where there is none.
        mean: its mean, if a study knows it better than the nominal value.

    Example:
        >>> from jaxmbd.statistics import Limit, sensitivities
        >>> found = sensitivities(lambda x: {"y": 3.0 * x["a"]}, {"a": 1.0}, {"a": 0.1})
        >>> Limit(found["y"], low=2.5, high=3.5).high
        3.5
    """

    sensitivity: Sensitivity
    low: float = -np.inf
    high: float = np.inf
    mean: float | None = None


class Allocation(NamedTuple):
    """How to tighten the scatter of inputs.

    Attributes:
        factors: by name of the input, what its scatter is multiplied with; 1 is to leave it.
        cost: what that costs.
        before, after: yield of each limit, to first order and of normal outputs.

    Example:
        >>> from jaxmbd.statistics import Limit, allocate, sensitivities
        >>> found = sensitivities(lambda x: {"y": x["a"]}, {"a": 0.0}, {"a": 0.1})
        >>> wanted = allocate([Limit(found["y"], low=-0.1, high=0.1)], wanted=0.95)
        >>> {name: round(factor, 2) for name, factor in wanted.factors.items()}
        {'a': 0.51}
    """

    factors: dict[str, float]
    cost: float
    before: tuple[float, ...]
    after: tuple[float, ...]

    def apply(self, scatter: Mapping[str, Distribution]) -> dict[str, Distribution]:
        """The distributions tightened: for a new study, which shows the yield as it is."""
        return {
            n: Scaled(d, f) if (f := self.factors.get(n, 1.0)) < 1.0 else d
            for n, d in scatter.items()
        }


def allocate(
    limits: Sequence[Limit],
    wanted: float,
    *,
    cost: Mapping[str, float] | None = None,
    fixed: Sequence[str] = (),
    least: float = 0.05,
) -> Allocation:
    """The cheapest tightening for a wanted yield of all limits together.

    Each of m limits may be missed by (1 − wanted)/m of the parts, so that together at most
    1 − wanted are. Linear, of normal outputs: draw a study with the new distributions
    (`Allocation.apply`) to see what they give. If that is less, as of a peak or of another skewed
    output, give the mean of the first study as `Limit.mean`, or want more.

    Args:
        limits: outputs with limits.
        wanted: yield, between 0 and 1.
        cost: of halving the scatter of each input; 1 by default.
        fixed: inputs that cannot be tightened.
        least: smallest factor.

    Raises:
        ValueError: a gradient is not finite, a mean lies outside its limits, or even the smallest
            factors do not give the yield; the message says what they give.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import Limit, Sensitivity, allocate
        >>> names, gradient, std = ("a", "b"), np.ones(2), np.array([3.0, 1.0])
        >>> y = Sensitivity(names, names, np.array(0.0), gradient, std)
        >>> found = allocate([Limit(y, low=-5.0, high=5.0)], wanted=0.99)
        >>> {n: round(f, 2) for n, f in found.factors.items()}
        {'a': 0.55, 'b': 1.0}
    """
    if not 0.0 < wanted < 1.0:
        raise ValueError(f"the wanted yield must lie between 0 and 1, is {wanted:g}")
    for k, limit in enumerate(limits):
        if not np.all(np.isfinite(limit.sensitivity.gradient)):
            raise ValueError(
                f"limit {k + 1} of {len(limits)}: the gradient of this output is not finite, so "
                "nothing is known of what drives it"
            )
    names = list(dict.fromkeys(n for limit in limits for n in limit.sensitivity.owners))
    variances = np.array([_variances(limit.sensitivity, names) for limit in limits])
    share = 1.0 - (1.0 - wanted) / len(limits)
    bounds = np.array([_largest_std(limit, share) for limit in limits])
    free = np.array([n not in fixed for n in names])
    lowest = np.where(free, least, 1.0)
    if np.any(missed := variances @ lowest**2 > bounds**2):
        k = int(np.argmax(missed))
        best = _yield(limits[k], np.sqrt(variances[k] @ lowest**2))
        raise ValueError(
            f"limit {k + 1} of {len(limits)}: the tightest scatter gives a yield of {best:.4f}, "
            f"{share:.4f} is wanted"
        )
    prices = np.array([(cost or {}).get(n, 1.0) for n in names])
    factors = _cheapest(variances, bounds, prices, lowest)
    after = np.sqrt(variances @ factors**2)
    return Allocation(
        dict(zip(names, factors.tolist(), strict=True)),
        float(prices @ (1.0 / factors - 1.0)),
        tuple(_yield(x, s) for x, s in zip(limits, np.sqrt(variances.sum(axis=1)), strict=True)),
        tuple(_yield(x, s) for x, s in zip(limits, after, strict=True)),
    )


def _cheapest(
    variances: np.ndarray, bounds: np.ndarray, prices: np.ndarray, lowest: np.ndarray
) -> np.ndarray:
    """Factors f in [lowest, 1] that minimise Σ price/f with ``variances f² ≤ bounds²``.

    Its Lagrange conditions are f_i = (price_i / 2 Σ_k μ_k v_ki)^⅓, clipped; the multipliers μ ≥ 0
    maximise the dual function, which is concave and smooth: there are few of them.
    """
    from scipy import optimize

    rows = variances / bounds[:, None] ** 2  # rows @ f² ≤ 1

    def factors(multipliers: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            f = np.cbrt(prices / np.maximum(2.0 * multipliers @ rows, 1e-300))
        return np.clip(f, lowest, 1.0)

    def dual(log_multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        multipliers = np.exp(log_multipliers)
        f = factors(multipliers)
        excess = rows @ f**2 - 1.0
        return -float(prices @ (1.0 / f) + multipliers @ excess), -excess * multipliers

    if np.all(rows.sum(axis=1) <= 1.0):
        return np.ones_like(lowest)
    start = np.full(len(rows), np.log(prices.sum()))
    ends = [(-40.0, 60.0)] * len(rows)
    found = optimize.minimize(
        dual,
        start,
        jac=True,
        bounds=ends,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12},
    )
    f = factors(np.exp(found.x))
    return _feasible(f, rows, lowest)


def _feasible(f: np.ndarray, rows: np.ndarray, lowest: np.ndarray) -> np.ndarray:
    """`f` made smaller, all by one factor, until it keeps all bounds: by rounding errors."""
    low, high = 0.0, 1.0
    if np.all(rows @ f**2 <= 1.0):
        return f
    for _ in range(60):
        middle = 0.5 * (low + high)
        keeps = np.all(rows @ np.maximum(middle * f, lowest) ** 2 <= 1.0)
        low, high = (middle, high) if keeps else (low, middle)
    return np.maximum(low * f, lowest)


def _largest_std(limit: Limit, share: float) -> float:
    """The standard deviation with which a normal output keeps its limits with that probability."""
    from scipy import optimize

    mean = _mean(limit)
    if not limit.low < mean < limit.high:
        raise ValueError(
            f"a mean of {mean:g} is not between the limits {limit.low:g} and {limit.high:g}: "
            "no tightening helps, move the nominal value"
        )
    reach = min(mean - limit.low, limit.high - mean)
    if not np.isfinite(reach):
        raise ValueError("give a limit: low, high, or both")
    found = optimize.brentq(
        lambda s: _yield(limit, reach * np.exp(s)) - share, np.log(1e-3), np.log(1e3)
    )
    return float(reach * np.exp(np.asarray(found)))


def _yield(limit: Limit, std: float) -> float:
    if std == 0.0:
        return 1.0
    mean = _mean(limit)
    above, below = (limit.high - mean) / std, (limit.low - mean) / std
    return float(normal_probability(above) - normal_probability(below))


def _mean(limit: Limit) -> float:
    return float(limit.sensitivity.nominal if limit.mean is None else limit.mean)


def _variances(sensitivity: Sensitivity, names: Sequence[str]) -> np.ndarray:
    """What each input contributes to the variance: an input is tightened as a whole."""
    if np.ndim(sensitivity.nominal) != 0:
        raise ValueError(f"a limit is of one number, not of {np.shape(sensitivity.nominal)}")
    found = np.zeros(len(names))
    for owner, part in zip(sensitivity.owners, sensitivity.parts, strict=True):
        found[names.index(owner)] += part**2
    return found
