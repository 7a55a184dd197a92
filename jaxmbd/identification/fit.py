"""The fit of one set of data: losses, noise, and Gauss–Newton steps in a trust region.

Noise that is not known is estimated on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.special import huber

from jaxmbd.identification.measured import Record
from jaxmbd.plumbing import hint
from jaxmbd.variables import in_si

_HUBER, _CAUCHY = 1.345, 2.385
"""Residuals beyond which samples count less: estimates have 95 % of the efficiency of least squares
where errors are normal."""


class Loss(NamedTuple):
    """``ρ(r)`` of a residual r in standard deviations; it is ``½ r²`` for small r."""

    robust: bool  # whether outliers count less than by least squares
    height: Callable[[np.ndarray], np.ndarray]  # ρ
    psi: Callable[[np.ndarray], np.ndarray]  # dρ/dr, how a residual pulls
    stiffness: Callable[[np.ndarray], np.ndarray]  # d²ρ/dr²

    def value(self, r: np.ndarray) -> float:
        """``Σ ρ(r)``."""
        return float(np.sum(self.height(r)))

    def weight(self, r: np.ndarray) -> np.ndarray:
        """``ψ(r)/r``: how much a residual counts, 1 where errors are small."""
        return np.where(r == 0.0, 1.0, self.psi(r) / np.where(r == 0.0, 1.0, r))


LOSSES = {
    "linear": Loss(False, lambda r: 0.5 * r**2, lambda r: r, np.ones_like),
    "huber": Loss(
        True,
        lambda r: huber(_HUBER, r),
        lambda r: np.clip(r, -_HUBER, _HUBER),
        lambda r: (np.abs(r) <= _HUBER).astype(float),
    ),
    "cauchy": Loss(
        True,
        lambda r: 0.5 * _CAUCHY**2 * np.log1p((r / _CAUCHY) ** 2),
        lambda r: r / (1.0 + (r / _CAUCHY) ** 2),
        lambda r: (1.0 - (r / _CAUCHY) ** 2) / (1.0 + (r / _CAUCHY) ** 2) ** 2,
    ),
}
"""Least squares; Huber's (Ann. Math. Statist. 35, 1964), whose outliers pull with constant force;
Cauchy's, whose outliers hardly pull."""


def loss_of(name: str) -> Loss:
    """The loss of a name."""
    if name not in LOSSES:
        raise ValueError(f"loss={name!r}; give one of {list(LOSSES)}")
    return LOSSES[name]


LEAST = 1e-12
"""The least estimated noise, as a share of the channel's largest number."""

_MAD = 1.482602218505602  # standard deviation of normal errors over their median magnitude


class Noise(NamedTuple):
    """Standard deviations of all samples, and which of them are to be estimated.

    A channel of the same name in several measurements is one.
    """

    known: np.ndarray  # (N,) in the channels' units; NaN where unknown
    groups: dict[str, np.ndarray]  # channel to which samples are its own (N,)
    least: dict[str, float]  # channel to the least standard deviation

    @property
    def estimated(self) -> tuple[str, ...]:
        """Channels of unknown noise."""
        return tuple(n for n, rows in self.groups.items() if np.isnan(self.known[rows]).any())

    def from_residuals(
        self, misfit: np.ndarray, leverage: np.ndarray, *, robust: bool
    ) -> np.ndarray:
        """Standard deviations (N,), those unknown from measured minus predicted of their channel.

        The leverage (N,), in [0, 1], is how much of a sample's error the fit takes up. Robust is
        the median magnitude instead of the root mean square.
        """
        sigma = self.known.copy()
        for name in self.estimated:
            rows = self.groups[name] & np.isfinite(misfit)
            r, count = misfit[rows], int(rows.sum())
            left = count - float(leverage[rows].sum())
            if robust:
                found = _MAD * np.median(np.abs(r)) * np.sqrt(count / max(left, 1.0))
            else:
                found = np.sqrt(np.sum(r**2) / max(left, 1.0))
            sigma[self.groups[name]] = max(float(found), self.least[name])
        return sigma


def noise_of(known: list[Record], given: Mapping[str, Any] | None) -> Noise:
    """The noise of the measurements' channels; what is not given is to be estimated.

    Raises:
        ValueError: a name that is no channel; a standard deviation that is not positive.
    """
    given, used = dict(given or {}), set()
    parts, rows, units = [], {}, {}
    end, total = 0, sum(c.values.size for r in known for c in r.channels)
    for record in known:
        for channel in record.channels:
            names = [f"{record.name}/{channel.name}", channel.name]
            name = next((n for n in names if n in given), channel.name)
            used |= {n for n in names if n in given}
            sigma = _sigma(given.get(name), channel.values.shape, channel.about.unit, name)
            if not np.isnan(sigma).any() and not np.all((sigma > 0.0) & np.isfinite(sigma)):
                raise ValueError(f"noise of {name!r} must be positive, is {given[name]!r}")
            parts.append(sigma.ravel())
            group = rows.setdefault(channel.name, np.zeros(total, bool))
            group[end : end + channel.values.size] = True
            size = np.nanmax(np.abs(channel.values))
            units[channel.name] = max(units.get(channel.name, 0.0), LEAST * (size or 1.0))
            end += channel.values.size
    if unknown := sorted(given.keys() - used):
        raise ValueError(f"noise: no channel {unknown[0]!r}; {hint(unknown[0], rows)}")
    return Noise(np.concatenate(parts), rows, units)


