"""The arrays of a store as NumPy has them.

They answer to what tables and figures ask of an `xarray.Dataset`, whose import takes longer than
many a study.

They are the bytes of their chunks' files, in the codecs that their metadata declares. The format is
Zarr's. Its own way to a file takes a millisecond of the processor, however small it
is, and its import a quarter of a second; a study writes some twenty files for each chunk, and its
kernels may need no longer than that to compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from google_crc32c import value as crc32c  # which zarr itself uses
from numcodecs.vlen import VLenUTF8
from numcodecs.zstd import Zstd

_LEVEL = 1
_TEXT = np.dtypes.StringDType()


def data_type(dtype: Any) -> str:
    """Zarr's name of a type of numbers or texts."""
    return "string" if _is_text(dtype) else np.dtype(dtype).name


def codecs(dtype: Any) -> list[dict[str, Any]]:
    """Zarr's codecs for numbers of a type, or for texts.

    Digits of results are random: the quickest compression saves nothing and takes most of the time
    to store them. Integers and texts are compressed, by zstd: in one thread it gives the same bytes
    always, unlike blosc, whose threads write blocks as they finish.
    """
    if _is_text(dtype):
        first: dict[str, Any] = {"name": "vlen-utf8", "configuration": {}}
    elif np.dtype(dtype).itemsize == 1:
        first = {"name": "bytes"}
    else:
        first = {"name": "bytes", "configuration": {"endian": "little"}}
    zstd = {"name": "zstd", "configuration": {"level": _LEVEL, "checksum": False}}
    return [first, *([] if _plain(dtype) else [zstd]), {"name": "crc32c"}]


def _is_text(dtype: Any) -> bool:
    return np.dtype(dtype).kind == "T"


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


def filled_up(rows: np.ndarray, chunk: int, fill: Any) -> np.ndarray:
    """A chunk of samples of which the last ones are not there."""
    if len(rows) == chunk:
        return rows
    full = np.full((chunk, *rows.shape[1:]), fill, rows.dtype)
    full[: len(rows)] = rows
    return full


def encoded(x: np.ndarray) -> Encoded:
    """An array, which is one chunk, as its file."""
    body: Any
    if _is_text(x.dtype):
        body = VLenUTF8().encode(x.astype(object))
    else:
        body = _little_endian(x).reshape(-1).view(np.uint8)
    if not _plain(x.dtype):
        body = Zstd(level=_LEVEL).encode(body)
    return Encoded(body, crc32c(body).to_bytes(4, "little"))


def decoded(data: bytes, shape: tuple[int, ...], type_name: str) -> np.ndarray:
    """The array that `encoded` made a file of.

    Args:
        data: the file; there is none of an array without numbers.
        shape: of the chunk.
        type_name: its `data_type`.

    Raises:
        Exception: of any kind, if the file is damaged; ValueError if its checksum does not fit.
    """
    dtype = _TEXT if type_name == "string" else np.dtype(type_name)
    if 0 in shape:
        return np.empty(shape, dtype)
    body = data[:-4]
    if crc32c(body) != int.from_bytes(data[-4:], "little"):
        raise ValueError("its checksum is not that of its content")
    if not _plain(dtype):
        body = Zstd().decode(body)
    if _is_text(dtype):
        return VLenUTF8().decode(body).astype(dtype).reshape(shape)
    return np.frombuffer(body, dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def checksum(data: bytes) -> int:
    """64 bits that tell whether a file is the one that was written.

    Files of chunks end in the checksum of what is before, hence a checksum of all of it would be
    the same for all of them: the two are put side by side.
    """
    return crc32c(data[:-4]) | int.from_bytes(data[-4:], "little") << 32


def _little_endian(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"), copy=False)


class StoredArray:
    """One array of a store, read when it is first used.

    Attributes:
        dims: names of its axes.
        attrs: units, long_name and the like.
    """

    def __init__(
        self,
        dims: tuple[str, ...],
        attrs: dict[str, Any],
        read: Callable[[], np.ndarray],
        pieces: Callable[[], Iterable[tuple[slice, np.ndarray]]] = tuple,
    ) -> None:
        self.dims, self.attrs, self._read, self._pieces = dims, attrs, read, pieces

    @cached_property
    def values(self) -> np.ndarray:
        """All its numbers."""
        return self._read()

    def pieces(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Samples and their numbers, chunk by chunk of those that are stored; none are kept."""
        yield from self._pieces()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype, copy=copy)

    def __float__(self) -> float:
        return float(self.values)


class StoredArrays(Mapping[str, StoredArray]):
    """All arrays of a store, name to `StoredArray`.

    Attributes:
        attrs: attributes of the store.
    """

    def __init__(self, arrays: Mapping[str, StoredArray], attrs: Mapping[str, Any]) -> None:
        self._arrays, self.attrs = dict(arrays), dict(attrs)

    def __getitem__(self, name: str) -> StoredArray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def data_vars(self) -> dict[str, StoredArray]:
        """Those that are not the coordinates of an axis."""
        return {name: x for name, x in self._arrays.items() if x.dims != (name,)}
