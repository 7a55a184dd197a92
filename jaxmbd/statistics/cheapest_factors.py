"""The cheapest factors that keep quadratic forms below one: a convex problem of tolerances.

    minimise Σ price_i / f_i   subject to   f V_k f ≤ 1,   least ≤ f_i ≤ 1 (or f_i = 1)

with positive semidefinite V_k, diagonal for independent inputs; by the barrier method.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def forms_at(forms: np.ndarray, f: np.ndarray) -> np.ndarray:
    """``f V f`` for each of the forms (m, n, n)."""
    return np.maximum(((forms @ f) @ f), 0.0)


def tightest(forms: np.ndarray, free: np.ndarray, least: float) -> np.ndarray:
    """Factors (n,) for which the largest form is least.

    They need not be the smallest ones: of two inputs whose effects cancel each other, to tighten
    one alone makes it worse.
    """
    if _diagonal(forms) or least == 1.0 or not free.any():
        return np.where(free, least, 1.0)
    # The least z with f V f ≤ z.
    a, b, c = _reduced(forms, free)
    n, middle = a.shape[1], np.where(free, 0.5 * (1.0 + least), 1.0)
    start = np.append(middle[free], 2.0 * np.max(forms_at(forms, middle)))
    last = np.eye(n + 1)[-1]
    problem = _Problem(
        np.zeros(n + 1),
        last,
        np.pad(a, ((0, 0), (0, 1), (0, 1))),
        last - np.pad(b, ((0, 0), (0, 1))),
        -c,
        np.append(np.full(n, least), 0.0),
        np.append(np.ones(n), 2.0 * start[-1]),
    )
    f = np.ones(len(free))
    f[free] = _solved(problem, start, 1e-9 * start[-1])[:-1]
    return f


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
    start = np.where(free, 0.5 * (1.0 + least), 1.0)
    for _ in range(60):  # towards the tightest, until all forms are below one
        if np.max(forms_at(forms, start)) < 1.0:
            break
        start = 0.5 * (start + inner)
    else:
        return inner
    a, b, c = _reduced(forms, free)
    ends = np.full(len(a[0]), least), np.ones(len(a[0]))
    if _diagonal(forms):
        a = np.diagonal(a, axis1=1, axis2=2)
    price = prices[free] / prices[free].sum()
    problem = _Problem(price, np.zeros_like(price), a, -b, 1.0 - c, *ends)
    found = _solved(problem, start[free], 1e-10)
    ones[free] = np.where(found > 1.0 - 1e-8, 1.0, found)
    return ones


def _diagonal(forms: np.ndarray) -> bool:
    return np.count_nonzero(forms) == np.count_nonzero(np.diagonal(forms, axis1=1, axis2=2))


class _Problem(NamedTuple):
    """Minimise ``Σ price/x + weight·x`` over x in (low, high) with ``a x + b − x A x > 0``.

    The forms A are (m, n, n), or if all are diagonal (m, n).
    """

    price: np.ndarray
    weight: np.ndarray
    forms: np.ndarray
    slopes: np.ndarray
    levels: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def times(self, x: np.ndarray) -> np.ndarray:
        """``A x`` (m, n)."""
        return self.forms * x if self.forms.ndim == 2 else self.forms @ x

    def slacks(self, x: np.ndarray) -> np.ndarray:
        """What must be positive."""
        rows = self.slopes @ x + self.levels - self.times(x) @ x
        return np.concatenate([rows, x - self.low, self.high - x])

    def gradient(self, x: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Of ``t · objective − Σ log slacks``, and the slopes (m, n) of the rows' slacks."""
        slacks, count = self.slacks(x), len(self.levels)
        slopes = self.slopes - 2.0 * self.times(x)
        low, high = np.split(1.0 / slacks[count:], 2)
        objective = t * (self.weight - self.price / x**2)
        return objective - (1.0 / slacks[:count]) @ slopes - low + high, slopes

    def step(self, x: np.ndarray, t: float) -> tuple[np.ndarray, float]:
        """Newton's step, and how fast the function falls along it."""
        gradient, slopes = self.gradient(x, t)
        slacks, count = self.slacks(x), len(self.levels)
        low, high = np.split(1.0 / slacks[count:] ** 2, 2)
        scaled = slopes / slacks[:count, None]
        diagonal = 2.0 * t * self.price / x**3 + low + high
        rows = np.tensordot(2.0 / slacks[:count], self.forms, 1)
        if self.forms.ndim == 2:  # the Hessian is a diagonal and m dyads (Woodbury)
            diagonal = diagonal + rows
            few = np.eye(count) + (scaled / diagonal) @ scaled.T
            part = np.linalg.solve(few, scaled @ (gradient / diagonal))
            step = (part @ scaled - gradient) / diagonal
        else:
            step = -np.linalg.solve(rows + scaled.T @ scaled + np.diag(diagonal), gradient)
        return step, float(-gradient @ step)


def _solved(problem: _Problem, x: np.ndarray, accuracy: float) -> np.ndarray:
    """Its minimum from an inner point, by the barrier method (Boyd and Vandenberghe 2004, 11.3)."""
    count = len(problem.slacks(x))
    t = count
    while True:
        enough = 1e-4 if count / t >= accuracy else 1e-10
        for _ in range(100):
            step, falls = problem.step(x, t)
            if falls < enough:
                break
            length = 1.0
            # Convex: as long as it falls at the end of the step, it has fallen all along.
            while length > 1e-12 and (
                np.any(problem.slacks(x + length * step) <= 0.0)
                or problem.gradient(x + length * step, t)[0] @ step > 0.1 * falls
            ):
                length *= 0.5
            x = x + length * step
        if count / t < accuracy:
            return x
        t *= 20.0


def _reduced(forms: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forms in the free factors, the others being 1: quadratic, linear, constant terms."""
    own, mixed, rest = (
        forms[:, i][:, :, j] for i, j in ((free, free), (free, ~free), (~free, ~free))
    )
    return own, 2.0 * mixed.sum(axis=2), rest.sum(axis=(1, 2))
