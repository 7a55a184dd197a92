"""Glyphs: the meshes that stand for bodies, joints, force elements and shapes of imported models.

A rigid body is bars and plates between its hardpoints, a joint the meshes of its looks
(`Joint.looks`), drawn as the mechanism is. Springs stretch; dampers, wheels and bushings move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import distance_matrix

from jaxmbd.model import (
    GROUND,
    AntiRollBar,
    BumpStop,
    ElasticConnection,
    ForceElement,
    Joint,
    Look,
    Mechanism,
    PacejkaTyre,
    SpringDamper,
    TorsionSpring,
    Tyre,
    with_directions,
)
from jaxmbd.suspension import Corner, drawn_wheel
from jaxmbd.viz.solids import (
    Mesh,
    box,
    capsule,
    coil,
    cylinder,
    ellipsoid,
    frame_along,
    joined,
    plate,
    ring,
    sphere,
    swept,
    tube,
    turned,
)

Colour = tuple[float, float, float, float]
"""Red, green, blue and opacity."""

SPRING: Colour = (0.86, 0.47, 0.13, 1.0)
DAMPER: Colour = (0.33, 0.38, 0.44, 1.0)
RUBBER: Colour = (0.48, 0.32, 0.58, 1.0)
ROD: Colour = (0.60, 0.65, 0.70, 1.0)
TYRE: Colour = (0.13, 0.15, 0.18, 0.45)
RIM: Colour = (0.55, 0.58, 0.62, 1.0)
HOUSING: Colour = (0.36, 0.40, 0.45, 1.0)
PIN: Colour = (0.74, 0.77, 0.81, 1.0)
FRAME: Colour = (0.20, 0.22, 0.25, 1.0)
"""Of force elements and wheels, of the halves of joints, and of what stands on the ground."""


class Solid(NamedTuple):
    """Something that moves with a body; its mesh is in global coordinates as drawn."""

    name: str
    body: str
    mesh: Mesh
    colour: Colour


class Span(NamedTuple):
    """Something between points of two bodies (drawn coordinates (3,) [m]).

    Its mesh stands along z from one of them, as long as drawn. It is "stretched" between them, or
    rigid "from a" or "from b" towards the other one.
    """

    name: str
    a: str
    at_a: np.ndarray
    b: str
    at_b: np.ndarray
    mesh: Mesh
    colour: Colour
    fit: str


def attachments(mech: Mechanism) -> dict[str, np.ndarray]:
    """Points (n, 3) [m] of each body as drawn, without repeats.

    Those at which joints and forces act on it, and those that it names as its own.
    """
    found: dict[str, list[np.ndarray]] = {name: [] for name in (GROUND, *mech.structure.bodies)}
    for joint in drawn_joints(mech).values():
        if floats(mech, joint):
            continue
        hinge = bearing_points(mech, joint)
        shift = np.asarray(mech.point(joint.point_b)) - np.asarray(mech.point(joint.point_a))
        found[joint.a] += list(hinge)
        found[joint.b] += list(hinge + shift)
    for force in mech.forces.values():
        for body, ref in force.attachments:
            found[body].append(np.asarray(mech.point(ref)))
    for name, body in mech.bodies.items():
        found[name] += [np.asarray(mech.point(ref)) for ref in body.markers or ()]
    return {name: _distinct(points) for name, points in found.items()}


def _distinct(points: list[np.ndarray]) -> np.ndarray:
    found: list[np.ndarray] = []
    for x in points:
        if all(np.linalg.norm(x - y) > 1e-9 * (1.0 + np.linalg.norm(x)) for y in found):
            found.append(x)
    return np.reshape(found, (-1, 3))


def link_shape(
    mech: Mechanism,
    body: str,
    points: np.ndarray,
    radius: float,
    marked: Sequence[np.ndarray] = (),
) -> Mesh:
    """A body as drawn: bars of `radius` [m] between its hardpoints, or a plate through them.

    A body with one hardpoint is a bar to its centre of mass, one with none the box of the same
    inertia. Further points (3,) that are `marked` are hardpoints of a body that has two, otherwise
    ends of bars.
    """
    com = np.asarray(mech.com(body))
    if len(marked) and len(points) < 2:
        near = [min([com, *points], key=lambda y, x=x: np.linalg.norm(x - y)) for x in marked]
        far = [(a, b) for a, b in zip(near, marked, strict=True) if np.linalg.norm(b - a) > radius]
        return joined([link_shape(mech, body, points, radius), *(tube(*x, radius) for x in far)])
    points = _distinct([*points, *marked])
    if len(points) == 0:
        return inertia_box(mech, body, 3.0 * radius)
    if len(points) == 1:
        if np.linalg.norm(com - points[0]) <= radius:
            return joined([])
        return joined([tube(points[0], com, radius), sphere(2.5 * radius).moved(np.eye(3), com)])
    pairs = _hinge_pairs(mech, body, points)
    if len(points) > 2 and not pairs and (sheet := plate(points, 1.2 * radius)) is not None:
        return sheet
    if len(points) == 3 and not pairs:
        return joined(tube(a, b, radius) for a, b in _tee(points))
    return joined(tube(points[i], points[j], radius) for i, j in bars(points, pairs))


def _tee(points: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The shortest side of a triangle, and a bar from the third point to that side."""
    k = int(np.argmin([np.linalg.norm(points[k] - points[k - 1]) for k in range(3)]))
    a, b, apex = points[k], points[k - 1], points[k - 2]
    along = b - a
    foot = a + np.clip((apex - a) @ along / (along @ along), 0.0, 1.0) * along
    return [(a, b), (apex, foot)]


