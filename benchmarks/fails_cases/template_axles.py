"""Axles of all templates on a rig, against rigid bodies in NumPy that hardpoints hold.

A body has a rotation and a place. What holds it are distances of its points from others, planes in
which its points stay, points and axes that two bodies share, lines of it that pass through a point,
and the road under its wheels: the lowest point of a disc lies on it. Newton's method follows them
from the drawing; their matrix is that of complex steps of all freedoms, and motions are solutions
with one of its right sides. The ends of track rods move with the rack, or with a relay rod that
closed forms place: two arms, and the line between their balls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np

from fails_cases import wheel_oracle as oracle
from fails_cases.axle_tables import _roll_centre
from fails_cases.corner_characteristics import CLOSED, LIMIT, UNSURE
from fails_cases.corner_tables import _turns
from fails_cases.judged import CRASHED, REFUSED, Judged, compare, or_crash
from fails_cases.rigid import H, about, unit
from jaxmbd import suspension
from jaxmbd.suspension.steering_geometry import ABOUT

PER_CASE = 50
SHARE = 2.0
_WHERE = "NumPy's rigid bodies on the hardpoints of all templates, motions by complex steps"
ANTI = ("anti_dive", "anti_lift_braking", "anti_lift_driving", "anti_squat")
PLACES = (
    "left_camber", "right_camber", "left_steer_angle", "right_steer_angle", "right_half_track",
    "track", "roll_centre_height", "roll_centre_height_forces",
)  # fmt: skip
STEERED = ("ackermann_error", "ackermann_share", "turning_circle")
NUMBERS = {
    f"suspension.AxleCharacteristic: {n}, of templates": _WHERE for n in (*ANTI, *PLACES, *STEERED)
}
NUMBERS["suspension.Steering.columns, of templates"] = _WHERE
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("double_wishbone", {"spring_by": "pushrod"}),
    ("double_wishbone", {"steering_by": "relay"}),
    ("macpherson", {}),
    ("macpherson", {"steering_by": "relay"}),
    ("five_link", {"steering_by": "rack"}),
    ("five_link", {}),
    ("trailing_arm", {}),
    ("semi_trailing_arm", {}),
    ("twist_beam", {}),
    ("rigid_axle", {}),
    ("rigid_axle", {"lateral": "watts"}),
    ("rigid_axle", {"links": "four", "lateral": None}),
)
"""Templates with their options."""
SIDES = {"left": np.ones(3), "right": np.array([1.0, -1.0, 1.0])}
ARMS = [(f"{a}_{e}", f"{a}_ball") for a in ("lower_arm", "upper_arm") for e in ("front", "rear")]
LINKS = [
    (f"{n}_link_inboard", f"{n}_link_outboard")
    for n in ("upper_front", "upper_rear", "lower_front", "lower_rear")
]
X, Y, Z = np.eye(3)
STEPS, ROUNDS, SHIFT = 5, 4, 1e-9
Points = dict[str, Any]
Residual = Callable[[Any], list[Any]]


class Held(NamedTuple):
    """What holds the bodies: their names, residuals of where they are, and wheels by side."""

    bodies: tuple[str, ...]
    rows: list[Residual]
    wheels: dict[str, tuple[str, Any, Any]]  # body, centre and axis outwards, as drawn


class Poses:
    """Bodies where they are: rotations and displacements of the origin, perhaps complex."""

    def __init__(self, turns: dict[str, Any], moves: dict[str, Any], steer: Any):
        self.turns, self.moves, self.steer = turns, moves, steer

    def at(self, body: str, x: Any) -> Any:
        return x if body == "ground" else self.moves[body] + self.turns[body] @ x

    def way(self, body: str, x: Any) -> Any:
        return x if body == "ground" else self.turns[body] @ x

    def moved(self, bodies: tuple[str, ...], e: Any) -> Poses:
        turns, moves = {}, {}
        for k, n in enumerate(bodies):
            turn = oracle.cayley(e[None, 6 * k : 6 * k + 3])[0]
            turns[n], moves[n] = (
                turn @ self.turns[n],
                turn @ self.moves[n] + e[6 * k + 3 : 6 * k + 6],
            )
        return Poses(turns, moves, self.steer)


# What holds.


def distance(a: str, p: Any, b: str, q: Any) -> Residual:
    length = np.sqrt((p - q) @ (p - q))

    def row(s: Poses) -> list[Any]:
        d = s.at(a, p) - s.at(b, q)
        return [0.5 * (d @ d - length * length) / length]

    return row


def planes(body: str, p: Any, *normals: Any) -> Residual:
    return lambda s: [n @ (s.at(body, p) - p) for n in normals]


def shared(a: str, b: str, p: Any) -> Residual:
    return lambda s: list(s.at(a, p) - s.at(b, p))


def aligned(a: str, b: str, axis: Any) -> Residual:
    across = np.array(oracle.across(axis[None])).reshape(2, 3)
    return lambda s: [s.way(a, axis) @ s.way(b, x) for x in across]


def sleeve(body: str, low: Any, top: Any) -> Residual:
    across = np.array(oracle.across(unit(top - low)[None])).reshape(2, 3)
    return lambda s: [s.way(body, x) @ (top - s.at(body, low)) for x in across]


def _corner(p: Points, side: str, template: str, end: Any) -> list[Residual]:
    """An upright of a template's corner, its points mirrored for the right side."""
    body, flip = f"{side}_upright", SIDES[side]
    q = {n: flip * x for n, x in p.items()}
    if template == "trailing_arm":
        return [planes(body, q["arm_pivot"], X, Y, Z), aligned("ground", body, Y)]
    if template == "semi_trailing_arm":
        line = unit(q["arm_outer"] - q["arm_inner"])
        return [planes(body, q["arm_inner"], X, Y, Z), aligned("ground", body, line)]
    links = LINKS if template == "five_link" else ARMS
    rows = [distance("ground", q[a], body, q[b]) for a, b in links if a in q]
    if template == "macpherson":
        rows.append(sleeve(body, q["strut_bottom"], q["strut_top"]))
    inner, outer = q["tierod_inboard"], q["tierod_outboard"]
    length = np.sqrt((outer - inner) @ (outer - inner))

    def rod(s: Poses) -> list[Any]:
        d = s.at(body, outer) - end(inner, s.steer)
        return [0.5 * (d @ d - length * length) / length]

    return [*rows, rod]


