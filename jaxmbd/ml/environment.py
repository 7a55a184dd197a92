"""An environment for learning: a mechanism, actions on it, what is observed of it, and rewards.

It is functional: `EnvState` is a pytree, and `Environment.reset` and `Environment.step` are pure
functions of one lane, each one kernel under `jax.jit`, `jax.vmap` and `lanes.vmap`. A control step
is a run of `simulate` that goes on, to the bit, where the one before ended.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd import lanes
from jaxmbd.analysis import (
    RunEnd,
    Status,
    assemble,
    assemble_velocity,
    parse_known,
    program,
    run_start,
    simulate,
)
from jaxmbd.graph import neutral
from jaxmbd.lanes import check_backend, is_inline
from jaxmbd.ml.actions import action_limits
from jaxmbd.ml.checks import check_functions, reading
from jaxmbd.ml.draws import draw, drawn, named
from jaxmbd.model import Mechanism
from jaxmbd.observe import Observable, Snapshot
from jaxmbd.plumbing import refuse, unknown
from jaxmbd.sampling import Distribution, FromSciPy, as_distribution
from jaxmbd.variables import get_variables, set_variables


class EnvState(NamedTuple):
    """A lane of an environment after a step: all that the next step depends on, and what it gave.

    Attributes:
        key: the lane's random key.
        episode: number of the episode.
        steps: control steps in it so far.
        variables: the mechanism's numbers that this episode has of its own, by path.
        end: where the run of the episode has come to: `end.t` [s], `end.q` (nq,), `end.v` (nv,).
        actions: the last ones (delay + 1, na), the latest last.
        observation: (no,); after a step that ended an episode the first one of the next.
        reward: of the last step.
        terminated: whether the last step ended an episode by `terminate`: nothing comes after it.
        truncated: whether it cut one short, at the horizon or by a failure: its value goes on, and
            is that of `final_observation`.
        final_observation: (no,), what the last step led to, before any reset.
        status: a `Status` number: why the last step failed, or the first state, if not OK.
        failures: how many episodes failed so far, by the number of their `Status`.

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> env = ml.cart_pole()
        >>> state = env.step(env.reset(jax.random.key(0)), [0.5])
        >>> float(state.reward), bool(state.done)
        (1.0, False)
    """

    key: Array
    episode: Array
    steps: Array
    variables: dict[str, Array]
    end: RunEnd
    actions: Array
    observation: Array
    reward: Array
    terminated: Array
    truncated: Array
    final_observation: Array
    status: Array
    failures: Array

    @property
    def done(self) -> Array:
        """Whether the last step ended an episode."""
        return self.terminated | self.truncated


class Environment:
    """A mechanism that is acted on once in each `control_dt`, observed and rewarded.

    Args:
        mechanism: a mechanism, or a function of named numbers with defaults that builds one.
        control_dt: time between two actions [s].
        observe: name to observable of `jaxmbd.observe`, or to a function of (t, q, v); what is
            observed is these numbers one after the other (`sensors` has their places).
        reward: of the `Snapshot` before a step, the action (na,) and the `Snapshot` after it.
        terminate: of the `Snapshot` after a step: whether the task ended there; by default never.
        start: the coordinates to start from, as `known` of `assemble`, by numbers or distributions
            about zero; or a function of the mechanism and a key that returns them; by default as
            drawn.
        speeds: the speeds to start with, likewise, as `known` of `assemble_velocity`.
        actions: names of actuators, or of joints with one coordinate, whose effort it is; or a
            dictionary with their limits, (low, high), None for the actuator's own. By default all
            actuators. Limits are those of the control, which is cut to them.
        horizon: control steps after which an episode is truncated; None for never.
        substeps: steps of the method in each control step.
        method: of integration, as of `simulate`.
        hold: "hold" each action for the control step, or "linear" from the one before to it.
        delay: control steps from an action to its effect; zero actions come before the first.
        noise: sensor to distribution, about what it would read.
        randomize: path of a variable (`variables`), or argument of the function that builds the
            mechanism, to distribution: drawn for each episode.
        accuracy: largest error of a run as a share of the motion, as of `simulate`.
        backend: "auto", "lanes" or "xla", as of `simulate`.

    Attributes:
        low, high: limits of the actions (na,).
        names: of the actions.
        sensors: name to its slice of the observation.
        size: of the observation.

    A run that fails, a start that cannot be assembled, a reading or a reward that is not finite
    ends the episode: truncated, without reward, with its `Status`, which `EnvState.failures`
    counts. The final observation is then that before the failure, or of the drawing, so that no
    number is NaN; of a start that failed `EnvState.variables` are the nominal ones.

    Raises:
        ValueError: names that the mechanism does not have, missing limits, distributions that do
            not fit, functions that return no number, truth value or reading; in one message.

    Example:
        >>> import jax, jaxmbd as mbd
        >>> from jaxmbd import ml
        >>> from jaxmbd.observe import Coordinate
        >>> from jaxmbd.sampling import Uniform
        >>> env = ml.Environment(
        ...     mbd.zoo.simple_pendulum(), 0.02, actions={"hinge": (-5.0, 5.0)}, substeps=2,
        ...     observe={"angle": Coordinate("hinge"), "rate": lambda t, q, v: v[0]},
        ...     reward=lambda before, action, after: -after.q[0] ** 2,
        ...     start={"hinge": Uniform(0.1)}, horizon=100)
        >>> state = jax.vmap(env.reset)(ml.lane_keys(0, 3))
        >>> jax.vmap(env.step)(state, jax.numpy.zeros((3, 1))).observation.shape
        (3, 2)
    """

    def __init__(
        self,
        mechanism: Mechanism | Callable[..., Mechanism],
        control_dt: float,
        *,
        observe: Mapping[str, Any],
        reward: Callable[[Snapshot, Array, Snapshot], Any],
        terminate: Callable[[Snapshot], Any] | None = None,
        start: Any = None,
        speeds: Any = None,
        actions: Iterable[str] | Mapping[str, Any] | None = None,
        horizon: int | None = None,
        substeps: int = 1,
        method: Any = "rk4",
        hold: str = "hold",
        delay: int = 0,
        noise: Mapping[str, Any] | None = None,
        randomize: Mapping[str, Any] | None = None,
        accuracy: float = 0.1,
        backend: str = "auto",
    ):
        self.mechanism = mechanism if isinstance(mechanism, Mechanism) else mechanism()
        self._build = None if isinstance(mechanism, Mechanism) else mechanism
        check_backend(backend)
        self.backend = backend
        self.control_dt, self.substeps, self.method = float(control_dt), substeps, method
        self.observe, self.reward, self.terminate = dict(observe), reward, terminate
        self.start, self.speeds = (_distributions(x or {}) for x in (start, speeds))
        self.horizon, self.hold, self.delay, self.accuracy = horizon, hold, delay, accuracy
        self.noise, self.randomize = (_distributions(x or {}) for x in (noise, randomize))
        self.names, low, high, problems = action_limits(self.mechanism, actions)
        refuse("the environment cannot be made", problems + self._problems())
        self.low, self.high = (np.asarray(x, self.mechanism.dtype) for x in (low, high))
        self.nominal = self._nominal()
        problems = [
            f"randomize: {path!r}: {text}"
            for path, x in self.randomize.items()
            if not isinstance(self.nominal[path], Tracer)
            for text in x.problems(np.asarray(self.nominal[path]))
        ]
        sizes, wrong = check_functions(self)
        refuse("the environment cannot be made", problems + wrong)
        ends = np.cumsum(list(sizes.values())).tolist()
        places = map(slice, [0, *ends[:-1]], ends)
        self.sensors, self.size = dict(zip(sizes, places, strict=True)), ends[-1]

    def reset(self, key: Array) -> EnvState:
        """The first state of a lane.

        Args:
            key: the lane's random key (`lane_keys`), of which all that is random in it follows.
        """
        return self.compiled(self._reset, key)

    def step(self, state: EnvState, action: Any) -> EnvState:
        """The state a control step later; where that ended the episode, the next one has begun.

        Then `EnvState.observation` is the first of the new episode, and the last of the old one,
        which bootstrapping needs, is `EnvState.final_observation`.

        Args:
            state: of one lane.
            action: (na,), cut to its limits.
        """
        return self.compiled(self._step, state, self._action(action))

    def advance(self, state: EnvState, action: Any) -> EnvState:
        """`step` without a reset: the episode's end stays where it is, for `restart`."""
        return self.compiled(self._advance, state, self._action(action))

    def restart(self, state: EnvState) -> EnvState:
        """The first state of the lane's next episode."""
        return self.compiled(self._restart, state)

    def step_or_begin(self, state: EnvState, action: Any) -> EnvState:
        """`advance`, or, where the last step ended an episode, `restart`; the action is unused."""
        return self.compiled(self._step_or_begin, state, self._action(action))

    def compiled(self, fn: Callable[..., Any], *args: Any) -> Any:
        """``fn(*args)`` as one kernel, with the mechanism's numbers as constants unless traced."""
        leaves = jax.tree_util.tree_leaves(self.mechanism)
        if is_inline() or any(isinstance(x, Tracer) for x in leaves):
            return fn(*args)
        return program(self.backend, fn, *args)

    def _action(self, action: Any) -> Array:
        action = jnp.asarray(action, self.mechanism.dtype)
        if action.shape != self.low.shape:
            raise ValueError(
                f"an action has shape {action.shape}; give one number for each of "
                f"{list(self.names)}, shape {self.low.shape}, of one lane: jax.vmap(env.step) and "
                "lanes.vmap(env.step) take those of many"
            )
        return action

    def _reset(self, key: Array) -> EnvState:
        return self._first(key, jnp.zeros((), jnp.int32), jnp.zeros(len(Status), jnp.int32))

    def _restart(self, state: EnvState) -> EnvState:
        return self._first(state.key, state.episode + 1, state.failures)

    def _first(self, key: Array, episode: Array, failures: Array) -> EnvState:
        """The first state of an episode."""
        variables, end, actions, observation = self._begin(key, episode)
        false, zero = jnp.zeros((), bool), jnp.zeros((), jnp.int32)
        none = jnp.zeros((), self.mechanism.dtype)
        return EnvState(
            key, episode, zero, variables, end, actions, observation, none, false, false,
            observation, end.status, failures,
        )  # fmt: skip

    def _begin(self, lane: Array, episode: Array) -> tuple[Any, RunEnd, Array, Array]:
        """Variables, beginning, earlier actions and first observation of an episode."""
        key = jax.random.fold_in(lane, episode)
        nominal = {path: jnp.asarray(x, self.mechanism.dtype) for path, x in self.nominal.items()}
        variables = drawn(self.randomize, key, "variable", nominal)
        mech = self.with_variables(variables)
        held: Any = (
            given(mech, named(key, kind)) if callable(given) else drawn(given, key, kind, {})
            for kind, given in (("start", self.start), ("speed", self.speeds))
        )
        known, rates = held
        found = assemble(mech, known, throw=False, backend=self.backend)
        closed = found.status == Status.OK
        drawing = jnp.asarray(neutral(mech), mech.dtype)
        q = jnp.where(closed, found.q, drawing)
        end = run_start(
            mech, q, assemble_velocity(mech, q, rates), dt=self.control_dt / self.substeps,
            method=self.method,
        )  # fmt: skip
        status = jnp.where(closed, end.status, found.status).astype(jnp.int32)
        fine = status == Status.OK
        variables = {path: jnp.where(fine, x, nominal[path]) for path, x in variables.items()}
        q, v = jnp.where(fine, end.q, drawing), jnp.where(fine, end.v, 0.0)
        end = end._replace(q=q, v=v, status=status)
        idle = jnp.clip(jnp.zeros_like(self.low), self.low, self.high)
        at = self._snapshot(self.with_variables(variables), end, idle)
        seen = self._observed(at, key, jnp.zeros((), jnp.int32))
        known = jnp.all(jnp.isfinite(seen))
        end = end._replace(status=jnp.where(fine & ~known, Status.NON_FINITE, status))
        actions = jnp.tile(idle, (self.delay + 1, 1))
        return variables, end, actions, jnp.where(known, seen, 0.0)

    def _step(self, state: EnvState, action: Array) -> EnvState:
        return self._renewed(self._advance(state, action))

    def _renewed(self, state: EnvState) -> EnvState:
        """Where an episode has ended the next one, with what the last step gave."""
        key = state.key
        typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        # Branches that keep typed keys for reverse mode fail in JAX 0.9.2 without a message.
        raw = jax.random.key_data(key) if typed else key

        def fresh(value: Any) -> Any:
            _, episode, _ = value
            own = jax.random.wrap_key_data(raw, impl=jax.random.key_impl(key)) if typed else raw
            return jnp.zeros((), bool), episode + 1, self._begin(own, episode + 1)

        old = state.variables, state.end, state.actions, state.observation
        # A loop of at most two iterations rather than a branch: kernels skip it where no sample of
        # a vector needs it, in reverse mode too.
        _, episode, (variables, end, actions, observation) = lanes.bounded_while(
            lambda value: value[0], fresh, (state.done, state.episode, old), 2
        )
        return state._replace(
            episode=episode,
            steps=jnp.where(state.done, 0, state.steps),
            variables=variables,
            end=end,
            actions=actions,
            observation=observation,
        )

    def _step_or_begin(self, state: EnvState, action: Array) -> EnvState:
        """A step, or where the last one ended an episode the first state of the next instead."""
        moved, fresh, done = self._advance(state, action), self._renewed(state), state.done
        none, false = jnp.zeros_like(state.reward), jnp.zeros((), bool)
        fresh = fresh._replace(
            reward=none, terminated=false, truncated=false, final_observation=fresh.observation,
            status=fresh.end.status,
        )  # fmt: skip
        return jax.tree_util.tree_map(lambda x, y: jnp.where(done, x, y), fresh, moved)

    def _advance(self, state: EnvState, action: Array) -> EnvState:
        mech = self.with_variables(state.variables)
        action = jnp.clip(action, self.low, self.high)
        queue = jnp.concatenate([state.actions, action[None]])
        run = simulate(
            mech,
            state.end,
            steps=self.substeps,
            dt=self.control_dt / self.substeps,
            save_every=self.substeps,
            method=self.method,
            inputs=self._inputs(queue, state.end.t),
            accuracy=self.accuracy,
            throw=False,
            backend=self.backend,
        )
        moved = run.status == Status.OK
        # What follows sees finite numbers only: a failed sample has no NaN, in gradients either.
        q, v = (
            jnp.where(moved, new, old)
            for new, old in ((run.end.q, state.end.q), (run.end.v, state.end.v))
        )
        end = run.end._replace(q=q, v=v)
        before = self._snapshot(mech, state.end, queue[int(self.hold == "hold")])
        after = self._snapshot(mech, end, queue[1])
        steps = state.steps + 1
        key = jax.random.fold_in(state.key, state.episode)
        seen = self._observed(after, key, steps)
        reward = jnp.asarray(self.reward(before, action, after), seen.dtype)
        known = jnp.all(jnp.isfinite(seen)) & jnp.isfinite(reward)
        status = jnp.where(moved & ~known, Status.NON_FINITE, run.status).astype(jnp.int32)
        fine = status == Status.OK
        seen = jnp.where(fine, seen, state.observation)
        over = False if self.terminate is None else self.terminate(after)
        terminated = fine & jnp.asarray(over, bool)
        late = False if self.horizon is None else steps >= self.horizon
        kinds = jnp.arange(len(Status), dtype=jnp.int32)
        return state._replace(
            steps=steps,
            end=end,
            actions=queue[1:],
            observation=seen,
            reward=jnp.where(fine, reward, 0.0),
            terminated=terminated,
            truncated=~terminated & (~fine | late),
            final_observation=seen,
            status=status,
            failures=state.failures + (~fine & (kinds == status)),
        )

    def _inputs(self, queue: Array, begin: Array) -> Any:
        """Controls by name: the action that is due, or on a line from the one before to it."""
        old, new = queue[0], queue[1]
        if self.hold == "hold":
            return {name: new[i] for i, name in enumerate(self.names)}

        def controls(t: Array) -> dict[str, Array]:
            now = old + (new - old) * ((t - begin) / self.control_dt)
            return {name: now[i] for i, name in enumerate(self.names)}

        return controls

    def _snapshot(self, mech: Mechanism, at: RunEnd, controls: Array) -> Snapshot:
        inputs = {name: controls[i] for i, name in enumerate(self.names)}
        return Snapshot(mech, at.q, at.v, at.t, inputs=inputs)

    def _observed(self, at: Snapshot, key: Array, step: Array) -> Array:
        """What the sensors read (no,), with their noise at that step of an episode."""
        key, parts = jax.random.fold_in(key, step), []
        for name, what in self.observe.items():
            x = jnp.asarray(reading(what, at), self.mechanism.dtype)
            if name in self.noise:
                x = draw(self.noise[name], named(key, f"noise/{name}"), x)
            parts.append(jnp.ravel(x))
        return jnp.concatenate(parts)

    def with_variables(self, variables: Mapping[str, Any]) -> Mechanism:
        """The mechanism with an episode's own numbers (`EnvState.variables`)."""
        if not variables:
            return self.mechanism
        return self._build(**variables) if self._build else set_variables(self.mechanism, variables)

    def _nominal(self) -> dict[str, Any]:
        """Nominal values of what is randomised."""
        if self._build is None:
            return get_variables(self.mechanism, self.randomize)
        given = inspect.signature(self._build).parameters
        return {name: np.asarray(given[name].default, float) for name in self.randomize}

    def _problems(self) -> list[str]:
        """What is wrong with the arguments."""
        found = []
        if not self.control_dt > 0.0:
            found.append(f"control_dt={self.control_dt}: give the time between two actions [s]")
        for name, least in (("substeps", 1), ("delay", 0), ("horizon", 1)):
            x = getattr(self, name)
            if not (isinstance(x, int) and x >= least) and (name, x) != ("horizon", None):
                found.append(f"{name}={x!r}: give a whole number, at least {least}")
        if self.hold not in ("hold", "linear"):
            found.append(f"hold={self.hold!r}: give 'hold' or 'linear'")
        if not self.observe:
            found.append("observe= is empty: name what is observed, an observable or f(t, q, v)")
        for name, what in self.observe.items():
            if isinstance(what, Observable):
                found += [f"observe: {name!r}: {text}" for text in what.problems(self.mechanism)]
            elif not callable(what):
                cure = "give an observable of jaxmbd.observe or a function of (t, q, v)"
                found.append(f"observe: {name!r} is {what!r}; {cure}")
        for name in self.noise:
            found += [f"noise: {text}" for text in unknown("sensor", name, self.observe)]
        if self._build is not None:
            known = inspect.signature(self._build).parameters
            for name in self.randomize:
                found += [f"randomize: {text}" for text in unknown("argument", name, known)]
        groups = {"start": self.start, "speeds": self.speeds, "noise": self.noise}
        groups["randomize"] = self.randomize
        for kind, given in groups.items():
            found += _drawing_problems(kind, given)
        for given, rates in ((self.start, False), (self.speeds, True)):
            if not callable(given):
                parse_known(self.mechanism, {k: _held(x) for k, x in given.items()}, rates)
        return found


def _held(given: Any) -> Any:
    return 0.0 if isinstance(given, Distribution) else given


def _distributions(given: Any) -> Any:
    """A function as it is, or a dictionary with SciPy's distributions as ours."""
    if callable(given):
        return given
    scipy = [k for k, x in given.items() if hasattr(x, "ppf") or hasattr(x, "icdf")]
    return {**given, **{k: as_distribution(given[k]) for k in scipy}}


def _drawing_problems(kind: str, given: Any) -> list[str]:
    """What is no distribution where one is needed, or one that cannot be drawn in a kernel."""
    found = []
    for name, x in {} if callable(given) else given.items():
        if isinstance(x, FromSciPy):
            found.append(
                f"{kind}: {name!r} has {x}, which no kernel can draw; take one of jaxmbd.sampling, "
                "such as Empirical(values, interpolate=True) of many of its values"
            )
        elif kind in ("noise", "randomize") and not isinstance(x, Distribution):
            found.append(f"{kind}: {name!r} is {x!r}; give a distribution, as sampling.Normal(…)")
    return found
