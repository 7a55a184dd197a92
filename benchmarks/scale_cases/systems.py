"""The systems of `scale.py`: one open chain of revolutes, of any length."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import jaxmbd as mbd

SCATTER = 1e-3  # of hardpoints and centres of mass [m], and share of masses and inertias


def chain(bodies: int, seed: int = 0) -> mbd.Mechanism:
    """An open chain of `bodies` revolutes with generic axes; the numbers are ours, drawn once."""
    rng = np.random.default_rng(seed)
    steps = np.array([0.25, 0.0, 0.2]) + rng.uniform(-0.2, 0.2, (bodies, 3))
    pivots = np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    parts, joints = {}, {}
    for i in range(bodies):
        com = 0.5 * (pivots[i] + pivots[i + 1]) + rng.uniform(-0.05, 0.05, 3)
        extents = rng.uniform(0.1, 0.4, 3) ** 2  # of a box, squared
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        inertia = turn * ((np.sum(extents) - extents) / 12.0) @ turn.T
        parts[f"body_{i}"] = mbd.Body(rng.uniform(0.8, 1.2), com=com, inertia=inertia)
        axis = rng.normal(size=3)
        parent = "ground" if i == 0 else f"body_{i - 1}"
        joints[f"joint_{i}"] = mbd.Revolute(
            parent, f"body_{i}", at=f"pivot_{i}", axis=axis / np.linalg.norm(axis)
        )
    return mbd.Mechanism(parts, joints, points={f"pivot_{i}": pivots[i] for i in range(bodies)})


def scattered(mech: mbd.Mechanism, batch: int, seed: int = 1) -> mbd.Mechanism:
    """A batch of mechanisms, every hardpoint, mass and inertia of a sample its own."""
    rng = np.random.default_rng(seed)

    def near(x: Any) -> np.ndarray:
        return x + SCATTER * rng.uniform(-1.0, 1.0, (batch, *np.shape(x)))

    whole = jax.tree_util.tree_map(lambda x: np.tile(x, (batch,) + (1,) * np.ndim(x)), mech)
    whole.points.update({name: near(mech.points[name]) for name in mech.structure.points})
    for name, body in mech.bodies.items():
        factor = near(np.ones(()))
        inertia = body.inertia * factor[:, None, None]
        whole.bodies[name] = mbd.Body(body.mass * near(np.ones(())), near(body.com), inertia)
    return whole
