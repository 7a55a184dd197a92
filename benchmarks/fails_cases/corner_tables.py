"""Tables of random corners: kinematics over travel and rack, sensitivities, steering of axles.

The oracle is that of `corner_characteristics`, place by place. Derivatives by hardpoints are
complex steps of the hardpoints; those of derivatives along the travel are differences of fourth
order of the oracle's derivatives. Steering follows from both wheels' angles and contacts by the
geometry of the normals: the car turns about where a wheel's normal meets the other axle's line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from fails_cases import corner_kinds
from fails_cases import wheel_oracle as oracle
from fails_cases.corner_characteristics import CLOSED, LIMIT, SHIFT, UNSURE, Expected
from fails_cases.judged import CRASHED, REFUSED, Judged, compare, or_crash
from fails_cases.rigid import H
from jaxmbd import suspension
from jaxmbd.suspension.steering_geometry import ABOUT

PER_CASE = 45
SHARE = 8.0
_COLUMNS = "rigid upright on distances by Newton's method, place by place; complex steps"
_BY_POINTS = "complex steps of the hardpoints of a rigid upright on distances"
_TURN = "normals of both wheels of NumPy's upright, and where they meet the other axle's line"
NUMBERS = {
    "suspension.Kinematics.columns": _COLUMNS,
    "suspension.Kinematics.x": "what was asked",
    "suspension.Sensitivities.values": _COLUMNS,
    "suspension.Sensitivities.derivatives": f"{_BY_POINTS}; differences of fourth order",
    "suspension.Sensitivities.nominal": "coordinates of the hardpoints",
    "suspension.Sensitivities.travel": "what was asked",
    "suspension.Steering.columns": _TURN,
    "suspension.Steering.x": "what was asked",
    "suspension.steering_curves": _TURN,
    "suspension.contact_point": "the lowest of a circle's points, by the angle around it",
    "suspension.contact_point, float32": "the same, in double precision",
}
KINEMATICS, SENSITIVITY, STEERING = "Kinematics.columns", "Sensitivities.derivatives", "steering"
STEP = 1e-3
"""Of differences by hardpoints, over the size."""


def judged(seed: int, size: int) -> Iterator[Judged]:
    """One kind of corner for its sensitivities, one axle, tables of all kinds."""
    yield from _contacts(np.random.default_rng([seed, 1]), max(4, size // 40))
    count = max(2, round(size / PER_CASE / 8))
    names = list(corner_kinds.KINDS)
    rng = np.random.default_rng([seed, 2])
    tasks: list[tuple[str, str, Any]] = [(KINEMATICS, n, _tables) for n in names]
    tasks.append((SENSITIVITY, str(rng.choice(names)), _sensitivities))
    racks = [n for n in names if corner_kinds.KINDS[n].steer]
    tasks.append((STEERING, str(rng.choice(racks)), _symmetric))
    tasks.append((STEERING, names[0], _axle))
    for what, name, judge in tasks:
        b = corner_kinds.batch(name, count, seed)
        number = "steering_curves" if what == STEERING else what
        yield from or_crash(f"suspension.{number}", judge(b), b.text(0))
        jax.clear_caches()


class _Places:
    """The oracle at places (k,) of a table, of all samples."""

    def __init__(self, b: corner_kinds.Batch, travel: Any, steer: Any):
        one = np.ones(len(b.sizes))
        self.at = [Expected(b, z * one, r * one) for z, r in np.broadcast(travel, steer)]

    def there(self, i: int) -> bool:
        return all(bool(e.there[i]) for e in self.at)

    def case(
        self, number: str, got: Any, pick: Callable[[Expected], Any], i: int, scale: float,
        text: str,
    ) -> Iterator[Judged]:  # fmt: skip
        """A column of the table of a sample, of the places that rounding does not decide."""
        scale = float(scale)
        with np.errstate(all="ignore"):
            want = np.array([np.real(pick(e)[i]) for e in self.at])
            others = [np.array([np.real(pick(e.near[k])[i]) for e in self.at]) for k in range(3)]
            axes = tuple(range(1, want.ndim))
            sizes = np.maximum(np.max(np.abs(want), axis=axes), scale)
            moved = np.max([np.max(np.abs(x - want), axis=axes) for x in others], axis=0) / sizes
        sure = moved < UNSURE
        if not sure.any():
            return
        by = sizes[sure].reshape(-1, *[1] * (want.ndim - 1))
        limit = LIMIT + 2.0 * CLOSED / SHIFT * float(np.max(moved[sure]))
        yield compare(
            f"suspension.{number}", np.asarray(got)[sure] / by, want[sure] / by,
            limit=limit, scale=1.0, detail=text,
        )  # fmt: skip


def _unit(name: str, b: corner_kinds.Batch, i: int) -> float:
    """The size of a column's unit."""
    if name.endswith("_gradient"):
        return _unit(name.removesuffix("_gradient"), b, i) / b.sizes[i]
    size, rate = b.sizes[i], b.springs["stiffness"][i]
    units = {"m": size, "m/rad": size, "rad/m": 1.0 / size, "N": rate * size, "N/m": rate}
    return float(units.get(suspension.CHARACTERISTICS[name].unit, 1.0))


