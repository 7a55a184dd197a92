"""Loads of brackets and mounts of random corners, against free bodies with a force at each bracket.

A hinge through two points is cut free as a ball at one and two forces across the axis at the other,
so that the first bears all of the axial force; half of it goes to the other one. Springs end at a
point of the chassis of their own, at the top of a strut, at a hinge's bracket or at a link's end.
Some arms have no mass, some hinges are declared from the arm to the chassis, brakes and motors are
on either body.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np

import jaxmbd as mbd
from fails_cases import corner_kinds
from fails_cases import member_loads as free
from fails_cases import wheel_oracle as oracle
from fails_cases.corner_characteristics import CLOSED, LIMIT, SHIFT, UNSURE
from fails_cases.judged import CRASHED, FLAGGED, REFUSED, Judged, compare, or_crash
from fails_cases.rigid import unit
from jaxmbd import suspension

PER_CASE = 60
SHARE = 3.0
_WHERE = "balance of free bodies in NumPy, with a force at each bracket"
BRACKETS, MOUNTS = (f"suspension.LoadTable.columns, {n}" for n in ("brackets", "mounts"))
NUMBERS = {BRACKETS: _WHERE, MOUNTS: _WHERE}
CASES = 2
HINGES = {"upper": ("uf", "ur"), "lower": ("lf", "lr"), "arm": ("af", "ar")}
"""The point that a hinge is declared at, and the other."""
TOPS = {
    "wishbones on a rack": ("top", "uf", "ur"),
    "wishbones with a track rod": ("lf", "lr", "ti"),
    "strut": ("top",),
    "five links": ("i1", "i3"),
    "swing arm": ("top",),
}
"""Where the spring ends on the chassis."""
AXES = {"": None, "_x": 0, "_y": 1, "_z": 2}


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Each kind of corner, over load cases at a ride height."""
    samples = max(1, round(size / PER_CASE / len(corner_kinds.KINDS)))
    for k, name in enumerate(corner_kinds.KINDS):
        rng = np.random.default_rng([seed, 31, k])
        b = corner_kinds.batch(name, samples, int(rng.integers(2**31)))
        yield from or_crash(BRACKETS, _cases(b, rng), b.text(0))
        jax.clear_caches()


def _cases(b: corner_kinds.Batch, rng: Any) -> Iterator[Judged]:
    roles = {n: str(rng.choice(["inboard", "outboard"])) for n in ("brakes", "drive")}
    b = b._replace(corner=replace(b.corner, **roles))
    top, turned = str(rng.choice(TOPS[b.name])), bool(rng.integers(2))
    n, reach = len(b.sizes), 0.06 * b.corner.tyre_radius
    z = reach * float(rng.uniform(-1.0, 1.0))
    rack = reach * float(rng.uniform(-1.0, 1.0)) if b.kind.steer else 0.0
    cases = {f"case {k}": _loads(b, rng) for k in range(CASES)}
    near = []
    for k in range(free.NEAR):
        off = SHIFT * b.sizes[:, None] * (k > 0)
        points = {m: x + off * rng.normal(size=x.shape) for m, x in b.points.items()}
        near.append(free.Corners(b, points, z * np.ones(n), rack * np.ones(n)))
    for i, drawn in enumerate(b.mechs):
        mech = _mechanism(drawn, top, turned, massless=bool(rng.integers(2)))
        text = b.text(i, f", spring at {top!r}, hinges turned: {turned}")
        there = near[0].miss[i] < 1e-9 * b.sizes[i] and near[0].worst[i] < 1e6
        try:
            table = suspension.load_cases(mech, b.corner, cases, travel=z, steer=rack)
        except ValueError as error:
            outcome = CRASHED if there else REFUSED
            yield Judged(BRACKETS, outcome, np.nan, f"{error} | {text}")
            continue
        if not there:
            yield Judged(BRACKETS, FLAGGED, np.nan, text)
            continue
        for k, values in enumerate(cases.values()):
            forces = [_forces(at, mech, values, i, top) for at in near]
            yield from _compared(mech, forces, table, k, turned, text)


def _loads(b: corner_kinds.Batch, rng: Any) -> dict[str, float]:
    force = 300.0
    found = {m: force * rng.normal() * rng.integers(0, 2) for m in free.FORCES}
    lever = force * b.corner.tyre_radius
    found |= {m: lever * rng.normal() * rng.integers(0, 2) for m in free.MOMENTS}
    return found | {"vertical": force}


