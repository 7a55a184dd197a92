"""Environments of a mass on a spring that breaks, against steps of Runge and Kutta in NumPy.

What an episode draws, its mass and its start, is read from its first state, and must lie within the
limits of its distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import Judged, compare, or_crash
from jaxmbd import ml
from jaxmbd.observe import Coordinate, CoordinateRate
from jaxmbd.sampling import Uniform

PER_CASE = 21
_STEPS = "classical Runge-Kutta steps of one mass in NumPy"
_ENDS = f"{_STEPS}, and where they reach the limit, the horizon or the spring's end"
NUMBERS = {
    "ml.EnvState.key": "what was given",
    "ml.EnvState.episode": _ENDS,
    "ml.EnvState.variables": "limits of the distribution; one value in each episode",
    "ml.EnvState.end": _STEPS,
    "ml.EnvState.actions": "the actions that were given, cut to their limits",
    "ml.EnvState.observation": f"{_STEPS}; limits of the start",
    "ml.EnvState.reward": _STEPS,
    "ml.EnvState.terminated": _ENDS,
    "ml.EnvState.truncated": _ENDS,
    "ml.EnvState.final_observation": _STEPS,
    "ml.EnvState.status": _ENDS,
    "ml.EnvState.failures": _ENDS,
    "ml.EnvState.done": _ENDS,
    "ml.Rollout.observation": _STEPS,
    "ml.Rollout.action": "the policy in NumPy",
    "ml.Rollout.reward": _STEPS,
    "ml.Rollout.terminated": _ENDS,
    "ml.Rollout.truncated": _ENDS,
    "ml.Rollout.next_observation": _STEPS,
    "ml.Rollout.status": _ENDS,
    "ml.Rollout.end": _STEPS,
}
STIFFNESS, DRAG, FAR = 30.0, 0.8, 0.55
LANES, STEPS, DT = 6, 25, 0.05


class Case(NamedTuple):
    """Options of an environment: steps in each control step, delay, hold, horizon, limit."""

    substeps: int
    delay: int
    hold: str
    horizon: int
    limit: float
    gains: np.ndarray


def judged(seed: int, size: int) -> Iterator[Judged]:
    """A few lanes of environments with options at random."""
    for k in range(max(1, min(round(size / PER_CASE), 6))):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        case = Case(
            int(rng.integers(2, 5)),
            int(rng.integers(0, 3)),
            str(rng.choice(["hold", "linear"])),
            int(rng.integers(4, 12)),
            float(rng.uniform(0.3, 0.5)),
            np.append(rng.normal(size=2) * [20.0, 3.0], rng.normal() * 8.0),
        )
        yield from or_crash("ml.EnvState.end", _lanes(case, seed + k, f"{case}, {text}"), text)


def environment(case: Case) -> ml.Environment:
    """The mass on its rail; the spring's law is no number beyond ±`FAR`."""

    def law(extension: Any, rate: Any) -> Any:
        broken = jnp.abs(extension) > FAR
        return jnp.where(broken, jnp.nan, STIFFNESS * extension + DRAG * rate)

    mech = mbd.Mechanism(
        bodies={"mass": mbd.Body(1.0, com=(0.0, 0.0))},
        joints={"rail": mbd.Prismatic("ground", "mass", at=(0.0, 0.0), axis=(1.0, 0.0))},
        forces={"spring": mbd.TorsionSpring("rail", stiffness=0.0, law=law)},
        gravity=(0.0, 0.0),
    )
    return ml.Environment(
        mech,
        DT,
        actions={"rail": (-12.0, 15.0)},
        observe={"x": Coordinate("rail"), "v": CoordinateRate("rail")},
        reward=lambda before, action, after: before.q[0] - after.q[0] ** 2 - 0.1 * action @ action,
        terminate=lambda at: at.q[0] > case.limit,
        start={"rail": Uniform(low=-0.5, high=0.25)},
        randomize={"bodies/mass/mass": Uniform(low=0.5, high=2.0)},
        accuracy=np.inf,
        **{name: getattr(case, name) for name in ("substeps", "delay", "hold", "horizon")},
    )


def policy(gains: Any, observation: Any, key: Any) -> Any:
    """A linear law."""
    return (gains[:2] @ observation + gains[2])[None]


def advanced(case: Case, z: np.ndarray, mass: float, u: tuple[float, float]) -> np.ndarray:
    """(x, v) after a control step, with the control going from one number to another."""

    def rates(t: float, z: np.ndarray) -> np.ndarray:
        pull = np.nan if abs(z[0]) > FAR else -STIFFNESS * z[0] - DRAG * z[1]
        control = u[1] if case.hold == "hold" else u[0] + (u[1] - u[0]) * t / DT
        return np.array([z[1], (pull + control) / mass])

    h = DT / case.substeps
    for n in range(case.substeps):
        k1 = rates(n * h, z)
        k2 = rates((n + 0.5) * h, z + 0.5 * h * k1)
        k3 = rates((n + 0.5) * h, z + 0.5 * h * k2)
        k4 = rates((n + 1) * h, z + h * k3)
        z = z + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return z


