"""Imports that wait: of optional packages, and of names on their first use."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def optional(module: str, extra: str, purpose: str) -> Any:
    """Import a package of one of jaxmbd's extras.

    Args:
        module: name of the package.
        extra: the extra that installs it.
        purpose: what needs it, for the message.

    Raises:
        ImportError: it is not installed; the message has the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(
            f"{purpose} needs {name}, which is not installed: pip install 'jaxmbd[{extra}]'"
        ) from error


_ALONE = threading.RLock()
_PATIENCE = 20.0
"""Longest wait [s] for another thread's import, which may itself wait for what this one imports."""


def on_use(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``, which import a name when it is first used.

    For packages whose parts need much that most programs do not use. Type checkers find the same
    names in imports under ``if TYPE_CHECKING``. Modules inside the package are found as well,
    unless a name hides them.

    Args:
        package: its ``__name__``.
        names: module inside the package to the names that are imported from it, between spaces.

    Example:
        >>> from jaxmbd.plumbing.imports import on_use
        >>> getattribute, names = on_use("jaxmbd", {"plumbing.imports": "on_use"})
        >>> getattribute("on_use") is on_use
        True
    """
    places = {name: module for module, texts in names.items() for name in texts.split()}
    namespace = vars(sys.modules[package])

    def getattribute(name: str) -> Any:
        if name in places:
            found = getattr(_imported(f"{package}.{places[name]}"), name)
        elif name.isidentifier() and name[0] != "_" and find_spec(f"{package}.{name}"):
            found = _imported(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = found
        return found

    def names_of_package() -> list[str]:
        return sorted({*namespace, *places, *namespace.get("__all__", ())})

    return getattribute, names_of_package


def _imported(module: str) -> Any:
    """A module. Threads import one after another: packages are imported in circles, JAX is too.

    There Python raises errors if threads begin at different places.
    """
    alone = _ALONE.acquire(timeout=_PATIENCE)
    try:
        return import_module(module)
    finally:
        if alone:
            _ALONE.release()
