"""Parallel robots: the agile wrist, the delta robot, the Stewart-Gough platform."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.model import (
    Body,
    Cylindrical,
    Free,
    Joint,
    Mechanism,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
    number,
)
from jaxmbd.zoo.drawing import bar, downward, functions_for, rod_inertia, unit_vector

_X, _Y, _Z = np.eye(3)
AGILE_EYE_AXES = np.array([(_X, _Z, -_Y), (_Z, _Y, -_X), (_Y, _X, -_Z)])
"""Axes (3, 3, 3) of the agile eye as drawn: of each leg u_i, w_i and v_i."""


def _arc(mass: Any, radius: Any, start: np.ndarray, end: np.ndarray) -> Body:
    """A thin quarter circle about the centre, from the direction `start` to `end`.

    The mean of its directions e is ``(2/π)(u + w)``, the mean of ``e eᵀ`` is
    ``½ (u uᵀ + w wᵀ) + (u wᵀ + w uᵀ) / π``.
    """
    direction = 2.0 / np.pi * (start + end)
    square = 0.5 * (np.outer(start, start) + np.outer(end, end))
    square = square + (np.outer(start, end) + np.outer(end, start)) / np.pi
    central = np.eye(3) - square
    central = central - (direction @ direction) * np.eye(3) + np.outer(direction, direction)
    return Body(mass, com=radius * direction, inertia=mass * radius**2 * central)


def agile_wrist(
    masses: Any = (0.30, 0.25, 0.80),
    radii: Any = (0.12, 0.09),
    platform_com: Any = (-0.02, -0.02, -0.02),
    platform_inertia: Any = (1.1e-3, 1.2e-3, 1.0e-3),
    gravity: Any = 9.81,
    overconstrained: bool = True,
) -> Mechanism:
    """The agile wrist, drawn assembled at θ = 0, R = 1.

    Source: the case study of Ghaedrahmati et al. (2019), whose dimensions are not given: the axes
    of the agile eye (Gosselin and Hamel 1994), and numbers of our own. All axes intersect in one
    centre, and consecutive ones are orthogonal. Leg i turns about u_i, fixed in the ground (x, z, y
    for legs 1, 2, 3), then about w_i (z, y, x as drawn), then about v_i, fixed in the platform
    (−y, −x, −z as drawn). Links are thin quarter circles about the centre, proximal ones from u_i
    to w_i, distal ones from w_i to v_i.
    Bodies: `proximal1`, `distal1` and so on, `platform`. Joints: `base1` (its coordinate is θ_1),
    `elbow1`, `wrist1` and so on, at the ends of the links.
    Its two loops of revolutes through one point have six redundant rows: a force that is passed
    around a loop through the centre has no resultant on any link, so that the joints' forces are
    only partly determinate.

    Args:
        masses: of a proximal link, a distal link and the platform, (3,) [kg].
        radii: of the proximal and the distal links, (2,) [m].
        platform_com: the platform's centre of mass as drawn, from the centre, (3,) [m].
        platform_inertia: about its centre of mass: three moments, or (3, 3) [kg m²].
        gravity: a vector (3,), or a number along −z [m/s²].
        overconstrained: if false, the joints of legs 2 and 3 are cylindrical: these legs orient
            the platform but do not constrain its centre, no row is redundant and all reactions
            are determinate; the motion is the same.

    Returns:
        The mechanism, of three degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mobility = mbd.mobility(mbd.zoo.agile_wrist())
        >>> mobility.dof, len(mobility.redundant)
        (3, 6)
    """
    proximal, distal, platform = masses
    outer, inner = radii
    points: dict[str, Any] = {"centre": np.zeros(3)}
    bodies: dict[str, Body] = {}
    joints: dict[str, Any] = {}
    for k, (u, w, v) in enumerate(AGILE_EYE_AXES, start=1):
        kind = Revolute if overconstrained or k == 1 else Cylindrical
        bodies[f"proximal{k}"] = _arc(proximal, outer, u, w)
        bodies[f"distal{k}"] = _arc(distal, inner, w, v)
        points |= {f"base{k}": outer * u, f"elbow{k}": outer * w, f"wrist{k}": inner * v}
        chain = ("ground", f"proximal{k}", f"distal{k}", "platform")
        for a, b, name in zip(chain, chain[1:], ("base", "elbow", "wrist"), strict=False):
            joints[f"{name}{k}"] = kind(a, b, at=f"{name}{k}", axis=("centre", f"{name}{k}"))
    bodies["platform"] = Body(platform, com=number(platform_com), inertia=platform_inertia)
    cut = ("wrist2", "wrist3")
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 2), cut=cut)


def _outward(arm: int) -> tuple[np.ndarray, np.ndarray]:
    """Horizontal directions of an arm: away from the middle, and across (its shoulder's axis)."""
    angle = 2.0 * np.pi / 3.0 * (arm - 1)
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c, s, 0.0]), np.array([-s, c, 0.0])


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
    horizontal. The platform's own coordinates are those of the joint `platform` (free).

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
    bodies = {"platform": Body(m_platform, -drop * _Z, rod_inertia(_Z, 2.0 * disc, disc))}
    joints: dict[str, Joint] = {"platform": Free("ground", "platform")}
    points = {}
    for i in (1, 2, 3):
        out, across = _outward(i)
        along = c * out - s * _Z
        shoulder, elbow = radii[0] * out, radii[0] * out + arm * along
        points[f"shoulder_{i}"] = shoulder
        bodies[f"arm_{i}"] = bar(m_arm, arm, shoulder + arm / 2.0 * along, along)
        # A turn about +across takes the outward direction down.
        joints[f"shoulder_{i}"] = Revolute("ground", f"arm_{i}", f"shoulder_{i}", axis=across)
        for side, name in ((-0.5, "right"), (0.5, "left")):
            points[f"elbow_{name}_{i}"] = elbow + side * width * across
            points[f"wrist_{name}_{i}"] = radii[1] * out - drop * _Z + side * width * across
            ends = f"elbow_{name}_{i}", f"wrist_{name}_{i}"
            joints[f"{name}_{i}"] = Rod(f"arm_{i}", "platform", *ends, length=rod)
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 2))


