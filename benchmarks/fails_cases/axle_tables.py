"""Tables of random axles on a rig: both wheels on pads of a road that heaves and rolls.

The oracle is the upright of `wheel_oracle` for each wheel. Its height is solved by Newton's method
so that the lowest point of its circle, along the road's normal n, lies on its pad:

    g = n · (c − m) − p − ĝ = 0,

with the middle m of the road, the pad's rise p, and ĝ what it is as drawn. A wheel moves in its own
travel motion only; along n its contact c then moves as the upright's point there, of velocity u_T.
So the rates of a wheel's height are ``1 / (n · u_T)`` by its pad and by the roll
``−n' · (c − m) / (n · u_T)``. As the rack moves, it takes back what the steering motion
lifts. Loads and the rack's effort are those of virtual work. The car turns about where a wheel's
normal meets the other axle's line. Derivatives along events are complex steps. The uprights alone
have weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxmbd as mbd
from fails_cases import corner_kinds
from fails_cases import wheel_oracle as oracle
from fails_cases.corner_characteristics import CLOSED, LIMIT, SHIFT, UNSURE
from fails_cases.judged import CRASHED, REFUSED, Judged, compare, or_crash
from fails_cases.rigid import H, angle, unit
from jaxmbd import suspension

SHARE = 8.0
PER_CASE = 90
_WHERE = "NumPy's rigid uprights whose lowest points lie on a road's pads, virtual work"
_STEP = f"complex steps of {_WHERE}"
NUMBERS = {f"suspension.AxleCharacteristic: {n}": _WHERE for n in suspension.AXLE_CHARACTERISTICS}
NUMBERS |= {f"{n}, along an event": _STEP for n in NUMBERS}
NUMBERS["suspension.Kinematics.x"] = "what was asked"
MOVES = {
    "heave": {"heave": 1.0},
    "roll": {"roll": 1.0},
    "opposite": {"left": 1.0, "right": -1.0},
    "single": {"right": 1.0},
    "mixed": {"heave": 0.6, "roll": -0.5, "right": 0.4},
    "steer": {"steer": 1.0},
    "steered in roll": {"roll": 0.7, "steer": 0.6},
}
"""Events by what they move."""
LOADS = "lateral", "braking", "driving", "aligning"
FORCE = 60.0
FLIP = np.array([1.0, -1.0, 1.0])
PLACES, STEPS, ROUNDS = 4, 12, 4
SIDES = {"left": 1.0, "right": -1.0}


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Each kind of corner on one event, and one kind under loads."""
    rng = np.random.default_rng([seed, 21])
    samples = max(1, round(size / PER_CASE / 6))
    names = list(corner_kinds.KINDS)
    for name, loaded in [(n, False) for n in names] + [(str(rng.choice(names)), True)]:
        b = corner_kinds.batch(name, samples, int(rng.integers(2**31)))
        fits = [n for n, x in MOVES.items() if b.kind.steer or "steer" not in x]
        chosen = "loads" if loaded else str(rng.choice(fits))
        yield from or_crash(next(iter(NUMBERS)), _axles(b, chosen, rng), b.text(0, f", {chosen}"))
        jax.clear_caches()


class Event(NamedTuple):
    """Coordinates of the rig and loads, each (k,), and rates of the event's motion."""

    at: dict[str, Any]
    rates: dict[str, float]
    loads: dict[str, dict[str, Any]]


def _event(b: corner_kinds.Batch, name: str, rng: Any) -> Event:
    reach = 0.06 * b.corner.tyre_radius
    units = dict(heave=reach, roll=0.03, left=0.5 * reach, right=0.5 * reach, steer=0.6 * reach)
    if not b.kind.steer:
        units["steer"] = 0.0
    still = {n: x * rng.uniform(-1.0, 1.0) * rng.integers(0, 2) for n, x in units.items()}
    t, one = np.sort(rng.uniform(-1.0, 1.0, PLACES)), np.ones(PLACES)
    if name == "loads":
        loads = {n: {s: FORCE * t * rng.uniform(-1.0, 1.0) for s in SIDES} for n in LOADS}
        loads["aligning"] = {s: x * b.corner.tyre_radius for s, x in loads["aligning"].items()}
        return Event({n: x * one for n, x in still.items()}, {}, loads)
    rates = {n: x * units[n] for n, x in MOVES[name].items()}
    return Event({n: x + rates.get(n, 0.0) * t for n, x in still.items()}, rates, {})


