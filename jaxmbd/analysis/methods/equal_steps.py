"""Kutta's steps of equal length, cut only where an event or a corner lies within one."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.methods.adaptive import Adaptive, Attempt, Progress
from jaxmbd.analysis.methods.fixed_steps import RK4
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
        nodes = jnp.array([0.0, 0.5, 0.5, 1.0, 1.0], q.dtype)
        weights = jnp.array([1.0, 2.0, 2.0, 1.0, 0.0], q.dtype) / 6.0
        last = jnp.array([0.0, 0.0, 0.0, 0.0, 1.0], q.dtype)

        def stage(carry: Any, row: tuple[Array, Array, Array]) -> tuple[Any, Array]:
            (node, weight, end), (slopes, sums) = row, carry
            at = (
                y + h * (end * s + (1.0 - end) * node * k)
                for y, k, s in zip((q, v), slopes, sums, strict=True)
            )
            slopes = equations.rates(t + h * node, *at)
            return (
                slopes,
                tuple(s + weight * k for s, k in zip(sums, slopes, strict=True)),
            ), slopes[1]

        zero = (jnp.zeros_like(q), jnp.zeros_like(v))
        (_, sums), k = lax.scan(stage, (zero, zero), (nodes, weights, last))
        e, d = h / 6.0 * (k[0] - k[1] - k[2] + k[3]), h / 6.0 * (k[2] - k[1])
        return Attempt(q + h * sums[0], v + h * sums[1], d, e, (k[0], k[4]))

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
