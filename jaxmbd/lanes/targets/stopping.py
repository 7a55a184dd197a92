"""Stopping kernels that run on the host: a word that they read between pieces of their work.

The word counts: while it is odd, kernels stop and none begins; a kernel that finds another number
at its end than at its start returns an error. So no result of a stopped kernel is ever used.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from jaxmbd.lanes.codegen.loops import STOP_WORD

CANCELLED = 1  # of XLA_FFI_Error_Code

WORD = f"""
@lanes_stops = internal global i64 0
define ptr @{STOP_WORD}() {{
  ret ptr @lanes_stops
}}
"""
"""LLVM IR of the word, and of the function that returns its address."""

_LOCK = threading.Lock()
_WORDS: list[Any] = []


def found(address: int) -> None:
    """Use the word of a driver, by the address of its function; at exit all kernels stop."""
    word = ctypes.CFUNCTYPE(ctypes.c_void_p)(address)()
    _WORDS.append(ctypes.c_int64.from_address(word))
    _at_exit()


@cache
def _at_exit() -> None:
    # XLA waits for what runs when the process ends; that could be a run that was interrupted.
    atexit.register(_count)


@contextmanager
def stopped() -> Iterator[None]:
    """A context in which all kernels of the host stop."""
    with _LOCK:
        _count()
        try:
            yield
        finally:
            _count()


def _count() -> None:
    for word in _WORDS:
        word.value += 1
