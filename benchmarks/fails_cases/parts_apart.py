"""Tolerances of hardpoints: corners whose parts have holes of their own, against those drawn so.

A corner with offsets of its halves closes as one that is described by hand with every half where
its offset takes it: axes between the two points of each part, a rod as long as its ends were drawn
plus its own error. With shared hardpoints all that meet there moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

import jaxmbd as mbd
from fails_cases import mechanisms
from fails_cases.judged import CRASHED, Judged, compare
from fails_cases.rigid_dynamics import Dynamics

PER_CASE = 8
_DRAWN = "closure errors of rigid bodies in NumPy, of a corner that is drawn so by hand"
NUMBERS = {"tolerances.split": _DRAWN, "tolerances.shared": _DRAWN}
HALVES = (
    "uf@ground", "ur@ground", "uf@upper", "ur@upper", "ub@upper", "ub@upright", "lf@ground",
    "lr@ground", "lf@lower", "lr@lower", "lb@lower", "lb@upright", "ti@ground", "to@upright",
    "top@ground", "bottom@lower",
)  # fmt: skip


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Offsets of one corner's halves, and of its hardpoints, each as one batch."""
    rng, n = np.random.default_rng(seed), max(3, size // PER_CASE)
    length = float(10.0 ** rng.uniform(-3.0, 2.0))
    mech = mechanisms.corner(rng, length)
    drawn = {p: np.asarray(mech.points[p], float) for p in mech.structure.points}
    for judge in (_split, _shared, _tilted):
        text = f"{judge.__name__}, corner of {length:.3g} m, default_rng({seed})"
        try:
            yield from judge(rng, mech, drawn, length, n, text)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:250]
            yield Judged("tolerances.split", CRASHED, math.nan, f"{said} | {text}")


def by_hand(mech: mbd.Mechanism, at: dict[str, np.ndarray], rod: float) -> mbd.Mechanism:
    """The corner with every half where it is."""
    joints = {
        name: mbd.Revolute(
            "ground", name, at[f"{p}f@ground"], at[f"{p}f@ground"] - at[f"{p}r@ground"],
            at_b=at[f"{p}f@{name}"], axis_b=at[f"{p}f@{name}"] - at[f"{p}r@{name}"],
        )
        for name, p in (("upper", "u"), ("lower", "l"))
    }  # fmt: skip
    balls = {
        f"{name}_ball": mbd.Spherical(name, "upright", at[f"{p}b@{name}"], at_b=at[f"{p}b@upright"])
        for name, p in (("upper", "u"), ("lower", "l"))
    }
    link = mbd.Rod("ground", "upright", at["ti@ground"], at["to@upright"], length=rod)
    return mbd.Mechanism(dict(mech.bodies), joints | balls | {"tierod": link})


def _assembled(mech: mbd.Mechanism) -> Any:
    found = mbd.assemble(mech, throw=False)
    spring = mbd.observe.element_measures(mech, found.q)["spring"]["length"].value
    coms = [mech.bodies[b].com for b in mech.structure.bodies]
    return found.q, found.status, spring, coms, mech.points["wheel"]


def _closed(
    number: str, hands: list[mbd.Mechanism], found: Any, ends: Any, length: float, text: str
) -> Iterator[Judged]:
    """Closure errors of the corner by hand at what was assembled; the spring between its ends."""
    q, status, springs = found[:3]
    r = Dynamics([mbd.io.to_dict(h) for h in hands], mbd.topology(hands[0]))
    still = np.zeros((r.n, r.nv))
    safe = np.where(np.isfinite(q), q, np.asarray(mbd.neutral(hands[0])))
    error = np.max(np.abs(r.conditions(safe, still).v), axis=1) / length
    placed = r.place(safe, still)
    bottom = r.point(placed, "lower", np.stack([e["bottom@lower"] for e in ends])).v
    spans = np.linalg.norm(bottom - np.stack([e["top@ground"] for e in ends]), axis=1)
    for i in range(r.n):
        said, ok = f"sample {i}, {text}", int(status[i]) == 0
        yield compare(number, error[i], 0.0, limit=1e-9, scale=1.0, detail=said, ok=ok)
        yield compare(
            number, springs[i], spans[i], limit=1e-9, scale=length, detail=f"spring, {said}", ok=ok
        )


