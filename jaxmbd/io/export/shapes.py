"""What is drawn on the bodies of a written MuJoCo model; it touches nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbd.io.export.exported import Element, add
from jaxmbd.io.export.tree import Sites, WrittenBody, WrittenTree
from jaxmbd.io.shape import Shape
from jaxmbd.model import GROUND
from jaxmbd.spatial import quaternion_from_matrix


def local(body: WrittenBody | None, place: np.ndarray) -> np.ndarray:
    """A point (3,) [m] in the frame of a body, of the ground where it is None."""
    return place if body is None else body.rotation.T @ (place - body.origin)


def quaternion(rotation: np.ndarray) -> np.ndarray | None:
    """The quaternion of a rotation; None where there is no turn."""
    if np.abs(rotation - np.eye(3)).max() < 1e-15:
        return None
    return np.asarray(quaternion_from_matrix(jnp.asarray(rotation)))


def draw_links(
    tree: WrittenTree, sites: Sites, elements: Mapping[str, Element], radius: float
) -> None:
    """A capsule from the middle of a body's points to each of them."""
    for body in tree.bodies:
        ends = [place for owner, place in sites.places.values() if owner == body.name]
        ends += [s.at for b in tree.bodies for s in b.steps if body.name in (b.name, b.parent)]
        ends += [body.com]
        middle = np.mean(ends, axis=0)
        for end in np.unique(np.round(ends, 12), axis=0):
            if np.abs(end - middle).max() > 0.1 * radius:
                span = np.concatenate([local(body, middle), local(body, end)])
                add(elements[body.name], "geom", type="capsule", size=radius, fromto=span)


def draw_shapes(
    tree: WrittenTree, shapes: Mapping[str, Shape], root: Element, elements: Mapping[str, Element]
) -> None:
    """Shapes of an import, meshes with their vertices in the file."""
    written = {body.name: body for body in tree.bodies}
    assets: Element | None = None
    for name, shape in shapes.items():
        body = written.get(shape.body)
        if body is None and shape.body != GROUND:
            continue
        frame = np.eye(3) if body is None else body.rotation
        turn = frame.T @ tree.turned(shape.body, shape.rotation)
        given: dict[str, Any] = {"type": shape.kind, "size": shape.size}
        if shape.kind == "plane":
            given["size"] = (*shape.size[:2], 1.0)
        elif shape.kind == "mesh":
            assert shape.vertices is not None and shape.faces is not None
            assets = add(root, "asset") if assets is None else assets
            faces = " ".join(str(int(i)) for i in np.ravel(shape.faces))
            # Of a shell MuJoCo asks no volume, which flat and open meshes do not have.
            add(assets, "mesh", name=name, vertex=shape.vertices, face=faces, inertia="shell")
            given = {"type": "mesh", "mesh": name}
        at = local(body, tree.moved(shape.body, shape.position))
        element = elements[shape.body]
        add(element, "geom", name=name, pos=at, quat=quaternion(turn), rgba=shape.colour, **given)
