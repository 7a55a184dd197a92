"""Characteristics of corners: derivatives by hardpoints, single precision, studies.

Derivatives are along a random change of all hardpoints, against complex steps of `wheel_oracle`'s
hardpoints; those of derivatives along the travel against differences of fourth order. Reverse
derivatives are taken of each characteristic for itself. In single precision a position may be off
by what closes there, 3e-5 of the length.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import corner_kinds
from fails_cases import wheel_oracle as oracle
from fails_cases.corner_characteristics import CLOSED, LIMIT, SHIFT, UNSURE, Expected, unit_of
from fails_cases.judged import CRASHED, FLAGGED, Judged, compare
from fails_cases.rigid import H
from jaxmbd import statistics as st
from jaxmbd import suspension
from jaxmbd.observe import Snapshot
from jaxmbd.sampling import Normal
from jaxmbd.suspension.motions import wheel_key

SHARE = 12.0
PER_CASE = 150
_PLACES = "rigid upright on distances by Newton's method in maximal coordinates"
_COMPLEX = "complex steps of the hardpoints of a rigid upright on distances"
_MIXED = "differences of fourth order by hardpoints of complex steps along the travel"
PLAIN = tuple(
    n for n, x in suspension.CHARACTERISTICS.items() if not (x.vector or x.second)
)  # fmt: skip
STUDIED = ("toe", "camber", "half_track", "roll_centre_height", "side_centre_x", "wheel_rate")
NUMBERS = {
    f"suspension.Characteristic: {n}, {aspect}": said
    for n in PLAIN
    for aspect, said in (
        ("forward derivative", _COMPLEX), ("reverse derivative", _COMPLEX), ("float32", _PLACES),
    )
} | {
    f"suspension.gradient: {n}, {aspect}": said
    for n in suspension.GRADIENTS
    for aspect, said in (
        ("forward derivative", _MIXED), ("reverse derivative", _MIXED), ("float32", _PLACES),
    )
}  # fmt: skip
NUMBERS |= {f"suspension.Characteristic: {n}, study": _PLACES for n in STUDIED}
NUMBERS |= {"suspension.gradient: toe, study": _PLACES}
KINDS = 2  # of a run
STEP = 1e-3
OFFSETS = STEP * np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])
CLOSED_SINGLE = 3.1e-5
"""Error of closure that an assembly may have in single precision, over the length."""


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Two kinds of corners with their derivatives, a study of a third."""
    names = [str(x) for x in np.random.default_rng([seed, 1]).permutation(list(corner_kinds.KINDS))]
    samples = max(2, round(size / PER_CASE / KINDS))
    for k, name in enumerate(names[: KINDS + 1]):
        b = corner_kinds.batch(name, samples if k < KINDS else 1, seed)
        try:
            yield from _slopes(b) if k < KINDS else _study(b, max(4, 2 * samples))
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:300]} | {b.text(0)}"
            yield Judged(next(iter(NUMBERS)), CRASHED, float("nan"), text)
        jax.clear_caches()