def _tables(b: corner_kinds.Batch) -> Iterator[Judged]:
    """`kinematics` over the travel, or over the rack, of each sample."""
    rng = np.random.default_rng([b.seed, 7])
    reach = 0.06 * b.corner.tyre_radius
    travel: Any = np.sort(rng.uniform(-2.0, 2.0, 4)) * reach
    steer: Any = 0.0
    if b.kind.steer:
        steer = float(rng.uniform(-1.0, 1.0)) * reach
        if rng.random() < 0.5:
            travel, steer = float(travel[0]), steer * np.array([0.0, 0.5, 1.0])
    along = "travel" if np.ndim(travel) else "steer"
    places = _Places(b, travel, steer)
    for i, mech in enumerate(b.mechs):
        text = b.text(i, f", along {along}")
        try:
            table = suspension.kinematics(mech, b.corner, travel=travel, steer=steer)
        except ValueError as error:
            if places.there(i):
                yield Judged("suspension.Kinematics.columns", CRASHED, np.nan, f"{error} | {text}")
            else:
                yield Judged("suspension.Kinematics.columns", REFUSED, np.nan, text)
            continue
        asked = travel if along == "travel" else steer
        yield compare("suspension.Kinematics.x", table.x, asked, limit=0.0, detail=text)
        if not places.there(i):
            continue
        for name, got in table.columns.items():
            plain = name.removesuffix("_gradient")

            def pick(e: Expected, name: str = name, plain: str = plain) -> Any:
                return e.values[name] if name == plain else e.slopes[along][plain]

            yield from places.case(
                "Kinematics.columns", got, pick, i, _unit(name, b, i), f"{name}, {text}"
            )


def _sensitivities(b: corner_kinds.Batch) -> Iterator[Judged]:
    """Characteristics and their derivatives along the travel, by all hardpoints."""
    rng = np.random.default_rng([b.seed, 8])
    reach = 0.06 * b.corner.tyre_radius
    travel = reach * np.array([rng.uniform(-2.0, 0.0), rng.uniform(0.0, 2.0)])
    steer = reach * float(rng.uniform(-1.0, 1.0)) if b.kind.steer else 0.0
    places = _Places(b, travel, steer)
    for i, mech in enumerate(b.mechs[:3]):
        text = b.text(i)
        try:
            found = suspension.hardpoint_sensitivities(
                mech, b.corner, travel=travel.tolist(), steer=steer
            )
        except ValueError as error:
            outcome = CRASHED if places.there(i) else REFUSED
            yield Judged("suspension.Sensitivities.derivatives", outcome, np.nan, f"{error} {text}")
            continue
        yield compare("suspension.Sensitivities.travel", found.travel, travel, limit=0, detail=text)
        parts = [path.split("/") for path in found.variables]
        nominal = [b.points[n][i]["xyz".index(x)] for _, n, x in parts]
        yield compare(
            "suspension.Sensitivities.nominal", found.nominal, nominal, limit=0.0, detail=text
        )
        if not places.there(i):
            continue
        for k in range(len(travel)):
            want, unsure = _by_points(b, i, parts, travel[k], steer, found.outputs)
            for j, name in enumerate(found.outputs):
                unit = _unit(name, b, i)
                case = f"{name}, place {k}, {text}"
                plain = name.removesuffix("_gradient")
                e = places.at[k]
                value = e.values[name] if name == plain else e.slopes["travel"][plain]
                yield compare(
                    "suspension.Sensitivities.values", found.values[k, j], value[i],
                    limit=1e-8, scale=unit, detail=case,
                )  # fmt: skip
                size = max(float(np.max(np.abs(want[name]))), unit / b.sizes[i])
                moved = unsure[name] / size
                if moved < UNSURE:
                    yield compare(
                        "suspension.Sensitivities.derivatives", found.derivatives[k, j],
                        want[name], limit=1e-8 + moved, scale=size, detail=case,
                    )  # fmt: skip


