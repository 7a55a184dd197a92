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
        errors: (3, nv), never differentiated: an estimate of the error in v, of a method of lower
            order; changes of the acceleration ``h/6 (k3 − k2)`` and ``h/6 (k2 − k1)`` from stage to
            stage, by which a force that jumps is known; zeros where a method has none.
        memory: what the method passes on to its next step.
    """

    q: Array
    v: Array
    errors: Array
    memory: Array


class Integrator(NamedTuple):
    """A method.

    Attributes:
        step: (mech, acceleration, t, q, v, h, memory) → `Step`.
        memory: v → the memory (…,) before the first step.
    """

    step: Callable[..., Step]
    memory: Callable[[Array], Array]


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

    With S the sum above without y and h, E that of the error and D the change ``(k3 − k2)/6``, the
    change before it is ``(k2 − k1)/6 = (k4 − S − 5 E)/6 − D/2``: a loop that carried it as well
    would be slower by hundredths.
    """
    nodes = jnp.array([0.0, 0.5, 0.5, 1.0], q.dtype)
    weights = jnp.array([1.0, 2.0, 2.0, 1.0], q.dtype) / 6.0
    signs = [[1.0, 0.0], [-1.0, -1.0], [-1.0, 1.0], [1.0, 0.0]]

    def stage(carry: Any, coefficients: tuple[Array, ...]) -> tuple[Any, None]:
        (kq, kv), (sum_q, sum_v), errors = carry
        node, weight, sign = coefficients
        qs, vs = q + h * node * kq, v + h * node * kv
        kq, kv = coordinate_rates(mech, qs, vs), acceleration(t + h * node, qs, vs)
        errors = errors + sign[:, None] * lax.stop_gradient(kv)
        return ((kq, kv), (sum_q + weight * kq, sum_v + weight * kv), errors), None

    zero = (jnp.zeros_like(q), jnp.zeros_like(v))
    ((_, kv), (sum_q, sum_v), (error, last)), _ = lax.scan(
        jax.checkpoint(stage, prevent_cse=False),
        (zero, zero, no_errors(v)[:2]),
        (nodes, weights, jnp.array(signs, q.dtype) / 6.0),
    )
    first = lax.stop_gradient((kv - sum_v - 5.0 * error) / 6.0 - 0.5 * last)
    errors = h * jnp.stack([error, last, first])
    return Step(normalise(mech, q + h * sum_q, v), v + h * sum_v, errors, memory)


def no_errors(v: Array) -> Array:
    """`Step.errors` of a method that estimates none."""
    return jnp.zeros((3, *v.shape), v.dtype)


def semi_implicit_euler_step(
    mech: Mechanism, acceleration: Acceleration, t: Any, q: Array, v: Array, h: Any, memory: Array
) -> Step:
    """First order, speeds first: ``v' = v + h v̇(t, q, v)``, then q moves with v'.

    The error is estimated as ``h/2 (v̇ − v̇ before)``, from the change of the acceleration since
    the previous step (the memory); for the first step there is no estimate.
    """
    vdot = acceleration(t, q, v)
    now = lax.stop_gradient(vdot)
    error = jnp.asarray(jnp.where(jnp.isnan(memory), 0.0, 0.5 * h * (now - memory)))
    v = v + h * vdot
    none = jnp.zeros_like(v)
    return Step(step_coordinates(mech, q, h * v), v, jnp.stack([error, none, none]), now)


def normalise(mech: Mechanism, q: Array, v: Array) -> Array:
    """Normalise the quaternions of q, keeping their signs."""
    return step_coordinates(mech, q, 0.0 * v)


INTEGRATORS = {
    "rk4": Integrator(rk4_step, lambda v: v[:0]),
    "semi_implicit_euler": Integrator(
        semi_implicit_euler_step, lambda v: jnp.full_like(v, jnp.nan)
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
