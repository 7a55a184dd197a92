"""What a study's store holds: arrays over samples in equal chunks, and arrays without samples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

SAMPLE = "sample"
"""Name of the dimension of samples."""

LARGEST = 2**31 - 1
"""Bytes of one array's chunk, uncompressed, that the compressor accepts."""

_NAME = re.compile(r"[^/\\\s][^/\\]*")
_KINDS = "fiub"


@dataclass(frozen=True)
class Field:
    """One array over the samples.

    Attributes:
        shape: of one sample's value.
        dtype: a number type, as "float64".
        dims: a name for each axis of `shape`.
        attributes: units, long_name and the like; JSON values.
    """

    shape: tuple[int, ...] = ()
    dtype: str = "float64"
    dims: tuple[str, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def fill(self) -> Any:
        """What stands for a sample that is not computed yet: NaN, -1, the largest or False."""
        kind = np.dtype(self.dtype).kind
        if kind == "u":
            return int(np.iinfo(self.dtype).max)
        return {"f": float("nan"), "i": -1, "b": False}[kind]


class Fixed(NamedTuple):
    """One array without samples: a coordinate, a nominal value.

    Attributes:
        dims: a name for each axis.
        values: numbers or texts.
        attributes: units, long_name and the like; JSON values.
    """

    dims: tuple[str, ...]
    values: Any
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """All arrays of a store.

    Attributes:
        count: number of samples.
        chunk: samples in a chunk; the last one may have fewer.
        fields: name to array over the samples.
        fixed: name to array without samples, a `Fixed` or a tuple of its three parts.

    Raises:
        ValueError: names all that is wrong.
    """

    count: int
    chunk: int
    fields: dict[str, Field]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {name: Fixed(*x) for name, x in self.fixed.items()}
        fixed = {n: Fixed(tuple(x.dims), _array(x.values), x.attributes) for n, x in given.items()}
        object.__setattr__(self, "fixed", fixed)
        if found := self._problems(fixed):
            raise ValueError("\n  - ".join(["this study cannot be stored:", *found]))
        object.__setattr__(self, "chunk", min(self.chunk, self.count))

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.count // self.chunk)

    def rows(self, k: int) -> tuple[int, int]:
        """First sample of chunk `k`, and the one after its last."""
        if not 0 <= k < self.chunks:
            raise IndexError(f"chunk {k} of {self.chunks}")
        return k * self.chunk, min((k + 1) * self.chunk, self.count)

    def _problems(self, fixed: Mapping[str, Fixed]) -> list[str]:
        found = []
        if self.count < 1 or self.chunk < 1:
            found.append(f"{self.count} samples in chunks of {self.chunk}: both must be positive")
        if not self.fields:
            found.append("there is nothing to store: no field is given")
        sizes: dict[str, tuple[int, str]] = {}
        for name in [*self.fields, *fixed]:
            if not _NAME.fullmatch(name) or name.startswith((".", "__")) or name in TAKEN:
                found.append(f"'{name}' cannot be the name of an array")
        found += [f"'{n}' is both over samples and without" for n in self.fields if n in fixed]
        for name, f in self.fields.items():
            found += _field_problems(name, f, self.chunk)
            found += _size_problems(name, f.dims, f.shape, sizes)
        for name, x in fixed.items():
            if x.values.dtype.kind not in _KINDS + "T":
                found.append(f"'{name}' has type {x.values.dtype}: numbers or texts are stored")
            found += _size_problems(name, x.dims, x.values.shape, sizes)
        return found


COMMITS = "commits"
"""Name of the group that holds the checksums of what is stored."""
TAKEN = (COMMITS, SAMPLE, "zarr.json")
"""Names that no array can have."""


def _array(values: Any) -> np.ndarray:
    """Values as an array; texts have no fixed length."""
    x = np.asarray(values)
    texts = x.dtype.kind == "U" or (x.dtype == object and all(isinstance(t, str) for t in x.flat))
    return x.astype(np.dtypes.StringDType()) if texts else x


def _field_problems(name: str, f: Field, chunk: int) -> list[str]:
    dtype = np.dtype(f.dtype)
    if dtype.kind not in _KINDS:
        return [f"'{name}' has type {f.dtype}: numbers and booleans are stored"]
    if 0 in f.shape:
        return [f"'{name}' has shape {f.shape}: it has no numbers"]
    size = chunk * int(np.prod(f.shape, dtype=np.int64)) * dtype.itemsize
    if size > LARGEST:
        return [f"'{name}' has {size / 1e9:.1f} GB in a chunk: make chunks smaller"]
    return []


def _size_problems(
    name: str, dims: tuple[str, ...], shape: tuple[int, ...], sizes: dict[str, tuple[int, str]]
) -> list[str]:
    """Names of dimensions that do not fit the shape, or other arrays."""
    if len(dims) != len(shape):
        return [f"'{name}' has shape {shape} but dimensions {dims}"]
    found = []
    if SAMPLE in dims or len(set(dims)) < len(dims):
        found.append(f"'{name}' has dimensions {dims}: each once, and not '{SAMPLE}'")
    for dim, size in zip(dims, shape, strict=True):
        other, first = sizes.setdefault(dim, (size, name))
        if other != size:
            found.append(f"dimension '{dim}' is {size} in '{name}' but {other} in '{first}'")
    return found
