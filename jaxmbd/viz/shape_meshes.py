"""Meshes of the shapes of imported models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxmbd.viz.solids import Mesh, box, capsule, cylinder, ellipsoid, sphere


def shape_mesh(shape: Any) -> Mesh | None:
    """A shape (`jaxmbd.io.Shape`) as a mesh in global coordinates as drawn; None for a plane.

    Example:
        >>> import numpy as np
        >>> from types import SimpleNamespace
        >>> from jaxmbd.viz.shape_meshes import shape_mesh
        >>> ball = SimpleNamespace(
        ...     kind="sphere", size=(0.1, 0, 0), position=(0, 0, 1), rotation=np.eye(3)
        ... )
        >>> round(float(shape_mesh(ball).vertices[:, 2].max()), 6)
        1.1
    """
    size = np.asarray(shape.size, float)
    if shape.kind == "mesh":
        mesh = Mesh(np.asarray(shape.vertices, float), np.asarray(shape.faces, int))
    elif shape.kind == "box":
        mesh = box(size)
    elif shape.kind == "sphere":
        mesh = sphere(size[0])
    elif shape.kind == "ellipsoid":
        mesh = ellipsoid(size)
    elif shape.kind == "capsule":
        mesh = capsule(size[0], size[1])
    elif shape.kind == "cylinder":
        mesh = cylinder(size[0], -size[1], size[1])
    else:
        return None
    return mesh.moved(shape.rotation, shape.position)


def floor_height(shapes: Iterable[Any], up: np.ndarray) -> float | None:
    """Height along `up` [m] of the highest level plane that stands on the ground, if any."""
    level = [
        float(np.asarray(shape.position) @ up)
        for shape in shapes
        if shape.kind == "plane"
        and shape.body == "ground"
        and np.asarray(shape.rotation)[:, 2] @ up > 0.99
    ]
    return max(level, default=None)