def _ring(radius: Any, angles: np.ndarray, height: Any) -> list[Any]:
    """Six points (3,) [m] on a horizontal circle."""
    return [number((radius * np.cos(a), radius * np.sin(a), height)) for a in np.radians(angles)]


def stewart_gough(
    base: Any = 0.6,
    platform: Any = 0.35,
    height: Any = 0.8,
    spread: tuple[float, float] = (30.0, 20.0),
    masses: Any = (20.0, 2.0, 1.0),
    gravity: Any = 9.81,
) -> Mechanism:
    """A Stewart-Gough platform with six UPS legs, drawn level.

    Source: the general 6-6 platform (Gough 1956, Stewart 1965); the numbers are ours. Leg i is a
    cylinder on a universal joint `U_i` at the ground, a piston that slides in it (`leg_i`, whose
    coordinate is the change of the leg's length, positive outward)
    and a ball `S_i` under the platform. The points are `base_i` and `platform_i`, i from 1 to 6.

    Args:
        base: radius of the circle of the base points [m].
        platform: radius of that of the platform's [m].
        height: of the platform as drawn [m].
        spread: angle between the points of a pair on the base and on the platform [deg] (static).
        masses: of the platform (a disc), each cylinder and each piston (bars), (3,) [kg].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of six degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.mobility(mbd.zoo.stewart_gough()).dof
        6
    """
    pairs, sides = np.repeat([0.0, 120.0, 240.0], 2), np.tile([-0.5, 0.5], 3)
    low = _ring(base, pairs + sides * spread[0], 0.0)
    # The platform's pairs lie between the base's: legs 2i-1 and 2i go to different pairs.
    high = _ring(platform, pairs + sides * (120.0 - spread[1]), height)
    xp = functions_for(base, platform, height)
    m_platform, m_cylinder, m_piston = masses
    disc = m_platform * platform**2 / 4.0
    bodies = {"platform": Body(m_platform, height * _Z, rod_inertia(_Z, 2.0 * disc, disc))}
    joints, points = {}, {}
    for i, (b, p) in enumerate(zip(low, high, strict=True), start=1):
        points[f"base_{i}"], points[f"platform_{i}"] = b, p
        along = unit_vector(p - b)
        first = unit_vector(xp.cross(_Z, along))
        half = xp.sqrt((p - b) @ (p - b)) / 2.0
        for name, mass, share in (("cylinder", m_cylinder, 0.25), ("piston", m_piston, 0.75)):
            across = mass * half**2 / 12.0
            inertia = rod_inertia(along, 0.01 * across, across)
            bodies[f"{name}_{i}"] = Body(mass, b + share * (p - b), inertia)
        joints[f"U_{i}"] = Universal(
            "ground", f"cylinder_{i}", f"base_{i}", axis_a=first, axis_b=xp.cross(along, first)
        )
        joints[f"leg_{i}"] = Prismatic(
            f"cylinder_{i}", f"piston_{i}", f"platform_{i}", axis=(f"base_{i}", f"platform_{i}")
        )
        joints[f"S_{i}"] = Spherical(f"piston_{i}", "platform", at=f"platform_{i}")
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 2))
