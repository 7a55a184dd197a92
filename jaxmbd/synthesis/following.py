"""A linkage followed along its input, each configuration found from the one before."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.closest import attempt
from jaxmbd.analysis.status import Status
from jaxmbd.graph import neutral
from jaxmbd.kinematics import motion_state
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.synthesis.transmission_index import input_key, transmission


class Followed(NamedTuple):
    """Configurations along an input.

    Attributes:
        q: coordinates (n, nq); NaN where the loops do not close.
        closest: coordinates (n, nq); there, the nearest to closed that was found.
        closed: whether the loops close (n,).
        index: transmission index at `closest` (n,).

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.synthesis import follow
        >>> follow(mbd.zoo.rssr(), "crank", [0.0, 0.5, 1.0]).index.shape
        (3,)
    """

    q: Array
    closest: Array
    closed: Array
    index: Array


def follow(mech: Mechanism, joint: Any, inputs: Any) -> Followed:
    """Follow a linkage from its drawing through values of its input (n,) [rad, m].

    Pure and differentiable (q is); under `lanes.vmap` a batch.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.synthesis import follow
        >>> follow(mbd.zoo.rssr(), "crank", [0.0, 0.5, 1.0]).closed.tolist()
        [True, True, True]
    """
    key = input_key(mech, joint)
    zero = jnp.zeros((), mech.dtype)

    def at(guess: Array, u: Array) -> Any:
        found = attempt((key,), mech, [u], zero, guess)
        closed = found.status == Status.OK
        place = jnp.where(closed, found.q, found.closest)  # of the two, q has derivatives
        index = transmission(motion_state(mech, place), key.joint, key.index or 0)
        return lax.stop_gradient(found.closest), Followed(found.q, found.closest, closed, index)

    start = jnp.asarray(neutral(mech), mech.dtype)
    return lax.scan(at, start, jnp.asarray(inputs, mech.dtype))[1]
