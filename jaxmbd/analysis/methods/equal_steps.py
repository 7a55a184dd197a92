"""Kutta's steps of equal length, cut only where an event or a corner lies within one."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis.methods.adaptive import Adaptive, Attempt, Progress
from jaxmbd.analysis.methods.fixed_steps import RK4, kutta
from jaxmbd.analysis.methods.method import Equations, Step


class CutRK4(Adaptive):
    """`RK4` in runs with events: every step is accepted, unless an event lies within it.

    Then it is made again up to the event, and the rest of it from the state after that. A fifth
    stage, at the new state, has the acceleration that functions of v need for their rates.
    """

    order: ClassVar[int] = 4
    lag: ClassVar[float] = RK4.lag

    def step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Any
    ) -> Step:
        """One step, or its parts; the first that is tried is the whole."""
        own, seen = memory
        return super().step(equations, t, q, v, h, (own.at[0, 0].set(jnp.inf), seen))

    def attempt(self, equations: Equations, t: Array, q: Array, v: Array, h: Array) -> Attempt:
        """A step, with the two estimates d and e of `RK4` for errors."""
        q, v, (e, d), slopes = kutta(equations, t, q, v, h, fifth=True)
        return Attempt(q, v, d, e, slopes)

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
        """As of `RK4`."""
        return RK4().own_error(sizes, before, change, scale, fastest)
