"""Masses on slides, shafts with gears: linear by themselves; bearings, and friction in them.

Masses in a row, ``M ẍ + C ẋ + K x = E u``, have ``A = [0, 1; −M⁻¹K, −M⁻¹C]``, ``B = [0; M⁻¹E]``,
and a mode λ has a shape with ``(λ² M + λ C + K) s = 0``. Geared shafts move as one, of the inertia
``J₁ + r² J₂``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import CRASHED, Judged, compare

PER_CASE = 15
_ROW = "masses, springs and dampers in a row, in NumPy"
_GEARS = "two shafts that move as one, in closed form"
_TWO = "two forces across the axis, with thrust and torque, that equal the wrench"
NUMBERS = {
    "Linearization.B": f"{_ROW}; {_GEARS}",
    "Linearization.C": f"{_ROW}; {_GEARS}",
    "Linearization.D": f"{_ROW}; {_GEARS}",
    "Linearization.A, closed form": f"{_ROW}; {_GEARS}",
    "Modes.shapes": f"(λ² M + λ C + K) s of {_ROW}; {_GEARS}",
    "EdgeForces.points": "the axis of the joint, turned in NumPy",
    "EdgeForces.forces": _TWO,
    "EdgeForces.thrust": _TWO,
    "EdgeForces.torque": _TWO,
    "friction_efforts": "Coulomb's law of the force that moves the body, in NumPy",
}
MASSES = 3


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Each system once, as a batch."""
    n = max(2, size // PER_CASE)
    for judge in (_row, _gears, _edges, _pendulum, _slide):
        text = f"{judge.__name__}, {n} samples, default_rng({seed})"
        try:
            yield from judge(np.random.default_rng(seed), n, text)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:250]
            yield Judged("Linearization.B", CRASHED, math.nan, f"{said} | {text}")


def _numpy(tree: Any) -> Any:
    return jax.tree_util.tree_map(np.asarray, tree)


# State spaces.


def _row(rng: np.random.Generator, n: int, text: str) -> Iterator[Judged]:
    """Each mass on a slide of its own, in one line; a force on the first and on the last."""
    size = 10.0 ** rng.uniform(-4.0, 2.0, n)
    mass = 10.0 ** rng.uniform(-2.0, 2.0, (n, MASSES))
    rate = 10.0 ** rng.uniform(1.0, 6.0, (n, MASSES))
    damping = rate * 10.0 ** rng.uniform(-5.0, -2.0, (n, MASSES)) * (rng.random((n, 1)) < 0.7)
    names = [f"slide {i}" for i in range(MASSES)]

    def engine(size: Any, mass: Any, rate: Any, damping: Any) -> Any:
        at = [jnp.array([i + 1.0, 0.0, 0.0]) * size for i in range(-1, MASSES)]
        bodies = {f"m{i}": mbd.Body(mass[i], at[i + 1], jnp.eye(3)) for i in range(MASSES)}
        joints = {
            names[i]: mbd.Prismatic("ground", f"m{i}", at[i + 1], (1, 0, 0)) for i in range(MASSES)
        }
        forces = {
            f"spring {i}": mbd.SpringDamper(
                "ground" if i == 0 else f"m{i - 1}", f"m{i}", at[i], at[i + 1], rate[i],
                damping=damping[i], free_length=size,
            )
            for i in range(MASSES)
        }  # fmt: skip
        mech = mbd.Mechanism(bodies, joints, forces, gravity=(0, 0, -9.81))
        found = mbd.linearize(
            mech, mbd.neutral(mech), inputs=(names[0], names[2]), independent=names,
            outputs=lambda t, q, v, a: {"a": a[2], "b": q[0] + v[1], "c": jnp.stack([v[2], a[0]])},
        )  # fmt: skip
        return found, found.modes()

    found, modes = _numpy(mbd.lanes.vmap(engine)(size, mass, rate, damping))
    for i in range(n):
        m, push = np.diag(mass[i]), np.eye(MASSES)[:, [0, 2]]
        k, c = (_chain(x[i]) for x in (rate, damping))
        a, b = _state_space(m, c, k, push)
        state = np.eye(2 * MASSES)
        # The outputs in the order of their names: v̇₂; x₀ + v₁; v₂, v̇₀.
        rows = np.stack([a[MASSES + 2], state[0] + state[MASSES + 1], state[MASSES + 2], a[MASSES]])
        feed = np.stack([b[MASSES + 2], np.zeros(2), np.zeros(2), b[MASSES]])
        said = f"sample {i}, {size[i]:.2g} m, {text}"
        lin = jax.tree_util.tree_map(lambda x, i=i: x[i], found)
        yield from _matrices(lin, a, b, rows, feed, said)
        yield from _shapes(modes.eigenvalues[i], modes.shapes[i], m, c, k, said)


