"""Helpers of the zoo: functions for numbers that may be traced, inertias, published data.

A number derived from plain or NumPy numbers is a float64 NumPy number: a mechanism of plain Python
numbers is then the same with and without JAX's double precision.

Angles of a left wheel follow from its spindle's direction (ISO 8855: x forward, y left, z up).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.model import Body, TablePoints, number


def functions_for(*numbers: Any) -> ModuleType:
    """`jax.numpy` where any of the numbers is a JAX array or traced, else `numpy`."""
    leaves = jax.tree_util.tree_leaves(numbers)
    return jnp if any(isinstance(x, jax.Array) for x in leaves) else np


def downward(gravity: Any, axis: int, size: int = 3) -> Any:
    """Gravity (size,) [m/s²]: given as such, or as a number that acts against a global axis."""
    g = number(gravity)
    return g if g.ndim else g * np.array([-1.0 if i == axis else 0.0 for i in range(size)], g.dtype)


def bar_in_plane(mass: Any, length: Any, com: Any) -> Body:
    """A slender bar of a planar mechanism: m l²/12 about its centre."""
    return Body(mass, com=com, inertia=mass * length**2 / 12.0)


def bar(mass: Any, length: Any, com: Any, direction: Any, slenderness: float = 0.0) -> Body:
    """A bar with m l²/12 across and ``slenderness·m`` about its axis [kg m²]."""
    inertia = rod_inertia(direction, slenderness * mass, mass * length**2 / 12.0)
    return Body(mass, com=com, inertia=inertia)


def rod_inertia(direction: Any, axial: Any, transverse: Any) -> Any:
    """Inertia (3, 3) [kg m²] of a body of revolution about the unit vector `direction` (3,)."""
    u = number(direction)
    return transverse * np.eye(3) + (axial - transverse) * (u[:, None] * u)


def unit_vector(direction: Any) -> Any:
    """`direction` (3,) over its length."""
    x = number(direction)
    return x / (x @ x) ** 0.5


def middle(*points: Any) -> Any:
    """Mean of some points (3,) [m]."""
    return sum(number(x) for x in points) / len(points)


def published(name: str) -> dict[str, Any]:
    """One of the data files in this package."""
    path = resources.files("jaxmbd.zoo") / "data" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def published_body(data: Mapping[str, Any], com: Any = None) -> Body:
    """A body of a data file, whose moments are about the columns of its axes."""
    axes = number(data.get("axes", np.eye(3))).T
    inertia = sum(m * (u[:, None] * u) for m, u in zip(data["moments"], axes, strict=True))
    return Body(data["mass"], com=data["com"] if com is None else com, inertia=inertia)


def published_points(name: str) -> dict[str, Any]:
    """Hardpoints (3,) [m] of a data file that has them in millimetres."""
    return {n: np.array(x) / 1000.0 for n, x in published(name)["points_mm"].items()}


def moved(points: Mapping[str, Any], overrides: Mapping[str, Any] | None) -> dict[str, Any]:
    """Published hardpoints, with those of the user instead where given.

    Raises:
        ValueError: some overrides are no hardpoints of this mechanism, or those of a table lack
            some of it or have another scale.
    """
    if isinstance(overrides, TablePoints):
        overrides.check({name: number(x) for name, x in points.items()}, points)
    overrides = dict(overrides or {})
    unknown = sorted(overrides.keys() - points.keys())
    if unknown:
        raise ValueError(f"points= names {unknown}, which are no hardpoints here: {list(points)}")
    return {name: number(overrides.get(name, x)) for name, x in points.items()}


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
