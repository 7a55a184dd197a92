"""Pictures of force elements: springs that stretch, dampers, wheels, bushings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmbd.model import (
    AntiRollBar,
    BumpStop,
    PacejkaTyre,
    SpringDamper,
    TorsionSpring,
    Tyre,
)
from jaxmbd.model.forces import ForceElement
from jaxmbd.model.forces.elastic import ElasticConnection
from jaxmbd.model.joints import Joint
from jaxmbd.model.joints.base import with_directions
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import GROUND
from jaxmbd.viz.joint_glyphs import floats
from jaxmbd.viz.solids import Mesh, coil, cylinder, frame_along, joined, ring, sphere, turned

SPRING, DAMPER, RUBBER, ROD, TYRE = (
    (0.86, 0.47, 0.13, 1.0),
    (0.33, 0.38, 0.44, 1.0),
    (0.48, 0.32, 0.58, 1.0),
    (0.60, 0.65, 0.70, 1.0),
    (0.13, 0.15, 0.18, 0.45),
)
"""Colours: red, green, blue and opacity."""


class Piece(NamedTuple):
    """A part of a picture between two points: its mesh stands along z, from one of them.

    Attributes:
        mesh: as long as drawn.
        colour: red, green, blue and opacity.
        fit: "stretched" between the points, or rigid "from a" or "from b" towards the other one.
    """

    mesh: Mesh
    colour: tuple[float, float, float, float]
    fit: str


class Wheel(NamedTuple):
    """A wheel to be drawn.

    Attributes:
        body: name of the body that it turns with.
        centre: as drawn (3,) [m].
        axis: of its rotation as drawn (3,).
        radius: [m].
        width: [m]; by default 0.6 of the radius.

    Example:
        >>> from jaxmbd.viz import Wheel
        >>> Wheel("spindle", (0, 0.9, 0), (0, 1, 0), radius=0.33).body
        'spindle'
    """

    body: str
    centre: Any
    axis: Any
    radius: float
    width: float | None = None


def pieces(element: Any, length: float, size: float) -> list[Piece]:
    """What is drawn between the two ends of a rod or a force element.

    Args:
        element: the part.
        length: distance of its ends as drawn [m].
        size: radius of a ball joint in the picture [m].
    """
    if isinstance(element, Joint):
        if all(look.form != "rod" for look in element.looks()):
            return []
        ends = [sphere(size).moved(np.eye(3), (0, 0, z)) for z in (0.0, length)]
        return [Piece(joined([cylinder(0.5 * size, 0.0, length), *ends]), ROD, "stretched")]
    if isinstance(element, SpringDamper):
        return _spring_damper(element, length, size)
    if isinstance(element, AntiRollBar):
        return [Piece(cylinder(0.4 * size, 0.0, length), SPRING, "stretched")]
    if isinstance(element, BumpStop):
        cone = turned([(0, 0), (1.2 * size, 0), (0.5 * size, 0.25 * length), (0, 0.25 * length)])
        return [Piece(cone, RUBBER, "from a")]
    return []


def _spring_damper(element: SpringDamper, length: float, s: float) -> list[Piece]:
    found = []
    damps = bool(np.any(np.asarray(element.damping)))
    springs = bool(np.any(np.asarray(element.stiffness))) or element.law is not None
    if damps:
        outer = cylinder(0.85 * s, 0.0, 0.55 * length)
        inner = cylinder(0.35 * s, 0.0, 0.7 * length)
        eye = sphere(0.8 * s)
        found.append(Piece(joined([outer, eye]), DAMPER, "from b"))
        found.append(Piece(joined([inner, eye]), ROD, "from a"))
    if springs or not damps:
        turns = int(np.clip(length / (1.6 * s), 5, 12))
        seats = [cylinder(1.7 * s, z - 0.12 * s, z + 0.12 * s) for z in (0.0, length)]
        wire = coil(1.4 * s, 0.22 * s, length, turns)
        found.append(Piece(joined([wire, *seats]), SPRING, "stretched"))
    return found


def force_solids(mech: Mechanism, force: ForceElement, size: float) -> list[tuple[str, Mesh, Any]]:
    """What of a force element moves with one body: its name, the mesh as drawn, its colour.

    Args:
        mech: the mechanism, drawn in space.
        force: one of its force elements.
        size: radius of a ball joint in the picture [m].
    """
    if isinstance(force, (Tyre, PacejkaTyre)):
        return wheel_solids(_wheel_of_tyre(mech, force))
    if isinstance(force, ElasticConnection) and force.replaced_joint is None:
        _, _, body, at = force.connected
        sleeve = ring(0.9 * size, 0.45 * size).moved(np.eye(3), mech.point(at))
        return [(body, sleeve, RUBBER)]
    if isinstance(force, TorsionSpring):
        joint = with_directions(mech.joints[force.joint], mech.point)
        if (axis := joint.bearing_axis()) is None or floats(mech, joint):
            return []
        spiral = coil(1.7 * size, 0.2 * size, 1.6 * size, turns=3)
        spiral = spiral.moved(np.eye(3), (0, 0, -0.8 * size))
        at = np.asarray(mech.point(joint.point_a))
        return [(joint.a, spiral.moved(frame_along(axis), at), SPRING)]
    return []


def _wheel_of_tyre(mech: Mechanism, tyre: Any) -> Wheel:
    """A tyre's wheel; its axis is that of a hinge of its body, else level."""
    up = np.asarray(tyre.up)
    axis = getattr(tyre, "axis", None)
    for joint in mech.joints.values():
        if axis is None and joint.bearing == "journal" and tyre.b in (joint.a, joint.b):
            axis = with_directions(joint, mech.point).bearing_axis()
    if axis is None:
        axis = np.cross(up, np.eye(3)[0 if abs(up[0]) < 0.9 else 1])
    return Wheel(tyre.b, np.asarray(mech.point(tyre.at)), np.asarray(axis), float(tyre.radius))


def wheel_solids(wheel: Wheel) -> list[tuple[str, Mesh, Any]]:
    """A tyre, through which the suspension shows, and a rim with spokes that show its rotation."""
    r = wheel.radius
    w = 0.5 * (0.6 * r if wheel.width is None else wheel.width)
    tread = [(0.66 * r, -w), (0.93 * r, -w), (r, -0.6 * w), (r, 0.6 * w), (0.93 * r, w)]
    tyre = turned([*tread, (0.66 * r, w), (0.66 * r, -w)], 40)
    spokes = [
        cylinder(0.04 * r, 0.0, 0.66 * r, 8).moved(frame_along((np.cos(u), np.sin(u), 0)))
        for u in 2.0 * np.pi * np.arange(5) / 5
    ]
    frame, at = frame_along(wheel.axis), np.asarray(wheel.centre)
    rim = joined([*spokes, ring(0.66 * r, 0.03 * r)]).moved(frame, at)
    return [(wheel.body, tyre.moved(frame, at), TYRE), (wheel.body, rim, (0.55, 0.58, 0.62, 1.0))]


def ends(element: Any) -> tuple[str, Any, str, Any] | None:
    """The two bodies and points that an element is drawn between, if there are two."""
    at_a, at_b = getattr(element, "at_a", None), getattr(element, "at_b", None)
    if at_a is None or at_b is None:
        return None
    return getattr(element, "a", GROUND), at_a, element.b, at_b
