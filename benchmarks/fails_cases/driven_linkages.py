"""Linkages of dyads, driven, in the plane and drawn anywhere in space: free bodies in the plane.

A crank, and one or two dyads (links with two pins and one more, a slider on another body, a rod
that slides in a rocker) on it, on each other and on the ground. Some links have no mass, the halves
of the cut pins are drawn apart, and of some samples a number is missing. In space all rows across
the plane are redundant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import Judged, compare, or_crash
from fails_cases.planar_bodies import Guide, Link, Linkage, Moment, Pin, motion
from jaxmbd import observe

PER_SAMPLE = 14
_FREE = "free bodies in the plane, in NumPy"
_RATES = "rates of bodies in the plane, in NumPy"
NUMBERS = {
    "Coordinate, driven linkages": _RATES,
    "CoordinateRate, driven linkages": _RATES,
    "HoldingEffort, driven linkages": _FREE,
    "DrivingPower, driven linkages": _FREE,
    "ShakingForce, driven linkages": _FREE,
    "ShakingMoment, driven linkages": _FREE,
    "Reaction, driven linkages": _FREE,
    "SpeedRatio, driven linkages": _RATES,
    "MechanicalAdvantage, driven linkages": _RATES,
    "DrivenMotion.q, derivative along centres of mass": "no centre of mass moves a joint",
}
TIMES, SPEED, SWING = np.linspace(0.0, 1.0, 5), 3.0, 0.25
STRUCTURES = 4
"""Each is compiled."""


class Dyad(NamedTuple):
    """Two links on the bodies `a` and `b`: "RRR", "RRP" or "RPR", and which way joints run."""

    kind: str
    a: str
    b: str
    swapped: tuple[bool, ...]


def planned(rng: np.random.Generator) -> list[Dyad]:
    """A random structure of one or two dyads, the first between crank and ground."""
    found = []
    for k in range(int(rng.integers(1, 3))):
        moving = ["crank", *(f"{x}{i}" for i in range(k) for x in "lm")]
        a = str(rng.choice(moving)) if k else "crank"
        others = ["ground", *(x for x in moving if x != a)] if k else ["ground"]
        b = str(rng.choice(others)) if rng.random() < 0.5 else "ground"
        swapped = tuple(bool(x) for x in rng.random(3) < 0.5)
        found.append(Dyad(str(rng.choice(["RRR", "RRP", "RPR"])), a, b, swapped))
    return found


def drawn(rng: np.random.Generator, plan: list[Dyad], massless: float = 0.0) -> Linkage:
    """A random linkage of a structure."""

    def about(x: Any) -> Any:
        return x + 0.5 * rng.normal(size=2)

    def unit(angle: float) -> np.ndarray:
        return np.array([np.cos(angle), np.sin(angle)])

    tip = rng.uniform(0.3, 0.5) * unit(rng.uniform(0.0, 2.0 * np.pi))
    ends, zero = {"crank": (np.zeros(2), tip)}, np.zeros(2)
    joints: dict[str, Pin | Guide] = {"A": Pin("ground", "crank", zero, zero)}
    for i, dyad in enumerate(plan):
        names = f"l{i}", f"m{i}"
        middle = {name: 0.5 * (p + q) for name, (p, q) in ends.items()}
        p = tip if dyad.a == "crank" else about(middle[dyad.a])
        turn, reach = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(1.0, 1.6)
        q = p + reach * unit(turn) if dyad.b == "ground" else about(middle[dyad.b])
        along, across = q - p, np.array([p[1] - q[1], q[0] - p[0]])
        side, lean = rng.choice([-1.0, 1.0]), rng.uniform(-0.6, 0.6)
        way = np.arctan2(along[1], along[0]) + lean
        r = p + rng.uniform(0.2, 0.8) * along + side * rng.uniform(0.5, 1.2) * across

        def pin(a: str, b: str, at: np.ndarray, k: int, cut: bool = False, flip: Any = dyad) -> Pin:
            apart = 0.04 * rng.normal(size=2) if cut else 0.0
            a, b = (b, a) if flip.swapped[k] else (a, b)
            return Pin(a, b, at, at + apart)

        def guide(a: str, b: str, at: np.ndarray, way: float = way, flip: Any = dyad) -> Guide:
            return Guide(*((b, a) if flip.swapped[2] else (a, b)), at, unit(way))

        n, m = names
        if dyad.kind == "RRR":
            ends |= {n: (p, r), m: (r, q)}
            new = pin(dyad.a, n, p, 0), pin(n, m, r, 1, cut=True), pin(dyad.b, m, q, 2)
        elif dyad.kind == "RRP":
            ends |= {n: (p, q), m: (q, q)}
            new = pin(dyad.a, n, p, 0), pin(n, m, q, 1, cut=True), guide(dyad.b, m, about(q))
        else:
            ends |= {n: (p, 0.5 * (p + q)), m: (q, 0.5 * (p + q))}
            new = pin(dyad.b, m, q, 1), pin(dyad.a, n, p, 0, cut=True), guide(m, n, 0.5 * (p + q))
        joints |= {f"{x}{i}": j for x, j in zip("PCQ", new, strict=True)}
    size = 10.0 ** rng.uniform(-1.5, 0.7)
    links = {}
    for name, (p, q) in ends.items():
        mass = 0.0 if rng.random() < massless else rng.uniform(0.2, 3.0)
        com = 0.5 * (p + q) + 0.2 * rng.normal(size=2)
        links[name] = Link(mass, size * com, mass * size**2 * rng.uniform(0.02, 0.2))
    gravity = float(rng.choice([0.0, 9.81])) * unit(rng.uniform(0.0, 2.0 * np.pi))
    return Linkage(links, {n: _scaled(j, size) for n, j in joints.items()}, gravity, "A")


def _scaled(j: Pin | Guide, size: float) -> Pin | Guide:
    if isinstance(j, Pin):
        return j._replace(at=size * j.at, at_b=size * j.at_b)
    return j._replace(at=size * j.at)


class Frame(NamedTuple):
    """Where a plane lies in space: its axes and normal (3, 3) in columns, its origin (3,)."""

    turn: np.ndarray
    origin: np.ndarray

    def vector(self, v: np.ndarray) -> np.ndarray:
        """A vector (2,) of the plane in space."""
        return self.turn[:, :2] @ v

    def put(self, p: np.ndarray) -> np.ndarray:
        """A point (2,) of the plane in space."""
        return self.vector(p) + self.origin


def anywhere(rng: np.random.Generator) -> Frame:
    """A random frame."""
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return Frame(turn * np.linalg.det(turn), rng.normal(size=3))


def machine(lk: Linkage, frame: Frame | None) -> mbd.Mechanism:
    """The same for the package, in the plane or in space; its cuts are where halves are apart."""
    put = frame.put if frame else np.asarray
    vector = frame.vector if frame else np.asarray
    turns: dict[str, Any] = {"axis": frame.turn[:, 2]} if frame else {}
    bodies, joints, cut = {}, {}, []
    for name, b in lk.links.items():
        inertia: Any = b.inertia
        if frame:
            inertia = frame.turn @ np.diag([0.5, 0.7, 1.0]) @ frame.turn.T * b.inertia
        bodies[name] = mbd.Body(b.mass, put(b.com), inertia)
    for name, j in lk.joints.items():
        if isinstance(j, Guide):
            joints[name] = mbd.Prismatic(j.a, j.b, at=put(j.at), axis=vector(j.axis))
        elif np.any(j.at != j.at_b):
            cut.append(name)
            joints[name] = mbd.Revolute(j.a, j.b, at=put(j.at), at_b=put(j.at_b), **turns)
        else:
            joints[name] = mbd.Revolute(j.a, j.b, at=put(j.at), **turns)
    return mbd.Mechanism(bodies=bodies, joints=joints, gravity=vector(lk.gravity), cut=cut)


def law(t: Any, numbers: Any) -> Any:
    """The driven angle."""
    return numbers[0] * jnp.sin(numbers[1] * t)


def swung(lk: Linkage, times: np.ndarray = TIMES) -> list[Moment] | None:
    """The oracle's motion of it."""
    sine, cosine = SWING * np.sin(SPEED * times), SWING * np.cos(SPEED * times)
    return motion(lk, sine, SPEED * cosine, -(SPEED**2) * sine)


