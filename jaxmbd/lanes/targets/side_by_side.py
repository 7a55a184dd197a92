"""Modules of one kernel, compiled side by side and while more of them are being written.

Each has a disk entry of its own, under a digest of its text, so that nothing is compiled twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Self, TypeVar

T = TypeVar("T")

MOST = 8
"""Most threads; Python writes modules hardly faster than these compile them."""


class SideBySide(Generic[T]):
    """Runs a function on texts in threads, as a context.

    If the context is left by an error or by Ctrl-C, texts that wait are dropped; what a thread has
    begun it ends in the background.

    Example:
        >>> from jaxmbd.lanes.targets.side_by_side import SideBySide
        >>> with SideBySide(str.encode) as work:
        ...     work.add("a module")
        ...     work.results()
        [b'a module']
    """

    def __init__(self, compute: Callable[[str], T]):
        self._compute = compute
        self._threads: ThreadPoolExecutor | None = None
        self._found: list[Future[T]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def __len__(self) -> int:
        return len(self._found)

    def add(self, text: str) -> None:
        """Begin with a text."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_threads(), "lanes-compiler")
        self._found.append(self._threads.submit(self._compute, text))

    def results(self) -> list[T]:
        """The results, in the order of their texts; raises what a computation has raised."""
        return [found.result() for found in self._found]


def _threads() -> int:
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        cores = os.cpu_count() or 1
    return min(MOST, cores)
