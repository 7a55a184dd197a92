"""The dead centre of a loop: where the directions in which its error can change lose one dimension.

With r(x) the errors, J = ∂r/∂x and a unit vector u, a dead centre satisfies ``r = s u, Jᵀu = 0``:
no small motion changes the error along u. It is a stationary point of ``½ r·r``. Where the loop
cannot close that is its minimum, the configuration that comes closest. Where it closes it is the
pass between two ways of assembly (the link is stretched, or folded): s is then negative, with u on
the side on which the loop opens. Both are the same regular equations, also at s = 0, where both
ways of assembly and the pass coincide.

From an assembled configuration the search walks up the valley of r·r along the softest direction
and along its opposite: points at which ``Jᵀu = η c`` with c the direction of the walk, by
Euler-Newton steps until η = 0. The lower pass counts.

Errors say how far loops miss with coordinates held. Held joint coordinates, and driven ones, are
set exactly and do not move; the other speeds are free. The errors are those of cut joints,
couplings, point drives and held points, all in metres (moment rows times the mechanism's length),
divided by that length.

The margin of `closure_margin` is ``m = −s`` of the nearest dead centre. To first order it changes
with the numbers p of the mechanism only, since ``u·∂r/∂x = 0`` and ``u·u̇ = 0`` (the envelope
theorem): ``ṁ = −u·∂r/∂p ṗ`` with x and u fixed. Their own derivatives, by the implicit function
theorem, enter derivatives of second order.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.assembly import outcome, walk
from jaxmbd.analysis.known import (
    JointCoordinate,
    Known,
    PointCoordinate,
    Problem,
    known_values,
    problem,
)
from jaxmbd.analysis.programs import program
from jaxmbd.analysis.status import Status
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import (
    closure_residual,
    coordinate_rates,
    mechanism_length,
    row_scale,
    speed_units,
    step_coordinates,
)
from jaxmbd.model import Drive, Mechanism, finite_numbers
from jaxmbd.numerics import (
    column_span,
    factor_rows,
    finite_where,
    generic,
    jacobian,
    limited,
    ltdl,
    ltdl_backward,
    ltdl_forward,
    soft_directions,
    tolerances,
)

_ASIDE = 0.2
_MODES = 3


def error_span(case: Problem, q: Array, rows: Array, r: Array) -> Array:
    """The projection onto the directions that the errors can have (n, n).

    Rows of planar loops in space are dependent at every configuration, rows of a dead centre at
    this one only; so the span counts as that of a configuration aside where it has more dimensions
    there. An error that is not in the span has to be counted whole.
    """
    eye = jnp.eye(r.shape[0], dtype=q.dtype)
    aside = moved(case, q, _ASIDE * generic(rows.shape[1], q.dtype))
    here, rank = column_span(rows)
    there, most = column_span(error_rows(case, aside)[1])
    span = jnp.where(rank == most, here, there)
    missed = jnp.max(jnp.abs(r - span @ r)) > tolerances.closing(q.dtype)
    return jnp.where(missed | (most == r.shape[0]), eye, span)


def unit_length(case: Problem) -> Array:
    """The mechanism's length [m] as a unit, without derivative."""
    return lax.stop_gradient(mechanism_length(case.mech))


def _held(case: Problem) -> list[tuple[JointCoordinate, Array]]:
    """The joint coordinates that do not move, and their values: held ones, then driven ones."""
    pairs = zip(case.keys, case.values, strict=True)
    drives = [d for d in case.mech.drives.values() if isinstance(d, Drive)]
    held = [(key, value) for key, value in pairs if isinstance(key, JointCoordinate)]
    return held + [(JointCoordinate(d.joint, d.index), d.value(case.t)[0]) for d in drives]


def with_held(case: Problem, q: Array) -> Array:
    """Coordinates (nq,) with the held and driven ones at their values."""
    layout = topology(case.mech).layout
    for key, value in _held(case):
        place = layout[key.joint].q
        assert place is not None
        if key.index is not None:
            place = slice(place.start + key.index, place.start + key.index + 1)
        new = jnp.reshape(value, (place.stop - place.start,)).astype(q.dtype)
        q = jnp.concatenate([q[: place.start], new, q[place.stop :]])
    return q


def free_speeds(case: Problem) -> tuple[int, ...]:
    """Indices of the speeds that are neither held nor driven."""
    top = topology(case.mech)
    free = np.ones(top.nv, bool)
    for key, _ in _held(case):
        place = top.layout[key.joint].v
        assert place is not None
        free[place if key.index is None else place.start + key.index] = False
    return tuple(int(i) for i in np.flatnonzero(free))


