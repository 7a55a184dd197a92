"""Mechanisms of the mechanical families: few topologies, whose numbers are drawn for every sample.

Micrometres to hundreds of metres, grams to tonnes; among them massless links, point masses between
balls, redundant planar loops in space with the digits of a file in single precision, drawings off
closure, aligned links, parallel arms, bushings from 1e3 to 1e10, gears, drives, floating bases.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd

Rng = np.random.Generator


@mbd.register_law("judge: sine")
def sine(t: Any, p: Any) -> Any:
    """A vibrating drive."""
    return p * jnp.sin(3.0 * t)


class Kind(NamedTuple):
    """A topology.

    Attributes:
        make: of a random generator and a length [m], a mechanism.
        hold: a coordinate that determines the configuration, if there is one, and how far it may
            be moved [rad].
        settles: whether it comes to rest by itself or with `hold` held.
        rough: closure error of its drawing, relative to the length, along redundant rows.
    """

    make: Callable[[Rng, float], mbd.Mechanism]
    hold: str | None = None
    reach: float = 0.3
    settles: bool = False
    rough: float = 0.0


def body(rng: Rng, com: Any, size: float, mass: float | None = None) -> mbd.Body:
    """A solid body about a centre of mass."""
    mass = rng.uniform(0.5, 3.0) if mass is None else mass
    square = (size * rng.uniform(0.1, 0.4, 3)) ** 2
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return mbd.Body(mass, com, axes @ np.diag(mass / 5.0 * (square.sum() - square)) @ axes.T)


def light(rng: Rng, com: Any, size: float) -> mbd.Body:
    """A solid body, a point mass or a massless link."""
    whole = body(rng, com, size)
    share = rng.choice([1.0, 0.0, 0.0])
    mass = whole.mass * rng.choice([1.0, 1.0, 0.0])
    return mbd.Body(mass, com, whole.inertia * share * (mass > 0.0))


def file(x: Any) -> np.ndarray:
    """The digits of a file in single precision."""
    return np.asarray(x, np.float32).astype(float)


def stiffness(rng: Rng, size: float) -> float:
    """Of a spring that carries some kilograms over a share of the length."""
    return 300.0 / size * 10.0 ** rng.uniform(-0.5, 0.5)


def rssr(rng: Rng, size: float) -> mbd.Mechanism:
    """The coupler between two balls is solid, a point mass or massless; its spin is idle."""
    shift = size * 0.02 * rng.normal(size=(4, 3))
    o, a, b, q = shift + size * np.array(
        [[-0.9, -0.2, -0.15], [-0.5, -0.15, -0.15], [-0.35, 0.7, 0.1], [0.0, 0.0, 0.0]]
    )
    points = {"o": o, "a": a, "b": b, "q": q}
    bodies = {
        "crank": body(rng, (o + a) / 2, size),
        "coupler": light(rng, (a + b) / 2, size),
        "rocker": body(rng, (b + q) / 2 + 0.1 * size, size),
    }
    axis = np.array([0.1, -0.5, 0.87]) + 0.1 * rng.normal(size=3)
    joints = {
        "crank": mbd.Revolute("ground", "crank", "o", axis),
        "A": mbd.Spherical("crank", "coupler", "a"),
        "B": mbd.Spherical("coupler", "rocker", "b"),
        "rocker": mbd.Revolute("ground", "rocker", "q", (0.1, 0.0, 1.0)),
    }
    spring = mbd.SpringDamper("ground", "rocker", o + size, b, stiffness(rng, size), damping=0.1)
    return mbd.Mechanism(bodies, joints, {"spring": spring}, points=points)


def four_bar(rng: Rng, size: float) -> mbd.Mechanism:
    """Four revolutes in space: three redundant rows; points and axes in single precision."""
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    flat = np.array([[0, 0, 0], [0.1, 0.4, 0], [0.9, 0.8, 0], [1.0, 0, 0]])
    flat[:, :2] += 0.05 * rng.normal(size=(4, 2))
    o, a, b, q = file(size * flat @ turn.T)
    axis = file(turn[:, 2])
    names = {"o": o, "a": a, "b": b, "q": q}
    bodies = {
        "crank": body(rng, (o + a) / 2, size),
        "coupler": body(rng, (a + b) / 2, size),
        "rocker": body(rng, (b + q) / 2, size),
    }
    ends = {"O": ("ground", "crank", "o"), "A": ("crank", "coupler", "a")}
    ends |= {"B": ("coupler", "rocker", "b"), "Q": ("ground", "rocker", "q")}

    def digits(x: Any) -> np.ndarray:
        """As a file has the other half: rounded in other axes."""
        return file(x @ turn) @ turn.T

    joints = {
        n: mbd.Revolute(i, j, k, axis, at_b=digits(names[k]), axis_b=digits(axis))
        for n, (i, j, k) in ends.items()
    }
    spring = mbd.TorsionSpring("O", 5.0 * size, free_angle=0.3)
    return mbd.Mechanism(bodies, joints, {"spring": spring}, points=names)


def floating_loop(rng: Rng, size: float) -> mbd.Mechanism:
    """A floating base with a planar loop of five revolutes in space."""
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    angles = 2.0 * np.pi * (np.arange(5) + rng.uniform(-0.15, 0.15, 5)) / 5.0
    ring = size * np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1) @ turn.T
    names = [f"link{i}" for i in range(4)]
    bodies = {"base": body(rng, 0.3 * size * rng.normal(size=3), size)}
    bodies |= {n: body(rng, ring[i : i + 2].mean(axis=0), size) for i, n in enumerate(names)}
    chain = ["base", *names, "base"]
    joints: dict[str, Any] = {"free": mbd.Free("ground", "base")}
    for i in range(5):
        joints[f"J{i}"] = mbd.Revolute(chain[i], chain[i + 1], ring[i], turn[:, 2])
    return mbd.Mechanism(bodies, joints, gravity=(0, 0, -9.81))


def slider_crank(rng: Rng, size: float) -> mbd.Mechanism:
    """Drawn off closure by up to a fiftieth; sometimes with crank and rod aligned."""
    bent = rng.choice([0.3, 0.3, 0.3, 1e-9])
    o, a = np.zeros(3), size * np.array([0.3, bent, 0.05 * bent])
    b = size * np.array([1.0, 0.0, 0.05])
    gap = size * 0.02 * rng.normal(size=3)
    bodies = {
        "crank": body(rng, (o + a) / 2, size),
        "rod": body(rng, (a + b) / 2, size),
        "slider": body(rng, b, 0.2 * size),
    }
    joints = {
        "crank": mbd.Revolute("ground", "crank", o, (0.0, 0.1, 1.0)),
        "A": mbd.Universal("crank", "rod", a, (0, 0, 1), np.cross(b - a, (0, 0, 1))),
        "B": mbd.Spherical("rod", "slider", b, at_b=b + gap),
        "slide": mbd.Prismatic("ground", "slider", b + gap, (1.0, 0.05, 0.0)),
    }
    forces = {
        "push": mbd.PointForce("slider", b, 10.0 * rng.normal(size=3)),
        "spring": mbd.TorsionSpring("slide", stiffness(rng, size), damping=0.2),
    }
    return mbd.Mechanism(bodies, joints, forces)


def corner(rng: Rng, size: float) -> mbd.Mechanism:
    """A double-wishbone corner with its tie rod, a spring and the wheel's load."""
    move = lambda *x: size * (np.array(x) + 0.01 * rng.normal(size=3))  # noqa: E731
    points = {
        "uf": move(0.2, 0.5, 0.3), "ur": move(-0.2, 0.5, 0.3), "ub": move(0.0, 0.8, 0.3),
        "lf": move(0.2, 0.4, -0.2), "lr": move(-0.2, 0.4, -0.2), "lb": move(0.0, 0.85, -0.2),
        "ti": move(0.15, 0.42, -0.1), "to": move(0.15, 0.8, -0.1),
        "top": move(0.0, 0.55, 0.6), "bottom": move(0.0, 0.65, -0.2), "wheel": move(0, 0.9, 0),
    }  # fmt: skip
    p = points
    bodies = {
        "upper": body(rng, (p["uf"] + p["ur"] + p["ub"]) / 3, size),
        "lower": body(rng, (p["lf"] + p["lr"] + p["lb"]) / 3, size),
        "upright": body(rng, p["wheel"] * 0.97, size),
    }
    joints = {
        "upper": mbd.Revolute("ground", "upper", "uf", ("ur", "uf")),
        "lower": mbd.Revolute("ground", "lower", "lf", ("lr", "lf")),
        "upper_ball": mbd.Spherical("upper", "upright", "ub"),
        "lower_ball": mbd.Spherical("lower", "upright", "lb"),
        "tierod": mbd.Rod("ground", "upright", "ti", "to"),
    }
    forces = {
        "spring": mbd.SpringDamper(
            "ground", "lower", "top", "bottom", stiffness(rng, size), damping=1.0, preload=20.0
        ),
        "load": mbd.PointForce("upright", "wheel", (3.0, 5.0, 40.0)),
    }
    return mbd.Mechanism(bodies, joints, forces, points=points)