def judged(seed: int, size: int) -> Iterator[Judged]:
    """A few structures, many samples of each."""
    samples = max(3, size // (PER_SAMPLE * STRUCTURES))
    for k in range(STRUCTURES):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        yield from or_crash(
            "HoldingEffort, driven linkages", _structure(rng, samples, k % 2 == 1, text), text
        )


def _structure(rng: np.random.Generator, samples: int, space: bool, text: str) -> Iterator[Judged]:
    plan = planned(rng)
    text = f"{[(d.kind, d.a, d.b) for d in plan]}, {'space' if space else 'plane'}, {text}"
    cases: list[tuple[Linkage, Frame | None, list[Moment]]] = []
    for _ in range(20 * samples):
        lk = drawn(rng, plan, massless=0.4)
        if (moments := swung(lk)) is not None:
            cases.append((lk, anywhere(rng) if space else None, moments))
        if len(cases) == samples:
            break
    if not cases:
        return
    mechs = [machine(lk, frame) for lk, frame, _ in cases]
    paths, stacked = _stacked(mechs)
    broken = rng.random(len(cases)) < 0.15
    for i in np.flatnonzero(broken):
        k = int(rng.integers(len(stacked)))
        stacked[k][i] = np.where(rng.random(stacked[k][i].shape) < 0.4, np.nan, stacked[k][i])
        broken[i] = bool(np.isnan(stacked[k][i]).any())
    batch = jax.tree_util.tree_unflatten(paths, stacked)
    turn, followers = _experiment(mechs[0], cases[0][0])
    found = mbd.lanes.vmap(turn)(batch)
    found = {name: np.asarray(x) for name, x in found.items()}
    slopes = np.asarray(_slopes(mechs[0], turn)(batch))
    for i, (lk, frame, moments) in enumerate(cases):
        said = f"sample {i}, {text}"
        ok = int(found["status"][i]) == mbd.Status.OK
        one = {name: x[i] for name, x in found.items() if name != "status"}
        yield from _sample(one, lk, frame, moments, followers, (said, ok, bool(broken[i])))
        none = np.full(slopes[i].shape, np.nan) if broken[i] else 0.0 * slopes[i]
        yield compare(
            "DrivenMotion.q, derivative along centres of mass", slopes[i], none,
            limit=1e-9, scale=1.0, detail=said, ok=ok or bool(np.isnan(slopes[i]).all()),
        )  # fmt: skip


def _stacked(mechs: list[mbd.Mechanism]) -> tuple[Any, list[np.ndarray]]:
    leaves = [jax.tree_util.tree_flatten(m) for m in mechs]
    columns = zip(*(x for x, _ in leaves), strict=True)
    return leaves[0][1], [np.stack([np.asarray(x, float) for x in column]) for column in columns]


def _experiment(mech: mbd.Mechanism, lk: Linkage) -> tuple[Any, list[str]]:
    """What is observed, and the joints whose coordinates are."""
    followers = [n for n in lk.joints if n in mbd.topology(mech).tree and n != "A"]
    about = (0.0,) * (2 if mech.structure.planar else 3)
    watched: dict[str, Any] = {
        "effort": observe.HoldingEffort("A"),
        "power": observe.DrivingPower("A"),
        "force": observe.ShakingForce(weight=True),
        "moment": observe.ShakingMoment(about),
        "advantage": observe.MechanicalAdvantage("A", followers[0]),
    }
    watched |= {f"force {n}": observe.Reaction(n) for n in lk.joints}
    watched |= {f"moment {n}": observe.Reaction(n, "moment") for n in lk.joints}
    for n in followers:
        watched |= {
            f"q {n}": observe.Coordinate(n),
            f"v {n}": observe.CoordinateRate(n),
            f"ratio {n}": observe.SpeedRatio(n, "A"),
        }
    return observe.Driven({"A": (law, (SWING, SPEED))}, TIMES, watched), followers


def _slopes(mech: mbd.Mechanism, turn: Any) -> Any:
    """Forward derivatives of all coordinates as all centres of mass move, in the plane."""

    def slope(m: mbd.Mechanism) -> Any:
        def closed(step: Any) -> Any:
            bodies = {
                n: mbd.Body(b.mass, jnp.asarray(m.com(n))[: len(way)] + step * way, b.inertia)
                for n, b in m.bodies.items()
            }
            found = mbd.simulate_driven(m.replace(bodies=bodies), turn.known, t=TIMES, throw=False)
            return found.q

        guide = m.points[next(iter(m.points))], m.points[list(m.points)[1]]
        way = jnp.asarray(guide[0]) - jnp.asarray(guide[1])
        return jax.jvp(closed, (0.0,), (1.0,))[1]

    return mbd.lanes.vmap(slope)


def _sample(
    one: dict[str, Any],
    lk: Linkage,
    frame: Frame | None,
    moments: list[Moment],
    followers: list[str],
    told: tuple[str, bool, bool],
) -> Iterator[Judged]:
    """One linkage over its motion, all in the plane."""
    said, ok, broken = told
    turn, origin = frame or (np.eye(3), np.zeros(3))
    masses = np.abs([lk.mass() * m.a for m in moments])
    force = float(max(np.max(np.abs([m.multipliers for m in moments])), masses.max())) or 1.0
    length = float(max(np.linalg.norm(b.com) for b in lk.links.values()))
    about = -(turn.T @ origin)[:2]
    rates = np.array([m.linkage.rate(m.x, m.v, "A") for m in moments])

    def case(name: str, got: Any, want: Any, scale: float, limit: float = 1e-8) -> Judged:
        want = np.full(np.shape(want), np.nan) if broken else np.asarray(want, float)
        number = f"{name}, driven linkages"
        return compare(number, got, want, limit=limit, scale=scale, detail=said, ok=ok)

    effort = np.array([m.effort for m in moments])
    swift = float(np.abs(rates).max())
    yield case("HoldingEffort", one["effort"], effort, force * length)
    yield case("DrivingPower", one["power"], effort * rates, force * length * swift)
    whole = np.array([m.shaking(about, weight=True) for m in moments])
    yield case("ShakingForce", (one["force"] @ turn)[:, :2], whole[:, :2], force)
    inertia = np.array([m.shaking(about)[2] for m in moments])
    far = length + float(np.linalg.norm(origin))
    yield case("ShakingMoment", (one["moment"] @ turn)[:, 2], inertia, force * far)
    for name in lk.joints:
        wrench = np.array([m.reaction(name) for m in moments])
        yield case("Reaction", (one[f"force {name}"] @ turn)[:, :2], wrench[:, :2], force)
        yield case("Reaction", (one[f"moment {name}"] @ turn)[:, 2], wrench[:, 2], force * length)
    moved = np.abs(rates) > 1e-3
    for name in followers:
        scale = 1.0 if isinstance(lk.joints[name], Pin) else length
        q = [m.linkage.coordinate(m.x, name) for m in moments]
        v = np.array([m.linkage.rate(m.x, m.v, name) for m in moments])
        yield case("Coordinate", one[f"q {name}"], np.real(q), scale)
        yield case("CoordinateRate", one[f"v {name}"], v, scale * swift)
        ratio = v[moved] / rates[moved]
        yield case("SpeedRatio", one[f"ratio {name}"][moved], ratio, scale)
        steep = np.abs(ratio) > 1e-4 * scale
        if name == followers[0]:
            gain = one["advantage"][moved][steep] * ratio[steep]
            yield case("MechanicalAdvantage", gain, np.ones(steep.sum()), 1.0)
