"""A mechanism as the tree of bodies that robot formats have, at its reference configuration.

Joints become chains of hinges, slides, balls and free bodies. A tree joint that is declared from a
to b moves b by ``S₁(q₁) S₂(q₂) …``, each a turn or a travel about axes given at the reference
configuration q = 0. Where the tree runs from b to a, a moves by ``S₂⁻¹ S₁⁻¹``: the same axes
reversed, the last first, with the same coordinates. Named points on bodies become sites.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd.graph import Topology, neutral, topology
from jaxmbd.io.coordinates import SIZES, FileCoordinates, FileJoint
from jaxmbd.kinematics import poses
from jaxmbd.model import (
    GROUND,
    Actuator,
    ComRef,
    Edge,
    Joint,
    JointDrag,
    JointLimit,
    JointTorque,
    Mechanism,
    PointRef,
    TorsionBar,
    TorsionSpring,
    in_space,
    is_concrete,
)

StepKind = Literal["hinge", "slide", "ball", "free"]
_KINDS: dict[str, StepKind] = {"turn": "hinge", "travel": "slide", "ball": "ball", "free": "free"}


class Step(NamedTuple):
    """One elementary joint of a file.

    Attributes:
        kind: a hinge and a slide have one coordinate, ``factor · q[index]``; a ball has the
            quaternion ``q[index : index + 4]``, a free body also the displacement that follows.
        name: its name in the file.
        joint: the mechanism's joint.
        index: first of that joint's coordinates.
        factor: of the coordinate.
        axis: (3,), global axes at the reference configuration; zero for balls and free bodies.
        at: (3,) [m], in the same axes.
        axes: (3, 3), the axes in which the quaternion of a ball turns, columns, global.
        inverse: whether the ball turns the other way round.
    """

    kind: StepKind
    name: str
    joint: str
    index: int
    factor: float
    axis: np.ndarray
    at: np.ndarray
    axes: np.ndarray
    inverse: bool = False


def steps_of(
    joint: Joint, name: str, axes: np.ndarray, at: np.ndarray, *, reverse: bool
) -> tuple[Step, ...]:
    """The elementary joints from parent to child.

    Args:
        joint: with directions as components.
        name: its name.
        axes: orientation (3, 3) of its body a at the reference configuration.
        at: the joint point (3,) [m] there.
        reverse: whether its body a is the child.

    Raises:
        ValueError: the joint does not consist of such steps.
    """
    try:
        parts = joint.elementary()
    except TypeError as error:
        raise ValueError(f"joint '{name}' has no equal in formats of robots: {error}") from None
    sign = -1.0 if reverse else 1.0
    found = [
        Step(
            _KINDS[part.kind],
            name + part.suffix,
            name,
            part.index,
            float(part.factor),
            sign * axes @ np.asarray(part.axis, float),
            at,
            axes,
            reverse,
        )
        for part in parts
    ]
    # Turn and travel of a screw commute; its turn, which has the coordinate, stays first.
    screw = len({part.index for part in parts}) < len(parts)
    return tuple(found[::-1] if reverse and not screw else found)


class Sites:
    """Sites by name, made where they are asked for.

    A hardpoint has its name on the first body that asks for it, ``point.body`` on others.
    """

    def __init__(self, tree: WrittenTree):
        self.tree = tree
        self.places: dict[str, tuple[str, np.ndarray]] = {}
        """Body and point (3,) [m] at the reference configuration, by the site's name."""
        self.axes: dict[str, np.ndarray] = {}
        """Orientation (3, 3) there of those that are turned, by name."""
        self._known: dict[tuple[str, str], str] = {}
        self._seen: set[str] = set()

    def name(self, body: str, ref: Any) -> str:
        """The site of a point of a body."""
        if isinstance(ref, ComRef):
            point = f"{ref.body}.com"
        else:
            assert isinstance(ref, PointRef)
            # A point of literal coordinates; an import makes those of its joints and forces anew.
            owner, mech = ref.name.removesuffix(".at"), self.tree.mech
            point = ref.name
            if owner != point and (owner in mech.joints or owner in mech.forces):
                point = owner if owner not in mech.points else f"{owner}.point"
            self._seen.add(ref.name)
        key = (body, point)
        if key not in self._known:
            self._known[key] = self.add(body, point, self.tree.place(body, ref))
        return self._known[key]

    def add(self, body: str, wanted: str, place: np.ndarray, axes: np.ndarray | None = None) -> str:
        """A site at a place (3,) [m] with axes (3, 3), without them global; the name it gets."""
        name = wanted if wanted not in self.places else f"{wanted}.{body}"
        while name in self.places:
            name += ".site"
        self.places[name] = (body, place)
        if axes is not None:
            self.axes[name] = axes
        return name

    def all_points(self) -> None:
        """Sites for all points: on the bodies that parts have them on, else on the ground."""
        mech = self.tree.mech
        halves = [end for joint in mech.joints.values() for end in joint.attachments[::-1]]
        halves += [end for force in mech.forces.values() for end in force.attachments]
        written = {body.name for body in self.tree.bodies}
        for body, ref in halves:
            if body in written and isinstance(ref, PointRef):
                self.name(body, ref)
        for point in mech.structure.points:
            if point not in self._seen:
                self.name(GROUND, PointRef(point))


