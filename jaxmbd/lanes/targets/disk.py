"""Machine code and what belongs to it, cached on disk by content hash.

The directory is ``$JAXMBD_LANES_CACHE``, by default ``jaxmbd/lanes`` in the user's folder of
caches; an empty string turns the cache off. It may be deleted or shared between processes of one
user, who alone can write there (`own_folder`); unreadable, corrupt and renamed files count as
missing. It holds about `LIMIT` bytes; least recently used files are removed first.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from jaxmbd.lanes.targets import own_folder

LIMIT = 1 << 30
"""Most bytes in the directory; if there are more, it is trimmed to two thirds of that."""
_MAGIC = b"jaxmbd-lanes-2\n"
_WRITES = 64
_VARIABLE = "JAXMBD_LANES_CACHE"
_written = itertools.count()  # the directory is measured at the first write and every 64th


def directory() -> Path | None:
    """The cache directory, or None if the cache is off, or others could have written there."""
    named = os.environ.get(_VARIABLE)
    if named == "":
        return None
    folder = user_caches() / "jaxmbd" / "lanes" if named is None else Path(named)
    return folder if own_folder.usable(folder, _VARIABLE) else None


def user_caches() -> Path:
    """The user's folder of caches, where this system has it."""
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")


def read(key: str) -> bytes | None:
    """The entry of a key; None if it is missing or corrupt."""
    folder = directory()
    if folder is None:
        return None
    try:
        data = own_folder.read(folder / key)
    except OSError:
        return None
    if data is None:
        return None
    head = len(_MAGIC) + 32
    digest, code = data[len(_MAGIC) : head], data[head:]
    if not data.startswith(_MAGIC) or digest != _digest(key, code):
        return None
    with suppress(OSError):
        os.utime(folder / key)
    return code


def write(key: str, code: bytes) -> None:
    """Store an entry under a key: written to a temporary file, then moved atomically."""
    folder = directory()
    if folder is None:
        return
    try:
        own_folder.make(folder)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _digest(key, code) + code)
        os.replace(name, folder / key)
    except OSError:
        Path(name).unlink(missing_ok=True)
    if next(_written) % _WRITES == 0:
        trim(folder, LIMIT)


def _digest(key: str, code: bytes) -> bytes:
    state = hashlib.sha256(key.encode() + b"\n")
    state.update(code)
    return state.digest()


def trim(folder: Path, limit: int) -> None:
    """Remove least recently used files from a folder of more than `limit` bytes."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            with suppress(OSError):  # another process has just removed it
                facts = entry.stat()
                found.append((facts.st_mtime_ns, facts.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    if total <= limit:
        return
    for _, size, path in sorted(found):
        if total <= limit - limit // 3:
            break
        with suppress(OSError):
            os.remove(path)
            total -= size
