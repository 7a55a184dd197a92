"""First calls in a new process: of a file of `lanes.export`, and ordinary ones.

    python benchmarks/exported.py [--cases dynamics,gradient,rollout] [--json FILE]

Each call is the first one of a process of its own. An ordinary one is cold (nothing in the caches
of JAX and lanes) or warm (with what the cold one left there). Where a file is called the caches are
empty. All results must be equal to the bit. Seconds are wall time; run nothing else meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _script

SAMPLES = 1000


def dynamics() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Accelerations of a multi-link suspension, whose numbers are arguments too."""
    import jaxmbd as mbd
    from jaxmbd import lanes

    mech = mbd.zoo.multi_link()
    q, v = _states(mbd.assemble(mech).q, mbd.topology(mech).nv)
    call = lanes.vmap(lambda m, q, v: mbd.forward_dynamics(m, q, v)[0], in_axes=(None, 0, 0))
    return call, (mech, q, v)


def gradient() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A sum over final speeds of runs of a five-bar, and its gradient by all its numbers."""
    import jax
    import jax.numpy as jnp

    import jaxmbd as mbd
    from jaxmbd import lanes

    mech = mbd.zoo.five_bar()
    q, v = _states(mbd.assemble(mech).q, mbd.topology(mech).nv)

    def run(mech: Any, q: Any, v: Any) -> Any:
        return mbd.simulate(mech, q, v, t1=0.1, dt=1e-3, throw=False, method="rk4").v[-1]

    def total(mech: Any, q: Any, v: Any) -> Any:
        return jnp.sum(lanes.vmap(run, in_axes=(None, 0, 0))(mech, q, v) ** 2)

    return jax.value_and_grad(total), (mech, q[:100], v[:100])


def rollout() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Episodes of `ml.five_bar_reach` with a network of 32 and 32 hidden numbers as policy."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from jaxmbd import ml

    env, rng = ml.five_bar_reach(), np.random.default_rng(0)
    sizes = (env.size, 32, 32, len(env.names))
    params = [0.3 * rng.standard_normal(s) for s in zip(sizes, sizes[1:], strict=False)]

    def policy(params: Any, observation: Any, _: Any) -> Any:
        x = observation
        for layer in params[:-1]:
            x = jnp.tanh(x @ layer)
        return x @ params[-1]

    def run(params: Any, words: Any) -> Any:
        return ml.rollout(env, policy, params, jax.random.wrap_key_data(words), 100)

    words = jax.random.key_data(ml.lane_keys(0, SAMPLES))
    return jax.vmap(run, in_axes=(None, 0)), (params, words)


CASES = {f.__name__: f for f in (dynamics, gradient, rollout)}


def _states(q: Any, nv: int) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    spread = np.broadcast_to(np.asarray(q), (SAMPLES, len(q))).copy()
    return spread, 0.1 * rng.standard_normal((SAMPLES, nv))


# One process


def child(name: str, how: str, folder: str) -> dict[str, Any]:
    """The seconds of a first call; its arguments and results are in the folder, as are files."""
    start = time.perf_counter()
    _script.start(cache=False)
    import jax

    from jaxmbd import lanes

    seconds = {"import": time.perf_counter() - start}
    file, numbers = Path(folder) / f"{name}.lanes", Path(folder) / f"{name}.pickle"
    if how == "file":
        return seconds | _from_file(lanes.load_exported, file, numbers)
    start = time.perf_counter()
    fn, args = CASES[name]()
    if how == "export":
        lanes.export(fn, args).save(file)
        return {"export": time.perf_counter() - start, "megabytes": file.stat().st_size / 1e6}
    seconds["prepare"] = time.perf_counter() - start
    results, seconds["first call"] = _timed(jax.jit(fn), *args)
    _keep(numbers, args, results)
    return seconds


def _from_file(load: Any, file: Path, numbers: Path) -> dict[str, Any]:
    import pickle

    args, expected = pickle.loads(numbers.read_bytes())
    start = time.perf_counter()
    fn = load(file)
    loaded = time.perf_counter() - start
    results, first = _timed(fn, *args)
    _, second = _timed(fn, *args)
    same = _bits(results) == expected
    return {"load": loaded, "first call": first, "second call": second, "same bits": same}


def _timed(fn: Any, *args: Any) -> tuple[Any, float]:
    import jax

    start = time.perf_counter()
    return jax.block_until_ready(fn(*args)), time.perf_counter() - start


def _keep(path: Path, args: Any, results: Any) -> None:
    import pickle

    import jax
    import numpy as np

    plain = jax.tree.map(np.asarray, args)
    path.write_bytes(pickle.dumps((plain, _bits(results))))


def _bits(tree: Any) -> list[bytes]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    keyed = jax.dtypes.prng_key
    leaves = jax.tree.leaves(tree)
    plain = [jax.random.key_data(x) if jnp.issubdtype(x.dtype, keyed) else x for x in leaves]
    return [np.asarray(x).tobytes() for x in plain]


# All of them


def measure(name: str) -> dict[str, Any]:
    """All first calls of a case."""
    with tempfile.TemporaryDirectory() as folder:
        found = {"cold": _process(name, "call", folder, "caches")}
        found["warm"] = _process(name, "call", folder, "caches")
        found["export"] = _process(name, "export", folder, "caches")
        found["file"] = _process(name, "file", folder, "none")
        return found


def _process(name: str, how: str, folder: str, caches: str) -> dict[str, Any]:
    place = Path(folder) / caches
    env = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(place / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAXMBD_LANES_CACHE": str(place / "lanes"),
    }
    command = [sys.executable, __file__, "--child", name, how, folder]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(*sys.argv[2:5])))
        return
    parser = _script.parser(__doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    options = parser.parse_args()
    found = {name: measure(name) for name in options.cases.split(",")}
    for name, ways in found.items():
        print(name)
        for way, seconds in ways.items():
            print(f"  {way:8}", ", ".join(f"{k} {_shown(x)}" for k, x in seconds.items()))
    _script.write(options.json, found)
    if not all(ways["file"]["same bits"] for ways in found.values()):
        raise SystemExit("results differ")


def _shown(x: Any) -> str:
    return str(x) if isinstance(x, bool) else f"{x:.3f}"


if __name__ == "__main__":
    main()
