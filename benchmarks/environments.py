"""A card of environments for learning: speed, exactness, gradients, beside others.

    python benchmarks/environments.py [--only PARTS] [--lanes 1,64,4096] [--json FILE]

Each part runs in a process of its own, which is ended after 240 s, so that its memory is known; all
keep their kernels in one folder, empty at first, so that the first part of an environment compiles
most of them. Parts: each environment at each number of lanes (control steps a second, closure,
failures), by `jax.vmap` on the backend "xla", its gradient, gradients of long rollouts, and peers.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from typing import Any

import _script

_script.start(cache=False)

import os  # noqa: E402

from throughput_cases.machine import commit, machine, versions  # noqa: E402

MOST = 240.0  # seconds of a part
PLAIN = 256  # lanes of "xla" and of gradients
NAMES = ("cart-pole", "acrobot", "active corner", "five-bar", "six-loop biped")
HORIZONS = (32, 200, 1000)
COUNTS = {"steps": 100, "biped": 50, "plain": 20, "gradient lanes": 64}


def speed(name: str, lanes: int) -> dict[str, Any]:
    from environment_cases import speeds

    return speeds.card(name, lanes, COUNTS["biped" if "biped" in name else "steps"])


def plain(name: str) -> dict[str, Any]:
    """A few steps by both backends, the policy inside."""
    from environment_cases import speeds

    make, steps = speeds.ENVIRONMENTS[name], COUNTS["plain"]
    return {
        backend: speeds.rolled(make(backend=backend), PLAIN, steps) for backend in ("lanes", "xla")
    }


def gradient(name: str) -> dict[str, Any]:
    from environment_cases import speeds

    return speeds.sloped(speeds.ENVIRONMENTS[name](), PLAIN, COUNTS["plain"])


def energy(name: str) -> dict[str, Any]:
    from environment_cases import speeds

    return {"energy": speeds.energy(speeds.ENVIRONMENTS[name]())}


def long(name: str, steps: int, what: str) -> dict[str, Any]:
    from environment_cases import gradients

    if what == "cost":
        return gradients.cost(name, steps, COUNTS["gradient lanes"])
    return gradients.against(name, steps, 4)


def peer(name: str, lanes: int) -> dict[str, Any]:
    from environment_cases import peers

    steps = max(10, min(100, 20000 // lanes))
    found = {"MuJoCo": peers.by_mujoco(name, lanes, steps)}
    return found | {"Gymnasium": peers.by_gymnasium(name, lanes, steps)}


KINDS = {
    "speed": speed, "xla": plain, "gradient": gradient, "energy": energy, "long": long, "peer": peer
}  # fmt: skip


def parts(lanes: list[int]) -> list[tuple[Any, ...]]:
    """The parts: a kind and the arguments of its function."""
    found: list[tuple[Any, ...]] = [("speed", name, n) for name in NAMES for n in lanes]
    found += [("peer", name, n) for name in NAMES[:2] for n in lanes]
    found += [("energy", name) for name in NAMES if name != "active corner"]  # which dissipates
    for kind in ("gradient", "xla"):
        found += [(kind, name) for name in NAMES]
    for name in ("cart-pole", "five-bar"):
        found += [("long", name, n, what) for n in HORIZONS for what in ("cost", "errors")]
    return found


def label(part: tuple[Any, ...]) -> str:
    return ", ".join(map(str, part))


def in_process(part: tuple[Any, ...], kernels: str) -> dict[str, Any]:
    """A part's results, or why there are none; `kernels` is the folder of compiled ones."""
    command = [sys.executable, "-W", "ignore", __file__, "--part", json.dumps(part)]
    start = time.perf_counter()
    fresh = os.environ | {"JAXMBD_LANES_CACHE": kernels, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=MOST, env=fresh)
    except subprocess.TimeoutExpired:
        return {"none": f"no result within {MOST:.0f} s"}
    if ended.returncode:
        raise SystemExit(f"{label(part)}: {ended.stderr[-2000:]}")
    found = json.loads(ended.stdout.splitlines()[-1])
    return found | {"seconds": round(time.perf_counter() - start, 1)}


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--lanes", default="1,64,4096")
    parser.add_argument("--only", help="of the parts those whose label has this text")
    parser.add_argument("--part", help="run this part here, and print its results")
    options = parser.parse_args()
    if options.part:
        kind, *given = json.loads(options.part)
        found = KINDS[kind](*given)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0**2
        print(json.dumps(found | {"memory [GiB]": peak}))
        return
    facts = {"machine": machine(), "versions": versions(), "commit": commit()}
    facts["versions"]["gymnasium"] = version("gymnasium")
    results: dict[str, Any] = facts | {"counts": COUNTS | {"xla lanes": PLAIN}, "parts": {}}
    with tempfile.TemporaryDirectory() as kernels:
        for part in parts([int(n) for n in options.lanes.split(",")]):
            if options.only and options.only not in label(part):
                continue
            found = results["parts"][label(part)] = in_process(part, kernels)
            print(f"{label(part)}: {told(found)}", flush=True)
            _script.write(options.json, results)


def told(found: dict[str, Any]) -> str:
    """A part's results in a line."""
    fast = {k: v for k, v in found.items() if isinstance(v, dict) and v.get("steps/s")}
    words = [f"{k} {v['steps/s']:.3g}/s" for k, v in fast.items()]
    words += [f"{k} {v:.3g}" for k, v in found.items() if isinstance(v, float)]
    return ", ".join([*words, *filter(None, [found.get("none")])])


if __name__ == "__main__":
    main()
