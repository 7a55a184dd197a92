"""Measure one system in a process of its own, without any cache; prints JSON.

python -m scale_cases.child chain BODIES BATCH SECONDS
python -m scale_cases.child cassie 0 BATCH SECONDS
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from functools import partial
from typing import Any

import _script
import jax
import numpy as np
from throughput_cases import peer_pinocchio
from throughput_cases.columns import keep_nothing
from throughput_cases.timing import Program, by_turns
from throughput_cases.tree import of_mechanism, sample

import jaxmbd as mbd
from jaxmbd import lanes
from scale_cases import cassie
from scale_cases.conventions import accelerations_of_peer, speeds_for_peer
from scale_cases.peer import Aba, Single
from scale_cases.systems import chain, scattered

FIXED, ARGUMENT, OWN = "mechanism fixed", "mechanism an argument", "numbers of its own"
PEER_ONE, PEER_OWN = "Pinocchio, one model", "Pinocchio, a model each"
ONE_FIXED, ONE_ARGUMENT, ONE_HOST = "one: jit, fixed", "one: jit, argument", "one: host call"
ONE_PEER, ONE_NOTHING = "one: Pinocchio", "one: trivial jit"

PROXIMAL = (1e-12, 1e-10, 2)
"""Pinocchio's accuracy, regularisation and iterations where rows are redundant: the fastest
that agree to 1e-12."""

batched = partial(lanes.vmap, strict=True, threads=1)


def forward(mech: mbd.Mechanism, q: Any, v: Any) -> Any:
    return mbd.forward_dynamics(mech, q, v)[0]


def programs(mech: mbd.Mechanism, own: Any, q: Any, v: Any) -> tuple[dict[str, Any], float]:
    """Our programs over the batch, and the seconds of a cold first call, compiling included."""
    q, v, own = jax.device_put((q, v, own))
    start = time.perf_counter()
    found = {OWN: Program(batched(forward), (own, q, v))}
    first = time.perf_counter() - start
    found[ARGUMENT] = Program(batched(forward, in_axes=(None, 0, 0)), (jax.device_put(mech), q, v))
    found[FIXED] = Program(batched(lambda q, v: forward(mech, q, v)), (q, v))
    return found, first


def singles(mech: mbd.Mechanism, q: np.ndarray, v: np.ndarray) -> dict[str, Any]:
    """Our calls of one sample, results on the host; the state is given as NumPy arrays."""
    held = jax.device_put(mech)
    fixed = jax.jit(lambda q, v: forward(mech, q, v))
    argument, nothing = jax.jit(forward), jax.jit(lambda q, v: q[: v.shape[0]] + v)
    return {
        ONE_FIXED: Single(lambda: np.asarray(fixed(q, v))),
        ONE_ARGUMENT: Single(lambda: np.asarray(argument(held, q, v))),
        ONE_HOST: Single(lambda: np.asarray(mbd.forward_dynamics(held, q, v)[0])),
        ONE_NOTHING: Single(lambda: np.asarray(nothing(q, v))),
    }


def of_chain(bodies: int, batch: int, seconds: float) -> dict[str, Any]:
    mech, rng = chain(bodies), np.random.default_rng(2)
    own = scattered(mech, batch)
    q, v = rng.uniform(-1.0, 1.0, (2, batch, bodies))
    timed, first = programs(mech, own, q, v)
    one = lanes.explain(forward, sample(own, 0), q[0], v[0])
    found = {"first_call_seconds": first, "operations": one.operations, "flops": one.flops}
    results = {name: program.result for name, program in timed.items()}
    timed |= singles(mech, q[0], v[0])
    errors = {}
    if peer_pinocchio.version():
        nominal = of_mechanism(mech)
        trees = [of_mechanism(sample(own, i)) for i in range(batch)]
        timed[PEER_ONE], timed[PEER_OWN] = Aba([nominal], q, v), Aba(trees, q, v)
        truth = {FIXED: timed[PEER_ONE].result(), OWN: timed[PEER_OWN].result()}
        truth[ARGUMENT] = truth[FIXED]
        errors = {n: _error(results[n], truth[n]) for n in truth}
        pin, (model, _) = peer_pinocchio.pin, peer_pinocchio.model(nominal)
        data, tau = model.createData(), np.zeros(bodies)
        timed[ONE_PEER] = Single(lambda: np.array(pin.aba(model, data, q[0], v[0], tau)))
    return found | {"errors": errors, "seconds": by_turns(timed, seconds)}


def of_cassie(batch: int, seconds: float) -> dict[str, Any]:
    """The robot; its rows are redundant, so Pinocchio is given regularisation and iterations."""
    path = cassie.file()
    if path is None:
        raise SystemExit(f"Cassie needs the package {cassie.PACKAGE}: pip install {cassie.PACKAGE}")
    mech = cassie.mechanism(path)
    own, at = cassie.weighed(mech, batch), cassie.standing(mech)
    q, v = np.tile(at, (batch, 1)), cassie.speeds(mech, at, batch)
    timed, first = programs(mech, own, q, v)
    one = lanes.explain(forward, sample(own, 0), q[0], v[0])
    found = {"first_call_seconds": first, "operations": one.operations, "flops": one.flops}
    found["bodies"] = len(mech.bodies)
    results = {name: program.result for name, program in timed.items()}
    timed |= singles(mech, q[0], v[0])
    errors = {}
    if peer_pinocchio.version():
        nominal = of_mechanism(mech)
        theirs = speeds_for_peer(nominal, at, v)
        trees = [of_mechanism(sample(own, i)) for i in range(batch)]
        timed[PEER_ONE] = peer_pinocchio.Forward([nominal] * batch, q, theirs, PROXIMAL)
        timed[PEER_OWN] = peer_pinocchio.Forward(trees, q, theirs, PROXIMAL)
        truth = {FIXED: timed[PEER_ONE].result(), OWN: timed[PEER_OWN].result()}
        truth[ARGUMENT] = truth[FIXED]
        errors = {
            n: _error(results[n], accelerations_of_peer(nominal, at, v, truth[n])) for n in truth
        }
        single = peer_pinocchio.Forward([nominal], q[:1], theirs[:1], PROXIMAL)
        timed[ONE_PEER] = Single(lambda: single.result()[0])
    return found | {"errors": errors, "seconds": by_turns(timed, seconds)}


def _error(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference of a sample, relative to its largest acceleration."""
    return float(np.max(np.max(np.abs(ours - theirs), 1) / np.max(np.abs(theirs), 1)))


def main() -> None:
    _script.start(cache=False)
    keep_nothing()
    warnings.simplefilter("ignore")
    kind, bodies, batch, seconds = sys.argv[1:]
    jax.block_until_ready(jax.jit(lambda x: x + 1.0)(1.0))  # so that JAX is initialised
    if kind == "chain":
        found = of_chain(int(bodies), int(batch), float(seconds))
    else:
        found = of_cassie(int(batch), float(seconds))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
