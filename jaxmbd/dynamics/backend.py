"""Which compiler runs the engine's functions: lanes, or XLA alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx

from jaxmbd import lanes
from jaxmbd.lanes.collector import collector_paused

BACKENDS = ("auto", "lanes", "xla")
"""``"lanes"`` compiles to one kernel, for one mechanism or, under `jax.vmap`, for a batch, and
raises an error if it cannot; ``"auto"`` falls back to XLA then; ``"xla"`` does not use lanes."""


def compiled(backend: str, fn: Callable[..., Any], *args: Any) -> Any:
    """``fn(*args)`` by the chosen backend; leaves that are not arrays are static.

    To be called while tracing (inside `jax.jit`), so that it is compiled only once.

    Raises:
        ValueError: the backend is unknown.
    """
    check_backend(backend)
    if backend == "xla":
        with collector_paused():
            return fn(*args)
    arrays, static = eqx.partition(args, eqx.is_array)

    def of_arrays(arrays: Any) -> Any:
        return fn(*eqx.combine(arrays, static))

    return lanes.jit(of_arrays, strict=backend == "lanes")(arrays)


def check_backend(backend: str) -> None:
    """Raise a ValueError for an unknown backend."""
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}; give one of {list(BACKENDS)}")
