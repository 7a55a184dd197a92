"""A vertical tyre."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.base import Effort, ElementMotion, ForceElement, Load, Measure
from jaxmbd.model.numbers import Units, functions_static, number, point, vector_in_space


def road_height(tyre: Any, motion: ElementMotion, dtype: Any) -> tuple[Array, Array]:
    """Height of the road along `up` [m] and its rate [m/s]."""
    height = jnp.asarray(tyre.road, dtype)
    if tyre.law is None:
        return height, jnp.zeros_like(height)
    t = jnp.asarray(motion.t, dtype)
    more, rise = jax.jvp(lambda s: jnp.asarray(tyre.law(s), dtype), (t,), (jnp.ones_like(t),))
    return height + more, rise


class Tyre(ForceElement):
    """A spring-damper between the road and a wheel centre, along `up`; it never pulls.

    With δ = radius − (height of the centre above the road), the force on the wheel is
    ``max(0, stiffness·δ + damping·δ̇)`` where δ > 0, and zero where the wheel has lifted off.

    Attributes:
        b: name of the wheel's body.
        at: wheel centre, (3,) [m] as drawn or the name of a point.
        stiffness: [N/m].
        damping: [N·s/m].
        radius: unloaded radius [m].
        road: height of the road along `up` [m].
        up: unit vector out of the road (3,), (2,) in a planar mechanism.
        law: a function of t [s] giving further road height [m] (its rate is taken by `jax.jvp`);
            a `Sampled` for a measured road.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Tyre("hub", at=(0, 0.9, 0.3), stiffness=2e5, damping=100.0, radius=0.31).b
        'hub'
    """

    b: str = eqx.field(static=True)
    at: Any = eqx.field(converter=point)
    stiffness: Any = eqx.field(converter=number)
    damping: Any = eqx.field(converter=number, default=0.0)
    radius: Any = eqx.field(converter=number, default=0.3)
    road: Any = eqx.field(converter=number, default=0.0)
    up: Any = eqx.field(converter=number, default=(0.0, 0.0, 1.0))
    law: Any = eqx.field(converter=functions_static, default=None)

    vectors: ClassVar[tuple[str, ...]] = ("up",)
    units: ClassVar[Units] = {
        "stiffness": "N/m",
        "damping": "N s/m",
        "radius": "m",
        "road": "m",
        "up": "",
    }

    def _compression(self, motion: ElementMotion) -> tuple[Array, Array, Array, Array]:
        x, velocity = motion.point(self.b, self.at)
        up = vector_in_space(jnp.asarray(self.up))
        height, rise = road_height(self, motion, x.dtype)
        return x, up, self.radius - (up @ x - height), rise - up @ velocity

    def _normal(self, depth: Array, rate: Array) -> Array:
        push = jnp.maximum(self.stiffness * depth + self.damping * rate, 0.0)
        return jnp.where(depth > 0.0, push, 0.0)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        x, up, depth, rate = self._compression(motion)
        force = self._normal(depth, rate) * up
        return [Load(self.b, x, force, jnp.zeros_like(force))]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        _, _, depth, rate = self._compression(motion)
        return {
            "normal": Measure(self._normal(depth, rate), "N", "force of the road on the wheel"),
            "deflection": Measure(depth, "m", "deflection, negative off the road"),
            "rate": Measure(rate, "m/s", "rate of deflection"),
        }

    def energy(self, motion: ElementMotion) -> Array | float:
        _, _, depth, _ = self._compression(motion)
        return 0.5 * self.stiffness * jnp.maximum(depth, 0.0) ** 2
