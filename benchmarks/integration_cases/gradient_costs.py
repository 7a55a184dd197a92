"""Reverse derivatives of rollouts, in rollouts: time of value and gradient over that of the value.

A multi-link corner over 1000 steps of RK4: its kinetic energy at the end, by its hardpoints (as in
`throughput.py`); by a road of 401 heights under its tyre, each lane with its own; and by the 1313
numbers of a network of 5-32-32-1, which sets the wheel's torque.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from throughput_cases.catalogue import CASES
from throughput_cases.work import GRADIENT, KERNELS, ROLLOUT, arguments, function

import jaxmbd as mbd
from integration_cases.timing import by_turns
from jaxmbd import lanes

STEPS, DT, LANES, HEIGHTS = 1000, 1e-3, 512, 401
WIDTHS = (5, 32, 32, 1)
TYRE = {"stiffness": 2e5, "damping": 300.0, "radius": 0.35}
Program = Callable[[], Any]


def _corner() -> mbd.Mechanism:
    """The corner on its tyre in place of a given wheel load."""
    mech = mbd.zoo.multi_link()
    hub = mech.joints["rev_spindle"].at
    height = float(mech.point(hub)[2])
    flat = mbd.Sampled(np.linspace(0.0, STEPS * DT, HEIGHTS), np.zeros(HEIGHTS))
    tyre = mbd.Tyre("upright", hub, **TYRE, road=height - 0.31, law=flat)
    return mech.replace(forces={"wheel_load": None, "tyre": tyre})


def hardpoints(steps: int, number: int) -> tuple[Program, Program]:
    """As `throughput.py` measures it."""
    case = CASES["multi_link"]
    programs = []
    for work in (ROLLOUT, GRADIENT):
        given = arguments(case, work, number, "float64")
        batched = jax.jit(lanes.vmap(function(case, work, steps, KERNELS)))
        programs.append(lambda f=batched, x=given: f(*x))
    return programs[0], programs[1]


def _end(mech: mbd.Mechanism, v: Any, steps: int, inputs: Any = None) -> Any:
    """The kinetic energy at the end."""
    every = max(k for k in range(1, int(np.sqrt(steps)) + 1) if steps % k == 0)
    options = {"dt": DT, "steps": steps, "save_every": every}
    run = mbd.simulate(
        mech, mbd.neutral(mech), v, inputs=inputs, outputs_only=True, throw=False, **options
    )
    return mbd.kinetic_energy(mech, run.q[-1], run.v[-1])


def road(steps: int, number: int) -> tuple[Program, Program]:
    """Rough roads, each lane with its own, and the gradient by all its heights."""
    mech = _corner()
    rng = np.random.default_rng(0)
    heights = jnp.asarray(0.003 * np.cumsum(rng.normal(size=(number, HEIGHTS)), axis=1))
    t, rest = np.linspace(0.0, STEPS * DT, HEIGHTS), jnp.zeros(mbd.topology(mech).nv)

    def value(z: Any) -> Any:
        tyre = replace(mech.forces["tyre"], law=mbd.Sampled(t, z))
        return _end(mech.replace(forces={"tyre": tyre}), rest, steps)

    plain, slope = (jax.jit(lanes.vmap(f)) for f in (value, jax.value_and_grad(value)))
    return lambda: plain(heights), lambda: slope(heights)


def network(steps: int, number: int) -> tuple[Program, Program]:
    """A network that all lanes share, and the gradient of the sum by its numbers."""
    mech = mbd.zoo.multi_link()
    rng = np.random.default_rng(0)
    weights = [
        (jnp.asarray(rng.normal(size=(m, n)) / np.sqrt(n)), jnp.zeros(m))
        for n, m in zip(WIDTHS, WIDTHS[1:], strict=False)
    ]
    starts = jnp.zeros((number, mbd.topology(mech).nv))
    spindle = mbd.topology(mech).layout["rev_spindle"].v.start
    starts = starts.at[:, spindle].set(jnp.linspace(-1.0, 1.0, number))

    def value(weights: Any, v0: Any) -> Any:
        def torque(t: Any, q: Any, v: Any) -> dict[str, Any]:
            x = jnp.concatenate([v[:4], jnp.reshape(t, (1,))])
            for k, (w, b) in enumerate(weights):
                x = w @ x + b
                x = jnp.tanh(x) if k < len(weights) - 1 else x
            return {"rev_spindle": x[0]}

        return _end(mech, v0, steps, torque)

    batch = lanes.vmap(value, in_axes=(None, 0))

    def total(weights: Any) -> Any:
        return jnp.sum(batch(weights, starts))

    plain, slope = jax.jit(total), jax.jit(jax.value_and_grad(total))
    return lambda: plain(weights), lambda: slope(weights)


KINDS = {"hardpoints": hardpoints, "road": road, "network": network}


def measured(quick: bool = False) -> dict[str, Any]:
    """CPU seconds of the value, of value and gradient, and their ratio."""
    steps, number = (16, 8) if quick else (STEPS, LANES)
    results: dict[str, Any] = {"steps": steps, "lanes": number}
    for name, make in KINDS.items():
        value, slope = make(steps, number)
        found = jax.tree_util.tree_leaves((value(), slope()))
        cost = by_turns({"value": value, "gradient": slope}, rounds=2 if quick else 5, seconds=3.0)
        results[name] = {
            "value_s": cost["value"].cpu,
            "gradient_s": cost["gradient"].cpu,
            "ratio": cost["gradient"].cpu / cost["value"].cpu,
            "ratio_wall": cost["gradient"].wall / cost["value"].wall,
            "finite": bool(all(np.all(np.isfinite(x)) for x in found)),
        }
    return results
