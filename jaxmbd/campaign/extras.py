"""Packages that are not needed by the engine: imported late, and named where they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(module: str, extra: str, purpose: str) -> Any:
    """Import a package of one of jaxmbd's extras.

    Args:
        module: what to import.
        extra: the extra that brings it.
        purpose: what it is wanted for, for the message.

    Raises:
        ImportError: it is not installed; gives the line that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(
            f"{purpose} needs {name}, which is not installed: pip install 'jaxmbd[{extra}]'"
        ) from error