def bars(points: np.ndarray, apart: set[tuple[int, int]] = frozenset()) -> list[tuple[int, int]]:  # type: ignore[assignment]
    """Pairs of points (n, 3) that the shortest tree joins; those `apart` if need be only."""
    distance = distance_matrix(points, points)
    for i, j in apart:
        distance[i, j] = distance[j, i] = 1e3 * distance.max()
    rows, columns = minimum_spanning_tree(distance).nonzero()
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _hinge_pairs(mech: Mechanism, body: str, points: np.ndarray) -> set[tuple[int, int]]:
    """Pairs of points on one hinge, which need no bar between them: the legs of a wishbone."""
    found = set()
    for joint in drawn_joints(mech).values():
        if body not in (joint.a, joint.b) or floats(mech, joint):
            continue
        ends = bearing_points(mech, joint)
        if len(ends) == 2:
            i, j = (int(np.argmin(np.linalg.norm(points - x, axis=1))) for x in ends)
            found.add((i, j))
    return found


def inertia_box(mech: Mechanism, body: str, least: float) -> Mesh:
    """A uniform box of a body's mass and inertia; half lengths are at least `least` [m].

    From ``I_x = m (b² + c²) / 3`` for half lengths a, b, c in the principal axes.
    """
    mass, com = float(mech.bodies[body].mass), np.asarray(mech.com(body))
    moments, axes = np.linalg.eigh(np.asarray(mech.inertia(body)))
    if mass <= 0.0:
        return box(np.full(3, least)).moved(np.eye(3), com)
    squares = 1.5 * (moments.sum() - 2.0 * moments) / mass
    half = np.maximum(np.sqrt(np.maximum(squares, 0.0)), least)
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    return box(half).moved(axes, com)


def joint_solids(mech: Mechanism, name: str, joint: Joint, size: float) -> Iterable[Solid]:
    """The two halves of a joint; `size` is the radius of a ball joint [m]."""
    at_a, at_b = (np.asarray(mech.point(x)) for x in (joint.point_a, joint.point_b))
    bearings = bearing_points(mech, joint)
    for look in with_directions(joint, mech.point).looks():
        if look.form not in _FORMS:
            continue  # such as a rod, which is between two bodies
        mesh = _FORMS[look.form](look, size)
        frame = np.eye(3) if look.axis is None else frame_along(look.axis)
        body, half = (joint.a, HOUSING) if look.on == "a" else (joint.b, PIN)
        for bearing in bearings:
            place = bearing if look.on == "a" else bearing - at_a + at_b
            yield Solid(name, body, mesh.moved(frame, place), FRAME if body == GROUND else half)