class Sides(NamedTuple):
    """Points of both sides (n, 3), the weights of the uprights at their points "to" (n,)."""

    points: dict[str, dict[str, Any]]
    weight: Any


def _sides(b: corner_kinds.Batch, rng: Any) -> Sides:
    """Of half of all axles one side differs from the image of the other."""
    other = {n: FLIP * x for n, x in b.points.items()}
    if rng.random() < 0.5:
        off = 0.02 * b.sizes[:, None]
        rigid = {"top", "foot", "ub2"}  # lines of a strut's joints, a ball drawn off closure
        other = {n: x + (n not in rigid) * off * rng.normal(size=x.shape) for n, x in other.items()}
        if "ub2" in other:
            other["ub2"] = other["ub"] + FLIP * (b.points["ub2"] - b.points["ub"])
    second = "right" if b.corner.side == "left" else "left"
    weight = b.springs["stiffness"] * b.sizes * rng.uniform(0.0, 0.5, len(b.sizes))
    return Sides({b.corner.side: b.points, second: other}, weight)


def _car(b: corner_kinds.Batch, sides: Sides, i: int) -> tuple[mbd.Mechanism, Any]:
    """The axle of a sample: massless but for its uprights; and its roles."""
    car = suspension.axle(b.mechs[i], shared=["rack"] if b.kind.steer else [])
    points = {
        f"{side}_{n}": x[i]
        for side, own in sides.points.items()
        for n, x in own.items()
        if f"{side}_{n}" in car.points
    }
    bodies = {n: mbd.Body(0.0, com=sides.points["left"]["to"][i]) for n in car.bodies}
    for side in SIDES:
        bodies[f"{side}_upright"] = mbd.Body(sides.weight[i] / 9.81, sides.points[side]["to"][i])
    car = car.replace(points=points, bodies=bodies, gravity=(0.0, 0.0, -9.81))
    return car, suspension.axle_corners(car, b.corner)


# The oracle.


class Wheel(NamedTuple):
    """A wheel on its pad: its drawing and roles, state, contact, and height."""

    drawn: oracle.Drawn
    roles: oracle.Roles
    to: Any
    s: Any
    c: Any
    z: Any


class Road(NamedTuple):
    """Normal, its derivative by the roll, and the middle, each (n, 3)."""

    n: Any
    dn: Any
    m: Any


def lowest(m: Any, spin: Any, radius: float, n: Any) -> Any:
    """The lowest point of a circle along the direction −n."""
    return m - radius * unit(n - oracle.dot(n, spin)[:, None] * spin)


def _road(middle: Any, at: dict[str, Any]) -> Road:
    sin, cos, o = np.sin(at["roll"]), np.cos(at["roll"]), 0.0 * at["roll"]
    lift = np.stack([o, o, at["heave"]], -1)
    return Road(np.stack([o, sin, cos], -1), np.stack([o, cos, -sin], -1), middle + lift)


