"""`Scene`: what is drawn of a mechanism, with concrete numbers; it knows of no renderer.

The view on it and the grid on its ground follow from its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.io import Imported
from jaxmbd.kinematics import Pose
from jaxmbd.model import GROUND, Mechanism, PointRef, in_space
from jaxmbd.viz.gear_glyphs import belt_spans, gear_solid, gear_wheels, rack_solid, racks
from jaxmbd.viz.glyphs import (
    Colour,
    Solid,
    Span,
    Wheel,
    attachments,
    drawn_joints,
    floor_height,
    force_solids,
    joint_solids,
    link_shape,
    shape_mesh,
    spans,
    wheel_solids,
)
from jaxmbd.viz.solids import frame_along

_EYE = np.array([0.55, -0.75, 0.38])
"""Direction from the middle of the scene to the camera: along two axes across `up`, and `up`."""
FIELD = np.radians(32.0)
"""Vertical field of view of the camera [rad]."""
_ASPECT, _MARGIN = 1.5, 1.05
"""Width of the picture over its height, and the room around what is seen."""


class Camera(NamedTuple):
    """A perspective view: `axes` (3, 3) are its right, up and backward directions."""

    position: np.ndarray
    axes: np.ndarray

    def seen(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Picture coordinates (…, 2) and depths (…) [m] of points (…, 3)."""
        local = (x - self.position) @ self.axes.T
        depth = -local[..., 2]
        return local[..., :2] / depth[..., None], depth


def camera(scene: Scene) -> Camera:
    """A view of the whole scene: along the normal of a planar one."""
    up = scene.up
    across = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
    across = across - (across @ up) * up
    across /= np.linalg.norm(across)
    level = np.stack([across, np.cross(up, across), up])
    back = np.eye(3)[2] if scene.mech.structure.planar else _EYE / np.linalg.norm(_EYE) @ level
    right = np.cross(up, back)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(back, right), back])
    wide, high, deep = np.abs(axes) @ scene.half
    away = _MARGIN * max(high, wide / _ASPECT) / np.tan(0.5 * FIELD) + deep
    return Camera(scene.centre + away * back, axes)


def below(scene: Scene) -> np.ndarray:
    """The point (3,) [m] of the ground under the middle of the scene."""
    return scene.centre + (scene.floor - scene.centre @ scene.up) * scene.up


def cell_size(scene: Scene) -> float:
    """Spacing of the grid on the ground [m]."""
    return round_number(scene.size / 8.0)


def grid_lines(scene: Scene) -> np.ndarray:
    """The grid's lines (n, 2, 3) [m], eight cells to each side."""
    x = np.linspace(-1.0, 1.0, 17)
    ends = np.stack([np.stack([x, -np.ones_like(x)], 1), np.stack([x, np.ones_like(x)], 1)], 1)
    both = 8.0 * cell_size(scene) * np.concatenate([ends, ends[..., ::-1]])
    return below(scene) + both @ frame_along(scene.up)[:, :2].T


def round_number(x: float, digits: Sequence[float] = (1.0, 2.0, 5.0, 10.0)) -> float:
    """The nearest to x > 0 of some digits times its power of ten."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(round(power * min(digits, key=lambda k: abs(k - x / power)), 12))


def point_bodies(mech: Mechanism) -> dict[str, str]:
    """Named points to the bodies that they are drawn on; the ground's where no part says more."""
    found: dict[str, str] = {}
    places = [end for joint in mech.joints.values() for end in joint.attachments]
    acting = [end for force in mech.forces.values() for end in force.attachments]
    places += [(body, ref) for body, ref in acting if body in mech.bodies]
    places += [(name, body.com) for name, body in mech.bodies.items()]
    for body, ref in places:
        if isinstance(ref, PointRef):
            found.setdefault(ref.name, body)
    return dict.fromkeys(mech.structure.points, GROUND) | found


BODIES: tuple[Colour, ...] = (
    (0.25, 0.42, 0.60, 1.0),
    (0.38, 0.60, 0.45, 1.0),
    (0.24, 0.56, 0.60, 1.0),
    (0.47, 0.44, 0.66, 1.0),
    (0.80, 0.64, 0.28, 1.0),
    (0.56, 0.60, 0.30, 1.0),
    (0.62, 0.45, 0.36, 1.0),
    (0.66, 0.48, 0.60, 1.0),
)
"""Colours of bodies in turn."""


