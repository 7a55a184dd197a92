"""Driven motions by free bodies in NumPy: every body has six coordinates of its own.

An oracle that shares no code with the package: of a mechanism only the numbers of its description
are read. Joints are rows φ(x, R, t) = 0 of the positions x and rotations R of all bodies; since
they are analytic, derivatives come from complex numbers. Along a path of constant twists

    φ(s) = φ(x + s v, exp(s ω) R, t + s),  φ'(0) = J V + φ_t,  φ''(0) = J̇ V + …,

so that speeds solve ``φ' = 0`` and accelerations, with the multipliers,

    M A + (ω × I ω) = loads + Jᵀ λ ,   J A = −φ''(0).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

POINTS = 16


class At(NamedTuple):
    """The bodies at an instant: place of the centre of mass, rotation, twist and its rate."""

    x: dict[str, np.ndarray]
    r: dict[str, np.ndarray]
    v: dict[str, np.ndarray]
    w: dict[str, np.ndarray]
    a: dict[str, np.ndarray]
    alpha: dict[str, np.ndarray]
    wrench: dict[str, np.ndarray]
    """Of each joint on b, about b's joint point, (6,) moment and force."""
    effort: float


def _cross(w: Any) -> np.ndarray:
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def _turned(w: np.ndarray, s: Any) -> np.ndarray:
    """``exp(s ω)``, of real or complex s."""
    size = np.sqrt(w @ w)
    if size == 0.0:
        return np.eye(3) + s * _cross(w)
    k = _cross(w / size)
    return np.eye(3) + np.sin(s * size) * k + (1.0 - np.cos(s * size)) * k @ k


def _across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    u = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    u = u / np.linalg.norm(u)
    return u, np.cross(axis, u)


def _space(x: Any) -> np.ndarray:
    x = np.asarray(x, float)
    return np.array([*x, 0.0]) if x.shape == (2,) else x


