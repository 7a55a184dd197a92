"""Corners on bushings: settled characteristics and compliance, against `soft_wheels`.

Characteristics are those of the
oracle's equilibria at the same heights of the wheel, with both slow motions; their derivatives and
the wheel rate are differences of fourth order over neighbouring heights. The compliance is the
solution of the oracle's equations for small wrenches.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxmbd as mbd
from fails_cases import soft_wheels as soft
from fails_cases import wheel_oracle as oracle
from fails_cases.corner_kinds import Points
from fails_cases.judged import CRASHED, FLAGGED, Judged, compare
from fails_cases.rigid import unit
from fails_cases.soft_kinds import KINDS, Batch, batch, far
from jaxmbd import suspension

PER_CASE = 60
SHARE = 6.0
_REST = "equilibria of rigid bodies in NumPy, maximal coordinates"
_NEAR = f"differences of fourth order along {_REST}"
_VECTORS = ("contact", "instant_axis_direction", "instant_axis_point")
NUMBERS = {f"suspension.Characteristic: {n}": _REST for n in suspension.CHARACTERISTICS} | {
    f"suspension.gradient: {n}": _NEAR for n in suspension.GRADIENTS
}
NUMBERS |= {
    "suspension.Compliance.matrix": f"{_REST}, their response to a complex step of the wrench",
    "suspension.Compliance.centre": _REST,
    "suspension.Compliance.spin": _REST,
    "suspension.Compliance.patch": _REST,
    "suspension.Compliance.rise": _REST,
    "suspension.Compliance.q": f"{_REST}: the wheel centre at these coordinates",
    "suspension.Compliance.status": f"{_REST}: whether Newton's method finds one",
    "suspension.Characteristic: wheel_rate": f"{_NEAR}, of the wheel's force",
}
for _name in ("anti_dive", "anti_lift_driving"):  # of front axles, which are none of these
    NUMBERS.pop(f"suspension.Characteristic: {_name}")
SHIFT, CLOSED = 1e-8, 7e-11
LIMIT, UNSURE = 1e-7, 1e-3
STEP = 2e-3
"""Of the differences, over the size."""
OFFSETS = np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])


def columns(b: Batch, s: soft.Soft, points: Points, x: soft.Rest, held: soft.Held) -> Any:
    """All characteristics of settled corners, without second derivatives."""
    c = b.corner
    roles = oracle.Roles(
        c.sign, c.tyre_radius, c.axle, c.wheelbase or 1.0, c.cg_height or 1.0, c.brakes, c.drive,
        c.brake_share or 0.0, c.drive_share, c.held_in_steering,
    )  # fmt: skip
    k = list(s.bodies).index("upright")
    d = oracle.Drawn(points["wheel"], unit(points["wheel"] - points["inner"]))
    pose = oracle.Pose(x.turn[:, k], x.place[:, k])
    twists = np.moveaxis(soft.travel_and_steering(s, x, held), -1, 0)
    spin = np.einsum("nij,nj->ni", pose.r, d.spin)

    def line(names: Any) -> Any:
        if names is None:
            return None
        ends = "upright", "upright"
        return [soft.at(s, x, on, points[n]) for on, n in zip(ends, names, strict=True)]

    arms = {
        n: (points[a[0]], points[a[1]], soft.at(s, x, "upright", points[a[2]]))
        for n in ("upper_arm", "lower_arm")
        if (a := getattr(c, n)) is not None
    }
    [f] = s.springs
    on = list(s.bodies).index(f.body)
    end = soft.at(s, x, f.body, f.end)
    length = far(end, f.top)
    rates = []
    for t in twists:
        move = t[:, on, 3:] + np.cross(t[:, on, :3], end - x.place[:, on])
        rates.append(oracle.dot(end - f.top, move) / length)
    state = oracle.State(
        pose, pose.m, spin, oracle.contact(pose.m, spin, c.tyre_radius), twists[0][:, k],
        twists[1][:, k], None, line(c.kingpin), None, arms,
        (length, f.stiffness * (length - f.free), *rates),
    )  # fmt: skip
    state = state._replace(held=oracle.held_rates(d, roles, state))
    return oracle.columns(d, roles, state)


class Settled:
    """The oracle's corners at heights z (k,) of the wheel: columns and their slopes.

    Attributes:
        there: samples that Newton's method settles everywhere.
        values, slopes, unsure: columns (n, k, ...), derivatives, and how far these may be off.
    """

    def __init__(self, b: Batch, points: Points, z: Any, slopes: bool):
        s, n = b.kind.oracle(points, b.numbers), len(b.sizes)
        self.there = np.ones(n, bool)
        self.values: dict[str, Any] = {}
        self.slopes: dict[str, Any] = {}
        self.unsure: dict[str, Any] = {}
        none, here, near = np.zeros((n, 6)), [], []
        x = soft.drawn(s, True)
        for height in z:
            held = soft.Held(np.full(n, height), np.zeros(n), none)
            x = self._found(s, x, held)
            here.append(columns(b, s, points, x, held))
            around = []
            for offset in STEP * OFFSETS if slopes else ():
                moved = held._replace(z=held.z + offset * b.sizes)
                other = self._found(s, x, moved)
                around.append(columns(b, s, points, other, moved))
            near.append(around)
        self.values = {m: np.stack([c[m] for c in here], 1) for m in here[0]}
        if slopes:
            self._slopes(b, near)

    def _found(self, s: soft.Soft, x: soft.Rest, held: soft.Held) -> soft.Rest:
        found, ok = soft.solved(s, x, held)
        self.there &= ok
        return found

    def _slopes(self, b: Batch, near: Any) -> None:
        for name in (*suspension.GRADIENTS, "wheel_force"):
            if name not in self.values:
                continue
            m4, m2, m1, p1, p2, p4 = (
                np.stack([around[k][name] for around in near], 1) for k in range(6)
            )
            step = STEP * b.sizes[:, None]
            self.slopes[name] = (8.0 * (p1 - m1) - (p2 - m2)) / (12.0 * step)
            wide = (8.0 * (p2 - m2) - (p4 - m4)) / (24.0 * step)
            self.unsure[name] = np.abs(self.slopes[name] - wide)


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Both kinds: settled characteristics, then the compliance."""
    samples = max(2, round(size / PER_CASE / len(KINDS)))
    for name in KINDS:
        b = batch(name, samples, seed)
        for number, judge in (
            ("Characteristic: camber", _characteristics),
            ("Compliance.matrix", partial(_compliance, None)),
            ("Compliance.matrix", partial(_compliance, 0.0)),
        ):
            try:
                yield from judge(b)
            except Exception as error:
                text = f"{type(error).__name__}: {str(error)[:300]} | {b.text(0)}"
                yield Judged(f"suspension.{number}", CRASHED, float("nan"), text)
            jax.clear_caches()