def bushed_arm(rng: Rng, size: float) -> mbd.Mechanism:
    """An arm on two bushings from 1e3 to 1e10 N/m, a strut between ball and spring."""
    f, r, b = (size * np.array(x) for x in ((0.3, 0, 0), (-0.3, 0.05, 0), (0.0, 0.6, -0.05)))
    rate = 10.0 ** rng.uniform(3, 10)
    along = rate * rng.uniform(0.5, 2.0, 3)
    turning = rate * size**2 * 1e-3 * rng.uniform(0.5, 2.0, 3)
    six = np.concatenate([turning, along])
    bodies = {"arm": body(rng, (f + r + b) / 3, size), "knuckle": body(rng, b, 0.3 * size)}
    joints = {
        "ball": mbd.Spherical("arm", "knuckle", b),
        "guide": mbd.Cylindrical(
            "ground", "knuckle", b + size * np.array([0, 0.1, 0]), (0, 0.1, 1)
        ),
        "link": mbd.Rod("ground", "knuckle", b + size * np.array([0.1, -0.4, 0.1]), b + size * 0.1),
    }
    forces = {
        "front": mbd.Bushing("ground", "arm", f, six, damping=six * 1e-4),
        "rear": mbd.Bushing("ground", "arm", r, six[::-1].copy()[[3, 4, 5, 0, 1, 2]], measure="small"),
        "spring": mbd.SpringDamper(
            "ground", "knuckle", b + size * np.array([0, 0, 0.5]), b, stiffness(rng, size)
        ),
    }  # fmt: skip
    return mbd.Mechanism(bodies, joints, forces)


