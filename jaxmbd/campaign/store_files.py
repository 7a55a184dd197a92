"""Files of a store: there as a whole or not at all, also after a power cut, and locked.

Errors of storing, with their remedies.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from jaxmbd.plumbing import warn_user

AT_ONCE = 16
"""Files that are written at once: a disk makes many durable in the time that one takes."""


def store_path(path: str | os.PathLike[str]) -> Path:
    """The folder of a store, by one name: a link to it is followed, ``~`` is the user's own.

    A lock beside a link would not be the lock beside the folder.

    Raises:
        ValueError: it is the address of something that is no folder.
    """
    if "://" in str(path):
        raise ValueError(
            f"{path} is no folder: a store is written to a file system of this machine"
        )
    found = Path(path).expanduser().absolute()
    return Path(os.path.realpath(found)) if found.is_symlink() else found


def work_folder(path: Path) -> Path:
    """Where drafts of a store's files lie while they are written: beside it, on the same disk.

    Not inside: whoever reads the store must not meet them.
    """
    return path.with_name(path.name + ".work")


def write_file(path: Path, drafts: Path, *parts: Any, durable: bool = True) -> None:
    """Write a file: draft, flush to disk, rename. It survives the death of this process.

    Args:
        path: the file, in an existing folder.
        drafts: folder on the same disk.
        *parts: of its content: bytes or anything with the buffer protocol.
        durable: whether the draft is flushed to disk, so that the file also survives a power cut;
            its name does after `sync_folder` of its folder.
    """
    drafts.mkdir(exist_ok=True)
    draft = drafts / f"{uuid.uuid4().hex}.draft"
    try:
        with open(draft, "xb") as file:
            for part in parts:
                file.write(part)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def sync_file(path: Path) -> None:
    """Flush a file to disk."""
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Make names in a folder durable."""
    if os.name == "nt":  # folders cannot be opened there; renaming is journaled
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def place_folder(path: Path, files: dict[str, bytes], drafts: Path) -> None:
    """Make a folder with files in it: after a kill at any moment, all of it or nothing is there.

    Args:
        path: the folder, which does not exist.
        files: relative path with ``/`` to content.
        drafts: folder on the same disk.

    Raises:
        OSError: something is at `path` already, or it cannot be written.
    """
    drafts.mkdir(exist_ok=True)
    new = drafts / f"{uuid.uuid4().hex}.new"

    def put(name: str) -> None:
        with open(new / name, "xb") as file:
            file.write(files[name])
            file.flush()
            os.fsync(file.fileno())

    try:
        for folder in {(new / name).parent for name in files}:
            folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(put, files))
            list(pool.map(lambda walked: sync_folder(Path(walked[0])), os.walk(new)))
        os.rename(new, path)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    sync_folder(path.parent)


_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class StoreError(OSError):
    """A store cannot be created, read or written; the text says why and what to do.

    Example:
        >>> from jaxmbd.campaign import StoreError
        >>> issubclass(StoreError, OSError)
        True
    """


class StoreDiffers(ValueError):
    """The store at that path belongs to another study; the text lists the differences.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Normal
        >>> inputs = {"x": Input(Normal(0.1), nominal=1.0)}
        >>> study = mbd.Study(lambda s: {"y": s["x"] ** 2}, inputs, samples=8)
        >>> other = mbd.Study(lambda s: {"y": s["x"] ** 2}, inputs, samples=8, seed=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = study.run(folder + "/s.zarr", progress=False)
        ...     try:
        ...         other.run(folder + "/s.zarr")
        ...     except mbd.campaign.StoreDiffers as error:
        ...         "study/seed: 0 -> 1" in str(error)
        True
    """


@contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Errors of the operating system become a `StoreError` that says what to do.

    Args:
        path: of the store.
        doing: what was tried, as "write chunk 12".
    """
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        told = StoreError(f"cannot {doing} of {path}: {error}. {_remedy(error.errno)}")
        told.errno = error.errno
        raise told from error


def _remedy(number: int | None) -> str:
    kept = "What was stored before is untouched"
    if number in _FULL:
        return f"The disk is full. {kept}: free some space and run the same study again to go on"
    if number in _FORBIDDEN:
        return f"There is no permission to write. {kept}: change that, or choose another path"
    return f"{kept}: remedy the cause and run the same study again to go on"


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
