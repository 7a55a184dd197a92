"""Set-ups, reachable travel and maps of random corners, by NumPy's uprights on links.

A set-up is judged by changing the lengths and points of `wheel_oracle`'s links: the targets are its
own columns at changes that are drawn at random. Reachable travel is where the wheel centre's curve,
followed by its length with the height let go, has no height to gain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from fails_cases import corner_kinds
from fails_cases import wheel_oracle as oracle
from fails_cases.judged import CRASHED, REFUSED, Judged, compare, or_crash
from fails_cases.rigid import H, unit
from jaxmbd import suspension

SHARE = 0.5
PER_CASE = 40
_WHERE = "NumPy's rigid uprights on links"
_END = f"{_WHERE}, followed by the length of their curve to its end"
NUMBERS = {
    "suspension.Setup.changes": f"the targets, by {_WHERE} of changed lengths and points",
    "suspension.Setup.before": _WHERE,
    "suspension.Setup.after": f"{_WHERE} of changed lengths and points",
    "suspension.Setup.jacobian": f"complex steps of {_WHERE}",
    "suspension.Setup.turns": "changes over what was given for one turn",
    "suspension.Setup.per_turn": "what was given",
    "suspension.Setup.targets": "what was asked",
    "suspension.Reach.low": _END,
    "suspension.Reach.high": _END,
    "suspension.Reach.accuracy": _END,
    "suspension.KinematicsMap.axes": "what was asked",
    "suspension.KinematicsMap.columns": _WHERE,
}
LIMIT, TURN = 1e-9, 0.37
ALONG = (0.1, 1.0, 0.2)
COLUMNS = "camber", "toe"
STRIDE, MOST = 0.004, 1500
BADLY = 300.0
"""Condition of an oracle's equations, from which a corner is too near a dead centre."""


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Set-ups of corners with two adjusters, reach and maps of all."""
    rng = np.random.default_rng([seed, 23])
    for name in corner_kinds.KINDS:
        b = corner_kinds.batch(name, max(1, round(size / PER_CASE)), int(rng.integers(2**31)))
        for i in range(len(b.sizes)):
            one = _Corner(b, i)
            for number, cases in {
                "suspension.Setup.after": _setup(one, rng) if one.adjusters else (),
                "suspension.Reach.low": _reach(one),
                "suspension.KinematicsMap.columns": _map(one, rng) if one.slides else (),
            }.items():
                yield from or_crash(number, cases, b.text(i))
        jax.clear_caches()


class _Corner:
    """A sample, with its oracle."""

    def __init__(self, b: corner_kinds.Batch, i: int):
        self.mech, self.roles, self.own, self.size = b.mechs[i], b.corner, b.roles, b.sizes[i]
        self.points = {n: x[i : i + 1] for n, x in b.points.items()}
        self.springs = {n: x[i : i + 1] for n, x in b.springs.items()}
        self.drawn, self.text = b.kind.drawn(self.points, self.springs), b.text(i)
        self.slides = self.roles.slides(self.mech)
        rod = suspension.AdjustableLength("rod", per_turn=TURN * self.size)
        second: Any = None
        if "wishbones" in b.name:
            second = suspension.Shim("upright", "ub2", ALONG)
        elif b.name == "five links":
            second = suspension.AdjustableLength("1")
        self.adjusters = {"rod": rod, "second": second} if second else {}

    def changed(self, x: Any) -> oracle.Drawn:
        """The oracle with the rod and the second adjuster changed by x (2,)."""
        links = list(self.drawn.links)
        links[-1] = links[-1]._replace(length=links[-1].length + x[0])
        if isinstance(self.adjusters["second"], suspension.Shim):
            for k in (0, 1):
                links[k] = links[k]._replace(at=links[k].at + x[1] * unit(np.array([ALONG])))
        else:
            links[0] = links[0]._replace(length=links[0].length + x[1])
        return self.drawn._replace(links=tuple(links))

    def columns(self, x: Any, z: float, slopes: bool = False) -> tuple[Any, float]:
        """Camber and toe (2,), or their derivatives by x (2, 2), and the condition."""
        at, none = np.array([z]), np.zeros(1)
        d = self.changed(x)
        pose, miss, worst = oracle.reached(d, at, none)
        bad = float(worst[0]) if miss[0] < 1e-11 * self.size else np.inf
        if not slopes:
            found = oracle.columns(d, self.own, oracle.state(d, self.own, pose, at, none))
            return np.array([float(found[n][0].real) for n in COLUMNS]), bad
        rows = []
        for e in np.eye(2):
            d = self.changed(x + 1j * H * self.size * e)
            pose_c = oracle.Pose(pose.r + 0j, pose.m + 0j)
            found = oracle.columns(d, self.own, oracle.state(d, self.own, pose_c, at, none))
            rows.append([float(found[n][0].imag) / H for n in COLUMNS])
        return np.transpose(rows), bad


def _setup(c: _Corner, rng: Any) -> Iterator[Judged]:
    z, x = 0.02 * c.size * rng.normal(), 0.01 * c.size * rng.uniform(-1.0, 1.0, 2)
    with np.errstate(all="ignore"):
        (wanted, bad), (first, worse) = c.columns(x, z), c.columns(0.0 * x, z)
        slopes, _ = c.columns(x, z, slopes=True)
    regular = max(bad, worse) < BADLY and np.linalg.cond(slopes) < BADLY
    targets: dict[str, float] = dict(zip(COLUMNS, wanted.tolist(), strict=True))
    try:
        found = suspension.solve_setup(
            c.mech, c.roles, targets=targets, by=c.adjusters, travel=float(z)
        )
    except ValueError as error:
        yield Judged(
            "suspension.Setup.after", CRASHED if regular else REFUSED, np.nan, f"{error} | {c.text}"
        )
        return
    if not regular:
        return
    got = np.array(list(found.changes.values()))
    with np.errstate(all="ignore"):
        (there, bad), (slopes, _) = c.columns(got, z), c.columns(got, z, slopes=True)
    if bad > BADLY:
        return
    after, before = ([x[n] for n in COLUMNS] for x in (found.after, found.before))
    turn = {"rod": TURN * c.size}
    for field, value, oracle_s in (
        ("changes", there, wanted),
        ("after", after, there),
        ("before", before, first),
        ("targets", list(found.targets.values()), wanted),
        ("jacobian", found.jacobian * c.size, slopes),
        ("turns", found.turns["rod"], got[0] / turn["rod"]),
        ("per_turn", found.per_turn["rod"] / c.size, TURN),
    ):
        yield compare(
            f"suspension.Setup.{field}", value, oracle_s, limit=LIMIT, scale=1.0, detail=c.text
        )


def _reach(c: _Corner) -> Iterator[Judged]:
    ends = [_end(c, sign) for sign in (-1.0, 1.0)]
    try:
        found = suspension.reach(c.mech, c.roles)
    except ValueError as error:
        yield Judged("suspension.Reach.low", REFUSED, np.nan, f"{error} | {c.text}")
        return
    limit = found.accuracy / c.size
    for field, got, want in zip(("low", "high"), (found.low, found.high), ends, strict=True):
        if np.isfinite(want):
            for number in (f"Reach.{field}", "Reach.accuracy"):
                yield compare(
                    f"suspension.{number}", got / c.size, want / c.size, limit=limit, scale=1.0,
                    detail=c.text,
                )  # fmt: skip


def _end(c: _Corner, sign: float) -> float:
    """The height of the wheel's centre at the end of its curve; NaN where that is not clear."""
    none = np.zeros(1)
    units = np.array([1.0 / c.size] * 3 + [1.0] * 3)

    def rows(pose: oracle.Pose) -> tuple[Any, Any]:
        miss, every, _ = oracle.equations(c.drawn, pose, none, none)
        return miss[0, :5], every[0, :5] * units

    def step(pose: oracle.Pose, along: Any, ds: float) -> tuple[oracle.Pose, Any, float]:
        change = ds * along
        for k in range(7):
            turn, move = (change * units)[:3], change[3:]
            pose = oracle.Pose(oracle.cayley(turn[None]) @ pose.r, pose.m + move)
            if k < 6:
                miss, a = rows(pose)
                change = np.linalg.solve(np.vstack([a, along]), np.append(-miss, 0.0))
        _, sizes, v = np.linalg.svd(rows(pose)[1])
        t = v[-1] * np.sign(v[-1] @ along)
        return pose, t, float(sizes[0] / sizes[-1])

    pose = oracle.Pose(np.eye(3)[None], c.drawn.centre.copy())
    t = np.linalg.svd(rows(pose)[1])[2][-1]
    t, ds = t * sign * np.sign(t[5]), STRIDE * c.size
    try:
        for _ in range(MOST):
            new, t_new, worst = step(pose, t, ds)
            if not worst < BADLY or not t_new @ t > 0.99:
                return np.nan
            if np.sign(t_new[5]) != sign:
                break
            pose, t = new, t_new
        else:
            return np.nan
        low, high = 0.0, ds
        for _ in range(60):
            middle = 0.5 * (low + high)
            there = np.sign(step(pose, t, middle)[1][5]) == sign
            low, high = (middle, high) if there else (low, middle)
        return float(step(pose, t, low)[0].m[0, 2] - c.drawn.centre[0, 2])
    except np.linalg.LinAlgError:
        return np.nan


