"""Angles of a left wheel from its spindle's direction (ISO 8855: x forward, y left, z up)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


def camber_angle(direction: Float[Array, "*batch 3"]) -> Float[Array, "*batch"]:
    """Camber [rad] of a left wheel: positive where its top leans outward.

    The spindle's inclination in the vertical plane across the car, ``atan2(−d_z, d_y)``; the
    length of `direction` does not matter.

    Args:
        direction: the spindle's, pointing outboard (to the left), (…, 3).

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> float(mbd.zoo.camber_angle(jnp.array([0.0, 1.0, -1.0]))) > 0
        True
    """
    d = jnp.asarray(direction)
    return jnp.arctan2(-d[..., 2], d[..., 1])


def toe_angle(direction: Float[Array, "*batch 3"]) -> Float[Array, "*batch"]:
    """Toe [rad] of a left wheel: positive for toe-in, where its front points inward.

    The spindle's direction seen from above, ``atan2(d_x, d_y)``; the length of `direction` does
    not matter.

    Args:
        direction: the spindle's, pointing outboard (to the left), (…, 3).

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> float(mbd.zoo.toe_angle(jnp.array([1.0, 1.0, 0.0]))) > 0
        True
    """
    d = jnp.asarray(direction)
    return jnp.arctan2(d[..., 0], d[..., 1])