def error_count(case: Problem) -> int:
    """How many errors there are."""
    return len(_kept(case.mech)) + sum(isinstance(key, PointCoordinate) for key in case.keys)


def _kept(mech: Mechanism) -> list[int]:
    """The closure rows that are errors here: all but those of drives of joints."""
    top = topology(mech)
    kept = np.ones(top.nc, bool)
    for name, drive in mech.drives.items():
        if isinstance(drive, Drive):
            kept[top.layout[name].rows] = False
    return [int(i) for i in np.flatnonzero(kept)]


def errors(case: Problem, q: Array) -> Array:
    """The errors (n,) [m] at q."""
    m = case.state(q)
    rows = (row_scale(m) * closure_residual(m))[np.array(_kept(case.mech), int)]
    chosen = [
        (key, value)
        for key, value in zip(case.keys, case.values, strict=True)
        if isinstance(key, PointCoordinate)
    ]
    now = known_values(m, tuple(key for key, _ in chosen))
    held = [x - value for x, (_, value) in zip(now, chosen, strict=True)]
    return jnp.concatenate([rows, jnp.stack(held)]) if held else rows


def moved(case: Problem, q: Array, change: Array) -> Array:
    """Q after a change along the free speeds, travels in units of the mechanism's length."""
    spread = np.eye(topology(case.mech).nv)[:, list(free_speeds(case))]
    units = lax.stop_gradient(speed_units(case.mech))
    whole = jnp.asarray(spread, q.dtype) @ change
    return step_coordinates(case.mech, q, units * whole)


class Misfit(NamedTuple):
    """At one configuration, in units of the mechanism's length.

    Attributes:
        error: r (n,).
        rows: J = ∂r/∂x (n, nf), x along the free speeds.
        curvature: H = ∂(Jᵀu)/∂x (nf, nf), with u fixed.
    """

    error: Array
    rows: Array
    curvature: Array


def misfit(case: Problem, q: Array, u: Array, through: Array) -> Misfit:
    """Errors and their derivatives; the errors are projected by the matrix `through` (n, n)."""

    def of(x: Array) -> tuple[Array, Array]:
        r, pull = jax.vjp(lambda y: _at(case, q, y, through), x)
        return r, pull(u)[0]

    start = jnp.zeros(len(free_speeds(case)), q.dtype)
    rows, curvature = jacobian(of, start)
    return Misfit(_at(case, q, start, through), rows, curvature)


def error_rows(case: Problem, q: Array) -> tuple[Array, Array]:
    """R (n,) and J (n, nf), in units of the mechanism's length."""
    start = jnp.zeros(len(free_speeds(case)), q.dtype)
    eye = jnp.eye(error_count(case), dtype=q.dtype)
    rows = jacobian(lambda x: _at(case, q, x, eye), start)
    return _at(case, q, start, eye), rows


def _at(case: Problem, q: Array, x: Array, through: Array) -> Array:
    return through @ errors(case, moved(case, q, x)) / unit_length(case)


def _conditions(r: Array, pull: Array, u: Array, s: Array, through: Array) -> Array:
    """Errors (n + nf + 1,) of ``r = s u, Jᵀu = 0, |u| = 1``, with `pull` for Jᵀu.

    Where the errors span fewer dimensions than their number, `through` projects onto that span, and
    the rest of u has to vanish.
    """
    first = r - s * u - (u - through @ u)
    return jnp.concatenate([first, pull, 0.5 * (u @ u - 1.0)[None]])


def _jacobian(at: Misfit, u: Array, s: Array, through: Array) -> Array:
    """The Jacobian of the conditions to (x, u, s), all (n + nf + 1)."""
    n, free = at.rows.shape
    eye = jnp.eye(n, dtype=u.dtype)
    first = [at.rows, -s * eye - (eye - through), -u[:, None]]
    second = [at.curvature, at.rows.T, jnp.zeros((free, 1), u.dtype)]
    third = [jnp.zeros((1, free), u.dtype), u[None], jnp.zeros((1, 1), u.dtype)]
    return jnp.concatenate([jnp.concatenate(part, axis=1) for part in (first, second, third)])


_DESCENT = 100
_STEPS = 150
_STRIDE = 0.2
_FARTHEST = 2.0 * np.pi


class _Walk(NamedTuple):
    """State of the search: a point with ``r = s u, Jᵀu = η c``, on its way to η = 0."""

    q: Array
    u: Array
    s: Array
    eta: Array
    c: Array
    travelled: Array
    error: Array
    count: Array
    found: Array


