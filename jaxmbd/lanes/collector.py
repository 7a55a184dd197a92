"""Python's cyclic garbage collector, paused while functions are traced and compiled.

Tracing makes hundreds of thousands of objects that live until the kernel is compiled; collections
in between visit them, and all of JAX's, again and again, and find nothing: a fifth of the time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_paused = 0
_was_enabled = True


@contextmanager
def collector_paused() -> Iterator[None]:
    """A context without collections; may be nested, and entered by several threads at once.

    The collector is as the user had set it when the last of them leaves.
    """
    global _paused, _was_enabled
    with _LOCK:
        if _paused == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _paused += 1
    try:
        yield
    finally:
        with _LOCK:
            _paused -= 1
            if _paused == 0 and _was_enabled:
                gc.enable()
