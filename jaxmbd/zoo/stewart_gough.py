"""The Stewart-Gough platform: six legs of variable length."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.model import Body, Mechanism, Prismatic, Spherical, Universal, number
from jaxmbd.zoo.drawing import downward, functions_for, rod_inertia, unit_vector

_UP = np.array([0.0, 0.0, 1.0])


def _ring(radius: Any, angles: np.ndarray, height: Any) -> list[Any]:
    """Six points (3,) [m] on a horizontal circle."""
    return [number((radius * np.cos(a), radius * np.sin(a), height)) for a in np.radians(angles)]


def _anchors(base: Any, platform: Any, height: Any, spread: tuple[float, float]) -> tuple[Any, Any]:
    """Drawn points of the legs on the ground and on the platform, pairs 120° apart."""
    pairs = np.repeat([0.0, 120.0, 240.0], 2)
    sides = np.tile([-0.5, 0.5], 3)
    low = _ring(base, pairs + sides * spread[0], 0.0)
    # The platform's pairs lie between the base's: legs 2i-1 and 2i go to different pairs.
    high = _ring(platform, pairs + sides * (120.0 - spread[1]), height)
    return low, high


def stewart_gough_lengths(
    rotation: Any,
    translation: Any,
    base: Any = 0.6,
    platform: Any = 0.35,
    height: Any = 0.8,
    spread: tuple[float, float] = (30.0, 20.0),
) -> Any:
    """Lengths (…, 6) [m] of the legs at a pose: ``|c + t + R (p_i − c) − b_i|``, c the centre.

    Args:
        rotation: of the platform from its drawn orientation, (…, 3, 3).
        translation: of its centre from the drawn one, (…, 3) [m].
        base: radius [m], see `stewart_gough`.
        platform: radius [m].
        height: [m].
        spread: angles [deg].

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> legs = mbd.zoo.stewart_gough_lengths(np.eye(3), (0.0, 0.0, 0.1))
        >>> bool(np.ptp(legs) < 1e-12)
        True
    """
    rotation, translation = number(rotation), number(translation)
    low, high = _anchors(base, platform, height, spread)
    xp = functions_for(rotation, translation, base, platform, height)
    centre = height * _UP
    legs = [
        centre + translation + (rotation @ (p - centre)[:, None])[..., 0] - b
        for b, p in zip(low, high, strict=True)
    ]
    return xp.stack([xp.sqrt(xp.sum(leg * leg, axis=-1)) for leg in legs], axis=-1)


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
    coordinate is the change of the leg's length, positive outward: see `stewart_gough_lengths`)
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
    low, high = _anchors(base, platform, height, spread)
    xp = functions_for(base, platform, height)
    m_platform, m_cylinder, m_piston = masses
    disc = m_platform * platform**2 / 4.0
    bodies = {"platform": Body(m_platform, height * _UP, rod_inertia(_UP, 2.0 * disc, disc))}
    joints, points = {}, {}
    for i, (b, p) in enumerate(zip(low, high, strict=True), start=1):
        points[f"base_{i}"], points[f"platform_{i}"] = b, p
        along = unit_vector(p - b)
        first = unit_vector(xp.cross(_UP, along))
        half = xp.sqrt((p - b) @ (p - b)) / 2.0
        for name, mass, share in (("cylinder", m_cylinder, 0.25), ("piston", m_piston, 0.75)):
            bar = mass * half**2 / 12.0
            inertia = rod_inertia(along, 0.01 * bar, bar)
            bodies[f"{name}_{i}"] = Body(mass, b + share * (p - b), inertia)
        joints[f"U_{i}"] = Universal(
            "ground", f"cylinder_{i}", f"base_{i}", axis_a=first, axis_b=xp.cross(along, first)
        )
        joints[f"leg_{i}"] = Prismatic(
            f"cylinder_{i}", f"piston_{i}", f"platform_{i}", axis=(f"base_{i}", f"platform_{i}")
        )
        joints[f"S_{i}"] = Spherical(f"piston_{i}", "platform", at=f"platform_{i}")
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 2))
