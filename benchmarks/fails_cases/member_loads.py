"""Member loads of random corners over load cases, against free bodies in NumPy.

The upright stands where `wheel_oracle` finds it, the arms turn with its balls, the rack slides.
There all bodies are cut free: unknown are what each joint can transmit, as columns of forces and
moments, and the force of the spring, and six equations of balance for each body give them all. The
drawing and three that are near it tell what rounding of the hardpoints decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from fails_cases import corner_kinds
from fails_cases import wheel_oracle as oracle
from fails_cases.corner_characteristics import CLOSED, LIMIT, SHIFT, UNSURE
from fails_cases.judged import CRASHED, FLAGGED, REFUSED, Judged, compare, or_crash
from fails_cases.rigid import unit
from jaxmbd import suspension
from jaxmbd.observe import AxialForce

PER_CASE = 40
SHARE = 6.0
_WHERE = "balance of free bodies in NumPy"
NUMBERS = {
    "suspension.LoadTable.columns": _WHERE,
    "AxialForce": _WHERE,
    "suspension.preloaded": _WHERE,
}
GRAVITY = np.array([0.0, 0.0, -9.81])
CASES, NEAR = 3, 4
FORCES = "vertical", "lateral", "braking", "driving", "centre_x", "centre_y", "centre_z"
MOMENTS = "aligning", "overturning", "torque"
KINDS = tuple(corner_kinds.KINDS)


class Member(NamedTuple):
    """What joins b to a: unit moments and forces on b (n, 6) at a point, world axes."""

    a: str
    b: str
    at: Any
    columns: Any


def ball(a: str, b: str, at: Any) -> Member:
    """Three forces."""
    return Member(a, b, at, np.hstack([np.zeros((3, 3)), np.eye(3)]))


def hinge(a: str, b: str, at: Any, axis: Any) -> Member:
    """Three forces, and moments across an axis."""
    across = np.array(oracle.across(np.asarray(axis, float)[None])).reshape(2, 3)
    moments = np.hstack([across, np.zeros((2, 3))])
    return Member(a, b, at, np.vstack([np.hstack([np.zeros((3, 3)), np.eye(3)]), moments]))


def slide(a: str, b: str, at: Any, axis: Any) -> Member:
    """Forces across an axis, three moments, and last the force along it that holds b."""
    across = np.array(oracle.across(np.asarray(axis, float)[None])).reshape(2, 3)
    forces = np.vstack([across, np.zeros((3, 3)), [axis]])
    moments = np.vstack([np.zeros((2, 3)), np.eye(3), np.zeros((1, 3))])
    return Member(a, b, at, np.hstack([moments, forces]))


def universal(a: str, b: str, at: Any, first: Any, second: Any) -> Member:
    """Three forces, and the moment across both axes."""
    moment = np.concatenate([np.cross(first, second), np.zeros(3)])
    return Member(a, b, at, np.vstack([np.hstack([np.zeros((3, 3)), np.eye(3)]), moment]))


def sleeve(a: str, b: str, at: Any, axis: Any) -> Member:
    """Forces and moments across an axis."""
    across = np.array(oracle.across(np.asarray(axis, float)[None])).reshape(2, 3)
    none = np.zeros((2, 3))
    return Member(a, b, at, np.vstack([np.hstack([none, across]), np.hstack([across, none])]))


def rod(a: str, b: str, start: Any, end: Any) -> Member:
    """Tension, which pulls b towards a."""
    pull = (start - end) / np.linalg.norm(start - end)
    return Member(a, b, end, np.concatenate([np.zeros(3), pull])[None])


def balance(members: dict[str, Member], loads: Any) -> dict[str, np.ndarray]:
    """Each member's amounts (n,) of its columns.

    Args:
        members: all that joins the bodies, determinate.
        loads: (body, point, force, moment) of each load.
    """
    bodies = sorted({n for m in members.values() for n in (m.a, m.b)} - {"ground"})
    row = {name: slice(6 * k, 6 * k + 6) for k, name in enumerate(bodies)}
    matrix, right, places, count = [], np.zeros(6 * len(bodies)), {}, 0
    for name, m in members.items():
        for column in m.columns:
            whole = np.concatenate([column[:3] + np.cross(m.at, column[3:]), column[3:]])
            line = np.zeros(len(right))
            for body, sign in ((m.a, -1.0), (m.b, 1.0)):
                if body != "ground":
                    line[row[body]] += sign * whole
            matrix.append(line)
        places[name] = slice(count, count := count + len(m.columns))
    for body, at, force, moment in loads:
        if body != "ground":
            right[row[body]] -= np.concatenate([moment + np.cross(at, force), force])
    scale = np.maximum(np.max(np.abs(matrix), axis=0), 1e-300)  # moments of any size
    found = np.linalg.solve(np.transpose(matrix) / scale[:, None], right / scale)
    return {name: found[place] for name, place in places.items()}


def wheel(c: Any, values: dict[str, float], centre: Any, spin: Any, upright: str) -> Any:
    """Loads of a case on an upright and on the ground, its spin outwards."""
    left, up = c.sign * spin, np.array([0.0, 0.0, 1.0])
    heading = unit(np.cross(left, up))
    contact = oracle.contact(centre[None], spin[None], c.tyre_radius)[0]
    x = dict.fromkeys((*FORCES, *MOMENTS), 0.0) | values
    ahead = {"brakes": -x["braking"], "drive": x["driving"]}
    pushed = np.array([x["centre_x"], x["centre_y"], x["centre_z"]])
    for field, force in ahead.items():
        inboard = getattr(c, field) == "inboard"
        yield upright, centre if inboard else contact, force * heading, np.zeros(3)
    side = x["lateral"] * np.cross(up, heading) + x["vertical"] * up
    moment = x["aligning"] * up + x["overturning"] * heading + x["torque"] * left
    yield upright, contact, side, moment
    yield upright, centre, pushed, np.zeros(3)


class Corners:
    """Samples where the wheel is at a height and the rack at a travel."""

    def __init__(self, b: corner_kinds.Batch, points: Any, z: Any, rack: Any):
        self.b, self.p = b, points
        self.d = b.kind.drawn(points, b.springs)
        d = self.d
        flip = b.corner.sign * np.sign(d.spin[:, 1:2])
        self.d = d._replace(spin=flip * d.spin)
        self.pose, self.miss, self.worst = oracle.reached(self.d, z, rack)
        along = unit(np.broadcast_to(corner_kinds.RACK, points["wheel"].shape))
        self.rack = rack[:, None] * along, along

    def members(self, i: int, mech: Any) -> tuple[dict[str, Member], list[Any]]:
        """Members of a sample, and weights."""
        p = {n: x[i] for n, x in self.p.items()}
        turns = {"upright": (self.pose.r[i], self.d.centre[i], self.pose.m[i])}
        shift, along = self.rack[0][i], self.rack[1][i]
        turns["rack"] = np.eye(3), p["ti"], p["ti"] + shift

        def at(body: str, x: Any) -> Any:
            if body == "ground":
                return x
            r, old, new = turns[body]
            return new + r @ (x - old)

        found: dict[str, Member] = {}
        for arm, k in (("upper", "u"), ("lower", "l")):
            if f"{k}b" not in p or f"{k}f" not in p or arm not in mech.structure.bodies:
                continue
            on = "ub2" if arm == "upper" else "lb"
            axis = unit(p[f"{k}f"] - p[f"{k}r"])
            ball_at = at("upright", p[on])
            turn = _turn(axis, p[f"{k}b"] - p[f"{k}f"], ball_at - p[f"{k}f"])
            turns[arm] = turn, p[f"{k}f"], p[f"{k}f"]
            found[arm] = hinge("ground", arm, p[f"{k}f"], axis)
            found[f"{arm}_ball"] = ball(arm, "upright", ball_at)
        if "i1" in p:
            for n in corner_kinds.LINKS:
                found[n] = rod("ground", "upright", p[f"i{n}"], at("upright", p[f"o{n}"]))
        if "foot" in p:
            line, ahead = unit(p["top"] - at("upright", p["foot"])), np.array([1.0, 0.0, 0.0])
            turns["strut"] = np.eye(3), p["top"], p["top"]  # its weight is at that point
            second = unit(np.cross(ahead, line))
            found["top"] = universal("ground", "strut", p["top"], ahead, second)
            found["strut"] = sleeve("upright", "strut", p["top"], line)
        if "af" in p:
            found["arm"] = hinge("ground", "upright", p["af"], unit(p["af"] - p["ar"]))
        elif "rack" in mech.structure.bodies:
            found["rack"] = slide("ground", "rack", at("rack", p["ti"]), along)
            found["rod"] = rod("rack", "upright", at("rack", p["ti"]), at("upright", p["to"]))
        else:
            found["rod"] = rod("ground", "upright", p["ti"], at("upright", p["to"]))
        on = mech.forces["spring"].b
        found["spring"] = rod("ground", on, p["top"], at(on, p["bottom"]))
        weights = [
            (n, at(n, _com(mech, n, p)), float(mech.bodies[n].mass) * np.asarray(mech.gravity), 0.0)
            for n in turns
            if n in mech.structure.bodies
        ]
        return found, weights


def _com(mech: Any, name: str, p: Any) -> Any:
    """The centre of mass as drawn."""
    com = mech.bodies[name].com
    return p[com.name] if hasattr(com, "name") else np.asarray(com)


def _turn(axis: Any, old: Any, new: Any) -> Any:
    """The rotation about an axis that takes one vector's direction across it to another's."""
    old, new = (x - axis * (axis @ x) for x in (old, new))
    angle = np.arctan2(axis @ np.cross(old, new), old @ new)
    k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def columns(members: dict[str, Member], found: dict[str, np.ndarray]) -> dict[str, float]:
    """The columns of a `LoadTable`."""
    out = {}
    for name, m in members.items():
        amounts = found[name]
        if len(amounts) == 1:
            out[name] = amounts[0]
            continue
        own = m.columns
        if name == "rack":
            out["rack_effort"] = amounts[-1]
            own, amounts = own[:-1], amounts[:-1]
        wrench = amounts @ own
        for part, x in (("moment", wrench[:3]), ("force", wrench[3:])):
            if not np.any(own[:, :3]) and part == "moment":
                continue
            out |= {f"{name}_{part}_{axis}": y for axis, y in zip("xyz", x, strict=True)}
            out[f"{name}_{part}"] = np.linalg.norm(x)
    return out


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Each kind of corner, over load cases at a ride height."""
    samples = max(1, round(size / PER_CASE / len(KINDS)))
    for k, name in enumerate(KINDS):
        rng = np.random.default_rng([seed, 23, k])
        b = corner_kinds.batch(name, samples, int(rng.integers(2**31)))
        yield from or_crash("suspension.LoadTable.columns", _cases(b, rng), b.text(0))
        jax.clear_caches()


