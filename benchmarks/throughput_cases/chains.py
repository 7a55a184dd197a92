"""Chains of four revolutes whose tips are joined by balls: the mechanisms of the speed targets.

Every chain of four bodies hangs from the ground by revolute joints with generic axes. The tip of
chain k is joined to the tip of chain k + 1 by a ball, so loop k closes between the bodies 4k + 3
and 4k + 7. The ball is always cut: three rows per loop. The two halves of a ball share one point,
so that the mechanism is assembled as drawn for any hardpoints. The numbers are ours, drawn once
with a fixed seed.
"""

from __future__ import annotations

import numpy as np

import jaxmbd as mbd

LINKS = 4  # bodies of a chain


def chain(bodies: int, loops: int, seed: int = 0) -> mbd.Mechanism:
    """`bodies` revolutes in chains of four, the first `loops + 1` chains joined in a row.

    Args:
        bodies: a multiple of four.
        loops: balls between the tips of consecutive chains, fewer than the chains.
        seed: of the drawn numbers.

    Returns:
        The mechanism; `body_i` is carried by `joint_i` at the point `pivot_i`, `loop_k` is cut.
    """
    if bodies % LINKS or loops >= bodies // LINKS:
        raise ValueError(f"{bodies} bodies make {bodies / LINKS:g} chains: too few for the loops")
    rng = np.random.default_rng(seed)
    pivots = [_pivots(rng, k) for k in range(bodies // LINKS)]
    points = {f"pivot_{i}": p for i, p in enumerate(np.concatenate([x[:-1] for x in pivots]))}
    tips = [x[-1] for x in pivots]
    points |= {f"loop_{k}": 0.5 * (tips[k] + tips[k + 1]) for k in range(loops)}
    parts, joints = {}, {}
    for i in range(bodies):
        start, end = pivots[i // LINKS][i % LINKS : i % LINKS + 2]
        parts[f"body_{i}"] = _body(rng, start, end)
        parent = "ground" if i % LINKS == 0 else f"body_{i - 1}"
        axis = _direction(rng)
        joints[f"joint_{i}"] = mbd.Revolute(parent, f"body_{i}", at=f"pivot_{i}", axis=axis)
    names = []
    for k in range(loops):
        a, b = (f"body_{LINKS * c + LINKS - 1}" for c in (k, k + 1))
        joints[f"loop_{k}"] = mbd.Spherical(a, b, at=f"loop_{k}")
        names.append(f"loop_{k}")
    return mbd.Mechanism(parts, joints, points=points, cut=tuple(names))


def _pivots(rng: np.random.Generator, k: int) -> np.ndarray:
    """Pivots of one chain and its tip (5, 3) [m]: a bent walk of steps of about 0.5 m."""
    steps = np.array([0.35, 0.0, 0.30]) + rng.uniform(-0.2, 0.2, (LINKS, 3))
    base = np.array([0.0, 0.8 * k, 0.0]) + rng.uniform(-0.1, 0.1, 3)
    return base + np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])


def _body(rng: np.random.Generator, start: np.ndarray, end: np.ndarray) -> mbd.Body:
    """About 1 kg between two pivots, with an inertia that a rigid body can have."""
    com = 0.5 * (start + end) + rng.uniform(-0.05, 0.05, 3)
    extents = rng.uniform(0.1, 0.4, 3) ** 2  # of a box, squared
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    moments = (np.sum(extents) - extents) / 12.0
    return mbd.Body(rng.uniform(0.8, 1.2), com=com, inertia=turn * moments @ turn.T)


def _direction(rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)