def _relay(p: Points) -> Callable[[Any, Any], Any]:
    """Where a point of the relay rod is at an angle of the pitman arm."""
    axis, line = unit(p["pitman_axis"] - p["pitman_pivot"]), p["idler_ball"] - p["pitman_ball"]

    def frame(first: Any, line: Any) -> Any:
        along, across = unit(line), unit(np.cross(first, line))
        return np.stack([along, across, np.cross(along, across)], -1)

    def circle(x: Any) -> Any:
        return p["idler_pivot"] + about(other, x) @ (p["idler_ball"] - p["idler_pivot"])

    other = unit(p["idler_axis"] - p["idler_pivot"])

    def end(x: Any, angle: Any) -> Any:
        turn = about(axis, np.asarray(angle))
        ball, there = p["pitman_pivot"] + turn @ (p["pitman_ball"] - p["pitman_pivot"]), 0.0
        for _ in range(8):  # the idler's angle at which the rod has its length
            gap = circle(np.asarray(there)) - ball
            slope = np.cross(other, circle(np.asarray(there)) - p["idler_pivot"])
            there = there - 0.5 * (gap @ gap - line @ line) / (gap @ slope)
        now = frame(turn @ axis, circle(np.asarray(there)) - ball)
        return ball + now @ frame(axis, line).T @ (x - p["pitman_ball"])

    return end


