"""Plane linkages as free bodies in NumPy: motion, forces and power of a prescribed coordinate.

Every body has a displacement of its centre and an angle from the drawing, ``x = (u, w, φ)``. Pins
and guides are equations between them, and so is the driven coordinate:

    g(x) = f(t),   J ẋ = ḟ,   J ẍ = f̈ − (d/dt J) ẋ,   M ẍ = W + Jᵀ λ

J is by complex steps, its rate by differences of it that are extrapolated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray


class Link(NamedTuple):
    """A body: mass [kg], centre as drawn (2,) [m], moment of inertia [kg m²]."""

    mass: float
    com: Array
    inertia: float


class Pin(NamedTuple):
    """A pin of b on a: a's half is drawn at `at` (2,), b's at `at_b`."""

    a: str
    b: str
    at: Array
    at_b: Array


class Guide(NamedTuple):
    """A guide along `axis` (2,), in which b slides on a."""

    a: str
    b: str
    at: Array
    axis: Array


class Linkage(NamedTuple):
    """Bodies and joints by name, gravity (2,), and the name of the driven joint."""

    links: dict[str, Link]
    joints: dict[str, Pin | Guide]
    gravity: Array
    driven: str

    def moved(self, x: Array, body: str, place: Array) -> Array:
        """A point of a body (2,), drawn at `place`."""
        if body == "ground":
            return place + 0.0 * x[:2]
        k, com = 3 * list(self.links).index(body), self.links[body].com
        return com + x[k : k + 2] + _turned(x[k + 2], place - com)

    def angle(self, x: Array, body: str) -> Any:
        """The angle of a body from the drawing."""
        return 0.0 if body == "ground" else x[3 * list(self.links).index(body) + 2]

    def coordinate(self, x: Array, name: str) -> Any:
        """The coordinate of a joint: angle or travel of b relative to a."""
        j = self.joints[name]
        if isinstance(j, Pin):
            return self.angle(x, j.b) - self.angle(x, j.a)
        along = _turned(self.angle(x, j.a), j.axis / np.linalg.norm(j.axis))
        return along @ (self.moved(x, j.b, j.at) - self.moved(x, j.a, j.at))

    def rows(self, x: Array, name: str) -> list[Any]:
        """What is zero at a joint: two numbers."""
        j = self.joints[name]
        if isinstance(j, Pin):
            return [*(self.moved(x, j.b, j.at_b) - self.moved(x, j.a, j.at))]
        across = _turned(self.angle(x, j.a) + np.pi / 2, j.axis / np.linalg.norm(j.axis))
        apart = self.moved(x, j.b, j.at) - self.moved(x, j.a, j.at)
        return [across @ apart, self.angle(x, j.b) - self.angle(x, j.a)]

    def equations(self, x: Array) -> Array:
        """Closing equations, then the driven coordinate."""
        every = [r for name in self.joints for r in self.rows(x, name)]
        return np.array([*every, self.coordinate(x, self.driven)])

    def mass(self) -> Array:
        """Diagonal of the mass matrix."""
        return np.concatenate([[b.mass, b.mass, b.inertia] for b in self.links.values()])

    def weights(self) -> Array:
        """Weights of all bodies, as forces along x."""
        pulls = [np.append(b.mass * self.gravity, 0.0) for b in self.links.values()]
        return np.concatenate(pulls)

    def rate(self, x: Array, v: Array, name: str) -> float:
        """The rate of a joint's coordinate."""
        return float(np.imag(self.coordinate(x + 1j * _STEP * v, name)) / _STEP)


