"""Measurements that need a process of their own; prints one line of JSON.

    python -m throughput_cases.child first CASE WORK STEPS BATCH [COLUMN]
    python -m throughput_cases.child memory CASE WORK STEPS BATCH [COLUMN]

`first`: seconds of a first call, with tracing and compiling, without any cache. `memory`: largest
growth of the process in bytes while the compiled program runs (Linux).
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def in_child(kind: str, *arguments: Any, limit: float = 300.0) -> dict[str, Any] | str:
    """Run a measurement in a new process; returns a text with the reason if it fails."""
    folders = [str(HERE.parent), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-m", "throughput_cases.child", kind, *map(str, arguments)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"more than {limit:.0f} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return json.loads(done.stdout.splitlines()[-1])


def _first(batched: Any, arguments: Any) -> dict[str, float]:
    import jax

    start = time.perf_counter()
    jax.block_until_ready(jax.jit(batched)(*arguments))
    first = time.perf_counter() - start
    return {"seconds": first}


def _memory(batched: Any, arguments: Any) -> dict[str, float]:
    import jax

    run = jax.jit(batched).lower(*arguments).compile()
    ctypes.CDLL(None).malloc_trim(0)  # what compiling left behind
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak memory
    before = _status("VmRSS")
    jax.block_until_ready(run(*arguments))
    return {"bytes": _status("VmHWM") - before}


def _status(key: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return 1024.0 * float(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {key}")


def main() -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    from throughput_cases.catalogue import CASES
    from throughput_cases.columns import LANES, batchers, keep_nothing
    from throughput_cases.work import KERNELS, PLAIN, arguments, function

    keep_nothing()
    kind, name, work, steps, batch = sys.argv[1:6]
    column = sys.argv[6] if len(sys.argv) > 6 else LANES
    case = CASES[name]
    data = arguments(case, work, int(batch), "float64", rest=True)
    backend = KERNELS if column == LANES else PLAIN
    batched = batchers()[column](function(case, work, int(steps), backend))
    jax.block_until_ready(jax.jit(lambda x: x + 1.0)(data[1]))  # so that JAX is initialised
    measure = {"first": _first, "memory": _memory}[kind]
    print(json.dumps(measure(batched, data)))


if __name__ == "__main__":
    main()
