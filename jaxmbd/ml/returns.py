"""Returns: what is learned from rewards, cut episodes, and values of where they were cut."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax


def lambda_returns(
    reward: Array,
    terminated: Array,
    truncated: Array,
    next_value: Array,
    *,
    discount: float,
    trace: float,
) -> Array:
    """TD(λ) returns (n,) of the steps of a lane, as discounted means.

    A value is ``V = (1 − γ) Σ γᵏ rₖ``: of the size of a reward, whatever γ is. With λ the `trace`,

        Gₜ = (1 − γ) rₜ + γ ((1 − λ) Vₜ + λ Gₜ₊₁),

    where Vₜ is the value of what the step led to; the last step of the rows, and one that was
    truncated, has Vₜ in place of the bracket, one that terminated nothing. ``Gₜ − V(observation)``
    is the generalised advantage.

    Source: Sutton & Barto, Reinforcement Learning (2018), section 12.1; Schulman et al., ICLR 2016.

    Args:
        reward: (n,).
        terminated: (n,), as of `Rollout`.
        truncated: (n,), as of `Rollout`.
        next_value: values (n,) of `Rollout.next_observation`, which is what a step led to before
            any reset: those of the first observation of the next episode would be wrong.
        discount: γ.
        trace: λ.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import ml
        >>> ones, no = jnp.ones(3), jnp.zeros(3, bool)
        >>> ml.lambda_returns(ones, no, no, ones, discount=0.9, trace=0.5).round(12).tolist()
        [1.0, 1.0, 1.0]
        >>> over = jnp.array([False, False, True])
        >>> ml.lambda_returns(ones, over, no, ones, discount=0.9, trace=1.0).round(3).tolist()
        [0.271, 0.19, 0.1]
    """
    last = jnp.arange(len(reward)) == len(reward) - 1
    carried = jnp.where(terminated | truncated | last, 0.0, trace)
    goes_on = jnp.where(terminated, 0.0, discount)

    def one(later: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        gained, ahead, weight, kept = row
        now = gained + ahead * ((1.0 - weight) * kept + weight * later)
        return now, now

    rows = (1.0 - discount) * reward, goes_on, carried, next_value
    return lax.scan(one, jnp.zeros_like(next_value[0]), rows, reverse=True)[1]
