"""Conditions between two coordinates that are polynomials: screws, gears, racks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxmbd.io.export_tree import WrittenTree
from jaxmbd.io.mujoco_equalities import polynomial
from jaxmbd.model.coupling import BaseCoupling, Coupling, Gear, RackAndPinion

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
