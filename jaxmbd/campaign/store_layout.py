"""What a study's store holds, and its files: arrays over samples in equal chunks, and without.

The files are those that zarr-python would write of a group in Zarr v3, with consolidated metadata
(https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html). They are made here because
zarr-python takes twice the processor time for a chunk (0.14 s for the 52 arrays of 65 536 samples
of the corner's sweep, whose rate falls by a quarter), and because its releases may write other
metadata, so that a damaged description could not be restored byte for byte. zarr-python reads them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.plumbing import optional, refuse

google_crc32c = optional("google_crc32c", "campaign", "a study's store")  # as zarr's own
numcodecs = optional("numcodecs", "campaign", "a study's store")

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


class FixedArray(NamedTuple):
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
        fixed: name to array without samples, a `FixedArray` or a tuple of its three parts.

    Raises:
        ValueError: names all that is wrong.
    """

    count: int
    chunk: int
    fields: dict[str, Field]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {name: FixedArray(*x) for name, x in self.fixed.items()}
        fixed = {
            name: FixedArray(tuple(x.dims), _numpy_array(x.values), x.attributes)
            for name, x in given.items()
        }
        object.__setattr__(self, "fixed", fixed)
        refuse("this study cannot be stored", self._problems(fixed))
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

    def _problems(self, fixed: Mapping[str, FixedArray]) -> list[str]:
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


def _numpy_array(values: Any) -> np.ndarray:
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


FORMAT = "jaxmbd-study-1"
MARK = f"{COMMITS}/checksum"
"""Name of the array of checksums, of one row for each chunk and one column for each field."""

ROOT = "zarr.json"
IDENTITY = "study"
"""The attribute of the root group that decides the results."""
ABOUT_MARKS = f"{MARK}/zarr.json"


def key(name: str, *place: int) -> str:
    """The relative path of the file of an array's chunk."""
    return f"{name}/" + ".".join(["c", *map(str, place)])


def head(layout: Layout, attributes: dict[str, Any]) -> dict[str, bytes]:
    """The files of a store without samples, by relative path; the same for the same arguments.

    Args:
        layout: of the store.
        attributes: of the root group; JSON values.
    """
    attributes = {"format": FORMAT, **attributes}
    nodes: dict[str, dict[str, Any]] = {COMMITS: _group({})}
    files: dict[str, bytes] = {}
    for name, f in layout.fields.items():
        shape, chunk = (layout.count, *f.shape), (layout.chunk, *f.shape)
        nodes[name] = _array(shape, chunk, f.dtype, f.fill, (SAMPLE, *f.dims), f.attributes)
    for name, x in layout.fixed.items():
        shape, dtype = x.values.shape, x.values.dtype
        fill = "" if dtype.kind == "T" else dtype.type(0).item()
        nodes[name] = _array(shape, shape, dtype, fill, x.dims, x.attributes)
        if x.values.size:
            files[key(name, *[0] * len(shape))] = b"".join(encoded(x.values))
    files |= {f"{name}/{ROOT}": _json(about) for name, about in nodes.items()}
    names = list(layout.fields)
    noted = {
        "fields": names,
        "files": {name: checksum(files[name]) for name in sorted(files)},
        "attributes": checksum(canonical(attributes)),
        IDENTITY: checksum(canonical(attributes.get(IDENTITY))),
    }
    shape = (layout.chunks, len(names))
    nodes[MARK] = _array(shape, (1, len(names)), "uint64", 0, ("chunk", "field"), noted)
    files[ABOUT_MARKS] = _json(nodes[MARK])
    copies = {name: nodes[name] for name in sorted(nodes, key=_place)}
    files[ROOT] = _json(_group(attributes, copies | {COMMITS: _group({}, {})}))
    return {name: files[name] for name in sorted(files)}


def read_head(path: Path) -> tuple[Layout, dict[str, Any]]:
    """The layout of the store at `path`, its arrays over samples, and attributes of its root group.

    Raises:
        Exception: of any kind, if the files are damaged.
    """
    about = json.loads((path / ROOT).read_bytes())
    nodes = about["consolidated_metadata"]["metadata"]
    names = nodes[MARK]["attributes"]["fields"]
    fields = {}
    for name in names:
        node = nodes[name]
        shape, dims = tuple(node["shape"][1:]), tuple(node["dimension_names"][1:])
        fields[name] = Field(shape, node["data_type"], dims, node["attributes"])
    first = nodes[names[0]]
    chunk = first["chunk_grid"]["configuration"]["chunk_shape"][0]
    return Layout(first["shape"][0], chunk, fields), about["attributes"]


def canonical(data: Any) -> bytes:
    """JSON whose bytes depend on the data alone."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _json(data: Any) -> bytes:
    return json.dumps(data, indent=2).encode()


def _group(attributes: Any, copies: dict[str, Any] | None = None) -> dict[str, Any]:
    """Metadata of a group; perhaps with copies of those of all that is below it."""
    about = {"attributes": attributes, "zarr_format": 3}
    if copies is not None:
        inline = {"kind": "inline", "must_understand": False, "metadata": copies}
        about["consolidated_metadata"] = inline
    return about | {"node_type": "group"}


def _place(name: str) -> tuple[int, str]:
    return name.count("/"), unicodedata.normalize("NFKC", name).casefold()


def _array(
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    dtype: Any,
    fill: Any,
    dims: tuple[str, ...],
    attributes: dict[str, Any],
) -> dict[str, Any]:
    """Metadata of an array."""
    grid = {"chunk_shape": [max(1, n) for n in chunk]}
    return {
        "shape": list(shape),
        "data_type": "string" if _is_text(dtype) else np.dtype(dtype).name,
        "chunk_grid": {"name": "regular", "configuration": grid},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "NaN" if fill != fill else fill,
        "codecs": codecs(dtype),
        "attributes": attributes,
        **({"dimension_names": list(dims)} if dims else {}),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


_LEVEL = 1
"""Of compression."""


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
        body = numcodecs.VLenUTF8().encode(x.astype(object))
    else:
        little = np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"), copy=False)
        body = little.reshape(-1).view(np.uint8)
    if not _plain(x.dtype):
        body = numcodecs.Zstd(level=_LEVEL).encode(body)
    return Encoded(body, google_crc32c.value(body).to_bytes(4, "little"))


def decoded(data: bytes, shape: tuple[int, ...], type_name: str) -> np.ndarray:
    """The array of numbers that `encoded` made a file of.

    Args:
        data: the file.
        shape: of the chunk.
        type_name: of the numbers.

    Raises:
        Exception: of any kind, if the file is damaged; ValueError if its checksum does not fit.
    """
    dtype = np.dtype(type_name)
    body = data[:-4]
    if google_crc32c.value(body) != int.from_bytes(data[-4:], "little"):
        raise ValueError("its checksum is not that of its content")
    if not _plain(dtype):
        body = numcodecs.Zstd().decode(body)
    return np.frombuffer(body, dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def checksum(data: bytes) -> int:
    """64 bits that tell whether a file is the one that was written.

    Files of chunks end in the checksum of what is before, hence a checksum of all of it would be
    the same for all of them: the two are put side by side.
    """
    return google_crc32c.value(data[:-4]) | int.from_bytes(data[-4:], "little") << 32