class Axle:
    """Both wheels of samples at places, all in one batch of the first axis."""

    def __init__(self, b: corner_kinds.Batch, points: Any, springs: Any, at: dict[str, Any]):
        self.at, self.springs, self.drawn, self.gear = at, springs, {}, b.corner.steering_gear
        for side, sign in SIDES.items():
            own = points[side]
            d = b.kind.drawn(own, springs)
            spin = d.spin if side == b.corner.side or b.name != "five links" else FLIP * d.spin
            d = d._replace(spin=sign * np.sign(spin[:, 1:2]) * spin)
            first = oracle.contact(d.centre, d.spin, b.corner.tyre_radius)
            self.drawn[side] = d, b.roles._replace(sign=sign), own["to"], first
        self.middle = 0.5 * (self.drawn["left"][3] + self.drawn["right"][3]) * [1.0, 0.0, 1.0]
        self.there, self.wheels = np.ones(len(self.middle), bool), {}
        for side, (d, roles, to, first) in self.drawn.items():
            n = len(first)
            pose, z = oracle.Pose(np.tile(np.eye(3), (n, 1, 1)), d.centre.copy()), np.zeros(n)
            units = np.concatenate([np.full((n, 3), 1.0 / roles.radius), np.ones((n, 3))], 1)
            for k in range(1, STEPS + 1):
                now = {name: k / STEPS * x for name, x in at.items()}
                s, c, z, gap = self._stand(side, now, pose, z)
                pose = s.pose
                rows = oracle.equations(d, pose, z, now["steer"])[1] * units[:, None, :]
                self.there &= np.linalg.cond(np.nan_to_num(rows, posinf=0.0, neginf=0.0)) < 1e6
            miss = np.max(np.abs(oracle.equations(d, pose, z, at["steer"])[0]), axis=1)
            self.there &= np.maximum(miss, np.abs(gap)) < 1e-12 * roles.radius * 3.0
            self.wheels[side] = Wheel(d, roles, to, s, c, z)

    def _stand(self, side: str, at: dict[str, Any], pose: Any, z: Any) -> Any:
        d, roles, _, first = self.drawn[side]
        road, drawn = _road(self.middle, at), (first - self.middle)[:, 2]
        for k in range(ROUNDS + 1):
            s = oracle.state(d, roles, pose, z, at["steer"])
            pose, c = s.pose, lowest(s.centre, s.spin, roles.radius, road.n)
            gap = oracle.dot(road.n, c - road.m) - at[side] - drawn
            if k < ROUNDS:
                z = z - gap / oracle.dot(road.n, oracle.velocity(s, s.travel, c))
        return s, c, z, gap

    def slopes(self, rates: dict[str, float], weight: Any) -> dict[str, Any]:
        """Derivatives of all columns along a motion, by a complex step."""
        at = {n: x + 1j * H * rates.get(n, 0.0) for n, x in self.at.items()}
        wheels = {}
        for side, w in self.wheels.items():
            pose = oracle.Pose(w.s.pose.r + 0j, w.s.pose.m + 0j)
            s, c, z, _ = self._stand(side, at, pose, w.z + 0j)
            wheels[side] = w._replace(s=s, c=c, z=z)
        return {n: x.imag / H for n, x in self.columns(weight, {}, at, wheels).items()}

    def columns(self, weight: Any, loads: Any, at: Any = None, wheels: Any = None) -> Any:
        """All columns by their definitions."""
        at, wheels = at or self.at, wheels or self.wheels
        road = _road(self.middle, at)
        out, force, moment, rack = {"roll": at["roll"], "heave": at["heave"]}, {}, 0.0, {}
        contacts, moves = [], []
        for side, w in wheels.items():
            own = oracle.columns(w.drawn, w.roles, w.s._replace(contact=w.c))
            out |= {f"{side}_{n}": x for n, x in own.items()}
            lean = oracle.dot(w.s.spin, road.n)
            out[f"{side}_camber_to_road"] = angle(-lean, np.sqrt(1.0 - lean * lean))
            up = oracle.dot(road.n, oracle.velocity(w.s, w.s.travel, w.c))
            by_roll = -oracle.dot(road.dn, w.c - road.m) / up
            lifted = w.s.travel, w.s.spring[2]
            effort = _effort(w, road, weight, loads.get(side, {}), *lifted)
            if any(x.steers == "rack" for x in w.drawn.links):
                rise = oracle.dot(road.n, oracle.velocity(w.s, w.s.steer, w.c)) / up
                turn = w.s.steer - rise[:, None] * w.s.travel
                shortens = w.s.spring[3] - rise * w.s.spring[2]
                held = _effort(w, road, weight, loads.get(side, {}), turn, shortens)
                rack[side] = held, _gain(w.s.spin, turn)
            force[side] = effort / up
            moment = moment + effort * by_roll
            if loads:  # the forces' reactions act on the road, which turns about −x
                arm = np.cross([-1.0, 0.0, 0.0], w.c - road.m)
                moment = moment + oracle.dot(_push(w, road, loads[side]), arm)
            contacts.append(w.c)
            moves.append(by_roll[:, None] * oracle.velocity(w.s, w.s.travel, w.c)[:, 1:])
        out["axle_steer"] = 0.5 * (out["left_steer_angle"] + out["right_steer_angle"])
        for name in [n for n in own if n.startswith("anti_")]:
            out[name] = 0.5 * (out[f"left_{name}"] + out[f"right_{name}"])
        out |= {f"{side}_load": x for side, x in force.items()} | {"roll_moment": moment}
        out["axle_load"] = force["left"] + force["right"]
        out["load_transfer"] = 0.5 * (force["right"] - force["left"])
        if rack:
            (first, gain), (second, other) = rack.values()
            out["steering_effort"] = first + second
            out["steering_wheel_torque"] = self.gear * (first + second)
            out["steering_ratio"] = 2.0 / (self.gear * (gain + other))
            out |= self._turns(out, *contacts)
        return out | _roll_centre(*(c[:, 1:] for c in contacts), *moves)

    def _turns(self, angles: Any, p: Any, q: Any) -> dict[str, Any]:
        """Ackermann error, share and turning circle of wheels with contacts p and q."""
        a, c = (angles[f"{side}_steer_angle"] for side in SIDES)
        (_, roles, _, first), (*_, second) = self.drawn.values()
        track = np.abs(first[:, 1] - second[:, 1])
        ahead = 1.0 if roles.axle == "front" else -1.0
        line = first[:, 0] - ahead * roles.wheelbase
        way = np.where((ahead * (a + c)).real > 0.0, ahead, -ahead)
        left = way == ahead
        inner, outer = way * np.where(left, a, c), way * np.where(left, c, a)
        at = np.where(left[:, None], q, p)
        ideal = angle(1.0 + 0.0 * inner, np.cos(inner) / np.sin(inner) + track / roles.wheelbase)
        ideal = ideal - np.pi * (inner.real < 0.0)
        straight = (np.abs((a + c).real) < 2e-9) | (np.minimum(inner.real, outer.real) < 1e-9)
        reach = (line - at[:, 0]) / np.sin(outer)
        size = np.where((line - at[:, 0]).real / np.sin(outer).real < 0.0, -reach, reach)
        return {
            "ackermann_error": outer - ideal,
            "ackermann_share": np.where(straight, np.nan, (inner - outer) / (inner - ideal)),
            "turning_circle": np.where(straight, np.nan, 2.0 * size),
        }


