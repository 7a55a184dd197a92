"""Large studies of the multi-link corner: rate, share of computing, memory, cores.

    python benchmarks/studies.py [--sweep 1000000] [--ride 100000] [--json FILE]

Each study runs in a process of its own into a store in a temporary folder (`--folder`): a kinematic
sweep of the wheel, and one second of motion after a release. Build tolerances: every half of every
joint has an error of its own. The first process compiles; what is told is of the second, with the
time to its first chunk apart. Samples are drawn beside the kernels: "drawing and computing" is the
time in which the run waits for either, "kernels" that in which kernels run. Run nothing else
meanwhile.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _script

_script.start()

STUDIES = {"sweep": 1_000_000, "ride": 100_000}
WARM = 600  # samples of the process that compiles


def study(name: str, samples: int) -> Any:
    """The study of a name."""
    from jaxmbd.campaign import corner_study
    from jaxmbd.campaign.suspension_corner import corner_experiment

    sweep, release = corner_experiment(duration=1.0).experiments.values()
    return corner_study(samples, experiment={"sweep": sweep, "ride": release}[name])


def resident() -> float:
    """Memory of this process now [GiB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


def measured(name: str, samples: int, path: str) -> dict[str, Any]:
    """Run a study in this process; figures from its first chunk to its last on disk."""
    made = study(name, samples)
    compute, computed, memory, reports = made.compute, [], [], []

    def timed(*args: Any) -> Any:
        begun = time.perf_counter()
        arrays = compute(*args)
        computed.append((begun, time.perf_counter(), time.process_time()))
        return arrays

    def told(report: Any) -> None:
        memory.append(resident())
        reports.append((time.perf_counter(), time.process_time(), report))

    made.compute = timed
    begun = time.perf_counter()
    results = made.run(path, progress=told)
    _, first, cpu = computed[0]
    wall, cores = reports[-1][0] - first, reports[-1][1] - cpu
    chunk = made.layout().chunk
    return {
        "samples": samples,
        "numbers drawn": made.sampler.dimensions,
        "chunk": chunk,
        "first chunk [s]": first - begun,
        "rate [1/s]": (samples - chunk) / wall,
        "drawing and computing": sum(r.computing for _, _, r in reports[1:]) / wall,
        "kernels": sum(end - start for start, end, _ in computed[1:]) / wall,
        "cores": cores / wall,
        "failures": int((results.status != 0).sum()),
        "memory after a tenth [GiB]": memory[len(memory) // 10],
        "memory at most [GiB]": max(memory),
        "peak of the process [GiB]": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "seconds": wall,
    }


def apart(name: str, samples: int, folder: Path) -> dict[str, Any]:
    """`measured` in a process of its own."""
    path = folder / f"{name}.zarr"
    command = [sys.executable, __file__, "--measure", name, str(samples), str(path)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
    shutil.rmtree(path)
    return json.loads(done.stdout.splitlines()[-1]) | {"store [GB]": size / 1e9}


def main() -> None:
    from throughput_cases.machine import machine, versions

    options = _parser().parse_args()
    found: dict[str, Any] = {"machine": machine(), "versions": versions(), "studies": {}}
    for name in STUDIES:
        samples = getattr(options, name)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            apart(name, WARM, Path(folder))
            row = found["studies"][name] = apart(name, samples, Path(folder))
        print(f"{name}: " + ", ".join(f"{k} {v:.4g}" for k, v in row.items()), flush=True)
        _script.write(options.json, found)


def _parser() -> Any:
    parser = _script.parser(__doc__)
    for name, samples in STUDIES.items():
        parser.add_argument(f"--{name}", type=int, default=samples, help="number of samples")
    parser.add_argument("--folder", type=Path, help="where the stores are written meanwhile")
    return parser


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        _, _, name, samples, path = sys.argv
        print(json.dumps(measured(name, int(samples), path)))
    else:
        main()