def bearing_points(mech: Mechanism, joint: Joint) -> np.ndarray:
    """Points (n, 3) [m] of a joint on a: of a hinge whose axis is given by two hardpoints, both."""
    at = np.asarray(mech.point(joint.point_a))
    axis: Any = getattr(joint, "axis", None)
    if joint.bearing != "journal" or not hasattr(axis, "start"):
        return at[None]
    both = np.stack([np.asarray(mech.point(x)) for x in (axis.start, axis.end)])
    along, away = both[1] - both[0], at - both[0]
    off = np.linalg.norm(np.cross(along, away)) / np.linalg.norm(along)
    return both if off < 1e-6 * np.linalg.norm(along) else at[None]


def drawn_joints(mech: Mechanism) -> dict[str, Joint]:
    """The joints by name, and those that force elements stand for (`SoftJoint`)."""
    soft = {n: f.replaced_joint for n, f in mech.forces.items() if f.replaced_joint is not None}
    return mech.joints | soft


def floats(mech: Mechanism, joint: Joint) -> bool:
    """Whether nothing is drawn of it: it leaves a body free, or is a condition on directions."""
    return not with_directions(joint, mech.point).looks()


def _cross(look: Look, s: float) -> Mesh:
    cap = cylinder(0.75 * s, 1.3 * s, 1.9 * s)
    other = Mesh(cap.vertices * [1.0, -1.0, -1.0], cap.faces)
    middle = sphere(0.7 * s) if look.on == "b" else cylinder(0.45 * s, -s, s)
    return joined([cylinder(0.45 * s, -1.7 * s, 1.7 * s), cap, other, middle])


def _screw(look: Look, s: float) -> Mesh:
    thread = coil(0.8 * s, 0.25 * s, 10.0 * s, turns=10).moved(np.eye(3), (0, 0, -5.0 * s))
    return joined([cylinder(0.8 * s, -5.0 * s, 5.0 * s), thread])


def _curve(look: Look, s: float) -> Mesh:
    path = np.asarray(look.detail)
    away = float(np.linalg.norm(path[-1] - path[0]))
    return swept(path, 0.4 * s, closed=away < 1e-6 * float(np.ptp(path, axis=0).max()))


_FORMS: dict[str, Callable[[Any, float], Mesh]] = {
    "ball": lambda _, s: sphere(1.15 * s),
    "bar": lambda _, s: box([0.7 * s, 0.7 * s, 5.0 * s]),
    "block": lambda _, s: box([1.4 * s, 1.4 * s, 1.8 * s]),
    "cross": _cross,
    "cube": lambda _, s: box([0.9 * s, 0.9 * s, 0.9 * s]),
    "curve": _curve,
    "foot": lambda _, s: cylinder(1.5 * s, -0.2 * s, 0.9 * s),
    "housing": lambda _, s: cylinder(s, -1.2 * s, 1.2 * s),
    "nut": lambda _, s: cylinder(1.5 * s, -1.2 * s, 1.2 * s, sides=6),
    "pin": lambda _, s: cylinder(0.55 * s, -1.7 * s, 1.7 * s),
    "rail": lambda _, s: cylinder(0.4 * s, -8.0 * s, 8.0 * s),
    "roller": lambda look, s: cylinder(float(look.detail), -0.8 * s, 0.8 * s, sides=64),
    "screw": _screw,
    "shaft": lambda _, s: cylinder(0.8 * s, -5.0 * s, 5.0 * s),
    "sheet": lambda _, s: box([6.0 * s, 6.0 * s, 0.15 * s]),
    "sleeve": lambda _, s: cylinder(1.3 * s, -2.0 * s, 2.0 * s),
}