def find_dead_centre(case: Problem, start: Array) -> tuple[Array, ...]:
    """The dead centre near a configuration, or the lowest of those around it if it is closed.

    Returns:
        q (nq,) of it, or of where the search ended; the unit vector u (n,) along which the loop
        opens; the projection (n, n) onto the span of the errors; whether it is a dead centre;
        whether the loop cannot close.
    """
    q, r = _closest(case, with_held(case, start))
    size = _norm(r)
    opened = size > tolerances.closing(q.dtype)
    _, rows = error_rows(case, q)
    through = error_span(case, q, rows, jnp.where(opened, r, 0.0))
    outward = r / jnp.where(opened, size, 1.0)
    soft = soft_directions(through @ rows, through, min(*rows.shape, _MODES))
    starts = jnp.where(opened, outward, jnp.concatenate([soft, -soft]))
    s = jnp.asarray(jnp.where(opened, size, 0.0))
    search = partial(_search, case, q, s, through, opened)
    ends: _Walk = lax.map(search, starts)
    near = jnp.where(ends.s > 0.0, ends.s <= 1.001 * size, ends.s <= -0.99 * size)
    found = ends.found & jnp.where(opened, near, ends.s <= tolerances.closing(q.dtype))
    height = jnp.where(found, jnp.abs(ends.s), jnp.inf)
    best, least = jnp.argmin(height), jnp.min(height)
    end = jax.tree_util.tree_map(lambda x: x[best], ends)
    found = jnp.isfinite(least)
    kept = opened & ~found
    pairs = (kept, q, end.q), (kept, outward, end.u), (found, end.s > 0.0, opened)
    q, u, opened = (jnp.asarray(jnp.where(*pair)) for pair in pairs)
    return q, u, through, found, opened


def _closest(case: Problem, q: Array) -> tuple[Array, Array]:
    """A local minimum of ½ r·r near q, by damped Newton steps; and r there.

    Its Hessian is ``JᵀJ + H`` with H the curvature of the errors along r.
    """
    eye = jnp.eye(len(free_speeds(case)), dtype=q.dtype)
    whole = jnp.eye(error_count(case), dtype=q.dtype)
    closed = 1e-2 * tolerances.closing(q.dtype)

    def step(state: Any) -> Any:
        q, at, damping, count = state
        hessian = at.rows.T @ at.rows + at.curvature + damping * eye
        lower, pivots, _ = ltdl(hessian)
        y = ltdl_backward(lower, -(at.rows.T @ at.error)[:, None]) / pivots[:, None]
        change = limited(ltdl_forward(lower, y)[:, 0], 0.5)
        trial = moved(case, q, change)
        r = error_rows(case, trial)[0]
        better = (r @ r < at.error @ at.error) & jnp.all(pivots > 0.0)
        q = jnp.asarray(jnp.where(better, trial, q))
        r = jnp.asarray(jnp.where(better, r, at.error))
        damping = jnp.maximum(jnp.where(better, 0.1 * damping, 6.0 * damping), 1e-10)
        return q, misfit(case, q, r, whole), damping, count + 1

    def going(state: Any) -> Array:
        _, at, damping, count = state
        size = jnp.max(jnp.abs(at.error))
        steep = jnp.max(jnp.abs(at.rows.T @ at.error)) > 1e-6 * size
        return steep & (size > closed) & (count < _DESCENT) & (damping < 1e4)

    first = misfit(case, q, error_rows(case, q)[0], whole)
    state = (q, first, jnp.asarray(1e-6, q.dtype), jnp.zeros((), jnp.int32))
    q, at, *_ = lax.while_loop(going, step, state)
    return q, at.error


