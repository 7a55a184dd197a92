"""Kinematic diagrams: a mechanism in a plane view as lines, circles and names, without a renderer.

Lengths are those of the mechanism [m]; symbols are in proportion to the size of the drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from jaxmbd.kinematics import Pose
from jaxmbd.model import (
    GROUND,
    AntiRollBar,
    BumpStop,
    ElasticConnection,
    Look,
    Mechanism,
    PacejkaTyre,
    SpringDamper,
    TorsionSpring,
    Tyre,
    with_directions,
)
from jaxmbd.viz.gear_glyphs import WORM, GearWheel, Loop, belt_loops, gear_wheels, racks, strands
from jaxmbd.viz.glyphs import (
    Wheel,
    attachments,
    bearing_points,
    drawn_joints,
    floats,
    wheel_of_tyre,
)
from jaxmbd.viz.plane_view import View
from jaxmbd.viz.solids import frame_along

Style = Literal["plate", "link", "pitch", "line", "thin", "symbol", "solid", "trace"]
"""How it is drawn: a filled plate, a thick line, dash-dotted, a line, a thin one, a white symbol
with an outline, a dark one, the path of a point."""

_ACROSS = 100.0
"""Size of the drawing over the radius of a pin."""
_ROUND = np.linspace(0.0, 2.0 * np.pi, 73)


class Line(NamedTuple):
    """A polyline through points (n, 2) [m]; `layer` is the body or element that it belongs to."""

    layer: str
    points: np.ndarray
    style: Style
    closed: bool = False


class Circle(NamedTuple):
    """A circle about a centre (2,) [m]."""

    layer: str
    centre: np.ndarray
    radius: float
    style: Style


class Name(NamedTuple):
    """A name of a link, a joint or a point, near a place (2,) [m]."""

    layer: str
    text: str
    near: np.ndarray
    kind: Literal["link", "joint", "point"]


class Drawing(NamedTuple):
    """A kinematic diagram.

    Attributes:
        view: its plane.
        pin: radius of a pin [m].
        parts: lines and circles, what is drawn first before.
        names: of links, joints and points.
    """

    view: View
    pin: float
    parts: tuple[Line | Circle, ...]
    names: tuple[Name, ...]

    def bounds(self) -> np.ndarray:
        """Lowest and highest coordinates (2, 2) [m] of its parts."""
        return bounds_of(self.parts)


def bounds_of(parts: Iterable[Line | Circle]) -> np.ndarray:
    """Lowest and highest coordinates (2, 2) [m] of lines and circles."""
    ends = [
        x.points if isinstance(x, Line) else x.centre + x.radius * np.array([[-1.0], [1.0]])
        for x in parts
    ]
    every = np.concatenate([*ends, np.zeros((0, 2))])
    if not len(every):
        return np.array([[-0.5, -0.5], [0.5, 0.5]])
    return np.stack([every.min(axis=0), every.max(axis=0)])


def draw(
    mech: Mechanism,
    poses: Mapping[str, Pose],
    view: View,
    *,
    wheels: Sequence[Wheel] = (),
    traces: Sequence[tuple[str, Any, np.ndarray]] = (),
) -> Drawing:
    """The diagram of a mechanism.

    Args:
        mech: the mechanism, in space.
        poses: of its bodies.
        view: on which plane.
        wheels: to be drawn beside those of tyres.
        traces: bodies, points of them as drawn (3,) [m], and their paths (n, 3) [m].
    """
    paths = [Line(body, view.flat(path), "trace") for body, _, path in traces]
    size = 1.0
    for scale in (1e-6, 1.0):  # the first time for the size of the drawing without its symbols
        sheet = _Sheet(mech, poses, view, scale * size / _ACROSS)
        sheet.draw(wheels, [(body, np.asarray(x)) for body, x, _ in traces])
        low, high = bounds_of([*paths, *sheet.parts])
        size = float(np.max(high - low)) or 1.0
    return Drawing(view, sheet.pin, (*paths, *sheet.parts), tuple(sheet.names))


class _Sheet:
    """A drawing in the making."""

    def __init__(self, mech: Mechanism, poses: Mapping[str, Pose], view: View, pin: float):
        self.mech, self.poses, self.view, self.pin = mech, poses, view, pin
        self.parts: list[Line | Circle] = []
        self.names: list[Name] = []
        self.joints = {
            n: with_directions(x, mech.point)
            for n, x in drawn_joints(mech).items()
            if not floats(mech, x)
        }
        self.nodes: dict[str, np.ndarray] = {}

    def at(self, body: str, x: Any) -> np.ndarray:
        """Where drawn points (…, 3) [m] of a body are in the picture (…, 2)."""
        return self.view.flat(self.placed(body, x))

    def placed(self, body: str, x: Any) -> np.ndarray:
        """Where drawn points (…, 3) [m] of a body are in space."""
        x = np.asarray(x, float)
        if body == GROUND:
            return x
        pose, com = self.poses[body], np.asarray(self.mech.com(body))
        return (x - com) @ np.asarray(pose.rotation).T + np.asarray(pose.position)

    def across(self, body: str, axis: Any) -> tuple[np.ndarray, float]:
        """Components (2,) of a drawn direction of a body, made one long, and their length."""
        axis = np.asarray(axis, float) / np.linalg.norm(axis)
        flat = self.at(body, axis) - self.at(body, np.zeros(3))
        length = float(np.linalg.norm(flat))
        return (flat / length if length > 1e-9 else np.array([1.0, 0.0])), length

    def line(self, layer: str, points: Any, style: Style, closed: bool = False) -> None:
        self.parts.append(Line(layer, np.asarray(points, float), style, closed))

    def ring(self, layer: str, body: str, at: Any, axis: Any, radius: float, style: Style) -> None:
        """A circle of a body about an axis, as it is seen."""
        frame, at = frame_along(axis), np.asarray(at, float)
        round_ = np.stack([np.cos(_ROUND), np.sin(_ROUND)], axis=1)
        rim = self.at(body, at + radius * round_ @ frame[:, :2].T)
        _, length = self.across(body, axis)
        if length < 1e-6:
            self.parts.append(Circle(layer, self.at(body, at), radius, style))
        else:
            self.line(layer, rim, style, closed=True)

    # What there is

    def draw(self, wheels: Sequence[Wheel], traced: Sequence[tuple[str, np.ndarray]]) -> None:
        """Links first, then force elements, and joints above them.

        Args:
            wheels: beside those of tyres.
            traced: bodies and points of them (3,) [m].
        """
        reached = [*traced, *((w.body, np.asarray(w.centre, float)) for w in wheels)]
        for body, points in attachments(self.mech).items():
            own = [x for on, x in reached if on == body]
            every = np.concatenate([points, np.reshape(own, (-1, 3))])
            self.nodes[body] = _apart(self.at(body, every))
        for wheel in (*wheels, *self._tyres()):
            self._wheel(wheel)
        wheels_of = self._pitch_circles()
        for body in self.mech.structure.bodies:
            self._link(body, body in wheels_of)
        for name, force in self.mech.forces.items():
            self._force(name, force)
        for name, joint in self.joints.items():
            self._joint(name, joint)
        for body, data in self.mech.bodies.items():
            for ref in data.markers or ():
                at = self.at(body, self.mech.point(ref))
                self.parts.append(Circle(body, at, 0.45 * self.pin, "solid"))
                self.names.append(Name(body, ref.name, at, "point"))
        for body, x in traced:
            self.parts.append(Circle(body, self.at(body, x), 0.45 * self.pin, "solid"))

    def _link(self, body: str, has_wheel: bool) -> None:
        """A bar through its nodes, or a plate around them; with one node a bar to its mass."""
        nodes = self.nodes[body]
        com = self.at(body, self.mech.com(body))
        if len(nodes) < 2:
            if len(nodes) and np.linalg.norm(com - nodes[0]) > self.pin and not has_wheel:
                self.line(body, [nodes[0], com], "link")
            if not has_wheel and not (len(nodes) and np.linalg.norm(com - nodes[0]) <= self.pin):
                self.parts.append(Circle(body, com, 1.4 * self.pin, "solid"))
            self.names.append(Name(body, body, com, "link"))
            return
        outline = _outline(nodes)
        self.line(body, outline, "link" if len(outline) == 2 else "plate", len(outline) > 2)
        middle = outline[:2].mean(axis=0) if len(outline) == 2 else outline.mean(axis=0)
        self.names.append(Name(body, body, middle, "link"))

    def _pitch_circles(self) -> set[str]:
        """Gears and pulleys by their pitch circles, with belts and racks; the bodies that have one.

        A mark shows how far a wheel has turned.
        """
        wheels = gear_wheels(self.mech)
        for wheel in wheels:
            self._gear(wheel)
        for loop in belt_loops(self.mech):
            self._belt(loop)
        for rack in racks(self.mech):
            ends = rack.at + np.outer([-2.0, 2.0], rack.pinion.radius * rack.along)
            self.line(rack.body, self.at(rack.pinion.frame, ends), "pitch")
        return {wheel.body for wheel in wheels}

    def _gear(self, wheel: GearWheel) -> None:
        """A pitch circle with a mark; of bevel gears the pitch cone, of a worm its cylinder."""
        frame = frame_along(wheel.axis)
        rim = wheel.radius * np.stack([np.cos(_ROUND), np.sin(_ROUND)], 1) @ frame[:, :2].T
        _, length = self.across(wheel.body, wheel.axis)
        shaft = self.at(wheel.frame, np.stack([wheel.at, wheel.bearing]))
        if np.linalg.norm(shaft[1] - shaft[0]) > self.pin:
            self.line(wheel.body, shaft, "line")
        if wheel.thread is not None and length > 1e-6:
            half = 0.5 * WORM * wheel.radius * wheel.axis
            ends = np.concatenate([wheel.at + rim + half, wheel.at + rim - half])
            self.line(wheel.body, _outline(self.at(wheel.body, ends)), "pitch", closed=True)
            return
        self.ring(wheel.body, wheel.body, wheel.at, wheel.axis, wheel.radius, "pitch")
        if wheel.apex is not None and length > 1e-6:
            cone = np.concatenate([wheel.at + rim, wheel.apex[None]])
            self.line(wheel.body, _outline(self.at(wheel.body, cone)), "pitch", closed=True)
        side = np.cross(np.cross(wheel.axis, self.view.axes[1]), wheel.axis)
        side = side / (np.linalg.norm(side) or 1.0)
        mark = wheel.at + wheel.radius * np.outer([0.85, 1.0], side)
        self.line(wheel.body, self.at(wheel.body, mark), "line")

    def _belt(self, loop: Loop) -> None:
        """The straight parts of a belt, where the pulleys are."""
        a, b = (self.placed(x.body, x.at) for x in (loop.a, loop.b))
        u = self.placed(loop.a.frame, loop.a.at + loop.a.axis) - self.placed(
            loop.a.frame, loop.a.at
        )
        for ends in strands(a, b, u / np.linalg.norm(u), loop):
            self.line(loop.name, self.view.flat(np.stack(ends)), "thin")

    def _tyres(self) -> list[Wheel]:
        tyres = (x for x in self.mech.forces.values() if isinstance(x, (Tyre, PacejkaTyre)))
        return [wheel_of_tyre(self.mech, x) for x in tyres]

    def _wheel(self, wheel: Wheel) -> None:
        """The outline of a tyre, a rectangle from in front or behind."""
        width = 0.6 * wheel.radius if wheel.width is None else wheel.width
        frame, at = frame_along(wheel.axis), np.asarray(wheel.centre, float)
        round_ = np.stack([np.cos(_ROUND), np.sin(_ROUND)], axis=1)
        rim = wheel.radius * round_ @ frame[:, :2].T
        ends = [at + rim + side * width * frame[:, 2] for side in (-0.5, 0.5)]
        outline = _outline(self.at(wheel.body, np.concatenate(ends)))
        self.line(wheel.body, outline, "thin", closed=True)

    # Force elements

    def _force(self, name: str, force: Any) -> None:
        if isinstance(force, TorsionSpring):
            self._spiral(name, force)
        elif isinstance(force, ElasticConnection) and force.replaced_joint is None:
            _, _, body, at = force.connected
            for radius in (1.4, 0.9):
                centre = self.at(body, self.mech.point(at))
                self.parts.append(Circle(name, centre, radius * self.pin, "symbol"))
            self.names.append(Name(name, name, centre, "joint"))
        elif isinstance(force, (SpringDamper, BumpStop, AntiRollBar)):
            self._strut(name, force)

    def _strut(self, name: str, force: Any) -> None:
        """A zigzag, a dashpot or both, between two points."""
        a, b = getattr(force, "a", GROUND), force.b
        ends = [self.at(x, self.mech.point(at)) for x, at in ((a, force.at_a), (b, force.at_b))]
        along = ends[1] - ends[0]
        length = float(np.linalg.norm(along))
        if length < 4.0 * self.pin:
            return
        frame = np.stack([along / length, [-along[1] / length, along[0] / length]])
        damps = isinstance(force, SpringDamper) and bool(np.any(np.asarray(force.damping)))
        springs = not damps or bool(np.any(np.asarray(force.stiffness))) or force.law is not None
        apart = 1.3 * self.pin if springs and damps else 0.0
        if springs:
            self.line(name, ends[0] + _zigzag(length, self.pin, apart) @ frame, "line")
        if damps:
            for piece in _dashpot(length, self.pin, -apart):
                self.line(name, ends[0] + piece @ frame, "line")
        if apart:
            for x in (0.15, 0.85):
                bar = np.array([[x * length, -apart], [x * length, apart]])
                tip = np.array([[x * length, 0.0], [length if x > 0.5 else 0.0, 0.0]])
                self.line(name, ends[0] + bar @ frame, "line")
                self.line(name, ends[0] + tip @ frame, "line")
        for body, end, way in ((a, ends[0], frame[0]), (b, ends[1], -frame[0])):
            if body == GROUND:
                self._hatched(GROUND, end, way, 1.6 * self.pin)
            else:
                self.parts.append(Circle(name, end, 0.5 * self.pin, "symbol"))
        self.names.append(Name(name, name, 0.5 * (ends[0] + ends[1]), "link"))

    def _spiral(self, name: str, spring: TorsionSpring) -> None:
        joint = self.joints.get(spring.joint)
        if joint is None or joint.bearing_axis() is None:
            return
        u = np.linspace(0.0, 1.0, 60)
        r, angle = self.pin * (1.1 + 1.5 * u), 4.0 * np.pi * u
        centre = self.at(joint.b, self.mech.point(joint.point_b))
        self.line(name, centre + np.stack([r * np.cos(angle), r * np.sin(angle)], 1), "thin")

    # Joints

    def _joint(self, name: str, joint: Any) -> None:
        looks = joint.looks()
        form = looks[0].form
        places = self._bearings(joint)
        if form == "rod":
            self._rod(name, joint)
            return
        if form == "curve":
            self._curve(name, joint, looks)
        elif form in ("block", "rail", "sheet"):
            self._slider(name, joint, looks[0])
        else:
            for place in places:
                for body in (joint.a, joint.b):
                    if body == GROUND:
                        self._support(place)
                self._bearing(name, joint, looks[0], place)
        if name not in self.mech.bodies:
            self.names.append(Name(name, name, places[0], "joint"))

    def _bearings(self, joint: Any) -> np.ndarray:
        """Where it is (n, 2) [m], as its half on b is."""
        at_a, at_b = (np.asarray(self.mech.point(x)) for x in (joint.point_a, joint.point_b))
        return self.at(joint.b, bearing_points(self.mech, joint) - at_a + at_b)

    def _bearing(self, name: str, joint: Any, look: Look, place: np.ndarray) -> None:
        """A pin, a ball, a cross, a weld, or a sleeve that is seen from its side."""
        body = joint.a if look.on == "a" else joint.b
        if look.form == "cube":
            self._box(name, place, np.array([1.0, 0.0]), (0.8, 0.8), "solid")
            return
        way, length = (np.zeros(2), 0.0) if look.axis is None else self.across(body, look.axis)
        if look.form in ("housing", "sleeve", "nut") and length > 0.5:
            self._box(name, place, way, (2.0, 0.8), "symbol")
            if look.form != "housing":
                ends = np.outer([-3.2, 3.2], self.pin * way)
                self.line(name, place + ends, "line")
            return
        self.parts.append(Circle(name, place, self.pin, "symbol"))
        if look.form == "ball":
            self.parts.append(Circle(name, place, 0.5 * self.pin, "solid"))
        elif look.form == "cross":
            for x in ([1.0, 0.0], [0.0, 1.0]):
                self.line(name, place + np.outer([-1.0, 1.0], self.pin * np.array(x)), "line")

    def _box(
        self, layer: str, at: np.ndarray, way: np.ndarray, half: tuple[float, float], style: Style
    ) -> None:
        """A rectangle along a direction, with half lengths in radii of a pin."""
        frame = self.pin * np.stack([half[0] * way, half[1] * np.array([-way[1], way[0]])])
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], float) @ frame
        self.line(layer, at + corners, style, closed=True)

    def _support(self, at: np.ndarray) -> None:
        """A triangle on hatched ground below a pin."""
        foot = self.pin * np.array([[0.0, 0.0], [-1.7, -2.8], [1.7, -2.8]])
        self.line(GROUND, at + foot, "symbol", closed=True)
        self._hatched(GROUND, at + np.array([0.0, -2.8 * self.pin]), np.array([0.0, 1.0]), None)

    def _hatched(self, layer: str, at: np.ndarray, way: np.ndarray, half: float | None) -> None:
        """A line across a direction with hatching on the other side of it."""
        half = 2.6 * self.pin if half is None else half
        side = np.array([way[1], -way[0]])
        self.line(layer, at + np.outer([-half, half], side), "line")
        step = 0.8 * self.pin
        for x in np.arange(-half + 0.5 * step, half, step):
            start = at + x * side
            self.line(layer, [start, start - 0.8 * self.pin * (way + 0.8 * side)], "thin")

    def _slider(self, name: str, joint: Any, look: Look) -> None:
        """A block on a guide, hatched where it is the ground's, or a point on a line or a plane."""
        guide, block = joint.a, joint.b
        if look.form == "block" and self._is_block(joint):
            guide, block = block, guide
        own, other = (
            (joint.point_a, joint.point_b) if guide == joint.a else (joint.point_b, joint.point_a)
        )
        at, start = self.at(block, self.mech.point(other)), self.at(guide, self.mech.point(own))
        way, length = self.across(guide, look.axis)
        if look.form == "sheet":  # a plane, seen from its side
            if length < 0.1:
                return
            way = np.array([-way[1], way[0]])
        elif length < 0.1:  # along the view: what is on a line there turns about it
            if look.form == "block":
                self._box(name, at, way, (1.3, 1.3), "symbol")
                return
            if guide == GROUND:
                self._support(at)
            self.parts.append(Circle(name, at, self.pin, "symbol"))
            return
        half = 1.2 if look.form == "block" else 1.0
        if guide == GROUND:
            below = np.array([-way[1], way[0]])
            below = -below if below[1] > 1e-9 else below
            self._hatched(GROUND, at + half * self.pin * below, -below, 6.0 * self.pin)
        else:
            here = [(at - start) @ way + x * 3.0 * self.pin for x in (-1.0, 1.0)]
            nodes = self.nodes[guide]
            off = (nodes - start) @ np.array([-way[1], way[0]])
            here += list(((nodes - start) @ way)[np.abs(off) < 0.5 * self.pin])
            self.line(guide, start + np.outer([min(here), max(here)], way), "link")
        if look.form == "block":
            self._box(name, at, way, (2.2, half), "symbol")
            joined = [x for x in self.nodes[block] if np.linalg.norm(x - at) < 1e-6]
            if not joined:
                self.parts.append(Circle(name, at, 0.4 * self.pin, "solid"))
        else:
            self.parts.append(Circle(name, at, half * self.pin, "symbol"))

    def _is_block(self, joint: Any) -> bool:
        """Whether a is the block of a sliding pair: b is the ground, or reaches farther."""
        if GROUND in (joint.a, joint.b):
            return joint.b == GROUND
        reach = []
        for body, ref in joint.attachments:
            away = self.nodes[body] - self.at(body, self.mech.point(ref))
            reach.append(float(np.linalg.norm(away, axis=1).max(initial=0.0)))
        return reach[1] > reach[0] + self.pin

    def _rod(self, name: str, joint: Any) -> None:
        """A link with two balls."""
        ends = [self.at(body, self.mech.point(ref)) for body, ref in joint.attachments]
        self.line(name, ends, "link")
        self.names.append(Name(name, name, 0.5 * (ends[0] + ends[1]), "link"))
        for (body, _), end in zip(joint.attachments, ends, strict=True):
            if body == GROUND:
                self._support(end)
            self.parts.append(Circle(name, end, self.pin, "symbol"))
            self.parts.append(Circle(name, end, 0.5 * self.pin, "solid"))

    def _curve(self, name: str, joint: Any, looks: Sequence[Look]) -> None:
        """A curve or a cam of a, and the point, the ball or the roller of b on it."""
        path = np.asarray(self.mech.point(joint.point_a)) + np.asarray(looks[0].detail)
        closed = np.linalg.norm(path[-1] - path[0]) < 1e-6 * np.ptp(path, axis=0).max()
        points = self.at(joint.a, path[:-1] if closed else path)
        self.line(joint.a, points, "plate" if closed else "link", closed=bool(closed))
        at = self.mech.point(joint.point_b)
        if looks[1].form == "roller":
            self.ring(joint.b, joint.b, at, looks[1].axis, float(looks[1].detail), "symbol")
        self.parts.append(Circle(name, self.at(joint.b, at), 0.5 * self.pin, "solid"))


