"""The parallel-axes constraint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.axes import AxesCondition, frame_about, opposed_halves, wrench_columns
from jaxmbd.model.numbers import direction
from jaxmbd.spatial import alignment, unit


class ParallelAxes(AxesCondition):
    """Two axes stay parallel, and in the same sense: two moment rows; never a tree joint.

    The moment rows of a revolute joint, without its point: ``e1 · ρ = e2 · ρ = 0`` for the rotation
    vector ρ, to first order, from a's axis to b's, with e1 and e2 fixed in a, perpendicular to it.

    Attributes:
        a, b: names of the connected bodies.
        axis: direction fixed in a, and in b unless `axis_b` is given: (3,) as drawn, or a pair of
            point names.
        axis_b: the direction on `b`, if drawn different from that on `a`.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.ParallelAxes("ground", "platform", axis=(0, 0, 1)).rows
        ('moment', 'moment')
    """

    axis: Any = eqx.field(converter=direction)
    axis_b: Any = eqx.field(converter=direction, default=None, kw_only=True)

    nv: ClassVar[int] = 4
    rows: ClassVar[tuple[str, ...]] = ("moment",) * 2
    directions: ClassVar[tuple[str, ...]] = ("axis", "axis_b")

    def problems(self, points: Mapping[str, Any]) -> list[str]:
        return opposed_halves(self.axis, self.axis_b)

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        axis, e1, e2 = frame_about(unit(jnp.asarray(self.axis)), r_a)
        other = self.axis if self.axis_b is None else self.axis_b
        rho = alignment(axis, r_b @ unit(jnp.asarray(other)))
        return jnp.stack([e1 @ rho, e2 @ rho])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        _, e1, e2 = frame_about(unit(jnp.asarray(self.axis)), r_a)
        return wrench_columns([e1, e2], [jnp.zeros_like(e1)] * 2)
