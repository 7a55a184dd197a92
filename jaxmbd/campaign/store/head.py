"""The files that a store begins with: its description, and arrays without samples.

They are those of a group in Zarr v3, whose metadata are JSON:
https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html. The root has a copy of all of them,
as zarr-python's ``consolidate_metadata`` makes it.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

from jaxmbd.campaign.store.encoding import checksum, codecs, data_type, decoded, encoded
from jaxmbd.campaign.store.layout import COMMITS, SAMPLE, Field, Fixed, Layout

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
    """The layout of the store at `path` and the attributes of its root group.

    Raises:
        Exception: of any kind, if the files are damaged.
    """
    about = json.loads((path / ROOT).read_bytes())
    nodes = about["consolidated_metadata"]["metadata"]
    fields, fixed = {}, {}
    for name, node in nodes.items():
        if node["node_type"] == "group" or name == MARK:
            continue
        shape, kind = tuple(node["shape"]), node["data_type"]
        dims = tuple(node.get("dimension_names", ()))
        if dims[:1] == (SAMPLE,):
            fields[name] = Field(shape[1:], kind, dims[1:], node["attributes"])
        else:
            file = path / key(name, *[0] * len(shape))
            data = b"" if 0 in shape else file.read_bytes()
            fixed[name] = Fixed(dims, decoded(data, shape, kind), node["attributes"])
    names = nodes[MARK]["attributes"]["fields"]
    first = nodes[names[0]]
    chunk = first["chunk_grid"]["configuration"]["chunk_shape"][0]
    layout = Layout(first["shape"][0], chunk, {name: fields[name] for name in names}, fixed)
    return layout, about["attributes"]


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
        "data_type": data_type(dtype),
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
