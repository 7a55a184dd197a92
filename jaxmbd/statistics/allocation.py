"""Tolerance allocation: which scatter to tighten, and by how much, for a wanted yield.

To first order an output's variance is Σ f_i V_ij f_j, with f_i what the scatter of input i is
multiplied with, and V_ij the covariance of what inputs i and j cause now; diagonal if they are
independent. A wanted yield bounds the standard deviation of each output. The cost of a part rises
as its tolerance shrinks, cost_i (1/f_i − 1) (Chase and Greenwood 1988); the cheapest f is the
solution of a convex problem,

    minimise Σ price_i / f_i   subject to   f V_k f ≤ 1,   least ≤ f_i ≤ 1 (or f_i = 1)

with positive semidefinite V_k, diagonal for independent inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from jaxmbd.plumbing import hint, listed, text_table
from jaxmbd.sampling import Distribution, Scaled
from jaxmbd.statistics.sensitivity import Sensitivity


def forms_at(forms: np.ndarray, f: np.ndarray) -> np.ndarray:
    """``f V f`` for each of the forms (m, n, n)."""
    return np.maximum(((forms @ f) @ f), 0.0)


def tightest(forms: np.ndarray, free: np.ndarray, least: float) -> np.ndarray:
    """Factors (n,) for which the largest form is least.

    They need not be the smallest ones: of two inputs whose effects cancel each other, to tighten
    one alone makes it worse.
    """
    smallest = np.where(free, least, 1.0)
    diagonal = np.count_nonzero(forms) == np.count_nonzero(np.diagonal(forms, axis1=1, axis2=2))
    if diagonal or least == 1.0 or not free.any():
        return smallest
    # The least z with f V f ≤ z.
    middle = 0.5 * (1.0 + smallest)
    size = float(np.max(forms_at(forms, middle)))
    last = np.eye(len(free) + 1)[-1]
    found = _minimised(
        lambda x: (x[-1], last),
        np.append(middle, 1.0),
        (np.append(smallest, 0.0), np.append(np.ones(len(free)), np.inf)),
        lambda x: x[-1] - forms_at(forms, x[:-1]) / size,
        lambda x: last - np.pad(2.0 * forms @ x[:-1] / size, ((0, 0), (0, 1))),
    )
    return found[:-1]


def cheapest(
    forms: np.ndarray, prices: np.ndarray, free: np.ndarray, least: float, inner: np.ndarray
) -> np.ndarray:
    """The cheapest factors (n,).

    Args:
        forms: V (m, n, n).
        prices: positive (n,).
        free: which factors may be less than one (n,).
        least: the smallest factor.
        inner: factors that keep the forms below one, of `tightest`.
    """
    ones = np.ones(len(free))
    if np.max(forms_at(forms, ones)) <= 1.0:
        return ones
    price = prices / prices[free].sum()
    found = _minimised(
        lambda f: (float(price @ (1.0 / f)), -price / f**2),
        inner,
        (np.where(free, least, 1.0), ones),
        lambda f: 1.0 - forms_at(forms, f),
        lambda f: -2.0 * forms @ f,
    )
    return np.where(found > 1.0 - 1e-8, 1.0, found)


def _minimised(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    slacks: Callable[[np.ndarray], np.ndarray],
    slopes: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """The minimum of a convex problem, by sequential least squares programming."""
    from scipy.optimize import Bounds, minimize

    found = minimize(
        objective,
        start,
        jac=True,
        method="SLSQP",
        bounds=Bounds(*limits),  # type: ignore[arg-type]
        constraints={"type": "ineq", "fun": slacks, "jac": slopes},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    x = np.clip(found.x, *limits)
    if found.status == 9 or np.min(slacks(x)) < -1e-6:  # 9: too many iterations
        raise RuntimeError(f"no cheapest factors were found: {found.message}")
    return x


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


_LEFT = 0.999
"""Factors above this one are printed as no change."""


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
        >>> print(wanted)
        cost 0.96, yield 68.27 % before and 95.00 % after
        a  times 0.51
    """

    factors: dict[str, float]
    cost: float
    before: tuple[float, ...]
    after: tuple[float, ...]

    def __str__(self) -> str:
        """What is tightened, most of all first, and what for."""
        before, after = (
            ", ".join(f"{100 * y:.2f} %" for y in x) for x in (self.before, self.after)
        )
        tighter = {n: f for n, f in self.factors.items() if f < _LEFT}
        rows = [(n, f"times {f:.2f}") for n, f in sorted(tighter.items(), key=lambda x: x[1])]
        table = [text_table(rows[0], rows[1:], rule=False)] if rows else []
        left = len(self.factors) - len(rows)
        return "\n".join(
            [
                f"cost {self.cost:.4g}, yield {before} before and {after} after",
                *table,
                *([f"{left} are left as they are"] if left else []),
            ]
        )

    def apply(self, scatter: Mapping[str, Distribution]) -> dict[str, Distribution]:
        """The distributions tightened: for a new study, which shows the yield as it is.

        Args:
            scatter: distributions by the names of inputs, as ``study.sampler.scatter`` has them.
                Correlations do not change: the new study takes those of the old one, in place of a
                `Covariance` its ``study.sampler.rank_correlation()``.

        Raises:
            ValueError: a pattern in place of names, or an input that scatters by a `Covariance`.
        """
        for name, distribution in scatter.items():
            meant = [n for n in self.factors if n != name and fnmatchcase(n, name)]
            if name not in self.factors and meant:
                raise ValueError(
                    f"{name!r} is a pattern that fits {listed(meant)}, each with a factor of its "
                    "own: give study.sampler.scatter, which has the distributions by name"
                )
            if distribution is None and self.factors.get(name, 1.0) < 1.0:
                raise ValueError(
                    f"{name!r} is to be tightened, and has no distribution: where it scatters by a "
                    "Covariance, give study.sampler.scatter, and to the new study correlation="
                    "study.sampler.rank_correlation()"
                )
        return {
            n: Scaled(d, f) if (f := self.factors.get(n, 1.0)) < 1.0 else d
            for n, d in scatter.items()
        }


