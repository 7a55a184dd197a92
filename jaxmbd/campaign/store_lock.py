"""One process at a time runs a study into a store."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from jaxmbd.campaign.store_files import StoreError, explained, store_path
from jaxmbd.plumbing import warn_user

try:
    import fcntl
except ImportError:  # Windows locks bytes of a file, not the file
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

_HELD: set[IO[str]] = set()
_FAR = 1 << 30
"""The byte that Windows locks: beyond all that is written, as locked bytes cannot be read."""


def lock_file(path: Path) -> Path:
    """The file that is locked, beside the store."""
    return path.with_name(path.name + ".lock")


@contextmanager
def lock(path: str | os.PathLike[str]) -> Iterator[str]:
    """Hold the store at `path` for this process; the kernel frees it when the process dies.

    Yields:
        a text that no other holder has, see `holder`.

    Raises:
        StoreError: another process holds it, or the lock's file cannot be written.
    """
    path = store_path(path)
    with explained(path, "lock the folder"):
        file = _locked(path)
    _HELD.add(file)
    token = uuid.uuid4().hex
    about = {"pid": os.getpid(), "host": socket.gethostname(), "token": token}
    try:
        with explained(path, "lock the folder"):
            file.seek(0)
            file.truncate()
            file.write(json.dumps(about))
            file.flush()
        yield token
    finally:
        if fcntl is not None:
            lock_file(path).unlink(missing_ok=True)  # before it is free: nobody has it open yet
        _HELD.discard(file)
        file.close()
        if fcntl is None:
            with suppress(OSError):  # Windows removes no file that is open, such as for a new run
                lock_file(path).unlink(missing_ok=True)


def holder(path: Path) -> dict[str, Any]:
    """Who holds, or held until it died, the lock: pid, host, token; empty if nobody."""
    try:
        return json.loads(lock_file(path).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def revoke(path: Path) -> None:
    """Tell workers that the run of this process, which holds the lock, is over."""
    about = holder(path)
    if about.get("pid") == os.getpid():
        with suppress(OSError):
            lock_file(path).write_text(json.dumps({**about, "token": None}), "utf-8")


def _locked(path: Path) -> IO[str]:
    while True:
        file = open(lock_file(path), "a+", encoding="utf-8")
        try:
            _take(file, path)
            same = os.fstat(file.fileno()).st_ino == _inode(lock_file(path))
        except BaseException:
            file.close()
            raise
        if same:
            return file
        file.close()  # its last holder has just removed it


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return -1


def _take(file: IO[str], path: Path) -> None:
    try:
        _lock_at_once(file)
    except (BlockingIOError, PermissionError):  # Windows says the latter
        other = holder(path)
        raise StoreError(
            f"{path} is in use: process {other.get('pid', '?')} on {other.get('host', '?')} runs a "
            "study into it. Wait until it ends or stop it; nothing was changed"
        ) from None
    except OSError as error:
        warn_user(
            f"{path} cannot be locked on this file system ({error.strerror}): run no second process"
        )


def _lock_at_once(file: IO[str]) -> None:
    """Lock a file for this process.

    Raises:
        OSError: another process has it, or the file system cannot.
    """
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        file.seek(_FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore


def _close_in_child() -> None:
    # A forked child would keep the lock of a parent that dies.
    while _HELD:
        _HELD.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
