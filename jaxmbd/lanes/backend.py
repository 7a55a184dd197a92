"""Which compiler runs the engine's functions: lanes, or XLA alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.lanes.batch import jit
from jaxmbd.lanes.context import collector_paused, inline, is_inline, on_host

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
        with collector_paused(), inline():
            return fn(*args)
    arrays, static = eqx.partition(args, eqx.is_array)

    def of_arrays(arrays: Any) -> Any:
        return fn(*eqx.combine(arrays, static))

    return jit(of_arrays, strict=backend == "lanes")(arrays)


def whole(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a mechanism that the host and JAX's eager derivatives call as one program.

    JAX would compile the operations of an eager call one by one: sixty programs for the poses of a
    suspension corner. Inside a function that is compiled by `compiled` or by lanes it is part of
    that. The first argument has a `dtype`, which plain numbers among the others are converted to;
    strings, booleans and None are static.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.lanes.backend import whole
        >>> norm = whole(lambda x, y: jnp.sqrt(x @ x + y))
        >>> norm(jnp.array([3.0, 0.0]), 16.0).item()
        5.0
    """

    def result(args: Any, options: Any) -> Any:
        out = fn(*args, **options)
        return _Ordered(out) if isinstance(out, dict) else out

    @host_jit
    def program(args: Any, options: Any) -> Any:
        return compiled("auto", result, args, options)

    @wraps(fn)
    def call(mech: Any, *args: Any, **options: Any) -> Any:
        if is_inline():
            return fn(mech, *args, **options)
        args, options = jax.tree_util.tree_map(lambda x: _number(x, mech.dtype), (args, options))
        out = program((mech, *args), options)
        return dict(out) if isinstance(out, _Ordered) else out

    return call


@jax.tree_util.register_pytree_node_class
class _Ordered(dict):
    """A dictionary that keeps its order as a result of compiled functions, where JAX sorts keys."""

    def tree_flatten(self) -> Any:
        return tuple(self.values()), tuple(self)

    @classmethod
    def tree_unflatten(cls, keys: Any, values: Any) -> Any:
        return cls(zip(keys, values, strict=True))


def _number(x: Any, dtype: Any) -> Any:
    plain = isinstance(x, int | float) and not isinstance(x, bool)
    return np.asarray(x, dtype) if plain else x


def check_backend(backend: str) -> None:
    """Raise a ValueError for an unknown backend."""
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}; give one of {list(BACKENDS)}")


def host_jit(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit` for the call that a function of the host makes; leaves that are no arrays static.

    Like `equinox.filter_jit`, whose own work takes longer than a kernel. It runs on the host, even
    if JAX's default device is a GPU, unless the caller has said where (`context.on_host`).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.lanes.backend import host_jit
        >>> f = host_jit(lambda how, x: x + 1 if how == "up" else x - 1)
        >>> f("up", jnp.ones(())).item(), f("down", jnp.ones(())).item()
        (2.0, 0.0)
    """

    @wraps(fn)
    def of_arrays(place: tuple[Any, ...], *arrays: Any) -> Any:
        tree, static = place
        leaves = list(arrays)
        for k, _, x in static:  # from the first to the last, so each goes where it was
            leaves.insert(k, x)
        return fn(*jax.tree_util.tree_unflatten(tree, leaves))

    jitted = jax.jit(of_arrays, static_argnums=0)

    @wraps(fn)
    def call(*args: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(args)
        kinds = {kind for kind in set(map(type, leaves)) if not _is_array_type(kind)}
        others = [k for k, x in enumerate(leaves) if type(x) in kinds and not eqx.is_array(x)]
        static = tuple((k, type(leaves[k]), leaves[k]) for k in others)  # 1 is not True
        for k in reversed(others):
            del leaves[k]
        with on_host(leaves):
            return jitted((tree, static), *leaves)

    return call


@lru_cache(maxsize=64)
def _is_array_type(kind: type) -> bool:
    return issubclass(kind, (jax.Array, np.ndarray))


def given(x: Any, dtype: Any) -> Array:
    """An argument of a host call as an array; one that needs no work stays as it is."""
    if isinstance(x, float):
        return np.asarray(x, dtype)  # pyright: ignore[reportReturnType]
    if _is_array_type(type(x)) and x.dtype == dtype and not getattr(x, "weak_type", False):
        return x
    if isinstance(x, dict):
        raise TypeError(f"{x!r} stands where numbers are taken; efforts by name are inputs={{…}}")
    return jnp.asarray(x, dtype)
