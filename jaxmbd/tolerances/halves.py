"""The two halves of joints and of springs: which body carries which point, axis or length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.model import Mechanism, PointRef, Toward, changed, is_concrete

REFERENCES = ("x_axis",)
"""Directions that only say how a coordinate is counted; they have no tolerance."""


class Half(NamedTuple):
    """A field of an element that is a feature of one body.

    Attributes:
        field: of the element, for example "at_b".
        body: the body that carries it.
        value: what it is or follows: a `PointRef`, a `Toward`, or a direction.
    """

    field: str
    body: str
    value: Any


class Element(NamedTuple):
    """A joint or force element whose halves may lie apart from each other.

    Attributes:
        kind: "joints" or "forces".
        name: its name.
        halves: its points and axes.
        lengths: fields of its own lengths, which may follow the drawing.
    """

    kind: str
    name: str
    halves: tuple[Half, ...]
    lengths: tuple[str, ...]

    @property
    def points(self) -> dict[str, str]:
        """Name of the half's own point, ``POINT@BODY``, to that of the drawn point."""
        found = {}
        for half in self.halves:
            for name in point_names(half.value):
                found[f"{name}@{half.body}"] = name
        return found

    @property
    def axes(self) -> tuple[Half, ...]:
        """Halves that are directions by components, and tilt."""
        return tuple(h for h in self.halves if not point_names(h.value))


def point_names(value: Any) -> tuple[str, ...]:
    """Names of the points that a reference refers to."""
    if isinstance(value, PointRef):
        return (value.name,)
    return (value.start, value.end) if isinstance(value, Toward) else ()


def elements_of(mech: Mechanism) -> list[Element]:
    """All joints, and the force elements that join two bodies, in the order of declaration."""
    s = mech.structure
    found = [_element("joints", e.name, mech.joints[e.name]) for e in s.joints]
    found += [_element("forces", n, mech.forces[n]) for n in s.forces if mech.forces[n].joins]
    return [x for x in found if x.halves]


def _element(kind: str, name: str, part: Any) -> Element:
    joint = getattr(part, "replaced_joint", None) or part
    lengths = [f for f in part.implied(lambda ref: np.ones(3)) if f.endswith("length")]
    return Element(kind, name, (*_points(joint), *_directions(joint)), tuple(lengths))


def _points(part: Any) -> Iterator[Half]:
    """The points on a and on b; where one point serves both, b gets its own."""
    first = "at_a" if hasattr(part, "at_a") and not hasattr(part, "at") else "at"
    at_a, at_b = getattr(part, first, None), getattr(part, "at_b", None)
    if isinstance(at_a, PointRef):
        yield Half(first, part.a, at_a)
    if isinstance(at_b or at_a, PointRef) and hasattr(part, "at_b"):
        yield Half("at_b", part.b, at_b or at_a)


def _directions(part: Any) -> Iterator[Half]:
    """The axes on a and on b, likewise."""
    for field in getattr(part, "directions", ()):
        value = getattr(part, field)
        if field == "axis_b" and value is None:
            value = part.axis
        if value is not None and field not in REFERENCES:
            yield Half(field, part.b if field.endswith("_b") else part.a, value)


def moved_halves(part: Any, element: Element, axes: dict[str, Any], lengths: dict[str, Any]) -> Any:
    """The part with points of its own at each half, tilted axes and given lengths.

    Args:
        part: the joint or force element.
        element: what it consists of.
        axes: field to tilted direction.
        lengths: field to length [m].
    """
    fields: dict[str, Any] = dict(axes)
    for half in element.halves:
        names = [f"{n}@{half.body}" for n in point_names(half.value)]
        if names:
            fields[half.field] = PointRef(*names) if len(names) == 1 else Toward(*names)
    inner = getattr(part, "replaced_joint", None)
    if inner is not None:
        return changed(part, replaced=changed(inner, **fields), **lengths)
    return changed(part, **fields, **lengths)


def tilt_axes(direction: Any) -> np.ndarray:
    """Axes (n, 3) about which a direction tilts, perpendicular to it: two, or z in the plane.

    Of the global axes the one least along the direction comes first, made perpendicular.
    """
    if not is_concrete(direction):
        raise ValueError("an axis is traced; split a mechanism of known numbers")
    d = np.asarray(direction, float)
    if d.shape == (2,):
        return np.array([[0.0, 0.0, 1.0]])
    d = d / np.linalg.norm(d)
    first = np.eye(3)[np.argmin(np.abs(d))]
    first = first - (first @ d) * d
    first = first / np.linalg.norm(first)
    second = np.cross(d, first)
    return np.stack([first, second * np.sign(second[np.argmax(np.abs(second))])]) + 0.0
