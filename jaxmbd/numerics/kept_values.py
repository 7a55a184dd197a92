"""`KeptValues`: values made on demand and kept, within the function that JAX traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from jaxmbd.lanes.trace.jax_versions import trace_state

T = TypeVar("T")


class KeptValues:
    """Values made on demand, each once for all uses that may share it.

    A value made while JAX traces a function is unknown outside it. Values made where this object
    was made are therefore kept for good, as whatever is traced inside knows them; others only as
    long as the same function is traced.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd.numerics.kept_values import KeptValues
        >>> kept = KeptValues()
        >>> jax.jit(lambda: kept.get("two", lambda: jnp.ones(()) + 1.0) * 3.0)().item()
        6.0
        >>> kept.get("two", lambda: jnp.ones(()) + 1.0).item()
        2.0
    """

    def __init__(self) -> None:
        self._home = self._inner = trace_state()
        self._values: dict[Any, Any] = {}
        self._inside: dict[Any, Any] = {}

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """The value of `key`, which `make` returns if there is none that may be used here."""
        if key in self._values:
            return self._values[key]
        here = trace_state()
        if here == self._home:
            return self._values.setdefault(key, make())
        if here != self._inner:
            self._inner, self._inside = here, {}
        if key not in self._inside:
            self._inside[key] = make()
        return self._inside[key]
