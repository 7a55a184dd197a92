"""Long computations of Python at the bottom of a stack of their own.

CPython keeps frames in blocks of 16 KiB and returns a block to the system as soon as it is empty.
A function that is called a hundred thousand times just where a block ends costs two system calls
each time, which may double the time of a computation that is called deep inside JAX. In a thread of
its own the computation begins with an empty block.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def on_own_stack(compute: Callable[[], T]) -> T:
    """What `compute` returns or raises; it must not depend on settings of the calling thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(compute).result()
