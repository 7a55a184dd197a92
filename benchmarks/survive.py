"""Does a study survive? Kills at random moments, full disks, flipped bits, two processes at once.

    python benchmarks/survive.py [--kills 100] [--workers 100] [--drivers 50] [--json PATH]

Every store that was killed and run again must be byte for byte that of an uninterrupted run.
Exits with 1 otherwise.
"""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import _script

_script.start()

from survive_cases import damage, kills, stores, study  # noqa: E402
from survive_cases.cluster import Cluster, cluster  # noqa: E402

CHUNKS, ROWS = 60, 2000
WORKERS = 2
PAUSE = 4.0
"""Most seconds between two kills of workers: they need two or three to start anew."""


def by_dask(path: Path, address: str, chunks: int) -> None:
    from distributed import Client

    with Client(address) as client:
        study.run(path, chunks, ROWS, client.get_executor())


def by_processes(path: Path) -> None:
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        study.run(path, 2 * CHUNKS, ROWS, pool)


def trials(folder: Path, options: Namespace) -> Iterator[tuple[str, Any]]:
    here = partial(study.run, chunks=CHUNKS, rows=ROWS)
    place = {"folder": folder, "seed": options.seed}
    out = kills.killed_runs(here, kills=options.kills, settle=lambda child: None, **place)
    yield "one process", out
    whole, copy = folder / "whole.zarr", folder / "first.zarr"
    yield "two processes", kills.two_at_once(here, folder / "two.zarr", whole)
    full = partial(damage.disk_full, here, whole=whole, sizes=options.damages, **place)
    yield "disk full", kills.told(full)
    yield "read-only", kills.told(partial(damage.read_only, here, folder))
    mend = partial(damage.damaged, here, copy, whole, options.damages, options.seed)
    yield from kills.told(mend).items()
    if options.pools:
        pool = {"folder": _made(folder / "pool"), "seed": options.seed, "workers": WORKERS}
        out = kills.killed_runs(by_processes, kills=options.pools, settle=kills.gone, **pool)
        yield "driver of a process pool", out
    if options.drivers or options.workers:
        with cluster(WORKERS) as made:
            yield from dask_trials(folder, options, made)


def dask_trials(folder: Path, options: Namespace, made: Cluster) -> Iterator[tuple[str, Any]]:
    act = partial(by_dask, address=made.address, chunks=CHUNKS)
    if options.drivers:
        out = kills.killed_runs(
            act,
            _made(folder / "drivers"),
            options.drivers,
            options.seed,
            lambda child: time.sleep(0.5),  # workers end the chunks that they have begun
            WORKERS,
        )
        yield "driver of Dask workers", out
    act = partial(by_dask, address=made.address, chunks=10 * CHUNKS)
    if options.workers:
        place = (_made(folder / "workers"), options.workers, options.seed)
        yield "Dask workers", kills.killed_workers(act, *place, made.workers, PAUSE)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _anywhere(found: Any, folder: str) -> Any:
    """The result without the name of the temporary folder."""
    if isinstance(found, dict):
        return {name: _anywhere(x, folder) for name, x in found.items()}
    return found.replace(folder, "…") if isinstance(found, str) else found


def good(found: Any) -> bool:
    """Whether a trial ended as it must."""
    if isinstance(found, stores.Outcome):
        return found.good
    if isinstance(found, dict) and "files" in found:
        return found["files"] == found["found"] == found["identical"]
    if isinstance(found, dict) and "disks" in found:
        return len(set(found.values())) == 1
    return bool(found["identical"] and found["error"] if isinstance(found, dict) else found)


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--kills", type=int, default=100, help="of a run in one process")
    parser.add_argument("--pools", type=int, default=10, help="kills of a process pool's driver")
    parser.add_argument("--drivers", type=int, default=50, help="kills of the driver of workers")
    parser.add_argument("--workers", type=int, default=100, help="kills of Dask workers")
    parser.add_argument("--damages", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    results, bad = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name, found in trials(Path(folder), options):
            results[name] = found._asdict() if isinstance(found, stores.Outcome) else found
            results[name] = _anywhere(results[name], folder)
            bad += [] if good(found) else [name]
            print(f"{name}: {'ok' if good(found) else 'BAD'}, {results[name]}", flush=True)
    _script.write(options.json, results)
    print("not as it must be: " + ", ".join(bad) if bad else "all as it must be")
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
