"""Methods of fixed steps, whose error is estimated from accelerations that are computed anyway.

Their estimates are e, the difference from a method of lower order, and d, the change of the
acceleration between two stages at the same time, times the step, or zero. Both are of lower order
than a smooth step's error, which follows from them by what is known of the method. Where a force
has a kink or a jump in the step, as a stop that is hit, the error is not of higher order than
``E = √(e² + d²)``, which then is more than three times that of both steps before: what is over that
is added. In the first two steps, which have none before, it is what is no small share of Δv.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.methods.method import Equations, Method, Step, no_estimates
from jaxmbd.kinematics import step_coordinates


class FixedSteps(Method):
    """A method of fixed steps."""

    @abc.abstractmethod
    def smooth_error(self, e: Array, d: Array, change: Array, scale: Array) -> Array:
        """A smooth step's own error in the speeds, as `own_error`."""

    def own_error(
        self, sizes: tuple[Array, Array], before: Array, change: Array, scale: Array, fastest: Array
    ) -> Array:
        """That of a smooth step, with what is sudden; at most E."""
        size = jnp.hypot(*sizes)
        first = size * jnp.minimum(1.0, (3.0 * size / change) ** 2)
        sudden = jnp.where(before < jnp.inf, jnp.maximum(size - 3.0 * before, 0.0), first)
        return jnp.minimum(size, self.smooth_error(*sizes, change, scale) + sudden)


class RK4(FixedSteps):
    """Kutta's fourth-order step ``y + h/6 (k1 + 2 k2 + 2 k3 + k4)``.

    The stages are a loop, so the dynamics is compiled once. Quaternions leave unit length by O(h⁵)
    only and are then normalised.

    The error is estimated as ``h/6 (k1 − k2 − k3 + k4)``, the difference from the embedded
    ``y + h/2 (k2 + k3)`` of second order. For ``v̇ = λ v`` and z = λ h it is ``z³ (1 + z)/24`` of
    v, and the step's own error ``z⁵/120``; if v̇ depends on t alone, it is the difference between
    Simpson's rule and the midpoint rule. Of the four stages alone there is no embedded method of
    third order; with the next step's first acceleration k5 there is one, ``h/6 (k4 − k5)``, but it
    would come a step late and leave the last step, and a run of one step, without an estimate.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.simulate(m, [0.1], t1=0.02, dt=1e-3, method=mbd.RK4()).status.item()
        0
    """

    explicit: ClassVar[bool] = True

    def step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Array
    ) -> Step:
        """One step, with its estimates."""
        nodes, weights = [0.0, 0.5, 0.5, 1.0], [1.0, 2.0, 2.0, 1.0]
        signs = [[1.0, 0.0], [-1.0, -1.0], [-1.0, 1.0], [1.0, 0.0]]

        def stage(carry: Any, row: tuple[Array, ...]) -> tuple[Any, None]:
            (kq, kv), (sum_q, sum_v), estimates = carry
            node, weight, sign = row
            dq, dv = h * node * kq, h * node * kv
            kq, kv = equations.rates(t + h * node, q + dq, v + dv)
            estimates = estimates + sign[:, None] * lax.stop_gradient(kv)
            return ((kq, kv), (sum_q + weight * kq, sum_v + weight * kv), estimates), None

        zero = (jnp.zeros_like(q), jnp.zeros_like(v))
        rows = (nodes, [w / 6.0 for w in weights], np.array(signs) / 6.0)
        (_, (sum_q, sum_v), estimates), _ = lax.scan(
            jax.checkpoint(stage, prevent_cse=False),
            (zero, zero, no_estimates(v)),
            tuple(jnp.asarray(x, q.dtype) for x in rows),
        )
        q, v = q + h * sum_q, v + h * sum_v
        after = equations.normalised(q, v), v
        return Step(*equations.projected(*after, t + h), h * estimates, memory)

    def smooth_error(self, e: Array, d: Array, change: Array, scale: Array) -> Array:
        """``(5.2 d² + 0.2 e²)/Δv``.

        Of ``v̇ = λ v`` both e and ``d = h/6 (k3 − k2)`` are z³/24 of v, and Δv is z of it: d sees
        z⁵/120, and 5.2 is set for undamped vibrations. Where v̇ depends on t alone d is zero, and e
        sees Simpson's error ``z⁴/2880`` of ``h v̇``.
        """
        return (5.2 * d * d + 0.2 * e * e) / change


class SemiImplicitEuler(FixedSteps):
    """First order, speeds first: ``v' = v + h v̇(t, q, v)``, then q moves with v'.

    The error is estimated as ``h/2 (v̇ − v̇ before)``, from the change of the acceleration since
    the previous step (the memory); for the first step there is no estimate. Summed up it is h/2 v̇:
    the speeds are those half a step before. As such they are of second order (a leapfrog). Times
    of events are of first order, and flights between impacts shorter than a step are lost.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> run = mbd.simulate(m, [0.1], t1=0.1, dt=1e-3, method=mbd.SemiImplicitEuler())
        >>> run.status.item()
        0
    """

    lag: ClassVar[float] = 0.5

    def first_memory(self, v: Array) -> Array:
        """The acceleration of the step before: NaN, as there is none."""
        return jnp.full_like(v, jnp.nan)

    def step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Array
    ) -> Step:
        """One step, with its estimates."""
        vdot = equations.acceleration(t, q, v)
        now = lax.stop_gradient(vdot)
        error = jnp.asarray(jnp.where(jnp.isnan(memory), 0.0, 0.5 * h * (now - memory)))
        v = v + h * vdot
        estimates = jnp.stack([error, jnp.zeros_like(v)])
        after = equations.projected(step_coordinates(equations.mech, q, h * v), v, t + h)
        return Step(*after, estimates, now)

    def smooth_error(self, e: Array, d: Array, change: Array, scale: Array) -> Array:
        """``0.2 e √(e/S)``: e is z²/2 of S, and the error of a leapfrog z³/24."""
        return 0.2 * e * jnp.sqrt(e / scale)
