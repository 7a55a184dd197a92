"""Bodies, joints and shapes of a compiled MuJoCo model, drawn at its reference configuration.

Bodies that are welded to their parent become part of it, those welded to the world, and those that
motion capture places, part of the ground. A body with several joints hangs from massless
ones, one for each joint but the last, in MuJoCo's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbd.io.conversion import Shape, ShapeKind, Shapes, UniqueNames
from jaxmbd.io.mujoco.compile import OwnInertia, compiled_shapes, mujoco_reader
from jaxmbd.model import GROUND, Body, Free, Joint, Prismatic, Revolute, Spherical


@dataclass(frozen=True)
class Drawn:
    """A compiled model at its reference configuration, with the names that its parts get.

    Attributes:
        model: MuJoCo's `MjModel`.
        data: its `MjData`, with the kinematics of the reference configuration.
        bodies: the mechanism's body of each of the model's, with "ground" for the world's.
        joints: name of each joint.
        between: name of the massless body that follows each joint but the last of a body.
        inertias: those of bodies that have a placeholder in the model, by name.
    """

    model: Any
    data: Any
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    between: Mapping[int, str]
    inertias: Mapping[str, OwnInertia]

    def frame(self, body: int) -> np.ndarray:
        """Drawn orientation (3, 3) of one of the model's bodies."""
        return self.data.xmat[body].reshape(3, 3)

    def place(self, body: int, local: np.ndarray) -> np.ndarray:
        """A point (3,) of a body in global coordinates."""
        return self.data.xpos[body] + self.frame(body) @ local


def object_name(model: Any, kind: str, index: int) -> str:
    """Name of a part; one without a name gets its kind and number."""
    mujoco = mujoco_reader()
    found = mujoco.mj_id2name(model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), index)
    # The slash separates the parts of a variable's path.
    return found.replace("/", ".") if found else f"{kind}{index}"


def names_of(model: Any, kind: str, count: int, taken: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of all parts of a kind, made different from each other and from those `taken`."""
    names = UniqueNames(taken)
    return tuple(names.unique(object_name(model, kind, i), kind) for i in range(count))


def _at_reference(model: Any) -> Any:
    """MuJoCo's `MjData` with the kinematics of the reference configuration."""
    mujoco = mujoco_reader()
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    mujoco.mj_kinematics(model, data)
    return data


def drawn_model(model: Any, inertias: Mapping[str, OwnInertia]) -> Drawn:
    """The model at its reference configuration."""
    data = _at_reference(model)
    own = names_of(model, "body", model.nbody, (GROUND,))
    weld = model.body_weldid
    still = {0, *np.flatnonzero(model.body_mocapid >= 0)}
    bodies = tuple(GROUND if weld[i] in still else own[weld[i]] for i in range(model.nbody))
    inertias = {name.replace("/", "."): x for name, x in inertias.items()}
    joints = names_of(model, "joint", model.njnt)
    return Drawn(model, data, bodies, joints, _between(model, bodies, joints), inertias)


def _between(model: Any, bodies: Sequence[str], joints: Sequence[str]) -> dict[int, str]:
    """Names of the massless bodies, different from each other and from all others."""
    names, found = UniqueNames(bodies), {}
    for i in range(1, model.nbody):
        first, count = model.body_jntadr[i], model.body_jntnum[i]
        for j in range(first, first + count - 1):
            found[j] = names.unique(f"{bodies[i]}.{joints[j]}", "between")
    return found


def bodies_of(drawn: Drawn) -> dict[str, Body]:
    """Bodies by name, parents first, with the massless ones between several joints."""
    model, out = drawn.model, {}
    for i in range(1, model.nbody):
        if drawn.bodies[i] == GROUND or model.body_weldid[i] != i:
            continue
        first, count = model.body_jntadr[i], model.body_jntnum[i]
        for j in range(first, first + count - 1):
            out[drawn.between[j]] = Body(0.0, drawn.data.xanchor[j].copy(), 0.0)
        parts = [k for k in range(i, model.nbody) if model.body_weldid[k] == i]
        out[drawn.bodies[i]] = _together(drawn, parts)
    return out


def _together(drawn: Drawn, parts: list[int]) -> Body:
    """One rigid body of several; inertias about their common centre of mass, global axes."""
    own = [_own_inertia(drawn, k) for k in parts]
    total = sum(x.mass for x in own)
    com = drawn.data.xpos[parts[0]].copy()
    if total > 0.0:
        com = sum(x.mass * x.com for x in own) / total
    inertia = np.zeros((3, 3))
    for x in own:
        arm = x.com - com
        inertia += x.inertia + x.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Body(total, com, 0.5 * (inertia + inertia.T))


def _own_inertia(drawn: Drawn, body: int) -> OwnInertia:
    """Inertia of one of the model's bodies, global axes as drawn."""
    model, data = drawn.model, drawn.data
    given = drawn.inertias.get(object_name(model, "body", body))
    if given is not None:
        axes = drawn.frame(body)
        place = drawn.place(body, given.com)
        return OwnInertia(given.mass, place, axes @ given.inertia @ axes.T)
    axes = data.ximat[body].reshape(3, 3)
    inertia = (axes * model.body_inertia[body]) @ axes.T
    return OwnInertia(float(model.body_mass[body]), data.xipos[body].copy(), inertia)


def joints_of(drawn: Drawn) -> dict[str, Joint]:
    """Joints by name, each from the body that carries it."""
    model, out = drawn.model, {}
    for i in range(1, model.nbody):
        if drawn.bodies[i] == GROUND or model.body_weldid[i] != i:
            continue
        below = drawn.bodies[model.body_parentid[i]]
        first, count = model.body_jntadr[i], model.body_jntnum[i]
        for j in range(first, first + count):
            last = j == first + count - 1
            body = drawn.bodies[i] if last else drawn.between[j]
            out[drawn.joints[j]] = _joint(drawn, j, below, body)
            below = body
    return out


def joint_kind(model: Any, joint: int) -> str:
    """One of "free", "ball", "slide" and "hinge"."""
    return ("free", "ball", "slide", "hinge")[int(model.jnt_type[joint])]


def _joint(drawn: Drawn, j: int, below: str, body: str) -> Joint:
    at, axis = drawn.data.xanchor[j].copy(), drawn.data.xaxis[j].copy()
    kind = joint_kind(drawn.model, j)
    if kind == "free":
        return Free(below, body)
    if kind == "ball":
        return Spherical(below, body, at)
    if kind == "slide":
        return Prismatic(below, body, at, axis)
    return Revolute(below, body, at, axis)


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
    model = compiled_shapes(spec)
    data = _at_reference(model)
    kinds, shown, colours = _kinds(), _shown(model), _colours(model)
    out = {}
    for i, name in enumerate(names_of(model, "geom", model.ngeom)):
        kind = kinds.get(int(model.geom_type[i]))
        if kind and shown[i]:
            place = data.geom_xpos[i].copy(), data.geom_xmat[i].reshape(3, 3).copy()
            out[name] = _shape(model, i, kind, bodies[model.geom_bodyid[i]], place, colours[i])
    return out


def _kinds() -> dict[int, ShapeKind]:
    kind = mujoco_reader().mjtGeom
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
    mujoco_reader().mju_quat2Mat(axes, model.mesh_quat[mesh])
    axes, centre = axes.reshape(3, 3), np.array(model.mesh_pos[mesh], float)
    faces = np.array(model.mesh_face[start : start + count])
    return centre + own @ axes.T, faces, centre, axes