def held(template: str, options: dict[str, Any], p: Points, spin: Any) -> Held:
    """The template's bodies that carry wheels and what holds them."""
    right = {n: SIDES["right"] * x for n, x in p.items()}
    both = {"left": p, "right": right}
    wheel = {s: (both[s]["wheel_centre"], SIDES[s] * spin) for s in SIDES}
    if template == "rigid_axle":
        pairs = [("lower_link", s) for s in SIDES]
        pairs += [
            ("upper_link", s) for s in (SIDES if options.get("links") == "four" else ["left"])
        ]
        rows = [
            distance("ground", both[s][f"{n}_inboard"], "axle", both[s][f"{n}_outboard"])
            for n, s in pairs
        ]
        bodies: tuple[str, ...] = ("axle",)
        if options.get("lateral") == "watts":
            bodies = ("axle", "crank")
            rows += [shared("axle", "crank", p["watts_pivot"]), aligned("axle", "crank", X)]
            rows += [
                distance("ground", p[f"watts_{s}_inboard"], "crank", p[f"watts_{s}_outboard"])
                for s in SIDES
            ]
        elif "panhard_inboard" in p:
            rows.append(distance("ground", p["panhard_inboard"], "axle", p["panhard_outboard"]))
        return Held(bodies, rows, {s: ("axle", *x) for s, x in wheel.items()})
    bodies = tuple(f"{s}_upright" for s in SIDES)
    if template == "twist_beam":
        rows = [planes(f"{s}_upright", both[s]["arm_pivot"], X, Z) for s in SIDES]
        rows += [shared(*bodies, p["beam_centre"]), aligned(*bodies, Y)]
        rows.append(planes(bodies[0], p["beam_centre"], Y))
    else:
        fixed = {"rack": lambda x, s: x + s * Y, "fixed": lambda x, s: x}
        by = options.get("steering_by", "fixed" if template == "five_link" else "rack")
        end = _relay(p) if by == "relay" else fixed[by]
        rows = [row for s in SIDES for row in _corner(p, s, template, end)]
    return Held(bodies, rows, {s: (f"{s}_upright", *x) for s, x in wheel.items()})


# Where it is, and its motions.


class Stand:
    """An axle on its road at a heave, a roll and a steering; or with its wheels at a height."""

    def __init__(self, h: Held, radius: float, at: dict[str, float], height: float | None = None):
        self.h, self.radius, self.height = h, radius, height
        n = 6 * len(h.bodies)
        first = Poses({b: np.eye(3) for b in h.bodies}, dict.fromkeys(h.bodies, np.zeros(3)), 0.0)
        drawn = {s: self.lowest(first, s, Z) for s in h.wheels}
        self.drawn = drawn
        self.middle = 0.5 * (drawn["left"] + drawn["right"]) * [1.0, 0.0, 1.0]
        self.level = {s: x[2] - self.middle[2] for s, x in drawn.items()}
        poses = first
        for k in range(1, STEPS + 1):
            now = {m: k / STEPS * x for m, x in at.items()}
            self._road(now, k / STEPS)
            poses.steer = now["steer"]
            for _ in range(ROUNDS):
                miss, matrix = self._matrix(poses, n)
                poses = poses.moved(h.bodies, -np.linalg.solve(matrix, miss))
        self.poses = poses
        self.miss, self.matrix = self._matrix(poses, n)

    def _road(self, at: dict[str, float], share: float) -> None:
        sin, cos = np.sin(at["roll"]), np.cos(at["roll"])
        self.up, self.up_by_roll = np.array([0.0, sin, cos]), np.array([0.0, cos, -sin])
        self.centre = self.middle + at["heave"] * Z
        self.rise = None if self.height is None else share * self.height

    def lowest(self, s: Poses, side: str, up: Any) -> Any:
        body, centre, spin = self.h.wheels[side]
        axis = s.way(body, spin)
        return s.at(body, centre) - self.radius * unit(up - (up @ axis) * axis)

    def _rows(self, s: Poses) -> Any:
        found = [x for row in self.h.rows for x in row(s)]
        for side, (body, centre, _) in self.h.wheels.items():
            if self.rise is None:
                gap = self.up @ (self.lowest(s, side, self.up) - self.centre) - self.level[side]
            else:
                gap = (s.at(body, centre) - centre)[2] - self.rise
            found.append(gap)
        return np.array(found)

    def _matrix(self, s: Poses, n: int) -> tuple[Any, Any]:
        steps = 1j * H * np.eye(n)
        columns = [self._rows(s.moved(self.h.bodies, e)).imag / H for e in steps]
        return self._rows(s), np.stack(columns, -1)

    def motion(self, pads: Any) -> dict[str, tuple[Any, Any]]:
        """Turn and velocity of each wheel's centre where both pads rise at these rates."""
        right = np.zeros(len(self.miss))
        right[-2:] = pads
        e = np.linalg.solve(self.matrix, right)
        found = {}
        for side, (body, centre, _) in self.h.wheels.items():
            k = 6 * self.h.bodies.index(body)
            turn = e[k : k + 3]
            found[side] = turn, e[k + 3 : k + 6] + np.cross(turn, self.poses.at(body, centre))
        return found

    def spin(self, side: str) -> Any:
        body, _, spin = self.h.wheels[side]
        return self.poses.way(body, spin)

    def place(self, side: str) -> Any:
        body, centre, _ = self.h.wheels[side]
        return self.poses.at(body, centre)

    def wheel(self, side: str, up: Any) -> tuple[float, Any]:
        """Steer angle, and contact."""
        s = self.spin(side) * (1.0 if side == "left" else -1.0)
        return float(np.arctan2(-s[0], s[1])), self.lowest(self.poses, side, up)


