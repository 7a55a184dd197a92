"""Cut joints, couplings and drives as equalities of MJCF.

A ball is a `connect` of two sites and a weld a `weld`. A revolute joint is two connects, the second
on the axis at the distance of the mechanism's length; one is enough where both bodies move in
planes normal to the axis, and so it is for a point on a line normal to those planes. A rod is a
tendon of constant length between two sites. Screws, gears and racks are conditions between two
coordinates that are polynomials, gears on a moving carrier a tendon of three.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.io.conversion import LeftOutNotes, UniqueNames
from jaxmbd.io.export.tree import Sites, WrittenTree
from jaxmbd.io.mujoco.equalities import polynomial
from jaxmbd.io.mujoco.forces import polynomial_of_a_tendon
from jaxmbd.kinematics import mechanism_length
from jaxmbd.model import BaseCoupling, Closing, Coupling, Gear, PlacedMesh, RackAndPinion

HIGHEST = 4
"""Degree of the polynomials in equalities of joints."""


class JointPolynomial(NamedTuple):
    """The position of one elementary joint is a polynomial of that of another, or a constant.

    Attributes:
        name: of the condition.
        first: the joint that follows.
        second: the other one, or None.
        numbers: coefficients, the constant first.
    """

    name: str
    first: str
    second: str | None
    numbers: np.ndarray


def screws(tree: WrittenTree) -> Iterator[JointPolynomial]:
    """The travel of each screw follows its turn."""
    for name in tree.top.tree:
        for first, second in itertools.combinations(tree.steps(name), 2):
            if first.index == second.index:
                ratio = np.array([0.0, second.factor / first.factor])
                yield JointPolynomial(f"{name}.pitch", second.name, first.name, ratio)


def joint_polynomial(
    tree: WrittenTree, name: str, coupling: BaseCoupling
) -> JointPolynomial | None:
    """A coupling whose condition is a polynomial of one coordinate; None of any other."""
    terms, numbers = coupling.terms, None
    if isinstance(coupling, Gear):
        terms, numbers = terms[::-1], [coupling.offset, coupling.ratio]
    elif isinstance(coupling, RackAndPinion):
        terms, numbers = terms[::-1], [coupling.offset, coupling.radius]
    elif isinstance(coupling, PlacedMesh) and len(terms) == 2:
        terms, numbers = terms[::-1], [coupling.offset, -coupling.factors[0]]
    elif isinstance(coupling, Coupling) and coupling.function is polynomial and len(terms) <= 2:
        numbers = coupling.params
    first, second, *_ = (*(elementary_joint(tree, *term) for term in terms), None, None)
    if numbers is None or first is None or (second is None and len(terms) > 1):
        return None
    numbers = np.asarray(numbers, float)
    return None if len(numbers) > HIGHEST + 1 else JointPolynomial(name, first, second, numbers)


def elementary_joint(tree: WrittenTree, joint: str, index: int) -> str | None:
    """The hinge or slide of one coordinate of a joint, if there is one."""
    names = [s.name for s in tree.steps(joint) if s.index == index and s.kind in ("hinge", "slide")]
    return names[0] if names else None


class Equality(NamedTuple):
    """An element of MJCF: what it is, its name and its other attributes."""

    tag: str
    name: str
    attributes: dict[str, Any]


class WrittenLoops:
    """What closes the loops of a mechanism.

    Attributes:
        equalities: in the order of the constraint rows.
        names: those of all forces, tendons and loads.
        tendons: by name, each with its two ``sites``, or its ``joints`` and their factors.
        left_out: what has no equal.
    """

    def __init__(self, tree: WrittenTree, sites: Sites):
        self.tree, self.sites = tree, sites
        self.equalities: list[Equality] = []
        self.tendons: dict[str, dict[str, Any]] = {}
        self.left_out = LeftOutNotes()
        self.names = UniqueNames(tree.mech.structure.forces)
        for name in tree.top.cut:
            joint = tree.mech.joint(name)
            close = _CLOSINGS.get(joint.closing)
            if close is None or not close(self, name, joint):
                kind = type(joint).__name__
                self.left_out.add(f"cut joints of type {kind}", "their loops stay open", name)
        for screw in screws(tree):
            self._polynomial(screw)
        for name, _ in tree.mech.structure.couplings:
            if not self._couple(name, tree.mech.coupling(name)):
                self.left_out.add("couplings by a function of one's own", "absent", name)
        for name, _, _ in tree.mech.structure.drives:
            self.left_out.add("drives", "their coordinates are free", name)

    def connect(self, name: str, first: str, second: str) -> None:
        """Two sites that stay together."""
        self.equalities.append(Equality("connect", name, {"site1": first, "site2": second}))

    def _polynomial(self, item: JointPolynomial) -> None:
        joints = {"joint1": item.first} | ({"joint2": item.second} if item.second else {})
        found = joints | {"polycoef": _five(item.numbers)}
        self.equalities.append(Equality("joint", item.name, found))

    def _couple(self, name: str, coupling: BaseCoupling) -> bool:
        """Write a coupling whose condition is a polynomial of coordinates or their combinations."""
        if isinstance(coupling, PlacedMesh) and len(coupling.terms) > 2:
            ratios = np.stack([coupling.factors, np.zeros(len(coupling.terms))])
            numbers = {"ratios": ratios, "polynomial": np.zeros(1)}
            coupling = Coupling(coupling.terms, polynomial_of_a_tendon, numbers)
        if isinstance(coupling, Coupling) and coupling.function is polynomial_of_a_tendon:
            return self._couple_tendons(name, coupling)
        if (item := joint_polynomial(self.tree, name, coupling)) is None:
            return False
        self._polynomial(item)
        return True

    def _couple_tendons(self, name: str, coupling: Coupling) -> bool:
        """Two linear combinations of coordinates, of which one is a polynomial of the other."""
        ratios, numbers = (np.asarray(coupling.params[k]) for k in ("ratios", "polynomial"))
        steps = [elementary_joint(self.tree, joint, index) for joint, index in coupling.terms]
        if None in steps or len(numbers) > HIGHEST + 1:
            return False
        found: dict[str, Any] = {"polycoef": _five(numbers)}
        for i, row in enumerate(ratios, start=1):
            if row.any():
                tendon = found[f"tendon{i}"] = self.names.unique(f"{name}.{i}", "tendon")
                self.tendons[tendon] = {
                    "joints": tuple((s, x) for s, x in zip(steps, row, strict=True) if x)
                }
        self.equalities.append(Equality("tendon", name, found))
        return "tendon1" in found


def _five(numbers: Any) -> np.ndarray:
    """Coefficients of a polynomial, as many as MuJoCo has."""
    numbers = np.asarray(numbers, float)
    return np.concatenate([numbers, np.zeros(HIGHEST + 1 - len(numbers))])


def _ball(out: WrittenLoops, name: str, joint: Any) -> bool:
    out.connect(name, *(out.sites.name(*end) for end in joint.attachments))
    return True


def _hinge(out: WrittenLoops, name: str, joint: Any) -> bool:
    tree = out.tree
    ends = joint.attachments
    out.connect(name, *(out.sites.name(*end) for end in ends))
    axes = np.asarray(joint.unit_axis()), np.asarray(joint.unit_axis_b())
    turned = [tree.poses[x].rotation @ axis for (x, _), axis in zip(ends, axes, strict=True)]
    if np.abs(turned[0] - turned[1]).max() < 1e-12 and all(
        tree.moves_about(body, turned[0]) for body, _ in ends
    ):
        return True
    length = float(mechanism_length(tree.mech))
    second = [
        out.sites.add(body, f"{name}.axis", tree.place(body, ref) + length * axis)
        for (body, ref), axis in zip(ends, turned, strict=True)
    ]
    out.connect(f"{name}.axis", *second)
    return True


def _weld(out: WrittenLoops, name: str, joint: Any) -> bool:
    """Sites of its own, as they are drawn: at q = 0 the bodies may be turned from each other."""
    tree = out.tree
    first, second = (
        out.sites.add(body, f"{name}.weld", tree.place(body, ref), tree.turned(body, np.eye(3)))
        for body, ref in joint.attachments
    )
    out.equalities.append(Equality("weld", name, {"site1": first, "site2": second}))
    return True


def _on_line(out: WrittenLoops, name: str, joint: Any) -> bool:
    tree = out.tree
    a, b = tree.place(joint.a, joint.point_a), tree.place(joint.b, joint.point_b)
    axis = tree.poses[joint.a].rotation @ np.asarray(joint.axis)
    axis = axis / np.sqrt(axis @ axis)
    if not all(tree.moves_about(body, axis) for body in (joint.a, joint.b)):
        return False
    along = axis * (axis @ (b - a))
    first = out.sites.name(joint.a, joint.point_a)
    if np.abs(along).max() > 1e-15:
        first = out.sites.add(joint.a, f"{name}.line", a + along)
    out.connect(name, first, out.sites.name(joint.b, joint.point_b))
    return True


def _rod(out: WrittenLoops, name: str, joint: Any) -> bool:
    mech, tree = out.tree.mech, out.tree
    drawn = joint.implied(mech.point)["length"]
    ends = (joint.a, joint.at_a), (joint.b, joint.at_b)
    span = tree.place(*ends[1]) - tree.place(*ends[0])
    length = float(drawn if joint.length is None else joint.length)
    tendon = out.names.unique(f"{name}.length", "tendon")
    out.tendons[tendon] = {"sites": tuple(out.sites.name(*end) for end in ends)}
    numbers = _five([length - float(np.sqrt(span @ span))])
    out.equalities.append(Equality("tendon", name, {"tendon1": tendon, "polycoef": numbers}))
    return True


_CLOSINGS: dict[Closing | None, Callable[[WrittenLoops, str, Any], bool]] = {
    "points": _ball,
    "axes": _hinge,
    "bodies": _weld,
    "point on line": _on_line,
    "distance": _rod,
}