def _lanes(case: Case, seed: int, text: str) -> Iterator[Judged]:
    env, keys = environment(case), ml.lane_keys(seed, LANES)
    step = jax.jit(jax.vmap(env.step))
    states = [jax.vmap(env.reset)(keys)]
    for _ in range(STEPS):
        seen = states[-1].observation
        states.append(step(states[-1], jax.vmap(policy, (None, 0, None))(case.gains, seen, None)))
    run = jax.vmap(partial(ml.rollout, env, policy, case.gains, steps=STEPS))(keys)
    for k in range(LANES):
        lane = [jax.tree_util.tree_map(lambda x: x[k], s) for s in states]  # noqa: B023
        yield from _lane(case, lane, keys[k], f"lane {k}, {text}")
        mine = jax.tree_util.tree_map(lambda x: x[k], run)  # noqa: B023
        yield from _rows(case, mine, lane, f"lane {k}, {text}")


def _lane(case: Case, lane: list[ml.EnvState], key: Any, text: str) -> Iterator[Judged]:
    """Every step of a lane against the oracle's, from the state before."""
    queue, count, episode, failed = [0.0] * (case.delay + 1), 0, 0, 0
    expected: dict[str, list[Any]] = {}
    for before, after in zip(lane, lane[1:], strict=False):
        z, mass = np.asarray(before.observation), float(before.variables["bodies/mass/mass"])
        action = float(np.clip(case.gains[:2] @ z + case.gains[2], -12.0, 15.0))
        queue = [*queue, action]
        new, count = advanced(case, z, mass, (queue[0], queue[1])), count + 1
        queue, fine = queue[1:], bool(np.all(np.isfinite(new)))
        final = new if fine else z
        over = fine and new[0] > case.limit
        cut = not over and (not fine or count >= case.horizon)
        failed += not fine
        reward = z[0] - new[0] ** 2 - 0.1 * action**2 if fine else 0.0
        begun = over or cut
        if begun:
            queue, count, episode = [0.0] * (case.delay + 1), 0, episode + 1
        counts = np.zeros(len(mbd.Status))
        counts[mbd.Status.DIVERGED] = failed
        start = np.asarray(after.observation)
        row = {
            "key": jax.random.key_data(key),
            "episode": episode,
            "end": start if begun else final,
            "actions": queue,
            "observation": [np.clip(start[0], -0.5, 0.25), 0.0] if begun else final,
            "reward": reward,
            "terminated": over,
            "truncated": cut,
            "final_observation": final,
            "status": 0 if fine else 3,
            "failures": counts,
            "done": begun,
            "variables": np.clip(float(after.variables["bodies/mass/mass"]), 0.5, 2.0)
            if begun
            else mass,
        }
        for name, x in row.items():
            expected.setdefault(name, []).append(x)
    for name, rows in expected.items():
        found = np.stack([_number(s, name) for s in lane[1:]])
        wanted = np.array(rows, float).reshape(found.shape)
        yield compare(f"ml.EnvState.{name}", found, wanted, limit=1e-11, detail=text)


def _rows(case: Case, run: ml.Rollout, lane: list[ml.EnvState], text: str) -> Iterator[Judged]:
    """A rollout has the steps one by one, which `_lane` judges, and what the policy says."""
    seen = np.stack([np.asarray(s.observation) for s in lane[:-1]])
    names = {"observation": seen, "action": seen @ case.gains[:2, None] + case.gains[2]}
    for name in ("reward", "terminated", "truncated", "status"):
        names[name] = np.stack([np.asarray(getattr(s, name)) for s in lane[1:]])
    names["next_observation"] = np.stack([np.asarray(s.final_observation) for s in lane[1:]])
    for name, wanted in names.items():
        found = np.asarray(getattr(run, name), float)
        yield compare(f"ml.Rollout.{name}", found, wanted, limit=1e-11, detail=text)
    wanted = _number(lane[-1], "end")
    yield compare("ml.Rollout.end", _number(run.end, "end"), wanted, limit=1e-11, detail=text)


def _number(state: ml.EnvState, name: str) -> np.ndarray:
    """A field as numbers."""
    if name == "key":
        return np.asarray(jax.random.key_data(state.key), float)
    if name == "end":
        return np.concatenate([np.asarray(state.end.q), np.asarray(state.end.v)])
    if name == "variables":
        return np.asarray(state.variables["bodies/mass/mass"], float)
    x = np.asarray(getattr(state, name), float)
    return x[:, 0] if name == "actions" else x
