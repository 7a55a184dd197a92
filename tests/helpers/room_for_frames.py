"""Room for Python's frames: calls that cross the end of a piece of its stack cost a system call.

CPython keeps frames in pieces of 16 KiB and gives a piece back to the system when it is empty.
Where calls cross its end again and again, as in tracing, that took an eighth of the suite's time.
"""

from collections.abc import Callable
from typing import Any


def with_room(fn: Callable[[], Any]) -> Any:
    """``fn()``, called from a frame so large that 0.5 MiB of its piece are left for others."""
    return fn()


with_room.__code__ = with_room.__code__.replace(co_stacksize=70_000)
