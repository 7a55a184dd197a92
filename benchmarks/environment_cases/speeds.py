"""Control steps a second, and how exact the motion is.

Random actions are made outside the timer. "policy outside": calls of a step of all lanes, as a
training code makes them. "policy inside": all steps in one call. Episodes end and begin on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from environment_cases.acrobot import acrobot
from environment_cases.biped import biped
from environment_cases.policies import policy, weights
from jaxmbd import ml
from jaxmbd.model import Controlled

ENVIRONMENTS: dict[str, Callable[..., ml.Environment]] = {
    "cart-pole": ml.cart_pole,
    "acrobot": acrobot,
    "active corner": ml.active_corner,
    "five-bar": ml.five_bar_reach,
    "six-loop biped": biped,
}
Call = Callable[[], Any]


def timed(call: Call, repeats: int = 4) -> dict[str, float]:
    """Seconds of the first call, which compiles, and the least of the others, with their CPU."""
    costs = []
    for _ in range(1 + repeats):
        cpu, start = time.process_time(), time.perf_counter()
        jax.block_until_ready(call())
        costs.append((time.perf_counter() - start, time.process_time() - cpu))
    wall, cpu = (min(x[1:]) for x in zip(*costs, strict=True))
    return {"first call [s]": costs[0][0], "best [s]": wall, "cpu [s]": cpu}


def rates(found: dict[str, float], steps: int) -> dict[str, float]:
    """The same with steps per second, and per second of CPU."""
    each = {"steps/s": steps / found["best [s]"], "steps/s of a core": steps / found["cpu [s]"]}
    return found | each


def walked(env: ml.Environment, lanes: int, steps: int) -> tuple[dict[str, float], ml.EnvState]:
    """Steps of all lanes by calls, with random actions; the last state."""
    first = jax.jit(jax.vmap(env.reset))(ml.lane_keys(0, lanes))
    step, rng = jax.jit(jax.vmap(env.step)), np.random.default_rng(1)
    actions = jnp.asarray(rng.uniform(env.low, env.high, (steps, lanes, len(env.names))))

    def walk() -> ml.EnvState:
        state = first
        for action in actions:
            state = step(state, action)
        return state

    return rates(timed(walk), lanes * steps), walk()


def rolled(env: ml.Environment, lanes: int, steps: int) -> dict[str, float]:
    """All steps in one call, the policy among them."""
    params, keys = weights(env), ml.lane_keys(0, lanes)
    one = partial(ml.rollout, env, policy, steps=steps)
    run = jax.jit(lambda p: jax.vmap(lambda key: one(p, key).next_observation)(keys))
    return rates(timed(partial(run, params)), lanes * steps)


def sloped(env: ml.Environment, lanes: int, steps: int) -> dict[str, float]:
    """The same with the gradient by the policy's numbers."""
    params, keys = weights(env), ml.lane_keys(0, lanes)

    def loss(params: Any) -> Any:
        run = jax.vmap(partial(ml.rollout, env, policy, params, steps=steps))(keys)
        return jnp.sum(run.next_observation**2)

    slope = jax.jit(jax.grad(loss))
    return rates(timed(partial(slope, params), 2), lanes * steps)


def state_of_all(env: ml.Environment, state: ml.EnvState) -> dict[str, Any]:
    """Closure [m] of the worst lane, numbers that are not finite, failed episodes by status."""

    def off(state: ml.EnvState) -> Any:
        mech = env.with_variables(state.variables)
        return jnp.max(jnp.abs(mbd.constraint_residual(mech, state.end.q)), initial=0.0)

    numbers = (state.observation, state.final_observation, state.reward, state.end.q, state.end.v)
    counts = np.asarray(state.failures).sum(axis=0)
    return {
        "closure [m]": float(jnp.max(jax.vmap(off)(state))),
        "not finite": sum(int(np.sum(~np.isfinite(np.asarray(x)))) for x in numbers),
        "failures": {s.name: int(counts[s]) for s in mbd.Status if counts[s]},
        "episodes": int(np.sum(np.asarray(state.episode) + 1)),
    }


def energy(env: ml.Environment, steps: int = 100) -> float:
    """Largest change of the energy without motors, as a share of the kinetic energy.

    Of the free motion from speeds of 1 rad/s, 1 m/s, at the environment's own steps.
    """
    mech = env.mechanism
    motors = [n for n in mech.structure.forces if isinstance(mech.forces[n], Controlled)]
    mech = mech.replace(forces=dict.fromkeys(motors))
    q = mbd.assemble(mech).q
    v = mbd.assemble_velocity(mech, q, guess=jnp.ones(mbd.topology(mech).nv))
    run = mbd.simulate(
        mech, q, v, steps=steps * env.substeps, dt=env.control_dt / env.substeps,
        method=env.method, throw=False,
    )  # fmt: skip

    def both(q: Any, v: Any) -> Any:
        return mbd.kinetic_energy(mech, q, v), mbd.potential_energy(mech, q)

    kinetic, potential = jax.vmap(both)(run.q, run.v)
    total = kinetic + potential
    return float(jnp.max(jnp.abs(total - total[0])) / jnp.max(kinetic))


def card(name: str, lanes: int, steps: int) -> dict[str, Any]:
    """Rates and exactness of an environment at a number of lanes."""
    env = ENVIRONMENTS[name]()
    outside, state = walked(env, lanes, steps)
    found = {"policy outside": outside, "policy inside": rolled(env, lanes, steps)}
    return found | state_of_all(env, state)
