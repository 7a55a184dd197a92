"""A digest of what functions of this package compute, which two different ones never share.

`code_digest` follows whatever it meets; here whatever is not known for sure is refused. Known are
numbers, texts, arrays and plain containers of them; functions and classes of this package, by name,
with what functions enclose and classes hold; instances of these classes, by their fields; and those
parts of JAX, NumPy, Equinox and the standard library that modules of this package name. Functions
of users are unknown, and so is a part of this package that has been replaced by one.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import itertools
import re
import threading
import types
from collections import namedtuple
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend import core
from jax.tree_util import GetAttrKey

from jaxmbd.campaign.known_modules import FOLDER, PACKAGE, Unknown, aliases, home, known, named
from jaxmbd.lanes.recent import Recent

_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))
_SILENT = frozenset((
    itertools.count, type(threading.Lock()), type(threading.RLock()), Recent,
    types.GenericAlias, types.UnionType, types.MemberDescriptorType, types.GetSetDescriptorType,
    type(namedtuple("Pair", "first").first),  # pyright: ignore[reportAttributeAccessIssue]
))  # fmt: skip
"""Counters, locks, caches, annotations and slots, which say nothing of what is computed."""
_MADE = 1 << 9
"""Python's flag (Py_TPFLAGS_HEAPTYPE) of classes that are made while it runs."""
_ANNOTATIONS = {"typing", "collections.abc", "__future__"}
"""Modules with further types of objects in annotations."""
_NOTES = {"__doc__", "__module__", "__annotations__", "__dataclass_fields__", "_abc_impl"}
_NOTES |= {"__slotnames__"}
"""Attributes of classes that say nothing of what is computed."""
_CALLED = {"jax", "numpy", "equinox", "math"}
"""Packages of which users may replace functions for this one to call."""


