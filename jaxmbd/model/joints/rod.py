"""The rod: a massless link with two ball ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.joints.base import Closing, Condition, Joint, Look
from jaxmbd.model.numbers import PointRef, Units, is_concrete, optional_number, point


class Rod(Condition):
    """A massless link with ball ends: one row, ``|x_b − x_a| = length``; never a tree joint.

    Its multiplier [N] is positive in compression.

    Attributes:
        a, b: names of the connected bodies.
        at_a, at_b: its ends, each (3,) [m] as drawn or the name of a point.
        length: [m]; by default the drawn distance of the ends.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Rod("ground", "upright", at_a=(0, 0.2, 0), at_b=(0, 0.8, 0)).rows
        ('force',)
    """

    at_a: Any = eqx.field(converter=point)
    at_b: Any = eqx.field(converter=point)
    length: Any = eqx.field(converter=optional_number, default=None)

    nv: ClassVar[int] = 5
    rows: ClassVar[tuple[str, ...]] = ("force",)
    row_texts: ClassVar[tuple[str, ...]] = ("length",)
    closing: ClassVar[Closing | None] = "distance"
    ball: ClassVar[bool] = True
    numbers: ClassVar[tuple[str, ...]] = ("length",)
    units: ClassVar[Units] = {"length": "m"}

    def implied(self, drawn: Callable[[Any], Array]) -> dict[str, Any]:
        span = drawn(self.at_b) - drawn(self.at_a)
        square = span @ span
        return {"length": (np if isinstance(span, np.ndarray) else jnp).sqrt(square)}

    def problems(self, points: Mapping[str, Any]) -> list[str]:
        ends = [points[r.name] if isinstance(r, PointRef) else r for r in (self.at_a, self.at_b)]
        if all(is_concrete(x) for x in ends) and np.array_equal(ends[0], ends[1]):
            return ["it has both ends in one point; use Spherical, or draw the ends apart"]
        if self.length is not None and is_concrete(self.length) and not self.length > 0.0:
            return [f"length is {float(self.length):g} m; it must be positive"]
        return []

    def looks(self) -> tuple[Look, ...]:
        return (Look("rod", "a"),)

    def in_plane(self) -> Joint | None:
        return self

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        length = jnp.sqrt(drawn @ drawn) if self.length is None else self.length
        return (jnp.sqrt(d @ d) - length)[None]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        direction = d / jnp.sqrt(d @ d)
        return jnp.concatenate([jnp.zeros_like(direction), direction])[:, None]