def gears(rng: Rng, size: float) -> mbd.Mechanism:
    """Two geared shafts and a rack, on a turning carrier."""
    at = size * rng.normal(size=(4, 3))
    axes = rng.normal(size=(3, 3))
    names = ("carrier", "one", "two", "bar")
    bodies = {n: body(rng, x + 0.2 * size * rng.normal(size=3), size) for n, x in zip(names, at, strict=True)}  # fmt: skip
    joints = {
        "carrier": mbd.Revolute("ground", "carrier", at[0], axes[0]),
        "one": mbd.Revolute("carrier", "one", at[1], axes[1]),
        "two": mbd.Revolute("two", "carrier", at[2], axes[2]),
        "bar": mbd.Prismatic("carrier", "bar", at[3], axes[0] + axes[1]),
    }
    couplings = {
        "gear": mbd.Gear("one", "two", ratio=rng.uniform(-3, 3)),
        "rack": mbd.RackAndPinion("two", "bar", radius=size * rng.uniform(0.05, 0.2)),
    }
    forces = {"spring": mbd.TorsionSpring("carrier", 30.0 * size, damping=0.1)}
    return mbd.Mechanism(bodies, joints, forces, couplings=couplings)


def driven_linkage(rng: Rng, size: float) -> mbd.Mechanism:
    """A crank that a drive moves, a rocker, and a pendulum that swings on the coupler."""
    m = rssr(rng, size)
    at = 0.5 * (np.asarray(m.points["a"]) + np.asarray(m.points["b"]))
    bodies = dict(m.bodies) | {
        "coupler": body(rng, at, size),
        "bob": body(rng, at - size * np.array([0, 0, 0.4]), size),
    }
    joints = dict(m.joints) | {"hang": mbd.Revolute("rocker", "bob", at, (1.0, 0.2, 0.0))}
    forces = {"hang": mbd.TorsionSpring("hang", 2.0 * size, damping=0.01)}
    drives = {"motor": mbd.Drive("crank", sine, rng.uniform(0.05, 0.3))}
    points = {n: m.points[n] for n in m.structure.points}
    return mbd.Mechanism(bodies, joints, forces, drives=drives, points=points)