def columns(stand: Stand, roles: Any) -> dict[str, float]:
    """Columns of an axle by their definitions."""
    out: dict[str, Any] = {}
    contacts = {s: stand.lowest(stand.poses, s, stand.up) for s in SIDES}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        spin = stand.spin(side)
        out[f"{side}_camber"] = np.arctan2(-spin[2], sign * spin[1])
        out[f"{side}_steer_angle"] = stand.wheel(side, stand.up)[0]
        out[f"{side}_half_track"] = sign * contacts[side][1]

    def velocity(motion: Any, side: str, where: str = "outboard") -> Any:
        (turn, move), s = motion[side], stand.spin(side)
        turn = turn - (turn @ s) * s if where == "inboard" else turn
        return move + np.cross(turn, contacts[side] - stand.place(side))

    rise = stand.motion([1.0, 1.0])
    levers = roles.wheelbase / roles.cg_height

    def support(where: str, share: float) -> float:
        u = [velocity(rise, s, where) for s in SIDES]
        return share * levers * float(np.mean([x[0] / x[2] for x in u]))

    brakes, drive = (
        support(roles.brakes, roles.brake_share),
        support(roles.drive, roles.drive_share),
    )
    if roles.axle == "front":
        out |= {"anti_dive": brakes, "anti_lift_driving": drive}
    else:
        out |= {"anti_lift_braking": -brakes, "anti_squat": -drive}
    tilt = stand.motion([-stand.up_by_roll @ (contacts[s] - stand.centre) for s in SIDES])
    front = [contacts[s][None, 1:] for s in SIDES]
    moves = [velocity(tilt, s)[None, 1:] for s in SIDES]
    out |= {n: x[0] for n, x in _roll_centre(*front, *moves).items()}
    turns = [stand.wheel(s, stand.up) for s in SIDES]
    drawn = [stand.drawn[s] for s in SIDES]
    if roles.steering is not None:
        fake = SimpleNamespace(corner=roles)
        out |= {n: _turns(fake, *turns, drawn, n) for n in STEERED}
    return out


