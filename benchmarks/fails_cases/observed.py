"""Observables of an instant, each with its oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import jaxmbd as mbd
from fails_cases.rigid import Dual, _sum, mul, unit
from fails_cases.rigid_dynamics import Dynamics, Forces

observe = mbd.observe
ORACLES = {
    "Position": "rigid bodies in NumPy",
    "Travel": "rigid bodies in NumPy",
    "Velocity": "rigid bodies in NumPy, rates of positions",
    "Acceleration": "rigid bodies in NumPy, complex steps along the motion",
    "Distance": "rigid bodies in NumPy",
    "DistanceRate": "rigid bodies in NumPy, rates of positions",
    "Coordinate": "the coordinates of the state",
    "CoordinateRate": "the speeds of the state",
    "DirectionAngle": "a turned vector's components, in NumPy",
    "Camber": "a turned vector's components, in NumPy",
    "Toe": "a turned vector's components, in NumPy",
    "AngleBetween": "arc cosine and sine of turned vectors, in NumPy",
    "Energy": "masses, speeds and springs of rigid bodies in NumPy",
    "ClosureError": "distances of joint halves in NumPy",
    "Element": "lengths and laws in NumPy",
    "Reaction": "Newton-Euler equations in maximal coordinates by SVD",
    "DriveEffort": "Newton-Euler equations in maximal coordinates by SVD",
    "ShakingForce": "masses and accelerations of rigid bodies in NumPy",
    "ShakingMoment": "rates of angular momenta of rigid bodies in NumPy",
    "Function": "NumPy",
    "sum of observables": "NumPy",
    "magnitude of observables": "NumPy",
}


class Instant(NamedTuple):
    """A state of all samples, as the oracle has it.

    Attributes:
        r: the mechanisms.
        q, v: the state (samples, n).
        placed: bodies in motion.
        acceleration: (samples, bodies, 6).
        forces: joint forces of each sample.
    """

    r: Dynamics
    q: Any
    v: Any
    placed: Any
    acceleration: Any
    forces: list[Forces]

    def at(self, body: str, point: str) -> Dual:
        return self.r.point(self.placed, body, self.r.points[point])

    def direction(self, body: str, drawn: Any) -> Any:
        return mul(self.placed[body][0].v, np.asarray(drawn, float))


class Watched(NamedTuple):
    """An observable, its number, its oracle, and the size of what goes into it."""

    number: str
    what: Any
    oracle: Callable[[Instant], Any]
    size: Callable[[Instant], Any]


def kinematic(mech: mbd.Mechanism) -> list[Watched]:
    """Observables of positions, speeds and energies of a mechanism."""
    bodies, points = mech.structure.bodies, mech.structure.points
    last, first, p, s = bodies[-1], bodies[0], points[0], points[-1]
    d, up, along = (0.3, 1.0, 0.2), (0.0, 0.1, 1.0), (0.2, 1.0, 0.0)
    found = [
        Watched("Position", observe.Position(last, p), lambda i: i.at(last, p).v, _reach),
        Watched(
            "Position", observe.Position(last, s, "z"), lambda i: i.at(last, s).v[:, 2], _reach
        ),
        Watched(
            "Travel",
            observe.Travel(last, p, "norm"),
            lambda i: np.linalg.norm(i.at(last, p).v - i.r.points[p], axis=1),
            _reach,
        ),
        Watched("Velocity", observe.Velocity(last, p), lambda i: i.at(last, p).d, _speed),
        Watched(
            "Distance", _span(first, last, p, s), lambda i: _apart(i, first, last, p, s)[0], _reach
        ),
        Watched(
            "DistanceRate",
            observe.DistanceRate(first, p, last, s),
            lambda i: _apart(i, first, last, p, s)[1],
            _speed,
        ),
        Watched(
            "DirectionAngle",
            observe.DirectionAngle(last, d, up, along),
            lambda i: np.arctan2(i.direction(last, d) @ up, i.direction(last, d) @ along),
            _one,
        ),
        Watched(
            "Camber",
            observe.Camber(last, spindle=(0.0, 1.0, 0.0)),
            lambda i: _wheel(i, last, (0, 0, -1), 1.0),
            _one,
        ),
        Watched(
            "Toe",
            observe.Toe(last, "right", spindle=(0.0, -1.0, 0.0)),
            lambda i: _wheel(i, last, (1, 0, 0), -1.0),
            _one,
        ),
        Watched(
            "AngleBetween",
            observe.AngleBetween(first, d, last, up),
            lambda i: _between(i.direction(first, d), i.direction(last, up)),
            _one,
        ),
        Watched("Energy", observe.Energy("kinetic"), lambda i: i.r.energies(i.q, i.v)[0], _no_size),
        Watched(
            "ClosureError",
            observe.ClosureError(),
            lambda i: np.max(np.abs(i.r.conditions(i.q, i.v).v), axis=-1, initial=0.0) * 0.0,
            _reach,
        ),
        Watched(
            "Function",
            observe.Function(_second_power, "", "square of the first coordinate"),
            lambda i: i.q[:, 0] ** 2,
            _one,
        ),
        Watched(
            "sum of observables",
            2.0 * observe.Position(last, p, "x") - observe.Position(first, s, "x") / 4.0 + 0.5,
            lambda i: 2.0 * i.at(last, p).v[:, 0] - i.at(first, s).v[:, 0] / 4.0 + 0.5,
            _reach,
        ),
        Watched(
            "magnitude of observables",
            abs(observe.Velocity(last, s, "y")),
            lambda i: np.abs(i.at(last, s).d[:, 1]),
            _speed,
        ),
    ]
    top = mbd.topology(mech)
    for name in top.tree:
        joint: Any = mech.joint(name)
        place: Any = top.layout[name]
        if joint.scalar_coordinates and joint.nv:
            k = joint.nv - 1
            q, v = place.q.start + k, place.v.start + k
            found += [
                Watched(
                    "Coordinate", observe.Coordinate(name, k), lambda i, q=q: i.q[:, q], _reach
                ),
                Watched(
                    "CoordinateRate",
                    observe.CoordinateRate(name, k),
                    lambda i, v=v: i.v[:, v],
                    _speed,
                ),
            ]
    return found + _elements(mech)


def dynamic(mech: mbd.Mechanism) -> list[Watched]:
    """Observables of accelerations and joint forces."""
    last, p = mech.structure.bodies[-1], mech.structure.points[0]
    found = [
        Watched(
            "Acceleration",
            observe.Acceleration(last, p),
            lambda i: _acceleration(i, last, p),
            _pull,
        )
    ]
    found += [
        Watched("ShakingForce", observe.ShakingForce(), lambda i: _shaking(i, p)[0], _inertia),
        Watched(
            "ShakingMoment",
            observe.ShakingMoment(p, "z", weight=True),
            lambda i: (_shaking(i, p)[1] + _weighing(i, p))[:, 2],
            lambda i: _inertia(i) * _reach(i),
        ),
    ]
    found += [
        Watched("DriveEffort", observe.DriveEffort(d), lambda i, d=d: _effort(i, d), _force)
        for d, _, _ in mech.structure.drives
    ]
    return found + reactions(mech)


def reactions(mech: mbd.Mechanism) -> list[Watched]:
    """Reactions of all joints."""
    found = []
    for e in mech.structure.joints:
        n = e.name
        found += [
            Watched("Reaction", observe.Reaction(n), lambda i, n=n: _wrench(i, n)[:, 3:], _force),
            Watched(
                "Reaction",
                observe.Reaction(n, "moment", "norm"),
                lambda i, n=n: np.linalg.norm(_wrench(i, n)[:, :3], axis=1),
                lambda i: _force(i) * i.r.length[:, 0],
            ),
        ]
    return found


def _elements(mech: mbd.Mechanism) -> list[Watched]:
    found, make = [], observe.Element
    for name in mech.structure.forces:
        match type(mech.forces[name]).__name__:
            case "SpringDamper":
                found += [
                    Watched(
                        "Element",
                        make(name, "force"),
                        lambda i, n=name: _spring(i, n)[0],
                        _pulls(name),
                    ),
                    Watched(
                        "Element", make(name, "length"), lambda i, n=name: _spring(i, n)[1], _reach
                    ),
                    Watched(
                        "Element", make(name, "rate"), lambda i, n=name: _spring(i, n)[2], _speed
                    ),
                ]
            case "TorsionSpring":
                found.append(
                    Watched(
                        "Element", make(name, "effort"), lambda i, n=name: _torsion(i, n), _no_size
                    )
                )
            case "Bushing":
                found.append(
                    Watched(
                        "Element",
                        make(name, "translation"),
                        lambda i, n=name: _offset(i, n),
                        _reach,
                    )
                )
    return found


def _second_power(at: Any) -> Any:
    return at.q[0] ** 2


def _span(a: str, b: str, p: str, s: str) -> Any:
    return observe.Distance(a, p, b, s)


def _apart(i: Instant, a: str, b: str, p: str, s: str) -> tuple[Any, Any]:
    d = i.at(b, s).minus(i.at(a, p))
    length = np.sqrt(_sum(d.v * d.v))
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where(length > 0.0, _sum(d.v * d.d) / length, 0.0)
    return length[:, 0], rate[:, 0]


def _wheel(i: Instant, body: str, up: Any, left: float) -> Any:
    d = i.direction(body, (0.0, left, 0.0))
    return np.arctan2(d @ np.array(up, float), left * d[:, 1])


def _between(a: Any, b: Any) -> Any:
    a, b = unit(a), unit(b)
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), np.sum(a * b, axis=1))


def _acceleration(i: Instant, body: str, point: str) -> Any:
    k, (r, _) = i.r.bodies.index(body), i.placed[body]
    arm = mul(r.v, i.r.points[point] - i.r.com[body])
    spin = i.r.twists(i.placed)[:, k, :3]
    turning, moving = i.acceleration[:, k, :3], i.acceleration[:, k, 3:]
    return moving + np.cross(turning, arm) + np.cross(spin, np.cross(spin, arm))


def _shaking(i: Instant, point: str) -> tuple[Any, Any]:
    """Force and moment (samples, 3) of all inertia about a drawn point."""
    twists, rates, place = i.r.twists(i.placed), i.acceleration, i.r.points[point]
    force, moment = np.zeros((i.r.n, 3)), np.zeros((i.r.n, 3))
    inertias = i.r.inertias(i.placed)
    for k, body in enumerate(i.r.bodies):
        arm = i.r.point(i.placed, body, i.r.com[body]).v - place
        push = i.r.mass[:, k, None] * rates[:, k, 3:]
        spin, turning = twists[:, k, :3], mul(inertias[:, k], rates[:, k, :3])
        moment -= turning + np.cross(spin, mul(inertias[:, k], spin)) + np.cross(arm, push)
        force -= push
    return force, moment


def _weighing(i: Instant, point: str) -> Any:
    moment = np.zeros((i.r.n, 3))
    for k, body in enumerate(i.r.bodies):
        arm = i.r.point(i.placed, body, i.r.com[body]).v - i.r.points[point]
        moment += np.cross(arm, i.r.mass[:, k, None] * i.r.gravity)
    return moment


def _wrench(i: Instant, joint: str) -> Any:
    """NaN where it is not determinate, which is not compared."""
    none = np.full(6, np.nan)
    return np.stack([f.wrenches[joint] if f.determinate[joint] else none for f in i.forces])


def _effort(i: Instant, name: str) -> Any:
    return np.array([f.efforts[name][0] if f.efforts[name][1] else np.nan for f in i.forces])


def _spring(i: Instant, name: str) -> tuple[Any, Any, Any]:
    _, p = i.r.forces[name]
    _, _, length, free = i.r._span(i.placed, p)
    return i.r._tension(p, length, free)[:, 0], length.v[:, 0], length.d[:, 0]


def _pulls(name: str) -> Callable[[Instant], Any]:
    """Stiffness times length: rounding of the length costs so much."""

    def size(i: Instant) -> Any:
        _, p = i.r.forces[name]
        return i.r.numbers(p, "stiffness") * _reach(i)

    return size


def _torsion(i: Instant, name: str) -> Any:
    _, p = i.r.forces[name]
    x = i.r.coordinate(p[0]["joint"], p[0].get("index", 0), i.q, i.v)
    k, c, x0 = (i.r.numbers(p, n) for n in ("stiffness", "damping", "free_angle"))
    return -(k * (x.v[:, 0] - x0) + c * x.d[:, 0])


def _offset(i: Instant, name: str) -> Any:
    _, p = i.r.forces[name]
    (r_a, s_a), (r_b, s_b) = i.placed[p[0]["a"]], i.placed[p[0]["b"]]
    at = i.r._place([x["at"] for x in p])
    d = mul(r_b.v, at) + s_b.v - mul(r_a.v, at) - s_a.v
    return mul(np.swapaxes(r_a.v, 1, 2), d)


def _one(i: Instant) -> Any:
    return np.ones(i.r.n)


def _no_size(i: Instant) -> Any:
    return np.zeros(i.r.n)


def _reach(i: Instant) -> Any:
    """The farthest that a point is from the origin."""
    far = [np.max(np.abs(s.v), axis=1) for _, s in i.placed.values()]
    drawn = [np.max(np.abs(x), axis=1) for x in i.r.points.values()]
    return np.maximum(np.max(far, axis=0), np.max(drawn, axis=0))


def _speed(i: Instant) -> Any:
    w = np.abs(i.r.twists(i.placed))
    return np.max(np.maximum(w[..., :3] * _reach(i)[:, None, None], w[..., 3:]), axis=(1, 2))


def _pull(i: Instant) -> Any:
    a = np.abs(i.acceleration)
    return np.max(np.maximum(a[..., :3] * _reach(i)[:, None, None], a[..., 3:]), axis=(1, 2))


def _inertia(i: Instant) -> Any:
    """The size of all inertia forces and weights."""
    return np.sum(i.r.mass, axis=1) * (_pull(i) + np.linalg.norm(i.r.gravity, axis=-1))


def _force(i: Instant) -> Any:
    return np.array([f.scale for f in i.forces])