def _moved(b: Batch) -> list[Points]:
    rng = np.random.default_rng([b.seed, 3])
    return [
        {n: x + SHIFT * b.sizes[:, None] * rng.normal(size=x.shape) for n, x in b.points.items()}
        for _ in range(2)
    ]


def _unit(name: str, b: Batch) -> Any:
    """The size of a column's unit (n,)."""
    if name.endswith("_gradient"):
        return _unit(name.removesuffix("_gradient"), b) / b.sizes
    size, rate = b.sizes, b.numbers["rate"]
    units = {"m": size, "m/rad": size, "rad/m": 1.0 / size, "N": rate * size, "N/m": rate}
    return units.get(suspension.CHARACTERISTICS[name].unit, np.ones(len(size)))


def _characteristics(b: Batch) -> Iterator[Judged]:
    rng = np.random.default_rng([b.seed, 4])
    z = np.sort(rng.uniform(-0.12, 0.12, 2)) * b.corner.tyre_radius
    names = list(suspension.available(b.corner))
    sweep = suspension.kinematics_sweep(b.corner, travel=z.tolist(), observe=names, settle=True)
    found = jax.tree_util.tree_map(np.asarray, mbd.lanes.vmap(sweep.computed)(b.stacked))
    e = Settled(b, b.points, z, slopes=True)
    near = [Settled(b, p, z, slopes=False) for p in _moved(b)]
    ok = found["status"] == 0
    for key in (*names, *(f"{n}_gradient" for n in suspension.GRADIENTS if n in names)):
        name = key.removesuffix("_gradient")
        number = "gradient" if key != name else "Characteristic"
        scales = _unit(key, b)
        for i in range(len(ok)):
            case, text = f"suspension.{number}: {name}", b.text(i, f", {key}")
            if not ok[i]:
                yield Judged(case, FLAGGED, float("nan"), text)
                continue
            if not e.there[i]:
                continue
            if key == name and name != "wheel_rate":
                want = e.values[name][i]
                moved = max(float(np.max(np.abs(x.values[name][i] - want))) for x in near)
                moved *= CLOSED / SHIFT * 10.0
            else:
                of = "wheel_force" if name == "wheel_rate" else name
                want, moved = e.slopes[of][i], 3.0 * float(np.max(e.unsure[of][i]))
            size = max(float(np.max(np.abs(want))), float(scales[i]))
            if moved / size < UNSURE:
                yield compare(
                    case, found[key][i], want, limit=LIMIT + moved / size,
                    scale=float(scales[i]), detail=text,
                )  # fmt: skip


