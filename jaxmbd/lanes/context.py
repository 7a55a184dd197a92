"""The contexts in which lanes traces and runs functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import jax

from jaxmbd.lanes.collector import collector_paused


def jit_enabled() -> AbstractContextManager[Any]:
    """A context in which `jax.jit` compiles."""
    disabled: bool = jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
    return jax.disable_jit(False) if disabled else nullcontext()


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
        jax.sharding.use_abstract_mesh(jax.sharding.get_abstract_mesh()),
    ):
        yield
