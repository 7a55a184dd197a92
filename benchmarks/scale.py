"""Speed over the size of a chain, and of a robot with closed loops, against Pinocchio; one core.

    python benchmarks/scale.py --json benchmarks/results/scale.json
    python benchmarks/scale.py --bodies 5 40 --no-robot

Forward dynamics of open chains of revolutes against `aba`, in float64: a batch whose mechanism is
fixed (a constant of the program), one whose mechanism is an argument that all samples share, and
one in which every sample has numbers of its own; then single calls from Python. Cassie's loops are
constraints, against `constraintDynamics`. Every system runs in a process of its own, cold. The
time of an empty call from Python is subtracted from Pinocchio's in a batch, not from single calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import _script
from throughput_cases.machine import commit, machine, versions

BODIES = (5, 10, 20, 40, 60)
BATCH = 1024


def measured(kind: str, bodies: int, batch: int, seconds: float) -> dict[str, Any]:
    """What the process of one system finds."""
    paths = [str(_script.HERE), str(_script.HERE.parent), os.environ.get("PYTHONPATH", "")]
    flags = "--xla_cpu_multi_thread_eigen=false " + os.environ.get("XLA_FLAGS", "")
    path = os.pathsep.join(filter(None, paths))
    done = subprocess.run(
        [sys.executable, "-m", "scale_cases.child", kind, *map(str, (bodies, batch, seconds))],
        env=os.environ | {"PYTHONPATH": path, "XLA_FLAGS": flags},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


COLUMNS = (
    ("mechanism fixed", "Pinocchio, one model"),
    ("mechanism an argument", "Pinocchio, one model"),
    ("numbers of its own", "Pinocchio, a model each"),
)
SINGLES = ("one: trivial jit", "one: jit, fixed", "one: jit, argument", "one: host call")
HEAD = (
    f"{'':>10}{'ns a sample, and Pinocchio’s over ours':^44}{'µs of a single call':^46}\n"
    f"{'bodies':>10}{'fixed':>14}{'argument':>14}{'own':>14}  |{'trivial':>9}{'fixed':>9}"
    f"{'argument':>9}{'host':>9}{'Pin.':>8}  |{'flops':>11}{'a body':>8}{'first [s]':>10}"
    f"{'error':>9}"
)


def line(name: str, bodies: int, found: dict[str, Any], batch: int) -> str:
    """A row of the table; without Pinocchio its columns are empty."""
    seconds, cells = found["seconds"], []
    for ours, peer in COLUMNS:
        ratio = f" ({seconds[peer] / seconds[ours]:.1f}x)" if peer in seconds else ""
        cells.append(f"{f'{1e9 * seconds[ours] / batch:.0f}{ratio}':>14}")
    cells.append("  |")
    cells += [f"{1e6 * seconds[one]:>9.1f}" for one in SINGLES]
    peer = seconds.get("one: Pinocchio")
    cells.append(f"{'' if peer is None else f'{1e6 * peer:.1f}':>8}  |")
    cells.append(f"{found['flops']:>11}{found['flops'] / bodies:>8.0f}")
    error = max(found["errors"].values(), default=None)
    cells.append(f"{found['first_call_seconds']:>10.1f}")
    cells.append(f"{'' if error is None else f'{error:.0e}':>9}")
    return f"{name:>10}" + "".join(cells)


def main(arguments: list[str] | None = None) -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--bodies", nargs="*", type=int, default=list(BODIES))
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--no-robot", action="store_true", help="leave Cassie out")
    parser.add_argument(
        "--seconds-per-measurement", type=float, default=2.0, help="of repeats of each column"
    )
    options = parser.parse_args(arguments)
    batch, seconds = options.batch, options.seconds_per_measurement
    facts = machine()
    if hasattr(os, "sched_setaffinity"):  # for the processes that measure
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    head = {
        "machine": facts,
        "versions": versions(),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "batch": batch,
        "rows": [],
    }
    print(
        f"{facts['processor']} ({facts['vector_unit']}), one core, load {facts['load_at_start']}; "
        f"commit {head['commit']}\nbatch {batch}, float64\n{HEAD}"
    )
    systems = [(f"{n}", "chain", n) for n in options.bodies]
    if not options.no_robot:
        systems.append(("Cassie", "cassie", 0))
    for name, kind, bodies in systems:
        found = measured(kind, bodies, batch, seconds)
        head["rows"].append({"system": kind, "bodies": bodies, **found})
        print(line(name, found.get("bodies", bodies), found, batch), flush=True)
        if "note" in found:
            print(f"{'':>10}{found['note']}")
        _script.write(options.json, head)
    return 0


if __name__ == "__main__":
    sys.exit(main())