def _compliance(height: float | None, b: Batch) -> Iterator[Judged]:
    """The matrix at the rest of the free wheel, or of one at a height; the rack held."""
    corner = b.corner

    def one(mech: Any) -> Any:
        c = suspension.compliance(mech, corner, travel=height, throw=False)
        at = mbd.point_position(mech, c.q, "upright", "wheel")
        return c.matrix, c.centre, c.spin, c.patch, at, c.rise, c.status

    matrix, centre, spin, patch, at, rise, status = (
        np.asarray(x) for x in mbd.lanes.vmap(one)(b.stacked)
    )
    s, n = b.kind.oracle(b.points, b.numbers), len(b.sizes)
    z = None if height is None else np.full(n, height)
    held = soft.Held(z, np.zeros(n), np.zeros((n, 6)))
    x, there = soft.solved(s, soft.drawn(s, z is not None), held, 80)
    wanted = soft.compliance(s, x, held)
    k = list(s.bodies).index("upright")
    m, turn = x.place[:, k], x.turn[:, k]
    axis = np.einsum("nij,nj->ni", turn, unit(b.points["wheel"] - b.points["inner"]))
    low = oracle.contact(m, axis, corner.tyre_radius)
    near = []
    for p in _moved(b):
        other = b.kind.oracle(p, b.numbers)
        y, _ = soft.solved(other, soft.drawn(other, z is not None), held, 80)
        near.append(soft.compliance(other, y, held))
    for i in range(n):
        text, ok = b.text(i), bool(status[i] == 0)
        if there[i]:  # what the package does not find is flagged
            yield compare(
                "suspension.Compliance.status", status[i], 0, limit=0.0, detail=text, ok=ok
            )
        scale = np.array([1.0 / b.sizes[i]] * 3 + [1.0] * 3) / b.numbers["rate"][i] ** 0.5
        scale = np.outer(scale, scale)
        size = max(1.0, float(np.max(np.abs(wanted[i] / scale))))
        moved = max(float(np.max(np.abs((y[i] - wanted[i]) / scale))) for y in near) / size
        limit = LIMIT + 10.0 * CLOSED / SHIFT * moved
        cases = {
            "matrix": (matrix[i] / scale, wanted[i] / scale, 1.0, limit),
            "centre": (centre[i, 0], m[i], b.sizes[i], LIMIT),
            "spin": (spin[i, 0], axis[i], 1.0, LIMIT),
            "patch": (patch[i, 0], low[i], b.sizes[i], LIMIT),
            "q": (at[i], m[i], b.sizes[i], LIMIT),
            "rise": (rise[i], m[i, 2:] - b.points["wheel"][i, 2:], b.sizes[i], LIMIT),
        }
        for name, (got, want, unit_, most) in cases.items():
            if not ok or there[i]:
                yield compare(
                    f"suspension.Compliance.{name}", got, want, limit=float(most),
                    scale=float(unit_), detail=text, ok=ok,
                )  # fmt: skip