def _slopes(b: corner_kinds.Batch) -> Iterator[Judged]:
    """Forward, reverse and single precision of all scalar characteristics of a batch."""
    rng, n = np.random.default_rng([b.seed, 5]), len(b.sizes)
    z = b.sizes * rng.uniform(-0.1, 0.1, n)
    rack = b.sizes * b.kind.steer * rng.uniform(-1.0, 1.0, n)
    names = [x for x in suspension.available(b.corner) if x in PLAIN]
    grads = [x for x in suspension.GRADIENTS if x in names]
    keys = [f"suspension.Characteristic: {x}" for x in names]
    keys += [f"suspension.gradient: {x}" for x in grads]
    way = {m: 0.3 * b.sizes[:, None] * rng.normal(size=x.shape) for m, x in b.points.items()}

    def values(mech: Any, z: Any, rack: Any) -> Any:
        known = {wheel_key(b.corner): z} | ({"rack": rack} if b.kind.steer else {})
        rest = mbd.assemble(mech, known=known, throw=False)
        at = suspension.instant(Snapshot(mech, rest.q), b.corner)
        found = [suspension.CHARACTERISTICS[x].fn(at) for x in names]
        return jnp.stack([*found, *(at.gradient(x) for x in grads)]), rest.status == 0

    def moved(mech: Any, way: Any) -> Any:
        """The change of all numbers of a mechanism: none but its points'."""
        flat, tree = jax.tree_util.tree_flatten_with_path(mech)
        paths = [jax.tree_util.keystr(path) for path, _ in flat]
        change = [
            way[p.split("'")[1]] if p.startswith(".points[") else jnp.zeros_like(x)
            for p, (_, x) in zip(paths, flat, strict=True)
        ]
        return jax.tree_util.tree_unflatten(tree, change)

    def forward(mech: Any, z: Any, rack: Any, way: Any) -> Any:
        return jax.jvp(lambda m: values(m, z, rack)[0], (mech,), (moved(mech, way),))[1]

    def reverse(mech: Any, z: Any, rack: Any, way: Any, weights: Any) -> Any:
        slopes = jax.grad(lambda m: weights @ values(m, z, rack)[0])(mech)
        pairs = zip(*map(jax.tree_util.tree_leaves, (slopes, moved(mech, way))), strict=True)
        return sum(jnp.sum(x * y) for x, y in pairs)

    vmap, k = mbd.lanes.vmap, len(keys)
    _, ok = (np.asarray(x) for x in vmap(values)(b.stacked, z, rack))
    e = Expected(b, z, rack)
    want, off = _by_points(b, way, z, rack, names, grads)
    ahead = np.asarray(vmap(forward)(b.stacked, z, rack, way))
    wide = jax.tree_util.tree_map(lambda x: np.repeat(x, k, axis=0), (b.stacked, z, rack, way))
    back = np.asarray(vmap(reverse)(*wide, np.tile(np.eye(k), (n, 1)))).reshape(n, k)
    for found, aspect in ((ahead, "forward derivative"), (back, "reverse derivative")):
        for j, key in enumerate(keys):
            scales = _scale(b, key)
            for i in range(n):
                case, text = f"{key}, {aspect}", b.text(i)
                if not ok[i]:
                    yield Judged(case, FLAGGED, math.nan, text)
                    continue
                size = max(abs(want[i, j]), float(scales[i]))
                if e.there[i] and off[i, j] / size < UNSURE:
                    yield compare(
                        case, found[i, j], want[i, j], limit=1e-8 + 3.0 * off[i, j] / size,
                        scale=float(scales[i]), detail=text,
                    )  # fmt: skip
    single = jax.tree_util.tree_map(lambda x: np.asarray(x, np.float32), (b.stacked, z, rack))
    found, ok = (np.asarray(x) for x in vmap(values)(*single))
    yield from _single(b, e, keys, found, ok)


def _scale(b: corner_kinds.Batch, key: str) -> Any:
    name = key.rpartition(" ")[2]
    return unit_of(name, b) / (b.sizes if "gradient" in key else 1.0)


def _single(
    b: corner_kinds.Batch, e: Expected, keys: list[str], found: Any, ok: Any
) -> Iterator[Judged]:
    def pick(x: Expected, key: str) -> Any:
        name = key.rpartition(" ")[2]
        return np.real(x.slopes["travel"][name] if "gradient" in key else x.values[name])

    for j, key in enumerate(keys):
        scales, want = _scale(b, key), pick(e, key)
        near = [pick(x, key) for x in e.near]
        for i in range(len(ok)):
            if not ok[i]:
                yield Judged(f"{key}, float32", FLAGGED, math.nan, b.text(i))
                continue
            size = max(abs(want[i]), float(scales[i]))
            moved = max(abs(x[i] - want[i]) for x in near) / size * CLOSED_SINGLE / SHIFT
            if e.there[i] and moved < 0.02:
                yield compare(
                    f"{key}, float32", found[i, j], want[i], limit=1e-5 + 2.0 * moved,
                    scale=float(scales[i]), detail=b.text(i),
                )  # fmt: skip


