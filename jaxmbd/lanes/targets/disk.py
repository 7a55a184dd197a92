"""Machine code on disk, by content hash: safe to delete, to share between processes, to corrupt.

The directory is ``$JAXMBD_LANES_CACHE``, by default ``jaxmbd/lanes`` in the user's cache
directory; an empty string turns it off. A file that cannot be written or read is as if there were
none.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_MAGIC = b"jaxmbd-lanes-1\n"


def directory() -> Path | None:
    """Where compiled kernels are kept; None where they are not."""
    named = os.environ.get("JAXMBD_LANES_CACHE")
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "jaxmbd" / "lanes"


def read(key: str) -> bytes | None:
    """What was kept under a key, if it is whole."""
    folder = directory()
    if folder is None:
        return None
    try:
        data = (folder / key).read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 32
    digest, code = data[len(_MAGIC) : head], data[head:]
    whole = data.startswith(_MAGIC) and hashlib.sha256(code).digest() == digest
    return code if whole else None


def write(key: str, code: bytes) -> None:
    """Keep something under a key: written aside, then moved into place at once."""
    folder = directory()
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(code).digest() + code)
        os.replace(name, folder / key)
    except OSError:
        Path(name).unlink(missing_ok=True)
