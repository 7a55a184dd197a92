"""Pictures of joints: the meshes of their looks (`Joint.looks`), drawn as the mechanism is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmbd.model import Mechanism
from jaxmbd.model.joints import Joint
from jaxmbd.model.joints.base import with_directions
from jaxmbd.model.joints.look import Look
from jaxmbd.viz.solids import Mesh, box, coil, cylinder, frame_along, joined, sphere, swept


def joint_glyph(mech: Mechanism, joint: Joint, size: float) -> list[tuple[str, Mesh]]:
    """The meshes of a joint in global coordinates as drawn, each with "a" or "b", which moves it.

    Args:
        mech: the mechanism, drawn in space.
        joint: one of its joints, or one that a `SoftJoint` replaces.
        size: of the picture [m]: the radius of a ball.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz.joint_glyphs import joint_glyph
        >>> rssr = mbd.zoo.rssr()
        >>> [on for on, _ in joint_glyph(rssr, rssr.joints["crank"], size=0.004)]
        ['a', 'b']
    """
    found = []
    at_a, at_b = (np.asarray(mech.point(x)) for x in (joint.point_a, joint.point_b))
    bearings = bearing_points(mech, joint)
    for look in with_directions(joint, mech.point).looks():
        if look.form not in _FORMS:
            continue  # such as a rod, which is between two bodies
        mesh = _FORMS[look.form](look, size)
        frame = np.eye(3) if look.axis is None else frame_along(look.axis)
        for bearing in bearings:
            place = bearing if look.on == "a" else bearing - at_a + at_b
            found.append((look.on, mesh.moved(frame, place)))
    return found


def bearing_points(mech: Mechanism, joint: Joint) -> np.ndarray:
    """Points (n, 3) [m] of a joint on a: of a hinge whose axis is given by two hardpoints, both."""
    at = np.asarray(mech.point(joint.point_a))
    axis: Any = getattr(joint, "axis", None)
    if joint.bearing != "journal" or not hasattr(axis, "start"):
        return at[None]
    both = np.stack([np.asarray(mech.point(x)) for x in (axis.start, axis.end)])
    along, away = both[1] - both[0], at - both[0]
    off = np.linalg.norm(np.cross(along, away)) / np.linalg.norm(along)
    return both if off < 1e-6 * np.linalg.norm(along) else at[None]


def drawn_joints(mech: Mechanism) -> dict[str, Joint]:
    """The joints by name, and those that force elements stand for (`SoftJoint`)."""
    soft = {n: f.replaced_joint for n, f in mech.forces.items() if f.replaced_joint is not None}
    return mech.joints | soft


def floats(mech: Mechanism, joint: Joint) -> bool:
    """Whether nothing is drawn of it: it leaves a body free, or is a condition on directions."""
    return not with_directions(joint, mech.point).looks()


def _cross(look: Look, s: float) -> Mesh:
    cap = cylinder(0.75 * s, 1.3 * s, 1.9 * s)
    other = Mesh(cap.vertices * [1.0, -1.0, -1.0], cap.faces)
    middle = sphere(0.7 * s) if look.on == "b" else cylinder(0.45 * s, -s, s)
    return joined([cylinder(0.45 * s, -1.7 * s, 1.7 * s), cap, other, middle])


def _screw(look: Look, s: float) -> Mesh:
    thread = coil(0.8 * s, 0.25 * s, 10.0 * s, turns=10).moved(np.eye(3), (0, 0, -5.0 * s))
    return joined([cylinder(0.8 * s, -5.0 * s, 5.0 * s), thread])


def _curve(look: Look, s: float) -> Mesh:
    path = np.asarray(look.detail)
    away = float(np.linalg.norm(path[-1] - path[0]))
    return swept(path, 0.4 * s, closed=away < 1e-6 * float(np.ptp(path, axis=0).max()))


_FORMS: dict[str, Callable[[Any, float], Mesh]] = {
    "ball": lambda _, s: sphere(1.15 * s),
    "bar": lambda _, s: box([0.7 * s, 0.7 * s, 5.0 * s]),
    "block": lambda _, s: box([1.4 * s, 1.4 * s, 1.8 * s]),
    "cross": _cross,
    "cube": lambda _, s: box([0.9 * s, 0.9 * s, 0.9 * s]),
    "curve": _curve,
    "foot": lambda _, s: cylinder(1.5 * s, -0.2 * s, 0.9 * s),
    "housing": lambda _, s: cylinder(s, -1.2 * s, 1.2 * s),
    "nut": lambda _, s: cylinder(1.5 * s, -1.2 * s, 1.2 * s, sides=6),
    "pin": lambda _, s: cylinder(0.55 * s, -1.7 * s, 1.7 * s),
    "rail": lambda _, s: cylinder(0.4 * s, -8.0 * s, 8.0 * s),
    "roller": lambda look, s: cylinder(float(look.detail), -0.8 * s, 0.8 * s),
    "screw": _screw,
    "shaft": lambda _, s: cylinder(0.8 * s, -5.0 * s, 5.0 * s),
    "sheet": lambda _, s: box([6.0 * s, 6.0 * s, 0.15 * s]),
    "sleeve": lambda _, s: cylinder(1.3 * s, -2.0 * s, 2.0 * s),
}