# Cases.


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Templates in turn, as many as the size asks for."""
    rng = np.random.default_rng([seed, 41])
    order = rng.permutation(len(CASES))
    count = max(2, round(size / PER_CASE))
    for k in range(count):
        template, options = CASES[order[k % len(CASES)]]
        number = next(iter(NUMBERS))
        yield from or_crash(number, _template(template, options, rng), f"{template}, seed {seed}")
        jax.clear_caches()


def _points(template: str, options: dict[str, Any], rng: Any) -> Points:
    p = suspension.example_hardpoints(template, **options)
    p = {n: x + 0.012 * rng.normal(size=3) for n, x in p.items() if not n.startswith(BAR)}
    if "beam_centre" in p:
        p["beam_centre"][1] = 0.0
    return p


BAR = ("bar_", "droplink", "heave")


def _template(template: str, options: dict[str, Any], rng: Any) -> Iterator[Judged]:
    p, choice = _points(template, options, rng), ["inboard", "outboard"]
    numbers: dict[str, Any] = {
        "axle": str(rng.choice(["front", "rear"])),
        "brakes": str(rng.choice(choice)), "drive": str(rng.choice(choice)),
        "brake_share": float(rng.uniform(0.2, 0.8)), "drive_share": float(rng.uniform(0.2, 1.0)),
        "wheelbase": float(rng.uniform(2.2, 3.2)), "cg_height": float(rng.uniform(0.3, 0.8)),
    }  # fmt: skip
    if "axle_inboard" in p:
        spin = unit(p["wheel_centre"] - p["axle_inboard"])
    else:
        numbers |= {"camber": 0.03 * rng.normal(), "toe": 0.02 * rng.normal()}
        spin = unit(np.array([np.tan(numbers["toe"]), 1.0, -np.tan(numbers["camber"])]))
    made = suspension.TEMPLATES[template](p, **options, **numbers)
    whole = template in ("rigid_axle", "twist_beam")
    car, roles = made if whole else suspension.template_axle(*made)
    t = np.sort(rng.uniform(-1.0, 1.0, 3))
    reach = 0.25 if options.get("steering_by") == "relay" else 0.03
    event = {"heave": 0.03 * rng.normal(), "roll": 0.03 * rng.normal()}
    event["steer"] = reach * float(rng.uniform(0.5, 1.0)) if roles[0].slides(car) else 0.0
    at = {n: x * t for n, x in event.items()}
    text = f"{template} {options}, {numbers['axle']}, {numbers['brakes']}, {numbers['drive']}"
    near = [held(template, options, _shaken(p, template, rng, k), spin) for k in range(4)]
    wanted = [*PLACES, *(n for n in ANTI if n in suspension.axle_available(roles))]
    wanted += STEERED if roles[0].slides(car) else ()
    moved = {n: x for n, x in at.items() if event[n]}
    try:
        table = suspension.axle_kinematics(car, roles, **moved, observe=wanted)
    except ValueError as error:
        yield Judged(next(iter(NUMBERS)), CRASHED, np.nan, f"{error} | {text}")
        return
    for k in range(len(t)):
        now = {n: float(x[k]) for n, x in at.items()}
        stands = [Stand(h, 0.33, now) for h in near]
        yield from _compared(
            "suspension.AxleCharacteristic: {}, of templates",
            {n: table[n][k] for n in wanted}, [columns(s, roles[0]) for s in stands],
            stands[0], f"{now}, {text}",
        )  # fmt: skip
    if roles[0].slides(car):
        yield from _steering(car, roles, near, event["steer"] * np.array([0.0, *t]), text)


def _steering(car: Any, roles: Any, near: list[Held], steer: Any, text: str) -> Iterator[Judged]:
    """The table of both wheels, their centres at a height."""
    height, number = 0.01, "suspension.Steering.columns, of templates"
    try:
        table = suspension.steering(car, *roles, steer=steer.tolist(), travel=height)
    except ValueError as error:
        yield Judged(number, REFUSED, np.nan, f"{error} | {text}")
        return
    fake = SimpleNamespace(corner=roles[0])
    for k, x in enumerate(steer):
        at = {"heave": 0.0, "roll": 0.0, "steer": float(x)}
        stands = [Stand(h, 0.33, at, height) for h in near]
        found = []
        for s in stands:
            turns, drawn = [s.wheel(n, Z) for n in SIDES], [s.drawn[n] for n in SIDES]
            found.append({n: _turns(fake, *turns, drawn, n) for n in ABOUT})
        got = {n: table[n][k] for n in ABOUT}
        yield from _compared(number, got, found, stands[0], f"steer {x:.3g}, {text}")


def _shaken(p: Points, template: str, rng: Any, k: int) -> Points:
    """Hardpoints that are moved by their rounding, unless k is 0."""
    found = {n: x + (k > 0) * SHIFT * rng.normal(size=3) for n, x in p.items()}
    if "beam_centre" in found:
        found["beam_centre"][1] = 0.0
    return found


def _compared(number: str, got: Any, found: list[Any], stand: Stand, text: str) -> Iterator[Judged]:
    """Columns of a place that rounding of the hardpoints does not decide."""
    if not np.max(np.abs(stand.miss)) < 1e-12:
        return  # the oracle is not there
    for name, value in got.items():
        want, *others = (x[name] for x in found)
        if np.isinf(want):
            yield compare(number.format(name), np.isinf(value), True, limit=0.0, detail=text)
            continue
        size = max(abs(want), 1.0) if want == want else 1.0
        moved = max(abs(x - want) for x in others) / size if want == want else 0.0
        if not moved < UNSURE:
            continue
        yield compare(
            number.format(name), float(value) / size, want / size,
            limit=LIMIT + 2.0 * CLOSED / SHIFT * moved, scale=1.0, detail=f"{name}, {text}",
        )  # fmt: skip
