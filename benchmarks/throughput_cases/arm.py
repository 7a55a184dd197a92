"""An open arm of seven revolutes, of the size of a light industrial robot."""

from __future__ import annotations

import numpy as np

import jaxmbd as mbd

# Heights of the joints over the base [m], axes, masses [kg] and box extents [m] of the links:
# round numbers of our own, near those of a 7 kg-payload arm stretched upwards.
_HEIGHTS = (0.16, 0.34, 0.54, 0.74, 0.94, 1.14, 1.22)
_TIP = 1.30
_AXES = ("z", "y", "z", "y", "z", "y", "z")
_MASSES = (4.0, 4.0, 3.0, 2.7, 1.7, 1.8, 0.3)
_WIDTHS = (0.14, 0.14, 0.12, 0.12, 0.10, 0.09, 0.06)
_DIRECTIONS = {"y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def arm() -> mbd.Mechanism:
    """The arm, drawn stretched upwards: `joint_i` carries `link_i`; axes alternate, z and y."""
    bodies, joints, points = {}, {}, {}
    ends = (*_HEIGHTS[1:], _TIP)
    for i, (z, end, axis) in enumerate(zip(_HEIGHTS, ends, _AXES, strict=True)):
        sides = np.array([_WIDTHS[i], _WIDTHS[i], end - z]) ** 2
        inertia = _MASSES[i] * (np.sum(sides) - sides) / 12.0
        offset = 0.02 * (-1) ** i
        bodies[f"link_{i}"] = mbd.Body(
            _MASSES[i], com=(0.0, offset, 0.5 * (z + end)), inertia=inertia
        )
        points[f"axis_{i}"] = (0.0, 0.0, z)
        parent = "ground" if i == 0 else f"link_{i - 1}"
        joints[f"joint_{i}"] = mbd.Revolute(
            parent, f"link_{i}", at=f"axis_{i}", axis=_DIRECTIONS[axis]
        )
    return mbd.Mechanism(bodies, joints, points=points)
