"""Integrators: steps of (q, v) under a given acceleration, with an error estimate.

The error of a step in the speeds is estimated from accelerations that are computed anyway, as the
difference from an embedded method of lower order.

Adaptive integration between two times is diffrax's, which is imported on use, as optimistix is:
they take a quarter as long as the rest of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.kinematics import coordinate_rates, step_coordinates
from jaxmbd.model import Mechanism
from jaxmbd.numerics import StepTolerances, newton

Acceleration = Callable[[Any, Array, Array], Array]
"""(t, q, v) → v̇ (nv,)."""


class Step(NamedTuple):
    """Result of a step.

    Attributes:
        q, v: the state after it.
        estimates: (2, nv), never differentiated: an estimate of the error in v by a method of lower
            order, and the change ``h/6 (k3 − k2)`` of the acceleration between two stages at the
            same time, which a force that jumps makes; zeros where a method has none.
        memory: what the method passes on to its next step.
    """

    q: Array
    v: Array
    estimates: Array
    memory: Array


class Integrator(NamedTuple):
    """A method.

    Attributes:
        step: (mech, acceleration, t, q, v, h, memory) → `Step`.
        memory: v → the memory (…,) before the first step.
        own: (sizes, change, scale) → a smooth step's own error in the speeds, from the sizes of the
            two `Step.estimates`, that of the change of the speeds, not zero, and the speeds around.
        lag: share of a step by which speeds are those of an earlier time.
    """

    step: Callable[..., Step]
    memory: Callable[[Array], Array]
    own: Callable[[tuple[Array, Array], Array, Array], Array]
    lag: float


def rk4_step(
    mech: Mechanism, acceleration: Acceleration, t: Any, q: Array, v: Array, h: Any, memory: Array
) -> Step:
    """Kutta's fourth-order step ``y + h/6 (k1 + 2 k2 + 2 k3 + k4)``.

    The stages are a loop, so the dynamics is compiled once. Quaternions leave unit length by O(h⁵)
    only and are then normalised.

    The error is estimated as ``h/6 (k1 − k2 − k3 + k4)``, the difference from the embedded
    ``y + h/2 (k2 + k3)`` of second order. For ``v̇ = λ v`` and z = λ h it is ``z³ (1 + z)/24`` of
    v, and the step's own error ``z⁵/120``; if v̇ depends on t alone, it is the difference between
    Simpson's rule and the midpoint rule. Of the four stages alone there is no embedded method of
    third order; with the next step's first acceleration k5 there is one, ``h/6 (k4 − k5)``, but it
    would come a step late and leave the last step, and a run of one step, without an estimate.
    """
    nodes = jnp.array([0.0, 0.5, 0.5, 1.0], q.dtype)
    weights = jnp.array([1.0, 2.0, 2.0, 1.0], q.dtype) / 6.0
    signs = [[1.0, 0.0], [-1.0, -1.0], [-1.0, 1.0], [1.0, 0.0]]

    def stage(carry: Any, coefficients: tuple[Array, ...]) -> tuple[Any, None]:
        (kq, kv), (sum_q, sum_v), estimates = carry
        node, weight, sign = coefficients
        qs, vs = q + h * node * kq, v + h * node * kv
        kq, kv = coordinate_rates(mech, qs, vs), acceleration(t + h * node, qs, vs)
        estimates = estimates + sign[:, None] * lax.stop_gradient(kv)
        return ((kq, kv), (sum_q + weight * kq, sum_v + weight * kv), estimates), None

    zero = (jnp.zeros_like(q), jnp.zeros_like(v))
    (_, (sum_q, sum_v), estimates), _ = lax.scan(
        jax.checkpoint(stage, prevent_cse=False),
        (zero, zero, no_estimates(v)),
        (nodes, weights, jnp.array(signs, q.dtype) / 6.0),
    )
    q = normalise(mech, q + h * sum_q, v)
    return Step(q, v + h * sum_v, h * estimates, memory)


def rk4_own_error(sizes: tuple[Array, Array], change: Array, _: Array) -> Array:
    """``(5.2 d² + 0.2 e²)/Δv``.

    Of ``v̇ = λ v`` both e and ``d = h/6 (k3 − k2)`` are z³/24 of v, and Δv is z of it: d sees
    z⁵/120, and 5.2 is set for undamped vibrations. Where v̇ depends on t alone d is zero, and e
    sees Simpson's error ``z⁴/2880`` of ``h v̇``.
    """
    e, d = sizes
    return (5.2 * d * d + 0.2 * e * e) / change


def no_estimates(v: Array) -> Array:
    """`Step.estimates` of a method that has none."""
    return jnp.zeros((2, *v.shape), v.dtype)


def semi_implicit_euler_step(
    mech: Mechanism, acceleration: Acceleration, t: Any, q: Array, v: Array, h: Any, memory: Array
) -> Step:
    """First order, speeds first: ``v' = v + h v̇(t, q, v)``, then q moves with v'.

    The error is estimated as ``h/2 (v̇ − v̇ before)``, from the change of the acceleration since
    the previous step (the memory); for the first step there is no estimate. Summed up it is h/2 v̇:
    the speeds are those half a step before. As such they are of second order (a leapfrog).
    """
    vdot = acceleration(t, q, v)
    now = lax.stop_gradient(vdot)
    error = jnp.asarray(jnp.where(jnp.isnan(memory), 0.0, 0.5 * h * (now - memory)))
    v = v + h * vdot
    estimates = jnp.stack([error, jnp.zeros_like(v)])
    return Step(step_coordinates(mech, q, h * v), v, estimates, now)


def euler_own_error(sizes: tuple[Array, Array], _: Array, scale: Array) -> Array:
    """``0.2 e √(e/S)``: e is z²/2 of S, and the error of a leapfrog z³/24."""
    return 0.2 * sizes[0] * jnp.sqrt(sizes[0] / scale)


def normalise(mech: Mechanism, q: Array, v: Array) -> Array:
    """Normalise the quaternions of q, keeping their signs."""
    return step_coordinates(mech, q, 0.0 * v)


INTEGRATORS = {
    "rk4": Integrator(rk4_step, lambda v: v[:0], rk4_own_error, 0.0),
    "semi_implicit_euler": Integrator(
        semi_implicit_euler_step, lambda v: jnp.full_like(v, jnp.nan), euler_own_error, 0.5
    ),
}


def with_newton(solver: Any, steps: StepTolerances) -> Any:
    """An implicit solver with Newton's method in place of diffrax's default root finder.

    The default reuses its Jacobian and converges linearly, at a rate proportional to the step, so
    that at tight tolerances its convergence, not accuracy, would limit the step. Newton's method
    stops once the square of an update is below the step's tolerance. A tighter limit would be below
    the rounding of stiff forces, which affects their residual more than the update.
    """
    import diffrax
    import optimistix

    finder = getattr(solver, "root_finder", None)
    given = isinstance(getattr(finder, "rtol", 0.0), (float, jax.Array))
    if not isinstance(finder, diffrax.VeryChord) or given:
        return solver
    passes = newton(steps)
    finder = optimistix.Newton(rtol=passes.rtol, atol=passes.atol)
    return eqx.tree_at(lambda s: s.root_finder, solver, finder)


def adaptive_interval(
    mech: Mechanism,
    solver: Any,
    acceleration: Acceleration,
    t: Array,
    q: Array,
    v: Array,
    h: float,
    steps: StepTolerances,
) -> tuple[Array, Array]:
    """State at t + h by `solver` with adaptive steps, each within the tolerances `steps`.

    A step that fails gives NaN. An implicit solver with diffrax's default root finder solves its
    stages by Newton's method instead.
    """
    import diffrax

    def rates(s: Any, y: tuple[Array, Array], _: Any) -> tuple[Array, Array]:
        return coordinate_rates(mech, y[0], y[1]), acceleration(s, y[0], y[1])

    controller = diffrax.PIDController(rtol=steps.rtol, atol=steps.atol)
    result = diffrax.diffeqsolve(
        diffrax.ODETerm(rates),
        with_newton(solver, steps),
        t,
        t + h,
        None,
        (q, v),
        stepsize_controller=controller,
        max_steps=4096,
        throw=False,
    )
    ok = result.result == diffrax.RESULTS.successful
    assert result.ys is not None
    q, v = (jnp.asarray(jnp.where(ok, y[-1], jnp.nan)) for y in result.ys)
    return normalise(mech, q, v), v


def integrator(method: Any, tolerances: StepTolerances) -> Integrator:
    """The method of that name, or one that takes a diffrax solver's steps between two times."""
    if isinstance(method, str):
        return INTEGRATORS[method]

    def step(
        mech: Mechanism, acceleration: Acceleration, t: Any, q: Array, v: Array, h: Any, memory: Any
    ) -> Step:
        q, v = adaptive_interval(mech, method, acceleration, t, q, v, h, tolerances)
        return Step(q, v, no_estimates(v), memory)

    return Integrator(step, lambda v: v[:0], lambda sizes, _, __: sizes[0], 0.0)