def _by_points(
    b: corner_kinds.Batch, i: int, parts: Any, z: float, rack: float, names: Any
) -> tuple[dict[str, Any], dict[str, float]]:
    """Derivatives of columns by coordinates of points, and how far they may be off."""
    n, rng = len(parts), np.random.default_rng(0)
    base = {name: np.tile(x[i], (n, 1)) for name, x in b.points.items()}
    near = {m: x + SHIFT * b.sizes[i] * rng.normal(size=3) for m, x in base.items()}
    way = {name: np.zeros((n, 3)) for name in base}
    for k, (_, name, axis) in enumerate(parts):
        way[name][k, "xyz".index(axis)] = 1.0
    springs = {name: np.full(n, x[i]) for name, x in b.springs.items()}
    at, still = np.full(n, z), np.full(n, rack)

    def corner(points: Any) -> oracle.Drawn:
        d = b.kind.drawn(points, springs)
        return d._replace(spin=b.corner.sign * np.sign(d.spin[:, 1:2].real) * d.spin)

    def steps(points: Any) -> dict[str, Any]:
        pose, _, _ = oracle.reached(corner(points), at, still)
        moved = {m: x + 1j * H * way[m] for m, x in points.items()}
        now = oracle.Pose(pose.r + 0j, pose.m + 0j)
        d = corner(moved)
        s = oracle.state(d, b.roles, now, at + 0j, still + 0j)
        return {m: x.imag / H for m, x in oracle.columns(d, b.roles, s).items()}

    def slope(h: float) -> dict[str, Any]:
        moved = {m: x + h * b.sizes[i] * way[m] for m, x in base.items()}
        d = corner(moved)
        pose, _, _ = oracle.reached(d, at, still)
        return oracle.slopes(d, b.roles, pose, at, still, "travel")

    first, other = steps(base), steps(near)
    far = {h: slope(h) for h in STEP * np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])}
    want, unsure = {}, {}
    for name in names:
        plain = name.removesuffix("_gradient")
        if plain == name:
            want[name] = first[name]
            unsure[name] = float(np.max(np.abs(first[name] - other[name]))) * CLOSED / SHIFT
            continue
        m4, m2, m1, p1, p2, p4 = (x[plain] for x in far.values())
        size = STEP * b.sizes[i]
        want[name] = (8.0 * (p1 - m1) - (p2 - m2)) / (12.0 * size)
        wide = (8.0 * (p2 - m2) - (p4 - m4)) / (24.0 * size)
        unsure[name] = float(np.max(np.abs(want[name] - wide)))
    return want, unsure


# Steering.


