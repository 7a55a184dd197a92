"""Cams with followers by NumPy: places of the follower, envelopes by force, free bodies.

An oracle that shares no code with the package: the programme is a polynomial of each segment, first
derivatives along the cam come from complex numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

STEP = 1e-30
RISE, DWELL, DOWN = 2.0, 0.5, 1.8
"""Angles of the segments [rad]; the rest of the turn is a dwell. Both laws are 3-4-5."""
LAW = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])


def displacement(theta: np.ndarray, height: float, order: int = 0) -> np.ndarray:
    """The displacement or a derivative of it, at angles in the first turn that may be complex."""
    law, at = LAW.deriv(order) if order else LAW, np.real(theta)
    up = height * law(theta / RISE) / RISE**order
    top = height * (order == 0) + 0.0 * theta
    down = top - height * law((theta - RISE - DWELL) / DOWN) / DOWN**order
    found = np.where(at < RISE, up, top)
    found = np.where(at >= RISE + DWELL, down, found)
    return np.where(at >= RISE + DWELL + DOWN, 0.0, found)


class Sizes(NamedTuple):
    """Numbers of a cam; only those of its kind count."""

    kind: str
    height: float
    base: float
    roller: float = 0.0
    offset: float = 0.0
    arm: float = 0.0
    distance: float = 0.0
    clockwise: bool = False


def turned(x: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Vectors (n, 2) turned counterclockwise."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1]], axis=1)


def place(z: Sizes, theta: np.ndarray) -> np.ndarray:
    """Fixed axes: the roller's centre (n, 2), or of a face (angle of its normal, distance)."""
    s, prime = displacement(theta, z.height), z.base + z.roller
    if z.kind == "TranslatingRoller":
        return np.stack([z.offset + 0 * s, np.sqrt(prime**2 - z.offset**2) + s], axis=1)
    if z.kind == "TranslatingFlat":
        return np.stack([np.pi / 2 + 0 * s, z.base + s], axis=1)
    if z.kind == "OscillatingRoller":
        cosine = (z.distance**2 + z.arm**2 - prime**2) / (2 * z.distance * z.arm)
        arm = np.pi - np.arccos(cosine) - s  # from x
        return np.stack([z.distance + z.arm * np.cos(arm), z.arm * np.sin(arm)], axis=1)
    lean = np.arcsin((z.base + z.offset) / z.distance) + s
    return np.stack([np.pi / 2 - lean, z.distance * np.sin(lean) - z.offset], axis=1)


