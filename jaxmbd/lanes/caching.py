"""Functions that are traced once for all their uses, values that are made once, a bounded cache."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar

import jax
from jax.core import Tracer

from jaxmbd.lanes.trace.jaxprs import trace_state

KEPT = 16
"""Most structures of arguments of one function whose traces are kept. JAX keeps the traces of a
function as long as it lives, therefore each structure has a function of its own."""
F = TypeVar("F", bound=Callable[..., Any])
_PACKAGE = __name__.partition(".")[0]


def everything(*args: Any, **kwargs: Any) -> Any:
    """All arguments."""
    return args, kwargs


def nothing(*_: Any, **__: Any) -> None:
    """None of the arguments."""


def traced_once(fn: F, *, static: Sequence[str] = (), runs: Callable[..., Any] = everything) -> F:
    """A pure function of pytrees whose trace is kept, by the types of its arguments.

    While JAX traces, the function is a `jax.jit` call: the second use of it costs one equation, and
    its derivatives are made once as well. Compilers inline the call, lanes with whatever is known
    about the arguments, so results and kernels are those without it. With concrete arguments it
    runs as it is, operation by operation, since compiling every size of it would take longer.

    So it does if it runs functions or methods from outside this package: what they close over may
    change, and only a `jax.jit` of the user's own may keep what it was.

    Args:
        fn: the function; must not close over traced values.
        static: names of arguments that are not arrays.
        runs: the parts of its arguments whose functions and methods `fn` runs.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd.lanes.caching import traced_once
        >>> f = traced_once(lambda x: jnp.sin(x) * x)
        >>> len(jax.make_jaxpr(lambda x: f(f(x)))(1.0).eqns)
        2
    """
    kept = Recent(KEPT)

    def shared(args: Any, kwargs: Any) -> Any:
        if _foreign(runs(*args, **kwargs)):
            return fn

        @wraps(fn)
        def alone(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return jax.jit(alone, static_argnames=tuple(static))

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        if not any(isinstance(x, Tracer) for x in leaves):
            return fn(*args, **kwargs)
        return kept.get(tree, lambda: shared(args, kwargs))(*args, **kwargs)

    return call  # pyright: ignore[reportReturnType]


def _foreign(x: Any) -> bool:
    """Whether a pytree has functions, or objects with methods, from outside this package."""
    if is_dataclass(x):  # its static fields are no children
        parts = (getattr(x, field.name, None) for field in fields(x))
        return is_foreign(type(x)) or any(map(_foreign, parts))
    node = jax.tree_util.default_registry.flatten_one_level(x)
    return callable(x) and is_foreign(x) if node is None else any(map(_foreign, node[0]))


def is_foreign(thing: Any) -> bool:
    """Whether a class or function is from outside this package."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] != _PACKAGE


T = TypeVar("T")


class KeptValues:
    """Values made on demand, each once for all uses that may share it.

    A value made while JAX traces a function is unknown outside it. Values made where this object
    was made are therefore kept for good, as whatever is traced inside knows them; others only as
    long as the same function is traced.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd.lanes.caching import KeptValues
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


class Recent:
    """A cache of at most `size` objects by name, made on first use."""

    def __init__(self, size: int):
        self.size = size
        self.things: OrderedDict[Hashable, Any] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """The object of that name; made outside the lock, so two threads may make it twice."""
        with self.lock:
            if name in self.things:
                self.things.move_to_end(name)
                return self.things[name]
        new = make()
        with self.lock:
            found = self.things.setdefault(name, new)
            if len(self.things) > self.size:
                self.things.popitem(last=False)
            return found

    def __len__(self) -> int:
        return len(self.things)