def _map(c: _Corner, rng: Any) -> Iterator[Judged]:
    travel = np.sort(0.03 * c.size * rng.normal(size=3))
    steer = 0.02 * c.size * rng.normal(size=2)
    z, rack = (x.ravel() for x in np.meshgrid(travel, steer, indexing="ij"))
    many = {n: np.repeat(x, 6, axis=0) for n, x in c.points.items()}
    springs = {n: np.repeat(x, 6, axis=0) for n, x in c.springs.items()}
    with np.errstate(all="ignore"):
        d = corner_of(c, many, springs)
        pose, miss, worst = oracle.reached(d, z, rack)
        want = oracle.columns(d, c.own, oracle.state(d, c.own, pose, z, rack))
    regular = np.all(miss < 1e-11 * c.size) and np.all(worst < BADLY)
    names = [*COLUMNS, "half_track", "contact"]
    try:
        found = suspension.kinematics_map(
            c.mech, c.roles, travel=travel.tolist(), steer=steer.tolist(), observe=names
        )
    except ValueError as error:
        outcome = CRASHED if regular else REFUSED
        yield Judged("suspension.KinematicsMap.columns", outcome, np.nan, f"{error} | {c.text}")
        return
    asked = np.concatenate([travel, steer])
    axes = np.concatenate(list(found.axes.values()))
    yield compare("suspension.KinematicsMap.axes", axes, asked, limit=0.0, detail=c.text)
    if not regular:
        return
    for name in names:
        scale = 1.0 if name in COLUMNS else c.size
        yield compare(
            "suspension.KinematicsMap.columns", found[name] / scale,
            np.real(want[name]).reshape(found[name].shape) / scale,
            limit=LIMIT, scale=1.0, detail=f"{name}, {c.text}",
        )  # fmt: skip


def corner_of(c: _Corner, points: Any, springs: Any) -> oracle.Drawn:
    """The oracle of several samples of one corner."""
    kind = next(k for n, k in corner_kinds.KINDS.items() if f"corner {n!r}" in c.text)
    return kind.drawn(points, springs)