CLOSING = ("points", "axes", "bodies")
"""What equalities of points and bodies can hold together."""


class Placed(NamedTuple):
    """Rotation (3, 3) of a body from its drawn orientation, and its centre of mass (3,) [m]."""

    rotation: np.ndarray
    position: np.ndarray


@dataclass(frozen=True)
class WrittenBody:
    """A body at the reference configuration q = 0, in global axes.

    Attributes:
        name: of the body, and of the one that carries it.
        parent: name of the latter.
        steps: elementary joints between the two; none if it is fixed.
        rotation: (3, 3) from its drawn orientation.
        origin: (3,) [m], where its frame is.
        mass: [kg].
        com: (3,) [m].
        inertia: (3, 3) [kg m²] about the centre of mass.
    """

    name: str
    parent: str
    steps: tuple[Step, ...]
    rotation: np.ndarray
    origin: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True)
class WrittenTree:
    """The tree, parents first.

    Attributes:
        mech: the mechanism, in space, whose cut joints are to close its loops.
        top: its topology.
        bodies: those that are written; massless ones between two joints are not.
        poses: of all bodies at q = 0.
    """

    mech: Mechanism
    top: Topology
    bodies: tuple[WrittenBody, ...]
    poses: dict[str, Placed]

    def place(self, body: str, ref: Any) -> np.ndarray:
        """A point (3,) [m] of a body at q = 0, given by name, reference or coordinates."""
        return self.moved(body, np.asarray(self.mech.point(ref)))

    def moved(self, body: str, drawn: np.ndarray) -> np.ndarray:
        """Where a point (3,) [m] of a body is at q = 0 that is drawn at some place."""
        if body == GROUND:
            return drawn
        pose = self.poses[body]
        return pose.rotation @ (drawn - np.asarray(self.mech.com(body))) + pose.position

    def turned(self, body: str, drawn: np.ndarray) -> np.ndarray:
        """The orientation (3, 3) at q = 0 of something on a body, from that as drawn."""
        return drawn if body == GROUND else self.poses[body].rotation @ drawn

    def steps(self, joint: str) -> tuple[Step, ...]:
        """The elementary joints of a joint of the tree; none of a cut one."""
        return tuple(s for body in self.bodies for s in body.steps if s.joint == joint)

    def moves_about(self, body: str, axis: np.ndarray) -> bool:
        """Whether a body can only move in planes normal to an axis (3,)."""
        carried = {b.name: b for b in self.bodies}
        while body != GROUND:
            for step in carried[body].steps:
                along = abs(float(step.axis @ axis)) / np.sqrt(axis @ axis)
                if step.kind not in ("hinge", "slide"):
                    return False
                if abs(along - (step.kind == "hinge")) > 1e-12:
                    return False
            body = carried[body].parent
        return True


def written_tree(mech: Mechanism) -> WrittenTree:
    """The tree of a mechanism; its loops are cut at other joints where a format needs it.

    Raises:
        ValueError: its numbers are traced or a batch, or a joint has no equal.
    """
    if not all(is_concrete(x) for x in jax.tree_util.tree_leaves(mech)):
        raise ValueError(
            "its numbers are traced or placeholders; give a mechanism of known numbers"
        )
    if any(np.ndim(x) != 1 for x in (mech.gravity, *mech.points.values())):
        raise ValueError("it is a batch of mechanisms; give one of them")
    mech = in_space(mech.astype("float64"))
    if (cut := _better_cuts(mech)) is not None:
        mech = mech.replace(cut=cut)
    top = topology(mech)
    found = {
        name: Placed(np.asarray(pose.rotation), np.asarray(pose.position))
        for name, pose in poses(mech, jnp.asarray(neutral(mech))).items()
    }
    bare = WrittenTree(mech, top, (), found)
    bodies = [_body(bare, i) for i in range(len(top.bodies))]
    return WrittenTree(mech, top, _without_massless(mech, top, bodies), found)


