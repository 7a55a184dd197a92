"""Curve constraints: a point on a curve, and a cam."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.model.drive import value_and_rates
from jaxmbd.model.joints.axes import wrench_columns
from jaxmbd.model.joints.base import Condition, Look
from jaxmbd.model.numbers import (
    Reflection,
    Units,
    direction,
    functions_static,
    is_concrete,
    number,
    point,
)
from jaxmbd.model.sampled import function_and_numbers
from jaxmbd.spatial import cross, perpendicular_pair, unit

Curve = Callable[[Array, Any], Array]
"""``curve(u, params)`` → a point (3,) [m] from a's joint point, in global axes as drawn."""

_NEWTON_STEPS = 8


def points_of(curve: Curve, u: Array, params: Any) -> Array:
    """Points (n, 3) of a curve at parameters (n,): the curve is traced once."""
    return jax.vmap(lambda s: jnp.asarray(curve(s, params)))(u)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def nearest_parameter(
    curve: Curve, search: tuple[float, float, int], x: Array, params: Any
) -> Array:
    """The parameter u of the point of a curve that is nearest to `x` (3,).

    ``F(u) = (c(u) − x) · c'(u) = 0`` by Newton's method, from the nearest of the points at equally
    spaced parameters. Where ``F' = c'·c' + (c − x)·c''`` is small (`x` near the centre of
    curvature) ``c'·c'`` stands in for it.

    Args:
        curve: the curve.
        search: first and last parameter, and how many points are tried.
        x: a point, in the curve's axes [m].
        params: of the curve.
    """
    start, end, count = search
    trials = jnp.linspace(start, end, count, dtype=x.dtype)
    away = points_of(curve, trials, params) - x
    u = trials[jnp.argmin(jnp.sum(away * away, axis=1))]

    def step(_: Any, u: Array) -> Array:
        value, rate, second = value_and_rates(curve, u, params)
        speed = rate @ rate
        slope = speed + (value - x) @ second
        slope = jnp.where(slope > 0.05 * speed, slope, speed)
        # A step longer than the spacing of the trials would leave the nearest arc.
        reach = (end - start) / (count - 1)
        return u - jnp.clip((value - x) @ rate / slope, -reach, reach)

    return lax.fori_loop(0, _NEWTON_STEPS, step, u)


@nearest_parameter.defjvp
def _nearest_parameter_jvp(curve: Curve, search: Any, primals: Any, tangents: Any) -> Any:
    """``F' u̇ = −(∂F/∂x ẋ + ∂F/∂params ṗ)`` at the solution."""
    x, params = primals
    u = nearest_parameter(curve, search, x, params)

    def condition(x: Array, params: Any) -> Array:
        value, rate, _ = value_and_rates(curve, u, params)
        return (value - x) @ rate

    _, change = jax.jvp(condition, primals, tangents)
    value, rate, second = value_and_rates(curve, u, params)
    return u, -change / (rate @ rate + (value - x) @ second)


class CurveJoint(Condition):
    """Base of the constraints between a point of b and a curve fixed in a."""

    at_a: Any = eqx.field(converter=point)
    at_b: Any = eqx.field(converter=point)
    curve: Curve = eqx.field(static=True, metadata={"function": True})
    params: Any = eqx.field(converter=functions_static, default=None)
    interval: tuple[float, float] = eqx.field(static=True, default=(0.0, 2.0 * np.pi), kw_only=True)
    samples: int = eqx.field(static=True, default=32, kw_only=True)

    def __post_init__(self) -> None:
        self.curve, self.params = function_and_numbers(self.curve, self.params)

    def problems(self, points: Mapping[str, Any]) -> list[str]:
        if not callable(self.curve):
            return [f"curve is {self.curve!r}; give a function of (u, params)"]
        first, last = self.interval
        if not (first < last and np.all(np.isfinite(self.interval))):
            return [f"interval is {self.interval}; give (first, last), increasing and finite"]
        if self.samples < 3:
            return [f"samples is {self.samples}; give at least 3"]
        found = np.shape(jax.eval_shape(self.curve, np.zeros(()), self.params))
        if found != (3,):
            return [f"curve gives numbers of shape {found}; it must give a point (3,)"]
        return []

    def mirror_image(self, reflection: Reflection) -> Self:
        raise ValueError("its curve is a function, whose mirror image has to be given")

    def looks(self) -> tuple[Look, ...]:
        path = points_of(self.curve, jnp.linspace(*self.interval, 4 * self.samples), self.params)
        return Look("curve", "a", detail=path), Look("ball", "b")

    def foot(self, x: Array) -> tuple[Array, Array]:
        """The nearest point of the curve to `x`, and the unit tangent there, in a's axes."""
        search = (*self.interval, self.samples)
        u = nearest_parameter(self.curve, search, x, self.params)
        value, rate, _ = value_and_rates(self.curve, u, self.params)
        return value, unit(rate)


