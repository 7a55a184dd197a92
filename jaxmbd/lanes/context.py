"""The contexts in which lanes traces and runs functions.

Python's cyclic garbage collector pauses in them. Tracing makes hundreds of thousands of objects
that live until the kernel is compiled; collections in between visit them, and all of JAX's, again
and again, and find nothing: a fifth of the time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import jax
from jax.core import Tracer

_LOCK = threading.Lock()
_thread = threading.local()
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


def jit_enabled() -> AbstractContextManager[Any]:
    """A context in which `jax.jit` compiles."""
    disabled: bool = jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
    return jax.disable_jit(False) if disabled else nullcontext()


def on_host(arrays: Iterable[Any]) -> AbstractContextManager[Any]:
    """The context of a call for one sample, which would be a single thread of a GPU: the host.

    Where the caller has said where to run, it stays there: JAX's default device is the host, or has
    been chosen (`jax.default_device`), as has a mesh of devices; one of the arrays has been put on
    a device, or is traced.

    Args:
        arrays: the call's arguments.
    """
    chosen = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if jax.default_backend() == "cpu" or chosen is not None:
        return nullcontext()
    if not jax.sharding.get_abstract_mesh().empty or any(map(_is_placed, arrays)):
        return nullcontext()
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # JAX has been told to do without (JAX_PLATFORMS)
        return nullcontext()


def _is_placed(x: Any) -> bool:
    return isinstance(x, Tracer) or bool(getattr(x, "committed", False))


def is_inline() -> bool:
    """Whether this thread traces a program that takes in those of the functions that it calls."""
    return getattr(_thread, "programs", 0) > 0


@contextmanager
def inline() -> Iterator[None]:
    """A context in which functions that are programs of their own are part of the one traced."""
    _thread.programs = getattr(_thread, "programs", 0) + 1
    try:
        yield
    finally:
        _thread.programs -= 1


@contextmanager
def tracing() -> Iterator[None]:
    """The context for tracing a function: loops are not unrolled.

    The context is that in which JAX evaluates a jaxpr again, where the mesh of devices is set even
    if it is empty. JAX's cache of traces tells contexts apart, and what is traced here should not
    be traced again when it is differentiated.
    """
    with (
        collector_paused(),
        jit_enabled(),
        inline(),
        jax.sharding.use_abstract_mesh(jax.sharding.get_abstract_mesh()),
    ):
        yield