class Placement(NamedTuple):
    """Where a mesh is: x becomes ``rotation (x · (1, 1, stretch)) + position``."""

    rotation: np.ndarray
    position: np.ndarray
    stretch: float = 1.0

    def put(self, x: np.ndarray) -> np.ndarray:
        """Points (n, 3) [m] or one (3,) where they are then."""
        return (x * (1.0, 1.0, self.stretch)) @ self.rotation.T + self.position


@dataclass(frozen=True, eq=False)
class Scene:
    """What is drawn of a mechanism: links, joints, springs, dampers, wheels, imported shapes.

    Attributes:
        mech: the mechanism.
        solids: parts that move with a body.
        spans: parts between two bodies.
        centre: middle of it as drawn (3,) [m].
        half: half lengths of what encloses it (3,) [m].
        glyph: radius of a ball joint in the picture [m].
        up: unit vector against gravity (3,).
        floor: height of the ground along `up` [m].
        grounded: whether that is a plane of an imported model.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import Scene
        >>> scene = Scene.of(mbd.zoo.double_wishbone())
        >>> [span.name for span in scene.spans][:2]
        ['tierod', 'spring']
    """

    mech: Mechanism
    solids: tuple[Solid, ...]
    spans: tuple[Span, ...]
    centre: np.ndarray
    half: np.ndarray
    glyph: float
    up: np.ndarray
    floor: float
    grounded: bool = False

    @staticmethod
    def of(
        model: Mechanism | Imported,
        *,
        wheels: Iterable[Wheel] = (),
        marked: Iterable[tuple[str, Any]] = (),
        glyph: float | None = None,
    ) -> Scene:
        """The scene of a mechanism, or of an imported model with its shapes.

        Args:
            model: the mechanism, with concrete numbers.
            wheels: wheels to be drawn beside those of tyres (see `corner_wheel`).
            marked: pairs (body, point) of points that the picture of a body without shapes of its
                own reaches as it does its hardpoints.
            glyph: radius of a ball joint in the picture [m]; by default in proportion to the
                mechanism.

        Raises:
            ValueError: a wheel is on a body that is not there.
        """
        mech = model.mechanism if isinstance(model, Imported) else model
        shapes = model.shapes if isinstance(model, Imported) else {}
        drawn = in_space(mech)
        wheels = tuple(wheels)
        if missing := [w.body for w in wheels if w.body not in mech.structure.bodies]:
            raise ValueError(f"wheels on {missing}; the bodies are {list(mech.structure.bodies)}")
        points = attachments(drawn)
        s = glyph or _glyph_size(drawn, points)
        dressed = _dressed(drawn, shapes)
        reached = [(body, np.asarray(mech.point(point))) for body, point in marked]
        solids = [*_shapes(shapes), *_links(drawn, points, s, dressed, reached)]
        solids += [x for x in _elements(drawn, s) if x.body not in dressed]
        for wheel in wheels:
            solids += wheel_solids("wheel", wheel)
        every = np.concatenate([*(x.mesh.vertices for x in solids), *points.values()])
        low, high = every.min(axis=0), every.max(axis=0)
        up, between = _upwards(drawn, mech.structure.planar), drawn.joints | drawn.forces
        floor = floor_height(shapes.values(), up)
        below = 0.0 if wheels else 0.05 * float(np.linalg.norm(high - low))
        lowest = float(np.min(every @ up)) - below
        return Scene(
            mech,
            tuple(solids),
            (
                *(x for n, y in between.items() for x in spans(drawn, n, y, s)),
                *belt_spans(drawn, s),
            ),
            0.5 * (low + high),
            0.5 * (high - low),
            s,
            up,
            lowest if floor is None else floor,
            floor is not None,
        )

    @property
    def size(self) -> float:
        """Diagonal of what encloses it [m]."""
        return 2.0 * float(np.linalg.norm(self.half))

    def ghost(self) -> Scene:
        """The same scene with what moves alone, and nothing that one looks through, as tyres."""
        solids = (x for x in self.solids if x.body != GROUND and x.colour[3] >= 1.0)
        return replace(self, solids=tuple(solids))

    def reaching(self, points: np.ndarray) -> Scene:
        """The same scene on a stage that encloses further points (n, 3) [m].

        Points that fly away from it farther than thrice its size do not make all else small.
        """
        reach = 1.5 * self.size
        near = np.clip(points, self.centre - reach, self.centre + reach)
        low = np.minimum(near.min(axis=0), self.centre - self.half)
        high = np.maximum(near.max(axis=0), self.centre + self.half)
        floor = self.floor if self.grounded else min(self.floor, float(np.min(near @ self.up)))
        return replace(self, centre=0.5 * (low + high), half=0.5 * (high - low), floor=floor)

    def solid_placement(self, body: str, poses: Mapping[str, Pose]) -> Placement:
        """Where the solids of a body are at some poses of all bodies."""
        if body == GROUND:
            return Placement(np.eye(3), np.zeros(3))
        r, x = np.asarray(poses[body].rotation), np.asarray(poses[body].position)
        return Placement(r, x - r @ np.asarray(self.mech.com(body)))

    def span_placement(self, span: Span, poses: Mapping[str, Pose]) -> Placement:
        """Where a span is at some poses of all bodies."""
        a = self.solid_placement(span.a, poses).put(span.at_a)
        b = self.solid_placement(span.b, poses).put(span.at_b)
        drawn = float(np.linalg.norm(span.at_b - span.at_a))
        length = float(np.linalg.norm(b - a))
        start, end = (b, a) if span.fit == "from b" else (a, b)
        frame = frame_along(end - start) if length > 1e-9 * drawn else np.eye(3)
        return Placement(frame, start, length / drawn if span.fit == "stretched" else 1.0)


