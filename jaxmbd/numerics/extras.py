"""Optional packages: imported on use, with a clear error if they are missing."""

from __future__ import annotations

from importlib import import_module
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
