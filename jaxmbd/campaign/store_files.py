"""Files that are there as a whole or not at all, also after a power cut.

Errors of storing, with their remedies.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
