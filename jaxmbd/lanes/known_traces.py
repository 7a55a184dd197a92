"""Traced functions found on disk, so that another process need not trace them again.

An entry says of a function what its callers ask before its machine code runs: types, the tree of
results, the content. The code itself is found by the content (`targets.recall`). Whatever needs the
jaxpr, such as a derivative, traces it then; that its content is the entry's is checked.

The name of an entry is a digest of all that a trace depends on: what the function is, as whoever
maps it says, the arguments, settings of JAX, the source of lanes, versions.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jaxlib.version
import numpy as np
from jax.core import ShapedArray

from jaxmbd.lanes.targets import cpu, disk, recall
from jaxmbd.lanes.trace.content import Content, Function, Key
from jaxmbd.lanes.trace.jax_versions import manual_axes

try:
    from jax._src.config import trace_context  # no public API for what JAX's own traces depend on
except ImportError:
    trace_context = None

_VERSIONS = (platform.python_version(), jax.__version__, jaxlib.version.__version__, np.__version__)
_UNRELATED = ("cache", "dump", "log")
"""In names of settings of JAX that no trace depends on."""
_more: list[None] = []
_own = jax.make_user_context(None)
"""A key of JAX's caches. What another function of this name was when its trace was kept, or one
that it calls and that was replaced for a while, must not get to disk."""


class Traced(NamedTuple):
    """A traced function.

    Attributes:
        key: the function of flat arguments.
        consts: traced arrays that it closes over, its first arguments.
        tree: that of its results.
        avals: types of its results.
        lasting: whether it may be used for other calls.
    """

    key: Key
    consts: list[Any]
    tree: Any
    avals: list[Any]
    lasting: bool


def known(
    identity: str, tree: Any, avals: Sequence[Any], baked: Mapping[int, Any], trace: Any
) -> Traced:
    """A traced function, from disk or newly traced.

    Args:
        identity: tells what the function computes, the same in all processes.
        tree: that of its arguments.
        avals: their types.
        baked: values of those that are constants.
        trace: traces it.
    """
    name = _name(identity, tree, avals, baked)
    if name is None:
        return trace()

    def alone() -> Traced:
        with _own(identity):
            return trace()

    found = _read(name, alone)
    if found is not None:
        return found
    before = len(_more)
    new = alone()
    if new.lasting and new.key.content.lasting and len(_more) == before:
        _write(name, new)
    return new


def keep_no_trace() -> None:
    """Do not store what is being traced: it does more than to compute, such as to warn."""
    _more.append(None)


def _name(identity: str, tree: Any, avals: Sequence[Any], baked: Mapping[int, Any]) -> str | None:
    """The name of an entry; None if the function cannot be told from others."""
    plain, settings = _plain(tree), _settings()
    if not recall.COMPILER or plain is None or settings is None or disk.directory() is None:
        return None
    values = [(k, *_described([x])[0], np.asarray(x).tobytes()) for k, x in baked.items()]
    versions = (*_VERSIONS, jax.default_backend(), cpu.host())
    text = repr((identity, plain, _described(avals), values, settings, versions))
    return "trace_" + hashlib.sha256(text.encode() + recall.COMPILER).hexdigest()[:32]


def _settings() -> str | None:
    """JAX's settings, of the process and of this thread; None if some are objects."""
    values = getattr(jax.config, "values", None)
    if trace_context is None or not values:
        return None
    told = {n: x for n, x in sorted(values.items()) if not any(word in n for word in _UNRELATED)}
    text = f"{told} {[_settled(x) for x in trace_context()]}"
    return None if " at 0x" in text else text


def _settled(x: Any) -> str:
    """A setting as text, by its attributes if it is an object that shows only its address."""
    if " at 0x" not in repr(x):
        return repr(x)
    names = [*getattr(type(x), "__slots__", ()), *getattr(x, "__dict__", ())]
    names = [n for n in names if n[:2] != "__"]
    if not names:
        return repr(x)
    return f"{type(x).__name__} {[(n, _settled(getattr(x, n, None))) for n in names]}"


def _described(avals: Sequence[Any]) -> list[list[Any]]:
    """Shape, type and whether it is weak, of arrays or of their types."""
    types = [a if hasattr(a, "weak_type") else jax.typeof(a) for a in avals]
    return [[list(a.shape), str(a.dtype), bool(a.weak_type)] for a in types]


def _types(described: Sequence[Any]) -> list[Any]:
    return [ShapedArray(tuple(n), np.dtype(kind), weak_type=weak) for n, kind, weak in described]


