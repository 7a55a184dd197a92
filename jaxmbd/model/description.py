"""A description, before it is a mechanism, and those that are planar.

Planar ones have all points with two coordinates, lie in the plane xy and turn about z.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.model.body import Body, settled
from jaxmbd.model.coupling import BaseCoupling
from jaxmbd.model.forces import ForceElement
from jaxmbd.model.joints import Joint
from jaxmbd.model.numbers import (
    ComRef,
    PointRef,
    Toward,
    changed,
    is_concrete,
    lifted,
    vector_in_space,
)

_PLANE = (
    "this mechanism is planar, as most of its points have 2 coordinates: give 2 numbers, or draw "
    "all of it in space"
)


class Description(NamedTuple):
    """What a mechanism is made of, as it was given or as it is declared; see `Mechanism`."""

    bodies: dict[str, Any]
    joints: dict[str, Any]
    forces: dict[str, Any]
    drives: dict[str, Any]
    points: dict[str, Any]
    gravity: Any
    cut: tuple[str, ...] | None
    couplings: dict[str, Any]


def is_planar(given: Description) -> bool:
    """Whether a description is planar: more of its points have two coordinates than three."""
    shapes = [getattr(x, "shape", None) for _, x in _points(given)]
    return shapes.count((2,)) > shapes.count((3,))


def _points(given: Description) -> Iterator[tuple[str, Any]]:
    """All points given by coordinates or name, each with its description for messages."""
    for name, x in given.points.items():
        yield f"point '{name}'", x
    for name, body in given.bodies.items():
        yield f"body '{name}': com", getattr(body, "com", None)
    every = (("joint", given.joints), ("force", given.forces), ("coupling", given.couplings))
    for kind, elements in every:
        for name, element in elements.items():
            for field, x in getattr(element, "points", {}).items():
                yield f"{kind} '{name}': {field}", x


def plane_problems(given: Description) -> list[str]:
    """What a planar description must not contain, each problem with its remedy."""
    vectors = [*_points(given), ("gravity", given.gravity)]
    found = []
    for name, joint in given.joints.items():
        if isinstance(joint, Joint):
            found += _joint_problems(f"joint '{name}'", joint)
            fields = joint.directions_in_plane
            vectors += [(f"joint '{name}': {f}", getattr(joint, f)) for f in fields]
    for name, element in given.forces.items():
        found += _force_problems(f"force '{name}'", element)
    for name, body in given.bodies.items():
        if isinstance(body, Body) and getattr(body.inertia, "shape", ()) != ():
            found.append(f"body '{name}': inertia must be one number, about z [kg m²]")
    for what, x in vectors:
        shape = (2,) if isinstance(x, (PointRef, ComRef, Toward, str)) else _shape(x)
        if shape not in ((2,), None):
            found.append(f"{what} has shape {shape}; {_PLANE}")
    return found


def _force_problems(what: str, element: Any) -> list[str]:
    if not isinstance(element, ForceElement):
        return []
    if not element.serves_in_plane:
        kind = type(element).__name__
        return [f"{what} is a {kind}, which has no form in a planar mechanism; draw in space"]
    found = []
    for field in element.vectors:
        x = getattr(element, field)
        if is_concrete(x) and np.shape(x) == (3,) and not np.any(x):
            continue  # the default, zero
        if field in element.moments:
            if _shape(x) != ():
                found.append(f"{what}: {field} must be one number, about z [N·m]")
        elif _shape(x) != (2,):
            found.append(f"{what}: {field} has shape {_shape(x)}; {_PLANE}")
    return found


def _shape(x: Any) -> Any:
    return getattr(x, "shape", None)


def _joint_problems(what: str, joint: Joint) -> list[str]:
    if joint.in_plane() is None:
        return [
            f"{what} is a {type(joint).__name__}, which has no form in a planar mechanism; take "
            "a Revolute, Prismatic, Planar, Free, Fixed, Rod or PointOnLine, or draw all in space"
        ]
    return [f"{what}: {problem}" for problem in joint.problems_in_plane()]


def drawn_in_space(given: Description) -> Description:
    """The same parts with three coordinates, axes along z and inertias equal about all axes."""
    return given._replace(
        bodies={
            n: settled(changed(b, com=vector_in_space(b.com)), planar=False)
            if isinstance(b, Body)
            else b
            for n, b in given.bodies.items()
        },
        joints={n: j.in_space() if isinstance(j, Joint) else j for n, j in given.joints.items()},
        forces={
            n: lifted(e, (*e.points, *e.vectors)) if _can_be_lifted(e) else e
            for n, e in given.forces.items()
        },
        points={n: vector_in_space(x) for n, x in given.points.items()},
        couplings={
            n: lifted(c, c.points) if isinstance(c, BaseCoupling) else c
            for n, c in given.couplings.items()
        },
        gravity=vector_in_space(given.gravity),
    )


def _can_be_lifted(element: Any) -> bool:
    return isinstance(element, ForceElement) and element.serves_in_plane
