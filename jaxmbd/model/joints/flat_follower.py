"""A flat face on a curve: a cam with a flat-faced follower."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.model.drive import value_and_rates
from jaxmbd.model.joints.axes import wrench_columns
from jaxmbd.model.joints.base import Look
from jaxmbd.model.joints.point_on_curve import Curve, CurveJoint, points_of
from jaxmbd.model.numbers import direction
from jaxmbd.spatial import cross, unit

_NEWTON_STEPS = 8


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def extreme_parameter(
    curve: Curve, search: tuple[float, float, int], n: Array, params: Any
) -> Array:
    """The parameter u of the point of a curve that is farthest along `n` (3,).

    ``n · t(u) = 0`` for the unit tangent t by Newton's method, from the farthest of the points at
    equally spaced parameters. On a profile by its support function t turns evenly, however the
    radius of curvature varies. Where t does not turn towards the solution its mean rate over a
    closed curve stands in. NaN where the method does not converge.

    Args:
        curve: the curve.
        search: first and last parameter, and how many points are tried.
        n: a unit vector, in the curve's axes.
        params: of the curve.
    """
    start, end, count = search
    trials = jnp.linspace(start, end, count, dtype=n.dtype)
    u = trials[jnp.argmax(points_of(curve, trials, params) @ n)]
    mean = 2.0 * np.pi / (end - start)

    def error(u: Array) -> tuple[Array, Array]:
        _, rate, second = value_and_rates(curve, u, params)
        speed = jnp.sqrt(rate @ rate)
        tangent = rate / speed
        return n @ tangent, (n @ second - (n @ tangent) * (tangent @ second)) / speed

    def step(_: Any, u: Array) -> Array:
        miss, slope = error(u)
        slope = jnp.where(slope < -0.05 * mean, slope, -mean)
        # A step longer than the spacing of the trials would leave the farthest arc.
        reach = (end - start) / (count - 1)
        return u - jnp.clip(miss / slope, -reach, reach)

    u = jnp.asarray(lax.fori_loop(0, _NEWTON_STEPS, step, u))
    converged = jnp.abs(error(u)[0]) < 1e3 * jnp.finfo(u.dtype).eps
    return jnp.where(converged, u, jnp.nan)


@extreme_parameter.defjvp
def _extreme_parameter_jvp(curve: Curve, search: Any, primals: Any, tangents: Any) -> Any:
    """``n · c'' u̇ = −(ṅ · c' + n · ∂c'/∂params ṗ)`` at the solution."""
    n, params = primals
    u = extreme_parameter(curve, search, n, params)

    def condition(n: Array, params: Any) -> Array:
        return n @ value_and_rates(curve, u, params)[1]

    _, change = jax.jvp(condition, primals, tangents)
    return u, -change / (n @ value_and_rates(curve, u, params)[2])


class FlatFollower(CurveJoint):
    """A flat face of b touches a convex plane curve of a; one force row; never in the tree.

    ``n · (x − c(u)) = 0`` with n the face's normal, x a point of the face, and c(u) the point of
    the curve that is farthest along n: the contact. The force acts there, so about b's point it has
    the moment ``(c − x) × n λ``. The multiplier λ [N] is positive where the cam pushes the
    follower. The constraint is bilateral: with a negative one a real follower would lift off.

    Attributes:
        a, b: names of the cam's body and of the follower's.
        at_a: origin of the curve, a point of a, (3,) [m] as drawn or the name of a point.
        at_b: a point of the face, as drawn.
        curve: ``curve(u, params)`` → (3,) [m] from `at_a`, in global axes as drawn, convex, without
            corners; see `PointOnCurve`.
        params: a pytree of numbers handed to `curve`.
        normal: of the face, as drawn, (3,), away from the cam, or the names of two points.
        interval, samples: see `PointOnCurve`.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> def circle(u, p):
        ...     return jnp.stack([p["shift"] + p["r"] * jnp.cos(u), p["r"] * jnp.sin(u), 0.0 * u])
        >>> contact = mbd.FlatFollower("shaft", "valve", (0, 0, 0), (0, 0.5, 0), circle,
        ...                            {"r": 0.5, "shift": 0.1}, normal=(0, 1, 0))
        >>> contact.rows
        ('force',)
    """

    normal: Any = eqx.field(converter=direction, default=(0.0, 1.0, 0.0), kw_only=True)

    nv: ClassVar[int] = 5
    rows: ClassVar[tuple[str, ...]] = ("force",)
    directions: ClassVar[tuple[str, ...]] = ("normal",)

    def looks(self) -> tuple[Look, ...]:
        return super().looks()[0], Look("sheet", "b", self.normal)

    def _contact(self, r_a: Array, r_b: Array) -> tuple[Array, Array]:
        """The point of contact and the face's normal, in a's axes."""
        n = r_a.T @ (r_b @ unit(jnp.asarray(self.normal)))
        u = extreme_parameter(self.curve, (*self.interval, self.samples), n, self.params)
        return jnp.asarray(self.curve(u, self.params)), n

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        point, n = self._contact(r_a, r_b)
        return (n @ (r_a.T @ d - point))[None]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        point, n = self._contact(r_a, r_b)
        return wrench_columns([r_a @ cross(point - r_a.T @ d, n)], [r_a @ n])
