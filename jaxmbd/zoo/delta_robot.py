"""The delta robot: three arms on the frame, each with a parallelogram of rods to the platform."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.model import Body, Free, Joint, Mechanism, Revolute, Rod, number
from jaxmbd.zoo.drawing import downward, functions_for, rod_inertia

_ARMS = (1, 2, 3)
_UP = np.array([0.0, 0.0, 1.0])


def _outward(arm: int) -> tuple[np.ndarray, np.ndarray]:
    """Horizontal directions of an arm: away from the middle, and across (its shoulder's axis)."""
    angle = 2.0 * np.pi / 3.0 * (arm - 1)
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c, s, 0.0]), np.array([-s, c, 0.0])


def delta_robot_angles(
    position: Any, radii: Any = (0.2, 0.05), arm: Any = 0.25, rod: Any = 0.6
) -> Any:
    """Shoulder angles (…, 3) [rad] below the horizontal for a position of the platform.

    Let (x, z) be the platform's position in an arm's plane relative to the shoulder, minus the
    difference of the radii, and y the coordinate across. ``|(x − a cos θ, y, z + a sin θ)| = rod``
    then means ``−x cos θ + z sin θ = K`` with ``K = (rod² − a² − x² − y² − z²)/(2 a)``. Its roots
    are ``θ = −atan2(z, x) ± arccos(−K/|(x, z)|)``; the minus sign has the elbow outward.

    Args:
        position: of the platform's centre from the middle of the shoulders, (…, 3) [m].
        radii: of the shoulders' circle and of the platform's, (2,) [m].
        arm: length [m].
        rod: length [m].

    Example:
        >>> import jaxmbd as mbd
        >>> angles = mbd.zoo.delta_robot_angles((0.0, 0.0, -0.6))
        >>> bool(abs(angles - angles[0]).max() < 1e-12)
        True
    """
    position = number(position)
    xp = functions_for(position, radii, arm, rod)
    angles = []
    for i in _ARMS:
        out, across = _outward(i)
        x, y, z = position @ out + radii[1] - radii[0], position @ across, position[..., 2]
        k = (rod**2 - arm**2 - x * x - y * y - z * z) / (2.0 * arm)
        reach = xp.sqrt(x * x + z * z)
        angles.append(-xp.arctan2(z, x) - xp.arccos(-k / reach))
    return xp.stack(angles, axis=-1)


def delta_robot(
    radii: Any = (0.2, 0.05),
    arm: Any = 0.25,
    rod: Any = 0.6,
    width: Any = 0.08,
    drawn_angle: Any = 0.2,
    masses: Any = (0.5, 0.4),
    gravity: Any = 9.81,
) -> Mechanism:
    """A delta robot, drawn with its platform below the middle.

    Source: Clavel's parallel robot (US patent 4976582, 1990); the numbers are ours. `arm_i` turns
    about the horizontal axis of `shoulder_i`, positive downward; two equal parallel rods,
    `left_i` and `right_i`, massless here, join its end to the platform, which therefore only
    translates. The coordinate of `shoulder_i` is zero as drawn, at `drawn_angle` below the
    horizontal (see `delta_robot_angles`). The platform's own coordinates are those of the joint
    `platform` (free).

    Args:
        radii: of the shoulders' circle and of the platform's, (2,) [m].
        arm: length [m].
        rod: length [m].
        width: distance of the two rods of an arm [m].
        drawn_angle: of the arms below the horizontal [rad].
        masses: of each arm (a slender bar) and of the platform (a disc), (2,) [kg].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of three degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.mobility(mbd.zoo.delta_robot()).dof
        3
    """
    m_arm, m_platform = masses
    xp = functions_for(radii, arm, rod, drawn_angle)
    c, s = xp.cos(drawn_angle), xp.sin(drawn_angle)
    # As drawn the rods span (radii[0] + arm c − radii[1]) across and the rest down.
    drop = arm * s + xp.sqrt(rod**2 - (radii[0] + arm * c - radii[1]) ** 2)
    disc = m_platform * radii[1] ** 2 / 4.0
    bodies = {"platform": Body(m_platform, -drop * _UP, rod_inertia(_UP, 2.0 * disc, disc))}
    joints: dict[str, Joint] = {"platform": Free("ground", "platform")}
    points = {}
    for i in _ARMS:
        out, across = _outward(i)
        along = c * out - s * _UP
        shoulder, elbow = radii[0] * out, radii[0] * out + arm * along
        points[f"shoulder_{i}"] = shoulder
        bar = m_arm * arm**2 / 12.0
        bodies[f"arm_{i}"] = Body(m_arm, shoulder + arm / 2.0 * along, rod_inertia(along, 0.0, bar))
        # A turn about +across takes the outward direction down.
        joints[f"shoulder_{i}"] = Revolute("ground", f"arm_{i}", f"shoulder_{i}", axis=across)
        for side, name in ((-0.5, "right"), (0.5, "left")):
            points[f"elbow_{name}_{i}"] = elbow + side * width * across
            points[f"wrist_{name}_{i}"] = radii[1] * out - drop * _UP + side * width * across
            ends = f"elbow_{name}_{i}", f"wrist_{name}_{i}"
            joints[f"{name}_{i}"] = Rod(f"arm_{i}", "platform", *ends, length=rod)
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 2))
