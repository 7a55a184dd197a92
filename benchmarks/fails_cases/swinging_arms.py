"""Parallel arms with a platform, in a plane in space: loops with three or six redundant rows.

Without gravity they are one linear equation whatever their angle: the platform moves on a circle
without turning, so with θ the angle of the arms, I their inertia about their feet and m the mass of
the platform

    (I + m l²) θ̈ = −k θ − c θ̇ + τ.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy.linalg import expm

import jaxmbd as mbd

KINDS = ("two arms", "three arms", "a massless arm", "a massless platform", "a drawing in float32")


def drawn(rng: np.random.Generator, kind: str, n: int) -> tuple[mbd.Mechanism, np.ndarray]:
    """A batch (n,) of arms from millimetres to tens of metres, and their inertias (n,)."""
    each = [one(rng, kind) for _ in range(n)]
    stacked = jax.tree_util.tree_map(lambda *x: np.stack([np.asarray(y) for y in x]),
                                     *[mech for mech, _ in each])  # fmt: skip
    return stacked, np.array([inertia for _, inertia in each])


def one(rng: np.random.Generator, kind: str) -> tuple[mbd.Mechanism, float]:
    """Arms with a spring and a damper at the first foot, both to be set; and their inertia."""
    size, mass = 10.0 ** rng.uniform(-3.0, 1.5), 10.0 ** rng.uniform(-2.0, 2.0)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    angle, axis = rng.uniform(1.2, 1.9), turn[:, 2]
    arm = size * np.array([np.cos(angle), np.sin(angle), 0.0]) @ turn.T
    feet = size * np.array([[0.0, 0, 0], [0.7, 0, 0], [1.5, 0, 0]]) @ turn.T
    if kind == "a drawing in float32":
        feet, arm, axis = (np.asarray(x, np.float32).astype(float) for x in (feet, arm, axis))
        axis = axis / np.linalg.norm(axis)
    names = ("first", "second", "third")[: 2 if kind == "two arms" else 3]
    bodies, total = {}, 0.0
    for name, foot in zip(names, feet, strict=False):
        if kind == "a massless arm" and name == "second":
            bodies[name] = mbd.Body(0.0, foot + arm / 2.0)
            continue
        m, own = mass * rng.uniform(0.5, 2.0), mass * size**2 * rng.uniform(0.05, 0.1, 3)
        axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        about, shift = axes @ np.diag(own) @ axes.T, arm * rng.uniform(0.2, 0.8)
        bodies[name] = mbd.Body(m, foot + shift, about)
        total += axis @ about @ axis + m * float(shift @ shift - (shift @ axis) ** 2)
    m = 0.0 if kind == "a massless platform" else mass * rng.uniform(0.5, 2.0)
    bodies["platform"] = mbd.Body(m, feet[0] + arm, np.eye(3) * m * size**2 * 0.1)
    total += m * float(arm @ arm - (arm @ axis) ** 2)
    joints = {}
    for name, foot in zip(names, feet, strict=False):
        joints[f"{name}_foot"] = mbd.Revolute("ground", name, foot, axis)
        joints[f"{name}_top"] = mbd.Revolute(name, "platform", foot + arm, axis)
    spring = mbd.TorsionSpring("first_foot", 1.0, damping=1.0)
    return mbd.Mechanism(bodies, joints, {"spring": spring}, gravity=(0.0, 0.0, 0.0)), total


def with_rates(mech: mbd.Mechanism, stiffness: Any, damping: Any) -> mbd.Mechanism:
    """Arms with another spring and damper."""
    spring = mbd.TorsionSpring("first_foot", stiffness, damping=damping)
    return mech.replace(forces={"spring": spring})


def state(mech: mbd.Mechanism, angle: Any, speed: Any) -> tuple[Any, Any]:
    """(q, v) at an angle from the drawing and an angular velocity."""
    q = mbd.assemble(mech, {"first_foot": angle}, throw=False).q
    return q, mbd.assemble_velocity(mech, q, {"first_foot": speed})


def place(mech: mbd.Mechanism) -> int:
    """Of the angle among the coordinates and the speeds."""
    return mbd.topology(mech).layout["first_foot"].v.start


def motion(k: float, c: float, inertia: float, start: Any, t: np.ndarray) -> np.ndarray:
    """θ and θ̇ at the times t (n, 2)."""
    a = np.array([[0.0, 1.0], [-k / inertia, -c / inertia]])
    return np.array([expm(a * x) @ start for x in t])