def chain(rng: Rng, size: float) -> mbd.Mechanism:
    """Every joint of the tree in one open chain, some declared the other way round."""
    at = size * np.cumsum(rng.uniform(-0.6, 0.6, (8, 3)), axis=0)
    axes = rng.normal(size=(8, 3))
    names = [f"link{i}" for i in range(8)]
    bodies = {n: body(rng, at[i] + 0.3 * size * rng.normal(size=3), size) for i, n in enumerate(names)}  # fmt: skip
    pairs = list(zip(["ground", *names[:-1]], names, strict=True))
    across = np.cross(axes, rng.normal(size=(8, 3)))
    tip = axes[0] + 0.3 * across[0]
    joints = {
        "revolute": mbd.Revolute(*pairs[0], at[0], axes[0], at_b=at[0] + 0.1 * size, axis_b=tip),
        "universal": mbd.Universal(*pairs[1][::-1], at[1], axes[1], across[1] + 0.2 * axes[1]),
        "helical": mbd.Helical(*pairs[2], at[2], axes[2], pitch=0.1 * size),
        "ball": mbd.Spherical(*pairs[3][::-1], at[3]),
        "fixed": mbd.Fixed(*pairs[4], at[4]),
        "cylindrical": mbd.Cylindrical(*pairs[5][::-1], at[5], axes[5]),
        "planar": mbd.Planar(*pairs[6], at[6], axes[6], across[6]),
        "prismatic": mbd.Prismatic(*pairs[7], at[7], axes[7]),
    }
    k = stiffness(rng, size)
    forces = {
        "spring": mbd.SpringDamper("link1", "link6", at[1], at[7] + size, k, damping=0.3 * k),
        "torque": mbd.Torque("link0", "link3", size * rng.normal(size=3)),
        "screw": mbd.TorsionSpring("helical", 2.0 * size, damping=0.1 * size, free_angle=0.2),
        "motor": mbd.JointTorque("universal", size * rng.normal(size=2)),
        "slide": mbd.TorsionSpring("cylindrical", k, index=1),
        "soft": mbd.Bushing("link2", "link7", at[3], k * size ** np.repeat([2.0, 0.0], 3)),
    }
    return mbd.Mechanism(bodies, joints, forces)


def parallelogram(rng: Rng, size: float) -> mbd.Mechanism:
    """Two parallel arms and a third one, redundant, in a plane in space; drawn at any angle."""
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    angle = rng.choice([rng.uniform(0.3, 2.8), 1e-6, 0.0])
    arm = size * np.array([np.cos(angle), np.sin(angle), 0.0]) @ turn.T
    feet = size * np.array([[0.0, 0, 0], [0.7, 0, 0], [1.5, 0, 0]]) @ turn.T
    names = ("first", "second", "third")
    bodies = {n: body(rng, x + arm / 2, size) for n, x in zip(names, feet, strict=True)}
    bodies["platform"] = body(rng, feet.mean(axis=0) + arm, size)
    joints: dict[str, Any] = {}
    for n, x in zip(names, feet, strict=True):
        joints[f"{n}_foot"] = mbd.Revolute("ground", n, x, turn[:, 2])
        joints[f"{n}_top"] = mbd.Revolute(n, "platform", x + arm, turn[:, 2])
    forces = {"spring": mbd.TorsionSpring("first_foot", 60.0 * size)}
    return mbd.Mechanism(bodies, joints, forces)


def platform(rng: Rng, size: float) -> mbd.Mechanism:
    """A body on five rods, with a massless arm and springs."""
    angles = rng.uniform(0, 2 * np.pi, 5) + np.arange(5)
    low = size * np.stack([np.cos(angles), np.sin(angles), 0.1 * angles], 1)
    high = size * np.stack([0.5 * np.cos(angles + 1), 0.5 * np.sin(angles + 1), 1 + 0 * angles], 1)
    high = high + 0.1 * size * rng.normal(size=(5, 3))
    bodies = {
        "platform": body(rng, high.mean(axis=0), size),
        "arm": mbd.Body(0.0, high[0]),
        "tip": body(rng, high[0] + 0.5 * size, size),
    }
    joints: dict[str, Any] = {
        "free": mbd.Free("ground", "platform"),
        "arm": mbd.Universal("platform", "arm", high[0], (1, 0, 0.1), (0, 1, 0)),
        "tip": mbd.Fixed("arm", "tip", high[0] + 0.3 * size),
    }
    joints |= {f"rod{i}": mbd.Rod("ground", "platform", low[i], high[i]) for i in range(5)}
    k = stiffness(rng, size)
    forces = {
        "spring": mbd.SpringDamper("ground", "platform", low[0] - size, high[2], k, damping=0.1 * k),
        "arm_spring": mbd.Bushing("platform", "arm", high[0], [30 * size] * 3 + [0.0] * 3),
    }  # fmt: skip
    return mbd.Mechanism(bodies, joints, forces)


