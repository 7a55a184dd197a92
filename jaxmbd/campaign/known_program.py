"""What a study computes, as a text by which another process finds its trace on disk."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import types
from typing import Any

import equinox

from jaxmbd.campaign.exact_digest import ExactDigest
from jaxmbd.campaign.known_modules import FOLDER, PACKAGE, Unknown, known
from jaxmbd.numerics.on_use import BEGUN

_NOT_TRACED = tuple(
    f"{PACKAGE}.{name}"
    for name in (
        "lanes.codegen", "lanes.elementary", "lanes.ir", "lanes.reverse", "lanes.targets",
        "lanes.trace.rules", "lanes.known_traces", "campaign.run", "campaign.runner",
        "campaign.store", "report", "viz", "cli",
    )
)  # fmt: skip
"""Parts of the package that no traced function uses."""
_NUMBER = re.compile(
    rb"\n([A-Z_][A-Z0-9_]*) = (-?[0-9][0-9_]*(?:\.[0-9]+)?(?:e-?[0-9]+)?)(?=\r?\n)"
)
"""A number that a module gives a name."""


def identity(function: Any) -> str | None:
    """A text that tells what a function of this package computes, the same in all processes.

    It covers the function with all that it encloses, and this package as it is now: its files, and
    what the names in its modules and classes stand for, such as tables.

    Returns:
        None at the slightest doubt: functions, classes or objects of users; parts of this package,
        of JAX or NumPy that were replaced by others; files that were changed since the import;
        numbers of this package that were set to others.

    Example:
        >>> from jaxmbd.campaign.known_program import identity
        >>> print(identity(lambda sample: sample))
        None
    """
    walk = ExactDigest()
    try:
        walk.add(function)
        for name, module in sorted(sys.modules.items()):
            if name.partition(".")[0] == PACKAGE and not name.startswith(_NOT_TRACED):
                known(name)
                walk.module(module)
        files = _files()
    except Exception:  # what cannot be walked is in doubt as well
        return None
    return f"{walk.text()} {files} {equinox.__version__} {sys.flags.optimize}"


def _files() -> str:
    """A digest of the files of this package.

    Raises:
        Unknown: a file has been changed since the import, so that it may say something else; or a
            number of a module is not what its file says: then what was traced before it was set may
            still be in use, and that is not for other processes.
    """
    state = hashlib.sha256()
    for folder, folders, files in os.walk(FOLDER):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for name in sorted(files):
            file = os.open(os.path.join(folder, name), os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                about = os.fstat(file)
                text = os.read(file, about.st_size)
            finally:
                os.close(file)
            if max(about.st_mtime, about.st_ctime) > BEGUN or len(text) != about.st_size:
                raise Unknown(f"{name}, which was changed")
            place = os.path.join(folder[len(FOLDER) + 1 :], name)
            state.update(f"{place} {len(text)}\n".encode())
            state.update(text)
            _unset(".".join((PACKAGE, *place.removesuffix(".py").split(os.sep))), text)
    return state.hexdigest()


def _unset(module: str, text: bytes) -> None:
    """Raise `Unknown` if a number in a module, if it is loaded, is not that in its source."""
    names = vars(sys.modules.get(module, types))
    for name, number in dict(_NUMBER.findall(text) if module in sys.modules else ()).items():
        if names.get(name.decode()) != float(number):
            raise Unknown(f"{module}.{name.decode()}, which was set")
