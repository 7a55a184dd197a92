"""Write a mechanism as a MuJoCo model (MJCF)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbd.analysis import Status, assemble
from jaxmbd.graph import neutral
from jaxmbd.io.export.coordinates import written_coordinates
from jaxmbd.io.export.exported import Element, Exported, add, xml_text
from jaxmbd.io.export.forces import WrittenForces
from jaxmbd.io.export.inertia import PrincipalInertia, acceptable_inertias
from jaxmbd.io.export.loops import WrittenLoops
from jaxmbd.io.export.shapes import draw_links, draw_shapes, local, quaternion
from jaxmbd.io.export.tree import Sites, WrittenBody, WrittenTree, written_tree
from jaxmbd.io.imported import LeftOutTable
from jaxmbd.io.mechanism_file import replace_file
from jaxmbd.io.shape import Shape
from jaxmbd.io.unique_names import joined
from jaxmbd.kinematics import constraint_residual, mechanism_length
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.plumbing import optional

THICKNESS = 0.02
"""Radius of the drawn links, in lengths of the mechanism."""
STEP, STIFF = 1e-3, (0.999, 0.9999, 1e-3)
"""MuJoCo's step [s], and impedances of equalities. With its own defaults the loops of a suspension
corner under load open by centimetres; with these by 8 µm (`zoo.multi_link`, 8 kN)."""
OPEN = 1e-9
"""Closure error [m or rad] from which the assembled mechanism is written as a state."""


def save_mjcf(
    mech: Mechanism,
    path: str | os.PathLike[str],
    *,
    shapes: Mapping[str, Shape] | None = None,
    strict: bool = False,
) -> Exported:
    """Write a mechanism as a MuJoCo model, at its configuration q = 0.

    Joints become hinges, slides and balls, several on a body where one joint has more freedoms;
    cut joints `connect` and `weld` of sites, rods tendons of constant length, gears and screws
    equalities of joints; springs and dampers between points tendons, those of joints attributes,
    `Actuator` an actuator; constant forces and torques actuators without control; hardpoints sites.
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
    table = LeftOutTable([*rows, *loops.rows(), *forces.rows()])
    if strict and table:
        raise ValueError(f"strict=True, and MJCF has no equal for all of this mechanism:\n{table}")
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
