"""A mechanism as the tree of bodies that robot formats have, at its reference configuration."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd.graph import Topology, neutral, topology
from jaxmbd.io.export_steps import Step, steps_of
from jaxmbd.kinematics import poses
from jaxmbd.model.drawn_in_space import in_space
from jaxmbd.model.forces import (
    Actuator,
    JointDrag,
    JointLimit,
    JointTorque,
    TorsionBar,
    TorsionSpring,
)
from jaxmbd.model.joints import Joint
from jaxmbd.model.mechanism import Edge, Mechanism
from jaxmbd.model.numbers import GROUND, is_concrete

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
    """Cut joints that can be said better than those of the topology, or None.

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
        said = edge.kind.closing in CLOSING
        return said, *(edge.name not in x for x in (driven, loaded, light)), edge.name in top.cut

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
