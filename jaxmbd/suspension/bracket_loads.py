"""Loads of brackets and mounts: the shares of a hinge's two points, and all that meets at a point.

*Brackets*. A hinge through two points A and B of a part carries the force F and the moment M about
A. With d = B − A and the hinge free to turn, ``M · d = 0``, statics gives the forces across the
axis: ``F_B = (M × d) / d²``, ``F_A = F − F_B``. How A and B share the force along the axis, statics
does not say: it depends on the axial rates of the bushings, and is the other way round with the
first play. Here each gets half, as two equal bushings share it; who sizes a bracket for the worst
adds the other half, which ``<joint>_axial`` tells.

*Mounts*. Where a joint and a spring end at one point of the chassis, as at the top of a strut, the
chassis feels their sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxmbd.model import Mechanism, PointRef, SpringDamper, Toward, distance
from jaxmbd.observe import AxialForce, Element, Observable, Output, Reaction, Snapshot
from jaxmbd.spatial import cross, unit
from jaxmbd.suspension.corner import Corner

_AXES = ("norm", "x", "y", "z")


def _part(vector: Array, axis: str) -> Array:
    """A component, or the size."""
    return distance(vector)[0] if axis == "norm" else vector["xyz".index(axis)]


def _named(name: str, axis: str) -> str:
    return name if axis == "norm" else f"{name}_{axis}"


@dataclass(frozen=True)
class _Bracket(Observable):
    """A hinge's force at one of its two points on its body b, world axes.

    Attributes:
        joint: the hinge.
        far: whether it is the force at the point that the hinge is not declared at.
        points: that point's name, and the other's, in this order (at, other).
        axis: "norm", "x", "y", "z"; "axial" is the force along the axis that both share.
    """

    joint: str
    far: bool
    points: tuple[str, str]
    axis: str

    def value(self, at: Snapshot) -> Array:
        wrench, body = at.reactions[self.joint], at.mech.joint(self.joint).a
        near, other = (at.motion.position(body, name) for name in self.points)
        d = other - near
        along = unit(d)
        axial = along @ wrench[3:]
        if self.axis == "axial":
            return axial
        across = cross(wrench[:3], d) / (d @ d)
        if not self.far:
            across = wrench[3:] - axial * along - across
        return _part(across + 0.5 * axial * along, self.axis)

    def about(self, mech: Mechanism) -> Output:
        body = mech.joints[self.joint].b
        near, other = self.points
        if self.axis == "axial":
            text = f"force of both brackets of {self.joint} on {body}, from {near} towards {other}"
            return Output("N", f"{text}; how they share it is not determined")
        point = other if self.far else near
        of = "size" if self.axis == "norm" else f"{self.axis} component"
        return Output("N", f"bracket {point} on {body}, half of the axial force: {of}")

    def problems(self, mech: Mechanism) -> list[str]:
        return Reaction(self.joint).problems(mech)


class _Pull(NamedTuple):
    """A spring that ends at a mount: its name, whether it is locked as a rod, its other end."""

    name: str
    locked: bool
    body: str
    point: Any


@dataclass(frozen=True)
class _Mount(Observable):
    """The force of joints and springs on a body at a point, world axes.

    Attributes:
        body: that body.
        point: name of the point.
        joints: names, and the sign of their reaction there.
        springs: those that end there.
        axis: "norm", "x", "y", "z".
    """

    body: str
    point: str
    joints: tuple[tuple[str, float], ...]
    springs: tuple[_Pull, ...]
    axis: str

    def value(self, at: Snapshot) -> Array:
        here = at.motion.position(self.body, self.point)
        force = sum(sign * at.reactions[name][3:] for name, sign in self.joints)
        for spring in self.springs:
            what = AxialForce(spring.name) if spring.locked else Element(spring.name)
            there = at.motion.position(spring.body, spring.point)
            force = force + what.value(at) * unit(there - here)
        return _part(jnp.asarray(force), self.axis)

    def about(self, mech: Mechanism) -> Output:
        names = ", ".join([*(n for n, _ in self.joints), *(s.name for s in self.springs)])
        of = "size" if self.axis == "norm" else f"{self.axis} component"
        return Output("N", f"force of {names} on {self.body} at {self.point}: {of}")

    def problems(self, mech: Mechanism) -> list[str]:
        return [text for name, _ in self.joints for text in Reaction(name).problems(mech)]


def bracket_loads(mech: Mechanism) -> dict[str, Observable]:
    """Forces at both points of every hinge whose axis runs through two named points."""
    found: dict[str, Observable] = {}
    for edge in mech.structure.joints:
        joint: Any = mech.joints[edge.name]
        if joint.speeds != ("angle",) or (ends := _ends(joint)) is None:
            continue
        for far in (False, True):
            name = f"{ends[far]}_force"
            found |= {_named(name, x): _Bracket(edge.name, far, ends, x) for x in _AXES}
        found[f"{edge.name}_axial"] = _Bracket(edge.name, False, ends, "axial")
    return found


def _ends(joint: Any) -> tuple[str, str] | None:
    """Names of the point that a hinge is declared at and of the other on its axis."""
    at, axis = joint.points.get("at"), getattr(joint, "axis", None)
    if not (isinstance(at, PointRef) and isinstance(axis, Toward)):
        return None
    ends = [axis.start, axis.end]
    if at.name not in ends or not all(isinstance(x, str) for x in ends):
        return None
    ends.remove(at.name)
    return (at.name, ends[0]) if len(ends) == 1 else None


def mount_loads(
    mech: Mechanism, wheels: Sequence[Corner], locked: Iterable[Any]
) -> dict[str, Observable]:
    """Forces on the chassis where a joint that holds a point and springs end together.

    Args:
        mech: the corner or axle, with its springs.
        wheels: its roles.
        locked: names of the springs that keep their lengths.
    """
    found: dict[str, Observable] = {}
    for body in dict.fromkeys(c.chassis for c in wheels):
        joints: dict[str, list[tuple[str, float]]] = {}
        for edge in mech.structure.joints:
            joint: Any = mech.joints[edge.name]
            at = joint.points.get("at")
            if body in (edge.a, edge.b) and isinstance(at, PointRef) and "force" in joint.rows:
                joints.setdefault(at.name, []).append((edge.name, 1.0 if edge.b == body else -1.0))
        for point, held in joints.items():
            springs = tuple(_springs_at(mech, body, point, set(locked)))
            if springs:
                name = f"{point}_mount_force"
                found |= {
                    _named(name, x): _Mount(body, point, tuple(held), springs, x) for x in _AXES
                }
    return found


def _springs_at(mech: Mechanism, body: str, point: str, locked: set[Any]) -> Iterable[_Pull]:
    """Springs with an end at a point of a body."""
    for name in mech.structure.forces:
        spring: Any = mech.forces[name]
        if not isinstance(spring, SpringDamper):
            continue
        ends = [(spring.a, spring.at_a), (spring.b, spring.at_b)]
        for (own, here), (other, there) in (ends, ends[::-1]):
            if own == body and isinstance(here, PointRef) and here.name == point:
                yield _Pull(name, name in locked, other, getattr(there, "name", there))
