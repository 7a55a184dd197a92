"""Write a mechanism as a MuJoCo model (MJCF)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbd.analysis import Status, assemble
from jaxmbd.graph import neutral
from jaxmbd.io.conversion import Exported, LeftOut, LeftOutTable, Shape, joined
from jaxmbd.io.export.forces import WrittenForces
from jaxmbd.io.export.loops import WrittenLoops
from jaxmbd.io.export.tree import (
    Element,
    Sites,
    WrittenBody,
    WrittenTree,
    add,
    written_coordinates,
    written_tree,
    xml_text,
)
from jaxmbd.io.files import replace_file
from jaxmbd.kinematics import constraint_residual, mechanism_length
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.plumbing import optional
from jaxmbd.spatial import quaternion_from_matrix

THICKNESS = 0.02
"""Radius of the drawn links, in lengths of the mechanism."""
STEP, STIFF = 1e-3, (0.999, 0.9999, 1e-3)
"""MuJoCo's step [s], and impedances of equalities. With its own defaults the loops of a suspension
corner under load open by centimetres; with these by 8 µm (`zoo.multi_link`, 8 kN)."""
OPEN = 1e-9
"""Closure error [m or rad] from which the assembled mechanism is written as a state."""

LEAST = 2e-15
"""Mass [kg] and moments of inertia [kg m²] in the place of zero; MuJoCo refuses less than 1e-15."""


def save_mjcf(
    mech: Mechanism,
    path: str | os.PathLike[str],
    *,
    shapes: Mapping[str, Shape] | None = None,
    strict: bool = False,
) -> Exported:
    """Write a mechanism as a MuJoCo model, at its configuration q = 0.

    Joints become hinges, slides and balls, several on a body where one joint has more degrees of
    freedom; cut joints `connect` and `weld` of sites, rods tendons of constant length, gears and
    screws equalities of joints; springs and dampers between points tendons, those of joints
    attributes, `Actuator` an actuator; constant forces and torques actuators without control;
    hardpoints sites.
    Links are drawn as capsules, or by the `shapes` of an import; they touch nothing.
    Numbers are written with all their digits, which MuJoCo's own writer does not do.

    If the mechanism is drawn open, the keyframe "assembled" has it closed. MuJoCo closes loops,
    limits joints and rubs by soft constraints, which are written as stiff as its step of 1 ms
    allows; fast mechanisms need a shorter one. What MJCF does not have is in the table
    `Exported.left_out`. Moments of inertia that are zero become 2e-15 kg m².

    Args:
        mech: one mechanism with known numbers.
        path: the file; it is replaced only once MuJoCo has accepted the model.
        shapes: what is drawn on the bodies, as of `Imported.shapes`.
        strict: whether to refuse a mechanism of which something is left out.

    Raises:
        ValueError: its numbers are traced or a batch; a joint has no equal; with `strict`,
            something is left out.
        ImportError: MuJoCo is not installed.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = mbd.io.save_mjcf(mbd.zoo.rssr(), f"{folder}/rssr.xml")
        ...     again = mbd.io.load_mjcf(f"{folder}/rssr.xml")
        >>> written
        exported: 3 bodies, 3 joints
        nothing is left out
        >>> q = mbd.assemble(written.mechanism, known={"crank": 0.3}).q
        >>> same = again.coordinates.q(written.coordinates.qpos(q))
        >>> bool(abs(mbd.constraint_residual(again.mechanism, same)).max() < 1e-12)
        True
    """
    mujoco = optional("mujoco", "io", "writing MJCF")
    tree = written_tree(mech)
    inertias, rows = acceptable_inertias(tree)
    sites = Sites(tree)
    loops = WrittenLoops(tree, sites)
    forces = WrittenForces(tree, sites, loops.names)
    sites.all_points()
    table = LeftOutTable([*rows, *loops.left_out.rows(), *forces.left_out.rows()])
    table.refuse(strict, "MJCF has no equal for all of this mechanism")
    coordinates = written_coordinates(tree)
    root = _model(tree, inertias, sites, loops, forces, shapes or {})
    text = xml_text(root)
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        raise ValueError(f"MuJoCo does not accept this mechanism: {error}") from None
    replace_file(path, text)
    joints = {n: tuple(s.name for s in tree.steps(n)) for n in tree.top.tree}
    return Exported(tree.mech, joints, coordinates, table)


def _model(
    tree: WrittenTree,
    inertias: dict[str, PrincipalInertia],
    sites: Sites,
    loops: WrittenLoops,
    forces: WrittenForces,
    shapes: Mapping[str, Shape],
) -> Element:
    root = Element("mujoco", {"model": "jaxmbd"})
    add(root, "compiler", angle="radian", autolimits="false")
    add(root, "option", gravity=np.asarray(tree.mech.gravity), timestep=STEP)
    radius = THICKNESS * float(mechanism_length(tree.mech))
    defaults = add(root, "default")
    add(defaults, "geom", contype="0", conaffinity="0", group="1", rgba=(0.4, 0.5, 0.6, 1.0))
    add(defaults, "equality", solref=(2.0 * STEP, 1.0), solimp=STIFF)
    add(defaults, "site", size=0.5 * radius, group="2")
    add(defaults, "tendon", width=0.5 * radius)
    world = add(root, "worldbody")
    elements = {GROUND: world}
    for body in tree.bodies:
        above = next((b for b in tree.bodies if b.name == body.parent), None)
        own = _body(elements[body.parent], body, above, inertias[body.name])
        for step in body.steps:
            axes = {} if step.kind in ("ball", "free") else {"axis": body.rotation.T @ step.axis}
            if step.kind != "free":
                axes["pos"] = local(body, step.at)
            extras = forces.joints.get(step.name, {})
            add(own, "joint", name=step.name, type=step.kind, **axes, **extras)
        elements[body.name] = own
    if shapes:
        draw_shapes(tree, shapes, root, elements)
    else:
        draw_links(tree, sites, elements, radius)
    for name, (body, place) in sites.places.items():
        frame = next((b for b in tree.bodies if b.name == body), None)
        at = place if frame is None else local(frame, place)
        axes = np.eye(3) if frame is None else frame.rotation.T
        turn = quaternion(axes @ sites.axes.get(name, np.eye(3)))
        add(elements[body], "site", name=name, pos=at, quat=turn)
    _tendons(root, loops, forces)
    if loops.equalities:
        equality = add(root, "equality")
        for item in loops.equalities:
            add(equality, item.tag, name=item.name, **item.attributes)
    _actuators(root, tree, forces)
    _state(root, tree, forces)
    return root


def _body(
    parent: Element, body: WrittenBody, above: WrittenBody | None, inertia: PrincipalInertia
) -> Element:
    turn = body.rotation if above is None else above.rotation.T @ body.rotation
    at = body.origin if above is None else local(above, body.origin)
    own = add(parent, "body", name=body.name, pos=at, quat=quaternion(turn))
    add(
        own,
        "inertial",
        pos=local(body, body.com),
        quat=quaternion(body.rotation.T @ inertia.axes),
        mass=inertia.mass,
        diaginertia=inertia.moments,
    )
    return own


def _tendons(root: Element, loops: WrittenLoops, forces: WrittenForces) -> None:
    found = joined(loops.tendons, forces.tendons)
    if not found:
        return
    tendon = add(root, "tendon")
    for name, attributes in found.items():
        numbers = {k: x for k, x in attributes.items() if k not in ("sites", "joints")}
        own = add(tendon, "spatial" if "sites" in attributes else "fixed", name=name, **numbers)
        for site in attributes.get("sites", ()):
            add(own, "site", site=site)
        for joint, factor in attributes.get("joints", ()):
            add(own, "joint", joint=joint, coef=factor)


def _actuators(root: Element, tree: WrittenTree, forces: WrittenForces) -> None:
    if not forces.actuators:
        return
    actuator = add(root, "actuator")
    for name, attributes in forces.actuators.items():
        add(actuator, "general", name=name, **attributes)


def _state(root: Element, tree: WrittenTree, forces: WrittenForces) -> None:
    """A keyframe of controls that are not zero, and of what is drawn open once it is closed."""
    found: dict[str, Any] = {}
    if forces.controls:
        found["ctrl"] = [forces.controls.get(name, 0.0) for name in forces.actuators]
    q = jnp.asarray(neutral(tree.mech))
    name = "controls"
    if jnp.abs(constraint_residual(tree.mech, q)).max(initial=0.0) > OPEN:
        closed = assemble(tree.mech, throw=False)
        if int(closed.status) == Status.OK:
            name, found["qpos"] = "assembled", written_coordinates(tree).qpos(closed.q)
    if found:
        add(add(root, "keyframe"), "key", name=name, **found)


class PrincipalInertia(NamedTuple):
    """Mass [kg], principal moments (3,) [kg m²] and their axes (3, 3), columns, global."""

    mass: float
    moments: np.ndarray
    axes: np.ndarray


def acceptable_inertias(
    tree: WrittenTree,
) -> tuple[dict[str, PrincipalInertia], list[LeftOut]]:
    """Inertias by body, and what had to be changed.

    Of a body that only turns about one direction, the moment about that is all that matters, and
    is taken about all axes.
    """
    out, massless, raised = {}, [], []
    for body in tree.bodies:
        inertia, changed = _of(tree, body)
        if changed:
            raised.append(body.name)
        if body.mass < LEAST and body.steps:
            massless.append(body.name)
            inertia = inertia._replace(mass=LEAST)
        out[body.name] = inertia
    rows = [
        LeftOut("massless bodies", tuple(massless), f"{LEAST:g} kg, which MuJoCo needs"),
        LeftOut(
            "inertias that no body can have",
            tuple(raised),
            "the smaller moments are raised until the largest is their sum",
        ),
    ]
    return out, rows


def _of(tree: WrittenTree, body: WrittenBody) -> tuple[PrincipalInertia, bool]:
    moments, axes = np.linalg.eigh(body.inertia)
    largest = float(moments[2])
    short = largest - moments[0] - moments[1]
    changed = False
    if short > -1e-15 * largest:
        about = _single_axis(tree, body)
        if about is not None:
            return PrincipalInertia(body.mass, np.full(3, max(about, LEAST)), np.eye(3)), False
        # By rounding alone: a flat body, of which MuJoCo's sum must not be less by any bit.
        changed = short > 1e-12 * largest
        moments = moments + max(short, 0.0) * np.array([0.5, 0.5, 0.0])
        moments[:2] *= 1.0 + 1e-15
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return PrincipalInertia(body.mass, np.maximum(moments, LEAST), axes), changed


def _single_axis(tree: WrittenTree, body: WrittenBody) -> float | None:
    """The moment of inertia about the only direction that a body turns about, or None."""
    carried, name = {b.name: b for b in tree.bodies}, body.name
    axes = []
    while name in carried:
        steps = carried[name].steps
        if any(s.kind in ("ball", "free") for s in steps):
            return None
        axes += [s.axis for s in steps if s.kind == "hinge"]
        name = carried[name].parent
    if not axes:
        return 0.0
    first = axes[0] / np.sqrt(axes[0] @ axes[0])
    if any(np.abs(np.cross(first, x)).max() > 1e-12 for x in axes):
        return None
    return float(first @ body.inertia @ first)


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
