"""A solver of diffrax between saved times, for single runs.

diffrax and optimistix are imported on use: they take as long as the rest of the package.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis.methods.method import Equations, Method, Step, no_estimates
from jaxmbd.numerics import StepTolerances, newton


class DiffraxSolver(Method):
    """Adaptive steps of a diffrax solver, compiled by XLA.

    A step that fails gives NaN. An implicit solver with diffrax's default root finder solves its
    stages by Newton's method instead.

    Attributes:
        solver: the solver.
        rtol, atol: relative and absolute error of a step; by default 1e-10 and 1e-12 (4e-5 and
            5e-6 in float32).
    """

    solver: Any = eqx.field(static=True)
    rtol: Any = None
    atol: Any = None

    estimates: ClassVar[bool] = False
    compiled: ClassVar[bool] = False

    def step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Array
    ) -> Step:
        """The state at t + h, by as many steps as that takes."""
        import diffrax

        def rates(s: Any, y: tuple[Array, Array], _: Any) -> tuple[Array, Array]:
            return equations.rates(s, *y)

        within = StepTolerances(self.rtol, self.atol)
        result = diffrax.diffeqsolve(
            diffrax.ODETerm(rates),
            with_newton(self.solver, within),
            t,
            t + h,
            None,
            (q, v),
            stepsize_controller=diffrax.PIDController(rtol=within.rtol, atol=within.atol),
            max_steps=4096,
            throw=False,
        )
        ok = result.result == diffrax.RESULTS.successful
        assert result.ys is not None
        q, v = (jnp.asarray(jnp.where(ok, y[-1], jnp.nan)) for y in result.ys)
        after = equations.projected(equations.normalised(q, v), v, t + h)
        return Step(*after, no_estimates(v), memory)

    def own_error(
        self, sizes: tuple[Array, Array], before: Array, change: Array, scale: Array, fastest: Array
    ) -> Array:
        """Unknown; the solver controls its errors itself."""
        return sizes[0]


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
