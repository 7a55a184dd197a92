"""Adaptive integration by diffrax between two times.

Diffrax and optimistix are imported on use: they take a quarter as long as the rest of the package.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis.integrators import Acceleration, normalise
from jaxmbd.kinematics import coordinate_rates
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics.tolerances import StepTolerances, newton


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