def _search(case: Problem, q: Array, s: Array, through: Array, opened: Array, u: Array) -> _Walk:
    """Walk from a configuration to a dead centre; from an open one by Newton's method alone."""
    n, free = error_count(case), len(free_speeds(case))
    exact = tolerances.rounding(q.dtype, 64)

    def step(w: _Walk) -> _Walk:
        at = misfit(case, w.q, w.u, through)
        miss = _conditions(at.error, at.rows.T @ w.u - w.eta * w.c, w.u, w.s, through)
        error = jnp.maximum(jnp.max(jnp.abs(miss)), jnp.abs(w.eta))
        done = (error < exact) | ((error < 1e-10) & (error > 0.3 * w.error))
        none, ahead = jnp.zeros(n, q.dtype), jnp.zeros(free + n + 2, q.dtype).at[-1].set(1.0)
        to_eta = jnp.concatenate([none, -w.c, none[:1]])[:, None]
        matrix = jnp.concatenate([_jacobian(at, w.u, w.s, through), to_eta], axis=1)
        last = jnp.where(opened, ahead, jnp.concatenate([w.c, jnp.zeros(n + 2, q.dtype)]))
        matrix = jnp.concatenate([matrix, last[None]])
        rhs = jnp.stack([jnp.append(-miss, jnp.where(opened, -w.eta, 0.0)), ahead], axis=1)
        correction, tangent = factor_rows(matrix).solve(rhs).T
        slope = tangent[-1]
        wanted = -(w.eta + correction[-1]) / jnp.where(slope > 0.0, slope, 1.0)
        most = _STRIDE / jnp.sqrt(tangent[:free] @ tangent[:free] + 1e-30)
        wanted = jnp.where(slope > 0.0, jnp.clip(wanted, -most, most), most)
        change = correction + jnp.where(opened, 0.0, wanted) * tangent
        change = change / jnp.maximum(1.0, _norm(change[:free]) / 0.5)
        change = jnp.asarray(jnp.where(done, 0.0, change))
        u_new = w.u + change[free : free + n]
        c = tangent[:free] / jnp.maximum(_norm(tangent[:free]), 1e-30)
        return _Walk(
            moved(case, w.q, change[:free]),
            u_new / _norm(u_new),
            w.s + change[free + n],
            w.eta + change[-1],
            jnp.asarray(jnp.where(opened | done, w.c, c)),
            w.travelled + _norm(change[:free]),
            error,
            w.count + 1,
            done,
        )

    def going(w: _Walk) -> Array:
        lost = ~jnp.isfinite(w.error) | (w.travelled > _FARTHEST)
        return ~w.found & ~lost & (w.count < _STEPS)

    first = _started(case, q, u, s, through, opened)
    return _oriented(case, lax.while_loop(going, step, first), through)


def _norm(x: Array) -> Array:
    return jnp.sqrt(x @ x)


def _started(case: Problem, q: Array, u: Array, s: Array, through: Array, opened: Array) -> _Walk:
    """The first point: η c = Jᵀu, with η < 0 so that s falls; at a dead centre c is generic."""
    at = misfit(case, q, u, through)
    slope = at.rows.T @ u
    size = _norm(slope)
    other = at.curvature @ (at.curvature @ generic(slope.shape[0], q.dtype))
    steep = size > tolerances.rounding(q.dtype, 1e3)
    c = jnp.where(steep, -slope / jnp.where(steep, size, 1.0), other / (_norm(other) + 1e-30))
    c, eta = jnp.where(opened, 0.0, c), jnp.where(opened, 0.0, c @ slope)
    zero = jnp.zeros((), q.dtype)
    far = jnp.asarray(1e9, q.dtype)
    return _Walk(q, u, s, eta, c, zero, far, jnp.zeros((), jnp.int32), jnp.asarray(False))


def _oriented(case: Problem, w: _Walk, through: Array) -> _Walk:
    """U turned to where the loop opens: the curvature of u·r along the lost direction is positive.

    Motions that change no error (a link's spin) do not contribute. Where curvatures of both signs
    remain, ways of assembly only join: the loop does not stop closing there.
    """
    at = misfit(case, w.q, w.u, through)
    free = jnp.eye(at.rows.shape[1], dtype=w.q.dtype)
    rows = factor_rows(at.rows)
    null = free - rows.solve(at.rows)
    bent = null @ at.curvature @ null
    total = jnp.trace(bent)
    regular = total * total > jnp.maximum(0.99 * jnp.sum(bent * bent), 1e-16)
    sign = jnp.where(total < 0.0, -1.0, 1.0)
    return w._replace(u=sign * w.u, s=sign * w.s, found=w.found & regular)


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

    No dead centre may be near: nothing can open, nothing can move, or the loop closes for every
    value. Then the margin is the mechanism's length (or, open, minus the least distance found),
    with the derivative of that, and the status DIVERGED.

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
    case = problem(mech, known, t)
    guess = case.start(guess)
    return ClosureMargin(*program(backend, _margin, case, guess))


@jax.custom_jvp
def _margin(case: Problem, guess: Array) -> tuple[Array, Array, Array]:
    at = _located(case, guess)
    return _value(case, at), at.q, at.status


@_margin.defjvp
def _margin_jvp(primals: Any, tangents: Any) -> Any:
    case, guess = primals
    at = _located(case, guess)
    known = at.status != Status.NON_FINITE
    safe, dot = finite_where(known, case, tangents[0])
    _, rate = jax.jvp(lambda c: _value(c, at), (safe,), (dot,))
    _, q_rate = jax.jvp(lambda c: _located(c, guess).q, (safe,), (dot,))
    out = (_value(case, at), at.q, at.status)
    return out, (jnp.where(known, rate, 0.0), q_rate, np.zeros((), jax.dtypes.float0))


