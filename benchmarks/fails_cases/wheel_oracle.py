"""Wheels on links in NumPy: the oracle of suspension corners. It shares no code with the package.

The upright is one rigid body, a rotation R and the place m of its wheel centre. It is held by
distances between its points and points of the chassis (an arm with two hinge points and a ball is
two distances, a link is one), by points that keep to a plane, and by lines of its own that pass
through a point of the chassis (a strut). With the height of the wheel centre these are six
equations in six unknowns, which Newton's method solves in small steps from the drawing. All is
analytic: a complex step in the height or in the rack's travel is an exact derivative (Squire and
Trapp, SIAM Review 40, 1998). Arrays have the samples first, then components.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fails_cases.rigid import H, angle, mul, skew, unit

STEPS, ROUNDS = 12, 6


class Link(NamedTuple):
    """A distance of a point of the upright from one of the chassis, both as drawn.

    Attributes:
        at, end: the points (n, 3).
        length: the distance (n,).
        steers: "rack" if `end` is on the rack, "length" if the link itself grows, "" otherwise.
    """

    at: Any
    end: Any
    length: Any
    steers: str = ""


class Spring(NamedTuple):
    """A linear spring from the chassis to the upright or to an arm; all as drawn."""

    top: Any
    end: Any
    on: str
    stiffness: Any
    free: Any
    preload: Any


class Roles(NamedTuple):
    """What the columns need beside the geometry; see `jaxmbd.suspension.Corner`."""

    sign: float
    radius: float
    axle: str
    wheelbase: float
    cg_height: float
    brakes: str
    drive: str
    brake_share: float
    drive_share: float
    held: str


class Drawn(NamedTuple):
    """A corner as drawn, of n samples.

    Attributes:
        centre, spin: wheel centre, and unit vector along the wheel's axis, outwards (n, 3).
        links: distances.
        pins: pairs of a point of the upright and a direction (n, 3) along which it does not move.
        sleeves: a point and the direction of a line of the upright, and the point of the chassis
            through which it passes.
        rack: direction in which the rack moves (n, 3).
        kingpin, strut: pairs of ("upright" or "ground", point), lower and upper.
        arms: name to (front, rear, ball of the arm, ball of the upright).
        spring: the spring.
    """

    centre: Any
    spin: Any
    links: tuple[Link, ...] = ()
    pins: tuple[tuple[Any, Any], ...] = ()
    sleeves: tuple[tuple[Any, Any, Any], ...] = ()
    rack: Any = None
    kingpin: Any = None
    strut: Any = None
    arms: Any = None
    spring: Spring | None = None

    @property
    def steered(self) -> bool:
        return any(x.steers for x in self.links)


class Pose(NamedTuple):
    """Rotation and wheel centre of the upright."""

    r: Any
    m: Any


def dot(a: Any, b: Any) -> Any:
    return np.sum(a * b, axis=-1)


def cayley(w: Any) -> Any:
    """A rotation whose vector is w to second order; also of complex vectors.

    ``(1 − X)⁻¹ (1 + X) = 1 + 2 (X + X²)/(1 + x·x)`` with ``X = skew(x)`` and ``x = w/2``; infinite
    or NaN where there is none.
    """
    half = 0.5 * skew(w)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.eye(3) + 2.0 * (half + half @ half) / (1.0 + dot(w, w) / 4.0)[..., None, None]


def place(d: Drawn, pose: Pose, x: Any) -> Any:
    """Where a point of the upright is."""
    return pose.m + mul(pose.r, x - d.centre)


def equations(d: Drawn, pose: Pose, z: Any, rack: Any) -> tuple[Any, Any, Any]:
    """What is not met [m] (n, 6), its rates by a twist ``[ω; v]`` at m, and by the rack."""
    miss, rows, steer = [], [], []

    def add(value: Any, turn: Any, move: Any, by_rack: Any) -> None:
        miss.append(value)
        rows.append(np.concatenate([turn, move], -1))
        steer.append(by_rack)

    none = 0.0 * (z + rack)
    for x in d.links:
        p, q = place(d, pose, x.at), x.end
        slope, want = none, x.length
        if x.steers == "rack":
            q = q + rack[:, None] * d.rack
            slope = -dot(p - q, d.rack) / x.length
        elif x.steers == "length":
            want = want + rack
            slope = -want / x.length
        e = (p - q) / x.length[:, None]
        value = 0.5 * (dot(p - q, p - q) - want * want) / x.length
        add(value, np.cross(p - pose.m, e), e, slope)
    for at, along in d.pins:
        p = place(d, pose, at)
        add(dot(along, p - at), np.cross(p - pose.m, along), along + 0.0 * p, none)
    for at, along, top in d.sleeves:
        p = place(d, pose, at)
        for side in across(along):
            a = mul(pose.r, side)
            turn = np.cross(a, top - p) - np.cross(p - pose.m, a)
            add(dot(top - p, a), turn, -a, none)
    up = np.zeros_like(pose.m)
    up[:, 2] = 1.0
    add(pose.m[:, 2] - d.centre[:, 2] - z, 0.0 * up, up, none)
    return np.stack(miss, -1), np.stack(rows, -2), np.stack([x + none for x in steer], -1)


def across(along: Any) -> tuple[Any, Any]:
    """Two unit vectors at right angles to a direction."""
    least = np.eye(3)[np.argmin(np.abs(along), axis=-1)]
    first = unit(np.cross(along, least))
    return first, unit(np.cross(along, first))


def solve(rows: Any, right: Any) -> Any:
    """Solutions of linear systems; NaN where they are singular."""
    with np.errstate(all="ignore"):
        size = np.abs(np.linalg.det(rows))
        bad = ~((size > 0.0) & np.isfinite(size))[:, None, None]
        found = np.linalg.solve(np.where(bad, np.eye(rows.shape[-1]), rows), right)
    return np.where(bad, np.nan, found)


def improved(d: Drawn, pose: Pose, z: Any, rack: Any) -> Pose:
    """A step of Newton's method."""
    miss, rows, _ = equations(d, pose, z, rack)
    step = solve(rows, -miss[..., None])[..., 0]
    return Pose(cayley(step[:, :3]) @ pose.r, pose.m + step[:, 3:])