def allocate(
    limits: Sequence[Limit],
    wanted: float,
    *,
    cost: Mapping[str, float] | None = None,
    fixed: str | Sequence[str] = (),
    least: float = 0.05,
) -> Allocation:
    """The cheapest tightening for a wanted yield of all limits together.

    Each of m limits may be missed by (1 − wanted)/m of the parts, so that together at most
    1 − wanted are. Linear, of normal outputs: draw a study with the new distributions
    (`Allocation.apply`) to see what they give. If that is less, as of a peak or of another skewed
    output, give the mean of the first study as `Limit.mean`, or want more. Samples that have no
    value of an output miss its limit, and tightening that is linear knows nothing of them.

    An input is tightened as a whole, and stays correlated with others as it is.

    Args:
        limits: outputs with limits.
        wanted: yield, between 0 and 1.
        cost: of halving the scatter of inputs, by name or pattern (``"lengths/*"``); 1 by default.
        fixed: names or patterns of inputs that cannot be tightened.
        least: smallest factor.

    Raises:
        ValueError: a name or pattern fits no input that scatters, a cost is not positive, a
            gradient is not finite, a mean lies outside its limits, or no factors give the yield;
            the message says what the best do.

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
    if not limits:
        raise ValueError("give limits of outputs: there is nothing to keep")
    if not 0.0 < least <= 1.0:
        raise ValueError(f"the smallest factor must lie between 0 and 1, is {least:g}")
    for k, limit in enumerate(limits):
        if not np.all(np.isfinite(limit.sensitivity.gradient)):
            raise ValueError(
                f"limit {k + 1} of {len(limits)}: the gradient of this output is not finite, so "
                "nothing is known of what drives it"
            )
    names = list(dict.fromkeys(n for limit in limits for n in limit.sensitivity.owners))
    prices, free = _prices(cost or {}, names), _free(fixed, names)
    variances = np.array([_variances(limit.sensitivity, names) for limit in limits])
    share = 1.0 - (1.0 - wanted) / len(limits)
    bounds = np.array([_largest_std(limit, share) for limit in limits])
    rows = variances / bounds[:, None, None] ** 2  # f @ rows @ f ≤ 1
    best_factors = tightest(rows, free, least)
    if np.max(used := forms_at(rows, best_factors)) > 1.0:
        k = int(np.argmax(used))
        best = _yield(limits[k], bounds[k] * np.sqrt(used[k]))
        raise ValueError(
            f"limit {k + 1} of {len(limits)}: the tightest scatter gives a yield of {best:.4f}, "
            f"{share:.4f} is wanted"
        )
    factors = cheapest(rows, prices, free, least, best_factors)
    before, after = (np.sqrt(forms_at(variances, f)) for f in (np.ones(len(names)), factors))
    return Allocation(
        dict(zip(names, factors.tolist(), strict=True)),
        float(prices @ (1.0 / factors - 1.0)),
        tuple(_yield(x, s) for x, s in zip(limits, before, strict=True)),
        tuple(_yield(x, s) for x, s in zip(limits, after, strict=True)),
    )


def _fitting(pattern: str, names: Sequence[str], what: str) -> list[str]:
    """The inputs that a name or pattern of `cost` or `fixed` fits."""
    found = [n for n in names if n == pattern or fnmatchcase(n, pattern)]
    if not found:
        raise ValueError(
            f"{what} names {pattern!r}, which fits no input that scatters; {hint(pattern, names)}"
        )
    return found


def _prices(cost: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    given: dict[str, str] = {}
    prices = np.ones(len(names))
    for pattern, price in cost.items():
        if not (np.isfinite(price) and price > 0.0):
            raise ValueError(
                f"the cost of {pattern!r} must be a positive number, is {price:g}: what cannot be "
                "tightened is named in fixed="
            )
        for name in _fitting(pattern, names, "cost"):
            if (other := given.setdefault(name, pattern)) != pattern:
                raise ValueError(f"the cost of {name!r} is given by {other!r} and by {pattern!r}")
            prices[names.index(name)] = price
    return prices


def _free(fixed: str | Sequence[str], names: Sequence[str]) -> np.ndarray:
    patterns = [fixed] if isinstance(fixed, str) else fixed
    held = {n for pattern in patterns for n in _fitting(pattern, names, "fixed")}
    return np.array([n not in held for n in names])


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
    return float(ndtr(above) - ndtr(below))


def _mean(limit: Limit) -> float:
    return float(limit.sensitivity.nominal if limit.mean is None else limit.mean)


def _variances(sensitivity: Sensitivity, names: Sequence[str]) -> np.ndarray:
    """Covariances (n, n) of what the inputs cause: an input is tightened as a whole."""
    if np.ndim(sensitivity.nominal) != 0:
        raise ValueError(f"a limit is of one number, not of {np.shape(sensitivity.nominal)}")
    own = np.zeros((len(names), len(sensitivity.owners)))
    own[[names.index(n) for n in sensitivity.owners], np.arange(own.shape[1])] = sensitivity.parts
    r = sensitivity.correlation
    return own @ own.T if r is None else own @ r @ own.T