def _turns(b: Any, left: Any, right: Any, drawn: Any, name: str) -> Any:
    """A column of `Steering`, from (angle, contact) of both wheels at one place.

    A wheel's normal is the horizontal line through its contact at right angles to its heading. The
    car turns about where it meets the other axle's line ``x = line``.
    """
    (a, p), (c, q) = left, right
    track, first = abs(drawn[0][1] - drawn[1][1]), drawn[0][0]
    ahead = 1.0 if b.corner.axle == "front" else -1.0
    line = first - ahead * b.corner.wheelbase
    to_left = ahead * (a + c) > 0.0
    way = ahead if to_left else -ahead
    inner, outer = (a, c) if to_left else (c, a)
    at_in, at_out = (p, q) if to_left else (q, p)
    ideal = way * inner
    if ideal != 0.0:  # where the cotangents of both differ by the track over the wheelbase
        below = np.pi * (ideal < 0.0)
        ideal = np.arctan2(1.0, 1.0 / np.tan(ideal) + track / b.corner.wheelbase) - below

    def centre(angle: Any, at: Any) -> Any:
        """Where the normal ``(−sin, cos)`` through the contact meets the line."""
        reach = (line - at[0]) / -np.sin(angle)
        return np.array([line, at[1] + reach * np.cos(angle)])

    straight = abs(a + c) < 2e-9 or min(way * inner, way * outer) < 1e-9

    def diameter(of: Any) -> float:
        return np.inf if straight else 2.0 * float(np.linalg.norm(of - at_out[:2]))

    columns = {
        "left": lambda: a,
        "right": lambda: c,
        "inner": lambda: way * inner,
        "outer": lambda: way * outer,
        "ackermann_outer": lambda: ideal,
        "ackermann_error": lambda: way * outer - ideal,
        "ackermann_share": lambda: (
            np.nan if straight else way * (inner - outer) / (way * inner - ideal)
        ),
        "turning_circle": lambda: diameter(centre(outer, at_out)),
        "turning_circle_inner": lambda: diameter(centre(inner, at_in)),
        "track": lambda: abs(p[1] - q[1]),
    }
    return columns[name]()


def _wheel(e: Expected, i: int) -> Any:
    return e.values["steer_angle"][i], e.values["contact"][i]


def _steering_cases(
    b: corner_kinds.Batch, found: Any, sides: Any, i: int, steer: Any, text: str
) -> Iterator[Judged]:
    """Columns of a table; `sides` gives left and right of an oracle of a place."""
    number = "suspension.Steering.columns" if hasattr(found, "x") else "suspension.steering_curves"
    if hasattr(found, "x"):
        yield compare("suspension.Steering.x", found.x, steer, limit=0.0, detail=text)
    for name in ABOUT:
        length = name in ("turning_circle", "turning_circle_inner", "track")
        for k in range(len(steer)):
            with np.errstate(all="ignore"):
                first, *others = sides(k)
                left, right, drawn = first
                want = _turns(b, left, right, drawn, name)
                near = [_turns(b, x[0], x[1], x[2], name) for x in others]
            scale = float(b.sizes[i]) if length else 1.0
            got = float(np.asarray(found[name])[k])
            case = f"{name}, place {k}, {text}"
            if np.isinf(want):
                yield compare(number, np.isinf(got), True, limit=0.0, detail=case)
                continue
            size = max(abs(want), scale) if want == want else scale
            moved = max(abs(x - want) for x in near) / size if want == want else 0.0
            if abs(left[0] + right[0]) < 1e-4 and name not in ("left", "right", "track"):
                continue  # nearly straight ahead
            if moved < UNSURE:
                limit = LIMIT + 2.0 * CLOSED / SHIFT * moved
                yield compare(number, got, want, limit=limit, scale=scale, detail=case)


def _racks(b: corner_kinds.Batch) -> tuple[Any, float]:
    rng = np.random.default_rng([b.seed, 9])
    reach = 0.06 * b.corner.tyre_radius
    return reach * np.array([0.0, *rng.uniform(-1.5, 1.5, 3)]), reach * float(rng.uniform(-1, 1))