def _split(
    rng: np.random.Generator, mech: Any, drawn: Any, length: float, n: int, text: str
) -> Iterator[Judged]:
    build = mbd.tolerances.split(mech)
    paths = set(build.variables)
    wanted = {f"offsets/{h}" for h in HALVES} | {"lengths/tierod", "lengths/spring"}
    yield compare("tolerances.split", paths == wanted, True, limit=0.0, detail=f"paths, {text}")
    size = 10.0 ** rng.uniform(-5.0, -2.0, n) * length
    offsets = {f"offsets/{h}": size[:, None] * rng.normal(size=(n, 3)) for h in HALVES}
    longer = size * rng.normal(size=n)
    given = offsets | {"lengths/tierod": longer}
    found = _numpy(mbd.lanes.vmap(lambda x: _assembled(build(x)))(given))
    rod = float(np.linalg.norm(drawn["ti"] - drawn["to"]))
    ends = [
        {h: drawn[h.split("@")[0]] + offsets[f"offsets/{h}"][i] for h in HALVES} for i in range(n)
    ]
    hands = [by_hand(mech, e, rod + float(x)) for e, x in zip(ends, longer, strict=True)]
    yield from _closed("tolerances.split", hands, found, ends, length, text)
    yield from _kept("tolerances.split", mech, drawn, found, n, text)


def _shared(
    rng: np.random.Generator, mech: Any, drawn: Any, length: float, n: int, text: str
) -> Iterator[Judged]:
    """Of all hardpoints; the rod is then as long as it is drawn."""
    design = mbd.tolerances.shared(mech)
    names = {h.split("@")[0] for h in HALVES}
    size = 10.0 ** rng.uniform(-5.0, -2.0, n) * length
    offsets = {p: size[:, None] * rng.normal(size=(n, 3)) for p in sorted(names)}
    given = {f"offsets/{p}": x for p, x in offsets.items()}
    found = _numpy(mbd.lanes.vmap(lambda x: _assembled(design(x)))(given))
    ends = [
        {h: drawn[p] + offsets[p][i] for h in HALVES for p in [h.split("@")[0]]} for i in range(n)
    ]
    rods = [float(np.linalg.norm(e["ti@ground"] - e["to@upright"])) for e in ends]
    hands = [by_hand(mech, e, rod) for e, rod in zip(ends, rods, strict=True)]
    yield from _closed("tolerances.shared", hands, found, ends, length, text)
    yield from _kept("tolerances.shared", mech, drawn, found, n, text)
    for i in range(n):  # every part is made to fit: it closes as drawn
        q = np.asarray(found[0][i])
        yield compare(
            "tolerances.shared", q, mbd.neutral(mech), limit=1e-9, scale=1.0, detail=f"{i}, {text}"
        )


def _kept(number: str, mech: Any, drawn: Any, found: Any, n: int, text: str) -> Iterator[Judged]:
    """Centres of mass and the wheel's point stay where they are drawn."""
    coms = [np.asarray(mech.bodies[b].com) for b in mech.structure.bodies]
    for i in range(n):
        got = np.stack([c[i] for c in found[3]])
        yield compare(number, got, np.stack(coms), limit=0.0, detail=f"centres of mass {i}, {text}")
        yield compare(number, found[4][i], drawn["wheel"], limit=0.0, detail=f"wheel {i}, {text}")


def _tilted(
    rng: np.random.Generator, mech: Any, drawn: Any, length: float, n: int, text: str
) -> Iterator[Judged]:
    """An axis d given by components tilts to ``d + θ × d``: by ``atan |θ|``, the other half not."""
    del mech, drawn, n
    bars = mechanisms.rssr(rng, length)
    build = mbd.tolerances.split(bars, "crank")
    tilt = 1e-2 * rng.normal(size=2)
    joint: Any = build({"tilts/crank@crank": tilt}).joints["crank"]
    whole: Any = bars.joints["crank"]
    before = np.asarray(whole.axis, float)
    a, b = (np.asarray(x, float) for x in (joint.axis, joint.axis_b))
    sine = [np.linalg.norm(np.cross(before, x)) for x in (a, b)]
    cosine = [before @ x for x in (a, b)]
    angles = np.arctan2(sine, cosine)
    wanted = [0.0, math.atan(float(np.linalg.norm(tilt)))]
    yield compare("tolerances.split", angles, wanted, limit=1e-7, scale=1e-2, detail=text)


def _numpy(tree: Any) -> Any:
    return jax.tree_util.tree_map(np.asarray, tree)