class Wheel(NamedTuple):
    """A wheel to be drawn.

    Attributes:
        body: name of the body that it turns with.
        centre: as drawn (3,) [m].
        axis: of its rotation as drawn (3,).
        radius: [m].
        width: [m]; by default 0.6 of the radius.

    Example:
        >>> from jaxmbd.viz import Wheel
        >>> Wheel("spindle", (0, 0.9, 0), (0, 1, 0), radius=0.33).body
        'spindle'
    """

    body: str
    centre: Any
    axis: Any
    radius: float
    width: float | None = None


def corner_wheel(mech: Mechanism, corner: Corner) -> Wheel:
    """The wheel of a corner, for its picture.

    It turns with the body that a hinge joins to the upright at the wheel centre, if there is one.

    Args:
        mech: the mechanism.
        corner: what is what in it.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import zoo_corner
        >>> from jaxmbd.viz import corner_wheel
        >>> mech = mbd.zoo.macpherson()
        >>> corner_wheel(mech, zoo_corner("macpherson")).body
        'spindle'
    """
    upright, _ = corner.placed("upright", corner.wheel_centre)
    centre, spindle = map(np.asarray, drawn_wheel(mech, corner))
    body = upright
    for joint in mech.joints.values():
        if joint.bearing == "journal" and upright in (joint.a, joint.b):
            if np.allclose(mech.point(joint.point_a), centre, atol=1e-9):
                body = joint.b if joint.a == upright else joint.a
    return Wheel(body, centre, spindle, corner.tyre_radius)


def spans(mech: Mechanism, name: str, element: Any, size: float) -> Iterable[Span]:
    """What is drawn between the two ends of a rod or a force element, if it has two."""
    at_a, at_b = getattr(element, "at_a", None), getattr(element, "at_b", None)
    if at_a is None or at_b is None:
        return
    x_a, x_b = np.asarray(mech.point(at_a)), np.asarray(mech.point(at_b))
    length = float(np.linalg.norm(x_b - x_a))
    for k, part in enumerate(_between(element, length, size) if length else ()):
        label = name if k == 0 else f"{name} {k + 1}"
        yield Span(label, getattr(element, "a", GROUND), x_a, element.b, x_b, *part)


def _between(element: Any, length: float, s: float) -> Iterable[tuple[Mesh, Colour, str]]:
    """Meshes, colours and fits of the spans of an element whose ends are `length` apart [m]."""
    if isinstance(element, Joint):
        if any(look.form == "rod" for look in element.looks()):
            ends = [sphere(s).moved(np.eye(3), (0, 0, z)) for z in (0.0, length)]
            yield joined([cylinder(0.5 * s, 0.0, length), *ends]), ROD, "stretched"
    elif isinstance(element, SpringDamper):
        damps = bool(np.any(np.asarray(element.damping)))
        springs = bool(np.any(np.asarray(element.stiffness))) or element.law is not None
        if damps:
            eye = sphere(0.8 * s)
            yield joined([cylinder(0.85 * s, 0.0, 0.55 * length), eye]), DAMPER, "from b"
            yield joined([cylinder(0.35 * s, 0.0, 0.7 * length), eye]), ROD, "from a"
        if springs or not damps:
            turns = int(np.clip(length / (1.6 * s), 5, 12))
            seats = [cylinder(1.7 * s, z - 0.12 * s, z + 0.12 * s) for z in (0.0, length)]
            wire = coil(1.4 * s, 0.22 * s, length, turns)
            yield joined([wire, *seats]), SPRING, "stretched"
    elif isinstance(element, AntiRollBar):
        yield cylinder(0.4 * s, 0.0, length), SPRING, "stretched"
    elif isinstance(element, BumpStop):
        end = 0.25 * length
        yield turned([(0, 0), (1.2 * s, 0), (0.5 * s, end), (0, end)]), RUBBER, "from a"


