"""Environments as Gymnasium's: a scalar one, and a vector of lanes in one kernel.

Importing this module registers the ready ones, ``jaxmbd/ActiveCorner-v0``, ``jaxmbd/CartPole-v0``
and ``jaxmbd/FiveBarReach-v0``, for `gymnasium.make` and `gymnasium.make_vec`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.ml.corner import active_corner
from jaxmbd.ml.environment import Environment, EnvState
from jaxmbd.ml.ready import cart_pole, five_bar_reach
from jaxmbd.plumbing import optional, warn_user

gymnasium: Any = optional("gymnasium", "gym", "jaxmbd.ml.gymnasium")
AutoresetMode = gymnasium.vector.AutoresetMode
_RENDERED = {"render_modes": ["rgb_array"]}
_READY = {f.__name__: f for f in (active_corner, cart_pole, five_bar_reach)}


def _made(env: Environment | str, options: dict[str, Any]) -> Environment:
    """An environment, or a ready one by the name of its function."""
    if isinstance(env, str):
        return _READY[env](**options)
    if options:
        raise ValueError(f"{', '.join(options)}: give these where the environment is made")
    return env


def _facts(env: Environment) -> tuple[Any, Any, dict[str, Any]]:
    """Spaces of observations (unbounded) and of actions (within their limits), and metadata."""
    dtype = env.low.dtype.type
    seen = gymnasium.spaces.Box(-np.inf, np.inf, (env.size,), dtype)
    rate = round(1.0 / env.control_dt)
    actions = gymnasium.spaces.Box(env.low, env.high, dtype=dtype)
    return seen, actions, {**_RENDERED, "render_fps": rate}


def _keys(seeds: Any) -> jax.Array:
    """The key of each seed, that of its first lane (`lane_keys`)."""
    return jax.vmap(lambda s: jax.random.fold_in(jax.random.key(s), 0))(np.asarray(seeds))


def _image(env: Environment, state: EnvState) -> np.ndarray:
    """A picture of the mechanism (h, w, 3)."""
    from jaxmbd.viz import picture

    figure = picture(env.with_variables(state.variables), np.asarray(state.end.q))
    figure.canvas.draw()
    return np.array(figure.canvas.buffer_rgba())[..., :3]


class GymnasiumEnv(gymnasium.Env):
    """One lane of an environment as `gymnasium.Env`.

    What is random follows from the seed of `reset`; without a seed, `reset` begins the lane's next
    episode. The info has the `Status` number of the step: what failed is truncated, and not OK.

    Args:
        env: the environment, or the name of a function of `jaxmbd.ml` that makes one.
        render_mode: None, or "rgb_array" for pictures by matplotlib.
        **options: of that function.

    Example:
        >>> from jaxmbd import ml
        >>> env = ml.GymnasiumEnv(ml.cart_pole())
        >>> observation, info = env.reset(seed=0)
        >>> env.step(env.action_space.sample())[1:4]
        (1.0, False, False)
    """

    metadata = _RENDERED

    def __init__(
        self, env: Environment | str, *, render_mode: str | None = None, **options: Any
    ) -> None:
        self.env, self.render_mode = _made(env, options), render_mode
        self.observation_space, self.action_space, self.metadata = _facts(self.env)
        self.state: EnvState | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The first observation of an episode, and its info."""
        super().reset(seed=seed)
        if seed is None and self.state is not None:
            self.state = self.env.restart(self.state)
        else:
            drawn = int(self.np_random.integers(2**31)) if seed is None else seed
            self.state = self.env.reset(_keys([drawn])[0])
        _warn(np.array([self.state.status]))
        return np.array(self.state.observation), {"status": int(self.state.status)}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Observation, reward, whether terminated and truncated, and info.

        Raises:
            ValueError: there was no `reset` before.
        """
        self.state = state = self.env.advance(_begun(self.state), action)
        info = {"status": int(state.status)}
        ended = bool(state.terminated), bool(state.truncated)
        return np.array(state.observation), float(state.reward), *ended, info

    def render(self) -> np.ndarray | None:
        """A picture (h, w, 3)."""
        return None if self.render_mode is None else _image(self.env, _begun(self.state))


def _warn(statuses: np.ndarray) -> None:
    """Warn of lanes whose first state could not be found; their first step truncates them."""
    if (failed := np.flatnonzero(statuses)).size:
        kinds = sorted({Status(int(s)).name for s in statuses[failed]})
        warn_user(
            f"{failed.size} of {statuses.size} lanes failed to start ({', '.join(kinds)}): check "
            "start= and randomize= of the environment; a step truncates these episodes"
        )


class GymnasiumVectorEnv(gymnasium.vector.VectorEnv):
    """Many lanes of an environment, stepped by one kernel, as `gymnasium.vector.VectorEnv`.

    Lane k of ``reset(seed=s)`` does what `GymnasiumEnv` does with the seed s + k, as of Gymnasium's
    own vectors. What ended an episode is in `final_obs` and `final_info` of the infos in the mode
    "SameStep", and the observation itself in the others. Arrays that were returned never change.

    Args:
        env: the environment, or the name of a function of `jaxmbd.ml` that makes one.
        num_envs: number of lanes.
        autoreset_mode: "NextStep" (the step after an episode's end begins the next one, and its
            action is ignored), "SameStep", or "Disabled" (``reset(options={"reset_mask": …})``
            begins it).
        render_mode: None, or "rgb_array" for a picture of each lane by matplotlib.
        **options: of that function.

    Example:
        >>> from jaxmbd import ml
        >>> envs = ml.GymnasiumVectorEnv(ml.cart_pole(), 3, autoreset_mode="SameStep")
        >>> observations, infos = envs.reset(seed=0)
        >>> envs.step(envs.action_space.sample())[1]
        array([1., 1., 1.])
    """

    metadata = _RENDERED

    def __init__(
        self,
        env: Environment | str,
        num_envs: int = 1,
        *,
        autoreset_mode: Any = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.env, self.num_envs = _made(env, options), num_envs
        self.render_mode, self.mode = render_mode, AutoresetMode(autoreset_mode)
        *spaces, facts = _facts(self.env)
        self.metadata = {**facts, "autoreset_mode": self.mode}
        self.single_observation_space, self.single_action_space = spaces
        self.observation_space, self.action_space = (
            gymnasium.vector.utils.batch_space(x, num_envs) for x in spaces
        )
        steps = {
            AutoresetMode.NEXT_STEP: self.env.step_or_begin,
            AutoresetMode.SAME_STEP: self.env.step,
            AutoresetMode.DISABLED: self.env.advance,
        }
        self._step = jax.jit(jax.vmap(steps[self.mode]))
        self._reset, self._restart = (
            jax.jit(jax.vmap(f)) for f in (self.env.reset, self.env.restart)
        )
        self.state: EnvState | None = None

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """First observations, and infos.

        Args:
            seed: of lane 0, of each lane, or None: the next episode of each lane.
            options: ``{"reset_mask": array of bool (n,)}`` to reset these lanes only.
        """
        super().reset(seed=seed if isinstance(seed, int) else None)
        mask, old = self._mask((options or {}).get("reset_mask")), self.state
        seeds, given = self._seeds(seed)
        if old is None or given.all():
            new = self._reset(_keys(seeds))
        else:
            new = self._restart(old)
            new = _chosen(given, self._reset(_keys(seeds)), new) if given.any() else new
        self.state = state = new if old is None else _chosen(mask, new, old)
        _warn(np.where(mask, state.status, Status.OK))
        return np.array(state.observation), _infos(mask, state.status)

    def step(self, actions: Any) -> tuple[Any, ...]:
        """Observations, rewards, which lanes terminated and were truncated, and infos.

        Raises:
            ValueError: there was no `reset` before, actions have another shape, or in the mode
                "Disabled" a lane has ended.
        """
        before, actions = _begun(self.state), np.asarray(actions)
        if actions.shape != self.action_space.shape:
            raise ValueError(
                f"actions have shape {actions.shape}; give {self.action_space.shape}, for each of "
                f"{self.num_envs} lanes one number for each of {list(self.env.names)}"
            )
        over = np.flatnonzero(np.asarray(before.done)).tolist()
        if over and self.mode == AutoresetMode.DISABLED:
            cure = "reset(options={'reset_mask': …})"
            raise ValueError(f"the episodes of lanes {over} have ended: {cure}")
        self.state = state = self._step(before, jnp.asarray(actions))
        told = state.observation, state.reward, state.terminated, state.truncated
        observation, reward, terminated, truncated = map(np.array, told)
        infos = _infos(np.ones(self.num_envs, bool), state.status)
        if self.mode == AutoresetMode.SAME_STEP and np.any(done := terminated | truncated):
            final, seen = np.array(state.final_observation), np.full(self.num_envs, None, object)
            for k in np.flatnonzero(done):
                seen[k] = final[k]
            infos["status"] = np.where(done, state.end.status, state.status)
            infos |= {"final_obs": seen, "_final_obs": done, "_final_info": done.copy()}
            infos["final_info"] = _infos(done, state.status)
        return observation, reward.astype(np.float64), terminated, truncated, infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture (h, w, 3) of each lane."""
        if self.render_mode is None:
            return None
        state, lanes = _begun(self.state), range(self.num_envs)
        each = (jax.tree_util.tree_map(lambda x, k=k: x[k], state) for k in lanes)
        return tuple(_image(self.env, lane) for lane in each)

    def _mask(self, mask: Any) -> np.ndarray:
        """Which lanes are reset."""
        if mask is None:
            return np.ones(self.num_envs, bool)
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise ValueError(
                f"reset_mask has shape {mask.shape} and type {mask.dtype}; give booleans of shape "
                f"({self.num_envs},), at least one of them true"
            )
        return mask

    def _seeds(self, seed: Any) -> tuple[list[int], np.ndarray]:
        """A seed for each lane, and which of them were given."""
        if isinstance(seed, (int, np.integer)):
            seed = [int(seed) + k for k in range(self.num_envs)]
        seed = [None] * self.num_envs if seed is None else list(seed)
        if len(seed) != self.num_envs:
            raise ValueError(f"there are {len(seed)} seeds for {self.num_envs} lanes")
        others = self.np_random.integers(2**31, size=self.num_envs)
        chosen = [int(x) if s is None else int(s) for s, x in zip(seed, others, strict=True)]
        return chosen, np.array([s is not None for s in seed])


def _begun(state: EnvState | None) -> EnvState:
    if state is None:
        raise ValueError("there is no episode yet: call reset() first")
    return state


def _infos(where: np.ndarray, status: Any) -> dict[str, Any]:
    return {"status": np.where(where, np.asarray(status), 0), "_status": where.copy()}


def _chosen(where: np.ndarray, new: EnvState, old: EnvState) -> EnvState:
    """The lanes of one batch where the mask says so, else those of another."""

    def pick(x: Any, y: Any) -> Any:
        return jnp.where(jnp.reshape(where, (-1, *[1] * (x.ndim - 1))), x, y)

    return jax.tree_util.tree_map(pick, new, old)


for _function in _READY:
    gymnasium.register(
        f"jaxmbd/{_function.title().replace('_', '')}-v0",
        entry_point=f"{__name__}:GymnasiumEnv",
        vector_entry_point=f"{__name__}:GymnasiumVectorEnv",
        kwargs={"env": _function},
    )
