"""What data cannot tell apart, in words: combinations of unknowns that are determined or not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg import orth
from scipy.sparse.csgraph import connected_components

from jaxmbd.identification.information import TAKES_PART

SIMPLE = 1e-3
"""Coefficients this close to a fraction of small numbers are taken to be it."""


class Combination(NamedTuple):
    """A function of several unknowns, ``Σ c p`` or ``Π p^c``.

    Attributes:
        names: paths of the unknowns.
        coefficients: c, in SI units.
        product: whether it is a product of powers.
        value: its value; NaN for one that is not determined.
        error: its standard error; infinite for one that is not determined.

    Example:
        >>> from jaxmbd.identification.combinations import Combination
        >>> str(Combination(("k", "m"), (1.0, -1.0), True, 4.0, 0.1)), str(
        ...     Combination(("a", "b"), (1.0, -2.0), False, 4.0, 0.1)
        ... )
        ('k / m', 'a - 2·b')
    """

    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    product: bool
    value: float
    error: float

    def __str__(self) -> str:
        terms = list(zip(self.coefficients, self.names, strict=True))
        return _as_product(terms) if self.product else _as_sum(terms)


class Ambiguity(NamedTuple):
    """A group of unknowns of which the data determine fewer combinations than there are unknowns.

    Attributes:
        names: paths of the unknowns.
        determined: combinations that the data determine, in general to first order only.
        open: independent combinations about which they say nothing.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.design import Within
        >>> from jaxmbd.identification import identifiability
        >>> from jaxmbd.observe import HoldingEffort, Sweep
        >>> weigh = Sweep({"hinge": np.linspace(0.0, 1.0, 5)}, {"torque": HoldingEffort("hinge")})
        >>> pair = {"bodies/bob/mass": Within(0.5), "gravity/y": Within(1.0)}
        >>> told = identifiability(mbd.zoo.simple_pendulum(), pair, weigh, {"torque": 0.1})
        >>> told.ambiguities[0].names
        ('bodies/bob/mass', 'gravity/y')
    """

    names: tuple[str, ...]
    determined: tuple[Combination, ...]
    open: tuple[Combination, ...]

    def __str__(self) -> str:
        no = " and ".join(map(str, self.open))
        if not self.determined:
            return f"the data say nothing about {no}"
        yes = " and ".join(map(str, self.determined))
        verbs = ["is" if len(x) == 1 else "are" for x in (self.determined, self.open)]
        exact = all(c == round(c) for x in self.determined for c in x.coefficients)
        first = "" if exact else ", to first order"
        return f"only {yes} {verbs[0]} determined{first}; {no} {verbs[1]} not"


def ambiguities(
    null: np.ndarray,
    values: np.ndarray,
    names: tuple[str, ...],
    units: tuple[str, ...],
    scale: np.ndarray,
    covariance: np.ndarray,
    change: Callable[[np.ndarray], np.ndarray],
) -> tuple[Ambiguity, ...]:
    """The null directions (n, d), in SI units, group by group, as sums or products where they are.

    To first order ``δa = −δb`` may keep ``a + b`` or ``a b``; which one it is, `change` tells: by
    how much the predictions of values (count, n) change (count,).
    """
    found = []
    for group in _groups(null / scale[:, None]):
        its = scale[group, None]
        part, same = (orth(null[group] / its, 1e-6) * its).T, len({units[i] for i in group}) == 1
        product = _is_product(
            part, values[group], same, lambda p, g=group: change(_put(values, g, p))
        )
        # Sums of numbers in different units are looked at in units of their scales.
        unit = values[group] if product else np.ones(len(group)) if same else scale[group]
        directions = _reduced(part / unit)
        # What is kept is orthogonal to what is open.
        kept = _reduced(np.linalg.svd(directions)[2][len(directions) :])
        chosen = tuple(names[i] for i in group)
        its = _Group(chosen, values[group], covariance[np.ix_(group, group)], unit, product)
        yes = tuple(its.combination(c, known=True) for c in kept)
        no = tuple(its.combination(c, known=False) for c in directions)
        found.append(Ambiguity(chosen, yes, no))
    return tuple(found)


class _Group(NamedTuple):
    """Unknowns that null directions move together."""

    names: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    unit: np.ndarray  # what coefficients are counted in: the values for products
    product: bool  # whether combinations are products of powers

    def combination(self, c: np.ndarray, *, known: bool) -> Combination:
        """A combination of coefficients or powers c, with its value and standard error."""
        gradient = c / self.unit  # of Σ c p, or of log Π p^c
        if not self.product and np.any(self.unit != 1.0):
            c = gradient = gradient / gradient[np.flatnonzero(gradient)[0]]
        value, error = np.nan, np.inf
        if known:
            error = float(np.sqrt(gradient @ self.covariance @ gradient))
            value = float(c @ self.values)
        if known and self.product:
            value = float(np.prod(np.abs(self.values) ** c))
            error *= value
        used = np.flatnonzero(c)
        names = tuple(self.names[i] for i in used)
        return Combination(names, tuple(map(float, c[used])), self.product, value, error)


def _put(values: np.ndarray, group: list[int], some: np.ndarray) -> np.ndarray:
    """Values (count, n) with those of a group replaced."""
    whole = np.repeat(values[None], len(some), axis=0)
    whole[:, group] = some
    return whole


def _groups(null: np.ndarray) -> list[list[int]]:
    """The unknowns that null directions move, those moved together in one group."""
    q = np.linalg.qr(null)[0] if null.shape[1] else null
    together = np.abs(q @ q.T) > TAKES_PART
    moved = np.flatnonzero(np.diag(together))
    count, group = connected_components(together[np.ix_(moved, moved)])
    return [moved[group == k].tolist() for k in range(count)]


def _is_product(
    part: np.ndarray,
    values: np.ndarray,
    same: bool,
    change: Callable[[np.ndarray], np.ndarray],
) -> bool:
    """Whether a group's directions (d, size) keep products of powers rather than sums.

    Those of numbers in different units do, if none is zero. In the same units they do if they are
    simple and a step that keeps products changes less than one that keeps sums.
    """
    if len(values) == 1 or np.any(values == 0.0):
        return False
    if not same:
        return True
    if not _simple(_reduced(part / values)):
        return False
    step = 0.1 * part / np.max(np.abs(part / values), axis=1, keepdims=True)
    straight, curved = change(values + step), change(values * np.exp(step / values))
    return bool(np.max(curved) < 0.1 * np.max(straight))


def _reduced(rows: np.ndarray) -> np.ndarray:
    """The rows' reduced echelon form, with few and simple numbers, largest ones first.

    A row is scaled so that its first number is 1, or the smallest one if that makes all simple.
    """
    if not len(rows):
        return rows
    rows = rows / np.max(np.abs(rows), axis=1, keepdims=True)
    used: list[int] = []
    for i in range(len(rows)):
        sizes = np.abs(rows[i]).copy()
        sizes[used] = 0.0
        # The first of those that are about the largest, so that names come in order.
        pivot = int(np.argmax(sizes > 0.5 * sizes.max()))
        used.append(pivot)
        rows[i] /= rows[i, pivot]
        for j in range(len(rows)):
            if j != i:
                rows[j] -= rows[j, pivot] * rows[i]
    rows = rows[np.argsort(used)]
    return np.array([_whole(row) for row in rows]).reshape(rows.shape)


def _whole(row: np.ndarray) -> np.ndarray:
    """A row without rounding errors, its first number positive, in whole numbers if that can be."""
    row = np.where(np.abs(row) < TAKES_PART * np.max(np.abs(row)), 0.0, row)
    row = row * np.sign(row[np.flatnonzero(row)[0]])
    fractions = [Fraction(float(x)).limit_denominator(4) for x in row]
    if max(abs(float(f) - x) for f, x in zip(fractions, row, strict=True)) > SIMPLE:
        return row
    common = int(np.lcm.reduce([f.denominator for f in fractions]))
    return np.array([float(f * common) for f in fractions])


def _simple(rows: np.ndarray) -> bool:
    """Whether all numbers are small whole ones."""
    return bool(np.all(rows == np.round(rows)) and np.max(np.abs(rows)) <= 8.0)


def _as_sum(terms: list[tuple[float, str]]) -> str:
    text = ""
    for c, name in terms:
        sign = ("-" if c < 0.0 else "") if not text else (" - " if c < 0.0 else " + ")
        text += f"{sign}{'' if abs(c) == 1.0 else f'{abs(c):.4g}·'}{name}"
    return text


def _as_product(terms: list[tuple[float, str]]) -> str:
    above = [_power(name, c) for c, name in terms if c > 0.0]
    below = [_power(name, -c) for c, name in terms if c < 0.0]
    over = below[0] if len(below) == 1 else f"({' · '.join(below)})"
    return (" · ".join(above) or "1") + (f" / {over}" if below else "")


def _power(name: str, c: float) -> str:
    return name if c == 1.0 else f"{name}^{c:.4g}"