def force_solids(mech: Mechanism, name: str, force: ForceElement, size: float) -> Iterable[Solid]:
    """What of a force element moves with one body; `size` is the radius of a ball joint [m]."""
    if isinstance(force, (Tyre, PacejkaTyre)):
        yield from wheel_solids(name, wheel_of_tyre(mech, force))
    elif isinstance(force, ElasticConnection) and force.replaced_joint is None:
        _, _, body, at = force.connected
        sleeve = ring(0.9 * size, 0.45 * size).moved(np.eye(3), mech.point(at))
        yield Solid(name, body, sleeve, RUBBER)
    elif isinstance(force, TorsionSpring):
        joint = with_directions(mech.joints[force.joint], mech.point)
        axis = joint.bearing_axis()
        if axis is not None and not floats(mech, joint):
            spiral = coil(1.7 * size, 0.2 * size, 1.6 * size, turns=3)
            spiral = spiral.moved(np.eye(3), (0, 0, -0.8 * size))
            at = np.asarray(mech.point(joint.point_a))
            yield Solid(name, joint.a, spiral.moved(frame_along(axis), at), SPRING)


def wheel_of_tyre(mech: Mechanism, tyre: Any) -> Wheel:
    """A tyre's wheel; its axis is that of a hinge of its body, else level."""
    up = np.asarray(tyre.up)
    axis = getattr(tyre, "axis", None)
    for joint in mech.joints.values():
        if axis is None and joint.bearing == "journal" and tyre.b in (joint.a, joint.b):
            axis = with_directions(joint, mech.point).bearing_axis()
    if axis is None:
        axis = np.cross(up, np.eye(3)[0 if abs(up[0]) < 0.9 else 1])
    return Wheel(tyre.b, np.asarray(mech.point(tyre.at)), np.asarray(axis), float(tyre.radius))


def wheel_solids(name: str, wheel: Wheel) -> list[Solid]:
    """A tyre, through which the suspension shows, and a rim with spokes that show its rotation."""
    r = wheel.radius
    w = 0.5 * (0.6 * r if wheel.width is None else wheel.width)
    tread = [(0.66 * r, -w), (0.93 * r, -w), (r, -0.6 * w), (r, 0.6 * w), (0.93 * r, w)]
    tyre = turned([*tread, (0.66 * r, w), (0.66 * r, -w)], 40)
    spokes = [
        cylinder(0.04 * r, 0.0, 0.66 * r, 8).moved(frame_along((np.cos(u), np.sin(u), 0)))
        for u in 2.0 * np.pi * np.arange(5) / 5
    ]
    frame, at = frame_along(wheel.axis), np.asarray(wheel.centre)
    rim = joined([*spokes, ring(0.66 * r, 0.03 * r)]).moved(frame, at)
    tyre = tyre.moved(frame, at)
    return [Solid(name, wheel.body, tyre, TYRE), Solid(name, wheel.body, rim, RIM)]


def shape_mesh(shape: Any) -> Mesh | None:
    """A shape (`jaxmbd.io.Shape`) as a mesh in global coordinates as drawn; None for a plane."""
    size = np.asarray(shape.size, float)
    if shape.kind == "mesh":
        mesh = Mesh(np.asarray(shape.vertices, float), np.asarray(shape.faces, int))
    elif shape.kind in _SHAPES:
        mesh = _SHAPES[shape.kind](size)
    else:
        return None
    return mesh.moved(shape.rotation, shape.position)


_SHAPES: dict[str, Callable[[np.ndarray], Mesh]] = {
    "box": box,
    "sphere": lambda size: sphere(size[0]),
    "ellipsoid": ellipsoid,
    "capsule": lambda size: capsule(size[0], size[1]),
    "cylinder": lambda size: cylinder(size[0], -size[1], size[1]),
}


def floor_height(shapes: Iterable[Any], up: np.ndarray) -> float | None:
    """Height along `up` [m] of the highest level plane that stands on the ground, if any."""
    planes = [x for x in shapes if x.kind == "plane" and x.body == GROUND]
    level = [x for x in planes if np.asarray(x.rotation)[:, 2] @ up > 0.99]
    return max((float(np.asarray(x.position) @ up) for x in level), default=None)
