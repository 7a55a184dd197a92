"""The wheel of a suspension corner."""

from __future__ import annotations

import numpy as np

from jaxmbd.model import Mechanism
from jaxmbd.suspension import Corner, drawn_wheel
from jaxmbd.viz.glyphs import Wheel


def corner_wheel(mech: Mechanism, corner: Corner) -> Wheel:
    """The wheel of a corner, for its picture.

    It turns with the body that a hinge joins to the upright at the wheel centre, if there is one.

    Args:
        mech: the mechanism.
        corner: what is what in it.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import zoo_corner
        >>> from jaxmbd.viz import corner_wheel
        >>> mech = mbd.zoo.macpherson()
        >>> corner_wheel(mech, zoo_corner("macpherson")).body
        'spindle'
    """
    upright, _ = corner.placed("upright", corner.wheel_centre)
    centre, spindle = map(np.asarray, drawn_wheel(mech, corner))
    body = upright
    for joint in mech.joints.values():
        if joint.bearing == "journal" and upright in (joint.a, joint.b):
            if np.allclose(mech.point(joint.point_a), centre, atol=1e-9):
                body = joint.b if joint.a == upright else joint.a
    return Wheel(body, centre, spindle, corner.tyre_radius)
