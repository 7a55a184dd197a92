"""Simultaneous closure: drawing and configurations are unknowns together, in step for all starts.

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

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd import lanes
from jaxmbd.kinematics import step_coordinates
from jaxmbd.synthesis.problem import Problem, Station
from jaxmbd.synthesis.starts import Starts

_WEIGHTS = (*[1.0] * 3, *[10.0] * 10, *[100.0] * 8, *[1000.0] * 2)
_LEAST_DAMPING, _MOST_DAMPING = 1e-12, 1e6


class Searched(NamedTuple):
    """Where the searches of all starts ended.

    Attributes:
        z: unknowns (s, nz).
        q: coordinates at all stations (s, n + k, nq).
        error: squared errors from what is wanted, in units of the task's size, summed (s,).
        closure: largest error of closure, in the same units (s,).
        margin: least of what must not be negative (s,).
    """

    z: np.ndarray
    q: np.ndarray
    error: np.ndarray
    closure: np.ndarray
    margin: np.ndarray


class _Terms(NamedTuple):
    """Residuals and Jacobians at a point, of one start."""

    error: Array  # (n, m)
    closure: Array  # (N, c)
    index: Array  # (N,)
    margins: Array  # (k,)
    jz: Station  # ∂/∂z, (n or N, …, nz)
    jq: Station  # ∂/∂(speeds), (n or N, …, nv)
    margins_z: Array  # (k, nz)


class _Shift(NamedTuple):
    """Multipliers over the weight, of one start."""

    closure: Array
    index: Array
    margins: Array


class _State(NamedTuple):
    z: Array
    q: Array
    terms: _Terms
    shift: _Shift
    cost: Array
    damping: Array


def search_simultaneously(
    problem: Problem, starts: Starts, *, steps: int = 30, weights: tuple[float, ...] = _WEIGHTS
) -> Searched:
    """Search from all starts at once, `steps` steps for each of the `weights`."""
    z, q = jnp.asarray(starts.z), jnp.asarray(starts.walked.q)
    index = jnp.asarray(starts.walked.index)
    found = _run(problem, steps, weights, z, q, index)
    return Searched(*(np.asarray(x) for x in found))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _run(
    problem: Problem, steps: int, weights: tuple[float, ...], z: Array, q: Array, index: Array
) -> tuple[Array, ...]:
    evaluate = _evaluation(problem, z.shape[0], q.shape[1])
    side = jnp.where(jnp.sum(jnp.sign(index), axis=1) < 0.0, -1.0, 1.0)
    terms = evaluate(z, q)

    shift = _Shift(*(jnp.zeros_like(x) for x in (terms.closure, terms.index, terms.margins)))

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

    first = (z, q, terms, shift, jnp.asarray(weights[0]))
    (z, q, terms, *_), _ = lax.scan(of_weight, first, jnp.asarray(weights))
    error = jnp.sum(terms.error**2, axis=(1, 2))
    closure = jnp.max(jnp.abs(terms.closure), axis=(1, 2))
    worst = jnp.min(side[:, None] * terms.index, axis=1) - problem.least_transmission
    if terms.margins.shape[1]:
        worst = jnp.minimum(worst, jnp.min(terms.margins, axis=1))
    return z, q, error, closure, worst


def _evaluation(problem: Problem, count: int, stations: int) -> Any:
    """Function of z (s, nz) and q (s, N, nq) to `_Terms` with a leading s."""
    rows = np.zeros((stations, problem.task.rows.shape[1]))
    rows[: problem.positions] = problem.task.rows
    rows = jnp.asarray(np.tile(rows, (count, 1)))
    n = len(problem.unknowns)

    def station(x: Array, u: Array, move: Array, q: Array, row: Array) -> Station:
        mech = problem.mechanism(x)
        return problem.station(mech, u, step_coordinates(mech, q, move), row)

    def derived(x: Array, u: Array, q: Array, row: Array) -> Any:
        move = jnp.zeros(problem.speeds, q.dtype)
        at = station(x, u, move, q, row)
        slopes = jax.jacfwd(station, argnums=(0, 1, 2))(x, u, move, q, row)
        return at, *(Station(*(part[k] for part in slopes)) for k in range(3))

    kernel = lanes.vmap(derived)
    ahead = jax.jit(jax.vmap(problem.inputs))

    def evaluate(z: Array, q: Array) -> _Terms:
        u = ahead(z)
        flat = [jnp.repeat(z[:, :n], stations, axis=0), u.reshape(-1), q.reshape(-1, q.shape[2])]
        at, jx, ju, jq = kernel(*flat, rows)
        at, jx, ju, jq = jax.tree_util.tree_map(
            lambda x: x.reshape(count, stations, *x.shape[1:]), (at, jx, ju, jq)
        )
        timing = jax.vmap(jax.jacfwd(problem.inputs))(z)[:, :, n:]
        spread = jax.tree_util.tree_map(
            lambda a, b: jnp.concatenate(
                [a, b[..., None] * timing.reshape(count, stations, *[1] * (b.ndim - 2), -1)], -1
            ),
            jx,
            ju,
        )
        first = problem.positions
        cut = [s._replace(error=s.error[:, :first]) for s in (at, spread, jq)]
        margins = jax.vmap(problem.margins)(z)
        margins_z = jax.vmap(jax.jacfwd(problem.margins))(z)
        at, spread, jq = cut
        return _Terms(at.error, at.closure, at.index, margins, spread, jq, margins_z)

    return evaluate


def _violated(problem: Problem, side: Array, terms: _Terms, shift: _Shift) -> _Shift:
    """Violations plus multipliers over the weight: of closure, index and margins."""
    index = side * terms.index - problem.least_transmission + shift.index
    margins = terms.margins + shift.margins
    return _Shift(terms.closure + shift.closure, jnp.minimum(0.0, index), jnp.minimum(0.0, margins))


def _cost(problem: Problem, weight: Array, side: Array, terms: _Terms, shift: _Shift) -> Array:
    penalty = sum(jnp.sum(x**2) for x in _violated(problem, side, terms, shift))
    return jnp.sum(terms.error**2) + weight * penalty


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
    closure, index, margins = _violated(problem, side, terms, shift)
    root = jnp.sqrt(weight)
    count, n = terms.closure.shape[0], terms.error.shape[0]
    pad = ((0, count - n), (0, 0))
    wide = (*pad, (0, 0))
    active = root * side * (index < 0.0)
    r = jnp.concatenate(
        [jnp.pad(terms.error, pad), root * closure, (root * index)[:, None]], axis=1
    )
    az, aq = (
        jnp.concatenate(
            [jnp.pad(j.error, wide), root * j.closure, (active[:, None] * j.index)[:, None]], axis=1
        )
        for j in (terms.jz, terms.jq)
    )
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
