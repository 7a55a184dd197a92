"""What can go wrong with a store on disk, said so that the user knows what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
