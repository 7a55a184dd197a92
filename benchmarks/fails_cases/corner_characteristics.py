"""Characteristics of random suspension corners against `wheel_oracle`.

Corners are assembled at random wheel travels and rack travels. Their positions, both motions and
all characteristics are compared with those of the oracle's equations, derivatives with complex
steps along the oracle's motions, and the wheel rate with the derivative of the wheel's force.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

import jaxmbd as mbd
from fails_cases import corner_kinds
from fails_cases import wheel_oracle as oracle
from fails_cases.judged import FLAGGED, WRONG, Judged, compare, or_crash
from fails_cases.rigid import Rigid, vee
from jaxmbd import suspension
from jaxmbd.observe import Snapshot
from jaxmbd.suspension.motions import wheel_key

SHARE = 8.0
PER_CASE = 72
_WHERE = "rigid upright on distances by Newton's method in maximal coordinates"
_STEP = f"complex steps along the travel of a {_WHERE}"
NUMBERS = (
    {f"suspension.Characteristic: {n}": _WHERE for n in suspension.CHARACTERISTICS}
    | {f"suspension.gradient: {n}": _STEP for n in suspension.GRADIENTS}
    | {
        f"suspension.CornerState.{n}": _WHERE
        for n in (
            "centre", "drawn_centre", "drawn_spin", "held", "kingpin", "lower_arm", "spin",
            "spring", "steer", "strut", "travel", "upper_arm",
        )
    }
    | {
        f"suspension.CornerState.{n}": "rates of closure and of the wheel in NumPy's rigid bodies"
        for n in ("speeds", "steering")
    }
    | {"suspension.Instant.contact": _WHERE, "suspension.Instant.drawn_contact": _WHERE}
)  # fmt: skip
NUMBERS["suspension.Characteristic: wheel_rate"] = f"{_STEP}, of the wheel's force"
CLOSED = 7e-11
"""Error of closure that an assembly may have, over the length."""
SHIFT = 1e-9
LIMIT, UNSURE = 1e-9, 1e-3


def judged(seed: int, size: int) -> Iterator[Judged]:
    """All kinds of corners, one compiled program each."""
    samples = max(2, round(size / PER_CASE / len(corner_kinds.KINDS)))
    for name in corner_kinds.KINDS:
        b = corner_kinds.batch(name, samples, seed)
        yield from or_crash(next(iter(NUMBERS)), judge_batch(b), b.text(0))
        jax.clear_caches()
    name = str(np.random.default_rng([seed, 2]).choice(list(corner_kinds.KINDS)))
    b = corner_kinds.batch(name, max(6, 2 * samples), seed + 1)
    yield from or_crash(next(iter(NUMBERS)), _far(b), b.text(0))
    jax.clear_caches()


def _far(b: corner_kinds.Batch) -> Iterator[Judged]:
    """Sweeps of which many do not reach their end, or have a hardpoint that is not a number.

    A place that the oracle does not reach, with finer steps, must not be reported as ok, and what
    is not ok must be right or NaN.
    """
    travel = np.array([0.0, 0.1, 0.2, 0.3, 0.45]) * float(np.median(b.sizes))
    names = list(suspension.available(b.corner))
    sweep = suspension.kinematics_sweep(b.corner, travel=travel.tolist(), observe=names)

    def lost(path: Any, x: Any) -> Any:
        """The wheel centre of the first sample, and the spring's upper end of the second one."""
        for i, point in enumerate(("wheel", "top")):
            if jax.tree_util.keystr(path) == f".points['{point}']":
                x = np.where(np.arange(len(x))[:, None] == i, np.nan, x)
        return x

    stacked = jax.tree_util.tree_map_with_path(lost, b.stacked)
    found = jax.tree_util.tree_map(np.asarray, mbd.lanes.vmap(sweep.computed)(stacked))
    ok = found["status"] == 0
    for k, place in enumerate(travel):
        e = Expected(b, np.full(len(ok), place), np.zeros(len(ok)), steps=100)
        for name in names:
            got, number = found[name][:, k], f"suspension.Characteristic: {name}"
            given = np.isfinite(got.reshape(len(ok), -1)).all(axis=1)
            for i in range(len(ok)):
                text = b.text(i, f", far, place {k}")
                broken = i == 0 or (i == 1 and (b.name == "strut" or "spring" in name))
                if given[i] and (broken or (ok[i] and not e.reached[i])):
                    yield Judged(number, WRONG, float("inf"), f"{got[i]} for none | {text}")
            may = given & (np.arange(len(ok)) > 1)
            yield from _cases(
                b, may, e, number, got, lambda x, name=name: x.values[name], unit_of(name, b),
                f", far, place {k}",
            )  # fmt: skip