def _mechanism(mech: mbd.Mechanism, top: str, turned: bool, massless: bool) -> mbd.Mechanism:
    """The corner with its spring from a point, its hinges the other way round, light arms."""
    own: Any = mech.forces["spring"]
    about = {n: getattr(own, n) for n in ("stiffness", "free_length", "preload")}
    joints: dict[str, Any] = {
        n: mbd.Revolute(mech.joint(n).b, "ground", near, (far, near))
        for n, (near, far) in HINGES.items()
        if turned and any(e.name == n for e in mech.structure.joints)
    }
    light = [x for x in mech.structure.bodies if massless and x != "upright"]
    bodies = {n: mbd.Body(0.0, com=mech.bodies[n].com) for n in light}
    spring = mbd.SpringDamper("ground", own.b, top, "bottom", **about)
    gravity = (0.0, 0.0, 0.0) if "hub" in mech.structure.bodies else mech.gravity
    return mech.replace(bodies=bodies, joints=joints, forces={"spring": spring}, gravity=gravity)


def _forces(at: free.Corners, mech: Any, case: Any, i: int, top: str) -> dict[str, Any]:
    """Forces on the arm at each bracket, along each hinge, and on the chassis at the mount."""
    members, weights = at.members(i, mech)
    p = {n: x[i] for n, x in at.p.items()}
    bottom = members["spring"].at
    members["spring"] = free.rod("ground", members["spring"].b, p[top], bottom)
    hinges = {n: x for n, x in HINGES.items() if n in members and x[0] in p}
    for name, (near, far) in hinges.items():
        axis, arm = unit(p[far] - p[near]), members[name].b
        across = np.array(oracle.across(axis[None])).reshape(2, 3)
        columns = np.hstack([np.zeros((2, 3)), across])
        members[name] = free.ball("ground", arm, p[near])
        members[f"{name}, far"] = free.Member("ground", arm, p[far], columns)
    spin = at.pose.r[i] @ at.d.spin[i]
    loads = free.wheel(at.b.corner, case, at.pose.m[i], spin, "upright")
    found = free.balance(members, [*weights, *loads])
    force = {n: found[n] @ m.columns[:, 3:] for n, m in members.items()}
    out: dict[str, Any] = {}
    for name, (near, far) in hinges.items():
        axis = unit(p[far] - p[near])
        axial = float(axis @ force[name])
        out[near] = force[name] - 0.5 * axial * axis
        out[far] = force[f"{name}, far"] + 0.5 * axial * axis
        out[f"{name}_axial"] = axial
    ends = {"ti": "rod", **{f"i{n}": n for n in corner_kinds.LINKS}}
    held = out.get(top, force.get("top" if top == "top" else ends.get(top, "")))
    if held is not None:
        out["mount"] = -(force["spring"] + held)
    out["size"] = max(float(np.linalg.norm(x)) for x in force.values())
    return out


def _compared(
    mech: Any, forces: list[Any], table: Any, k: int, turned: bool, text: str
) -> Iterator[Judged]:
    """Columns of a case that rounding of the hardpoints does not decide."""
    first = forces[0]
    top = mech.forces["spring"].at_a.name
    for name, want in first.items():
        if name == "size":
            continue
        moved = max(float(np.max(np.abs(x[name] - want))) for x in forces[1:]) / first["size"]
        if not moved < UNSURE:
            continue
        on = -1.0 if turned and name != "mount" else 1.0  # on the chassis
        whole = f"{top}_mount" if name == "mount" else name
        for end, axis in {"": None}.items() if name.endswith("_axial") else AXES.items():
            if name.endswith("_axial"):
                column, value = name, on * want
            else:
                column = f"{whole}_force{end}"
                value = float(np.linalg.norm(want)) if axis is None else on * want[axis]
            yield compare(
                MOUNTS if name == "mount" else BRACKETS,
                float(table[column][k]) / first["size"], value / first["size"],
                limit=LIMIT + 2.0 * CLOSED / SHIFT * moved, scale=1.0,
                detail=f"{column}, case {k}, {text}",
            )  # fmt: skip
