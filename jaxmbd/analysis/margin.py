"""`closure_margin`: the signed distance to the dead centre at which loops just close.

The margin is ``m = −s`` of the nearest dead centre (`jaxmbd.analysis.dead_centre_search`),
``r = s u, Jᵀu = 0, |u| = 1`` at the configuration x. To first order it changes with the numbers p
of the mechanism only, since ``u·∂r/∂x = 0`` and ``u·u̇ = 0`` (the envelope theorem):
``ṁ = −u·∂r/∂p ṗ`` with x and u fixed. Their own derivatives, by the implicit function theorem,
enter derivatives of second order.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.assembly import outcome, walk
from jaxmbd.analysis.dead_centre_search import (
    Case,
    error_count,
    errors,
    find_dead_centre,
    free_speeds,
    misfit,
    stationarity,
    with_settings,
)
from jaxmbd.analysis.known import Key, Known, parse_known
from jaxmbd.analysis.status import Status
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import check_shape, coordinate_rates, mechanism_length, speed_units
from jaxmbd.lanes import compiled
from jaxmbd.model import Mechanism, finite_numbers
from jaxmbd.numerics import factor_rows


class ClosureMargin(NamedTuple):
    """How far a loop is from where it just closes.

    Attributes:
        margin: [m]; positive where the loops close, negative where they stay open.
        q: coordinates (nq,) of the dead centre.
        status: a `Status` number: OK; NOT_ASSEMBLED where the loops close but the way of the held
            coordinates from the guess is blocked; DIVERGED where no dead centre was found, and the
            margin is a bound; NON_FINITE where a number of the mechanism is NaN, and so is the
            margin.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.dead_centre(mbd.zoo.four_bar(), {"A": 0.0}).q.shape
        (3,)
    """

    margin: Array
    q: Array
    status: Array


def closure_margin(
    mech: Mechanism, known: Known | None = None, guess: Any = None, *, t: Any = 0.0
) -> Array:
    """Signed distance [m] to the dead centre at which the loops just close.

    Positive where they close with the coordinates held, negative where they stay open, by that
    much: the `margin` of `dead_centre`. A search that keeps it positive stays where the mechanism
    assembles, and where it does not the gradient says how to come back.

    Args:
        mech: the mechanism.
        known: held coordinates, with the keys of `assemble`.
        guess: coordinates (nq,) from which the loops are closed.
        t: time [s] at which drives are evaluated.

    Returns:
        A number, differentiable with respect to the mechanism and the held values, also twice.

    Example:
        A rod of 0.1 m is too short to follow a crank of 0.2 m all the way round:

        >>> import jaxmbd as mbd
        >>> short = mbd.zoo.slider_crank(rod=0.1)
        >>> for angle in (0.3, 0.6, 1.5707963):
        ...     print(f"{mbd.closure_margin(short, {'O': angle}):.4f}")
        0.0409
        -0.0129
        -0.1000
    """
    return dead_centre(mech, known, guess, t=t).margin


def dead_centre(
    mech: Mechanism,
    known: Known | None = None,
    guess: Any = None,
    *,
    t: Any = 0.0,
    backend: str = "auto",
) -> ClosureMargin:
    """The dead centre nearest to an assembled configuration, and how far away it is.

    Held joint coordinates, and driven ones, are kept exactly. The loops are closed from `guess` as
    in `assemble`. Where they cannot be, the margin is minus the least distance by which they miss:
    of the points of a cut joint, or of a held point from its place; moment rows and couplings count
    times the mechanism's length. Where they close, the margin is the height of the lower of the two
    passes that a walk along the softest direction meets, one where a link is stretched, one where
    it is folded: by so much the distance to be bridged can change until the loop just closes. Both
    are one smooth function, whose derivative is exact, through the dead centre too.

    No dead centre may be near: nothing can open, or the loop closes for every value. Then the
    margin is the mechanism's length (or, open, minus the least distance found), with the derivative
    of that, and the status DIVERGED.

    Args:
        mech: the mechanism.
        known: held coordinates, with the keys of `assemble`.
        guess: coordinates (nq,) from which the loops are closed; by default as drawn.
        t: time [s] at which drives are evaluated.
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Example:
        With the crank up the loop opens if the coupler grows by 0.56 m, folded over the rocker:

        >>> import jaxmbd as mbd
        >>> found = mbd.dead_centre(mbd.zoo.four_bar(), {"A": 0.0})
        >>> int(found.status), round(float(found.margin), 4)
        (0, 0.5616)
    """
    keys, values = parse_known(mech, known)
    guess = jnp.asarray(neutral(mech) if guess is None else guess, mech.dtype)
    check_shape("guess", guess, topology(mech).nq)
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    case = Case(mech, values, jnp.asarray(t, mech.dtype))
    return ClosureMargin(*_jitted(backend, keys, case, guess))


@partial(jax.jit, static_argnums=(0, 1))
def _jitted(backend: str, keys: tuple[Key, ...], *args: Any) -> tuple[Array, ...]:
    return compiled(backend, partial(_margin, keys), *args)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _margin(keys: tuple[Key, ...], case: Case, guess: Array) -> tuple[Array, Array, Array]:
    at = _located(keys, case, guess)
    return _value(keys, case, at), at.q, at.status


@_margin.defjvp
def _margin_jvp(keys: tuple[Key, ...], primals: Any, tangents: Any) -> Any:
    case, guess = primals
    at = _located(keys, case, guess)
    known = at.status != Status.NON_FINITE
    dot = jax.tree_util.tree_map(lambda x: jnp.where(known, x, jnp.zeros_like(x)), tangents[0])
    safe = _finite_where(known, case)
    _, rate = jax.jvp(lambda c: _value(keys, c, at), (safe,), (dot,))
    _, q_rate = jax.jvp(lambda c: _located(keys, c, guess).q, (safe,), (dot,))
    out = (_value(keys, case, at), at.q, at.status)
    return out, (jnp.where(known, rate, 0.0), q_rate, np.zeros((), jax.dtypes.float0))


def _finite_where(ok: Array, case: Case) -> Case:
    """The numbers, made finite for a failed sample so that nothing computed from them is NaN."""
    return jax.tree_util.tree_map(
        lambda x: jnp.where(ok | jnp.isfinite(lax.stop_gradient(x)), x, jnp.ones_like(x)), case
    )


class _Located(NamedTuple):
    """A dead centre: q, the direction u in which the loop opens, the span of errors, a status.

    `bounded` where there is none and the margin is the mechanism's length.
    """

    q: Array
    u: Array
    through: Array
    status: Array
    bounded: Array


def _value(keys: tuple[Key, ...], case: Case, at: _Located) -> Array:
    """−u·r [m], or the bound; q and u are those of the dead centre."""
    if not error_count(keys, case.mech):
        return mechanism_length(case.mech)
    q = with_settings(keys, case, at.q)
    margin = jnp.where(at.bounded, mechanism_length(case.mech), -at.u @ errors(keys, case, q))
    return jnp.where(at.status == Status.NON_FINITE, jnp.nan, margin)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _located(keys: tuple[Key, ...], case: Case, guess: Array) -> _Located:
    n = error_count(keys, case.mech)
    done = walk(keys, case.mech, case.values, case.t, guess)
    fine = jnp.all(jnp.isfinite(done.q)) & finite_numbers(case.mech)
    bad = jnp.asarray(Status.NON_FINITE, jnp.int32)
    if not n or not free_speeds(keys, case.mech):
        u, span = jnp.zeros(n, guess.dtype), jnp.eye(n, dtype=guess.dtype)
        status = jnp.where(fine, Status.DIVERGED, bad).astype(jnp.int32)
        return _Located(done.q, u, span, status, jnp.asarray(True))
    at = find_dead_centre(keys, case, done.q)
    whole = jnp.all(jnp.isfinite(at.q)) & jnp.all(jnp.isfinite(at.u)) & fine
    _, _, walked, _ = outcome(case.mech, done)
    blocked = ~at.open & (walked != Status.OK)
    status = jnp.where(blocked, Status.NOT_ASSEMBLED, Status.OK)
    status = jnp.where(at.found, status, Status.DIVERGED)
    status = jnp.where(whole, status, bad).astype(jnp.int32)
    return _Located(at.q, at.u, at.through, status, ~at.found & ~at.open)


@_located.defjvp
def _located_jvp(keys: tuple[Key, ...], primals: Any, tangents: Any) -> Any:
    """X and u follow from ``r = s u, Jᵀu = 0, |u| = 1`` by the implicit function theorem."""
    case, guess = primals
    out = _located(keys, case, guess)
    none: Any = np.zeros((), jax.dtypes.float0)
    still = _Located(
        jnp.zeros_like(out.q), jnp.zeros_like(out.u), jnp.zeros_like(out.through), none, none
    )
    n, free = error_count(keys, case.mech), free_speeds(keys, case.mech)
    if not n or not free:
        return out, still
    ok = (out.status == Status.OK) | (out.status == Status.NOT_ASSEMBLED)
    safe = _finite_where(ok, case)
    q = jnp.asarray(jnp.where(ok, out.q, jnp.asarray(neutral(case.mech), guess.dtype)))
    dot = jax.tree_util.tree_map(lambda x: jnp.where(ok, x, jnp.zeros_like(x)), tangents[0])
    at = misfit(keys, safe, q, out.u, out.through)
    s = out.u @ at.error

    def conditions(c: Case) -> Array:
        return stationarity(keys, c, q, out.u, s, out.through)

    _, rate = jax.jvp(conditions, (safe,), (dot,))
    solve = factor_rows(matrix := _matrix(at, out.u, s, out.through)).solve
    change = -solve(rate)
    change = change - solve(matrix @ change + rate)
    spread = np.eye(topology(case.mech).nv)[:, list(free)]
    units = lax.stop_gradient(speed_units(safe.mech))
    along = coordinate_rates(safe.mech, q, units * (jnp.asarray(spread) @ change[: len(free)]))
    _, held = jax.jvp(lambda c: with_settings(keys, c, q), (safe,), (dot,))
    q_rate = jnp.where(ok, along + held, 0.0)
    u_rate = jnp.where(ok, change[len(free) : -1], 0.0)
    return out, still._replace(q=q_rate, u=u_rate)


def _matrix(at: Any, u: Array, s: Array, through: Array) -> Array:
    """Jacobian of the conditions to (x, u, s), all (n + nf + 1)."""
    n, free = at.rows.shape
    eye, zero = jnp.eye(n, dtype=u.dtype), jnp.zeros((free, 1), u.dtype)
    first = [at.rows, -s * eye - (eye - through), -u[:, None]]
    second = [at.curvature, at.rows.T, zero]
    third = [jnp.zeros((1, free), u.dtype), u[None], jnp.zeros((1, 1), u.dtype)]
    return jnp.concatenate([jnp.concatenate(part, axis=1) for part in (first, second, third)])
