"""Families of random designs near straight links, dead centres, contacts, springs of no length.

A family makes a batch of number vectors x (n, k), each at a distance δ from something singular, and
evaluates one of them: quantities y (m,) by name and, for each, whether it is reported as good. δ is
zero for some and spread over 1e-13 … 1e-1 for the others, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd

Answer = dict[str, tuple[Any, Any]]
zoo = mbd.zoo


class Family(NamedTuple):
    """Random numbers (n, k) at a distance from something singular, and quantities of one row.

    Attributes:
        draw: (generator, n) → x (n, k).
        answer: x (k,) → quantity to (number, whether it is reported as good).
    """

    draw: Callable[[np.random.Generator, int], np.ndarray]
    answer: Callable[[Any], Answer]


def distances(rng: np.random.Generator, n: int) -> np.ndarray:
    """δ (n,): one in eight zero, the others of either sign, 1e-13 to 1e-1."""
    size = 10.0 ** rng.uniform(-13.0, -1.0, n) * rng.choice([-1.0, 1.0], n)
    return np.where(rng.random(n) < 0.125, 0.0, size)


def _weighed(x: Any) -> Any:
    return jnp.sum(x * np.cos(1.0 + np.arange(x.shape[0])))


def _motion(mech: mbd.Mechanism, q: Any, v: Any, t1: float = 0.02) -> tuple[Any, Any]:
    run = mbd.simulate(mech, q, v, t1=t1, dt=1e-3, throw=False, outputs_only=True)
    return _weighed(run.q[-1]), run.status == 0


def _held(mech: mbd.Mechanism, known: Any, point: tuple[str, str], guess: Any = None) -> Answer:
    """Assembly with something held, its speeds, and how far it is from the dead centre."""
    found = mbd.assemble(mech, known, guess, throw=False)
    speeds = mbd.assemble_velocity(mech, found.q, dict.fromkeys(known, 1.0))
    place = mbd.point_position(mech, found.q, *point)
    margin = mbd.dead_centre(mech, known, guess)
    good = found.status == 0
    return {
        "position": (_weighed(place), good),
        "speed": (_weighed(mbd.point_velocity(mech, found.q, speeds, *point)), good),
        "closure margin": (margin.margin, margin.status <= 1),
    }


def _four_bars(rng: np.random.Generator, n: int) -> np.ndarray:
    """Coupler and rocker stretched, or folded, by the crank's angle: a dead centre of the rocker.

    The coupler's length follows from the distance that it has to bridge.
    """
    crank, rocker, ground = (rng.uniform(0.2, 1.0, n) for _ in range(3))
    angle = rng.uniform(-2.5, 2.5, n)
    gap = np.hypot(ground - crank * np.sin(angle), crank * np.cos(angle))
    fold = rng.choice([-1.0, 0.0], n)
    coupler = np.where(fold == 0.0, np.abs(gap - rocker), gap + rocker) + distances(rng, n)
    return np.stack([crank, np.maximum(coupler, 0.02), rocker, ground, angle], axis=1)


def _four_bar(x: Any) -> Answer:
    return _held(zoo.four_bar(*x[:4]), {"A": x[4]}, ("rocker", "C_rocker"), _aside(x[4]))


def _aside(angle: Any) -> Any:
    """The crank where it is held, coupler and rocker anywhere."""
    return jnp.stack([angle, 0.3 + 0.0 * angle, -0.4 + 0.0 * angle])


def _sliders(rng: np.random.Generator, n: int) -> np.ndarray:
    """The slider held where crank and rod are one straight line, at either end of the stroke."""
    crank, rod = rng.uniform(0.1, 0.3, n), rng.uniform(0.4, 0.8, n)
    end = np.where(rng.random(n) < 0.5, crank + rod, rod - crank)
    return np.stack([crank, rod, end + distances(rng, n) * crank], axis=1)


TURNED = np.array([0.5, -0.8, 0.0])
"""Coordinates of the slider-crank away from its dead centre, where it is drawn."""


def _slider(x: Any) -> Answer:
    held = mbd.PointCoordinate("slider", "A", "x")
    return _held(
        zoo.slider_crank(x[0], x[1]), {held: x[2]}, ("crank", "B"), guess=jnp.array(TURNED)
    )


def _straight(rng: np.random.Generator, n: int) -> np.ndarray:
    """The crank held at the straight line, which is regular for the slider."""
    lengths = rng.uniform(0.1, 0.8, (n, 2))
    return np.concatenate([lengths, distances(rng, n)[:, None], rng.normal(size=(n, 1))], axis=1)


def _straight_crank(x: Any) -> Answer:
    mech = zoo.slider_crank(x[0], x[0] + x[1])
    found = mbd.assemble(mech, {"O": x[2]}, throw=False)
    v = mbd.assemble_velocity(mech, found.q, {"O": 3.0 * x[3]})
    vdot, lam = mbd.forward_dynamics(mech, found.q, v)
    good, moved = found.status == 0, _motion(mech, found.q, v)
    return {
        "position": (_weighed(found.q), good),
        "acceleration": (_weighed(jnp.tanh(vdot / 10.0)), good),
        "reaction": (_weighed(jnp.tanh(lam / 10.0)), good),
        "motion": moved,
    }


def _wheels(rng: np.random.Generator, n: int) -> np.ndarray:
    """A double wishbone's wheel at the top of its reach, the points scattered by millimetres."""
    scatter = 3e-3 * rng.normal(size=(n, 6))
    return np.concatenate([scatter, distances(rng, n)[:, None]], axis=1)


