"""The rod: a massless link with two ball ends."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.base import Joint
from jaxmbd.model.numbers import optional_number, point


class Rod(Joint):
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

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    at_a: Any = eqx.field(converter=point)
    at_b: Any = eqx.field(converter=point)
    length: Any = eqx.field(converter=optional_number, default=None)

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 5
    rows: ClassVar[tuple[str, ...]] = ("force",)
    row_texts: ClassVar[tuple[str, ...]] = ("length",)
    coordinates_text: ClassVar[str] = "none: a constraint row"
    can_be_in_tree: ClassVar[bool] = False
    serves_in_plane: ClassVar[bool] = True

    @property
    def point_a(self) -> Any:
        return self.at_a

    @property
    def point_b(self) -> Any:
        return self.at_b

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        length = jnp.sqrt(drawn @ drawn) if self.length is None else self.length
        return (jnp.sqrt(d @ d) - length)[None]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        direction = d / jnp.sqrt(d @ d)
        return jnp.concatenate([jnp.zeros_like(direction), direction])[:, None]
