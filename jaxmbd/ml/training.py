"""What learners share: their result, passes over shuffled steps, and the loop with its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from jaxmbd.analysis import Status
from jaxmbd.ml.networks import Agent
from jaxmbd.ml.returns import lambda_returns
from jaxmbd.ml.rollouts import Rollout
from jaxmbd.plumbing import optional, refuse

_CAUSES = {s: f"most of them with {s.name}" for s in Status} | {
    Status.NOT_ASSEMBLED: "since the start or the design does not assemble: check start= and "
    "randomize=",
    Status.NON_FINITE: "since a reward, an observation or the motion is not finite: check reward= "
    "and observe=",
    Status.INACCURATE: "since the steps are too long for the motion: give more substeps=",
}
"""Why all steps may have failed, and the cure."""

Told = Callable[[int, Agent, Mapping[str, Any]], Any]


class Learned(NamedTuple):
    """What a training ends with.

    Attributes:
        agent: for `rollout` with `best_action` or `drawn_action`.
        history: a number for each update, by name: "samples" (control steps so far), "reward"
            (mean of a step, with drawn actions), "value_error" (root mean square, as a discounted
            mean), "slope" (norm of the policy's gradient), "spread" (mean, in half ranges),
            "failed" (steps of the update that failed), "why" (number of the most frequent `Status`
            of these, 0 without).

    Example:
        >>> from jaxmbd import ml
        >>> learned = ml.shac(ml.cart_pole(), lanes=4, window=4, updates=2, hidden=(4,))
        >>> learned.history["samples"].tolist()
        [16, 32]
    """

    agent: Agent
    history: dict[str, np.ndarray]


def optimizer(rate: float, updates: int, largest_slope: float, b1: float, b2: float) -> Any:
    """Adam with a rate that falls on a line, and gradients cut to a norm.

    A gradient that is not finite is skipped, five in a row are not.
    """
    falling = optax.linear_schedule(rate, 0.01 * rate, updates)
    cut = optax.clip_by_global_norm(largest_slope)
    return optax.apply_if_finite(optax.chain(cut, optax.adam(falling, b1, b2)), 5)


def over_batches(
    step: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    data: Any,
    key: Array,
    *,
    passes: int,
    batches: int,
) -> tuple[Any, Any]:
    """`lax.scan` of a step over batches of data (n, …), shuffled anew in each pass."""
    size = len(jax.tree_util.tree_leaves(data)[0])

    def one(carry: Any, key: Array) -> tuple[Any, Any]:
        order = jax.random.permutation(key, size).reshape(batches, size // batches)
        return lax.scan(
            lambda c, rows: step(c, jax.tree_util.tree_map(lambda x: x[rows], data)), carry, order
        )

    return lax.scan(one, carry, jax.random.split(key, passes))


def flat(x: Array) -> Array:
    """Steps of all lanes (lanes, n, …) as one (lanes · n, …)."""
    return x.reshape(-1, *x.shape[2:])


def targets(run: Rollout, ahead: Array, discount: float, trace: float) -> Array:
    """`lambda_returns` (lanes, n) of runs, with values of what their steps led to."""
    returns = partial(lambda_returns, discount=discount, trace=trace)
    return jax.vmap(returns)(run.reward, run.terminated, run.truncated, ahead)


def seen(agent: Agent, run: Rollout, learning: Array) -> Agent:
    """With the scale of what was observed, unless that is settled."""
    new = agent.scale.updated(flat(run.observation))
    scale = jax.tree_util.tree_map(lambda x, y: jnp.where(learning, x, y), new, agent.scale)
    return agent._replace(scale=scale)


def row(agent: Agent, run: Rollout, value_error: Array, slope: Array) -> dict[str, Array]:
    """The numbers of an update for the history."""
    failed = jnp.array([jnp.sum(run.status == s) for s in Status]).at[Status.OK].set(0)
    return {
        "reward": jnp.mean(run.reward),
        "value_error": value_error,
        "slope": slope,
        "spread": jnp.mean(jnp.exp(agent.log_spread)),
        "failed": jnp.sum(failed),
        "why": jnp.where(jnp.any(failed > 0), jnp.argmax(failed), 0),
    }


def check(numbers: Mapping[str, Any], shares: Mapping[str, Any]) -> None:
    """Refuse counts below one and shares outside of [0, 1]."""
    found = [
        f"{name}={x!r}: give a whole number, at least 1"
        for name, x in numbers.items()
        if not (isinstance(x, int) and x >= 1)
    ]
    found += [
        f"{name}={x!r}: give a number from 0 to 1"
        for name, x in shares.items()
        if not 0.0 <= x <= 1.0
    ]
    if not found and numbers["lanes"] * numbers["window"] % numbers["batches"]:
        found.append(
            f"batches={numbers['batches']} does not divide the {numbers['lanes']} · "
            f"{numbers['window']} steps of an update"
        )
    refuse("nothing can be learned so", found)


def train(
    update: Callable[[Any], tuple[Any, dict[str, Array]]],
    state: Any,
    updates: int,
    samples: int,
    progress: bool | Told,
) -> Learned:
    """Updates one after the other.

    Args:
        update: of a state, whose attribute `agent` is the agent, to the next and its `row`.
        state: the first.
        updates: how many.
        samples: control steps of each.
        progress: a bar, or what is called after each.

    Raises:
        ValueError: all steps of an update failed.
        FloatingPointError: the agent is not finite any more.
    """
    rows, hopeless = [], False
    with _shown(progress, updates) as told:
        for n in range(updates):
            state, found = update(state)
            rows.append({"samples": (n + 1) * samples, **found})
            told(n, state.agent, rows[-1])
            if hopeless := int(found["failed"]) == samples:
                break
    leaves = jax.tree_util.tree_leaves(state.agent)
    if not all(bool(jnp.all(jnp.isfinite(x))) for x in leaves):
        raise FloatingPointError(
            "the gradient was not finite in five updates in a row: shorten window=, lower the "
            "rate, or see whether reward and observations stay small"
        )
    if hopeless:
        raise ValueError(
            f"all {samples} steps of update {len(rows)} failed, "
            f"{_CAUSES[Status(int(rows[-1]['why']))]}. A failed step has no reward, so there is "
            "nothing to learn from"
        )
    history = {name: np.asarray([r[name] for r in rows]) for name in rows[0]}
    return Learned(state.agent, history)


@contextmanager
def _shown(progress: bool | Told, updates: int) -> Iterator[Told]:
    """A bar with the last reward; or the caller's own function."""
    if callable(progress) or not progress:
        own: Any = progress or (lambda n, agent, row: None)
        yield own
        return
    tqdm = optional("tqdm", "campaign", "a progress bar").tqdm
    with tqdm(total=updates, desc="learning", unit="update") as bar:

        def told(n: int, agent: Agent, row: Mapping[str, Any]) -> None:
            bar.set_postfix(reward=f"{float(row['reward']):.4g}", refresh=False)
            bar.update()

        yield told
