"""The search of a synthesis: random drawings, then simultaneous closure, for all starts in step.

A linkage that does not close has no path, so that a search among linkages that close keeps running
into walls. Here the coordinates q_i of every position are unknowns beside the design z, and the
loops may be open on the way: Levenberg-Marquardt minimises

    Σ |e_i(z, q_i)|² + w Σ |φ_i(z, q_i)|² + w Σ min(0, g)²

with e the errors from what is wanted, φ the errors of closure and g what must not be negative, and
the weight w grows until the loops are closed. A position's coordinates appear in its own terms
only, so they are eliminated position by position (Schur complement), and the cost of a step grows
as the number of positions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd import lanes
from jaxmbd.graph import topology
from jaxmbd.kinematics import step_coordinates
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.following import Course, Followed, course, follow
from jaxmbd.synthesis.problem import Problem

_LEAST_REACH = 0.03
_QUARTERS = 4
_WEIGHTS = (*[1.0] * 3, *[10.0] * 10, *[100.0] * 8, *[1000.0] * 2)
_LEAST_DAMPING, _MOST_DAMPING = 1e-12, 1e6


class Walked(NamedTuple):
    """A linkage followed along its input."""

    q: Array  # coordinates at all stations (n + k, nq): where loops do not close, nearest to it
    open: Array  # how many stations do not close
    error: Array  # squared errors from what is wanted, in units of the task's size, summed
    index: Array  # transmission index at all stations (n + k,)


def follow_stations(problem: Problem, mech: Mechanism, z: Array) -> Followed:
    """Follow a linkage from its drawing through the positions, then through the full turn."""
    inputs, count = problem.inputs(z), problem.positions
    parts = [follow(mech, problem.task.input, inputs[:count])]
    if len(problem.extra):  # on from the drawing again
        parts.append(follow(mech, problem.task.input, inputs[count:]))
    return jax.tree_util.tree_map(lambda *x: jnp.concatenate(x), *parts)


def walk_stations(problem: Problem, z: Array) -> Walked:
    """Follow a linkage through all stations, as far as its loops close."""
    mech = problem.mechanism(z)
    found = follow_stations(problem, mech, z)
    error = problem.squared_error(mech, found.closest[: problem.positions])
    return Walked(found.closest, jnp.sum(~found.closed), error, found.index)


class Starts(NamedTuple):
    """Starting points: unknowns (s, nz), and `Walked` of each."""

    z: np.ndarray
    walked: Walked


def random_starts(problem: Problem, count: int, *, seed: int = 0) -> Starts:
    """The best of eight times as many random drawings: those that come nearest to what is wanted.

    They lie within the limits, or within a share of them about the given drawing, from 3 % to all:
    limits are often much wider than what is wanted is large. Each quarter of these scales has its
    own best. Those that do not close everywhere come after those that do.
    """
    low, high = problem.limits
    total = 8 * count
    from scipy.stats import qmc

    sampler = qmc.Sobol(len(low) + 1, rng=np.random.default_rng(seed))
    drawn = sampler.random(2 ** int(np.ceil(np.log2(total))))[:total]
    n = len(problem.unknowns)
    reach = _LEAST_REACH ** drawn[:, -1:]
    z = np.clip((low + drawn[:, :-1] * (high - low)) * reach, low, high)
    if not problem.timed:
        z[:, n:] = _steps(drawn[:, n:-1], problem)
    walked = walk_all(problem, z)
    order = _best_of_each(_rank(walked, problem), drawn[:, -1], count)
    chosen = jax.tree_util.tree_map(lambda x: np.asarray(x)[order], walked)
    return Starts(z[order], chosen)


def _best_of_each(rank: np.ndarray, reach: np.ndarray, count: int) -> np.ndarray:
    """Indices of the best few of each quarter of the reach, from the best to the worst."""
    quarter = np.minimum((reach * _QUARTERS).astype(int), _QUARTERS - 1)
    order = np.argsort(rank, kind="stable")
    parts = [order[quarter[order] == k] for k in range(_QUARTERS)]
    turns = np.concatenate([np.arange(len(part)) for part in parts])
    merged = np.concatenate(parts)[np.argsort(turns, kind="stable")][:count]
    return merged[np.argsort(rank[merged], kind="stable")]


def _rank(walked: Walked, problem: Problem) -> np.ndarray:
    """Squared error per position, behind all others if it does not close, then if it is singular.

    A transmission index that is too small or changes its sign counts by what is missing.
    """
    short = np.maximum(0.0, problem.least_transmission - least_index(walked))
    open_ = np.asarray(walked.open)
    return np.asarray(walked.error) / problem.positions + short + 1e6 * (open_ + (open_ > 0))


def least_index(walked: Walked) -> np.ndarray:
    """Least transmission index (s,), negative where it changes its sign."""
    index = np.asarray(walked.index)
    return np.min(np.where(index[:, :1] < 0.0, -index, index), axis=1)


def _steps(drawn: np.ndarray, problem: Problem) -> np.ndarray:
    """Random steps of a free input, whose sum is spread evenly up to the span."""
    share = -np.log1p(-drawn)
    share = share / share.sum(axis=1, keepdims=True)
    count = drawn.shape[1]
    total = problem.span * (0.1 + 0.8 * np.modf(drawn.sum(axis=1) * 7.0)[0])[:, None]
    return problem.least_step + share * (total - count * problem.least_step)


def walk_all(problem: Problem, z: np.ndarray) -> Walked:
    """`walk_stations` of many linkages (s, nz)."""
    return _of_all(lambda x: walk_stations(problem, x), z)


def courses(problem: Problem, z: np.ndarray) -> Course:
    """Many linkages (s, nz) over the range of the input where the transmission index counts."""
    return _of_all(lambda x: course(problem.mechanism(x), problem.task.input, problem.reach(x)), z)


def _of_all(function: Callable[[Array], Any], z: np.ndarray) -> Any:
    return jax.tree_util.tree_map(np.asarray, jax.jit(lanes.vmap(function))(z))


class Searched(NamedTuple):
    """Where the searches of all starts ended."""

    z: np.ndarray  # unknowns (s, nz)
    q: np.ndarray  # coordinates at all stations (s, n + k, nq)
    error: np.ndarray  # squared errors from what is wanted, over the task's size², summed (s,)
    closure: np.ndarray  # largest error of closure, over the task's size (s,)
    margin: np.ndarray  # least of what must not be negative (s,)


class _Terms(NamedTuple):
    """Residuals and Jacobians at a point, of one start."""

    rows: Array  # of `Problem.station` at every station (N, r); errors are zero at further ones
    rows_z: Array  # (N, r, nz)
    rows_q: Array  # with respect to the speeds (N, r, nv)
    margins: Array  # (k,)
    margins_z: Array  # (k, nz)


class _Shift(NamedTuple):
    """Multipliers over the weight, of one start."""

    rows: Array  # of closure, index and what `within` keeps (N, c + 1 + k)
    margins: Array


class _State(NamedTuple):
    z: Array
    q: Array
    terms: _Terms
    shift: _Shift
    cost: Array
    damping: Array


def search_simultaneously(problem: Problem, starts: Starts, *, steps: int = 30) -> Searched:
    """Search from all starts at once, `steps` steps for each weight of the closure."""
    z, q = jnp.asarray(starts.z), jnp.asarray(starts.walked.q)
    index = jnp.asarray(starts.walked.index)
    found = _run(problem, steps, z, q, index)
    return Searched(*(np.asarray(x) for x in found))


@partial(jax.jit, static_argnums=(0, 1))
def _run(problem: Problem, steps: int, z: Array, q: Array, index: Array) -> tuple[Array, ...]:
    evaluate = _evaluation(problem, z.shape[0], q.shape[1])
    side = jnp.where(jnp.sum(jnp.sign(index), axis=1) < 0.0, -1.0, 1.0)
    terms = evaluate(z, q)

    m = problem.errors
    shift = _Shift(jnp.zeros_like(terms.rows[:, :, m:]), jnp.zeros_like(terms.margins))

    def of_weight(at: Any, weight: Array) -> Any:
        z, q, terms, shift, before = at
        shift = jax.tree_util.tree_map(lambda x: x * before / weight, shift)
        cost = jax.vmap(partial(_cost, problem, weight))(side, terms, shift)
        state = _State(z, q, terms, shift, cost, jnp.full(cost.shape, 1e-2))
        body = partial(_step, problem, weight, side, evaluate)
        state = lax.fori_loop(0, steps, lambda _, s: body(s), state)
        z, q, terms, *_ = state
        shift = jax.vmap(partial(_violated, problem))(side, terms, shift)
        return (z, q, terms, shift, weight), None

    first = (z, q, terms, shift, jnp.asarray(_WEIGHTS[0]))
    (z, q, terms, *_), _ = lax.scan(of_weight, first, jnp.asarray(_WEIGHTS))
    error = jnp.sum(terms.rows[:, :, :m] ** 2, axis=(1, 2))
    kept = jax.vmap(partial(_kept, problem))(side, terms)
    closure = jnp.max(jnp.abs(terms.rows[:, :, m : -kept.shape[-1]]), axis=(1, 2))
    worst = jnp.minimum(jnp.min(kept, axis=(1, 2)), jnp.min(terms.margins, axis=1, initial=jnp.inf))
    return z, q, error, closure, worst


def _evaluation(problem: Problem, count: int, stations: int) -> Callable[[Array, Array], _Terms]:
    """Function of z (s, nz) and q (s, N, nq) to `_Terms` with a leading s."""
    n, m, wanted = len(problem.unknowns), problem.errors, problem.task.rows
    rows, counts = np.zeros((stations, wanted.shape[1])), np.arange(stations) < len(wanted)
    rows[: len(wanted)] = wanted
    given = [jnp.asarray(np.tile(x, (count, 1))) for x in (rows, counts[:, None])]

    def station(x: Array, u: Array, move: Array, q: Array, row: Array, counts: Array) -> Array:
        mech = problem.mechanism(x)
        found = problem.station(mech, u, step_coordinates(mech, q, move), row)
        return jnp.concatenate([jnp.where(counts, found[:m], 0.0), found[m:]])

    def derived(x: Array, u: Array, *others: Array) -> tuple[Array, ...]:
        at = (x, u, jnp.zeros(speeds, x.dtype), *others)
        return station(*at), *jax.jacfwd(station, argnums=(0, 1, 2))(*at)

    speeds, kernel = topology(problem.nominal).nv, lanes.vmap(derived)

    def evaluate(z: Array, q: Array) -> _Terms:
        u, timing = jax.vmap(problem.inputs)(z), jax.vmap(jax.jacfwd(problem.inputs))(z)
        flat = [jnp.repeat(z[:, :n], stations, axis=0), u.reshape(-1), q.reshape(-1, q.shape[2])]
        found = [x.reshape(count, stations, *x.shape[1:]) for x in kernel(*flat, *given)]
        rows, by_x, by_u, by_q = found
        by_z = jnp.concatenate([by_x, by_u[..., None] * timing[:, :, None, n:]], axis=-1)
        margins = jax.vmap(problem.margins)(z), jax.vmap(jax.jacfwd(problem.margins))(z)
        return _Terms(rows, by_z, by_q, *margins)

    return evaluate


def _signs(problem: Problem, side: Array) -> Array:
    """Of the index, whose branch it is, and of what `within` keeps (1 + k,)."""
    return jnp.ones(1 + len(problem.kept_bounds)).at[0].set(side)


def _kept(problem: Problem, side: Array, terms: _Terms) -> Array:
    """What must not be negative at the stations: index over its limit, `within` (N, 1 + k)."""
    signs = _signs(problem, side)
    kept = signs * terms.rows[:, -len(signs) :]
    return kept.at[:, 0].add(-problem.least_transmission)


def _violated(problem: Problem, side: Array, terms: _Terms, shift: _Shift) -> _Shift:
    """Violations plus multipliers over the weight: of closure, index, `within` and margins."""
    kept = _kept(problem, side, terms)
    k = kept.shape[1]
    closure = terms.rows[:, problem.errors : -k] + shift.rows[:, :-k]
    rows = jnp.concatenate([closure, jnp.minimum(0.0, kept + shift.rows[:, -k:])], axis=1)
    return _Shift(rows, jnp.minimum(0.0, terms.margins + shift.margins))


def _cost(problem: Problem, weight: Array, side: Array, terms: _Terms, shift: _Shift) -> Array:
    penalty = sum(jnp.sum(x**2) for x in _violated(problem, side, terms, shift))
    return jnp.sum(terms.rows[:, : problem.errors] ** 2) + weight * penalty


def _step(problem: Problem, weight: Array, side: Array, evaluate: Any, s: _State) -> _State:
    low, high = (jnp.asarray(x) for x in problem.limits)
    move = partial(_change, problem, weight, low, high)
    dz, dq = jax.vmap(move)(side, s.z, s.terms, s.shift, s.damping)
    z = jnp.clip(s.z + dz, low, high)
    moved = jnp.clip(dq, -0.5, 0.5)
    mech_of = problem.mechanism
    q = jax.vmap(lambda z, q, d: jax.vmap(lambda q, d: step_coordinates(mech_of(z), q, d))(q, d))(
        z, s.q, moved
    )
    terms = evaluate(z, q)
    cost = jax.vmap(partial(_cost, problem, weight))(side, terms, s.shift)
    better = cost < s.cost
    new = _State(z, q, terms, s.shift, cost, jnp.maximum(s.damping / 5.0, _LEAST_DAMPING))
    old = s._replace(damping=jnp.minimum(s.damping * 4.0, _MOST_DAMPING))

    def chosen(a: Array, b: Array) -> Array:
        return jnp.where(better.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    return jax.tree_util.tree_map(chosen, new, old)


def _change(
    problem: Problem,
    weight: Array,
    low: Array,
    high: Array,
    side: Array,
    z: Array,
    terms: _Terms,
    shift: _Shift,
    damping: Array,
) -> tuple[Array, Array]:
    """The damped Gauss-Newton step of one start: δz (nz,), δq (N, nv)."""
    m, root, signs = problem.errors, jnp.sqrt(weight), _signs(problem, side)
    over, margins = _violated(problem, side, terms, shift)
    r = jnp.concatenate([terms.rows[:, :m], root * over], axis=1)
    factor = jnp.full(r.shape, root).at[:, :m].set(1.0)
    k = len(signs)
    factor = factor.at[:, -k:].set(root * signs * (over[:, -k:] < 0.0))[:, :, None]
    az, aq = factor * terms.rows_z, factor * terms.rows_q
    held = root * (margins < 0.0)[:, None] * terms.margins_z
    gz = jnp.einsum("irz,ir->z", az, r) + held.T @ (root * margins)
    gq = jnp.einsum("irq,ir->iq", aq, r)
    hzz = jnp.einsum("irz,iry->zy", az, az) + held.T @ held
    hzq = jnp.einsum("irz,irq->izq", az, aq)
    hqq = jnp.einsum("irq,irp->iqp", aq, aq)
    nq = hqq.shape[-1]
    hqq = hqq + damping * jnp.eye(nq)
    # A number at its limit that wants to go further stays where it is.
    stuck = ((z <= low) & (gz > 0.0)) | ((z >= high) & (gz < 0.0))
    both = jnp.concatenate([gq[:, :, None], jnp.swapaxes(hzq, 1, 2)], axis=2)
    solved = jnp.linalg.solve(hqq, both)
    schur = hzz - jnp.einsum("izq,iqy->zy", hzq, solved[:, :, 1:])
    schur = schur + damping * jnp.eye(schur.shape[0])
    rhs = -gz + jnp.einsum("izq,iq->z", hzq, solved[:, :, 0])
    free = (~stuck).astype(z.dtype)
    schur = free[:, None] * schur * free + jnp.diag(1.0 - free)
    dz = jnp.linalg.solve(schur, free * rhs)
    dq = -solved[:, :, 0] - jnp.einsum("iqz,z->iq", solved[:, :, 1:], dz)
    return dz, dq
