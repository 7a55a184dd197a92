"""What can go wrong with a store on disk, said so that the user knows what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class StoreError(OSError):
    """A store cannot be created, read or written; the text says why and what to do."""


class StoreDiffers(ValueError):
    """The store at that path belongs to another study; the text lists the differences."""


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