def contact(z: Sizes, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Point of contact and push (n, 2) each, in fixed axes."""
    sense = -1.0 if z.clockwise else 1.0
    here, ahead = place(z, theta), place(z, theta + 1j * STEP)
    if z.kind.endswith("Roller"):
        slope = np.imag(turned(ahead, -sense * (theta + 1j * STEP))) / STEP
        slope = turned(slope, sense * theta)
        push = sense * np.stack([-slope[:, 1], slope[:, 0]], axis=1)
        push /= np.linalg.norm(push, axis=1)[:, None]
        return here - z.roller * push, push
    psi, p = here.T
    rate = np.imag(ahead) / STEP
    along = rate[:, 1] / (rate[:, 0] - sense)
    push = np.stack([np.cos(psi), np.sin(psi)], axis=1)
    return p[:, None] * push + along[:, None] * np.stack([-push[:, 1], push[:, 0]], axis=1), push


def profile(z: Sizes, theta: np.ndarray) -> np.ndarray:
    """Points (n, 2) of the profile in the cam's axes."""
    return turned(contact(z, theta)[0], (1.0 if z.clockwise else -1.0) * theta)


def turns_back(z: Sizes, theta: np.ndarray) -> bool:
    """Whether the profile runs backwards anywhere between angles (n,), so that it is cut off."""
    sense = -1.0 if z.clockwise else 1.0
    n = turned(contact(z, theta)[1], -sense * theta)
    steps = np.diff(profile(z, theta), axis=0)
    return bool(np.any(sense * cross(n[:-1], steps) > 0.0))


def shape(z: Sizes, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pressure angle, and radii of curvature of profile and pitch curve, all (n,).

    A curve bends as its normal, the push, turns along it; slopes are differences in two widths.
    """
    point, push = contact(z, theta)
    if z.kind.startswith("Translating"):
        velocity = np.stack([0.0 * theta, 1.0 + 0.0 * theta], axis=1)
    else:
        arm = (place(z, theta) if z.kind.endswith("Roller") else point) - [z.distance, 0.0]
        velocity = np.stack([arm[:, 1], -arm[:, 0]], axis=1)
    angle = np.arctan2(cross(velocity, push), np.sum(velocity * push, axis=1))
    sense = -1.0 if z.clockwise else 1.0

    def on_cam(t: np.ndarray) -> np.ndarray:
        x, n = contact(z, np.mod(t, 2.0 * np.pi))
        parts = x, x + z.roller * n, n
        return np.stack([turned(p, -sense * t) for p in parts])

    def slope(h: float) -> np.ndarray:
        return (on_cam(theta + h) - on_cam(theta - h)) / (2.0 * h)

    profile, pitch, normal = (4.0 * slope(1e-4) - slope(2e-4)) / 3.0
    across = np.stack([-push[:, 1], push[:, 0]], axis=1)
    across = turned(across, -sense * theta)
    turning = np.sum(across * normal, axis=1)
    return angle, *(np.sum(across * x, axis=1) / turning for x in (profile, pitch))


def clearances(z: Sizes, theta: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distance (n, m) of points (m, 2) of the cam from the follower at every angle (n,)."""
    back = (1.0 if z.clockwise else -1.0) * theta
    if z.kind.endswith("Roller"):
        centre = turned(place(z, theta), back)
        return np.linalg.norm(centre[:, None] - points[None], axis=2) - z.roller
    psi, p = place(z, theta).T
    return p[:, None] - np.stack([np.cos(psi + back), np.sin(psi + back)], axis=1) @ points.T


class Loads(NamedTuple):
    """Forces of a cam that turns steadily, all (n, …)."""

    push: np.ndarray
    contact: np.ndarray
    torque: np.ndarray
    bearing: np.ndarray
    guide: np.ndarray
    guide_moment: np.ndarray


def cross(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The z of a product of vectors (n, 2)."""
    return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]


def loads(
    z: Sizes,
    theta: np.ndarray,
    speed: float,
    cam: tuple[float, np.ndarray],
    follower: tuple[float, np.ndarray, float],
    gravity: np.ndarray,
) -> Loads:
    """Free bodies: of each mass, centre of mass as drawn (2,); of the follower also its inertia.

    The guide's moment is about the follower's own joint point: where it is at displacement zero,
    moved with it, or the pivot.
    """
    sense = -1.0 if z.clockwise else 1.0
    s, s1, s2 = (displacement(theta, z.height, k) for k in range(3))
    point, n = contact(z, theta)
    mass, com, inertia = follower
    if z.kind.startswith("Translating"):
        away = np.stack([0 * s, s], axis=1)
        start = place(z, np.zeros(1))[0]
        joint = away + (start if z.kind.endswith("Roller") else np.array([0.0, z.base]))
        arm = com + away - joint
        acceleration = np.stack([0 * s, speed**2 * s2], axis=1)
        push = mass * (acceleration[:, 1] - gravity[1]) / n[:, 1]
        spin = 0.0
    else:
        joint = np.array([z.distance, 0.0]) + np.zeros((len(s), 2))
        arm = turned((com - joint), -s)
        spin, turn = -(speed**2) * s2, -speed * s1
        across = np.stack([-arm[:, 1], arm[:, 0]], axis=1)
        acceleration = spin[:, None] * across - turn[:, None] ** 2 * arm
        about = inertia + mass * np.sum(arm**2, axis=1)
        push = (about * spin - cross(arm, mass * gravity)) / cross(point - joint, n)
    force = push[:, None] * n
    guide = mass * (acceleration - gravity) - force
    moment = inertia * spin + cross(arm, mass * (acceleration - gravity))
    moment = moment - cross(point - joint, force)
    heavy, centre = cam[0], turned((cam[1] + np.zeros((len(s), 2))), sense * theta)
    torque = cross(point, force) - cross(centre, heavy * gravity)
    bearing = heavy * (-(speed**2) * centre - gravity) + force
    return Loads(push, force, sense * torque, bearing, guide, moment)