class _Located(NamedTuple):
    """A dead centre: q, the direction u in which the loop opens, the span of errors, a status.

    `bounded` where there is none and the margin is the mechanism's length.
    """

    q: Array
    u: Array
    through: Array
    status: Array
    bounded: Array


def _value(case: Problem, at: _Located) -> Array:
    """−u·r [m], or the bound; q and u are those of the dead centre."""
    if not error_count(case):
        return mechanism_length(case.mech)
    q = with_held(case, at.q)
    margin = jnp.where(at.bounded, mechanism_length(case.mech), -at.u @ errors(case, q))
    return jnp.where(at.status == Status.NON_FINITE, jnp.nan, margin)


def _gap(case: Problem, q: Array) -> tuple[Array, Array]:
    """The direction (n,) of the errors where nothing can close them, and whether there are any."""
    r = errors(case, with_held(case, q)) / unit_length(case)
    square = r @ r
    opened = square > tolerances.closing(q.dtype) ** 2
    return jnp.where(opened, r / jnp.sqrt(jnp.where(opened, square, 1.0)), 0.0), opened


@jax.custom_jvp
def _located(case: Problem, guess: Array) -> _Located:
    n = error_count(case)
    done = walk(case, guess)
    fine = jnp.all(jnp.isfinite(done.q)) & finite_numbers(case.mech)
    bad = jnp.asarray(Status.NON_FINITE, jnp.int32)
    if not n or not free_speeds(case):
        u, opened = _gap(case, done.q)
        status = jnp.where(fine, Status.DIVERGED, bad).astype(jnp.int32)
        return _Located(done.q, u, jnp.eye(n, dtype=guess.dtype), status, ~opened)
    q, u, through, found, opened = find_dead_centre(case, done.q)
    whole = jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(u)) & fine
    _, _, walked, _ = outcome(case.mech, done)
    blocked = ~opened & (walked != Status.OK)
    status = jnp.where(blocked, Status.NOT_ASSEMBLED, Status.OK)
    status = jnp.where(found, status, Status.DIVERGED)
    status = jnp.where(whole, status, bad).astype(jnp.int32)
    return _Located(q, u, through, status, ~found & ~opened)


@_located.defjvp
def _located_jvp(primals: Any, tangents: Any) -> Any:
    """X and u follow from ``r = s u, Jᵀu = 0, |u| = 1`` by the implicit function theorem."""
    case, guess = primals
    out = _located(case, guess)
    none: Any = np.zeros((), jax.dtypes.float0)
    still = _Located(
        jnp.zeros_like(out.q), jnp.zeros_like(out.u), jnp.zeros_like(out.through), none, none
    )
    n, free = error_count(case), free_speeds(case)
    if not n or not free:
        _, u_rate = jax.jvp(lambda c: _gap(c, out.q)[0], (case,), (tangents[0],))
        return out, still._replace(u=jnp.where(out.status == Status.NON_FINITE, 0.0, u_rate))
    ok = (out.status == Status.OK) | (out.status == Status.NOT_ASSEMBLED)
    safe, dot = finite_where(ok, case, tangents[0])
    q = jnp.asarray(jnp.where(ok, out.q, jnp.asarray(neutral(case.mech), guess.dtype)))
    at = misfit(safe, q, out.u, out.through)
    s = out.u @ at.error

    def conditions(c: Problem) -> Array:
        base, start = with_held(c, q), jnp.zeros(len(free), q.dtype)
        r, pull = jax.vjp(lambda x: _at(c, base, x, out.through), start)
        return _conditions(r, pull(out.u)[0], out.u, s, out.through)

    _, rate = jax.jvp(conditions, (safe,), (dot,))
    solve = factor_rows(matrix := _jacobian(at, out.u, s, out.through)).solve
    change = -solve(rate)
    change = change - solve(matrix @ change + rate)
    spread = np.eye(topology(case.mech).nv)[:, list(free)]
    units = lax.stop_gradient(speed_units(safe.mech))
    along = coordinate_rates(safe.mech, q, units * (jnp.asarray(spread) @ change[: len(free)]))
    _, held = jax.jvp(lambda c: with_held(c, q), (safe,), (dot,))
    q_rate = jnp.where(ok, along + held, 0.0)
    u_rate = jnp.where(ok, change[len(free) : -1], 0.0)
    return out, still._replace(q=q_rate, u=u_rate)
