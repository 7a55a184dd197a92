"""What is known of a chunk when it is stored, and of a run when it ends."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np


class Work(Protocol):
    """What a study is to those who run it.

    It may also have ``prepare(start, stop)``: embedded runs call it for the next chunk while one is
    computed, and give `compute` what it returns as a third argument.
    """

    def compute(self, start: int, stop: int, /) -> Mapping[str, Any]:
        """Every field of the layout for samples from `start` to before `stop`."""
        ...


class ChunkReport(NamedTuple):
    """One stored chunk.

    Attributes:
        chunk: its number.
        rows: number of its samples.
        failures: how many of them have a ``status`` that is not 0.
        computing: seconds in which it was computed.
        storing: seconds in which it was written.
        where: host and process.
        unlike: in what that process differs from the one that runs the study (versions, processor).
    """

    chunk: int
    rows: int
    failures: int
    computing: float
    storing: float
    where: str
    unlike: tuple[str, ...] = ()


class RunReport(NamedTuple):
    """One run.

    Attributes:
        chunks, rows, failures: computed in this run.
        computing, storing: seconds, summed over all chunks (and so over all workers).
        seconds: from its begin to its end.
    """

    chunks: int = 0
    rows: int = 0
    failures: int = 0
    computing: float = 0.0
    storing: float = 0.0
    seconds: float = 0.0

    def with_chunk(self, report: ChunkReport, seconds: float) -> RunReport:
        """The same run with one more chunk."""
        return RunReport(
            self.chunks + 1,
            self.rows + report.rows,
            self.failures + report.failures,
            self.computing + report.computing,
            self.storing + report.storing,
            seconds,
        )


def failures(arrays: Mapping[str, Any]) -> int:
    """Number of samples of a chunk that failed."""
    return int(np.count_nonzero(arrays["status"])) if "status" in arrays else 0


def here() -> str:
    """Host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def log_file(path: Path) -> Path:
    """The record of runs, beside the store: JSON lines. Nothing ever needs it."""
    return path.with_name(path.name + ".log")


def note(path: Path, event: str, **about: Any) -> None:
    """Append a line to the record; it does not matter if that fails."""
    line = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "where": here(), "event": event, **about}
    try:
        with open(log_file(path), "ab", buffering=0) as file:
            file.write((json.dumps(line) + "\n").encode())
    except OSError:
        pass
