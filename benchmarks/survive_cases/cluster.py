"""A Dask cluster in a process of its own, which tells its workers' process numbers on request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Cluster:
    """A running cluster: `address` of its scheduler."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address: str = self.ask("address")

    def ask(self, word: str):
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def workers(self) -> list[int]:
        """Process numbers of the workers that live."""
        return self.ask("workers")


@contextmanager
def cluster(workers: int) -> Iterator[Cluster]:
    """Workers of one core each, which are started anew when they die."""
    here = Path(__file__).resolve()
    paths = [str(here.parents[2]), str(here.parents[1]), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, __file__, str(workers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    try:
        yield Cluster(process)
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait()


def _serve() -> None:
    import distributed

    with distributed.LocalCluster(
        n_workers=0, dashboard_address=None, silence_logs="CRITICAL"
    ) as made:
        address = made.scheduler_address
        workers = [_worker(address) for _ in range(int(sys.argv[1]))]
        over = threading.Event()
        guard = threading.Thread(target=_replace_dead, args=(workers, address, over))
        guard.start()
        for line in sys.stdin:
            answer = {"address": address, "workers": [w.pid for w in workers]}[line.strip()]
            print(json.dumps(answer), flush=True)
        over.set()
        guard.join()
        for worker in workers:
            worker.kill()
            worker.wait()


def _worker(address: str) -> subprocess.Popen[bytes]:
    words = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _replace_dead(
    workers: list[subprocess.Popen[bytes]], address: str, over: threading.Event
) -> None:
    """As a job queue would; Dask's own guard of workers gives up if one dies while it starts."""
    while not over.wait(0.1):
        for i, worker in enumerate(workers):
            if worker.poll() is not None:
                workers[i] = _worker(address)


if __name__ == "__main__":
    _serve()
