"""Joints of a USD stage, drawn where the stage is.

A joint has a frame on either body. Where the two agree to the digits of single precision they
become one, at the mean of their points and along the axis of the first, and axes that are parallel
to these digits become parallel: planar loops then have rows that are redundant, not contradictory.
What differs more is drawn apart (`at_b`, `axis_b`), and `assemble` closes it.

The coordinates of a mechanism are zero as drawn. Those of the stage are zero where both frames
agree: `Coordinate.start` is the difference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmbd.io.usd.stage import Drawn, choice, names_of, numbers, rotation, usd
from jaxmbd.model import (
    GROUND,
    Cylindrical,
    Fixed,
    Joint,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
)

DIGITS = 2e-6
"""Relative difference that single precision explains, after some transforms in a row."""
NO_CHANGE = 1e-12
"""Change [m or rad] that is not worth a note."""
MOST_TURNED = 1e-3
"""Largest turn [rad] between frames that a joint holds; it then stays as drawn."""


class Half(NamedTuple):
    """A joint's frame on one of its bodies: its origin (3,) [m] and its axes (3, 3)."""

    body: str
    at: np.ndarray
    axes: np.ndarray


class Coordinate(NamedTuple):
    """A coordinate of a joint.

    Attributes:
        joint: its name.
        prim: USD's joint.
        index: which of the joint's coordinates it is.
        names: how drives and limits name it, for example ("angular", "rotX").
        unit: of the file's values, pi/180 for degrees, or the stage's metre.
        effort: N·m or N of the stage's unit of its effort.
        start: the stage's coordinate as drawn [rad or m].
    """

    joint: str
    prim: Any
    index: int
    names: tuple[str, ...]
    unit: float
    effort: float
    start: float

    @property
    def slides(self) -> bool:
        """Whether it is a travel."""
        return self.names[0] == "linear"

    def number(self, pattern: str, default: float) -> float:
        """A number of the coordinate, by the name of its attribute with a star for its own."""
        tries = [numbers(self.prim, pattern.replace("*", name), np.nan) for name in self.names]
        return next((float(x) for x in tries if not np.isnan(x)), default)


