"""`finished`: wait for results so that Ctrl-C ends what computes them."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import jax

from jaxmbd.lanes.targets import stopping

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
        >>> from jaxmbd.lanes.interruption import finished
        >>> finished(jnp.ones(2)).tolist()
        [1.0, 1.0]
    """
    try:
        return jax.block_until_ready(results)
    except KeyboardInterrupt:
        with stopping.stopped():
            _await(jax.tree_util.tree_leaves(results))
        raise


def _await(arrays: list[Any]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not all(x.is_ready() for x in arrays):
        time.sleep(0.01)
