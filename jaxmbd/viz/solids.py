"""Triangle meshes of simple solids, with outward faces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

_ROUND = 20
"""Sides of what is round."""


class Mesh(NamedTuple):
    """Triangles: `vertices` (n, 3) [m], `faces` (m, 3) of indices, anticlockwise from outside."""

    vertices: np.ndarray
    faces: np.ndarray

    def moved(self, rotation: np.ndarray, position: Any = (0.0, 0.0, 0.0)) -> Mesh:
        """Turned by `rotation` (3, 3) about the origin, then shifted by `position` (3,) [m]."""
        return Mesh(self.vertices @ np.asarray(rotation).T + np.asarray(position), self.faces)


def joined(meshes: Iterable[Mesh]) -> Mesh:
    """Several meshes as one."""
    every = [Mesh(np.zeros((0, 3)), np.zeros((0, 3), int)), *meshes]
    starts = np.cumsum([0, *(len(x.vertices) for x in every)])
    faces = [x.faces + start for x, start in zip(every, starts, strict=False)]
    return Mesh(np.concatenate([x.vertices for x in every]), np.concatenate(faces))


def bounding_corners(vertices: np.ndarray) -> np.ndarray:
    """Corners (8, 3) [m] of the box along the axes that encloses points (n, 3) [m]."""
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return np.array([np.where([k & 1, k & 2, k & 4], high, low) for k in range(8)])


def frame_along(axis: Any) -> np.ndarray:
    """A rotation (3, 3) whose third column is along `axis`."""
    z = np.asarray(axis, float) / np.linalg.norm(axis)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def turned(profile: Any, sides: int = _ROUND, smooth: bool = False) -> Mesh:
    """A solid of revolution about z.

    Args:
        profile: its outline (n, 2) of radii and heights [m], upwards on the outside.
        sides: of the polygon that stands for a circle.
        smooth: whether the outline is a smooth curve rather than a polygon with sharp corners.
    """
    r, z = np.asarray(profile, float).T
    if not smooth:  # corners have a vertex for each side, so that shading does not smear them
        r, z = np.repeat(r, 2)[1:-1], np.repeat(z, 2)[1:-1]
    angle = 2.0 * np.pi * np.arange(sides) / sides
    rings = np.stack(
        [np.outer(r, np.cos(angle)), np.outer(r, np.sin(angle)), np.outer(z, np.ones(sides))], -1
    )
    return Mesh(rings.reshape(-1, 3), _strips(np.arange(0, len(r) - 1, 1 if smooth else 2), sides))


def _strips(starts: np.ndarray, sides: int) -> np.ndarray:
    """Faces (m, 3) between each ring of `starts` and the next one."""
    k = np.arange(sides)
    low, after = sides * starts[:, None] + k, sides * starts[:, None] + (k + 1) % sides
    halves = (low, after, after + sides), (low, after + sides, low + sides)
    return np.stack([np.stack(half, -1) for half in halves], axis=1).reshape(-1, 3)


def cylinder(radius: float, start: float, end: float, sides: int = _ROUND) -> Mesh:
    """A cylinder along z between two heights [m]."""
    return turned([(0.0, start), (radius, start), (radius, end), (0.0, end)], sides)


def tube(a: Any, b: Any, radius: float, sides: int = _ROUND) -> Mesh:
    """A cylinder from one point to another."""
    span = np.asarray(b, float) - np.asarray(a, float)
    length = float(np.linalg.norm(span))
    return cylinder(radius, 0.0, length, sides).moved(frame_along(span), a)


def sphere(radius: float, sides: int = _ROUND) -> Mesh:
    """A sphere about the origin."""
    return ellipsoid(np.full(3, radius), sides)


def ellipsoid(half: np.ndarray, sides: int = _ROUND) -> Mesh:
    """An ellipsoid with the half axes `half` (3,) [m]."""
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, sides // 2 + 1)
    round_ = turned(np.stack([np.cos(angle), np.sin(angle)], axis=1), sides, smooth=True)
    return Mesh(round_.vertices * half, round_.faces)


def capsule(radius: float, half: float, sides: int = _ROUND) -> Mesh:
    """A cylinder along z of half length `half` with round ends [m]."""
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, sides // 2 + 2)
    shift = np.where(angle < 0.0, -half, half)
    outline = np.stack([radius * np.cos(angle), radius * np.sin(angle) + shift], axis=1)
    return turned(outline, sides, smooth=True)


def ring(radius: float, thickness: float, sides: int = 32) -> Mesh:
    """A torus about z: a circle of `radius` swept by one of radius `thickness` [m]."""
    angle = np.linspace(0.0, 2.0 * np.pi, 13)
    outline = np.stack([radius + thickness * np.cos(angle), thickness * np.sin(angle)], axis=1)
    return turned(outline, sides, smooth=True)


def box(half: Any) -> Mesh:
    """A box about the origin with the half lengths `half` (3,) [m]."""
    faces, vertices = [], []
    for axis in range(3):
        for side in (-1.0, 1.0):
            square = np.zeros((4, 3))
            square[:, axis] = side
            square[:, (axis + 1) % 3] = np.array([-1, 1, 1, -1]) * side
            square[:, (axis + 2) % 3] = [-1, -1, 1, 1]
            start = 4 * len(vertices)
            vertices.append(square)
            faces += [(start, start + 1, start + 2), (start, start + 2, start + 3)]
    return Mesh(np.concatenate(vertices) * np.asarray(half, float), np.array(faces))


def swept(path: Any, radius: float, sides: int = 8, closed: bool = False) -> Mesh:
    """A round wire along a smooth path (n, 3) [m]; its ends are open unless it is `closed`."""
    path = np.asarray(path, float)
    if closed:
        ahead, behind = np.roll(path, -1, axis=0), np.roll(path, 1, axis=0)
        tangent = ahead - behind
    else:
        tangent = np.gradient(path, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    normal = [frame_along(tangent[0])[:, 0]]
    for t in tangent[1:]:  # carried along without twist
        across = normal[-1] - (normal[-1] @ t) * t
        normal.append(across / np.linalg.norm(across))
    n = np.stack(normal)
    b = np.cross(tangent, n)
    angle = 2.0 * np.pi * np.arange(sides) / sides
    rings = path[:, None] + radius * (
        np.cos(angle)[:, None] * n[:, None] + np.sin(angle)[:, None] * b[:, None]
    )
    faces = _strips(np.arange(len(path) - 1), sides)
    return Mesh(rings.reshape(-1, 3), faces)


def coil(radius: float, wire: float, length: float, turns: int = 8) -> Mesh:
    """A helical spring along z from 0 to `length`, its outer radius `radius + wire` [m]."""
    u = np.linspace(0.0, 1.0, 16 * turns + 1)
    angle = 2.0 * np.pi * turns * u
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    return swept(np.stack([x, y, u * length], axis=1), wire)


def arrow(start: Any, vector: Any, radius: float) -> Mesh:
    """An arrow with a head, from a point along a vector (3,) [m]."""
    length = float(np.linalg.norm(vector))
    head = min(6.0 * radius, 0.5 * length)
    neck = length - head
    outline = [(0.0, 0.0), (radius, 0.0), (radius, neck), (2.5 * radius, neck), (0.0, length)]
    return turned(outline, 12).moved(frame_along(vector), start)


def plate(corners: Any, thickness: float) -> Mesh | None:
    """The convex hull of points in a plane (n, 3) [m] as a plate.

    None if they are in no plane, or nearly in a line.
    """
    points = np.asarray(corners, float)
    middle = points.mean(axis=0)
    _, size, axes = np.linalg.svd(points - middle, full_matrices=True)
    if len(points) < 3 or size[1] < 0.3 * size[0] or (len(size) > 2 and size[2] > 0.03 * size[0]):
        return None
    axes[2] = np.cross(axes[0], axes[1])
    flat = (points - middle) @ axes[:2].T
    outline = flat[ConvexHull(flat).vertices]  # anticlockwise
    n = len(outline)
    low, high = (
        np.column_stack([outline, np.full(n, h)]) for h in (-0.5 * thickness, 0.5 * thickness)
    )
    k, after = np.arange(n), (np.arange(n) + 1) % n
    fan = np.stack([np.zeros(n - 2, int), np.arange(1, n - 1), np.arange(2, n)], axis=1)
    around = np.concatenate(
        [np.stack([k, after, after + n], axis=1), np.stack([k, after + n, k + n], axis=1)]
    )
    faces = np.concatenate([fan[:, ::-1], fan + n, around + 2 * n])
    both = np.concatenate([low, high])
    vertices = np.concatenate([both, both])  # the rim has vertices of its own
    return Mesh(vertices @ axes + middle, faces)
