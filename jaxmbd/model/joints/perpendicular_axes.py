"""The perpendicular-axes constraint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.joints.axes import AxesCondition, wrench_columns
from jaxmbd.model.numbers import Units, direction, is_concrete, optional_number
from jaxmbd.spatial import cross, unit


class PerpendicularAxes(AxesCondition):
    """Two axes stay perpendicular, or at another angle: one moment row; never a tree joint.

    ``(axis_a · axis_b − cos α) / sin α = 0``, with α the angle between the axes, π/2 by default:
    the moment row of a universal joint, and the condition φ5 of Hanzaki et al. 2009, (27), that
    holds the spin of a link between two balls. λ [N·m] acts on b along ``axis_b × axis_a``.

    Attributes:
        a, b: names of the connected bodies.
        axis_a, axis_b: directions fixed in a and in b, (3,) as drawn, or pairs of point names.
        angle: between them [rad], inside (0, π); by default π/2.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.PerpendicularAxes("ground", "link", axis_a=(0, 0, 1), axis_b=(1, 0, 0)).rows
        ('moment',)
    """

    axis_a: Any = eqx.field(converter=direction)
    axis_b: Any = eqx.field(converter=direction)
    angle: Any = eqx.field(converter=optional_number, default=None)

    nv: ClassVar[int] = 5
    rows: ClassVar[tuple[str, ...]] = ("moment",)
    directions: ClassVar[tuple[str, ...]] = ("axis_a", "axis_b")
    numbers: ClassVar[tuple[str, ...]] = ("angle",)
    units: ClassVar[Units] = {"angle": "rad"}

    def implied(self, drawn: Callable[[Any], Array]) -> dict[str, Any]:
        return {"angle": np.asarray(0.5 * np.pi)}

    def problems(self, points: Mapping[str, Any]) -> list[str]:
        if self.angle is None or not is_concrete(self.angle) or 1e-6 < self.angle < np.pi - 1e-6:
            return []
        return [f"angle is {float(self.angle):g} rad; give one inside (0, π), or use ParallelAxes"]

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        product = (r_a @ unit(jnp.asarray(self.axis_a))) @ (r_b @ unit(jnp.asarray(self.axis_b)))
        if self.angle is None:
            return product[None]
        return ((product - jnp.cos(self.angle)) / jnp.sin(self.angle))[None]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        moment = cross(r_b @ unit(jnp.asarray(self.axis_b)), r_a @ unit(jnp.asarray(self.axis_a)))
        if self.angle is not None:
            moment = moment / jnp.sin(self.angle)
        return wrench_columns([moment], [jnp.zeros_like(moment)])
