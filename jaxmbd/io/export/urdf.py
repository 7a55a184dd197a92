"""Write a mechanism as a robot description (URDF)."""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.io.conversion import Exported, LeftOut, LeftOutTable, UniqueNames
from jaxmbd.io.export.forces import FAR, WrittenForces
from jaxmbd.io.export.loops import JointPolynomial, joint_polynomial, screws
from jaxmbd.io.export.tree import (
    Element,
    Sites,
    Step,
    WrittenBody,
    WrittenTree,
    add,
    written_coordinates,
    written_tree,
    xml_text,
)
from jaxmbd.io.files import replace_file
from jaxmbd.model import GROUND, Armature, Mechanism, TorsionSpring

ROOT = "world"
GRAVITY = (0.0, 0.0, -9.81)
"""What readers of URDF assume."""


class _Frame(NamedTuple):
    """A link's frame at the reference configuration, global axes."""

    link: str
    rotation: np.ndarray
    origin: np.ndarray


def save_urdf(mech: Mechanism, path: str | os.PathLike[str], *, strict: bool = False) -> Exported:
    """Write a mechanism as a robot description (URDF), at its configuration q = 0.

    URDF has trees of hinges and slides: a joint with more degrees of freedom becomes several, with
    links without inertia between; a ball becomes three hinges about x, y and z, whose positions are
    the Bryant angles of its quaternion, singular at 90° of the second. Linear couplings and screws
    are mimic joints, points links without inertia, limits, viscous and dry friction attributes.
    Loops stay open. What URDF does not have is in the table `Exported.left_out`.

    Args:
        mech: one mechanism with known numbers.
        path: the file; it is replaced only once the new text is complete.
        strict: whether to refuse a mechanism of which something is left out.

    Raises:
        ValueError: its numbers are traced or a batch; a joint has no equal; with `strict`,
            something is left out.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = mbd.io.save_urdf(mbd.zoo.rssr(), f"{folder}/rssr.urdf")
        >>> print(written.left_out)
        left out      names  what that means
        1 cut joints  B      their loops stay open
        1 gravity     0 0 0  readers take 9.81 m/s² along -z
        >>> written.joints["A"]
        ('A.x', 'A.y', 'A.z')
    """
    tree = written_tree(mech)
    forces = WrittenForces(tree, Sites(tree), UniqueNames(tree.mech.structure.forces))
    sites = Sites(tree)
    sites.all_points()
    mimics, couplings = _mimics(tree)
    table = LeftOutTable([*_of_loops(tree, couplings), *_of_forces(tree, forces)])
    table.refuse(strict, "URDF has no equal for all of this mechanism")
    root = Element("robot", {"name": "jaxmbd"})
    add(root, "link", name=ROOT)
    frames = {GROUND: _Frame(ROOT, np.eye(3), np.zeros(3))}
    for body in tree.bodies:
        frames[body.name] = _branch(root, body, frames[body.parent], forces, mimics)
    _points(root, sites, frames)
    _refuse_repeated_names(root)
    replace_file(path, xml_text(root))
    joints = {n: tuple(x for s in tree.steps(n) for x in _names(s)) for n in tree.top.tree}
    return Exported(tree.mech, joints, written_coordinates(tree, angles=True), table)


def _refuse_repeated_names(root: Element) -> None:
    for kind in ("link", "joint"):
        names = [x.get("name") for x in root.iter(kind)]
        if twice := sorted({str(n) for n in names if names.count(n) > 1}):
            raise ValueError(
                f"several {kind}s would be called {', '.join(twice)}: rename the bodies or joints "
                f"of that name (the ground is {ROOT!r}, parts of joints are joint.x, …)"
            )


def _names(step: Step) -> list[str]:
    """Names of the joints of a step."""
    return [f"{step.name}.{x}" for x in "xyz"] if step.kind == "ball" else [step.name]


