"""What is drawn on the bodies of a USD stage: its solids and meshes, with their colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.io.conversion import Shape, ShapeKind, Shapes
from jaxmbd.io.usd.stage import Drawn, choice, names_of, numbers, usd

KINDS: dict[str, ShapeKind] = {
    "Cube": "box",
    "Sphere": "sphere",
    "Capsule": "capsule",
    "Cylinder": "cylinder",
    "Plane": "plane",
    "Mesh": "mesh",
}
GREY = (0.5, 0.5, 0.5)


def undrawn(prim: Any) -> bool:
    """Whether a prim is a solid of another kind than those that are drawn."""
    return prim.IsA(usd("UsdGeom").Gprim) and prim.GetTypeName() not in KINDS


def shapes_of(drawn: Drawn) -> Shapes:
    """What is drawn, by name.

    Where a body has shapes to look at, those that touch are not drawn.
    """
    return Shapes(lambda: _shapes(drawn))


def _shapes(drawn: Drawn) -> dict[str, Shape]:
    api = usd("UsdGeom")
    every = [p for p in drawn.prims if p.IsA(api.Gprim) and p.GetTypeName() in KINDS]
    shown = [p for p in every if _visible(p)]
    dressed = {drawn.owner(p) for p in shown if not _touches(p)}
    shown = [p for p in shown if not (_touches(p) and drawn.owner(p) in dressed)]
    prims = shown or every
    names = names_of(prims)
    return {names[str(prim.GetPath())]: _shape(drawn, prim) for prim in prims}


def _visible(prim: Any) -> bool:
    image = usd("UsdGeom").Imageable(prim)
    return image.ComputeVisibility() != "invisible" and image.ComputePurpose() in (
        "default",
        "render",
    )


def _touches(prim: Any) -> bool:
    return prim.HasAPI(usd("UsdPhysics").CollisionAPI)


def _shape(drawn: Drawn, prim: Any) -> Shape:
    kind, body, colour = KINDS[prim.GetTypeName()], drawn.owner(prim), _colour(prim)
    origin, linear = drawn.transform(prim)
    if kind == "mesh":
        vertices, faces = _mesh(prim, linear)
        size = 0.5 * np.ptp(vertices, axis=0) if len(vertices) else np.zeros(3)
        return Shape(body, kind, size, origin, np.eye(3), colour, vertices, faces)
    along = "XYZ".index(choice(prim, "axis", "Z"))
    order = [(along + 1) % 3, (along + 2) % 3, along]
    linear = linear[:, order]  # its own z is the axis of round solids
    scale = np.linalg.norm(linear, axis=0)
    left, _, right = np.linalg.svd(linear / np.maximum(scale, 1e-300))
    axes = left @ right
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    size = _size(prim, kind) * scale
    if kind == "sphere" and np.ptp(size) > 1e-9 * size.max():
        kind = "ellipsoid"
    elif kind == "sphere":
        size[1:] = 0.0
    elif kind in ("capsule", "cylinder"):
        size = np.array([0.5 * (size[0] + size[1]), size[2], 0.0])
    return Shape(body, kind, size, origin, axes, colour)


def _size(prim: Any, kind: str) -> np.ndarray:
    """Half lengths (3,) along the two axes across and the one along, in units of the stage."""
    if kind == "box":
        return np.full(3, 0.5 * numbers(prim, "size", 2.0))
    if kind == "plane":
        return 0.5 * np.array([numbers(prim, n, 2.0) for n in ("width", "length")] + [0.0])
    radius = numbers(prim, "radius", 1.0 if kind != "capsule" else 0.5)
    if kind == "sphere":
        return np.full(3, radius)
    return np.array(
        [radius, radius, 0.5 * numbers(prim, "height", 2.0 if kind != "capsule" else 1.0)]
    )


def _mesh(prim: Any, linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) along global axes, and faces as fans of triangles."""
    mesh, time = usd("UsdGeom").Mesh(prim), usd("Usd").TimeCode.EarliestTime()
    points = np.array(mesh.GetPointsAttr().Get(time) or [], float).reshape(-1, 3)
    corners = np.array(mesh.GetFaceVertexIndicesAttr().Get(time) or [], int)
    counts = np.array(mesh.GetFaceVertexCountsAttr().Get(time) or [], int)
    starts = np.cumsum(counts) - counts
    fans = np.maximum(counts - 2, 0)
    first = np.repeat(starts, fans)
    step = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
    faces = corners[np.stack([first, first + step + 1, first + step + 2], axis=1)]
    inwards = choice(prim, "orientation", "rightHanded") == "leftHanded"
    if inwards != (np.linalg.det(linear) < 0.0):
        faces = faces[:, ::-1]
    return points @ linear.T, faces


def _colour(prim: Any) -> tuple[float, float, float, float]:
    """The prim's own colour, else its material's; grey without one."""
    rgb, opacity = (
        choice(prim, "primvars:displayColor", None),
        choice(prim, "primvars:displayOpacity", None),
    )
    red, green, blue = rgb[0] if rgb else _of_material(prim)
    numbers = (red, green, blue, opacity[0] if opacity else 1.0)
    red, green, blue, alpha = (round(float(x), 6) for x in numbers)
    return red, green, blue, alpha


def _of_material(prim: Any) -> Any:
    api = usd("UsdShade")
    material = api.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
    shader = material.ComputeSurfaceSource()[0] if material else None
    inputs = shader.GetInputs() if shader else ()
    found = {x.GetBaseName(): x.Get() for x in inputs}
    return found.get("diffuseColor") or found.get("diffuse_color_constant") or GREY
