"""Position assembly: close the loops with coordinates held, by continuation to distant targets.

Levenberg-Marquardt steps of least norm in the directions of the speeds: with r the scaled errors of
closure and held coordinates, and J their Jacobian, ``δ = −W Jᵀ (J W Jᵀ + μ 1)⁻¹ r``, so that idle
freedoms (the spin of a link between two balls) keep the values of the guess.

Off the constraints redundant rows seem independent, with singular values of the size of the closure
error: a step that trusts them leads far away, to a dead centre where they can all be met. So μ is
at least the square of the error, in lengths of the mechanism, up to a hundredth, with which the
steps converge quadratically also where J loses rank (Yamashita & Fukushima, "On the rate of
convergence of the Levenberg-Marquardt method", Computing Suppl. 15, 2001). Errors that redundant
rows may keep are not damped: there the rank decides. Nor are the steps of a walk with coordinates
held, which has to pass dead centres on its branch.

The closest configuration of a failed sample is kept. Inside `jit` a failure is a status; numbers
say in addition which joint is open and how far, or which held coordinate was out of reach.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.known import (
    Key,
    Known,
    Problem,
    closing_residual,
    closing_rows,
    held_name,
    is_angle,
    known_rows,
    known_values,
    overheld,
    problem,
    single_rows,
)
from jaxmbd.analysis.status import Status, closing_tolerance, open_joints, visible
from jaxmbd.analysis.velocity import implied_change
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import (
    closure_residual,
    coordinate_rates,
    mechanism_length,
    motion_state,
    row_scale,
    speed_units,
    step_coordinates,
)
from jaxmbd.lanes import compiled
from jaxmbd.model import Mechanism, finite_numbers
from jaxmbd.numerics import SplitRows, factor_rows, finite_where, nan_where, tolerances
from jaxmbd.plumbing import outline

_STEP_ANGLE = np.deg2rad(5.0)
_STEP_TRAVEL = 0.05
_DAMPING = 1e-2
_MAX_STAGES = 100_000
_INNER = 30


class Assembly(NamedTuple):
    """An assembled configuration.

    Attributes:
        q: coordinates (nq,); NaN where not assembled.
        residual: largest closure error [m; moment rows times the mechanism's length].
        status: a `Status` number.
        iterations: Newton steps taken.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.assemble(mbd.zoo.rssr()).q.shape
        (6,)
    """

    q: Array
    residual: Array
    status: Array
    iterations: Array

    __str__ = outline


class Walk(NamedTuple):
    """State of `walk`.

    Attributes:
        q: coordinates (nq,).
        stage: counts the continuation steps towards the target.
        inner: Newton steps since the last of these.
        damping: of the next Newton step.
        error: largest error of closure and held coordinates [m]; at the end, if only what redundant
            rows contradict each other by is left, the rest.
        iterations: Newton steps taken.
        contradiction: largest error that no motion removes [m].
    """

    q: Array
    stage: Array
    inner: Array
    damping: Array
    error: Array
    iterations: Array
    contradiction: Array


def assemble(
    mech: Mechanism,
    known: Known | None = None,
    guess: Any = None,
    *,
    t: Any = 0.0,
    throw: bool = True,
    contradiction: float = tolerances.CONTRADICTION,
    backend: str = "auto",
) -> Assembly:
    """Close the loops of a mechanism.

    The search starts from the drawn configuration, or `guess`, and first closes the loops there;
    held coordinates are then moved to their values in steps of at most 5° (or 5 % of the
    mechanism's length), each from the last solution, so that the solution stays on the branch of
    the guess. A target more than 100 000 such steps away is NOT_ASSEMBLED.

    Derivatives are those of the solution, by the implicit function theorem, forward and reverse;
    along freedoms that nothing determines the change is of least norm. A change that makes
    redundant rows contradict each other (a pin of a planar linkage, out of the plane) prevents
    closure: a forward derivative in that direction is NaN; a gradient is exact along the others.

    Redundant rows of a drawing with the digits of a file contradict each other by rounding. Within
    `contradiction` the loops are closed in the sense of least squares (of the rows in metres,
    moment rows times the mechanism's length), which `mobility` and `check_state` report.

    Args:
        mech: the mechanism.
        known: held coordinates: ``{joint: value}``, ``{(joint, i): value}`` or
            ``{PointCoordinate(body, point, axis): value}`` [rad, m]; a quaternion for ball joints;
            a `PointTravel` for a displacement from the drawing.
        guess: coordinates (nq,) to start from.
        t: time [s] at which drives are evaluated.
        throw: raise an error if the mechanism does not assemble (outside `jit` and `vmap`).
        contradiction: largest closure error that redundant rows may keep, in lengths of the
            mechanism (RMS distance of its points from their mean).
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Raises:
        ValueError: `known` names an unknown part or a cut joint; outside `jit`, the loops cannot
            be closed (the message says which joint is open and by how much).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> int(mbd.assemble(m, known={"crank": 0.1}).status)
        0
    """
    p = problem(mech, known, t)
    guess = p.start(guess)
    q, residual, status, iterations = _jitted(backend, float(contradiction), p, guess)
    if throw and visible(status) and int(status) != Status.OK:
        _raise(*lax.stop_gradient((p, guess)), float(contradiction), Status(int(status)))
    return Assembly(q, residual, status, iterations)


def _raise(p: Problem, guess: Array, bound: float, status: Status) -> None:
    closest, keys = _search(bound, p, guess), p.keys
    count = "1 coordinate is" if len(keys) == 1 else f"{len(keys)} coordinates are"
    held = f" while {count} held" if keys else ""
    now = known_values(p.state(closest.q), keys)
    missed = [
        f"{held_name(p.mech, key)} is at {float(x):.6g} instead of {float(v):.6g}"
        for key, x, v in zip(keys, now, p.values, strict=True)
        if not np.allclose(x, v, rtol=1e-9, atol=1e-9)
    ]
    text = "; ".join([t for t in (open_joints(p.mech, closest.q, p.t), *missed) if t])
    length = mechanism_length(p.mech)
    if int(_stages(p, known_values(p.state(guess), keys), length)) > _MAX_STAGES:
        text += f" (over {_MAX_STAGES} steps away, which is too far to walk)"
    if float(closest.error) < 1e-6 * float(length):
        text += " (nearly closed: a dead centre or the limit of its reach, a singular position)"
    cure = (
        "Check the hardpoints and lengths of that loop, give a guess near the wanted branch, or "
        "hold a value within reach"
    )
    # Near a dead centre, where a value out of reach ends, rows depend on each other too.
    if keys and (surplus := overheld(p.state(closest.q), keys)):
        cure = surplus if overheld(p.state(guess), keys) else cure
    raise ValueError(
        f"the mechanism does not assemble ({status.name.lower()}){held}: at the closest "
        f"configuration found {text}. {cure}"
    )


@partial(jax.jit, static_argnums=0)
def _search(bound: float, p: Problem, guess: Array) -> Walk:
    return walk(p, guess, contradiction=bound)


def walk(
    p: Problem,
    guess: Array,
    path: Callable[[Array, list[Array]], list[Array]] | None = None,
    contradiction: float = tolerances.CONTRADICTION,
) -> Walk:
    """Move the held coordinates to `values`, along ``path(s, start)``, 0 ≤ s ≤ 1, or linearly.

    Errors that redundant rows contradict each other by, up to `contradiction` lengths of the
    mechanism, are left: the change is that of least squares.
    """
    mech, keys = p.mech, p.keys
    length = mechanism_length(mech)
    bound = contradiction * length
    closed = closing_tolerance(guess.dtype, length)
    start = known_values(p.state(guess), keys) if keys else []
    stages = _stages(p, start, length)
    coarse, fine = 1e-4 * length, tolerances.rounding(guess.dtype, 4) * length

    def targets(stage: Array) -> list[Array]:
        s = (stage / jnp.maximum(stages, 1)).astype(guess.dtype)
        if path is not None:
            return path(jnp.where(stages > 0, s, 1.0), start)
        return [
            v if jnp.ndim(v) else v0 + jnp.where(stages > 0, s, 1.0) * (v - v0)
            for v0, v in zip(start, p.values, strict=True)
        ]

    def going(w: Walk) -> Array:
        return (w.inner < _INNER) & jnp.isfinite(w.error)

    def step(w: Walk) -> Walk:
        goal = targets(w.stage)
        residual, rows = closing_rows(p.state(w.q), keys, goal)
        before = jnp.max(jnp.abs(residual), initial=0.0)
        far = jnp.minimum((before / length) ** 2, _DAMPING)
        closes = (w.stage == 0) & (before > bound)
        damping = jnp.maximum(w.damping, jnp.where(closes, far, 0.0))
        factors = factor_rows(rows, speed_units(mech) ** 2, damping)
        removable = factors.consistent(residual)
        change = -factors.solve(removable)
        turn = jnp.max(jnp.abs(change) / speed_units(mech), initial=0.0)
        trial = step_coordinates(mech, w.q, change * jnp.minimum(1.0, 0.5 / jnp.maximum(turn, 0.5)))
        opened = closing_residual(p.state(trial), keys, goal)
        after = jnp.max(jnp.abs(opened), initial=0.0)
        left = jnp.max(jnp.abs(residual - removable), initial=0.0)
        contradicted = (left > 0.1 * before) & (before < bound)
        better = (after < before) | (before == 0.0) | (contradicted & (after < 2.0 * before))
        q = jnp.where(better, trial, w.q)
        error = jnp.where(better, after, before)
        damping = jnp.where(better, w.damping * 0.1, jnp.maximum(10.0 * w.damping, 1e-6))
        damping = jnp.where(damping < 1e-8, 0.0, damping)
        last = w.stage >= stages
        arrived = ~last & (error < coarse)
        stuck = last & ((error <= fine) | (~better & (before < closed)))
        removed = jnp.max(jnp.abs(removable), initial=0.0)
        settled = last & contradicted & (removed < 1e-3 * closed)
        error, left = jnp.where(settled, removed, error), jnp.where(settled, left, 0.0)
        stuck = stuck | settled
        inner = jnp.where(arrived, 0, jnp.where(stuck, _INNER, w.inner + 1))
        stage = w.stage + arrived.astype(w.stage.dtype)
        return Walk(q, stage, inner, damping, error, w.iterations + 1, left)

    zero = jnp.zeros((), jnp.int32)
    too_far = jnp.where(stages > _MAX_STAGES, _INNER, zero)
    none = jnp.zeros((), guess.dtype)
    first = Walk(guess, zero, too_far, none, length, zero, none)
    done = lax.while_loop(going, step, first)
    reached = done.stage >= stages
    return done._replace(error=jnp.where(reached, done.error, jnp.maximum(done.error, length)))


def _stages(p: Problem, start: list[Array], length: Array) -> Array:
    """Number of continuation steps to the held values; at most `_MAX_STAGES` + 1."""
    top, count = topology(p.mech), jnp.zeros((), p.mech.dtype)
    for key, v0, v in zip(p.keys, start, p.values, strict=True):
        if jnp.ndim(v):
            continue  # a quaternion is set at once
        stride = _STEP_ANGLE if is_angle(top, key) else _STEP_TRAVEL * length
        count = jnp.maximum(count, jnp.abs(v - v0) / stride)
    count = jnp.where(jnp.isfinite(count), count, 0.0)
    return jnp.minimum(jnp.ceil(count), _MAX_STAGES + 1).astype(jnp.int32)


class Attempt(NamedTuple):
    """The fields of an `Assembly`, and `closest`, where its search ended (nq,)."""

    q: Array
    residual: Array
    status: Array
    iterations: Array
    closest: Array


def attempt(
    keys: tuple[Key, ...],
    mech: Mechanism,
    values: list[Any],
    t: Any,
    guess: Array,
    contradiction: float = tolerances.CONTRADICTION,
) -> Attempt:
    """Assemble with held coordinates; differentiable as `assemble` is, except `closest`."""
    return _attempt(contradiction, Problem(keys, mech, values, t), guess)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _attempt(bound: float, p: Problem, guess: Array) -> Attempt:
    done = _search(bound, p, guess)
    q, residual, status, iterations = outcome(p.mech, done)
    return Attempt(q, residual, status, iterations, done.q)


@_attempt.defjvp
def _attempt_jvp(bound: float, primals: Any, tangents: Any) -> Any:
    out = _attempt(bound, *primals)
    qdot, *none = implicit_tangent(out[:4], primals[0], tangents[0])
    return out, Attempt(qdot, none[0], none[1], none[2], jnp.zeros_like(out.closest))


def outcome(mech: Mechanism, done: Walk) -> tuple[Array, Array, Array, Array]:
    """The fields of an `Assembly`."""
    finite = jnp.all(jnp.isfinite(done.q)) & jnp.isfinite(done.error)
    finite = finite & finite_numbers(mech)
    closed = done.error < closing_tolerance(done.q.dtype, mechanism_length(mech))
    status = jnp.where(closed, Status.OK, Status.NOT_ASSEMBLED)
    status = jnp.where(finite, status, Status.NON_FINITE).astype(jnp.int32)
    q = jnp.asarray(jnp.where(status == Status.OK, done.q, jnp.nan))
    return q, jnp.maximum(done.error, done.contradiction), status, done.iterations


def implicit_tangent(out: Any, p: Problem, dot: Problem) -> Any:
    """``J δ = −(∂r/∂mech · ṁ + ∂r/∂known · k̇)`` at the solution, δ of least norm.

    A sample that did not assemble has zero tangents and zero cotangents, so that it cannot spoil
    the gradient of numbers shared by the batch. Where redundant rows would contradict each other
    the derivative does not exist and is NaN (`jaxmbd.numerics.redundant_equations`), and so it is
    where the solution is as near to a dead centre as its closure error.
    """
    ok = out[2] == Status.OK
    q = jnp.asarray(jnp.where(ok, out[0], jnp.asarray(neutral(p.mech))))
    p, dot = finite_where(ok, p, dot)
    _, rate = jax.jvp(lambda p: p.residual(q), (p,), (dot,))
    residual, rows = p.rows(q)
    units = speed_units(p.mech)
    factors = SplitRows(rows * units, jnp.ones_like(units), single_rows(topology(p.mech), p.keys))
    x = implied_change(p, dot, factors, rate)
    x = nan_where(ok & _at_dead_centre(p, factors, residual), x)
    qdot = jnp.where(ok, coordinate_rates(p.mech, q, units * x), 0.0)
    zero = np.zeros((), jax.dtypes.float0)
    return qdot, jnp.zeros_like(out[1]), zero, zero


def _at_dead_centre(p: Problem, rows: SplitRows, residual: Array) -> Array:
    """Whether the closure error r that is left decides about the derivative.

    A Newton step x = J⁺ r from the solution turns J by κ |x|, κ about the mechanism's length. Near
    a dead centre J has a small singular value σ, along which r lies, so that |x| = |r|/σ: the
    derivative changes by the share ``κ |x|/σ = κ |x|²/|r|``.
    """
    length, x = lax.stop_gradient((mechanism_length(p.mech), rows.solve(residual)))
    left = lax.stop_gradient(jnp.sqrt(residual @ residual))
    return length * (x @ x) > tolerances.nearness(x.dtype) * left


@partial(jax.jit, static_argnums=(0, 1))
def _jitted(backend: str, bound: float, *args: Any) -> tuple[Array, ...]:
    return compiled(backend, partial(_assembled, bound), *args)


def _assembled(bound: float, p: Problem, guess: Array) -> tuple[Array, ...]:
    """The fields of an `Assembly`."""
    return _attempt(bound, p, guess)[:4]


_NEARLY_CLOSED = 1e-4
"""Closure error, in lengths of the mechanism, above which a joint counts as open."""


def places(mech: Mechanism, keys: tuple[Key, ...]) -> tuple[str, ...]:
    """Names of what can stay open: cut joints, couplings, drives, then the held coordinates."""
    top = topology(mech)
    return (*top.cut, *top.couplings, *top.drives, *(held_name(mech, key) for key in keys))


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
    loops = [jnp.max(scaled[top.layout[name].rows], initial=0.0) for name in names]
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
    if np.all(kinds == kinds[:1]):
        return jnp.asarray(bool(kinds[:1].any()))
    return jnp.asarray(kinds)[jnp.argmax(scaled[rows])]


def _is_turn(top: Any, key: Key) -> bool:
    whole = getattr(key, "index", 0) is None  # a quaternion
    return whole or is_angle(top, key)
