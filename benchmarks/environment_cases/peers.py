"""Gymnasium's own environments, and MuJoCo's threads, with random actions made before."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import jax
import numpy as np
from throughput_cases.machine import cores

from environment_cases.speeds import ENVIRONMENTS
from jaxmbd import ml

try:
    import mujoco
    import mujoco.rollout
except ImportError:
    mujoco: Any = None

CART_POLE = """<mujoco><option timestep="0.02" integrator="RK4" gravity="0 0 -9.81">
<flag contact="disable"/></option><worldbody>
<body><joint name="rail" type="slide" axis="1 0 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<body><joint name="hinge" axis="0 -1 0"/>
<inertial pos="0 0 0.5" mass="0.1" diaginertia="0.1 0.00833333333333333 0.1"/></body></body>
</worldbody><actuator><motor joint="rail" ctrlrange="-10 10"/></actuator></mujoco>"""
ACROBOT = """<mujoco><option timestep="0.05" integrator="RK4" gravity="0 0 -9.8">
<flag contact="disable"/></option><worldbody>
<body><joint name="shoulder" axis="0 -1 0"/>
<inertial pos="0 0 -0.5" mass="1" diaginertia="1 1 1"/>
<body pos="0 0 -1"><joint name="elbow" axis="0 -1 0"/>
<inertial pos="0 0 -0.5" mass="1" diaginertia="1 1 1"/></body></body>
</worldbody><actuator><motor joint="elbow" ctrlrange="-1 1"/></actuator></mujoco>"""
MODELS = {"cart-pole": (CART_POLE, 1), "acrobot": (ACROBOT, 4)}
GYMNASIUM = {"cart-pole": ("CartPole-v1", "vector_entry_point"), "acrobot": ("Acrobot-v1", "sync")}


def by_gymnasium(name: str, lanes: int, steps: int) -> dict[str, Any]:
    """Steps per second of Gymnasium's environment of that name, resets among them."""
    known, mode = GYMNASIUM[name]
    envs: Any = gymnasium.make_vec(known, num_envs=lanes, vectorization_mode=mode)
    envs.reset(seed=0)
    count = int(envs.single_action_space.n)
    actions = np.random.default_rng(1).integers(0, count, (steps, lanes))
    least = np.inf
    for _ in range(3):
        start = time.perf_counter()
        for action in actions:
            envs.step(action)
        least = min(least, time.perf_counter() - start)
    envs.close()
    return {"steps/s": lanes * steps / least, "how": mode}


def by_mujoco(name: str, lanes: int, steps: int) -> dict[str, Any]:
    """Control steps per second of `mujoco.rollout` by all cores, without resets.

    The difference is that of the coordinates after ten control steps with the same actions.
    """
    text, substeps = MODELS[name]
    env, model = ENVIRONMENTS[name](), mujoco.MjModel.from_xml_string(text)
    start = jax.vmap(env.reset)(ml.lane_keys(0, lanes)).end
    begin = np.concatenate([np.zeros((lanes, 1)), start.q, start.v], axis=1)
    rng = np.random.default_rng(1)
    control = rng.uniform(env.low, env.high, (lanes, steps, len(env.names)))
    held = np.repeat(control, substeps, axis=1)
    data = [mujoco.MjData(model) for _ in range(cores())]
    least, states = np.inf, np.empty(0)
    with mujoco.rollout.Rollout(nthread=cores()) as pool:
        for _ in range(3):
            before = time.perf_counter()
            states = np.asarray(pool.rollout(model, data, begin, held)[0])
            least = min(least, time.perf_counter() - before)
    state, step = jax.vmap(env.reset)(ml.lane_keys(0, lanes)), jax.jit(jax.vmap(env.advance))
    for k in range(10):
        state = step(state, control[:, k])
    off = np.abs(states[:, 10 * substeps - 1, 1 : 1 + model.nq] - state.end.q)
    return {"steps/s": lanes * steps / least, "threads": cores(), "difference": float(off.max())}
