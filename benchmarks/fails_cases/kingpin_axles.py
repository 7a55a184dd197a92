"""Steering of axles with upright kingpins, against circles: parallel, at limits, straight ahead.

A wheel's arm ``a`` turns by δ about a vertical kingpin, and a rod of length l joins its end to a
rack that moves by s along y. With D from the rack's end of the rod to the kingpin, C follows from

    l² = |D|² + |a|² + 2 D · R(δ) a    and    δ = ± arccos(C / |D| |a|) + const.

Where that has no solution the wheel is past its limit, and the table must be refused. Wheels of
which one is the other, shifted, are parallel at each place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

import jaxmbd as mbd
from fails_cases.corner_characteristics import CLOSED, LIMIT, SHIFT, UNSURE
from fails_cases.corner_tables import _turns
from fails_cases.judged import REFUSED, WRONG, Judged, compare, or_crash
from fails_cases.rigid import unit
from jaxmbd import suspension
from jaxmbd.suspension.steering_geometry import ABOUT

PER_CASE = 100
SHARE = 1.0
_WHERE = "circles about upright kingpins in closed form"
COLUMNS, PAST = "suspension.Steering.columns, at limits", "suspension.Steering.columns, past limits"
NUMBERS = {COLUMNS: _WHERE, PAST: _WHERE}
KINDS = ("any", "parallel", "shifted toe")
RADIUS = 0.33


@dataclass(frozen=True)
class Wheel:
    """A wheel as drawn: kingpin, ends of the rod, wheel centre, axis outwards."""

    sign: float
    kingpin: Any
    inner: Any
    tip: Any
    centre: Any
    spin: Any

    def angle(self, s: float) -> float:
        """Of the wheel at a travel of the rack [rad]; NaN past its limit."""
        arm, drawn = (self.tip - self.kingpin)[:2], (self.kingpin - self.inner)[:2]
        rod = self.tip - self.inner
        d = drawn - [0.0, s]
        size = np.hypot(*d) * np.hypot(*arm)
        share = 0.5 * (rod[:2] @ rod[:2] - d @ d - arm @ arm) / size
        heading = np.arctan2(*arm[::-1]) - np.arctan2(*drawn[::-1])
        branch = np.sign(np.sin(heading))
        if not abs(share) < 1.0:
            return np.nan
        found = branch * np.arccos(share) - np.arctan2(*arm[::-1]) + np.arctan2(*d[::-1])
        return float(found - 2.0 * np.pi * np.round(found / (2.0 * np.pi)))

    def limit(self, way: float) -> float:
        """The first travel of the rack at which the rod and the arm are in line."""
        step = 1e-3 * way
        inside = 0.0
        while not np.isnan(self.angle(inside + step)):
            inside += step
        for _ in range(50):
            step *= 0.5
            inside += 0.0 if np.isnan(self.angle(inside + step)) else step
        return inside

    def at(self, s: float) -> tuple[float, Any]:
        """Steer angle and contact at a travel of the rack."""
        angle = self.angle(s)
        cos, sin = np.cos(angle), np.sin(angle)
        turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        return self.placed(self.kingpin + turn @ (self.centre - self.kingpin), turn @ self.spin)

    def placed(self, centre: Any, spin: Any) -> tuple[float, Any]:
        """Steer angle and contact of a wheel that stands somewhere."""
        up = np.array([0.0, 0.0, 1.0])
        contact = centre - RADIUS * unit(up - spin[2] * spin)
        return float(np.arctan2(-self.sign * spin[0], self.sign * spin[1])), contact


def _axle(kind: str, rng: Any) -> dict[str, Wheel]:
    def noise() -> Any:
        return 0.01 * rng.normal(size=3)

    kingpin = np.array([0.0, 0.65, 0.3]) + noise()
    ahead = float(rng.choice([-1.0, 1.0]))  # the arm is in front of the wheel or behind it
    tip = kingpin + [0.12 * ahead, -0.03, 0.0] + noise()
    inner = tip + [0.02, -float(rng.uniform(0.2, 0.35)), 0.02] + noise()
    centre = kingpin + [0.0, 0.1, 0.03] + noise()
    toe = 0.02 * rng.normal() * (kind == "shifted toe")
    spin = unit(np.array([toe, 1.0, 0.03 * rng.normal()]))
    left = Wheel(1.0, kingpin, inner, tip, centre, spin)
    flip = np.array([1.0, -1.0, 1.0])
    if kind == "any":
        points = [flip * x + 0.5 * noise() for x in (kingpin, inner, tip, centre)]
        return {"left": left, "right": Wheel(-1.0, *points, flip * spin)}
    shift = np.array([0.0, -1.3, 0.0])
    points = [x + shift for x in (kingpin, inner, tip, centre)]
    return {"left": left, "right": Wheel(-1.0, *points, flip * spin)}


def _mechanism(wheels: dict[str, Wheel]) -> mbd.Mechanism:
    points, bodies = {}, {"rack": mbd.Body(1.0, (0.0, 0.0, 0.3))}
    joints: dict[str, Any] = {
        "rack": mbd.Prismatic("ground", "rack", (0.0, 0.0, 0.3), (0.0, 1.0, 0.0))
    }
    for side, w in wheels.items():
        body = f"{side}_upright"
        points |= {f"{side}_{n}": getattr(w, n) for n in ("kingpin", "inner", "tip", "centre")}
        points[f"{side}_hub"] = w.centre - 0.1 * w.spin
        bodies[body] = mbd.Body(1.0, f"{side}_centre")
        joints[f"{side}_kingpin"] = mbd.Cylindrical("ground", body, f"{side}_kingpin", (0, 0, 1))
        joints[f"{side}_rod"] = mbd.Rod("rack", body, f"{side}_inner", f"{side}_tip")
    return mbd.Mechanism(bodies, joints, points=points)


def _roles(side: str, axle: str, wheelbase: float) -> suspension.Corner:
    return suspension.Corner(
        f"{side}_upright", f"{side}_centre", RADIUS, side=side, steering="rack", axle=axle,
        spindle=(f"{side}_hub", f"{side}_centre"), wheelbase=wheelbase,
    )  # fmt: skip


def judged(seed: int, size: int) -> Iterator[Judged]:
    """All kinds of axles, front and rear."""
    rng = np.random.default_rng([seed, 43])
    for k in range(max(len(KINDS), round(size / PER_CASE * len(KINDS)))):
        kind = KINDS[k % len(KINDS)]
        yield from or_crash(COLUMNS, _cases(kind, rng), f"{kind}, seed {seed}")
    jax.clear_caches()


def _cases(kind: str, rng: Any) -> Iterator[Judged]:
    wheels, axle = _axle(kind, rng), str(rng.choice(["front", "rear"]))
    corners = [_roles(s, axle, 2.7) for s in wheels]
    mech, way = _mechanism(wheels), float(rng.choice([-1.0, 1.0]))
    limit = way * min(abs(w.limit(way)) for w in wheels.values())
    close = 1.0 - 10.0 ** rng.uniform(-4.0, -2.0)
    steer = limit * np.array([0.0, *np.sort(rng.uniform(0.0, 0.9, 3)), close])
    text = f"{kind}, {axle}, limit {limit:.4g}"
    table = suspension.steering(mech, *corners, steer=steer.tolist())
    near = [wheels, *(_shaken(wheels, rng) for _ in range(3))]
    fake = SimpleNamespace(corner=corners[0])
    for k, s in enumerate(steer):
        for name in ABOUT:
            with np.errstate(all="ignore"):
                want, *others = (_value(fake, x, float(s), name) for x in near)
            yield from _compared(float(table[name][k]), want, others, f"{name}, {s:.6g}, {text}")
    try:
        found = suspension.steering(mech, *corners, steer=[0.0, 1.02 * limit])
        yield Judged(PAST, WRONG, np.inf, f"{found['left']} past the limit | {text}")
    except ValueError as error:
        yield Judged(PAST, REFUSED, np.nan, f"{error} | {text}")


def _value(fake: Any, wheels: dict[str, Wheel], s: float, name: str) -> float:
    left, right = (w.at(s) for w in wheels.values())
    drawn = [w.placed(w.centre, w.spin)[1] for w in wheels.values()]
    return float(_turns(fake, left, right, drawn, name))


def _shaken(wheels: dict[str, Wheel], rng: Any) -> dict[str, Wheel]:
    def moved(x: Any) -> Any:
        return x + SHIFT * rng.normal(size=3)

    return {
        n: Wheel(w.sign, *map(moved, (w.kingpin, w.inner, w.tip, w.centre)), w.spin)
        for n, w in wheels.items()
    }


def _compared(got: float, want: float, others: Any, text: str) -> Iterator[Judged]:
    """A column that rounding of the hardpoints does not decide."""
    if np.isinf(want):
        yield compare(COLUMNS, np.isinf(got), True, limit=0.0, detail=text)
        return
    size = max(abs(want), 1.0) if want == want else 1.0
    moved = max(abs(x - want) for x in others) / size if want == want else 0.0
    if moved < UNSURE:
        limit = LIMIT + 2.0 * CLOSED / SHIFT * moved
        yield compare(COLUMNS, got / size, want / size, limit=limit, scale=1.0, detail=text)
