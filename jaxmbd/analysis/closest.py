"""Assembly that keeps the closest configuration of a failed sample, and what stayed open there.

Inside `jit` a failure is a status; these numbers say in addition which joint is open and how far,
or which held coordinate was out of reach.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.assembly import implicit_tangent, outcome, walk
from jaxmbd.analysis.known import Key, held_name, is_angle, known_rows
from jaxmbd.graph import topology
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.closure import closure_residual
from jaxmbd.kinematics.scales import mechanism_length, row_scale
from jaxmbd.model.mechanism import Mechanism

_NEARLY_CLOSED = 1e-4
"""Closure error, in lengths of the mechanism, above which a joint counts as open."""


class Attempt(NamedTuple):
    """The fields of an `Assembly`, and `closest`, where its search ended (nq,)."""

    q: Array
    residual: Array
    status: Array
    iterations: Array
    closest: Array


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def attempt(
    keys: tuple[Key, ...], mech: Mechanism, values: list[Any], t: Any, guess: Array
) -> Attempt:
    """Assemble with held coordinates; differentiable as `assemble` is, except `closest`."""
    done = walk(keys, mech, values, t, guess)
    q, residual, status, iterations = outcome(mech, done)
    return Attempt(q, residual, status, iterations, done.q)


@attempt.defjvp
def _attempt_jvp(keys: tuple[Key, ...], primals: Any, tangents: Any) -> Any:
    out = attempt(keys, *primals)
    q, *rest = implicit_tangent(keys, out[:4], primals[:3], tangents[:3])
    return out, Attempt(q, rest[0], rest[1], rest[2], jnp.zeros_like(out.closest))


def places(mech: Mechanism, keys: tuple[Key, ...]) -> tuple[str, ...]:
    """Names of what can stay open: cut joints, couplings, drives, then the held coordinates."""
    top = topology(mech)
    return (*top.cut, *top.couplings, *top.drives, *map(held_name, keys))


class Opening(NamedTuple):
    """What stayed open.

    Attributes:
        place: index into `places`; −1 if nothing is known.
        distance: how far [m or rad]; NaN if nothing is known.
    """

    place: Array
    distance: Array


def opening(
    keys: tuple[Key, ...], mech: Mechanism, values: list[Any], t: Any, closest: Array
) -> Opening:
    """The joint that is open widest where a search ended, or the held coordinate farthest off.

    Rows are compared in metres, angles times the mechanism's length. A held coordinate counts where
    the loops are nearly closed: then the search stopped at the end of its reach.
    """
    mech, values, closest = lax.stop_gradient((mech, values, closest))
    top, length = topology(mech), mechanism_length(mech)
    m = motion_state(mech, closest, t=t)
    scaled = jnp.abs(row_scale(m) * closure_residual(m))
    names = (*top.cut, *top.couplings, *top.drives)
    loops = [jnp.max(scaled[top.layout[name].rows]) for name in names]
    pairs = zip(keys, values, strict=True)
    held = [jnp.max(jnp.abs(known_rows(m, (key,), [x], length)[0])) for key, x in pairs]
    sizes = jnp.stack([jnp.zeros((), closest.dtype), *loops, *held])[1:]
    if not sizes.shape[0]:
        return Opening(jnp.full((), -1, jnp.int32), jnp.full((), jnp.nan, closest.dtype))
    is_loop = np.arange(len(names) + len(keys)) < len(names)
    opened = jnp.max(jnp.where(is_loop, sizes, 0.0)) > _NEARLY_CLOSED * length
    place = jnp.argmax(jnp.where(is_loop | ~opened, sizes, -1.0)).astype(jnp.int32)
    turns = [_worst_is_angle(top, name, scaled) for name in names]
    turns += [jnp.asarray(_is_turn(top, key)) for key in keys]
    distance = sizes[place] / jnp.where(jnp.stack(turns)[place], length, 1.0)
    known = jnp.all(jnp.isfinite(sizes))
    return Opening(jnp.where(known, place, -1), jnp.where(known, distance, jnp.nan))


def _worst_is_angle(top: Any, name: str, scaled: Array) -> Array:
    """Whether the row of a joint that is open widest is an angle."""
    rows = top.layout[name].rows
    kinds = np.array([kind == "moment" for kind in top.row_kinds[rows]])
    if np.all(kinds == kinds[0]):
        return jnp.asarray(kinds[0])
    return jnp.asarray(kinds)[jnp.argmax(scaled[rows])]


def _is_turn(top: Any, key: Key) -> bool:
    whole = getattr(key, "index", 0) is None  # a quaternion
    return whole or is_angle(top, key)
