"""Starting points of a synthesis: drawings at random, with the configurations nearest to closed."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.following import Course, Followed, course, follow
from jaxmbd.synthesis.problem import Problem

_LEAST_REACH = 0.03
_QUARTERS = 4


class Walked(NamedTuple):
    """A linkage followed along its input.

    Attributes:
        q: coordinates at all stations (n + k, nq): where its loops do not close, nearest to it.
        open: how many stations do not close.
        error: squared errors from what is wanted, in units of the task's size, summed.
        index: transmission index at all stations (n + k,).
    """

    q: Array
    open: Array
    error: Array
    index: Array


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


def random_starts(problem: Problem, count: int, *, seed: int = 0, of: int = 8) -> Starts:
    """The best of ``of · count`` random drawings: those that come nearest to what is wanted.

    They lie within the limits, or within a share of them about the given drawing, from 3 % to all:
    limits are often much wider than what is wanted is large. Each quarter of these scales has its
    own best. Those that do not close everywhere come after those that do.
    """
    low, high = problem.limits
    total = count * of
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
    index = np.asarray(walked.index)
    side = np.where(index[:, :1] < 0.0, -1.0, 1.0)
    short = np.maximum(0.0, problem.least_transmission - np.min(side * index, axis=1))
    open_ = np.asarray(walked.open)
    return np.asarray(walked.error) / problem.positions + short + 1e6 * (open_ + (open_ > 0))


def _steps(drawn: np.ndarray, problem: Problem) -> np.ndarray:
    """Random steps of a free input, whose sum is spread evenly up to the span."""
    share = -np.log1p(-drawn)
    share = share / share.sum(axis=1, keepdims=True)
    count = drawn.shape[1]
    total = problem.span * (0.1 + 0.8 * np.modf(drawn.sum(axis=1) * 7.0)[0])[:, None]
    return problem.least_step + share * (total - count * problem.least_step)


def walk_all(problem: Problem, z: np.ndarray) -> Walked:
    """`walk_stations` of many linkages (s, nz)."""
    run = jax.jit(lanes.vmap(lambda x: walk_stations(problem, x)))
    return jax.tree_util.tree_map(np.asarray, run(z))


def courses(problem: Problem, z: np.ndarray) -> Course:
    """Many linkages (s, nz) over the range of the input where the transmission index counts."""

    def one(x: Array) -> Course:
        return course(problem.mechanism(x), problem.task.input, problem.reach(x))

    return jax.tree_util.tree_map(np.asarray, jax.jit(lanes.vmap(one))(z))
