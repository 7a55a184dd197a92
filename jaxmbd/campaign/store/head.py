"""The files that a store begins with: its description, and arrays without samples."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import zarr
from zarr.storage import MemoryStore

from jaxmbd.campaign.store.encoding import checksum, codecs
from jaxmbd.campaign.store.layout import COMMITS, SAMPLE, Layout

FORMAT = "jaxmbd-study-1"
MARK = f"{COMMITS}/checksum"
"""Name of the array of checksums, of one row for each chunk and one column for each field."""

ROOT = "zarr.json"
IDENTITY = "study"
"""The attribute of the root group that decides the results."""
ABOUT_MARKS = f"{MARK}/zarr.json"

_KEYS: Any = {"name": "default", "separator": "."}


def head(layout: Layout, attributes: dict[str, Any]) -> dict[str, bytes]:
    """The files of a store without samples, by relative path; the same for the same arguments.

    Args:
        layout: of the store.
        attributes: of the root group; JSON values.
    """
    buffers: dict[str, Any] = {}
    store = MemoryStore(buffers)
    root = zarr.create_group(store, attributes={"format": FORMAT, **attributes})
    for name, f in layout.fields.items():
        _array(
            root, name, (layout.count, *f.shape), (layout.chunk, *f.shape), f.dtype, f.fill,
            (SAMPLE, *f.dims), f.attributes,
        )  # fmt: skip
    for name, x in layout.fixed.items():
        made = _array(
            root, name, x.values.shape, x.values.shape, x.values.dtype, None, x.dims, x.attributes
        )
        made[...] = x.values
    root.create_group(COMMITS)
    names = list(layout.fields)
    about = {
        "fields": names,
        "files": {key: checksum(data) for key, data in _files(buffers).items() if key != ROOT},
        "attributes": checksum(canonical(dict(root.attrs))),
        IDENTITY: checksum(canonical(attributes.get(IDENTITY))),
    }
    _array(
        root, MARK, (layout.chunks, len(names)), (1, len(names)), "uint64", 0, ("chunk", "field"),
        about,
    )  # fmt: skip
    with warnings.catch_warnings():
        # Zarr warns that other readers may not know consolidated metadata; they need not.
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(store)
    return _files(buffers)


def canonical(data: Any) -> bytes:
    """JSON whose bytes depend on the data alone."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _array(
    root: zarr.Group,
    name: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: Any,
    fill: Any,
    dims: tuple[str, ...],
    attributes: dict[str, Any],
) -> zarr.Array:
    if fill is None:
        fill = "" if np.dtype(dtype).kind == "T" else 0
    return root.create_array(
        name,
        shape=shape,
        chunks=tuple(max(1, n) for n in chunks),
        dtype=dtype,
        fill_value=fill,
        compressors=codecs(dtype),
        chunk_key_encoding=_KEYS,
        dimension_names=dims,
        attributes=attributes,
        config={"write_empty_chunks": True},
    )


def _files(buffers: dict[str, Any]) -> dict[str, bytes]:
    return {key: buffers[key].to_bytes() for key in sorted(buffers)}
