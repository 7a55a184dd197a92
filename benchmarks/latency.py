"""Time to the first result: cold, in a second process, and after each kind of change.

    python benchmarks/latency.py [--programs chain20,demo] [--works value] [--json FILE]

Every program has caches of its own, empty at first, and runs in two processes, one after the other.
The first calls the function, and calls it again with another batch size, another number, and
another structure; the second calls it once, with the caches on disk filled. Seconds are CPU (of all
threads) and wall; run nothing else meanwhile. The demonstration is run twice as a user runs it,
into two folders. Python's bytecode is there from the beginning, as after an installation.
"""

from __future__ import annotations

import compileall
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _script

_script.start(cache=False)

from latency_cases.programs import BATCH, GRADIENT, PROGRAMS, STEPS, VALUE  # noqa: E402
from latency_cases.stages import STAGES  # noqa: E402
from throughput_cases.machine import machine, versions  # noqa: E402

DEMO = "demo"


def environment(folder: Path) -> dict[str, str]:
    """The environment of a process whose caches are in a folder."""
    paths = [str(_script.HERE), str(_script.HERE.parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAXMBD_LANES_CACHE": str(folder / "lanes"),
    }


def run(command: list[str], folder: Path) -> str:
    """Run a command with its caches in `folder`; what it prints."""
    done = subprocess.run(
        [sys.executable, *command],
        env=environment(folder),
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return done.stdout


def program(name: str, work: str) -> dict[str, Any]:
    """Seconds of all calls of one program."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "latency_cases.child", name, work]
        found = json.loads(run(command, Path(folder)).splitlines()[-1])
        again = json.loads(run([*command, "again"], Path(folder)).splitlines()[-1])
        return {**found, "second process": again["first"]}


def demonstration() -> dict[str, Any]:
    """CPU and wall seconds of `jaxmbd demo --quick`, cold and again, imports included."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for call in ("first", "second process"):
            before, start = _cpu_of_children(), time.perf_counter()
            run(["-m", "jaxmbd", "demo", "--quick", "--out", call], Path(folder))
            found[call] = {
                "all": (_cpu_of_children() - before, time.perf_counter() - start),
            }
        return found


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


CALLS = ("second process", "batch size", "number", "structure")


def line(title: str, found: dict[str, Any]) -> str:
    """A row of the table: stages of the cold call, then the sums of all calls; CPU seconds."""
    first = found["first"]
    stages = "".join(f"{first[s][0]:>13.2f}" if s in first else f"{'':>13}" for s in STAGES)
    sums = [sum(cpu for cpu, _ in found[call].values()) for call in ("first", *CALLS[:1])]
    sums += [
        sum(c for c, _ in found[call].values()) if call in found else None for call in CALLS[1:]
    ]
    wall = sum(w for _, w in first.values())
    cells = "".join(f"{'':>10}" if x is None else f"{x:>10.2f}" for x in sums)
    return f"{title:30}{stages} |{cells}{wall:>10.2f}"


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--programs", default=",".join([*PROGRAMS, DEMO]))
    parser.add_argument("--works", default="value,gradient")
    options = parser.parse_args()
    compileall.compile_dir(_script.HERE.parent / "jaxmbd", quiet=1)
    found: dict[str, Any] = {
        "machine": machine(),
        "versions": versions(),
        "batch": BATCH,
        "steps": STEPS,
        "seconds": {},
    }
    head = "".join(f"{s:>13}" for s in STAGES)
    calls = "".join(f"{c:>10}" for c in ("cold", "again", "batch", "number", "structure", "wall"))
    print(f"CPU seconds of the first call by stage, and of other calls\n{'':30}{head} |{calls}")
    for name in options.programs.split(","):
        works = (VALUE,) if name == DEMO else (VALUE, GRADIENT)
        for work in (w for w in works if w in options.works.split(",")):
            row = demonstration() if name == DEMO else program(name, work)
            title = name if name == DEMO else f"{name} {work}"
            found["seconds"][title] = row
            print(line(title, row), flush=True)
            _script.write(options.json, found)


if __name__ == "__main__":
    main()
