"""The sizes that a cam needs: its least base radius and its largest roller."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.cams.base import CamStatus, Follower
from jaxmbd.cams.followers import Roller
from jaxmbd.lanes import host_jit


def least_base_radius(
    follower: Follower,
    *,
    pressure_angle: float | None = None,
    radius: float = 0.0,
    largest: float | None = None,
    n: int = 360,
) -> float:
    """The least base radius [m] with which a cam is sound, all else as it is.

    Radii from a ten-thousandth of the largest are tried in steps of 2 %; where the first of them
    is sound, bisection finds the limit to 1e-12. The angles of `Follower.status` are looked at, and
    those that close in on the largest pressure angle.

    Args:
        follower: the cam and its follower; its own base radius does not matter.
        pressure_angle: the largest that is allowed, in size [rad].
        radius: the least radius of curvature of convex parts of the profile [m].
        largest: the base radius that is tried last [m]; by default 100 times the follower's own.
        n: how many equal steps of the turn are looked at, beside angles of interest.

    Raises:
        ValueError: no base radius up to the largest is enough; the pressure angle is none in rad.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import Programme, Return, Rise, TranslatingFlat, least_base_radius
        >>> lift = Programme([Rise(0.02, np.pi, "harmonic"), Return(0.02, np.pi, "harmonic")])
        >>> print(f"{least_base_radius(TranslatingFlat(lift, 0.05), radius=0.03):.6f}")
        0.020000
    """
    if pressure_angle is not None and not 0.0 < pressure_angle < np.pi / 2.0:
        raise ValueError(
            f"least_base_radius: pressure_angle={pressure_angle!r} must lie between 0 and π/2 rad"
        )
    limit = np.asarray(np.inf if pressure_angle is None else pressure_angle)
    least = np.asarray(radius, float)
    largest = 100.0 * float(follower.base_radius) if largest is None else largest

    def fine(base: float) -> bool:
        one = follower.with_fields({"base_radius": np.asarray(base)})
        return bool(_sound(one, n, limit, least))

    steps = int(np.ceil(np.log(1e4) / np.log(1.02)))
    tried = largest * 1.02 ** np.arange(-float(steps), 1.0)
    found = next((i for i, base in enumerate(tried) if fine(base)), None)
    if found is None:
        raise ValueError(
            f"least_base_radius: none up to {largest:.6g} m will do; allow a larger one, a larger "
            "pressure angle or a smaller radius of curvature, or give the rise a larger angle"
        )
    return _bisected(fine, tried[max(found - 1, 0)], tried[found])


def largest_roller_radius(follower: Roller, *, radius: float = 0.0, n: int = 360) -> float:
    """The largest roller [m] on the pitch curve of a cam without undercutting.

    The roller's centre moves as before: what the roller gains in radius the base circle loses.

    Args:
        follower: the cam and its follower.
        radius: the least radius of curvature of convex parts of the profile [m].
        n: how many equal steps of the turn are looked at, beside angles of interest.

    Raises:
        ValueError: not even a knife edge can follow.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import (
        ...     Dwell, Programme, Return, Rise, TranslatingRoller, largest_roller_radius)
        >>> lift = Programme([Rise(0.02, 1.0), Return(0.02, 1.0), Dwell()])
        >>> cam = TranslatingRoller(lift, 0.04, 0.01)
        >>> pitch = cam.geometry(np.linspace(0.0, 2.0, 2001)).pitch_radius
        >>> print(f"{largest_roller_radius(cam):.6f} {pitch[pitch > 0].min():.6f}")
        0.025539 0.025539
    """
    prime = float(follower.prime_radius)

    limits = np.asarray(np.inf), np.asarray(radius, float)

    def too_large(roller: float) -> bool:
        sizes = {"roller_radius": np.asarray(roller), "base_radius": np.asarray(prime - roller)}
        return not bool(_sound(follower.with_fields(sizes), n, *limits))

    if too_large(0.0):
        raise ValueError(
            "largest_roller_radius: not even a knife edge follows the pitch curve; enlarge "
            "base_radius"
        )
    return _bisected(too_large, 0.0, prime)


@host_jit
def _sound(follower: Follower, n: int, pressure_angle: Array, radius: Array) -> Array:
    """Whether a cam is sound and within limits."""
    seen = follower._seen(n, lambda x: jnp.abs(x.pressure_angle))
    shape = seen.shape
    sharp = (shape.profile_radius > 0.0) & (shape.profile_radius < radius)
    steep = jnp.abs(shape.pressure_angle) > pressure_angle
    return (follower._judged(seen) == CamStatus.OK) & ~jnp.any(sharp | steep)


def _bisected(fine: Callable[[float], bool], low: float, high: float) -> float:
    """The least number that is fine, between one that is not (if `low` is not) and one that is."""
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fine(middle) else (middle, high)
    return float(high)