def _chain(x: np.ndarray) -> np.ndarray:
    """The matrix of springs from the ground to the first mass, and from each to the next."""
    off = x[1:]
    return np.diag(x) + np.diag(np.append(off, 0.0)) - np.diag(off, 1) - np.diag(off, -1)


def _state_space(m: Any, c: Any, k: Any, push: Any) -> tuple[np.ndarray, np.ndarray]:
    zero, one = np.zeros_like(m), np.eye(len(m))
    inverse = np.linalg.inv(m)
    a = np.block([[zero, one], [-inverse @ k, -inverse @ c]])
    return a, np.concatenate([np.zeros_like(push), inverse @ push])


def _matrices(lin: Any, a: Any, b: Any, c: Any, d: Any, text: str) -> Iterator[Judged]:
    for number, got, want in (
        ("Linearization.A, closed form", lin.A, a),
        ("Linearization.B", lin.B, b),
        ("Linearization.C", lin.C, c),
        ("Linearization.D", lin.D, d),
    ):
        # Row by row: speeds and accelerations are of very different sizes.
        for row, (x, y) in enumerate(zip(got, want, strict=True)):
            # The length of a spring that is not strained is known to its rounding.
            scale = float(np.max(np.abs(y))) + 1e-9 * float(np.max(np.abs(want)))
            yield compare(number, x, y, limit=1e-8, scale=scale, detail=f"row {row}, {text}")


def _shapes(values: Any, shapes: Any, m: Any, c: Any, k: Any, text: str) -> Iterator[Judged]:
    """Each is a motion that the equations allow, with a largest component of one."""
    top = float(np.max(np.abs(values)))
    for j, value in enumerate(values):
        s = shapes[:, j]
        left = np.abs((value**2 * m + value * c + k) @ s)
        size = np.abs(m) * top**2 + np.abs(c) * top + np.abs(k)
        off = float(np.max(left / (size @ np.ones(len(m)))))
        said = f"mode {j}, {text}"
        yield compare("Modes.shapes", off, 0.0, limit=1e-10, scale=1.0, detail=said)
        largest = s[int(np.argmax(np.abs(s)))]
        yield compare(
            "Modes.shapes", [largest.real, largest.imag], [1.0, 0.0], limit=1e-12, detail=said
        )


def _gears(rng: np.random.Generator, n: int, text: str) -> Iterator[Judged]:
    """``q₂ = r q₁``; a spring on the first shaft, a damper on the second, efforts on both."""
    inertia, k, c = (10.0 ** rng.uniform(-4.0, 2.0, (n, 2)) for _ in range(3))
    ratio = rng.uniform(0.2, 4.0, n) * rng.choice([-1.0, 1.0], n)

    def engine(inertia: Any, k: Any, c: Any, ratio: Any) -> Any:
        names = ("one", "two")
        bodies = {x: mbd.Body(1.0, (i, 0, 0), inertia[i] * jnp.eye(3)) for i, x in enumerate(names)}
        joints = {x: mbd.Revolute("ground", x, (i, 0, 0), (0, 0, 1)) for i, x in enumerate(names)}
        forces = {
            "spring": mbd.TorsionSpring("one", k[0]),
            "damper": mbd.TorsionSpring("two", 0.0, damping=c[0]),
        }
        mech = mbd.Mechanism(
            bodies, joints, forces, couplings={"gear": mbd.Gear("one", "two", ratio=ratio)}
        )
        found = mbd.linearize(
            mech, mbd.neutral(mech), inputs=names, independent=["one"],
            outputs=lambda t, q, v, a: jnp.stack([q[1], v[1], a[1]]),
        )  # fmt: skip
        return found, found.modes()

    found, modes = _numpy(mbd.lanes.vmap(engine)(inertia, k, c, ratio))
    for i in range(n):
        r, said = ratio[i], f"sample {i}, ratio {ratio[i]:.3f}, {text}"
        m = np.array([[inertia[i, 0] + r * r * inertia[i, 1]]])
        damper, spring = np.array([[r * r * c[i, 0]]]), np.array([[k[i, 0]]])
        a, b = _state_space(m, damper, spring, np.array([[1.0, r]]))
        rows = np.stack([[r, 0.0], [0.0, r], r * a[1]])
        feed = np.stack([np.zeros(2), np.zeros(2), r * b[1]])
        lin = jax.tree_util.tree_map(lambda x, i=i: x[i], found)
        yield from _matrices(lin, a, b, rows, feed, said)
        for j in range(2):
            shape = np.array([1.0, r]) / (r if abs(r) > 1.0 else 1.0)
            got = modes.shapes[i][:, j]
            both = [*got.real, *got.imag]
            yield compare("Modes.shapes", both, [*shape, 0.0, 0.0], limit=1e-9, detail=said)


