"""Imports in a thread, while this one waits for compiled code or for the disk."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from threading import Thread


def import_aside(*modules: str) -> None:
    """Begin to import modules; whoever imports one of them meanwhile waits for the rest of it.

    Both threads need the interpreter, so that this gains nothing while the other one traces.

    Args:
        modules: their names; that one is missing is told by whoever needs it.

    Example:
        >>> from jaxmbd.numerics.import_aside import import_aside
        >>> import_aside("json", "no_such_module")
        >>> import json
    """

    def load() -> None:
        for name in modules:
            with suppress(Exception):
                import_module(name)

    Thread(target=load, name="imports").start()
