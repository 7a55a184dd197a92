"""Machine code and what belongs to it, cached on disk by content hash.

The directory is ``$JAXMBD_LANES_CACHE``, by default ``jaxmbd/lanes`` in the user's folder of
caches; an empty string turns the cache off. It may be deleted or shared between processes of one
user; unreadable, corrupt and renamed files count as missing. It holds about `LIMIT` bytes; least
recently used files are removed first.

What is found there is run, so nobody else may have put it there. The folder is made for its user
alone and used only if that user or root owns it, nobody else can write there, and the same holds of
all that leads to it, where folders in which everybody owns what he makes (as ``/tmp``) do no harm.
Systems without owners of files (Windows) are trusted to keep the folders of a user apart.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

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
    return folder if usable(folder, _VARIABLE) else None


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
        data = _read(folder / key)
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
        make(folder)
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


_told: set[str] = set()


def usable(folder: Path, variable: str) -> bool:
    """Whether files of a folder may be run; if not, says once why, and the cure.

    Args:
        folder: it need not be there.
        variable: of the environment, which names another folder.
    """
    if why := _doubt(folder):
        text = (
            f"compiled code is not kept in {folder}: {why}, so that what is found there may be "
            f"another's, and would be run. Remove {folder}, which is made anew for you alone, or "
            f"take the right to write from others (chmod go-w) where it is above; or name another "
            f"folder in {variable}"
        )
        if text not in _told:
            _told.add(text)
            warnings.warn(text, stacklevel=2)
    return not why


def make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone."""
    for place in [*reversed(folder.parents), folder]:
        with suppress(FileExistsError):
            if not place.exists():
                place.mkdir(0o700)


def _read(path: Path) -> bytes | None:
    """A file of such a folder; None if it is a link, or not written by this user or root."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0))

    if path.is_symlink():
        return None
    with open(path, "rb", opener=opener) as file:
        return None if _foreign(os.fstat(file.fileno())) else file.read()


def _doubt(folder: Path) -> str:
    """Why a folder is not trusted; empty if it is."""
    named = os.path.abspath(folder)
    if os.path.islink(named):
        return f"{named} is a link"
    places = _lineage(named)
    for place in places:  # which grows by where links lead
        try:
            facts = os.lstat(place)
        except OSError:  # it is not there yet
            continue
        if why := _foreign(facts, above=place != named):
            return f"{place} {why}"
        if stat.S_ISLNK(facts.st_mode):
            places += [x for x in _lineage(os.path.realpath(place)) if x not in places]
    return ""


def _lineage(place: str) -> list[str]:
    """A folder and all above it."""
    found = [place]
    while (above := os.path.dirname(place)) != place:
        place = above
        found.append(place)
    return found


def _foreign(facts: os.stat_result, above: bool = False) -> str:
    """What another user can do with a file, or with a folder above others; empty if nothing."""
    if not hasattr(os, "geteuid"):
        return ""
    if facts.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (number {facts.st_uid})"
    shared = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(facts.st_mode)
    if shared and not (above and facts.st_mode & stat.S_ISVTX):
        return f"can be written by others (mode {stat.S_IMODE(facts.st_mode):o})"
    return ""