def judge_batch(b: corner_kinds.Batch) -> Iterator[Judged]:
    """The cases of a batch, at one random travel and rack travel for each sample."""
    rng = np.random.default_rng([b.seed, 5])
    n = len(b.sizes)
    z = b.sizes * rng.choice([0.0, 1.0, 1.0, 1.0], n) * rng.uniform(-0.25, 0.25, n)
    rack = b.sizes * b.kind.steer * rng.uniform(-1.0, 1.0, n)
    found = jax.tree_util.tree_map(np.asarray, mbd.lanes.vmap(program(b))(b.stacked, z, rack))
    yield from _judge(b, found, Expected(b, z, rack), z, rack)


def program(b: corner_kinds.Batch) -> Any:
    """All that the package says of a corner at a travel and a rack travel."""
    corner, names = b.corner, suspension.available(b.corner)
    ways = ["travel", "steer"] if corner.steering else ["travel"]

    def numbers(mech: Any, z: Any, rack: Any) -> dict[str, Any]:
        known = {wheel_key(corner): z} | ({"rack": rack} if b.kind.steer else {})
        at_rest = mbd.assemble(mech, known=known, throw=False)
        at = suspension.instant(Snapshot(mech, at_rest.q), corner)
        slopes = {
            (name, way): suspension.Characteristic(corner, name, way).value(
                Snapshot(mech, at_rest.q)
            )
            for way in ways
            for name in suspension.GRADIENTS
            if name in names
        }
        return {
            "ok": at_rest.status == 0,
            "q": at_rest.q,
            "state": at.state,
            "contact": at.contact,
            "drawn_contact": at.drawn_contact,
            "values": {n: suspension.CHARACTERISTICS[n].fn(at) for n in names},
            "slopes": {f"{way} {name}": x for (name, way), x in slopes.items()},
        }

    return numbers


class Expected:
    """What the oracle says of a batch, and how far that moves if the hardpoints do.

    Attributes:
        reached: samples whose position the oracle reaches.
        there: those of them that pass no position in which the corner is nearly locked.
        state, values: positions and motions; columns with wheel rates.
        slopes: derivatives of the columns along "travel" and "steer".
        near: the same thrice of hardpoints that are moved by `SHIFT` of the size.
    """

    def __init__(self, b: corner_kinds.Batch, z: Any, rack: Any, steps: int = oracle.STEPS):
        rng = np.random.default_rng([b.seed, 6])
        self.near: list[Expected] = []
        self._solve(b, b.points, z, rack, steps)
        for _ in range(3):
            other = object.__new__(Expected)
            moved = {
                n: x + SHIFT * b.sizes[:, None] * rng.normal(size=x.shape)
                for n, x in b.points.items()
            }
            other._solve(b, moved, z, rack, steps)
            self.near.append(other)

    def _solve(self, b: Any, points: Any, z: Any, rack: Any, steps: int) -> None:
        d = b.kind.drawn(points, b.springs)
        d = d._replace(spin=b.corner.sign * np.sign(d.spin[:, 1:2]) * d.spin)
        self.drawn = d
        with np.errstate(all="ignore"):
            pose, miss, self.worst = oracle.reached(d, z, rack, steps)
            self.reached = miss < 1e-12 * b.sizes
            self.there = self.reached & (self.worst < 1e6)
            self.state = oracle.state(d, b.roles, pose, z, rack)
            self.values = oracle.columns(d, b.roles, self.state)
            ways = ["travel", "steer"] if d.steered else ["travel"]
            self.slopes = {w: oracle.slopes(d, b.roles, pose, z, rack, w) for w in ways}
        if d.spring is not None:
            self.values["wheel_rate"] = self.slopes["travel"]["wheel_force"]
        direction, _, pitch = oracle.screw(self.state, self.state.travel)
        self.values |= {"instant_axis_direction": direction, "instant_axis_pitch": pitch}


def unit_of(name: str, b: corner_kinds.Batch) -> Any:
    """The size of a characteristic's unit (n,): its values are compared relative to at least it."""
    unit = suspension.CHARACTERISTICS[name].unit
    if unit == "N":
        return b.springs["stiffness"] * b.sizes
    if unit == "N/m":
        return b.springs["stiffness"]
    return {"m": b.sizes, "m/rad": b.sizes, "rad/m": 1.0 / b.sizes}.get(unit, np.ones(len(b.sizes)))


