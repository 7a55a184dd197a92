"""What parts of lanes are worth: kernels with and without each, timed in turn in one process.

    python benchmarks/lanes_ablation.py [--programs "rollout;…"] [--parts prefetch,…] [--json FILE]

For each program and part: CPU seconds of graph, code and XLA without the part, and of a call, both
as ratios to those with it (above one: the part pays). A part stays if it gains 15 % of a figure
that is published, or prevents an error. "removed" in the committed results has parts that gained
less, as they were measured before they went; the arrangement gains less too, and stays because
`throughput.py --against` without it found 8 to 10 % of all forward dynamics lost. "processes" has
CPU seconds of first calls.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

import _script

os.environ["JAXMBD_LANES_CACHE"] = ""
_script.start(cache=False)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from latency_cases.programs import open_chain  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd import lanes  # noqa: E402
from jaxmbd.lanes import kernel  # noqa: E402
from jaxmbd.lanes.codegen import memory, schedule, uses  # noqa: E402
from jaxmbd.lanes.trace import arrays  # noqa: E402

ROUNDS = 25
PARTS: dict[str, tuple[Any, str, Any]] = {
    "prefetch": (memory, "_prefetch", lambda *_: None),
    "arrangement and planned spills": (schedule, "SHORT", 1 << 40),
    "shared reciprocals": (uses, "may_invert", lambda _: False),
    "sine and cosine together": (uses, "_pair", lambda _: None),
    "rows from many arguments": (arrays, "_of_arguments", lambda *_: None),
    "columns computed again": (arrays, "_computed", lambda *_: None),
}
"""What takes a part away: a module, a name in it, and what is put there."""


def soft_corner() -> mbd.Mechanism:
    mech = mbd.zoo.multi_link()
    for joint in ("rev_ua", "univ_lat", "univ_tl"):
        mech = mbd.soften(mech, joint, (1e7, 1e7), (1e3, 1e3))
    return mech


def accelerations(mech: mbd.Mechanism, q: Any, v: Any) -> Any:
    return mbd.forward_dynamics(mech, q, v)[0]


def end(mech: mbd.Mechanism, q: Any, v: Any, **options: Any) -> Any:
    return mbd.simulate(mech, q, v, throw=False, **options).v[-1]


ROLLOUT = partial(end, t1=1e-2, dt=1e-3)
STIFF = partial(end, t1=5e-3, method=mbd.Rodas(rtol=1e-6))
PROGRAMS: dict[str, tuple[Callable[[], mbd.Mechanism], Any, int, bool, bool]] = {
    "multi_link": (mbd.zoo.multi_link, accelerations, 1024, False, False),
    "multi_link, each its own": (mbd.zoo.multi_link, accelerations, 1024, True, False),
    "multi_link, 16384 of them": (mbd.zoo.multi_link, accelerations, 16384, True, False),
    "multi_link gradient": (mbd.zoo.multi_link, accelerations, 1024, False, True),
    "rollout": (mbd.zoo.multi_link, ROLLOUT, 256, False, False),
    "rollout gradient": (mbd.zoo.multi_link, ROLLOUT, 256, False, True),
    "stiff": (soft_corner, STIFF, 64, False, False),
    "chain20": (partial(open_chain, 20), accelerations, 1024, False, False),
}
"""Mechanism, function, samples, whether each has numbers of its own, whether it is the gradient."""


def program(name: str) -> tuple[Callable[[], Any], tuple[Any, ...]]:
    """What makes a program anew, and its arguments."""
    make, fn, batch, each, gradient = PROGRAMS[name]
    mech, rng = make(), np.random.default_rng(1)
    q = jnp.tile(mbd.neutral(mech), (batch, 1))
    v = jnp.asarray(0.01 * rng.normal(size=(batch, mbd.topology(mech).nv)))

    def near(x: Any) -> Any:
        return np.asarray(x) * (1.0 + 1e-3 * rng.normal(size=(batch, *np.shape(x))))

    def made() -> Any:
        value = lanes.vmap(partial(fn), in_axes=(0 if each else None, 0, 0), strict=True)
        if not gradient:
            return jax.jit(value)
        return jax.jit(jax.grad(lambda *x: jnp.sum(value(*x) ** 2)))

    return made, (jax.tree_util.tree_map(near, mech) if each else mech, q, v)


def measured(name: str, parts: list[str]) -> dict[str, Any]:
    """A program without each of some parts, as ratios to what it is with all."""
    made, args = program(name)
    runs, compiling = {}, {}
    for part in ("", *parts):
        with ExitStack() as stack:
            if part:
                stack.enter_context(patch.object(*PARTS[part]))
            jax.clear_caches()
            kernel.CODES.things.clear()
            traced = made().trace(*args)
            begun = time.process_time()
            runs[part] = traced.lower().compile()
            compiling[part] = time.process_time() - begun
            jax.block_until_ready(runs[part](*args))
    times: dict[str, list[float]] = {part: [] for part in runs}
    for _ in range(ROUNDS):
        for part, run in runs.items():
            begun = time.process_time()
            for _ in range(5):
                jax.block_until_ready(run(*args))
            times[part].append((time.process_time() - begun) / 5)
    found = {}
    for part in parts:
        ratio = np.median(np.divide(times[part], times[""]))
        least = min(times[part]) / min(times[""])
        found[part] = {
            "compiling": round(compiling[part] / compiling[""], 2),
            "call": round(float(ratio), 3),
            "fastest call": round(least, 3),
        }
    return found


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--programs", default=";".join(PROGRAMS), help="between semicolons")
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    found: dict[str, Any] = {"jax": jax.__version__, "programs": {}}
    for name in options.programs.split(";"):
        found["programs"][name] = measured(name, options.parts.split(","))
        for part, row in found["programs"][name].items():
            print(f"{name:26} without {part:26} {row}", flush=True)
        _script.write(options.json, found)


if __name__ == "__main__":
    main()
