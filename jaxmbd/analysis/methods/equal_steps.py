"""Steps of equal length, cut only where an event or a corner lies within one.

A step at whose end a function has passed zero is made again, from where it began, with a shorter
length, until it ends at the event: what was tried on the way leaves nothing behind. So the state at
the event is the method's own, and the event's time is that length t of ``g(step(t)) = 0``. Its
derivatives are those of this equation, with the derivative of the step by its length for ġ, which
is not quite that of the motion: forward and reverse mode give what differences of runs give, at any
step and order. From the event on another step leads to the end of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.methods.adaptive import Adaptive, Attempt, Progress
from jaxmbd.analysis.methods.fixed_steps import FixedSteps
from jaxmbd.analysis.methods.method import Equations, Step
from jaxmbd.kinematics import speeds_of_rates
from jaxmbd.lanes import bounded_while


class Cut(Adaptive):
    """A method of fixed steps in runs with events.

    It begins anew, without what the step before passed on, after events that change the motion,
    since accelerations jump there, and after very short steps.

    Attributes:
        method: the method.
    """

    method: FixedSteps = eqx.field(kw_only=True)

    order: ClassVar[int] = 1
    whole: ClassVar[bool] = True

    @property
    def lag(self) -> float:
        """That of the method."""
        return self.method.lag

    def first_memory(self, v: Array) -> Array:
        """As of adaptive steps, with the method's own (1, 5 + k)."""
        own = _finite(self.method.first_memory(v))
        return jnp.concatenate([super().first_memory(v), own[None]], axis=1)

    def step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Any
    ) -> Step:
        """One step, or its parts; the first that is tried is the whole."""
        own, seen = memory
        return super().step(equations, t, q, v, h, (own.at[0, 0].set(jnp.inf), seen))

    def attempt(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Any = None
    ) -> Attempt:
        """A step, with the two estimates d and e of the method for errors."""
        step = self._step(equations, t, q, v, h, memory)
        ends = [jnp.stack(x) for x in ((t, t + h), (q, step.q), (v, step.v))]
        slopes = lax.map(lambda at: equations.acceleration(*at), tuple(ends))
        e, d = step.estimates
        return Attempt(step.q, step.v, d, e, (slopes[0], slopes[1]), _finite(step.memory))

    def placed(self, equations: Equations, tried: Attempt, t: Array) -> tuple[Array, Array]:
        """As it is: methods place their ends themselves."""
        return tried.q, tried.v

    def moved(
        self, equations: Equations, t: Array, h: Array, p: Progress
    ) -> Callable[[Array], tuple[Array, Array]]:
        """`Tried.moved`, by forward mode."""

        def ended(h: Array) -> tuple[Array, Array]:
            step = self._step(equations, t, p.q, p.v, h, p.memory)
            return step.q, step.v

        def rates(happens: Array) -> tuple[Array, Array]:
            end, given = jax.closure_convert(ended, h)
            length, *held = lax.stop_gradient((h, *given))

            def once(_: Any) -> tuple[Array, Array, Array]:
                along = (jnp.ones_like(length), *map(jnp.zeros_like, held))
                (q, _), (dq, dv) = jax.jvp(end, (length, *held), along)
                return jnp.asarray(False), speeds_of_rates(equations.mech, q, dq), dv

            still = 0.0 * lax.stop_gradient(p.v)
            return bounded_while(lambda x: x[0], once, (happens, still, still), 2)[1:]

        return rates

    def _step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Any
    ) -> Step:
        own = self.method.first_memory(v)
        before = jnp.asarray(jnp.where(memory < jnp.finfo(v.dtype).max, memory, jnp.nan))
        return self.method.step(equations, t, q, v, h, before.reshape(own.shape))

    def _size(self, mech: Any, p: Progress, tried: Attempt) -> Array:
        """None, or NaN."""
        return 0.0 * (jnp.sum(tried.q) + jnp.sum(tried.v))

    def _first_estimates(self, v: Array) -> Array:
        return jnp.zeros((2, *v.shape), v.dtype)

    def _estimates(self, p: Progress, tried: Attempt, v: Array, size: Array) -> Array:
        """Those of the parts of a step added up."""
        return p.estimates + jnp.abs(jnp.stack([tried.error_v, tried.error_q]))

    def own_error(
        self, sizes: tuple[Array, Array], before: Array, change: Array, scale: Array, fastest: Array
    ) -> Array:
        """As of the method."""
        return self.method.own_error(sizes, before, change, scale, fastest)


def _finite(memory: Array) -> Array:
    """A method's memory as (k,), with the largest number in place of NaN, which is for failures."""
    return jnp.nan_to_num(
        memory.ravel(), nan=jnp.finfo(memory.dtype).max, posinf=jnp.inf, neginf=-jnp.inf
    )
