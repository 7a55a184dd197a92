"""Optional packages: imported on use, with a clear error if they are missing."""

from __future__ import annotations

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
        raise _missing(module, extra, purpose) from error


def require(package: str, extra: str, purpose: str) -> None:
    """Check that a package of an extra is installed, without importing it.

    Raises:
        ImportError: as `optional`.
    """
    if find_spec(package) is None:
        raise _missing(package, extra, purpose)


def _missing(module: str, extra: str, purpose: str) -> ImportError:
    name = module.partition(".")[0]
    return ImportError(
        f"{purpose} needs {name}, which is not installed: pip install 'jaxmbd[{extra}]'"
    )