def _apart(points: np.ndarray) -> np.ndarray:
    """Points (n, 2) without repeats, in their order."""
    found: list[np.ndarray] = []
    for x in points:
        if all(np.linalg.norm(x - y) > 1e-9 * (1.0 + np.linalg.norm(x)) for y in found):
            found.append(x)
    return np.reshape(found, (-1, 2))


def _outline(points: np.ndarray) -> np.ndarray:
    """Corners (m, 2) of the convex hull of points (n, 2), or the two ends of those in a line."""
    middle = points.mean(axis=0)
    _, size, axes = np.linalg.svd(points - middle)
    if len(points) > 2 and size[1] > 1e-3 * size[0]:
        try:
            return points[ConvexHull(points).vertices]
        except QhullError:
            pass  # in a line but for rounding
    along = (points - middle) @ axes[0]
    return points[[int(np.argmin(along)), int(np.argmax(along))]]


def _zigzag(length: float, pin: float, shift: float) -> np.ndarray:
    """A spring (n, 2) along x from 0 to `length`, beside the axis by `shift`."""
    low, high = (0.15, 0.85) if shift else (0.12, 0.88)
    count = int(np.clip(length / (1.2 * pin), 8, 16)) // 2 * 2
    x = np.linspace(low * length, high * length, 2 * count + 1)[1::2]
    y = shift + 1.1 * pin * np.resize([1.0, -1.0], count)
    ends = [(low * length, shift)], [(high * length, shift)]
    if not shift:
        ends = [(0.0, 0.0), *ends[0]], [*ends[1], (length, 0.0)]
    return np.concatenate([ends[0], np.stack([x, y], axis=1), ends[1]])


def _dashpot(length: float, pin: float, shift: float) -> list[np.ndarray]:
    """Pot, piston and rods of a damper along x from 0 to `length`, beside the axis."""
    low, high = (0.15, 0.85) if shift else (0.0, 1.0)
    pot, piston, lip = 0.38 * length, 0.5 * length, 0.62 * length
    w = 0.9 * pin
    pieces = [
        [(low * length, 0.0), (pot, 0.0)],
        [(lip, w), (pot, w), (pot, -w), (lip, -w)],
        [(piston, 0.8 * w), (piston, -0.8 * w)],
        [(piston, 0.0), (high * length, 0.0)],
    ]
    return [np.array(x) + (0.0, shift) for x in pieces]
