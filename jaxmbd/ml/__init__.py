"""Learning: environments of mechanisms, functional ones, for Gymnasium and for Brax.

An `Environment` has pure functions `reset` and `step` of one lane, which `jax.vmap` and
`lanes.vmap` make a kernel of many; `rollout` is many steps with a policy as one kernel. Random
numbers are those of a seed, a lane and an episode, whatever the batch is.
"""

from typing import TYPE_CHECKING

from jaxmbd.ml.brax import BraxEnv, BraxState
from jaxmbd.ml.draws import lane_keys
from jaxmbd.ml.environment import Environment, EnvState
from jaxmbd.ml.ready import cart_pole, five_bar_reach
from jaxmbd.ml.rollouts import Rollout, rollout
from jaxmbd.plumbing import on_use

if TYPE_CHECKING:
    from jaxmbd.ml.gymnasium import GymnasiumEnv, GymnasiumVectorEnv

__all__ = [
    "BraxEnv",
    "BraxState",
    "Environment",
    "GymnasiumEnv",
    "GymnasiumVectorEnv",
    "Rollout",
    "EnvState",
    "cart_pole",
    "five_bar_reach",
    "lane_keys",
    "rollout",
]

__getattr__, __dir__ = on_use(__name__, {"gymnasium": "GymnasiumEnv GymnasiumVectorEnv"})
