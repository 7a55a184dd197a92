"""A study as bytes for other processes, and the study again."""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from jaxmbd.campaign.store_files import work_folder, write_file
from jaxmbd.lanes import Recent
from jaxmbd.model import LAWS

_DEPTH = 10
_loaded = Recent(4)


def packed(study: Any) -> bytes:
    """The study, pickled; with cloudpickle (which dask brings) also functions of a notebook.

    A law that is registered in a module that can be imported goes by its name.

    Raises:
        TypeError: it cannot be pickled; names the part that cannot, and the remedy.
    """
    try:
        return _dumps(study)
    except Exception as error:  # pickling raises errors of many kinds
        raise TypeError(
            f"this study cannot be sent to workers: {_culprit(study, 'study')} cannot be pickled "
            f"({error}). Use functions defined at the top of a module that workers can import, or "
            "give laws a name there with register_law; or run without an executor"
        ) from error


def _law(module: str, name: str) -> Any:
    """The law that a module registers."""
    import_module(module)
    return LAWS[name]


class _LawsByName:
    """Part of a pickler: functions and classes that only `register_law` makes findable."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, FunctionType | type) and value.__module__ != "__main__":
            name = next((n for n, known in LAWS.items() if known is value), None)
            if name is not None and not _importable(value):
                return _law, (value.__module__, name)
        other = getattr(super(), "reducer_override", None)
        return NotImplemented if other is None else other(value)


def _importable(value: Any) -> bool:
    found = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


@cache
def _pickler() -> type:
    try:
        from cloudpickle import Pickler  # pyright: ignore[reportMissingImports]
    except ImportError:
        Pickler = pickle.Pickler
    return type("Pickler", (_LawsByName, Pickler), {})


def _dumps(value: Any) -> bytes:
    file = io.BytesIO()
    _pickler()(file, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def _culprit(value: Any, name: str, depth: int = 0) -> str | None:
    """The path of the innermost part that cannot be pickled."""
    try:
        _dumps(value)
        return None
    except Exception:  # the reason is known
        pass
    if isinstance(value, dict):
        parts = [(f"{name}[{key!r}]", x) for key, x in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{name}[{i}]", x) for i, x in enumerate(value)]
    else:
        parts = [(f"{name}.{key}", x) for key, x in getattr(value, "__dict__", {}).items()]
    inner = (_culprit(x, part, depth + 1) for part, x in parts if depth < _DEPTH)
    return next((found for found in inner if found), f"{name} ({value!r:.80})")


def put_parcel(store: Path, study: Any) -> str:
    """Write the study beside its store, where workers find it.

    Returns:
        its name for `take_parcel`.
    """
    data = packed(study)
    name = _name(data)
    folder = work_folder(store)
    folder.mkdir(exist_ok=True)
    write_file(folder / name, folder, data)
    return name


def take_parcel(store: Path, name: str) -> Any:
    """The study of a parcel; one object per process, which keeps what it has compiled.

    Raises:
        ValueError: it is not the one that was written, and is not unpickled: that would run it.
    """

    def loaded() -> Any:
        path = work_folder(store) / name
        data = path.read_bytes()
        if _name(data) != name:
            raise ValueError(
                f"{path} is not what this run has written: it was damaged or exchanged. Run the "
                "study again, with a store in a folder where nobody else can write"
            )
        return pickle.loads(data)

    return _loaded.get(name, loaded)


def _name(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
