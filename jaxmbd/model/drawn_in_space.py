"""A planar mechanism drawn in space."""

from __future__ import annotations

from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.parts import CheckedPoints
from jaxmbd.model.plane import drawn_in_space


def in_space(mech: Mechanism) -> Mechanism:
    """The same mechanism drawn in space: points with z = 0, axes along z.

    It moves like the planar one, with the same q and v. Its cut joints have the rows of spatial
    joints, of which those out of the plane are redundant (`mobility` names them); a `Free` joint
    becomes a `Planar` one. The inertia about z is used about all axes: those about x and y have no
    effect.

    Args:
        mech: the mechanism; a spatial one is returned unchanged.

    Example:
        >>> import jaxmbd as mbd
        >>> flat = mbd.Mechanism(
        ...     bodies={"arm": mbd.Body(2.0, com=(0.5, 0.0), inertia=0.1)},
        ...     joints={"hinge": mbd.Revolute("ground", "arm", at=(0.0, 0.0))},
        ... )
        >>> mbd.in_space(flat).point("hinge.at").tolist()
        [0.0, 0.0, 0.0]
    """
    s = mech.structure
    if not s.planar:
        return mech
    parts = drawn_in_space(
        {n: mech.bodies[n] for n in s.bodies},
        {e.name: mech.joints[e.name] for e in s.joints},
        {n: mech.forces[n] for n in s.forces},
        {n: mech.points[n] for n in s.points},
        mech.gravity,
    )
    bodies, joints, forces, points, gravity = parts
    drives = {n: mech.drives[n] for n, _, _ in s.drives}
    couplings = {n: mech.couplings[n] for n, _ in s.couplings}
    return Mechanism(
        bodies,
        joints,
        forces,
        drives,
        CheckedPoints(points, earlier=mech),
        gravity,
        s.cut,
        couplings,
    )