def _heading(w: Wheel, road: Road) -> Any:
    return w.roles.sign * unit(np.cross(w.s.spin, road.n))


def _push(w: Wheel, road: Road, loads: Any) -> Any:
    """The force on a contact."""
    along = _heading(w, road)
    ahead = (loads["driving"] - loads["braking"])[:, None]
    return ahead * along + loads["lateral"][:, None] * np.cross(road.n, along)


def _gain(spin: Any, twist: Any) -> Any:
    """Rate of the steer angle."""
    moved = np.cross(twist[:, :3], spin)
    across = spin[:, 0] ** 2 + spin[:, 1] ** 2
    return (spin[:, 0] * moved[:, 1] - spin[:, 1] * moved[:, 0]) / across


def _effort(w: Wheel, road: Road, weight: Any, loads: Any, twist: Any, longer: Any) -> Any:
    """Work of the spring, which gets longer, the weight and loads in a motion of the upright."""
    heavy = oracle.place(w.drawn, w.s.pose, w.to)
    lifted = weight * oracle.velocity(w.s, twist, heavy)[:, 2]
    return w.s.spring[1] * longer + lifted - _work(w, road, loads, twist)


def _work(w: Wheel, road: Road, loads: Any, twist: Any) -> Any:
    """Of loads on a contact in a motion; inboard, the wheel does not turn with the upright."""
    if not loads:
        return 0.0
    turn, move, arm = twist[:, :3], twist[:, 3:], w.c - w.s.centre
    loose = turn - oracle.dot(turn, w.s.spin)[:, None] * w.s.spin
    along = _heading(w, road)

    def rate(axis: Any, turn: Any) -> Any:
        return oracle.dot(axis, move + np.cross(turn, arm))

    brakes = rate(along, loose if w.roles.brakes == "inboard" else turn)
    drive = rate(along, loose if w.roles.drive == "inboard" else turn)
    side = loads["lateral"] * rate(np.cross(road.n, along), turn)
    return (
        side - loads["braking"] * brakes + loads["driving"] * drive
        + loads["aligning"] * oracle.dot(road.n, turn)
    )  # fmt: skip


def _roll_centre(p: Any, q: Any, u: Any, v: Any) -> dict[str, Any]:
    """In front view, of contacts p, q and velocities u, v there: where ``u · (x − p) = 0`` meet."""
    along = unit(p - q)
    normal = np.stack([-along[:, 1], along[:, 0]], -1)
    origin = p - along * (p[:, :1] / along[:, :1])
    a, b = oracle.dot(u, p), oracle.dot(v, q)
    det = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    centre = np.stack([a * v[:, 1] - b * u[:, 1], b * u[:, 0] - a * v[:, 0]], -1) / det[:, None]
    heights = [
        oracle.dot(c - origin, along) * oracle.dot(x, along) / oracle.dot(x, normal)
        for c, x in ((p, u), (q, v))
    ]
    return {
        "track": oracle.dot(p - q, along),
        "roll_centre_height": oracle.dot(centre - origin, normal),
        "roll_centre_lateral": centre[:, 0],
        "roll_centre_height_forces": 0.5 * (heights[0] + heights[1]),
    }