class Moment(NamedTuple):
    """A linkage at one time: places, speeds, accelerations, J, and multipliers (rows,)."""

    linkage: Linkage
    x: Array
    v: Array
    a: Array
    rows: Array
    multipliers: Array

    @property
    def effort(self) -> float:
        """What drives the driven coordinate [N·m or N]."""
        return float(self.multipliers[-1])

    def shaking(self, about: Array, weight: bool = False) -> Array:
        """Force (2,) and moment about a point of all inertia, and weights, on the ground."""
        some = self.linkage.weights() if weight else 0.0
        parts = (some - self.linkage.mass() * self.a).reshape(-1, 3)
        links = self.linkage.links.items()
        arms = np.array([self.linkage.moved(self.x, n, b.com) for n, b in links]) - about
        turning = parts[:, 2] + arms[:, 0] * parts[:, 1] - arms[:, 1] * parts[:, 0]
        return np.append(parts[:, :2].sum(axis=0), turning.sum())

    def reaction(self, name: str) -> Array:
        """Force (2,) and moment on b about b's half of a joint, that of a drive left out."""
        lk = self.linkage
        j, k = lk.joints[name], 2 * list(lk.joints).index(name)
        body, sign = (j.b, 1.0) if j.b != "ground" else (j.a, -1.0)
        place = 3 * list(lk.links).index(body)
        mine = self.rows[k : k + 2, place : place + 3]
        load = sign * (mine.T @ self.multipliers[k : k + 2])
        at = lk.moved(self.x, j.b, j.at_b if isinstance(j, Pin) else j.at)
        arm = at - lk.moved(self.x, body, lk.links[body].com)
        return np.array([load[0], load[1], load[2] - arm[0] * load[1] + arm[1] * load[0]])


_STEP = 1e-30


def _turned(angle: complex, p: Array) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * p[0] - s * p[1], s * p[0] + c * p[1]])


def jacobian(linkage: Linkage, x: Array) -> Array:
    """Derivatives of the equations (rows, n) by complex steps."""
    steps = np.eye(len(x))
    return np.stack([np.imag(linkage.equations(x + 1j * _STEP * e)) / _STEP for e in steps], axis=1)


def motion(linkage: Linkage, values: Array, rates: Array, seconds: Array) -> list[Moment] | None:
    """The motion at values of the driven coordinate, with rates and second rates (n,).

    It starts at the drawing, in steps of 0.02. None where it does not close, comes near a dead
    centre, or where some force is not determined.
    """
    x, found, before = np.zeros(3 * len(linkage.links)), [], 0.0
    for value, rate, second in zip(values, rates, seconds, strict=True):
        for part in np.linspace(before, value, 2 + int(abs(value - before) / 0.02))[1:]:
            if (y := _closed(linkage, x, part)) is None:
                return None
            x = y
        before = value
        found.append(_moment(linkage, x, rate, second))
    return found


_SOFT = 5e3
"""Condition of the equations, lengths in units of the linkage's, beyond which a case is left."""


def _closed(linkage: Linkage, x: Array, value: float) -> Array | None:
    for _ in range(30):
        miss = np.real(linkage.equations(x))
        miss[-1] -= value
        rows = jacobian(linkage, x)
        if rows.shape[0] != rows.shape[1] or not np.linalg.cond(rows) < _SOFT:
            return None
        step = np.linalg.solve(rows, miss)
        x = x - step
        if np.max(np.abs(step)) < 1e-14 * (1.0 + np.max(np.abs(x))):
            return x
    return None


def _moment(linkage: Linkage, x: Array, rate: float, second: float) -> Moment:
    rows, target = jacobian(linkage, x), np.zeros(len(x))
    target[-1] = rate
    v = np.linalg.solve(rows, target)
    target = -_turning(linkage, x, v) @ v
    target[-1] += second
    a = np.linalg.solve(rows, target)
    multipliers = np.linalg.solve(rows.T, linkage.mass() * a - linkage.weights())
    return Moment(linkage, x, v, a, rows, multipliers)


def _turning(linkage: Linkage, x: Array, v: Array) -> Array:
    """The rate of the Jacobian: differences in two widths, extrapolated."""
    h = 1e-3 / max(float(np.max(np.abs(v))), 1e-300)

    def slope(k: int) -> Array:
        ahead, behind = (jacobian(linkage, x + s * k * h * v) for s in (1.0, -1.0))
        return (ahead - behind) / (2.0 * k * h)

    return (4.0 * slope(1) - slope(2)) / 3.0