def _cases(b: corner_kinds.Batch, rng: Any) -> Iterator[Judged]:
    n, reach = len(b.sizes), 0.06 * b.corner.tyre_radius
    z = float(rng.uniform(-1.0, 1.0) * reach * rng.integers(0, 2))
    rack = float(rng.uniform(-1.0, 1.0) * reach) if b.kind.steer else 0.0
    force, values = 300.0, []
    for _ in range(CASES):
        case = {m: force * rng.normal() * rng.integers(0, 2) for m in FORCES}
        lever = force * b.corner.tyre_radius
        values.append(case | {m: lever * rng.normal() * rng.integers(0, 2) for m in MOMENTS})
    near = []
    for k in range(NEAR):
        off = SHIFT * b.sizes[:, None] * (k > 0)
        points = {m: x + off * rng.normal(size=x.shape) for m, x in b.points.items()}
        near.append(Corners(b, points, z * np.ones(n), rack * np.ones(n)))
    flat = np.zeros(n)
    drawn = Corners(b, b.points, flat, flat)
    for i, mech in enumerate(b.mechs):
        if "hub" in mech.structure.bodies:  # it turns until its weight hangs below its axis
            mech = mech.replace(gravity=(0.0, 0.0, 0.0))
        there = near[0].miss[i] < 1e-9 * b.sizes[i] and near[0].worst[i] < 1e6
        cases = {f"case {k}": x for k, x in enumerate(values)}
        yield from _carried(b, mech, drawn, i)
        try:
            table = suspension.load_cases(mech, b.corner, cases, travel=z, steer=rack)
        except ValueError as error:
            outcome = CRASHED if there else REFUSED
            yield Judged("suspension.LoadTable.columns", outcome, np.nan, f"{error} | {b.text(i)}")
            continue
        if not there:
            yield Judged("suspension.LoadTable.columns", FLAGGED, np.nan, b.text(i))
            continue
        yield from _table(b, mech, near, values, table, i)