def _better_cuts(mech: Mechanism) -> tuple[str, ...] | None:
    """Cut joints that the format supports better than those of the topology, or None.

    Joints that equalities cannot close, those with springs, drags and motors, and those of massless
    bodies belong into the tree: Kruskal's algorithm takes them first, then those that are in it.
    """
    top, s = topology(mech), mech.structure
    driven = {d[1] for d in s.drives} | {j for _, j in s.armatures}
    driven |= {j for _, terms in s.couplings for j, _ in terms}
    efforts = (Actuator, JointDrag, JointLimit, JointTorque, TorsionBar, TorsionSpring)
    loaded = {n for f in mech.forces.values() if isinstance(f, efforts) for n in f.joints}
    edges = [e for e in s.joints if e.kind.can_be_in_tree]
    empty = {n for n, body in mech.bodies.items() if not body.mass}
    light = {e.name for e in edges if {e.a, e.b} & empty}
    wanted = {e.name for e in edges if e.kind.closing not in CLOSING} | driven | loaded | light
    if not wanted & set(top.cut):
        return None

    def rank(edge: Edge) -> tuple[bool, ...]:
        supported = edge.kind.closing in CLOSING
        return (
            supported,
            *(edge.name not in x for x in (driven, loaded, light)),
            edge.name in top.cut,
        )

    group = {name: name for name in (GROUND, *s.bodies)}
    cut = []
    for edge in sorted(edges, key=rank):
        a, b = group[edge.a], group[edge.b]
        if a == b:
            cut.append(edge.name)
        group = {name: a if g == b else g for name, g in group.items()}
    return tuple(e.name for e in s.joints if e.name in cut)


def _body(tree: WrittenTree, i: int) -> WrittenBody:
    mech, top = tree.mech, tree.top
    name, above = top.bodies[i], top.parent[i]
    joint: Joint = mech.joint(top.tree[i])
    axes, at = tree.poses[joint.a].rotation, tree.place(joint.a, joint.point_a)
    steps = steps_of(joint, top.tree[i], axes, at, reverse=top.reversed_[i])
    pose, own = tree.poses[name], mech.bodies[name]
    inertia = pose.rotation @ np.asarray(mech.inertia(name)) @ pose.rotation.T
    return WrittenBody(
        name,
        GROUND if above < 0 else top.bodies[above],
        steps,
        pose.rotation,
        at,
        float(own.mass),
        pose.position,
        0.5 * (inertia + inertia.T),
    )


def _without_massless(
    mech: Mechanism, top: Topology, bodies: list[WrittenBody]
) -> tuple[WrittenBody, ...]:
    """Massless bodies between hinges and slides only carry: their joints go to what they carry."""
    held = {b for name in top.cut for b in (mech.joints[name].a, mech.joints[name].b)}
    held |= {b for force in mech.forces.values() for b in force.bodies}
    carried = [b.parent for b in bodies]
    found = {b.name: b for b in bodies}
    for name in list(found):
        body = found[name]
        above = found.get(body.parent)
        if above is None or above.mass or above.inertia.any():
            continue
        chain = (*above.steps, *body.steps)
        scalar = all(s.kind in ("hinge", "slide") for s in chain)
        if not scalar or len(chain) > 6 or above.name in held or carried.count(above.name) > 1:
            continue
        own = dataclasses.replace(body, parent=above.parent, steps=chain)
        found = {k: own if k == name else x for k, x in found.items() if k != above.name}
    return tuple(found.values())


def written_coordinates(tree: WrittenTree, *, angles: bool = False) -> FileCoordinates:
    """Coordinates of a file that lists the tree's bodies, each below its parent, in their order."""
    found, qpos, dof = [], 0, 0
    kinds = {"ball": "angles" if angles else "ball", "free": "free"}
    for body in _depth_first(tree):
        for step in body.steps:
            place, joint = tree.top.layout[step.joint], tree.mech.joints[step.joint]
            assert place.q is not None and place.v is not None
            kind: Any = kinds.get(step.kind, "scalar")
            before = step.index - (joint.nq - joint.nv if step.index else 0)
            found.append(
                FileJoint(
                    kind,
                    qpos,
                    dof,
                    place.q.start + step.index,
                    place.v.start + before,
                    start=step.at if kind == "free" else 0.0,
                    factor=step.factor,
                    inverse=step.inverse,
                )
            )
            qpos, dof = qpos + SIZES[kind][0], dof + SIZES[kind][1]
    return FileCoordinates(tuple(found), tree.top.nq, tree.top.nv)


def _depth_first(tree: WrittenTree) -> list[WrittenBody]:
    out, stack = [], [GROUND]
    while stack:
        name = stack.pop()
        out += [b for b in tree.bodies if b.name == name]
        stack += [b.name for b in tree.bodies[::-1] if b.parent == name]
    return out


Element = ElementTree.Element


def attribute(x: Any) -> str:
    """A text as it is; numbers with the digits that restore their bits."""
    if isinstance(x, str):
        return x
    return " ".join(repr(float(y)) for y in np.ravel(np.asarray(x, float)) + 0.0)


def add(parent: Element, tag: str, **attributes: Any) -> Element:
    """A new last child of an element; attributes that are None are left out."""
    given = {k: attribute(x) for k, x in attributes.items() if x is not None}
    return ElementTree.SubElement(parent, tag, given)


def xml_text(root: Element) -> str:
    """The text of a file, indented."""
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