def reached(d: Drawn, z: Any, rack: Any, steps: int = STEPS) -> tuple[Pose, Any, Any]:
    """The pose at a height and a rack's travel, followed from the drawing.

    Also the distance (n,) [m] by which its equations are not met, and the largest condition number
    of the equations on the way.
    """
    n, size = len(z), np.max([x.length for x in d.links], 0) if d.links else 1.0
    pose = Pose(np.tile(np.eye(3), (n, 1, 1)), d.centre.copy())
    units = np.concatenate([np.broadcast_to(1.0 / size, (3, n)), np.ones((3, n))]).T
    worst = np.ones(n)
    for k in range(steps + 1):
        share = k / steps
        for _ in range(ROUNDS):
            with np.errstate(all="ignore"):
                pose = improved(d, pose, share * z, share * rack)
        rows = np.nan_to_num(equations(d, pose, share * z, share * rack)[1], posinf=0.0, neginf=0.0)
        worst = np.maximum(worst, np.linalg.cond(rows * units[:, None, :]))
    miss = np.max(np.abs(equations(d, pose, z, rack)[0]), axis=1)
    return pose, miss, worst


class State(NamedTuple):
    """A corner at an instant: positions, and twists of the two motions; see `CornerState`."""

    pose: Pose
    centre: Any
    spin: Any
    contact: Any
    travel: Any
    steer: Any
    held: Any
    kingpin: Any
    strut: Any
    arms: Any
    spring: Any  # length, tension, its rates in both motions


def state(d: Drawn, roles: Roles, pose: Pose, z: Any, rack: Any) -> State:
    """The corner where it is; z and rack may be a complex step away from where `pose` is."""
    for _ in range(2):
        pose = improved(d, pose, z, rack)
    _, rows, steer = equations(d, pose, z, rack)
    up = np.zeros_like(steer)
    up[:, -1] = 1.0
    travel, turn = solve(rows, np.stack([up, -steer], -1)).transpose(2, 0, 1)
    spin = mul(pose.r, d.spin)

    def line(places: Any) -> Any:
        if places is None:
            return None
        return [x + 0.0 * pose.m if on == "ground" else place(d, pose, x) for on, x in places]

    arms = {k: (f, r, place(d, pose, b)) for k, (f, r, _, b) in (d.arms or {}).items()}
    spring = _spring(d, pose, (travel, turn))
    s = State(
        pose, pose.m, spin, contact(pose.m, spin, roles.radius), travel,
        turn if d.steered else None, None, line(d.kingpin), line(d.strut), arms, spring,
    )  # fmt: skip
    return s._replace(held=held_rates(d, roles, s)) if d.steered else s


def contact(m: Any, spin: Any, radius: float) -> Any:
    """The lowest point of a circle across `spin`: the vertical less its part along the axis."""
    up = np.zeros_like(m)
    up[:, 2] = 1.0
    return m - radius * unit(up - dot(up, spin)[:, None] * spin)


