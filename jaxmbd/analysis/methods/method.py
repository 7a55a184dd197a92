"""What a method of integration is: a step of (q, v), and what the account of a run asks of it.

A method is an object with numbers, as tolerances, for leaves: other numbers make no new program.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.kinematics import coordinate_rates, step_coordinates
from jaxmbd.model import Mechanism


class Equations(NamedTuple):
    """What is integrated.

    Attributes:
        mech: the mechanism.
        acceleration: (t, q, v) → v̇ (nv,) [rad/s², m/s²]; a method that looks for events also
            gives the switches (`jaxmbd.analysis.methods.events.Seen`).
        projected: (q, v, t) → the nearest (q, v) on the constraints, or the same without any.
        events: what is looked for on the way (`jaxmbd.analysis.methods.events`).
        slopes: (t, q, v) → ∂v̇/∂q along the speeds (nv, nv), ∂v̇/∂v (nv, nv) and ∂v̇/∂t (nv,);
            with switches as `acceleration`. Only methods with a Jacobian need it.
        efforts: (t, q, v) → ``τ − h`` with friction (nv,) [N·m, N], in ``M v̇ = τ − h + Jᵀ λ``. Only
            methods that step momenta need it.
        corners: times at which steps must end (`jaxmbd.analysis.methods.corners`), each (n,) [s].
        on_constraints: whether `rates` are those at the nearest state on the constraints.
    """

    mech: Mechanism
    acceleration: Callable[..., Array]
    projected: Callable[[Array, Array, Any], tuple[Array, Array]]
    events: tuple[Any, ...] = ()
    slopes: Callable[..., tuple[Array, Array, Array]] | None = None
    efforts: Callable[..., Array] | None = None
    corners: tuple[Array, ...] = ()
    on_constraints: bool = False

    def rates(self, t: Any, q: Array, v: Array) -> tuple[Array, Array]:
        """(q̇, v̇), as explicit methods ask for at each stage."""
        if self.on_constraints:
            q, v = self.projected(q, v, t)
        return coordinate_rates(self.mech, q, v), self.acceleration(t, q, v)

    def normalised(self, q: Array, v: Array) -> Array:
        """Q with unit quaternions, which keep their signs."""
        return normalise(self.mech, q, v)


def normalise(mech: Mechanism, q: Array, v: Array) -> Array:
    """Normalise the quaternions of q, keeping their signs."""
    return step_coordinates(mech, q, 0.0 * v)


class Step(NamedTuple):
    """Result of a step.

    Attributes:
        q, v: the state after it, on the constraints.
        estimates: (2, nv), never differentiated: what the method estimates its error in v from.
        memory: what the method passes on to its next step; with events also `events.Seen`.
        jumped: by how much events have changed the speeds (nv,), never differentiated, or None.
    """

    q: Array
    v: Array
    estimates: Array
    memory: Any
    jumped: Array | None = None


class Method(eqx.Module):
    """A method of integration.

    Attributes:
        lag: share of a step by which speeds are those of an earlier time.
        estimates: whether the errors of its steps are known (`Solution.error`).
        compiled: whether lanes can compile it.
        explicit: whether its stages are by `Equations.rates` alone.
    """

    lag: ClassVar[float] = 0.0
    estimates: ClassVar[bool] = True
    compiled: ClassVar[bool] = True
    explicit: ClassVar[bool] = False

    def first_memory(self, v: Array) -> Array:
        """What it passes on to the first step."""
        return v[:0]

    def taken(self, memory: Array, steps: Array) -> Array:
        """How many steps it took, given the memory after `steps` calls of `step`."""
        return steps

    def rejected(self, memory: Array) -> Array:
        """How many steps it tried and did not take."""
        return jnp.zeros((), memory.dtype)

    def reached(self, memory: Array, t: Array) -> Array:
        """The time up to which a step that should end at t came [s], given the memory after it."""
        return t

    @abc.abstractmethod
    def step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Array
    ) -> Step:
        """The state after a step of length h [s] from (q, v) at t."""

    @abc.abstractmethod
    def own_error(
        self, sizes: tuple[Array, Array], before: Array, change: Array, scale: Array, fastest: Array
    ) -> Array:
        """The step's own error in the speeds, in the two norms of the account (2,).

        Args:
            sizes: of the two `Step.estimates`, each (2,).
            before: the largest size of both together in the last two steps (2,); infinite in the
                first two.
            change: size of the change of the speeds, not zero (2,).
            scale: size of the speeds around (2,).
            fastest: size of the largest speeds so far (2,).
        """


def no_estimates(v: Array) -> Array:
    """`Step.estimates` of a method that has none."""
    return jnp.zeros((2, *v.shape), v.dtype)