# Bearings.


def _turned(axis: np.ndarray, angle: float, x: np.ndarray) -> np.ndarray:
    """By Rodrigues' formula."""
    cosine, sine = math.cos(angle), math.sin(angle)
    return cosine * x + sine * np.cross(axis, x) + (1.0 - cosine) * (axis @ x) * axis


def _edges(rng: np.random.Generator, n: int, text: str) -> Iterator[Judged]:
    """A sleeve on a bar that swings; any wrench, as from another formulation."""
    axes, at, swing = rng.normal(size=(n, 3)), rng.normal(size=(n, 2, 3)), rng.normal(size=(n, 3))
    size = 10.0 ** rng.uniform(-4.0, 2.0, n)
    axes, swing = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (axes, swing))
    at = at * size[:, None, None]
    q = rng.normal(size=(n, 3)) * np.stack([np.ones(n), np.ones(n), size], axis=1)
    wrench = rng.normal(size=(n, 6)) * np.repeat([1.0, 0.0], 3) * size[:, None]
    wrench = wrench + rng.normal(size=(n, 6)) * np.repeat([0.0, 1.0], 3)
    length, offset = size * rng.uniform(0.1, 2.0, n), size * rng.normal(size=n)

    def engine(axis: Any, swing: Any, at: Any, q: Any, wrench: Any, length: Any, off: Any) -> Any:
        bodies = {
            "bar": mbd.Body(1.0, at[0], jnp.eye(3)),
            "sleeve": mbd.Body(1.0, at[1], jnp.eye(3)),
        }
        joints = {
            "swing": mbd.Revolute("ground", "bar", at[0], swing),
            "sleeve": mbd.Cylindrical("bar", "sleeve", at[1], axis),
        }
        mech = mbd.Mechanism(bodies, joints)
        given = {"sleeve": wrench}
        return [
            mbd.edge_forces(mech, q, given, "sleeve", length, off, slider=s) for s in (None, "bar")
        ]

    both = _numpy(mbd.lanes.vmap(engine)(axes, swing, at, q, wrench, length, offset))
    for slider, found in zip(("sleeve", "bar"), both, strict=True):
        for i in range(n):
            u = _turned(swing[i], q[i, 0], axes[i])
            on_bar = at[i, 0] + _turned(swing[i], q[i, 0], at[i, 1] - at[i, 0])
            x = on_bar + q[i, 2] * u  # the sleeve's point, about which the wrench is
            middle = (x if slider == "sleeve" else on_bar) + offset[i] * u
            said, key = f"{slider}, sample {i}, {text}", "EdgeForces."
            points, forces = found.points[i], found.forces[i]
            far = float(np.max(np.abs(at[i]))) + abs(float(q[i, 2])) + float(length[i])
            want = np.stack([middle + 0.5 * length[i] * u, middle - 0.5 * length[i] * u])
            yield compare(f"{key}points", points, want, limit=1e-12, scale=far, detail=said)
            moment, force = wrench[i, :3], wrench[i, 3:]
            pull = float(np.max(np.abs(forces))) + float(np.max(np.abs(force)))
            left = forces.sum(axis=0) + found.thrust[i] * u - force
            yield compare(f"{key}forces", left, np.zeros(3), limit=1e-12, scale=pull, detail=said)
            turns = np.cross(want - x, forces).sum(axis=0) + found.torque[i] * u - moment
            scale = pull * far + float(np.max(np.abs(moment)))
            yield compare(f"{key}forces", turns, np.zeros(3), limit=1e-11, scale=scale, detail=said)
            yield compare(
                f"{key}forces", forces @ u, np.zeros(2), limit=1e-12, scale=pull, detail=said
            )
            yield compare(
                f"{key}thrust", found.thrust[i], force @ u, limit=1e-12, scale=pull, detail=said
            )
            yield compare(
                f"{key}torque", found.torque[i], moment @ u, limit=1e-11, scale=scale, detail=said
            )