class ExactDigest:
    """A walk over objects that notes what they are, in words.

    Raises:
        Unknown: from any method; names what is unknown.
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no number is used twice
        self._homes: dict[int, str] = {}  # names of modules by the `id` of what they hold

    def text(self) -> str:
        """The digest of all that was noted."""
        return hashlib.sha256("\x1f".join(self.words).encode("utf-8", "replace")).hexdigest()

    def module(self, module: types.ModuleType) -> None:
        """Note the state of a module of this package: its names and what they stand for now."""
        self.words.append(f"module {module.__name__}")
        for name, x in list(vars(module).items()):
            number = self._seen.get(id(x))
            if type(x) is types.ModuleType and x.__name__ == f"{module.__name__}.{name}":
                continue  # imported at some time, and walked itself
            if number is not None:  # most are imported from elsewhere
                self.words.append(f"{name} #{number}")
            elif name[:2] != "__" and name != "BEGUN":  # a time of this process
                self.words.append(name)
                self.add(x)

    def add(self, x: Any) -> None:
        """Note an object."""
        kind = type(x)
        if kind in _PLAIN:
            self.words.append(f"{kind.__name__} {x!r}")
            return
        number = self._seen.get(id(x))
        if number is not None:
            self.words.append(f"#{number}")
            return
        if kind is not tuple and kind is not frozenset:  # which Python shares where it likes
            self._seen[id(x)] = len(self._seen)
            self._kept.append(x)
        if kind is types.FunctionType:
            self._function(x)
        elif isinstance(x, type):
            self._class(x)
        elif isinstance(x, types.ModuleType):
            self.words.append(f"module {known(x.__name__)}")
            if x.__name__.partition(".")[0] in _CALLED:
                self.words.extend(aliases(x))
        else:
            self._object(x, kind)

    def _each(self, word: str, parts: Iterable[Any]) -> None:
        self.words.append(word)
        for part in parts:
            if type(part) in _PLAIN:
                self.words.append(f"{type(part).__name__} {part!r}")
            else:
                self.add(part)
        self.words.append("end")

    def _function(self, x: types.FunctionType) -> None:
        code = x.__code__
        generated = code.co_filename[:1] == "<"
        if generated and x.__globals__.get("__name__", "").startswith("namedtuple_"):
            self.words.append(code.co_code.hex())
            return
        where = self._homes.get(id(x.__globals__))
        if where is None:
            where = self._homes[id(x.__globals__)] = home(x)
        self.words.append(f"{where} {code.co_qualname} {code.co_firstlineno}")
        if where.partition(".")[0] != PACKAGE:
            return
        if generated and code.co_name[:2] == "__":  # a method of a data class
            self.words.append(code.co_code.hex())
            return
        if not code.co_filename.startswith(FOLDER):
            raise Unknown(f"the function {x.__qualname__} in {code.co_filename}")
        if code.co_name == "<lambda>":  # there may be several in a line
            self.words.append(f"{code.co_code.hex()} {code.co_linetable.hex()} {code.co_names}")
        if x.__defaults__:
            self._each("defaults", x.__defaults__)
        if x.__kwdefaults__:
            self._each("defaults", x.__kwdefaults__.values())
        if x.__closure__:
            self._each("closure", map(_content, x.__closure__))
        if x.__dict__:
            self._each("attributes", (y for pair in x.__dict__.items() for y in pair))

    def _class(self, x: type) -> None:
        where = known(x.__module__)
        self.words.append(f"{where} {x.__qualname__}")
        if not _placed(x):
            raise Unknown(f"the class {x.__qualname__}, which is not in {where}")
        if where.partition(".")[0] != PACKAGE:
            return
        self._each("bases", x.__bases__)
        for name, y in list(vars(x).items()):
            if name not in _NOTES:
                self.words.append(name)
                self._of_class(y)

    def _of_class(self, x: Any) -> None:
        kind = type(x)
        if kind in (classmethod, staticmethod):
            self._each(kind.__name__, (x.__func__,))
        elif kind is property:
            self._each("property", (x.fget, x.fset, x.fdel))
        elif kind is cached_property:
            self._each("cached", (x.func,))
        else:
            self.add(x)

    def _object(self, x: Any, kind: type) -> None:
        self.words.append(f"{kind.__module__} {kind.__qualname__}")
        if kind in (tuple, list):
            self._each(str(len(x)), x)
        elif kind in (dict, types.MappingProxyType):
            self._each(str(len(x)), (y for pair in x.items() for y in pair))
        elif kind in (set, frozenset):
            if not all(type(y) in _PLAIN or type(y) is type for y in x):
                raise Unknown("a set of objects")
            self.words.extend([*sorted(map(repr, x)), "end"])
        elif kind is np.ndarray or isinstance(x, (np.generic, jax.Array)):
            self._array(x)
        elif kind is functools.partial:
            self._each("partial", (x.func, x.args, x.keywords))
        elif kind is types.MethodType:
            self._each("method", (x.__func__, x.__self__))
        elif kind in _SILENT or (kind.__module__ in _ANNOTATIONS and _placed(kind)):
            self.words.append(getattr(x, "__name__", None) or "")
        elif kind.__module__.partition(".")[0] == PACKAGE:
            self._instance(x, kind)
        else:
            self._other(x, kind)

    def _array(self, x: Any) -> None:
        if isinstance(x, Tracer):
            raise Unknown("a traced value")
        if isinstance(x, jax.Array):
            if jnp.issubdtype(x.dtype, jax.dtypes.extended) or len(x.devices()) != 1:
                raise Unknown(f"an array of {x.dtype} on {len(x.devices())} devices")
            self.words.append(f"weak {x.aval.weak_type}")
        array = np.asarray(x)
        if array.dtype.hasobject:
            raise Unknown("an array of objects")
        data = hashlib.sha256(array.tobytes()).hexdigest() if array.size > 8 else array.tobytes()
        self.words.append(f"{array.dtype.str} {array.dtype} {array.shape} {data}")

    def _instance(self, x: Any, kind: Any) -> None:
        """An instance of a class of this package."""
        self.add(kind)
        if isinstance(x, enum.Enum):
            self.words.append(str(x.name))
            return
        if isinstance(x, (tuple, list)):
            self._each(str(len(x)), x)
        elif isinstance(x, dict):
            self._each(str(len(x)), (y for pair in x.items() for y in pair))
        elif isinstance(x, (int, float, complex, str, bytes, set, frozenset)):
            raise Unknown(f"a {kind.__qualname__}")
        slots = [n for c in kind.__mro__ for n in _slots(c) if n[:2] != "__"]
        state = {n: getattr(x, n) for n in slots if hasattr(x, n)}
        for name, y in getattr(x, "__dict__", {}).items():
            if not isinstance(getattr(kind, name, None), cached_property):
                state[name] = y
        self._each("state", (y for pair in state.items() for y in pair))

    def _other(self, x: Any, kind: Any) -> None:
        """A function in a wrapper of JAX's or Python's, or a named object of a known package."""
        if kind.__module__.startswith(("jax", "functools")) and hasattr(x, "__wrapped__"):
            parts = (getattr(x, name, None) for name in ("__wrapped__", "jvp", "fwd", "bwd"))
            self._each("wraps", parts)
            return
        if isinstance(x, (re.Pattern, core.Primitive, np.dtype, range, slice, GetAttrKey)):
            self.words.append(repr(x))
            return
        if kind.__module__ == "dataclasses" and _placed(kind):  # notes in classes
            return
        where, name = getattr(x, "__module__", None), getattr(x, "__qualname__", None)
        where = where or getattr(getattr(x, "__objclass__", None), "__module__", "")
        owner = getattr(x, "__self__", None)
        if isinstance(owner, type):
            where = owner.__module__
        name = name or getattr(x, "__name__", "")
        if name and named(known(where), name) == x:
            self.words.append(f"{where} {name}")
            return
        raise Unknown(f"{where} {name} of type {kind.__module__}.{kind.__qualname__}")


def _placed(kind: type) -> bool:
    """Whether a class is what its module has under its name, or one that only C code can make."""
    where = known(kind.__module__)
    if not kind.__flags__ & _MADE or kind in _SILENT:
        return True
    names = (kind.__qualname__, kind.__name__.rpartition(".")[2])
    return any(named(where, name) is kind for name in names)


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise Unknown("a function that is not complete") from None
