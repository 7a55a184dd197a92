"""Pictures of rigid bodies from their hardpoints: bars between them, plates, solids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import GROUND
from jaxmbd.viz.joint_glyphs import bearing_points, drawn_joints, floats
from jaxmbd.viz.solids import Mesh, box, joined, plate, sphere, tube


def attachments(mech: Mechanism) -> dict[str, np.ndarray]:
    """Points (n, 3) [m] as drawn at which joints and forces act on each body, without repeats.

    Args:
        mech: the mechanism, drawn in space.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz.link_shapes import attachments
        >>> attachments(mbd.zoo.rssr())["coupler"].shape
        (2, 3)
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
        for field, ref in force.points.items():
            bodies = [getattr(force, side, None) for side in ("a", "b")]
            body = bodies[0] if field == "at_a" else bodies[1]
            if body in found:
                found[body].append(np.asarray(mech.point(ref)))
    return {name: _distinct(points) for name, points in found.items()}


def _distinct(points: list[np.ndarray]) -> np.ndarray:
    kept: list[np.ndarray] = []
    for x in points:
        if all(np.linalg.norm(x - y) > 1e-9 * (1.0 + np.linalg.norm(x)) for y in kept):
            kept.append(x)
    return np.reshape(kept, (-1, 3))


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
        away = np.linalg.norm(com - points[0]) > radius
        bar = [tube(points[0], com, radius)] if away else []
        return joined([*bar, *([sphere(2.5 * radius).moved(np.eye(3), com)] if away else [])])
    pairs = _hinge_pairs(mech, body, points)
    if len(points) > 2 and not pairs and (sheet := plate(points, 1.2 * radius)) is not None:
        return sheet
    if len(points) == 3 and not pairs:
        return joined(tube(a, b, radius) for a, b in _tee(points))
    return joined(tube(points[i], points[j], radius) for i, j in bars(points, pairs))


def _tee(points: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The shortest side of a triangle, and a bar from the third point to that side."""
    sides = [np.linalg.norm(points[k] - points[k - 1]) for k in range(3)]
    k = int(np.argmin(sides))
    a, b, apex = points[k], points[k - 1], points[k - 2]
    along = b - a
    foot = a + np.clip((apex - a) @ along / (along @ along), 0.0, 1.0) * along
    return [(a, b), (apex, foot)]


def bars(points: np.ndarray, apart: set[tuple[int, int]] = frozenset()) -> list[tuple[int, int]]:  # type: ignore[assignment]
    """Pairs of points (n, 3) that the shortest tree joins (Prim); those `apart` if need be only.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.viz.link_shapes import bars
        >>> bars(np.array([[0.0, 0, 0], [2, 0, 0], [1, 0, 0]]))
        [(0, 2), (2, 1)]
    """
    distance = np.linalg.norm(points[:, None] - points, axis=-1)
    for i, j in apart:
        distance[i, j] = distance[j, i] = 1e3 * distance.max()
    inside, found = [0], []
    while len(inside) < len(points):
        outside = [k for k in range(len(points)) if k not in inside]
        among = distance[np.ix_(inside, outside)]
        i, j = np.unravel_index(np.argmin(among), among.shape)
        found.append((inside[i], outside[j]))
        inside.append(outside[j])
    return found


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