def _pendulum(rng: np.random.Generator, n: int, text: str) -> Iterator[Judged]:
    """About any axis u: ``f = m (a − g)`` at the centre of mass, ``n = I α u + r × f``."""
    u, r = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    size, mass = 10.0 ** rng.uniform(-3.0, 2.0, n), 10.0 ** rng.uniform(-3.0, 3.0, n)
    r = r * size[:, None]
    inertia = mass * size**2 * rng.uniform(0.1, 2.0, n)
    law = rng.uniform(0.0, 1.0, (n, 6)) * [0.3, 1.0, 1.0, 1.0, 1.0, 1.0]
    law[:, 1:4] *= 0.1 * size[:, None]  # radius, length of the bearing, radius of the thrust
    law[:, 2] += 0.5 * size
    law[:, 4:] *= (mass * 9.81 * size)[:, None] * 0.05  # drag, viscous
    q, v = rng.normal(size=(n, 1)), rng.normal(size=(n, 1)) * 10.0 ** rng.uniform(-3.0, 1.0, (n, 1))

    def engine(u: Any, r: Any, mass: Any, inertia: Any, law: Any, q: Any, v: Any) -> Any:
        friction = mbd.JointFriction(
            "hinge", law[0], radius=law[1], length=law[2], thrust_radius=law[3], drag=law[4],
            viscous=law[5],
        )  # fmt: skip
        mech = mbd.Mechanism(
            {"bob": mbd.Body(mass, r, inertia * jnp.eye(3))},
            {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), u)},
            {"rub": friction}, gravity=(0, 0, -9.81),
        )  # fmt: skip
        vdot, lam = mbd.forward_dynamics(mech, q, v)
        return vdot, mbd.friction_efforts(mech, q, v, vdot, lam)["hinge"]

    vdot, effort = _numpy(mbd.lanes.vmap(engine)(u, r, mass, inertia, law, q, v))
    for i in range(n):
        arm, spin, rate = _turned(u[i], q[i, 0], r[i]), v[i, 0] * u[i], vdot[i, 0] * u[i]
        along = np.cross(rate, arm) + np.cross(spin, np.cross(spin, arm))
        force = mass[i] * (along + [0.0, 0.0, 9.81])
        moment = inertia[i] * rate + np.cross(arm, force)
        across = force - u[i] * (u[i] @ force)
        tilt = np.cross(u[i], moment) / law[i, 2]
        carried = np.linalg.norm(0.5 * across + tilt) + np.linalg.norm(0.5 * across - tilt)
        thrust = law[i, 3] * abs(u[i] @ force)
        dry = law[i, 0] * (law[i, 1] * carried + thrust) + law[i, 4]
        want = -math.tanh(v[i, 0] / 1e-2) * dry - law[i, 5] * v[i, 0]
        scale = dry + abs(law[i, 5] * v[i, 0])
        said, ok = f"sample {i}, {text}", bool(np.isfinite(effort[i, 0]))
        yield compare(
            "friction_efforts", effort[i, 0], want, limit=1e-8, scale=scale, detail=said, ok=ok
        )
        # What is left of the moments about the axis is the friction.
        left = u[i] @ moment
        terms = scale + float(np.linalg.norm(np.cross(arm, force))) + abs(inertia[i] * vdot[i, 0])
        yield compare(
            "friction_efforts", effort[i, 0], left, limit=1e-9, scale=terms, detail=said, ok=ok
        )


def _slide(rng: np.random.Generator, n: int, text: str) -> Iterator[Judged]:
    """A block on an inclined rail: ``N = m |g⊥|``, whatever it does along the rail."""
    u = rng.normal(size=(n, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    mass, law = 10.0 ** rng.uniform(-3.0, 3.0, n), rng.uniform(0.0, 1.0, (n, 3))
    law[:, 1:] *= mass[:, None]
    v = (
        rng.normal(size=(n, 1))
        * 10.0 ** rng.uniform(-4.0, 1.0, (n, 1))
        * (rng.random((n, 1)) < 0.8)
    )

    def engine(u: Any, mass: Any, law: Any, v: Any) -> Any:
        mech = mbd.Mechanism(
            {"block": mbd.Body(mass, (0.3, 0.1, 0.0), mass * jnp.eye(3))},
            {"rail": mbd.Prismatic("ground", "block", (0, 0, 0), u)},
            {"rub": mbd.JointFriction("rail", law[0], drag=law[1], viscous=law[2])},
            gravity=(0, 0, -9.81),
        )
        q = jnp.zeros(1)
        vdot, lam = mbd.forward_dynamics(mech, q, v)
        return vdot, mbd.friction_efforts(mech, q, v, vdot, lam)["rail"]

    vdot, effort = _numpy(mbd.lanes.vmap(engine)(u, mass, law, v))
    for i in range(n):
        weight = np.array([0.0, 0.0, -9.81 * mass[i]])
        pressed = float(np.linalg.norm(weight - u[i] * (u[i] @ weight)))
        dry = law[i, 0] * pressed + law[i, 1]
        want = -math.tanh(v[i, 0] / 1e-2) * dry - law[i, 2] * v[i, 0]
        scale, said = dry + abs(law[i, 2] * v[i, 0]), f"sample {i}, {text}"
        yield compare("friction_efforts", effort[i, 0], want, limit=1e-9, scale=scale, detail=said)
        left = mass[i] * vdot[i, 0] - u[i] @ weight
        terms = scale + float(np.linalg.norm(weight))
        yield compare("friction_efforts", effort[i, 0], left, limit=1e-10, scale=terms, detail=said)
