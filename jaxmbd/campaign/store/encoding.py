"""Arrays as the bytes of their chunk's file, in the codecs that `head` declares.

Zarr's own way to a file takes a millisecond of the processor, however small it is; a study writes
some twenty files for each chunk, and its kernels may need no longer than that to compute it.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from google_crc32c import value as crc32c  # which zarr itself uses
from numcodecs.zstd import Zstd
from zarr.codecs import Crc32cCodec, ZstdCodec

_LEVEL = 1


def codecs(dtype: Any) -> Any:
    """Zarr's codecs for numbers of a type, after the one that makes bytes of them.

    Digits of results are random: the quickest compression saves nothing and takes most of the time
    to store them. Integers and texts are compressed, by zstd: in one thread it gives the same bytes
    always, unlike blosc, whose threads write blocks as they finish.
    """
    return (Crc32cCodec(),) if _plain(dtype) else (ZstdCodec(level=_LEVEL), Crc32cCodec())


def _plain(dtype: Any) -> bool:
    return np.dtype(dtype).kind in "fu"


class Encoded(NamedTuple):
    """The bytes of a file in two parts, so that the first need not be copied."""

    body: Any
    check: bytes

    @property
    def checksum(self) -> int:
        """`checksum` of the file."""
        return int.from_bytes(self.check, "little") * (2**32 + 1)


def encoded(rows: np.ndarray, chunk: int, fill: Any) -> Encoded:
    """A chunk of samples; one of fewer rows than `chunk` is filled up."""
    if len(rows) < chunk:
        full = np.full((chunk, *rows.shape[1:]), fill, rows.dtype)
        full[: len(rows)] = rows
        rows = full
    body: Any = _little_endian(rows).reshape(-1).view(np.uint8)
    if not _plain(rows.dtype):
        body = Zstd(level=_LEVEL).encode(body)
    return Encoded(body, crc32c(body).to_bytes(4, "little"))


def checksum(data: bytes) -> int:
    """64 bits that tell whether a file is the one that was written.

    Files of chunks end in the checksum of what is before, hence a checksum of all of it would be
    the same for all of them: the two are put side by side.
    """
    return crc32c(data[:-4]) | int.from_bytes(data[-4:], "little") << 32


def _little_endian(x: np.ndarray) -> np.ndarray:
    x = np.ascontiguousarray(x)
    return x if sys.byteorder == "little" else x.astype(x.dtype.newbyteorder("<"))