def _judge(b: corner_kinds.Batch, found: Any, e: Expected, z: Any, rack: Any) -> Iterator[Judged]:
    one, size = np.ones(len(b.sizes)), b.sizes

    def cases(number: str, got: Any, pick: Any, scale: Any, what: str = "") -> Iterator[Judged]:
        yield from _cases(b, found["ok"], e, f"suspension.{number}", got, pick, scale, what)

    for name, got in found["values"].items():
        scale = unit_of(name, b)
        yield from cases(f"Characteristic: {name}", got, lambda x, name=name: x.values[name], scale)
    for key, got in found["slopes"].items():
        way, name = key.split(" ")
        yield from cases(
            f"gradient: {name}", got, lambda x, way=way, name=name: x.slopes[way][name],
            unit_of(name, b) / size, f" along {way}",
        )  # fmt: skip
    s = found["state"]
    fields = {
        "centre": (s.centre, lambda x: x.state.centre, size),
        "spin": (s.spin, lambda x: x.state.spin, one),
        "drawn_centre": (s.drawn_centre, lambda x: x.drawn.centre, size),
        "drawn_spin": (s.drawn_spin, lambda x: x.drawn.spin, one),
        "travel": (_turned(s.travel, size), lambda x: _turned(x.state.travel, size), one),
    }
    if s.steer is not None:
        fields["steer"] = (_turned(s.steer, size), lambda x: _turned(x.state.steer, size), one)
        fields["held"] = (s.held, lambda x: x.state.held, one)
    for name in ("kingpin", "strut"):
        if getattr(s, name) is not None:
            pick = lambda x, name=name: np.stack(getattr(x.state, name), 1)  # noqa: E731
            fields[name] = getattr(s, name), pick, size
    for name in ("upper_arm", "lower_arm"):
        if getattr(s, name) is not None:
            pick = lambda x, name=name: np.stack(x.state.arms[name], 1)  # noqa: E731
            fields[name] = getattr(s, name), pick, size
    for name, (got, pick, scale) in fields.items():
        yield from cases(f"CornerState.{name}", got, pick, scale)
    for i, (got, scale) in enumerate(
        zip(s.spring, (size, b.springs["stiffness"] * size, one, one), strict=True)
    ):
        if got is not None:
            yield from cases(
                "CornerState.spring", got, lambda x, i=i: x.state.spring[i], scale, f", part {i}"
            )
    yield from cases("Instant.contact", found["contact"], lambda x: x.state.contact, size)
    radius = b.corner.tyre_radius
    yield from cases(
        "Instant.drawn_contact", found["drawn_contact"],
        lambda x: oracle.contact(x.drawn.centre, x.drawn.spin, radius), size,
    )  # fmt: skip
    yield from _speeds(b, found, e)


def _turned(twist: Any, size: Any) -> Any:
    """A twist with its turning made a velocity."""
    return np.concatenate([twist[:, :3] * size[:, None], twist[:, 3:]], -1)


def _cases(
    b: corner_kinds.Batch, ok: Any, e: Expected, number: str, got: Any, pick: Any, scale: Any,
    where: str,
) -> Iterator[Judged]:  # fmt: skip
    """The cases of a number; those that rounding of the hardpoints decides are left out.

    Where the oracle does not reach the position, there is nothing to compare.
    """
    with np.errstate(all="ignore"):
        want = np.real(pick(e))
        others = [np.real(pick(x)) for x in e.near]
    for i in range(len(ok)):
        text = b.text(i, where)
        if not ok[i]:
            yield Judged(number, FLAGGED, float("nan"), text)
            continue
        if not e.there[i]:
            continue
        size = max(float(np.max(np.abs(want[i]))), float(scale[i]))
        moved = max(float(np.max(np.abs(x[i] - want[i]))) for x in others) / size
        if not moved < UNSURE:
            continue
        limit = LIMIT + 2.0 * CLOSED / SHIFT * moved
        yield compare(number, got[i], want[i], limit=limit, scale=float(scale[i]), detail=text)


def _speeds(b: corner_kinds.Batch, found: Any, e: Expected) -> Iterator[Judged]:
    """Speeds of both motions, by the twists and the rates of closure that they give."""
    ok = found["ok"]
    top = mbd.topology(b.mechs[0])
    rigid = Rigid([mbd.io.to_dict(m) for m in b.mechs], top)
    q = np.where(ok[:, None], found["q"], np.asarray(mbd.neutral(b.mechs[0])))
    for name, twist in (("speeds", "travel"), ("steering", "steer")):
        speeds = getattr(found["state"], name)
        if speeds is None or (name == "steering" and not b.kind.steer):
            continue  # a track rod's length is not among the mechanism's own motions
        speeds = np.where(np.isfinite(speeds), speeds, 0.0)
        placed = rigid.place(q, speeds)
        turn, _ = placed["upright"]
        spin = vee(turn.d @ np.swapaxes(turn.v, -1, -2))
        at = rigid.point(placed, "upright", rigid.points["wheel"])
        slip = rigid.conditions(q, speeds).d
        slip = np.max(np.abs(slip), axis=1, initial=0.0)
        got = np.concatenate([_turned(np.concatenate([spin, at.d], -1), b.sizes), slip[:, None]], 1)

        def pick(x: Expected, twist: str = twist) -> Any:
            moves = _turned(getattr(x.state, twist), b.sizes)
            return np.concatenate([moves, 0.0 * moves[:, :1]], 1)

        yield from _cases(
            b, ok, e, f"suspension.CornerState.{name}", got, pick, np.ones(len(ok)), ""
        )
