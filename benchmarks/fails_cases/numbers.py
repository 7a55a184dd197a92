"""Broken numbers: batches of one mechanism with numbers changed in one of many ways.

Structure and shapes are unchanged, so that a batch runs as one program, as in a campaign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxmbd as mbd

Leaves = dict[str, np.ndarray]  # by path in the pytree
Change = Callable[[Leaves, np.random.Generator], None]


def _role(leaves: Leaves, ending: str) -> list[str]:
    return [k for k in leaves if k.endswith(ending) and np.issubdtype(leaves[k].dtype, np.floating)]


def _points(leaves: Leaves) -> list[str]:
    places = [k for k in leaves if k.startswith(".points") or k.endswith(".com")]
    return [k for k in places if leaves[k].shape[-1:] in ((2,), (3,))]


def scattered(leaves: Leaves, rng: np.random.Generator) -> None:
    """Hardpoints changed by 1 %, as in campaigns."""
    size = _length(leaves)
    for k in _points(leaves):
        leaves[k] = leaves[k] + 0.01 * size * rng.normal(size=leaves[k].shape)


def impossible(leaves: Leaves, rng: np.random.Generator) -> None:
    """Hardpoints anywhere: most of these do not close."""
    size = _length(leaves)
    for k in _points(leaves):
        leaves[k] = leaves[k] + rng.choice([0.3, 1.0, 3.0]) * size * rng.normal(
            size=leaves[k].shape
        )


def scaled(leaves: Leaves, rng: np.random.Generator) -> None:
    """Very large or small units of length and mass; the motion in time is unchanged."""
    length, mass = 10.0 ** rng.uniform(-8, 8), 10.0 ** rng.uniform(-12, 12)
    for k in _points(leaves):
        leaves[k] = leaves[k] * length
    for k in _role(leaves, ".mass"):
        leaves[k] = leaves[k] * mass
    for k in _role(leaves, ".inertia"):
        leaves[k] = leaves[k] * mass * length**2
    leaves[".gravity"] = leaves[".gravity"] * length


def nearly_as_drawn(leaves: Leaves, rng: np.random.Generator) -> None:
    """Changed by 1e-14 to 1e-3, so that a singular or redundant drawing is only nearly so."""
    size = _length(leaves) * 10.0 ** rng.uniform(-14, -3)
    for k in _points(leaves):
        leaves[k] = leaves[k] + size * rng.normal(size=leaves[k].shape)


def not_finite(leaves: Leaves, rng: np.random.Generator) -> None:
    """One number is NaN or infinite."""
    k = str(rng.choice([k for k in leaves if np.issubdtype(leaves[k].dtype, np.floating)]))
    x = np.array(leaves[k], float)
    x.reshape(-1)[rng.integers(x.size)] = rng.choice([np.nan, np.inf, -np.inf])
    leaves[k] = x


def weightless(leaves: Leaves, rng: np.random.Generator) -> None:
    """Some bodies lose mass, inertia or both, or nearly all of it."""
    for k in _role(leaves, ".mass"):
        if rng.random() < 0.5:
            factor = rng.choice([0.0, 1e-30, 1e-12])
            leaves[k] = leaves[k] * factor
            if rng.random() < 0.7:
                inertia = k.replace(".mass", ".inertia")
                leaves[inertia] = leaves[inertia] * factor


def negative(leaves: Leaves, rng: np.random.Generator) -> None:
    """A negative mass or inertia, which tracing hides from validation."""
    k = str(rng.choice(_role(leaves, ".mass") + _role(leaves, ".inertia")))
    leaves[k] = -leaves[k]


def coincident(leaves: Leaves, rng: np.random.Generator) -> None:
    """Two hardpoints meet, exactly or nearly."""
    names = [k for k in _points(leaves) if k.startswith(".points")]
    if len(names) > 1:
        a, b = rng.choice(names, 2, replace=False)
        gap = rng.choice([0.0, 1e-16, 1e-9]) * _length(leaves)
        leaves[b] = leaves[a] + gap * rng.normal(size=leaves[a].shape)


def turned_axis(leaves: Leaves, rng: np.random.Generator) -> None:
    """An axis of another direction, or of zero length: planar loops then lock."""
    names = [k for k in leaves if "axis" in k and leaves[k].shape == (3,)]
    if names:
        k = str(rng.choice(names))
        leaves[k] = rng.choice([0.0, 1e-200, 1e-3, 1.0]) * rng.normal(size=3) + (
            rng.random() < 0.5
        ) * np.array(leaves[k])


def units(leaves: Leaves, rng: np.random.Generator) -> None:
    """Other units of length and mass, in all quantities that depend on them."""
    length, mass = 10.0 ** rng.uniform(-9, 6), 10.0 ** rng.uniform(-12, 9)
    force = {".stiffness": mass, ".damping": mass, ".force": mass * length}
    turning = ".forces['torsion']"
    for k in _points(leaves):
        leaves[k] = leaves[k] * length
    for ending, factor in {".mass": mass, ".inertia": mass * length**2, **force}.items():
        for k in _role(leaves, ending):
            leaves[k] = leaves[k] * factor * (length**2 if turning in k else 1.0)
    for ending in (".pitch", ".length", ".radius", ".params", ".gravity"):
        for k in _role(leaves, ending):
            leaves[k] = leaves[k] * length


def mixed_masses(leaves: Leaves, rng: np.random.Generator) -> None:
    """Bodies a billion times heavier than others, or lighter."""
    for k in _role(leaves, ".mass"):
        factor, inertia = 10.0 ** rng.uniform(-12, 9), k.replace(".mass", ".inertia")
        for x in {k, inertia} & set(leaves):
            leaves[x] = leaves[x] * factor


def far_body(leaves: Leaves, rng: np.random.Generator) -> None:
    """One centre of mass a hundred to a million metres away."""
    places = [k for k in _points(leaves) if k.endswith(".com")]
    if places:
        k = str(rng.choice(places))
        leaves[k] = leaves[k] + 10.0 ** rng.uniform(2, 6)


def translated(leaves: Leaves, rng: np.random.Generator) -> None:
    """The whole drawing far from the origin."""
    points = _points(leaves)
    shift = 10.0 ** rng.uniform(2, 8) * rng.normal(size=leaves[points[0]].shape)
    for k in points:
        leaves[k] = leaves[k] + shift


def stiff(leaves: Leaves, rng: np.random.Generator) -> None:
    """Springs up to 1e14 times as stiff."""
    for k in _role(leaves, ".stiffness"):
        leaves[k] = leaves[k] * 10.0 ** rng.uniform(0, 14)


def disproportionate(leaves: Leaves, rng: np.random.Generator) -> None:
    """Masses, inertias, rates and gravity, each scaled by another factor."""
    for ending in (".mass", ".inertia", ".stiffness", ".damping", ".gravity"):
        for k in _role(leaves, ending):
            leaves[k] = leaves[k] * 10.0 ** rng.uniform(-6, 6)


def as_drawn(leaves: Leaves, rng: np.random.Generator) -> None:
    """Nothing is changed."""


def _length(leaves: Leaves) -> float:
    stack = np.array([np.resize(leaves[k], 3) for k in _points(leaves)])
    return float(np.sqrt(np.mean(np.sum((stack - stack.mean(axis=0)) ** 2, axis=1)))) or 1.0


CHANGES: dict[str, Change] = {
    f.__name__: f
    for f in (
        scattered, impossible, scaled, nearly_as_drawn, not_finite,
        weightless, negative, coincident, turned_axis,
    )
}  # fmt: skip


SIZES: dict[str, Change] = {
    f.__name__: f
    for f in (
        as_drawn, scattered, units, scaled, mixed_masses, far_body, translated, nearly_as_drawn,
        stiff, disproportionate,
    )
}  # fmt: skip
"""Numbers that are all valid, but of extreme sizes."""


def batch(
    mech: mbd.Mechanism, n: int, seed: int, changes: dict[str, Change] = CHANGES
) -> tuple[list[str], Any]:
    """`n` mechanisms as one batched pytree, and what was changed in each."""
    flat, tree = jax.tree_util.tree_flatten_with_path(mech)
    paths = [jax.tree_util.keystr(path) for path, _ in flat]
    rng, kinds, rows = np.random.default_rng(seed), [], []
    for i in range(n):
        kind = list(changes)[i % len(changes)]
        leaves = {k: np.array(x) for k, (_, x) in zip(paths, flat, strict=True)}
        changes[kind](leaves, rng)
        kinds.append(kind)
        rows.append([leaves[k] for k in paths])
    return kinds, jax.tree_util.tree_unflatten(tree, [np.stack(x) for x in zip(*rows, strict=True)])


def rounded(tree: Any, rng: np.random.Generator) -> Any:
    """The same numbers, each moved to a neighbouring one, up or down at random."""

    def neighbour(x: Any) -> Any:
        x = np.asarray(x)
        if not np.issubdtype(x.dtype, np.floating):
            return x
        moved = np.nextafter(x, np.where(rng.random(x.shape) < 0.5, -np.inf, np.inf))
        return np.where((x == 0.0) | ~np.isfinite(x), x, moved)

    return jax.tree_util.tree_map(neighbour, tree)


def states(mech: mbd.Mechanism, q: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Initial states (n, nq), (n, nv), most of which are wrong."""
    rng = np.random.default_rng(seed)
    q, v = np.array(q), rng.normal(size=(len(q), mbd.topology(mech).nv))
    for i in range(len(q)):
        kind = i % 6
        if kind == 0:
            q[i] = q[i] + rng.normal(size=q[i].shape)
        elif kind == 1:
            q[i, rng.integers(q.shape[1])] = rng.choice([np.nan, np.inf])
        elif kind == 2:
            q[i] = q[i] * rng.choice([0.0, 1e9, -1.0])
        elif kind == 3:
            v[i] = v[i] * rng.choice([1e12, np.nan])
        elif kind == 4:
            q[i] = q[i] + 1e-7 * rng.normal(size=q[i].shape)
    return q, v
