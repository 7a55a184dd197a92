"""The generalised-α method: implicit steps of fixed length with numerical damping of one's choice.

With ρ the spectral radius at infinite frequency, ``α_m = (2ρ − 1)/(ρ + 1)``, ``α_f = ρ/(ρ + 1)``,
``γ = ½ + α_f − α_m`` and ``β = ¼ (γ + ½)²`` (Chung and Hulbert 1993), a step is

    q' = q ∘ h (v + h ((½ − β) a + β a')),    v' = v + h ((1 − γ) a + γ a'),
    (1 − α_m) a' + α_m a = (1 − α_f) w' + α_f w,    w' = v̇(t + h, q', v'),

∘ being `step_coordinates`: the Lie-group form of Arnold and Brüls (2007) and Brüls and Cardona
(2010), with Cayley's map of the rotation in place of the exponential. The algorithmic acceleration
a is that at ``t + (α_m − α_f) h``. Accelerations are those on the constraints (index 1), and the
state after the step is projected onto them, where the papers solve for multipliers (index 3).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.methods.fixed_steps import FixedSteps
from jaxmbd.analysis.methods.method import Equations, Step
from jaxmbd.kinematics import speed_units, speeds_of_rates, step_coordinates
from jaxmbd.lanes import bounded_while
from jaxmbd.numerics import jacobian, pivoted_lu, tolerances

MOST = 10
"""Jacobians of a step, each of two Newton corrections."""


class Coefficients(NamedTuple):
    """α_m, α_f, γ and β, and the error of a step.

    Of a vibration with rate ω, and z = ω h, a step multiplies the amplitude by
    ``1 − ½ ((1 − ρ)/(1 + ρ))³ z⁴ + …`` and turns the phase by ``z − c z³ + …``.

    Attributes:
        m, f, gamma, beta: the coefficients.
        error: c, from the expansion of the eigenvalues of a step; 1/12 by ρ = 1.
    """

    m: Any
    f: Any
    gamma: Any
    beta: Any
    error: Any


def coefficients(rho: Any) -> Coefficients:
    """Those for a spectral radius ρ."""
    m, f = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
    gamma = 0.5 + f - m
    beta = 0.25 * (gamma + 0.5) ** 2
    error = (11.0 * rho * rho - 14.0 * rho + 11.0) / (24.0 * (rho + 1.0) ** 2)
    return Coefficients(m, f, gamma, beta, error)


class GeneralizedAlpha(FixedSteps):
    """The generalised-α method, of order 2, for stiff systems at fixed steps.

    Linear vibrations are stable at any step. Those much faster than a step lose all but ρ of their
    amplitude in each, slow ones next to nothing. By ρ = 1 it is the trapezoidal rule, which damps
    nothing; by ρ = 0 fast vibrations are gone after a step. J. Chung and G. M. Hulbert, J. Appl.
    Mech. 60, 371 (1993); M. Arnold and O. Brüls, Multibody Syst. Dyn. 18, 185 (2007); O. Brüls and
    A. Cardona, J. Comput. Nonlinear Dyn. 5, 031002 (2010). Equations and how they are solved are in
    `jaxmbd.analysis.methods.generalized_alpha`.

    Each step is solved by Newton's method, with the Jacobian from derivatives of inverse dynamics
    along the nv speeds: as a rule one Jacobian and two corrections. What the last one changed is
    added to the error. First and second derivatives are those of the equations' solution.

    Attributes:
        spectral_radius: ρ, from 0 to 1.

    Raises:
        ValueError: ρ is not from 0 to 1.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> run = mbd.simulate(m, [0.1], t1=1.0, dt=0.01, method=mbd.GeneralizedAlpha(0.8))
        >>> run.status.item()
        0
    """

    spectral_radius: Any = 0.9

    def __check_init__(self) -> None:
        rho = self.spectral_radius
        if isinstance(rho, int | float) and not 0.0 <= rho <= 1.0:
            raise ValueError(f"GeneralizedAlpha: spectral_radius={rho}; give a number from 0 to 1")

    def first_memory(self, v: Array) -> Array:
        """``(a − w)/h``, w and its rate over the step before (3, nv): NaN, as there is none.

        As rates they hold for a next step of another length.
        """
        return jnp.full((3, *v.shape), jnp.nan, v.dtype)

    def step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Array
    ) -> Step:
        """One step, with its estimates."""
        c, mech, end = coefficients(self.spectral_radius), equations.mech, t + h
        ahead, w, rate = memory
        # A loop, since kernels run its body only where it is needed.
        w = bounded_while(
            lambda w: jnp.any(jnp.isnan(w)), lambda _: equations.acceleration(t, q, v), w, 2
        )

        def means(x: Array) -> tuple[Array, Array]:
            """A and a' where w' is x; the first a is ``w + (α_m − α_f) (w' − w)``."""
            first = jnp.isnan(ahead)
            later = h * jnp.asarray(jnp.where(first, 0.0, ahead))  # NaN has derivatives by h
            old = w + jnp.where(first, (c.m - c.f) * (x - w), later)
            return old, ((1.0 - c.f) * x + c.f * w - c.m * old) / (1.0 - c.m)

        def state(x: Array) -> tuple[Array, Array]:
            """(q', v') where w' is x."""
            old, new = means(x)
            moved = h * (v + h * ((0.5 - c.beta) * old + c.beta * new))
            return step_coordinates(mech, q, moved), v + h * ((1.0 - c.gamma) * old + c.gamma * new)

        def excess_of(x: Array) -> Array:
            return x - equations.acceleration(end, *state(x))

        def slope_of(x: Array) -> Array:
            """Its Jacobian, by `Equations.slopes`, which redundant rows have too."""
            assert equations.slopes is not None
            q_new, v_new = state(x)
            soft, damping, _ = equations.slopes(end, q_new, v_new)
            columns = jacobian(lambda y: jnp.concatenate(state(y)), x)
            places, faster = columns[: q.shape[0]], columns[q.shape[0] :]
            turned = jax.vmap(partial(speeds_of_rates, mech, q_new), 1, 1)(places)
            return jnp.eye(x.shape[0], dtype=x.dtype) - soft @ turned - damping @ faster

        excess, given = jax.closure_convert(excess_of, w)
        slope, fixed = jax.closure_convert(slope_of, w)
        expected = w + jnp.where(jnp.isnan(rate), 0.0, h * rate)
        by = h * c.gamma * (1.0 - c.f) / (1.0 - c.m)
        held = lax.stop_gradient((given, fixed, expected, v, speed_units(mech), h, by))
        found = newton(excess, slope, *held)
        x = solved(excess, slope, found.x, given, fixed)

        def projected(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
            return equations.projected(state[0], state[1], end)

        # Large steps leave the constraints by so much that one projection is not exact.
        q_new, v_new = lax.fori_loop(0, 2, projected, state(x))
        bend = jnp.where(jnp.isnan(rate), 0.0, found.bend)
        error = h * c.error * jnp.abs(bend) + by * jnp.abs(found.last)
        estimates = lax.stop_gradient(jnp.stack([0.5 * h * (x - w), error]))
        memory = jnp.stack([(means(x)[1] - x) / h, x, (x - w) / h])
        return Step(q_new, v_new, estimates, memory)

    def smooth_error(self, e: Array, d: Array, change: Array, scale: Array) -> Array:
        """``1.25 d``: d is a step's leading error in the speeds, and 1.25 right for vibrations.

        e, the difference from a step of first order, sees what is sudden.
        """
        return 1.25 * d


class Found(NamedTuple):
    """Where Newton's iteration is.

    Attributes:
        x: w'.
        last: its last change.
        bend: ``W⁻¹`` times its difference from what was expected, W being the Jacobian: a vibration
            much faster than the step moves less than its accelerations let expect.
    """

    x: Array
    last: Array
    bend: Array


def newton(
    excess: Any,
    slope: Any,
    given: Any,
    fixed: Any,
    expected: Array,
    v: Array,
    units: Array,
    h: Array,
    by: Array,
) -> Found:
    """W' of ``excess(w', *given) = 0`` by Newton's method, from an expected one.

    Each Jacobian serves two corrections. The last is the one whose second changes the speeds, `by`
    times w', less than an adaptive step may be wrong by.
    """
    within = tolerances.integration(v.dtype)
    expected, far = jnp.asarray(expected), jnp.full_like(expected, jnp.inf)

    def size(x: Array) -> Array:
        return jnp.max(jnp.abs(x) / units, initial=0.0)

    def going(found: Found) -> Array:
        speed = jnp.maximum(size(v), h * size(found.x))
        return by * size(found.last) > within.rtol * speed + within.atol / h

    def corrected(found: Found) -> Found:
        matrix = pivoted_lu(slope(found.x, *fixed))
        first = matrix.solve(excess(found.x, *given))
        near = found.x - first
        last = matrix.solve(excess(near, *given))
        closer = size(last) < size(first)  # not where a force has a kink between both
        x = jnp.asarray(jnp.where(closer, near - last, near))
        last = jnp.asarray(jnp.where(closer, last, first))
        return Found(x, last, matrix.solve(x - expected))

    return bounded_while(going, corrected, Found(expected, far, far), MOST)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def solved(excess: Any, slope: Any, x: Array, given: Any, fixed: Any) -> Array:
    """X, with the derivatives of the solution of ``excess(x, *given) = 0``.

    The Jacobian by x is ``slope(x, *fixed)``.
    """
    del excess, slope, given, fixed
    return x


@solved.defjvp
def _solved_jvp(excess: Any, slope: Any, primals: Any, tangents: Any) -> tuple[Array, Array]:
    """The solution and its rate, both corrected with a constant Jacobian, for their derivatives.

    A correction of what is solved already moves its derivatives only, and makes right one order
    more of them. This rule by itself would not do: JAX drops it where reverse mode splits the body
    of a loop.
    """
    x, given = solved(excess, slope, *primals), tuple(primals[1])
    matrix = pivoted_lu(slope(*lax.stop_gradient((x, *primals[2]))))

    def moved(rate: Array) -> Array:
        return jax.jvp(excess, (x, *given), (rate, *tangents[1]))[1]

    change = matrix.solve(excess(x, *given))
    x = x - (change - lax.stop_gradient(change))
    rate = -matrix.solve(moved(jnp.zeros_like(x)))
    return x, rate - matrix.solve(moved(rate))