# Cases.


def _axles(b: corner_kinds.Batch, name: str, rng: Any) -> Iterator[Judged]:
    """`axle_kinematics` over an event, of each sample."""
    sides, event, n = _sides(b, rng), _event(b, name, rng), len(b.sizes)
    shape = 4, PLACES, n  # the drawing and three that are near it

    def tiled(x: Any) -> Any:
        return np.broadcast_to(x, shape + x.shape[1:]).reshape(-1, *x.shape[1:])

    def placed(x: Any) -> Any:
        return np.broadcast_to(np.asarray(x)[None, :, None], shape).ravel()

    points = {}
    for side, own in sides.points.items():
        points[side] = {}
        for m, x in own.items():
            off = SHIFT * b.sizes[:, None] * rng.normal(size=(4, 1, n, 3))
            off[0] = 0.0
            points[side][m] = (x + off + np.zeros((*shape, 3))).reshape(-1, 3)
    springs = {m: tiled(x) for m, x in b.springs.items()}
    loads = {
        side: {m: placed(x[side]) for m, x in event.loads.items()} for side in SIDES if event.loads
    }
    first = next(iter(event.rates.values()), 1.0)
    rates = {m: x / first for m, x in event.rates.items()}
    with np.errstate(all="ignore"):
        axle = Axle(b, points, springs, {m: placed(x) for m, x in event.at.items()})
        values = axle.columns(tiled(sides.weight), loads)
        if rates:
            slopes = axle.slopes(rates, tiled(sides.weight))
            values |= {f"{m}_gradient": x for m, x in slopes.items()}
    there: Any = axle.there.reshape(shape).all(axis=(0, 1))
    still = {m: float(x[0]) for m, x in event.at.items() if m not in rates}
    options: dict[str, Any] = still | {m: event.at[m] for m in rates} | event.loads
    for i in range(n):
        text = b.text(i, f", {name}")
        car, roles = _car(b, sides, i)
        slopes = suspension.axle_available(roles) if rates else ()
        try:
            table = suspension.axle_kinematics(car, roles, **options, gradients=slopes)
        except ValueError as error:
            outcome = CRASHED if there[i] else REFUSED
            yield Judged("suspension.Kinematics.x", outcome, np.nan, f"{error} | {text}")
            continue
        asked = event.at[next(iter(rates))] if rates else None
        if asked is not None:
            yield compare("suspension.Kinematics.x", table.x, asked, limit=0.0, detail=text)
        if not there[i]:
            continue
        by = 1.0 if next(iter(rates), "") == "roll" else float(b.sizes[i])
        for column, got in table.columns.items():
            yield from _column(column, got, values, (shape, i), _unit(column, b, i, by), text)


def _unit(column: str, b: corner_kinds.Batch, i: int, by: float) -> float:
    """The size of a column's unit; `by` is that of the event's first coordinate."""
    if column.endswith("_gradient"):
        return _unit(column.removesuffix("_gradient"), b, i, by) / by
    size, rate = float(b.sizes[i]), float(b.springs["stiffness"][i])
    units = {"m": size, "N": rate * size, "N m": rate * size * size}
    return units.get(suspension.AXLE_CHARACTERISTICS[column].unit, 1.0)


def _column(
    column: str, got: Any, values: Any, where: Any, scale: float, text: str
) -> Iterator[Judged]:
    """Places of a column of a sample that rounding of the hardpoints does not decide."""
    shape, i = where
    with np.errstate(all="ignore"):
        want, *near = np.real(values[column] + np.zeros(np.prod(shape))).reshape(shape)[:, :, i]
        sizes = np.maximum(np.abs(want), scale)
        moved = np.max(np.abs(near - want), axis=0) / sizes
    sure = moved < UNSURE
    if not sure.any():
        return
    plain = column.removesuffix("_gradient")
    number = f"suspension.AxleCharacteristic: {plain}"
    yield compare(
        number if plain == column else f"{number}, along an event",
        np.asarray(got)[sure] / sizes[sure], want[sure] / sizes[sure],
        limit=LIMIT + 2.0 * CLOSED / SHIFT * float(np.max(moved[sure])), scale=1.0,
        detail=f"{column}, {text}",
    )  # fmt: skip
