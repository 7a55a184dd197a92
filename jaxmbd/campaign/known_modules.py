"""Modules whose functions compute what their names say: of this package, and of those it uses."""

from __future__ import annotations

import os
import sys
import types
from functools import cache, partial
from pathlib import Path
from typing import Any

PACKAGE = __name__.partition(".")[0]
FOLDER = str(Path(__file__).parents[1])
_LIBRARY = os.path.dirname(os.__file__)
_OTHERS = ("jax", "jaxlib", "numpy", "equinox", "jaxtyping", "scipy", "llvmlite", "ml_dtypes")
"""Packages other than the standard library of which names suffice. Versions of the first four are
noted; nothing that is traced calls the others."""

_WITHIN = {"lax", "linalg", "numpy", "tree_util"}
"""Modules inside those of JAX and NumPy whose functions this package calls."""


class Unknown(Exception):
    """Something that may compute anything."""


def known(name: str) -> str:
    """The name of a module of this package, or of one whose parts are known by name.

    Raises:
        Unknown: it is of another package, or merely called like one of these.
    """
    module, top = _module(name), name.partition(".")[0]
    file = getattr(module, "__file__", None)
    if file is None and module.__name__ != top:  # inside compiled code
        return known(module.__name__.rpartition(".")[0]) and name
    if top in sys.stdlib_module_names:
        found = file is None or (file.startswith(_LIBRARY) and "-packages" not in file)
        found = found and top != "unittest"
    else:
        found = str(file).startswith(_folder(top))
    if not found:
        raise Unknown(f"something of the module {name!r}")
    return name


def _module(name: str) -> Any:
    """The module, or what it is in if it is a namespace in compiled code."""
    while name not in sys.modules:
        name, dot, _ = name.rpartition(".")
        if not dot:
            raise Unknown(f"something of the module {name!r}")
    return sys.modules[name]


@cache
def _folder(top: str) -> str:
    """The folder of a package."""
    if top == PACKAGE:
        return FOLDER
    if top not in _OTHERS:
        raise Unknown(f"something of the package {top!r}")
    return os.path.dirname(str(sys.modules[top].__file__))


def home(function: types.FunctionType) -> str:
    """The name of the module that a function is defined in.

    Raises:
        Unknown: that module is unknown, or is another one of the same name.
    """
    name = known(function.__globals__.get("__name__", ""))
    if function.__globals__ is not vars(_module(name)):
        raise Unknown(f"the function {function.__qualname__} of a copy of {name}")
    return name


def named(module: str, name: str) -> Any:
    """What a module has under a dotted name, or None."""
    found = _module(module)
    for part in (f"{module}.{name}"[len(found.__name__) + 1 :]).split("."):
        found = getattr(found, part, None)
    return found


def aliases(module: types.ModuleType) -> list[str]:
    """What names in a module of JAX or NumPy stand for, where they do not say it, as `jnp.pi` does.

    Raises:
        Unknown: something is not of a known module, such as a wrapper around one of its functions.
    """
    found = []
    for name, x in list(vars(module).items()):
        if name[0] == "_":
            continue
        if type(x) is types.ModuleType:
            if name in _WITHIN and x.__name__ == f"{module.__name__}.{name}":
                found += [f"{name}:", *aliases(x), "end"]
        elif type(x) in (int, float):
            found.append(f"{name} {x!r}")
        else:
            found += _layers(name, x)
    return found


def _layers(name: str, x: Any) -> list[str]:
    """A function and those that it wraps, if they have other names."""
    found = []
    while x is not None:
        if type(x) is types.FunctionType:
            known(x.__globals__.get("__name__", ""))
        elif (where := (x if isinstance(x, type) else type(x)).__module__) != "nanobind":
            known(where)
        if type(x).__module__.startswith("unittest"):
            raise Unknown(name)
        own = getattr(x, "__name__", name)
        if own != name:
            found.append(f"{name} {getattr(x, '__module__', '')} {own}")
        if type(x) is partial:
            for y in (x.func, *x.args, *x.keywords.values()):
                if not callable(y) and type(y) not in (bool, int, str):
                    raise Unknown(name)
                found += _layers(name, y) if callable(y) else [f"{name} {y}"]
            found.append(f"{name} partial")
        x = getattr(x, "__wrapped__", None)
    return found
