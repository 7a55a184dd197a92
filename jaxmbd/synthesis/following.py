"""A linkage followed along its input, each configuration found from the one before."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import Status, attempt
from jaxmbd.graph import neutral
from jaxmbd.kinematics import motion_state
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.transmission_index import input_key, transmission

_PARTS, _STATIONS = 12, 20
"""Of a course: parts, and stations in each; 1.5° apart in a full turn."""

_CLOSE = 2e-4
"""Distance of the last three stations, of the whole: rounding and curvature are both far below."""


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

    def step(guess: Array, u: Array) -> Any:
        found = _at(mech, joint, u, guess)
        return lax.stop_gradient(found.closest), found

    start = jnp.asarray(neutral(mech), mech.dtype)
    return lax.scan(step, start, jnp.asarray(inputs, mech.dtype))[1]


def _at(mech: Mechanism, joint: Any, u: Array, guess: Array) -> Followed:
    """The configuration at an input that is nearest to a guess."""
    key = input_key(mech, joint)
    found = attempt((key,), mech, [u], jnp.zeros((), mech.dtype), guess)
    closed = found.status == Status.OK
    place = jnp.where(closed, found.q, found.closest)  # of the two, q has derivatives
    index = transmission(motion_state(mech, place), key.joint, key.index or 0)
    return Followed(found.q, found.closest, closed, index)


class Course(NamedTuple):
    """A linkage over a whole range of its input."""

    least: Array  # transmission index of each part (parts,), negative if not of the drawing's sign
    closed: Array  # whether the loops close everywhere
    last: Array  # coordinates at the end (nq,)


def course(mech: Mechanism, joint: Any, reach: Any) -> Course:
    """Follow a linkage from its drawing until its input has moved by `reach` [rad, m].

    Pure; `least` is differentiable, twice. In each part of the range the least index is found among
    close stations, and then by the parabola through three beside it, whose vertex moves with the
    linkage; one at an end of a part stays there. Each part has its own, so that minima that are
    equally low are told apart.
    """
    reach = jnp.asarray(reach, mech.dtype)
    fixed, far = lax.stop_gradient((mech, reach))

    def station(carry: Any, share: Array) -> Any:
        guess, side, best, where, near = carry
        found = _at(fixed, joint, share * far, guess)
        side = jnp.where(side == 0.0, jnp.where(found.index < 0.0, -1.0, 1.0), side)
        index = side * found.index
        best, where, near = jax.tree_util.tree_map(
            lambda new, old: jnp.where(index < best, new, old),
            (index, share, found.closest),
            (best, where, near),
        )
        return (found.closest, side, best, where, near), found.closed

    def part(carry: Any, shares: Array) -> Any:
        (guess, side), low, high = carry, shares[0], shares[-1]
        begin = (guess, side, jnp.asarray(jnp.inf, mech.dtype), low, guess)
        (last, side, _, where, near), closed = lax.scan(station, begin, shares)

        def vertex(where: Array, size: Array) -> tuple[Array, Array]:
            """Place and height of the lowest point of the parabola through three stations."""
            middle = jnp.clip(where, low + size, high - size)
            three = middle + size * jnp.array([-1.0, 0.0, 1.0])
            index: Array = lax.map(lambda x: side * _at(mech, joint, x * reach, near).index, three)
            left, height, right = index[0], index[1], index[2]
            slope, bend = 0.5 * (right - left), left - 2.0 * height + right
            steep = jnp.abs(slope) >= bend  # no vertex between them
            at = jnp.where(steep, -jnp.sign(slope), -slope / jnp.where(steep, 1.0, bend))
            where = lax.stop_gradient(middle + size * at)
            return where, height + at * (slope + 0.5 * bend * at)

        sizes = jnp.asarray([1.0 / (_PARTS * _STATIONS), _CLOSE], mech.dtype)
        least = lax.scan(vertex, where, sizes)[1][-1]
        return (last, side), (least, jnp.all(closed))

    shares = np.arange(_PARTS)[:, None] * _STATIONS + np.arange(_STATIONS + 1)
    shares = jnp.asarray(shares / (_PARTS * _STATIONS), mech.dtype)
    begin = jnp.asarray(neutral(mech), mech.dtype), jnp.zeros((), mech.dtype)
    (last, _), (least, closed) = lax.scan(part, begin, shares)
    return Course(least, jnp.all(closed), last)