def _symmetric(b: corner_kinds.Batch) -> Iterator[Judged]:
    """`steering` and `steering_curves` of one corner, whose other wheel is the mirror image."""
    steer, travel = _racks(b)
    here, mirrored = _Places(b, travel, steer), _Places(b, travel, -steer)
    flip = np.array([1.0, -1.0, 1.0])

    def both(e: Expected, m: Expected, i: int) -> Any:
        (angle, at), (other, there) = _wheel(e, i), _wheel(m, i)
        own, mirror = (angle, at), (-other, flip * there)
        first = oracle.contact(e.drawn.centre, e.drawn.spin, b.corner.tyre_radius)[i]
        left, right = (own, mirror) if b.corner.side == "left" else (mirror, own)
        return left, right, (first, flip * first)

    for i, mech in enumerate(b.mechs):
        if not (here.there(i) and mirrored.there(i)):
            continue

        def sides(k: int, i: int = i) -> Any:
            e, m = here.at[k], mirrored.at[k]
            yield both(e, m, i)
            yield from (both(x, y, i) for x, y in zip(e.near, m.near, strict=True))

        found = suspension.steering(mech, b.corner, steer=steer.tolist(), travel=travel)
        yield from _steering_cases(b, found, sides, i, steer, b.text(i))
        curves = suspension.steering_curves(mech, b.corner, steer=steer.tolist(), travel=travel)
        yield from _steering_cases(b, curves, sides, i, steer, b.text(i))


def _axle(b: corner_kinds.Batch) -> Iterator[Judged]:
    """`steering` of a whole axle, whose two wheels hang on one rack that is not square to it."""
    steer, travel = _racks(b)
    flip = np.array([1.0, -1.0, 1.0])
    other = b._replace(
        points={n: flip * x for n, x in b.points.items()},
        corner=b.corner.__class__(**{**b.corner.__dict__, "side": "right"}),
    )
    left, right = _Places(b, travel, steer), _Places(other, travel, steer)

    def both(e: Expected, m: Expected, i: int) -> Any:
        first = [oracle.contact(x.drawn.centre, x.drawn.spin, b.corner.tyre_radius) for x in (e, m)]
        return _wheel(e, i), _wheel(m, i), (first[0][i], first[1][i])

    for i, mech in enumerate(b.mechs):
        if not (left.there(i) and right.there(i)):
            continue

        def sides(k: int, i: int = i) -> Any:
            e, m = left.at[k], right.at[k]
            yield both(e, m, i)
            yield from (both(x, y, i) for x, y in zip(e.near, m.near, strict=True))

        car = suspension.axle(mech, shared=["rack"])
        roles = suspension.axle_corners(car, b.corner)
        found = suspension.steering(car, *roles, steer=steer.tolist(), travel=travel)
        yield from _steering_cases(b, found, sides, i, steer, b.text(i, ", axle"))


def _contacts(rng: Any, count: int) -> Iterator[Judged]:
    """The lowest of a circle's points: ``z`` of ``a cos φ + b sin φ`` is least at one angle."""
    for k in range(count):
        radius, spin = float(10.0 ** rng.uniform(-6, 2)), rng.normal(size=3)
        lies = k % 4 == 3
        spin = np.array([0.0, 0.0, 1.0]) if lies else spin / np.linalg.norm(spin)
        centre = 10.0 ** rng.uniform(-6, 2) * rng.normal(size=3)
        a, b = oracle.across(spin)
        phi = np.arctan2(b[2], a[2]) + np.pi
        want = centre + radius * (a * np.cos(phi) + b * np.sin(phi))
        want = np.full(3, np.nan) if lies else want
        size = radius + float(np.max(np.abs(centre)))
        text = f"contact {k}, radius {radius:.3g}, axis {spin}"
        found = suspension.contact_point(centre, spin, radius)
        yield compare("suspension.contact_point", found, want, limit=1e-13, scale=size, detail=text)
        flat = max(float(np.hypot(spin[0], spin[1])), 1e-6)
        single = [np.asarray(x, np.float32) for x in (centre, spin, radius)]
        found = suspension.contact_point(*single)
        yield compare(
            "suspension.contact_point, float32", found, want,
            limit=1e-6 / flat, scale=size, detail=text,
        )  # fmt: skip