def _by_points(
    b: corner_kinds.Batch, way: Any, z: Any, rack: Any, names: Any, grads: Any
) -> tuple[Any, Any]:
    """Derivatives (n, columns) along a change of the hardpoints, and how far they may be off."""
    rng = np.random.default_rng(0)

    def corner(points: Any) -> oracle.Drawn:
        d = b.kind.drawn(points, b.springs)
        return d._replace(spin=b.corner.sign * np.sign(d.spin[:, 1:2].real) * d.spin)

    def shifted(by: Any, h: complex) -> dict[str, Any]:
        return {m: x + h * by[m] for m, x in b.points.items()}

    def steps(base: Any) -> dict[str, Any]:
        pose, _, _ = oracle.reached(corner(base), z, rack)
        d = corner({m: x + 1j * H * way[m] for m, x in base.items()})
        now = oracle.Pose(pose.r + 0j, pose.m + 0j)
        s = oracle.state(d, b.roles, now, z + 0j, rack + 0j)
        return {m: x.imag / H for m, x in oracle.columns(d, b.roles, s).items()}

    def slope(h: float) -> dict[str, Any]:
        d = corner(shifted(way, h))
        pose, _, _ = oracle.reached(d, z, rack)
        return oracle.slopes(d, b.roles, pose, z, rack, "travel")

    noise = {m: b.sizes[:, None] * rng.normal(size=x.shape) for m, x in b.points.items()}
    with np.errstate(all="ignore"):
        first, near = steps(b.points), steps(shifted(noise, SHIFT))
        around = [slope(h) for h in OFFSETS]
    want = [first[m] for m in names]
    off = [np.abs(first[m] - near[m]) * CLOSED / SHIFT for m in names]
    for m in grads:
        m4, m2, m1, p1, p2, p4 = (x[m] for x in around)
        want.append((8.0 * (p1 - m1) - (p2 - m2)) / (12.0 * STEP))
        off.append(np.abs(want[-1] - (8.0 * (p2 - m2) - (p4 - m4)) / (24.0 * STEP)))
    return np.stack(want, -1), np.stack(off, -1)


def _study(b: corner_kinds.Batch, samples: int) -> Iterator[Judged]:
    """A study of a corner whose hardpoints vary, observed over the travel."""
    size = float(b.sizes[0])
    names = [n for n in STUDIED if n in suspension.available(b.corner)]
    places = (0.05 * size * np.array([-1.0, 0.0, 1.3])).tolist()
    sweep = suspension.kinematics_sweep(b.corner, travel=places, observe=names, gradients=["toe"])
    inputs = {
        f"points/{n}/{axis}": Normal(0.01 * size) for n, axis in (("wheel", "x"), ("top", "y"))
    }
    extra = "to" if "ti" in b.points and b.corner.steering else "af"
    inputs[f"points/{extra}/z"] = Normal(0.01 * size)
    study = mbd.Study(b.mechs[0], inputs, observe=sweep, samples=samples, seed=b.seed % 99)
    with tempfile.TemporaryDirectory() as folder:
        results = study.run(f"{folder}/study.zarr", progress=False)
        drawn = {k: np.asarray(x) for k, x in st.input_values(results).items()}
        found = {n: np.asarray(results[n]) for n in (*names, "toe_gradient")}
    points = {n: np.tile(x[:1], (samples, 1)) for n, x in b.points.items()}
    for path, x in drawn.items():
        _, name, axis = path.split("/")
        points[name][:, "xyz".index(axis)] = x
    springs = {n: np.repeat(x, samples) for n, x in b.springs.items()}
    many = b._replace(points=points, springs=springs, sizes=np.full(samples, size))
    for k, place in enumerate(places):
        e = Expected(many, np.full(samples, place), np.zeros(samples))
        for key, got in found.items():
            name = key.removesuffix("_gradient")
            number = "gradient" if key != name else "Characteristic"
            of = (
                (lambda x, n=name: x.slopes["travel"][n])
                if key != name
                else (lambda x, n=name: x.values[n])
            )
            want, near = np.real(of(e)), [np.real(of(x)) for x in e.near]
            scale = float(unit_of(name, many)[0]) / (size if key != name else 1.0)
            for i in range(samples):
                case, text = f"suspension.{number}: {name}, study", many.text(i, f", {k}")
                most = max(abs(want[i]), scale)
                moved = max(abs(x[i] - want[i]) for x in near) / most
                if np.isnan(got[i, k]):
                    yield Judged(case, FLAGGED, math.nan, text)
                elif e.there[i] and moved < UNSURE:
                    limit = LIMIT + 2.0 * CLOSED / SHIFT * moved
                    yield compare(case, got[i, k], want[i], limit=limit, scale=scale, detail=text)