def _carried(b: Any, mech: Any, at: Corners, i: int) -> Iterator[Judged]:
    """The spring's tension where it carries a load on the wheel centre as drawn."""
    members, weights = at.members(i, mech)
    load = np.array([0.0, 0.0, 4e3])
    want = balance(members, [*weights, ("upright", at.pose.m[i], load, 0.0)])["spring"][0]
    if not abs(want) < 100.0 * load[2]:
        return  # a spring that hardly works with the wheel
    car = suspension.preloaded(mech, b.corner, load[2])
    spring: Any = car.forces["spring"]
    long = np.linalg.norm(at.p["top"][i] - members["spring"].at)
    as_drawn = np.linalg.norm(at.p["top"][i] - at.p["bottom"][i])
    free = as_drawn if spring.free_length is None else float(spring.free_length)
    got = float(spring.preload) + float(spring.stiffness) * (long - free)
    options: Any = dict(limit=1e-7, scale=1.0, detail=b.text(i))
    yield compare("suspension.preloaded", got / want, 1.0, **options)


def _expected(at: Corners, mech: Any, case: Any, i: int) -> dict[str, float]:
    members, weights = at.members(i, mech)
    spin = at.pose.r[i] @ at.d.spin[i]
    loads = wheel(at.b.corner, case, at.pose.m[i], spin, "upright")
    return columns(members, balance(members, [*weights, *loads]))


def _table(b: Any, mech: Any, near: Any, values: Any, table: Any, i: int) -> Iterator[Judged]:
    lever = b.corner.tyre_radius
    for k, case in enumerate(values):
        want, *others = (_expected(at, mech, case, i) for at in near)
        size = max(abs(x) / (lever if "moment" in n else 1.0) for n, x in want.items())
        for name, x in want.items():
            scale = size * (lever if "moment" in name else 1.0)
            moved = max(abs(o[name] - x) for o in others) / scale
            if not moved < UNSURE:
                continue
            options: Any = dict(limit=LIMIT + 2.0 * CLOSED / SHIFT * moved, scale=1.0)
            text = f"{name}, case {k}, {b.text(i)}"
            axial = isinstance(suspension.member_loads(mech, b.corner).get(name), AxialForce)
            number = "AxialForce" if axial else "suspension.LoadTable.columns"
            got = float(table[name][k])
            yield compare(number, got / scale, x / scale, detail=text, **options)