def velocity(s: State, twist: Any, x: Any) -> Any:
    """Of the upright's point that is at x."""
    return twist[:, 3:] + np.cross(twist[:, :3], x - s.centre)


def _spring(d: Drawn, pose: Pose, twists: Any) -> Any:
    x = d.spring
    if x is None:
        return None
    if x.on == "upright":
        end = place(d, pose, x.end)
        moves = [t[:, 3:] + np.cross(t[:, :3], end - pose.m) for t in twists]
    else:
        front, rear, own, other = d.arms[x.on]
        ball = place(d, pose, other)
        now, drawn = _frame(front, rear, ball), _frame(front, rear, own)
        end = front + mul(now, mul(np.swapaxes(drawn, -1, -2), x.end - front))
        axis = unit(rear - front)
        arm = np.cross(axis, ball - front)
        moves = []
        for t in twists:
            turn = dot(arm, t[:, 3:] + np.cross(t[:, :3], ball - pose.m)) / dot(arm, arm)
            moves.append(turn[:, None] * np.cross(axis, end - front))
    length = np.sqrt(dot(end - x.top, end - x.top))
    rates = [dot(end - x.top, u) / length for u in moves]
    return (length, x.preload + x.stiffness * (length - x.free), *rates)


def _frame(front: Any, rear: Any, ball: Any) -> Any:
    """Columns: axes fixed in the triangle of an arm."""
    along = unit(rear - front)
    across = unit(np.cross(along, ball - front))
    return np.stack([along, np.cross(across, along), across], -1)


def held_rates(d: Drawn, roles: Roles, s: State) -> Any:
    """Rates of what keeps its place while the virtual axis steers."""
    if roles.held == "spring":
        return np.stack(s.spring[2:], -1)
    at = s.centre
    if roles.held == "lower_ball":
        at = s.kingpin[0] if s.kingpin is not None else s.arms["lower_arm"][2]
    return np.stack([velocity(s, t, at)[:, 2] for t in (s.travel, s.steer)], -1)


def columns(d: Drawn, roles: Roles, s: State) -> dict[str, Any]:
    """All characteristics but those that are second derivatives, by the docstrings' definitions."""
    sign, c, m, spin = roles.sign, s.contact, s.centre, s.spin
    first = contact(d.centre, d.spin, roles.radius)
    ahead = 1.0 if roles.axle == "front" else -1.0
    out = {
        "wheel_travel": m[:, 2] - d.centre[:, 2],
        "camber": angle(-spin[:, 2], sign * spin[:, 1]),
        "toe": angle(spin[:, 0], sign * spin[:, 1]),
        "steer_angle": angle(-sign * spin[:, 0], sign * spin[:, 1]),
        "half_track": sign * c[:, 1],
        "half_track_change": sign * (c[:, 1] - first[:, 1]),
        "wheelbase_change": ahead * (c[:, 0] - first[:, 0]),
        "recession": d.centre[:, 0] - m[:, 0],
        "contact": c,
    }
    out |= _instant_centres(roles, s) | _support(roles, s)
    if s.kingpin is not None:
        low, high = s.kingpin
        out |= _axis(roles, s, low, unit(high - low), "")
    if s.steer is not None:
        share = (s.held[:, 1] / s.held[:, 0])[:, None]
        direction, point, _ = screw(s, s.steer - share * s.travel)
        out |= _axis(roles, s, point, direction, "virtual_")
        moved = np.cross(s.steer[:, :3], spin)
        across = spin[:, 0] ** 2 + spin[:, 1] ** 2
        out["steer_gain"] = (spin[:, 0] * moved[:, 1] - spin[:, 1] * moved[:, 0]) / across
    if s.spring is not None:
        length, tension, rate, _ = s.spring
        out |= {"spring_length": length, "motion_ratio": -rate, "wheel_force": tension * rate}
    lower, upper = s.arms.get("lower_arm"), s.arms.get("upper_arm")
    if lower is not None and (upper is not None or s.strut is not None):
        out["roll_centre_height_arms"] = _arm_planes(s, lower, upper)
    return out


def screw(s: State, twist: Any) -> tuple[Any, Any, Any]:
    """Direction upwards, point nearest the wheel centre and pitch of a twist's axis."""
    w, v = twist[:, :3], twist[:, 3:]
    way = np.where(w[:, 2].real < 0.0, -1.0, 1.0)[:, None]
    point = s.centre + np.cross(w, v) / dot(w, w)[:, None]
    return way * unit(w), point, dot(w, v) / dot(w, w)