class Joints:
    """The joints of a stage by name.

    Attributes:
        prims: USD's joints.
        joints: the mechanism's.
        coordinates: those of all joints but balls.
    """

    def __init__(self, drawn: Drawn):
        self.drawn = drawn
        found = [p for p in drawn.prims if p.IsA(usd("UsdPhysics").Joint)]
        names = names_of(found)
        self.prims = {names[str(prim.GetPath())]: prim for prim in found}
        self.joints: dict[str, Joint] = {}
        self.coordinates: list[Coordinate] = []
        self._axes: list[np.ndarray] = []
        self._moved: dict[str, float] = {}
        self._straightened: dict[str, float] = {}
        halves = {n: (self._half(p, 0), self._half(p, 1)) for n, p in self.prims.items()}
        places = [half.at for pair in halves.values() for half in pair]
        self._near = DIGITS * max((float(np.abs(x).max()) for x in places), default=0.0)
        for name, prim in self.prims.items():
            if not choice(prim, "physics:jointEnabled", True):
                drawn.left.add("joints that are not enabled", "absent", name)
            elif halves[name][0].body == halves[name][1].body:
                drawn.left.add("joints within one rigid body", "absent", name)
            else:
                self.joints[name] = self._joint(name, prim, *halves[name])

    @property
    def screws(self) -> set[str]:
        """Joints with several coordinates."""
        return {c.joint for c in self.coordinates if c.index}

    def changes(self) -> list[tuple[str, tuple[str, ...], str]]:
        """What was changed within the file's digits: what, of which joints, and by how much."""
        moved, turned = self._moved, self._straightened
        points = f"at their mean, moved by up to {max(moved.values(), default=0.0):.1g} m"
        axes = f"straightened by up to {max(turned.values(), default=0.0):.1g} rad"
        return [
            ("joint points that differ in their digits", tuple(moved), points),
            ("axes that differ in their digits", tuple(turned), axes),
        ]

    def _half(self, prim: Any, k: int) -> Half:
        targets = prim.GetRelationship(f"physics:body{k}").GetForwardedTargets()
        stage = self.drawn.stage
        on = stage.GetPrimAtPath(targets[0]) if targets else stage.GetPseudoRoot()
        if len(targets) > 1 or not on:
            raise ValueError(
                f"{prim.GetPath()}: its physics:body{k} names {list(map(str, targets))}; it must "
                "be one prim of the stage, or none for the world"
            )
        frame = self.drawn.frame(on)
        at = frame.origin + frame.linear @ numbers(prim, f"physics:localPos{k}", np.zeros(3))
        turn = rotation(numbers(prim, f"physics:localRot{k}", (1.0, 0.0, 0.0, 0.0)))
        return Half(self.drawn.owner(on) if targets else GROUND, at, frame.axes @ turn)

    def _joint(self, name: str, prim: Any, a: Half, b: Half) -> Joint:
        if prim.IsA(usd("UsdPhysics").DistanceJoint):
            return self._rod(prim, a, b)
        free = _free(prim)
        turns = [x[-1] for x in free if x[:3] == "rot"]
        slides = [x[-1] for x in free if x[:3] != "rot"]
        counts = len(turns), len(slides)
        ends = a.body, b.body
        if counts == (3, 0):
            at, at_b = self._points(name, a.at, b.at - a.at)
            return Spherical(*ends, at, at_b=at_b)
        if counts == (0, 0):
            self._held(name, prim, a.axes @ b.axes.T)
            at, at_b = self._points(name, a.at, b.at - a.at)
            return Fixed(*ends, at, at_b=at_b)
        along = (turns or slides)[0]
        if counts not in ((1, 0), (0, 1)) and not (counts == (1, 1) and turns == slides):
            raise ValueError(
                f"{prim.GetPath()}: a joint that leaves {', '.join(free)} free is none of "
                "jaxmbd's (of two angles, simulators differ in their order); lock axes of it by "
                "LimitAPI (low over high), or join bodies between"
            )
        i, j, k = ("XYZ".index(along) + n for n in (-2, -1, 0))
        if a.axes[:, k] @ b.axes[:, k] < 0.0:
            raise ValueError(f"{prim.GetPath()}: its frames' axes are opposed; turn one of them")
        axis = self._straight(name, a.axes[:, k])
        apart = np.linalg.norm(a.axes[:, k] - b.axes[:, k]) > DIGITS
        raised, gap = _between(b.axes[:, k], a.axes[:, k]) @ b.axes, b.at - a.at
        travel = float(axis @ gap) if slides else 0.0
        metre = self.drawn.metre
        if turns:
            twist = float(np.arctan2(a.axes[:, j] @ raised[:, i], a.axes[:, i] @ raised[:, i]))
            twist = 0.0 if abs(twist) <= DIGITS else twist
            effort = self.drawn.kilogram * metre**2
            place = ("angular", f"rot{along}"), np.radians(1.0), effort, twist
            self.coordinates.append(Coordinate(name, prim, 0, *place))
        else:
            self._held(name, prim, a.axes @ raised.T)
        if slides:
            place = ("linear", f"trans{along}"), metre, self.drawn.kilogram * metre, travel
            self.coordinates.append(Coordinate(name, prim, len(turns), *place))
        at, at_b = self._points(name, a.at, gap - axis * travel)
        axis_b = self._straight(name, b.axes[:, k]) if apart else None
        if turns and slides:
            return Cylindrical(*ends, at, axis, at_b=at_b, axis_b=axis_b)
        if turns:
            return Revolute(*ends, at, axis, at_b=at_b, axis_b=axis_b)
        return Prismatic(*ends, at, axis, at_b=at_b, axis_b=axis_b)

    def _rod(self, prim: Any, a: Half, b: Half) -> Joint:
        least, most = (numbers(prim, f"physics:{x}Distance", -1.0) for x in ("min", "max"))
        if not 0.0 < least == most:
            raise ValueError(
                f"{prim.GetPath()}: it keeps a distance between {least:g} and {most:g}, where a "
                "Rod has one; give both the same, or leave it out and add a BumpStop"
            )
        return Rod(a.body, b.body, a.at, b.at, length=least * self.drawn.metre)

    def _points(self, name: str, at: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, Any]:
        """The points of both halves; the second is None where they agree within the digits."""
        size = float(np.linalg.norm(gap))
        if size > self._near:
            return at, at + gap
        if size > NO_CHANGE:
            self._moved[name] = 0.5 * size
        return at + 0.5 * gap, None

    def _straight(self, name: str, axis: np.ndarray) -> np.ndarray:
        """A direction that is known, along or opposite, where that is the same in its digits."""
        for known in self._axes:
            along = known if known @ axis > 0.0 else 0.0 - known
            change = float(np.linalg.norm(axis - along))
            if change <= DIGITS:
                if change > NO_CHANGE:
                    self._straightened[name] = max(change, self._straightened.get(name, 0.0))
                return along
        self._axes.append(axis)
        return axis

    def _held(self, name: str, prim: Any, turn: np.ndarray) -> None:
        """Note a turn (3, 3) between frames of a joint that holds them; refuse a large one."""
        angle = float(np.linalg.norm(turn - turn.T) / np.sqrt(8.0))
        if angle > MOST_TURNED or np.trace(turn) < 1.0:
            raise ValueError(
                f"{prim.GetPath()}: as the stage is drawn its frames are turned apart, which the "
                "joint does not allow; pose the bodies so that they agree"
            )
        if angle > DIGITS:
            self.drawn.left.add("turns between joint frames", "held as drawn", name)


def _free(prim: Any) -> tuple[str, ...]:
    """The axes that a joint leaves free: "transX", …, "rotZ"."""
    api, along = usd("UsdPhysics"), choice(prim, "physics:axis", "X")
    if prim.IsA(api.FixedJoint):
        return ()
    if prim.IsA(api.RevoluteJoint):
        return (f"rot{along}",)
    if prim.IsA(api.PrismaticJoint):
        return (f"trans{along}",)
    if prim.IsA(api.SphericalJoint):
        return ("rotX", "rotY", "rotZ")
    every = [f"{kind}{axis}" for kind in ("trans", "rot") for axis in "XYZ"]
    return tuple(name for name in every if not _locked(prim, name))


def _locked(prim: Any, name: str) -> bool:
    low = numbers(prim, f"limit:{name}:physics:low", -np.inf)
    high = numbers(prim, f"limit:{name}:physics:high", np.inf)
    return bool(low > high or low == high == 0.0)


def _between(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The least rotation (3, 3) that takes one unit vector to another that is not opposed."""
    x, y, z = np.cross(first, second)
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + skew + skew @ skew / max(1.0 + first @ second, 1e-3)