def _sigma(given: Any, shape: tuple[int, ...], unit: str, name: str) -> np.ndarray:
    if given is None:
        return np.full(shape, np.nan)
    number = in_si(given, unit, f"noise of {name!r}") if isinstance(given, str) else given
    return np.broadcast_to(np.asarray(number, np.float64), shape)


ROUNDS = 60
"""At most this often samples are weighted anew."""

PATIENCE = 8
"""Evaluations of a round: while weights change, it is no use to follow a valley to its end."""

SAME_NOISE = 1e-3
"""A relative change of the noise at which these rounds may end."""

SAME_FIT = 1e-2
"""A change of the fit in standard errors, of all unknowns together, at which they may end."""

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Of x (n,): predictions (N,) and their derivatives (N, n)."""


class Fit(NamedTuple):
    """What a fit found."""

    x: np.ndarray  # scaled unknowns (n,)
    y: np.ndarray  # predictions there (N,)
    jacobian: np.ndarray  # their derivatives (N, n)
    sigma: np.ndarray  # standard deviation of each sample's noise (N,)
    likelihood: float  # minus its logarithm, Σ ρ(r) + log σ, up to a constant
    converged: bool  # whether a step too small to matter was reached
    message: str  # how it ended
    evaluations: int  # of the model


class _Memory:
    """Predictions with derivatives, of which the last are kept."""

    def __init__(self, evaluate: Evaluate):
        self.evaluate, self.count = evaluate, 0
        self.x: np.ndarray | None = None
        self.last: Any = None

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.x is None or not np.array_equal(x, self.x):
            self.x, self.last = x.copy(), self.evaluate(x)
            self.count += 1
        return self.last


def fitted(
    evaluate: Evaluate,
    start: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    data: np.ndarray,
    noise: Noise,
    loss: Loss,
    max_evaluations: int,
) -> Fit:
    """The x that minimises ``Σ ρ((data − y(x)) / σ)`` within limits.

    Iteratively reweighted least squares: weights ``ψ(r)/r`` and unknown σ are taken from the
    residuals, the fit is repeated from where it ended, until they settle. It descends for every
    loss that grows slower than a parabola (Huber, Robust Statistics, 1981, 7.8), also where
    samples change sides of a kink at every step. Missing data are NaN, and so are predictions where
    the model fails, which must not be at the start.
    """
    model, here, x = _Memory(evaluate), np.isfinite(data), start
    sigma = noise.from_residuals(data - model(x)[0], np.zeros(len(data)), robust=True)
    once = not loss.robust and (not noise.estimated or len(noise.groups) == 1)
    found: Any = None
    settled = False
    for _ in range(ROUNDS):
        before = x
        r = np.where(here, (data - model(x)[0]) / sigma, 0.0)
        weight = np.where(here, np.sqrt(loss.weight(r)), 0.0) / sigma
        left = max_evaluations - model.count
        most = left if once else min(left, PATIENCE)
        found = least_squares(
            lambda x, w=weight: (w * (model(x)[0] - data))[here],
            x,
            lambda x, w=weight: (w[:, None] * model(x)[1])[here],  # type: ignore[arg-type]
            bounds=limits,
            method="trf",
            xtol=1e-9,
            ftol=1e-10,
            gtol=1e-10,
            max_nfev=max(1, most),
        )
        x = found.x
        y, jac = model(x)
        lever = leverages(jac * weight[:, None], here)
        new = noise.from_residuals(data - y, lever, robust=loss.robust)
        change, sigma = float(np.max(np.abs(np.log(new / sigma)))), new
        moved = float(np.linalg.norm((weight[:, None] * jac)[here] @ (x - before)))
        settled = once or (found.status > 0 and change < SAME_NOISE and moved < SAME_FIT)
        if settled or model.count >= max_evaluations:
            break
    y, jac = model(x)
    least = loss.value(((data - y) / sigma)[here]) + np.sum(np.log(sigma[here]))
    message = str(found.message) if settled else "The weights of the samples did not settle."
    ended = settled and found.status > 0
    return Fit(x, y, jac, sigma, float(least), ended, message, model.count)


def leverages(jacobian: np.ndarray, here: np.ndarray) -> np.ndarray:
    """The diagonal (N,) of the projector onto a Jacobian's columns; 0 where data are missing."""
    norms = np.linalg.norm(jacobian[here], axis=0)
    columns = jacobian[here] / np.where(norms > 0.0, norms, 1.0)
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    found = np.zeros(len(here))
    found[here] = np.sum(u[:, s > 1e-10 * max(s[0], 1.0)] ** 2, axis=1)
    return found