class FreeBodies:
    """A mechanism as free bodies, one joint of which is driven.

    Args:
        mech: its description is read: bodies, joints and springs.
        driven: name of a revolute or prismatic joint.
        course: its coordinate as a function of t, which takes complex numbers.
        idle: body to two points, on the line about which it has no speed.
    """

    def __init__(
        self,
        mech: Any,
        driven: str,
        course: Callable[[Any], Any],
        idle: dict[str, tuple[str, str]] | None = None,
    ):
        self.mech, self.driven, self.course = mech, driven, course
        self.names = list(mech.structure.bodies)
        self.com = {n: _space(mech.point(mech.bodies[n].com)) for n in self.names}
        self.com["ground"] = np.zeros(3)
        self.mass = {n: float(mech.bodies[n].mass) for n in self.names}
        self.inertia = {n: self._tensor(mech.bodies[n].inertia) for n in self.names}
        self.gravity = _space(mech.gravity)
        self.idle = idle or {}
        self.x = {n: self.com[n].copy() for n in self.names}
        self.r = {n: np.eye(3) for n in self.names}

    @staticmethod
    def _tensor(inertia: Any) -> np.ndarray:
        found = np.asarray(inertia, float)
        if found.ndim == 0:
            return np.diag([found, found, found])
        return np.diag(found) if found.shape == (3,) else found

    def drawn(self, point: Any) -> np.ndarray:
        return _space(self.mech.point(point))

    def place(self, x: Any, r: Any, body: str, point: np.ndarray) -> Any:
        return point if body == "ground" else x[body] + r[body] @ (point - self.com[body])

    def _rows_of(self, joint: Any, x: Any, r: Any) -> list[Any]:
        turn = {**r, "ground": np.eye(3)}
        at = self.drawn(joint.at)
        off = self.place(x, r, joint.b, at) - self.place(x, r, joint.a, at)
        kind = type(joint).__name__.replace("InPlane", "")
        if kind == "Spherical":
            return list(off)
        if kind == "Universal":
            axes = (turn[joint.a] @ _space(joint.axis_a), turn[joint.b] @ _space(joint.axis_b))
            return [*off, axes[0] @ axes[1]]
        axis = getattr(joint, "axis", None)
        axis = np.array([0.0, 0.0, 1.0]) if axis is None else _space(axis)
        axis = axis / np.linalg.norm(axis)
        u, w = _across(axis)
        n, p, s = (turn[joint.a] @ y for y in (axis, u, w))
        nb, pb = turn[joint.b] @ axis, turn[joint.b] @ u
        parallel = [p @ nb, s @ nb]
        if kind == "Revolute":
            return [*off, *parallel]
        if kind == "Cylindrical":
            return [p @ off, s @ off, *parallel]
        assert kind == "Prismatic", kind
        return [p @ off, s @ off, *parallel, s @ pb]

    def _driver(self, x: Any, r: Any, t: Any) -> list[Any]:
        joint = self.mech.joint(self.driven)
        turn = {**r, "ground": np.eye(3)}
        axis = getattr(joint, "axis", None)
        axis = np.array([0.0, 0.0, 1.0]) if axis is None else _space(axis)
        axis = axis / np.linalg.norm(axis)
        f = self.course(t)
        if "Prismatic" in type(joint).__name__:
            at = self.drawn(joint.at)
            off = self.place(x, r, joint.b, at) - self.place(x, r, joint.a, at)
            return [turn[joint.a] @ axis @ off - f]
        u, w = _across(axis)
        return [
            turn[joint.b] @ u @ (turn[joint.a] @ (w * np.cos(f) - u * np.sin(f))),
        ]

    def rows(self, x: Any, r: Any, t: Any) -> tuple[np.ndarray, dict[str, slice]]:
        out: list[Any] = []
        where = {}
        for name, joint in self.mech.joints.items():
            found = self._rows_of(joint, x, r)
            where[name] = slice(len(out), len(out) + len(found))
            out += found
        return np.array([*out, *self._driver(x, r, t)]), where

    def _moved(self, twist: np.ndarray, s: Any) -> tuple[Any, Any]:
        x, r = {}, {}
        for i, n in enumerate(self.names):
            v, w = twist[6 * i : 6 * i + 3], twist[6 * i + 3 : 6 * i + 6]
            x[n], r[n] = self.x[n] + s * v, _turned(w, s) @ self.r[n]
        return x, r

    def jacobian(self, t: float) -> np.ndarray:
        step, columns = 1e-30, []
        for k in range(6 * len(self.names)):
            x, r = self._moved(np.eye(6 * len(self.names))[k], 1j * step)
            columns.append(self.rows(x, r, t)[0].imag / step)
        return np.array(columns).T

    def go_to(self, t: float) -> None:
        """Newton's method at a time near that of the last call."""
        for _ in range(50):
            residual = self.rows(self.x, self.r, t)[0]
            step = -np.linalg.pinv(self.jacobian(t), rcond=1e-9) @ residual
            self.x, self.r = self._moved(step, 1.0)
            if np.abs(step).max() < 1e-14:
                break

    def _taylor(self, twist: np.ndarray, t: float, order: int) -> np.ndarray:
        """φ'(0) or φ''(0) along a twist, by Cauchy's integral."""
        radius = 0.1 / max(1.0, np.abs(twist).max())
        places = np.exp(2j * np.pi * np.arange(POINTS) / POINTS)
        values = [
            self.rows(*self._moved(twist, radius * z), t + radius * z)[0] / z**order for z in places
        ]
        return (np.mean(values, axis=0).real / radius**order) * (1, 1, 2)[order]

    def at(self, t: float, loads: Callable[..., dict[str, np.ndarray]] | None = None) -> At:
        """Motion, wrenches of the joints and the driving effort at a time near the last."""
        self.go_to(t)
        names, size = self.names, 6 * len(self.names)
        j = self.jacobian(t)
        idle = np.zeros((len(self.idle), size))
        for k, (n, ends) in enumerate(self.idle.items()):
            first, second = (self.place(self.x, self.r, n, self.drawn(p)) for p in ends)
            i = names.index(n)
            idle[k, 6 * i + 3 : 6 * i + 6] = (second - first) / np.linalg.norm(second - first)
        drive = self._taylor(np.zeros(size), t, 1)
        every = np.concatenate([j, idle])
        asked = np.concatenate([-drive, np.zeros(len(idle))])
        twist = np.linalg.lstsq(every, asked, rcond=1e-10)[0]
        mass, force = np.zeros((size, size)), np.zeros(size)
        v = {n: twist[6 * i : 6 * i + 3] for i, n in enumerate(names)}
        w = {n: twist[6 * i + 3 : 6 * i + 6] for i, n in enumerate(names)}
        given = loads(self, v, w) if loads else {}
        for i, n in enumerate(names):
            inertia = self.r[n] @ self.inertia[n] @ self.r[n].T
            k = 6 * i
            mass[k : k + 3, k : k + 3] = self.mass[n] * np.eye(3)
            mass[k + 3 : k + 6, k + 3 : k + 6] = inertia
            force[k : k + 3] = self.mass[n] * self.gravity
            force[k + 3 : k + 6] = -np.cross(w[n], inertia @ w[n])
            push = given.get(n, np.zeros(6))
            force[k : k + 3] += push[3:]
            force[k + 3 : k + 6] += push[:3]
        m = len(j)
        system = np.block([[mass, -j.T], [j, np.zeros((m, m))]])
        found = np.linalg.lstsq(
            system, np.concatenate([force, -self._taylor(twist, t, 2)]), rcond=1e-12
        )[0]
        rate, lam = found[:size], found[size:]
        a = {n: rate[6 * i : 6 * i + 3] for i, n in enumerate(names)}
        alpha = {n: rate[6 * i + 3 : 6 * i + 6] for i, n in enumerate(names)}
        where = self.rows(self.x, self.r, t)[1]
        wrench = {}
        for name, joint in self.mech.joints.items():
            push = j[where[name]].T @ lam[where[name]]
            body, sign = (joint.b, 1.0) if joint.b != "ground" else (joint.a, -1.0)
            k = 6 * names.index(body)
            f, n = sign * push[k : k + 3], sign * push[k + 3 : k + 6]
            point = self.place(self.x, self.r, joint.b, self.drawn(joint.at))
            wrench[name] = np.concatenate([n + np.cross(self.x[body] - point, f), f])
        return At(dict(self.x), dict(self.r), v, w, a, alpha, wrench, float(lam[-1]))