def _mimics(tree: WrittenTree) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Mimic elements by joint, and the couplings that are none."""
    found: dict[str, dict[str, Any]] = {}

    def mimics(item: JointPolynomial | None) -> bool:
        if item is None or item.second is None or item.first in found or np.any(item.numbers[2:]):
            return False
        offset, multiplier = (*item.numbers, 0.0, 0.0)[:2]
        found[item.first] = {"joint": item.second, "multiplier": multiplier, "offset": offset}
        return True

    for screw in screws(tree):
        mimics(screw)
    names = [name for name, _ in tree.mech.structure.couplings]
    given = {n: joint_polynomial(tree, n, tree.mech.coupling(n)) for n in names}
    return found, [n for n in names if not mimics(given[n])]


def _of_loops(tree: WrittenTree, couplings: list[str]) -> list[LeftOut]:
    s, gravity = tree.mech.structure, np.asarray(tree.mech.gravity)
    text = " ".join(f"{x:g}" for x in gravity)
    return [
        LeftOut("cut joints", tree.top.cut, "their loops stay open"),
        LeftOut("couplings that are not linear", tuple(couplings), "absent"),
        LeftOut("drives", tuple(n for n, _, _ in s.drives), "their coordinates are free"),
        LeftOut(
            "gravity",
            () if np.array_equal(gravity, GRAVITY) else (text,),
            "readers take 9.81 m/s² along -z",
        ),
    ]


def _of_forces(tree: WrittenTree, forces: WrittenForces) -> list[LeftOut]:
    """What the joints of URDF do not have of the forces."""
    balls = {s.name for body in tree.bodies for s in body.steps if s.kind in ("ball", "free")}
    rubbing = ("damping", "frictionloss")
    own = tree.mech.forces
    springs = tuple(n for n, f in own.items() if isinstance(f, TorsionSpring) and f.stiffness)
    parts = {
        "armatures": [n for n, f in own.items() if isinstance(f, Armature)],
        "friction of balls and free bodies": [
            n for n, x in forces.joints.items() if n in balls and any(x.get(k) for k in rubbing)
        ],
        "springs between points and between joints": [
            n for n, x in forces.tendons.items() if "stiffness" in x
        ],
        "actuators and constant loads": list(forces.actuators),
    }
    absent = {name for names in parts.values() for name in names}
    rows = [LeftOut("springs of joints", springs, "their dampers alone")]
    rows += [LeftOut(what, tuple(names), "absent") for what, names in parts.items()]
    for row in forces.left_out.rows():
        rows.append(row._replace(names=tuple(n for n in row.names if n not in absent)))
    return rows


def _branch(
    root: Element,
    body: WrittenBody,
    below: _Frame,
    forces: WrittenForces,
    mimics: dict[str, dict[str, Any]],
) -> _Frame:
    """The joints and links from what carries a body to the body."""
    parts = [(name, step, axis) for step in body.steps for name, axis in _parts(step)]
    for i, (name, step, axis) in enumerate(parts):
        last = i == len(parts) - 1
        link = body.name if last else f"{body.name}.{name}"
        frame = _Frame(link, body.rotation, step.at)
        if not last:
            add(root, "link", name=link)
        kind, limit = _kind(step, forces.joints.get(step.name, {}))
        joint = _joint(root, name, kind, below, frame)
        if kind != "floating":
            add(joint, "axis", xyz=body.rotation.T @ axis)
        if limit is not None:
            ends = {"lower": limit[0], "upper": limit[1]}
            add(joint, "limit", **ends, effort=FAR, velocity=FAR)
        extras = forces.joints.get(step.name, {})
        if step.kind in ("hinge", "slide") and {"damping", "frictionloss"} & extras.keys():
            rubbing = extras.get("damping", 0.0), extras.get("frictionloss", 0.0)
            add(joint, "dynamics", damping=rubbing[0], friction=rubbing[1])
        if name in mimics:
            add(joint, "mimic", **mimics[name])
        below = frame
    if not parts:
        frame = _Frame(body.name, body.rotation, body.origin)
        _joint(root, f"{body.name}.weld", "fixed", below, frame)
        below = frame
    _link(root, body, below)
    return below


def _parts(step: Step) -> list[tuple[str, np.ndarray]]:
    """Name and axis, global, of the joints of a step."""
    if step.kind != "ball":
        return [(step.name, step.axis)]
    return list(zip(_names(step), step.axes.T, strict=True))


def _kind(step: Step, extras: dict[str, Any]) -> tuple[str, Any]:
    """The type of a joint, and its range, without which a prismatic joint is none."""
    limit = extras.get("range")
    if step.kind == "free":
        return "floating", None
    if step.kind == "slide":
        return "prismatic", limit or (-FAR, FAR)
    return ("continuous", None) if limit is None else ("revolute", limit)


def _joint(root: Element, name: str, kind: str, below: _Frame, frame: _Frame) -> Element:
    joint = add(root, "joint", name=name, type=kind)
    add(joint, "parent", link=below.link)
    add(joint, "child", link=frame.link)
    at = below.rotation.T @ (frame.origin - below.origin)
    add(joint, "origin", xyz=at, rpy=roll_pitch_yaw(below.rotation.T @ frame.rotation))
    return joint


def _link(root: Element, body: WrittenBody, frame: _Frame) -> None:
    link = add(root, "link", name=body.name)
    if not body.mass and not body.inertia.any():
        return
    inertial = add(link, "inertial")
    com = frame.rotation.T @ (body.com - frame.origin)
    add(inertial, "origin", xyz=com, rpy=np.zeros(3))
    add(inertial, "mass", value=body.mass)
    own = frame.rotation.T @ body.inertia @ frame.rotation
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = own
    add(inertial, "inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)


def _points(root: Element, sites: Sites, frames: dict[str, _Frame]) -> None:
    """A link without inertia for each point."""
    taken = {frame.link for frame in frames.values()}
    for name, (body, place) in sites.places.items():
        link = name if name not in taken else f"{name}.point"
        add(root, "link", name=link)
        frame = _Frame(link, frames[body].rotation, place)
        _joint(root, f"{link}.fixed", "fixed", frames[body], frame)


def roll_pitch_yaw(r: np.ndarray) -> np.ndarray:
    """URDF's angles (3,) [rad] of a rotation: about the fixed axes x, then y, then z.

    The roll is that of what is left after the yaw, so that the three fit together where the pitch
    is 90° and roll and yaw are not defined alone.
    """
    yaw = math.atan2(r[1, 0], r[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    left = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ r
    pitch = math.atan2(-left[2, 0], left[0, 0])
    return np.array([math.atan2(-left[1, 2], left[1, 1]), pitch, yaw])