def _dressed(mech: Mechanism, shapes: Mapping[str, Any]) -> set[str]:
    """Bodies of which the shapes are all that is drawn: those of a model that has shapes."""
    found = {shape.body for shape in shapes.values() if shape.kind != "plane"}
    return found | {b for b in mech.structure.bodies if found and not mech.bodies[b].mass > 0.0}


def _upwards(mech: Mechanism, planar: bool) -> np.ndarray:
    """Unit vector against gravity; without any along z, or along y of one that lies in a plane."""
    gravity = np.asarray(mech.field())
    if np.any(gravity):
        return -gravity / np.linalg.norm(gravity)
    return np.eye(3)[1 if planar else 2]


def _glyph_size(mech: Mechanism, points: Mapping[str, np.ndarray]) -> float:
    """Radius of a ball joint: in proportion to the mechanism, but small where joints are dense."""
    every = np.concatenate([*points.values(), *([mech.com(b)] for b in mech.structure.bodies)])
    every = np.unique(np.round(every, 9), axis=0)
    size = float(np.linalg.norm(np.ptp(every, axis=0)))
    if len(every) < 2 or size == 0.0:
        return 0.05
    distance = np.linalg.norm(every[:, None] - every, axis=-1)
    np.fill_diagonal(distance, np.inf)
    near = float(np.median(distance.min(axis=1)))
    return float(np.clip(0.16 * near, 0.005 * size, 0.018 * size))


def _shapes(shapes: Mapping[str, Any]) -> Iterable[Solid]:
    for name, shape in shapes.items():
        if (mesh := shape_mesh(shape)) is not None:
            yield Solid(name, shape.body, mesh, tuple(shape.colour))  # type: ignore[arg-type]


def _links(
    mech: Mechanism,
    points: Mapping[str, np.ndarray],
    s: float,
    dressed: set[str],
    marked: list[tuple[str, np.ndarray]],
) -> Iterable[Solid]:
    for k, body in enumerate(mech.structure.bodies):
        if body in dressed:
            continue
        further = [x for on, x in marked if on == body]
        mesh = link_shape(mech, body, points[body], 0.5 * s, further)
        if len(mesh.faces):
            yield Solid(body, body, mesh, BODIES[k % len(BODIES)])


def _elements(mech: Mechanism, s: float) -> Iterable[Solid]:
    """The parts of joints and force elements that move with one body."""
    for name, joint in drawn_joints(mech).items():
        yield from joint_solids(mech, name, joint, s)
    for name, force in mech.forces.items():
        yield from force_solids(mech, name, force, s)
    for wheel in gear_wheels(mech):
        yield gear_solid(wheel, s)
    for rack in racks(mech):
        yield rack_solid(rack, s)