def conditions(rng: Rng, size: float) -> mbd.Mechanism:
    """Conditions on points and axes, and cut joints of other types."""
    at = size * rng.normal(size=(6, 3))
    axes = rng.normal(size=(6, 3))
    names = ("one", "two", "three", "four")
    bodies = {n: body(rng, x, size) for n, x in zip(names, at, strict=False)}
    joints = {
        "one": mbd.Free("ground", "one"),
        "two": mbd.Spherical("one", "two", at[1]),
        "three": mbd.Cylindrical("two", "three", at[2], axes[2]),
        "four": mbd.Planar("three", "four", at[3], axes[3], np.cross(axes[3], axes[4])),
        "line": mbd.PointOnLine("ground", "one", at[4], axes[0]),
        "plane": mbd.PointOnPlane("one", "three", at[5], axes[1]),
        "parallel": mbd.ParallelAxes("ground", "two", axes[4]),
        "skew": mbd.PerpendicularAxes("one", "four", axes[0], np.cross(axes[0], axes[5])),
        "close": mbd.Universal("ground", "four", at[3], axes[4], np.cross(axes[4], axes[5])),
    }
    cut = ("line", "plane", "parallel", "skew", "close")
    return mbd.Mechanism(bodies, joints, gravity=(1, -2, -9), cut=cut)


def plane(rng: Rng, size: float) -> mbd.Mechanism:
    """A planar mechanism: a four-bar with a slider on its coupler."""
    flat = np.array([[0, 0], [0.1, 0.4], [0.9, 0.8], [1.0, 0], [0.5, 0.9]])
    o, a, b, q, s = size * (flat + 0.05 * rng.normal(size=(5, 2)))

    def link(com: Any) -> mbd.Body:
        return mbd.Body(mass := rng.uniform(0.5, 3.0), com, mass * size**2 * rng.uniform(0.02, 0.1))

    bodies = {
        "crank": link((o + a) / 2), "coupler": link((a + b) / 2), "rocker": link((b + q) / 2),
        "block": mbd.Body(rng.choice([0.0, 1.0]), s),
    }  # fmt: skip
    joints = {
        "O": mbd.Revolute("ground", "crank", o),
        "A": mbd.Revolute("crank", "coupler", a),
        "Q": mbd.Revolute("ground", "rocker", q),
        "slide": mbd.Prismatic("coupler", "block", s, b - a),
        "B": mbd.Revolute("coupler", "rocker", b),
        "slot": mbd.PointOnLine("ground", "block", s, (0.1, 1.0)),
    }
    forces = {
        "spring": mbd.SpringDamper("ground", "block", s + size, s, stiffness(rng, size)),
        "push": mbd.PointForce("coupler", b, (2.0, -1.0)),
    }
    return mbd.Mechanism(bodies, joints, forces, gravity=(0.5, -9.81))


KINDS: dict[str, Kind] = {
    "RSSR": Kind(rssr, "crank", 0.5, settles=True),
    "four-bar with a file's digits": Kind(four_bar, "O", 0.4, settles=True, rough=1e-6),
    "floating loop": Kind(floating_loop),
    "slider-crank off closure": Kind(slider_crank, "crank", 0.4, settles=True),
    "corner": Kind(corner, "lower", 0.15, settles=True),
    "arm on bushings": Kind(bushed_arm, settles=True),
    "gears": Kind(gears, settles=True),
    "driven linkage": Kind(driven_linkage, settles=True),
    "chain": Kind(chain),
    "three parallel arms": Kind(parallelogram, "first_foot", 0.3, settles=True),
    "platform": Kind(platform, settles=True),
    "conditions": Kind(conditions),
    "plane": Kind(plane, "O", 0.3, settles=True),
}


class Batch(NamedTuple):
    """Samples of one topology.

    Attributes:
        name: of the kind.
        kind: it.
        mech: the first of them.
        stacked: all, as one pytree.
        dicts: their dictionaries.
        sizes: their lengths [m].
        seed: of their numbers.
    """

    name: str
    kind: Kind
    mech: mbd.Mechanism
    stacked: Any
    dicts: list[dict[str, Any]]
    sizes: np.ndarray
    seed: int


def batch(name: str, samples: int, seed: int) -> Batch:
    """Samples of a kind, half of about a metre, the others from 1e-6 to 300 m."""
    kind = KINDS[name]
    rng = np.random.default_rng([seed, list(KINDS).index(name)])
    sizes = np.where(rng.random(samples) < 0.5, 1.0, 10.0 ** rng.uniform(-6.0, 2.5, samples))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        each = [kind.make(rng, size) for size in sizes]
    stacked = jax.tree_util.tree_map(lambda *x: np.stack([np.asarray(y) for y in x]), *each)
    return Batch(name, kind, each[0], stacked, [mbd.io.to_dict(m) for m in each], sizes, seed)