def _instant_centres(roles: Roles, s: State) -> dict[str, Any]:
    """The points of the upright that do not move in front and in side view; roll centre."""
    sign, c = roles.sign, s.contact
    direction, point, pitch = screw(s, s.travel)
    w, v = s.travel[:, :3].T, s.travel[:, 3:].T
    y, z = s.centre[:, 1] - v[2] / w[0], s.centre[:, 2] + v[1] / w[0]
    x, high = s.centre[:, 0] + v[2] / w[1], s.centre[:, 2] - v[0] / w[1]
    u = velocity(s, s.travel, c).T
    behind = c[:, 0] - x
    return {
        "instant_axis_direction": direction,
        "instant_axis_point": point,
        "instant_axis_pitch": pitch,
        "front_centre_y": sign * y,
        "front_centre_z": z - c[:, 2],
        "front_swing_arm": sign * (c[:, 1] - y),
        "side_centre_x": behind,
        "side_centre_z": high - c[:, 2],
        "side_swing_arm": behind if roles.axle == "front" else -behind,
        "roll_centre_height": c[:, 1] * u[1] / u[2],
    }


def _support(roles: Roles, s: State) -> dict[str, Any]:
    """Anti-dive and its like: virtual work of a longitudinal force where it acts."""

    def slope(acts: str) -> Any:
        w = s.travel[:, :3]
        if acts == "inboard":
            w = w - dot(w, s.spin)[:, None] * s.spin
        u = s.travel[:, 3:] + np.cross(w, s.contact - s.centre)
        return u[:, 0] / u[:, 2] * roles.wheelbase / roles.cg_height

    braking = roles.brake_share * slope(roles.brakes)
    driving = roles.drive_share * slope(roles.drive)
    if roles.axle == "front":
        return {"anti_dive": braking, "anti_lift_driving": driving}
    return {"anti_lift_braking": -braking, "anti_squat": -driving}


def _axis(roles: Roles, s: State, point: Any, d: Any, prefix: str) -> dict[str, Any]:
    """Angles of a steering axis, trails and offsets."""

    def level(x: Any) -> Any:
        """From x to where the axis passes its height."""
        return point + ((x - point)[:, 2] / d[:, 2])[:, None] * d - x

    ground, hub, sign = level(s.contact), level(s.centre), roles.sign
    heading = sign * np.stack([s.spin[:, 1], -s.spin[:, 0]], -1)
    heading = heading / np.sqrt(dot(heading, heading))[:, None]
    left = np.stack([-heading[:, 1], heading[:, 0]], -1)
    caster = angle(-d[:, 0], d[:, 2])
    found = {
        "caster": caster,
        "kingpin_inclination": angle(-sign * d[:, 1], d[:, 2]),
        "caster_trail": ground[:, 0],
        "mechanical_trail": ground[:, 0] * d[:, 2] / np.sqrt(d[:, 0] ** 2 + d[:, 2] ** 2),
        "scrub_radius": -sign * ground[:, 1],
        "caster_offset_wheel": hub[:, 0],
        "kingpin_offset_wheel": -sign * hub[:, 1],
        "steering_offset": np.sqrt(dot(ground, ground)),
        "wheel_trail": dot(ground[:, :2], heading),
        "wheel_scrub": -sign * dot(ground[:, :2], left),
    }
    return {f"{prefix}{name}": x for name, x in found.items()}


def _arm_planes(s: State, lower: Any, upper: Any) -> Any:
    """Where the line of both arms' pencil that passes the contact meets y = 0, over the contact.

    In front view the planes are lines ``n·(x − p) = 0``. Of all lines that meet where these do,
    sums of them, ``r₂ n₁ − r₁ n₂`` with r = n·(p − c) is the normal of that through the contact c.
    """
    planes = [(lower[2], np.cross(lower[0] - lower[2], lower[1] - lower[2]))]
    if upper is not None and s.strut is None:
        planes.append((upper[2], np.cross(upper[0] - upper[2], upper[1] - upper[2])))
    else:
        low, high = s.strut
        planes.append((high, high - low))
    front = s.contact.copy()
    front[:, 0] = s.centre[:, 0]
    (n, r), (m, q) = ((unit(n), dot(unit(n), p - front)) for p, n in planes)
    across = q[:, None] * n - r[:, None] * m
    return s.contact[:, 1] * across[:, 1] / across[:, 2]


def slopes(d: Drawn, roles: Roles, pose: Pose, z: Any, rack: Any, along: str) -> dict[str, Any]:
    """Derivatives of all columns along a motion, by a complex step."""
    step = 1j * H
    there = (z + step, rack + 0j) if along == "travel" else (z + 0j, rack + step)
    now = Pose(pose.r + 0j, pose.m + 0j)
    found = columns(d, roles, state(d, roles, now, *there))
    return {name: x.imag / H for name, x in found.items()}
