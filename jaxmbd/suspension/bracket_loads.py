"""Loads of brackets and mounts: the shares of a hinge's two points, and all that meets at a point.

*Brackets*. A hinge through two points A and B of a part carries the force F and the moment M about
A. With d = B − A and the hinge free to turn, ``M · d = 0``, statics gives the forces across the
axis: ``F_B = (M × d) / d²``, ``F_A = F − F_B``. How A and B share the force along the axis, statics
does not say: it depends on the axial rates of the bushings, and is the other way round with the
first play. Here each gets half, as two equal bushings share it; who sizes a bracket for the worst
adds the other half, which ``<joint>_axial`` tells.

*Mounts*. Where joints and springs end at one point of the chassis, as at the top of a strut, the
chassis feels their sum: of a rod its tension, of a hinge through two points the share of its
bracket there, of another joint its whole force.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxmbd.model import Mechanism, PointRef, SpringDamper, Toward, distance
from jaxmbd.observe import AxialForce, Element, Observable, Output, Reaction, Snapshot, is_rod
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
        force, axial = self.force(at)
        return axial if self.axis == "axial" else _part(force, self.axis)

    def force(self, at: Snapshot) -> tuple[Array, Array]:
        """The force (3,) on body b, and that along the axis which both brackets share."""
        wrench, body = at.reactions[self.joint], at.mech.joint(self.joint).a
        near, other = (at.motion.position(body, name) for name in self.points)
        d = other - near
        along = unit(d)
        axial = along @ wrench[3:]
        across = cross(wrench[:3], d) / (d @ d)
        if not self.far:
            across = wrench[3:] - axial * along - across
        return across + 0.5 * axial * along, axial

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
    """A rod or a spring that ends at a mount: its name, whether it is a rod, its other end."""

    name: str
    rod: bool
    body: str
    point: Any


class _Hold(NamedTuple):
    """A joint that holds a mount: its name, the sign of its reaction there, its bracket if any."""

    name: str
    sign: float
    bracket: _Bracket | None


@dataclass(frozen=True)
class _Mount(Observable):
    """The force of joints and springs on a body at a point, world axes.

    Attributes:
        body: that body.
        point: name of the point.
        joints: those that hold it there.
        pulls: rods and springs that end there.
        axis: "norm", "x", "y", "z".
    """

    body: str
    point: str
    joints: tuple[_Hold, ...]
    pulls: tuple[_Pull, ...]
    axis: str

    def value(self, at: Snapshot) -> Array:
        here = at.motion.position(self.body, self.point)
        force: Any = 0.0
        for name, sign, bracket in self.joints:
            own = at.reactions[name][3:] if bracket is None else bracket.force(at)[0]
            force = force + sign * own
        for pull in self.pulls:
            what = AxialForce(pull.name) if pull.rod else Element(pull.name)
            there = at.motion.position(pull.body, pull.point)
            force = force + what.value(at) * unit(there - here)
        return _part(jnp.asarray(force), self.axis)

    def about(self, mech: Mechanism) -> Output:
        names = ", ".join([*(x.name for x in self.joints), *(x.name for x in self.pulls)])
        of = "size" if self.axis == "norm" else f"{self.axis} component"
        return Output("N", f"force of {names} on {self.body} at {self.point}: {of}")

    def problems(self, mech: Mechanism) -> list[str]:
        return [text for x in self.joints for text in Reaction(x.name).problems(mech)]


def bracket_loads(mech: Mechanism) -> dict[str, Observable]:
    """Forces at both points of every hinge whose axis runs through two named points.

    A point that two hinges share has the hinge's name before its own.
    """
    hinges = _hinges(mech)
    points = [p for ends in hinges.values() for p in ends]
    found: dict[str, Observable] = {}
    for joint, ends in hinges.items():
        for far, point in enumerate(ends):
            own = point if points.count(point) == 1 else f"{joint}_{point}"
            name = f"{own}_force"
            found |= {_named(name, x): _Bracket(joint, bool(far), ends, x) for x in _AXES}
        found[f"{joint}_axial"] = _Bracket(joint, False, ends, "axial")
    return found


def _hinges(mech: Mechanism) -> dict[str, tuple[str, str]]:
    """Every hinge with the point that it is declared at and the other on its axis."""
    found = {}
    for edge in mech.structure.joints:
        joint: Any = mech.joints[edge.name]
        if joint.speeds == ("angle",) and (ends := _ends(joint)) is not None:
            found[edge.name] = ends
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
    """Forces on the chassis where a joint that holds a point, or a rod, and springs end together.

    Args:
        mech: the corner or axle, with its springs.
        wheels: its roles.
        locked: names of the springs that keep their lengths.
    """
    found: dict[str, Observable] = {}
    for body in dict.fromkeys(c.chassis for c in wheels):
        held, rods = _holds(mech, body), _rods(mech, body)
        springs = _springs(mech, body, set(locked))
        for point in dict.fromkeys((*held, *rods)):
            if point not in springs:
                continue
            joints = tuple(held.get(point, ()))
            pulls = (*rods.get(point, ()), *springs[point])
            name = f"{point}_mount_force"
            found |= {_named(name, x): _Mount(body, point, joints, pulls, x) for x in _AXES}
    return found


def _holds(mech: Mechanism, body: str) -> dict[str, list[_Hold]]:
    """Joints that hold a body, by the name of its point."""
    found: dict[str, list[_Hold]] = {}
    hinges = _hinges(mech)
    for edge in mech.structure.joints:
        joint: Any = mech.joints[edge.name]
        if body not in (edge.a, edge.b) or "force" not in joint.rows:
            continue
        second = joint.points.get("at_b") if edge.b == body else None
        at = second or joint.points.get("at")
        sign = 1.0 if edge.b == body else -1.0
        if ends := hinges.get(edge.name):
            for far, point in enumerate(ends):
                bracket = _Bracket(edge.name, bool(far), ends, "norm")
                found.setdefault(point, []).append(_Hold(edge.name, sign, bracket))
        elif isinstance(at, PointRef):
            found.setdefault(at.name, []).append(_Hold(edge.name, sign, None))
    return found


def _rods(mech: Mechanism, body: str) -> dict[str, list[_Pull]]:
    """Rods that end on a body, by the name of its point."""
    joints = {e.name: mech.joints[e.name] for e in mech.structure.joints}
    return _pulls(body, {n: (x, True) for n, x in joints.items() if is_rod(type(x))})


def _springs(mech: Mechanism, body: str, locked: set[Any]) -> dict[str, list[_Pull]]:
    """Springs that end on a body, by the name of its point."""
    every = {n: mech.forces[n] for n in mech.structure.forces}
    springs = {n: x for n, x in every.items() if isinstance(x, SpringDamper)}
    return _pulls(body, {n: (x, n in locked) for n, x in springs.items()})


def _pulls(body: str, elements: Mapping[str, tuple[Any, bool]]) -> dict[str, list[_Pull]]:
    """What has two ends and pulls at a body, by the name of its point."""
    found: dict[str, list[_Pull]] = {}
    for name, (element, rod) in elements.items():
        ends = [(element.a, element.at_a), (element.b, element.at_b)]
        for (own, here), (other, there) in (ends, ends[::-1]):
            if own == body and isinstance(here, PointRef):
                pull = _Pull(name, rod, other, getattr(there, "name", there))
                found.setdefault(here.name, []).append(pull)
    return found
