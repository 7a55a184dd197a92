"""A study by one, two and four Dask workers of one core each: the same bytes, and how fast.

    python benchmarks/workers.py [--samples 32768] [--workers 1 2 4] [--json PATH]

The study is the demonstration's: a published multi-link corner with build scatter, its sweep over
wheel travel and its motion after a release. Each worker has a core of its own as far as there are
so many. The last line is this process alone, on all cores. Exits with 1 if a store differs.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import _script

_script.start()

from survive_cases.stores import files  # noqa: E402

from jaxmbd.campaign import Study, corner_study  # noqa: E402
from jaxmbd.campaign.chunk_runner import ChunkReport, run_chunks  # noqa: E402
from jaxmbd.campaign.session import session  # noqa: E402

CHUNK = 1024
WARM = 8
"""Chunks that are run before, so that every worker has compiled the study."""


def timed(path: Path, study: Study, executor: Executor | None) -> dict[str, Any]:
    """Run the study, with everything compiled before."""
    reports: list[ChunkReport] = []
    layout, attributes = study.layout(), study.attributes()
    with session(path.with_name(f"warm {path.name}"), layout, attributes) as opened:
        run_chunks(opened, study, chunks=range(WARM), executor=executor)
    with session(path, layout, attributes) as opened:
        begun = time.perf_counter()
        run_chunks(opened, study, executor=executor, progress=reports.append)
        seconds = time.perf_counter() - begun
    return {
        "samples a second": study.samples / seconds,
        "seconds": seconds,
        "computing": sum(r.computing for r in reports),
        "storing": sum(r.storing for r in reports),
        "processes": len({r.where for r in reports}),
    }


def pin(cores: dict[int, int]) -> None:
    """Keep a worker, and all threads that it will start, to one core."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {cores[os.getpid()]})


def by_workers(path: Path, study: Study, workers: int) -> dict[str, Any]:
    from distributed import Client, LocalCluster

    cores = sorted(os.sched_getaffinity(0))
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        pids = sorted(client.run(os.getpid).values())
        client.run(pin, {pid: cores[i % len(cores)] for i, pid in enumerate(pids)})
        return timed(path, study, client.get_executor())


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--samples", type=int, default=32768)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    study = corner_study(options.samples, chunk=CHUNK)
    print("| workers | samples/s | to one worker | computing | storing | same bytes |")
    print("| --- | --- | --- | --- | --- | --- |")
    table, whole, first = {}, None, None
    with tempfile.TemporaryDirectory() as folder:
        for n in [*options.workers, 0]:
            path = Path(folder) / f"{n}.zarr"
            if n:
                row = by_workers(path, study, n)
            else:
                row = timed(path, study, None)
            found = files(path)
            whole, first = whole or found, first or row
            row["same bytes"] = found == whole
            name = str(n) if n else "embedded"
            table[name] = row
            rate, one = row["samples a second"], first["samples a second"]
            print(
                f"| {name} | {rate:.0f} | {rate / one:.2f} | {row['computing']:.1f} s "
                f"| {row['storing']:.1f} s | {'yes' if row['same bytes'] else 'NO'} |",
                flush=True,
            )
    _script.write(options.json, {"cores": os.cpu_count(), "workers": table})
    return not all(row["same bytes"] for row in table.values())


if __name__ == "__main__":
    raise SystemExit(main())
