"""The arrays of a store as NumPy has them.

They answer to what tables and figures ask of an `xarray.Dataset`, whose import takes longer than
many a study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np


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
