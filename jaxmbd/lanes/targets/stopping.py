"""Stopping kernels that run on the host: a word that they read between pieces of their work.

The word counts: while it is odd, kernels stop and none begins; a kernel that finds another number
at its end than at its start returns an error. So no result of a stopped kernel is ever used.
`finished` waits for results so that Ctrl-C stops what computes them.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import jax

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


T = TypeVar("T")
PATIENCE = 2.0
"""Seconds in which kernels stop; XLA's own programs cannot be stopped and are left alone then."""


def finished(results: T) -> T:
    """The results, once they are computed; concrete arrays only.

    Ctrl-C raises KeyboardInterrupt at once, as in `jax.block_until_ready`, and stops all kernels of
    lanes that run on the host. (A call of `numpy.asarray` that waits for a result sees Ctrl-C only
    when it is there.)

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> lanes.finished(jnp.ones(2)).tolist()
        [1.0, 1.0]
    """
    try:
        return jax.block_until_ready(results)
    except KeyboardInterrupt:
        with stopped():
            _await(jax.tree_util.tree_leaves(results))
        raise


def _await(arrays: list[Any]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not all(x.is_ready() for x in arrays):
        time.sleep(0.01)