def _storable(aval: Any) -> bool:
    """Whether a type is that of a plain array."""
    plain = type(aval) is ShapedArray and not manual_axes(aval)
    return plain and isinstance(aval.dtype, np.dtype) and np.dtype(str(aval.dtype)) == aval.dtype


def _plain(tree: Any) -> Any:
    """A tree of dictionaries, lists and tuples as JSON can hold it; None for others."""
    try:
        plain = _noted(jax.tree_util.tree_unflatten(tree, [0] * tree.num_leaves))
    except Exception:  # of a class that takes no numbers for its leaves, among others
        return None
    return plain if jax.tree_util.tree_structure(_built(plain)) == tree else None


def _noted(x: Any) -> Any:
    if type(x) is dict and all(type(name) is str for name in x):
        return {"dict": {name: _noted(y) for name, y in x.items()}}
    if type(x) in (list, tuple):
        return {type(x).__name__: [_noted(y) for y in x]}
    if x is None or type(x) is int:
        return x
    raise TypeError(f"a {type(x).__name__} in a tree")


def _built(plain: Any) -> Any:
    """The tree of JSON data, with numbers for leaves."""
    if not isinstance(plain, dict):
        return plain
    ((kind, parts),) = plain.items()
    if kind == "dict":
        return {name: _built(x) for name, x in parts.items()}
    return {"list": list, "tuple": tuple}[kind](_built(x) for x in parts)


def _write(name: str, new: Traced) -> None:
    tree, function = _plain(new.tree), new.key.function
    avals = [*function.in_avals, *function.out_avals]
    if tree is not None and all(map(_storable, avals)):
        types = [_described(function.in_avals), _described(function.out_avals)]
        entry = {"tree": tree, "types": types, "content": function.content.value.hex()}
        disk.write(name, json.dumps(entry).encode())


def _read(name: str, trace: Callable[[], Traced]) -> Traced | None:
    data = disk.read(name)
    if data is None:
        return None
    try:
        entry = json.loads(data)
        given, avals = map(_types, entry["types"])
        tree = jax.tree_util.tree_structure(_built(entry["tree"]))
        content = bytes.fromhex(entry["content"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if len(content) != 20 or tree.num_leaves != len(avals):
        return None
    return Traced(Key(Recalled(name, content, given, avals, trace)), [], tree, avals, True)


class Recalled(Function):
    """A function of which types and content are known, traced when its jaxpr is asked for."""

    def __init__(self, name: str, content: bytes, given: Any, avals: Any, trace: Any):
        self.name, self._given, self._avals, self._trace = name, given, avals, trace
        self._content = _Known(content, self)
        self._mesh = jax.sharding.get_abstract_mesh()

    @property
    def in_avals(self) -> list[Any]:
        """Types of the arguments."""
        return self._given

    @property
    def out_avals(self) -> list[Any]:
        """Types of the results."""
        return self._avals

    @property
    def content(self) -> Content:
        """The jaxpr's content."""
        return self._content

    @cached_property
    def traced(self) -> Function:
        """The function, traced.

        Raises:
            RuntimeError: it is not what the entry on disk says.
        """
        with jax.sharding.use_abstract_mesh(self._mesh):  # as at the first call
            new = self._trace()
        if new.consts or new.key.content.value != self._content.value:
            disk.remove(self.name)
            raise RuntimeError(
                "lanes: a traced function was found on disk, and what it computes is not what the "
                "function does when it is traced now. Either the function, the package or JAX's "
                "settings were changed since its first call, or the entry was wrong, which has "
                "been removed. Make the function (or study) anew, and do not trust results of this "
                "one"
            )
        return new.key.function

    @property
    def closed(self) -> Any:
        """The closed jaxpr."""
        return self.traced.closed


class _Known(Content):
    """Content that is known but for its derivative rules."""

    __slots__ = ("_function",)

    def __init__(self, value: bytes, function: Recalled):
        self.value, self.lasting = value, True
        self._of_rules, self._function = ..., function

    @property
    def rules(self) -> tuple[Any, ...]:
        """Of the traced function."""
        return self._function.traced.content.rules

    @property
    def calls(self) -> tuple[Any, ...] | None:
        """Of the traced function."""
        return self._function.traced.content.calls

    def __eq__(self, other: Any) -> bool:
        """Nothing is traced for it: until then only what is recalled by the same name is equal."""
        if isinstance(other, _Known) and other._function.name == self._function.name:
            return other.value == self.value
        return "traced" in vars(self._function) and super().__eq__(other)

    __hash__ = Content.__hash__