WISHBONE = zoo.double_wishbone()
CENTRE = mbd.PointCoordinate("spindle", "wheel_centre", "z")
TOP = 0.4003
"""Travel at which the drawn wishbone's upper joints are about to reach their dead centre [m]."""


def _wheel(x: Any) -> Answer:
    base = {k: WISHBONE.points[k] for k in ("tierod_inboard", "tierod_outboard")}
    moved = {f"points/{k}": p + x[3 * i : 3 * i + 3] for i, (k, p) in enumerate(base.items())}
    mech = mbd.set_variables(WISHBONE, moved)
    height = WISHBONE.points["wheel_centre"][2] + TOP + 0.1 * x[6]
    return _held(mech, {CENTRE: height}, ("upright", "tierod_outboard"))


def _hung(rng: np.random.Generator, n: int) -> np.ndarray:
    """A mass on a spring whose ends coincide, or nearly."""
    away = distances(rng, n)[:, None] * rng.normal(size=(n, 3))
    numbers = rng.uniform(0.5, 2.0, (n, 3))
    free = np.where(rng.random(n) < 0.5, 0.0, rng.uniform(0.05, 0.3, n))
    return np.concatenate([away, numbers, free[:, None]], axis=1)


def _spring_of_no_length(x: Any) -> Answer:
    mech = mbd.Mechanism(
        bodies={"mass": mbd.Body(x[3], com=x[:3], inertia=0.1 * np.ones(3))},
        joints={"table": mbd.Planar("ground", "mass", at=np.zeros(3), normal=(0.0, 0.0, 1.0))},
        forces={
            "turn": mbd.TorsionSpring("table", stiffness=2.0, index=0),
            "spring": mbd.SpringDamper(
                "ground", "mass", at_a=np.zeros(3), at_b=x[:3], stiffness=100.0 * x[4],
                damping=x[5], free_length=x[6],
            )
        },
        points={"aside": (0.3, 0.4, 0.0)},
        gravity=np.zeros(3),
    )  # fmt: skip
    q = jnp.zeros(3)
    vdot, _ = mbd.forward_dynamics(mech, q, jnp.array([0.1, 0.2, -0.1]))
    rest = mbd.equilibrium(mech, throw=False)
    known = jnp.all(jnp.isfinite(vdot))
    away = mbd.point_position(mech, rest.q, "mass", x[:3])
    return {
        "energy": (mbd.potential_energy(mech, q), True),
        "acceleration": (_weighed(vdot), known),
        "rest": (away @ away, rest.status == 0),
        "motion": _motion(mech, q, jnp.array([0.1, 0.2, -0.1])),
    }


def _stops(rng: np.random.Generator, n: int) -> np.ndarray:
    """A hanging mass and a stop that just touches, at rest and in motion."""
    mass, rate, stop = (rng.uniform(0.5, 2.0, n) for _ in range(3))
    sag = mass * 9.81 / (1000.0 * rate)
    free = rng.choice([0.0, 1.0], n)  # the stop touches as drawn, or at rest
    gap = free * sag + 0.05 * distances(rng, n)
    return np.stack([mass, rate, stop, gap, rng.normal(size=n)], axis=1)


def _stop(x: Any) -> Answer:
    mech = mbd.Mechanism(
        bodies={"mass": mbd.Body(x[0])},
        joints={"guide": mbd.Prismatic("ground", "mass", at=(0, 0, 0), axis=(0, 0, -1))},
        forces={
            "spring": mbd.TorsionSpring("guide", stiffness=1000.0 * x[1], damping=3.0),
            "stop": mbd.JointLimit("guide", upper=x[3], stiffness=5000.0 * x[2]),
        },
    )
    rest = mbd.equilibrium(mech, throw=False)
    vdot, _ = mbd.forward_dynamics(mech, jnp.zeros(1), x[4:])
    return {
        "rest": (rest.q[0], rest.status == 0),
        "acceleration": (vdot[0], True),
        "motion": _motion(mech, jnp.zeros(1), x[4:]),
    }


def _toggles(rng: np.random.Generator, n: int) -> np.ndarray:
    """A pendulum upside down on a spring that just holds it: equilibria meet and part."""
    mass, length = rng.uniform(0.5, 2.0, n), rng.uniform(0.3, 1.0, n)
    rate = mass * 9.81 * length * (1.0 + distances(rng, n))
    off = np.where(rng.random(n) < 0.5, 0.0, 0.1 * distances(rng, n))
    return np.stack([mass, length, rate, off], axis=1)


def _toggle(x: Any) -> Answer:
    mech = mbd.Mechanism(
        bodies={"bob": mbd.Body(x[0], com=jnp.stack([x[3], 0.0 * x[1], x[1]]))},
        joints={"pin": mbd.Revolute("ground", "bob", at=(0, 0, 0), axis=(0, 1, 0))},
        forces={"spring": mbd.TorsionSpring("pin", stiffness=x[2])},
    )
    modes = mbd.linearize(mech, jnp.zeros(1))
    first = modes.modes().frequencies[0]
    return {
        "frequency": (first, jnp.isfinite(first)),
        "motion": _motion(mech, jnp.zeros(1), jnp.zeros(1)),
    }


FAMILIES = {
    "four-bar at a dead centre": Family(_four_bars, _four_bar),
    "slider at the end of its stroke": Family(_sliders, _slider),
    "crank through the straight line": Family(_straight, _straight_crank),
    "wheel at the top of its reach": Family(_wheels, _wheel),
    "spring of no length": Family(_hung, _spring_of_no_length),
    "stop that just touches": Family(_stops, _stop),
    "pendulum on a spring that just holds it": Family(_toggles, _toggle),
}