class PointOnCurve(CurveJoint):
    """A point of b stays on a curve fixed in a: two force rows; never a tree joint.

    ``e1 · (x − c(u)) = e2 · (x − c(u)) = 0`` for b's point x, with e1 and e2 perpendicular to the
    curve's tangent. The parameter u is not a coordinate: it is that of the curve's nearest point,
    ``(c(u) − x) · c'(u) = 0``, with its derivatives from that condition. The nearest point is
    unique as long as b's point is nearer to the curve than to its centre of curvature and to other
    branches, so the curve must not cross itself where the point passes.

    Attributes:
        a, b: names of the connected bodies.
        at_a: origin of the curve, a point of a, (3,) [m] as drawn or the name of a point.
        at_b: the point of b, as drawn.
        curve: ``curve(u, params)`` → (3,) [m] from `at_a`, in global axes as drawn, with
            ``c'(u) ≠ 0``; twice differentiable, also slightly beyond the ends of the interval. Or a
            `Sampled` by points (n, 3) at parameters (n,) that reach beyond the interval.
        params: a pytree of numbers handed to `curve`.
        interval: the parameters (first, last) that are searched; by default one turn, (0, 2π).
        samples: how many points of the interval the search starts from.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> def helix(u, pitch):
        ...     return jnp.stack([jnp.cos(u), jnp.sin(u), pitch * u])
        >>> slot = mbd.PointOnCurve("ground", "bead", (0, 0, 0), (1, 0, 0), helix, 0.1)
        >>> slot.rows
        ('force', 'force')
    """

    nv: ClassVar[int] = 4
    rows: ClassVar[tuple[str, ...]] = ("force",) * 2

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        x = r_a.T @ d
        foot, tangent = self.foot(x)
        e1, e2 = perpendicular_pair(tangent)
        return jnp.stack([e1 @ (x - foot), e2 @ (x - foot)])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        e1, e2 = perpendicular_pair(self.foot(r_a.T @ d)[1])
        return wrench_columns([jnp.zeros_like(e1)] * 2, [r_a @ e1, r_a @ e2])


class Cam(CurveJoint):
    """A cam: a point of b, or a roller about it, stays on a plane curve of a; one force row.

    ``n · (x − c(u)) = radius`` with n the curve's normal in its plane, at the point c(u) nearest to
    b's point x: the signed distance, whose gradient is n. For a curve that runs counterclockwise
    about `normal` n points outward, and the multiplier [N] is positive where the cam pushes the
    follower. The constraint is bilateral: with a negative multiplier a real follower would lift
    off. Motion along `normal` is free. With ``pitch=True`` the curve is the roller's centre's own,
    ``n · (x − c(u)) = 0``: the same push without the curve's derivatives in the profile.

    Attributes:
        a, b: names of the cam's body and of the follower's.
        at_a: origin of the curve, a point of a, (3,) [m] as drawn or the name of a point.
        at_b: the follower's point (the roller's centre) as drawn.
        curve: ``curve(u, params)`` → (3,) [m] from `at_a`, in global axes as drawn, in a plane
            perpendicular to `normal`; see `PointOnCurve`.
        params: a pytree of numbers handed to `curve`.
        normal: of the curve's plane, as drawn, (3,), or the names of two points.
        radius: of the roller [m]; zero for a knife edge.
        pitch: whether the curve is the path of the roller's centre on the cam (the pitch curve)
            instead of the profile.
        interval, samples: see `PointOnCurve`.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> def circle(u, p):
        ...     return jnp.stack([p["shift"] + p["r"] * jnp.cos(u), p["r"] * jnp.sin(u), 0.0 * u])
        >>> cam = mbd.Cam("shaft", "valve", (0, 0, 0), (0, 0.5, 0), circle,
        ...               {"r": 0.5, "shift": 0.1}, normal=(0, 0, 1), radius=0.05)
        >>> cam.rows
        ('force',)
    """

    normal: Any = eqx.field(converter=direction, default=(0.0, 0.0, 1.0), kw_only=True)
    radius: Any = eqx.field(converter=number, default=0.0, kw_only=True)
    pitch: bool = eqx.field(static=True, default=False, kw_only=True)

    nv: ClassVar[int] = 5
    rows: ClassVar[tuple[str, ...]] = ("force",)
    directions: ClassVar[tuple[str, ...]] = ("normal",)
    numbers: ClassVar[tuple[str, ...]] = ("radius",)
    units: ClassVar[Units] = {"radius": "m"}

    def looks(self) -> tuple[Look, ...]:
        path, knife = super().looks()
        if self.pitch:
            path = path._replace(detail=self._profile())
        if is_concrete(self.radius) and not self.radius > 0.0:
            return path, knife
        return path, Look("roller", "b", self.normal, self.radius)

    def _profile(self) -> Array:
        """Points (n, 3) [m] of the profile that belongs to a pitch curve."""

        def point(u: Array) -> Array:
            centre, rate, _ = value_and_rates(self.curve, u, self.params)
            return centre - self.radius * cross(unit(rate), unit(jnp.asarray(self.normal)))

        return jax.vmap(point)(jnp.linspace(*self.interval, 4 * self.samples))

    def _outward(self, x: Array) -> tuple[Array, Array]:
        """Foot point, and the outward normal there, for a point in a's axes."""
        axis = unit(jnp.asarray(self.normal))
        in_plane = x - (axis @ x) * axis
        foot, tangent = self.foot(in_plane)
        return foot, cross(tangent, axis)

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        x = r_a.T @ d
        foot, outward = self._outward(x)
        distance = outward @ (x - foot)
        return (distance if self.pitch else distance - self.radius)[None]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        force = r_a @ self._outward(r_a.T @ d)[1]
        return wrench_columns([jnp.zeros_like(force)], [force])
