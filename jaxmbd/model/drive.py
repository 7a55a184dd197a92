"""Drives: coordinates of joints and of points prescribed as functions of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.numbers import functions_static, point
from jaxmbd.model.part import Part
from jaxmbd.model.sampled import function_and_numbers

TimeFunction = Callable[[Array, Any], Array]
"""``function(t, params)`` → a coordinate [rad or m]."""


def value_and_rates(function: TimeFunction, t: Array, params: Any) -> tuple[Array, Array, Array]:
    """A function of one number with its first and second derivatives at `t`."""
    one = jnp.ones_like(t)

    def value_rate(s: Array) -> tuple[Array, Array]:
        return jax.jvp(lambda u: jnp.asarray(function(u, params)), (s,), (one,))

    (value, rate), (_, acceleration) = jax.jvp(value_rate, (t,), (one,))
    return value, rate, acceleration


class Drive(Part):
    """One joint coordinate prescribed in time: a rheonomic row whose λ is the drive's effort.

    Attributes:
        joint: name of the joint (in the tree).
        function: ``function(t, params)`` → the coordinate [rad or m], twice differentiable; or a
            `Sampled`, which becomes the parameter of `jaxmbd.model.sampled.sampled`.
        params: a pytree of numbers handed to `function`.
        index: which coordinate of the joint.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Drive("crank", lambda t, p: p["speed"] * t, {"speed": 6.0}).joint
        'crank'
    """

    joint: str = eqx.field(static=True)
    function: TimeFunction = eqx.field(static=True, metadata={"function": True})
    params: Any = eqx.field(converter=functions_static, default=None)
    index: int = eqx.field(static=True, default=0)

    def __post_init__(self) -> None:
        self.function, self.params = function_and_numbers(self.function, self.params)

    @property
    def points(self) -> dict[str, Any]:
        """None: the fields that are points, by name."""
        return {}

    def value(self, t: Array) -> tuple[Array, Array, Array]:
        """The coordinate and its first and second time derivatives at `t` [s]."""
        return value_and_rates(self.function, t, self.params)


class PointDrive(Part):
    """One world coordinate of a point of a body prescribed as a function of time.

    The rheonomic row ``x(t) − f(t) = 0`` of the driving constraint on a point (lecture text
    "Multibody kinematics and dynamics", (3.13)). Its λ is the force on the body along +axis [N].

    Attributes:
        body: name of the body.
        at: the point, (3,) [m] as drawn or the name of a point.
        axis: "x", "y" or "z".
        function: ``function(t, params)`` → the coordinate [m] (not the displacement), twice
            differentiable; or a `Sampled`.
        params: a pytree of numbers handed to `function`.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.PointDrive("wheel", "hub", "z", lambda t, p: 0.3 + p * t, 0.1).axis
        'z'
    """

    body: str = eqx.field(static=True)
    at: Any = eqx.field(converter=point)
    axis: str = eqx.field(static=True)
    function: TimeFunction = eqx.field(static=True, metadata={"function": True})
    params: Any = eqx.field(converter=functions_static, default=None)

    def __post_init__(self) -> None:
        self.function, self.params = function_and_numbers(self.function, self.params)

    @property
    def points(self) -> dict[str, Any]:
        """The fields that are points, by name."""
        return {"at": self.at}

    @property
    def component(self) -> int:
        """Which component of the point's position it drives."""
        return "xyz".index(self.axis)

    def value(self, t: Array) -> tuple[Array, Array, Array]:
        """The coordinate and its first and second time derivatives at `t` [s]."""
        return value_and_rates(self.function, t, self.params)


DRIVE_TYPES: dict[str, type] = {"Drive": Drive, "PointDrive": PointDrive}
