"""Kernels compiled in processes of their own while others are measured.

NVIDIA's assembler takes up to a minute for the gradient of one mechanism. The processes leave the
machine code in a folder that only this run uses; the benchmark finds it there.

    python benchmarks/gpu_cases/prepare.py CASE STEPS DRAWN FOLDER
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu_cases.record import GRADIENT, ROLLOUT

WORKS = (ROLLOUT, GRADIENT)
CACHE = "JAXMBD_LANES_CACHE"
WAIT = 0.1  # seconds between looks


class Prepared:
    """Processes that compile the rollouts and gradients of a case each."""

    def __init__(self) -> None:
        self._room = tempfile.TemporaryDirectory(prefix="lanes-gpu-")
        self.folder = Path(self._room.name)
        os.environ[CACHE] = str(self.folder / "cache")
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, names: Iterable[str], *arguments: int) -> None:
        """One process a case; `arguments` are the steps and the number of different samples."""
        for name in names:
            words = [name, *map(str, arguments), str(self.folder)]
            self.run(name, [sys.executable, str(Path(__file__).resolve()), *words])

    def run(self, name: str, command: list[str]) -> None:
        """A process for a case."""
        environment = os.environ | {"JAX_PLATFORMS": "cpu"}  # the GPU is not for it
        quiet = subprocess.DEVNULL
        self._running[name] = subprocess.Popen(
            command, env=environment, stdout=quiet, stderr=quiet, start_new_session=True
        )

    def seconds(self, name: str, work: str, limit: float) -> float | None:
        """Wait for a kernel: the seconds that compiling took, or None if it was not prepared."""
        process, end = self._running.get(name), time.monotonic() + limit
        note = self.folder / f"{name} {work}"
        while process is not None and time.monotonic() < end:
            over = process.poll() is not None
            if note.exists():
                return float(note.read_text())
            if over:
                break
            time.sleep(WAIT)
        return None

    def close(self) -> None:
        """End what still runs, and remove the folder."""
        for process in self._running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # with its assembler
            process.wait()
        os.environ[CACHE] = ""
        self._room.cleanup()


def main(name: str, steps: str, drawn: str, folder: str) -> None:
    """Compile the kernels of a case, and note for each how many seconds it took."""
    import _script

    _script.start(cache=False)
    import jax

    from gpu_cases.record import LANES
    from gpu_cases.runs import Task

    for work in WORKS:
        task = Task(name, work, "float64", int(steps), int(drawn))
        start = time.perf_counter()
        traced = jax.jit(task.batched(LANES)).trace(*task.sample)
        with suppress(Exception):  # a driver may refuse to load what was compiled and is kept
            traced.lower(lowering_platforms=("cuda",))
        part = Path(folder) / f"{name} {work}.part"
        part.write_text(str(time.perf_counter() - start))
        part.rename(part.with_suffix(""))


if __name__ == "__main__":
    main(*sys.argv[1:])
