"""Learning: environments of mechanisms, functional ones, for Gymnasium and for Brax.

An `Environment` has pure functions `reset` and `step` of one lane, which `jax.vmap` and
`lanes.vmap` make a kernel of many; `rollout` is many steps with a policy as one kernel. Random
numbers are those of a seed, a lane and an episode, whatever the batch is. `shac` and `ppo` learn.
"""

from typing import TYPE_CHECKING

from jaxmbd.ml.brax import BraxEnv, BraxState
from jaxmbd.ml.corner import active_corner
from jaxmbd.ml.draws import lane_keys
from jaxmbd.ml.environment import Environment, EnvState
from jaxmbd.ml.networks import (
    Agent,
    Scale,
    best_action,
    drawn_action,
    log_density,
    new_agent,
    value,
)
from jaxmbd.ml.proximal import ppo
from jaxmbd.ml.ready import cart_pole, five_bar_reach
from jaxmbd.ml.returns import lambda_returns
from jaxmbd.ml.rollouts import Rollout, rollout
from jaxmbd.ml.short_horizon import shac
from jaxmbd.ml.training import Learned
from jaxmbd.plumbing import on_use

if TYPE_CHECKING:
    from jaxmbd.ml.gymnasium import GymnasiumEnv, GymnasiumVectorEnv

__all__ = [
    "Agent",
    "BraxEnv",
    "BraxState",
    "Environment",
    "EnvState",
    "GymnasiumEnv",
    "GymnasiumVectorEnv",
    "Learned",
    "Rollout",
    "Scale",
    "active_corner",
    "best_action",
    "cart_pole",
    "drawn_action",
    "five_bar_reach",
    "lambda_returns",
    "lane_keys",
    "log_density",
    "new_agent",
    "ppo",
    "rollout",
    "shac",
    "value",
]

__getattr__, __dir__ = on_use(__name__, {"gymnasium": "GymnasiumEnv GymnasiumVectorEnv"})
