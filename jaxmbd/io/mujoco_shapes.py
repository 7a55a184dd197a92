"""Shapes of a compiled MuJoCo model, for pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.io.mujoco_bodies import names_of
from jaxmbd.io.mujoco_compile import compiled_shapes
from jaxmbd.io.shape import Shape, ShapeKind, Shapes
from jaxmbd.numerics.extras import optional

HIDDEN = 3  # MuJoCo's viewer shows groups 0, 1 and 2; collision shapes are in 3 by convention.
UNSET = (0.5, 0.5, 0.5, 1.0)  # colour of a shape that has none: that of its material, if any


def shapes_of(spec: Any, bodies: tuple[str, ...]) -> Shapes:
    """What is drawn of a model, by name, where it is at its reference configuration.

    Some models have two shapes for each thing, one to look at and one that touches, told apart by
    their groups: where a body has shapes that touch nothing in a visible group other than the
    first, those that touch are not drawn.

    Args:
        spec: of `Compiled.drawn`.
        bodies: the mechanism's body of each of the model's.
    """
    return Shapes(lambda: _compiled(spec, bodies))


def _compiled(spec: Any, bodies: tuple[str, ...]) -> dict[str, Shape]:
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
    model = compiled_shapes(spec)
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    mujoco.mj_kinematics(model, data)
    kinds, shown, colours = _kinds(), _shown(model), _colours(model)
    out = {}
    for i, name in enumerate(names_of(model, "geom", model.ngeom)):
        kind = kinds.get(int(model.geom_type[i]))
        if kind and shown[i]:
            place = data.geom_xpos[i].copy(), data.geom_xmat[i].reshape(3, 3).copy()
            out[name] = _shape(model, i, kind, bodies[model.geom_bodyid[i]], place, colours[i])
    return out


def _kinds() -> dict[int, ShapeKind]:
    kind = optional("mujoco", "io", "reading MJCF or URDF").mjtGeom
    return {
        int(kind.mjGEOM_BOX): "box",
        int(kind.mjGEOM_SPHERE): "sphere",
        int(kind.mjGEOM_CAPSULE): "capsule",
        int(kind.mjGEOM_CYLINDER): "cylinder",
        int(kind.mjGEOM_ELLIPSOID): "ellipsoid",
        int(kind.mjGEOM_PLANE): "plane",
        int(kind.mjGEOM_MESH): "mesh",
        int(kind.mjGEOM_SDF): "mesh",
    }


def _shown(model: Any) -> np.ndarray:
    touches = (model.geom_contype | model.geom_conaffinity) != 0
    visible = (model.geom_group < HIDDEN) & (_colours(model)[:, 3] > 0.0)
    looks = visible & ~touches & (model.geom_group > 0)
    dressed = np.isin(model.geom_bodyid, model.geom_bodyid[looks])
    shown = visible & ~(touches & dressed)
    # A model of which nothing is visible is drawn by what touches.
    return shown if shown.any() else np.ones(model.ngeom, bool)


def _colours(model: Any) -> np.ndarray:
    """Colour (n, 4) of each shape; its own comes before its material's."""
    own = np.asarray(model.geom_rgba, float)
    if not model.nmat:
        return own
    given = (model.geom_matid < 0) | np.any(np.abs(own - UNSET) > 1e-6, axis=1)
    return np.where(given[:, None], own, model.mat_rgba[model.geom_matid])


def _shape(model: Any, i: int, kind: ShapeKind, body: str, place: Any, colour: Any) -> Shape:
    position, rotation = place
    size = np.array(model.geom_size[i], float)
    vertices = faces = None
    if kind == "mesh":
        mesh = int(model.geom_dataid[i])
        vertices, faces, centre, axes = _mesh(model, mesh)
        rotation = rotation @ axes.T
        position = position - rotation @ centre
        size = 0.5 * np.ptp(vertices, axis=0)
    elif kind == "plane":
        size[2] = 0.0  # the spacing of its grid
    # MuJoCo has colours in single precision.
    red, green, blue, opacity = colour.round(6).tolist()
    return Shape(body, kind, size, position, rotation, (red, green, blue, opacity), vertices, faces)


def _mesh(model: Any, mesh: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Vertices as in the mesh's file, faces, and where MuJoCo has put its origin and its axes."""
    start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    own = np.array(model.mesh_vert[start : start + count], float)
    start, count = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
    axes = np.zeros(9)
    optional("mujoco", "io", "reading MJCF or URDF").mju_quat2Mat(axes, model.mesh_quat[mesh])
    axes, centre = axes.reshape(3, 3), np.array(model.mesh_pos[mesh], float)
    faces = np.array(model.mesh_face[start : start + count])
    return centre + own @ axes.T, faces, centre, axes
