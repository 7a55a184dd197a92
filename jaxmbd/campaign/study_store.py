"""A study's results on disk, in Zarr v3: written chunk by chunk, durable, never half."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbd.campaign.store_files import (
    AT_ONCE,
    StoreError,
    explained,
    place_folder,
    store_path,
    sync_file,
    sync_folder,
    work_folder,
    write_file,
)
from jaxmbd.campaign.store_layout import (
    FORMAT,
    MARK,
    ROOT,
    Layout,
    checksum,
    decoded,
    encoded,
    filled_up,
    head,
    key,
    read_head,
)
from jaxmbd.plumbing import optional

if TYPE_CHECKING:
    import xarray


class StudyStore:
    """A Zarr group of arrays over samples, in which a chunk is there as a whole or not at all.

    A chunk of samples is one file for each array. When all of them are on disk, their checksums
    follow as a row of the array ``commits/checksum``: only then does the chunk count as done. Files
    are written once, by one writer, and never read to be written. Nothing in the folder depends on
    when or in which order chunks were written. Any Zarr reads it; zarr-python's own store does not
    flush files to disk. Use `create` or `open`.

    Attributes:
        path: the folder.
        layout: its arrays.
        attributes: of the group, as given to `create`.
    """

    def __init__(self, path: Path, layout: Layout, attributes: dict[str, Any]) -> None:
        self.path = path
        self.layout = layout
        self.attributes = attributes

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], layout: Layout, attributes: Mapping[str, Any]
    ) -> StudyStore:
        """Make a store without samples; after a kill, all of it or nothing is there.

        Args:
            path: a folder that does not exist.
            layout: of its arrays.
            attributes: JSON values; what decides the results under ``"study"``.

        Raises:
            StoreError: something is at `path`, or it cannot be written.
        """
        path = store_path(path)
        if path.exists():
            raise StoreError(f"{path} exists: choose another path, or remove it")
        with explained(path, "create the folder"):
            drafts = work_folder(path)
            place_folder(path, head(layout, dict(attributes)), drafts)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> StudyStore:
        """Open what `create` made.

        Raises:
            FileNotFoundError: there is nothing.
            StoreError: it is no study's store, or its description is damaged.
        """
        path = store_path(path)
        _check_is_store(path)
        try:
            layout, attributes = read_head(path)
        except Exception as error:  # whatever the decoders make of damaged files
            raise StoreError(
                f"the description of {path} is damaged: {error!r}. Samples are untouched; verify "
                "it with its study to restore the description"
            ) from error
        if (found := attributes.pop("format", None)) != FORMAT:
            raise StoreError(f"{path} is no study's store of the form {FORMAT!r}, but {found!r}")
        return cls(path, layout, attributes)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return self.layout.chunks

    def rows(self, k: int) -> tuple[int, int]:
        """First sample of chunk `k`, and the one after its last."""
        return self.layout.rows(k)

    def files(self, k: int) -> dict[str, str]:
        """Field to the relative path of its file for chunk `k`."""
        fields = self.layout.fields.items()
        return {name: key(name, k, *[0] * len(f.shape)) for name, f in fields}

    def mark(self, k: int) -> str:
        """The relative path of the file with the checksums of chunk `k`."""
        return key(MARK, k, 0)

    def done(self) -> np.ndarray:
        """Which chunks are stored (chunks,), judged by the names of files."""
        names = {MARK: 2} | {name: 1 + len(f.shape) for name, f in self.layout.fields.items()}
        found = np.ones(self.chunks, bool)
        for name, ndim in names.items():
            there = set(os.listdir(self.path / name)) if (self.path / name).is_dir() else set()
            files = (key("", k, *[0] * (ndim - 1)).lstrip("/") for k in range(self.chunks))
            found &= np.fromiter((file in there for file in files), bool, self.chunks)
        return found

    def missing(self) -> list[int]:
        """Numbers of the chunks that are not stored."""
        return np.flatnonzero(~self.done()).tolist()

    def write(self, k: int, arrays: Mapping[str, Any]) -> None:
        """Store all arrays of a chunk; it is done when this returns, and not before.

        Args:
            k: number of the chunk.
            arrays: name to values (rows, …), for every field.

        Raises:
            ValueError: names, shapes or types are not those of the layout.
            StoreError: they cannot be written; nothing that was stored before is lost.
        """
        self.settle(k, self.stage(k, arrays))

    def stage(self, k: int, arrays: Mapping[str, Any]) -> dict[str, int]:
        """The first half of `write`: give the files to the operating system.

        They survive the death of this process (see `recover`), but not yet a power cut, and do not
        count as done.

        Args:
            k: number of the chunk.
            arrays: name to values (rows, …), for every field.

        Returns:
            name to checksum, for `settle`.
        """
        arrays = self._checked(k, arrays)
        drafts = work_folder(self.path)

        def put(name: str) -> int:
            fill = self.layout.fields[name].fill
            file = encoded(filled_up(arrays[name], self.layout.chunk, fill))
            write_file(self.path / files[name], drafts, *file, durable=False)
            return file.checksum

        files = self.files(k)
        with explained(self.path, f"write chunk {k}"):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                return dict(zip(files, pool.map(put, files), strict=True))

    def settle(self, k: int, checksums: Mapping[str, int]) -> None:
        """The second half of `write`: wait for the disk, then note the checksums; now it is done.

        Args:
            k: number of the chunk.
            checksums: what `stage` returned.
        """
        files, drafts = self.files(k), work_folder(self.path)
        with explained(self.path, f"write chunk {k}"):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda file: sync_file(self.path / file), files.values()))
                list(pool.map(lambda name: sync_folder(self.path / name), files))
            mark = self.path / self.mark(k)
            row = np.array([[checksums[name] for name in files]], np.uint64)
            write_file(mark, drafts, *encoded(row))
            sync_folder(mark.parent)

    def recover(self) -> list[int]:
        """Settle the chunks that a dead process had staged, if all of their bytes are there.

        Returns:
            their numbers.
        """
        found = []
        for k in self.missing():
            files = {name: self.path / file for name, file in self.files(k).items()}
            if not all(file.exists() for file in files.values()):
                continue
            try:
                self.read(k)
            except StoreError:  # torn by a power cut: the chunk is computed again
                continue
            self.settle(k, {name: checksum(file.read_bytes()) for name, file in files.items()})
            found.append(k)
        return found

    def read(self, k: int) -> dict[str, np.ndarray]:
        """The arrays of a chunk.

        Raises:
            StoreError: it is not stored, or a file of it is damaged.
        """
        start, stop = self.rows(k)
        if missing := [file for file in self.files(k).values() if not (self.path / file).exists()]:
            raise StoreError(f"chunk {k} of {self.path} is not stored: there is no {missing[0]}")
        return {name: self._chunk(name, k) for name in self.layout.fields}

    def checksums(self, k: int) -> dict[str, int]:
        """Field to checksum of its file for chunk `k`, as noted when it was stored.

        Raises:
            Exception: of any kind, if the note is damaged.
        """
        fields = self.layout.fields
        row = decoded((self.path / self.mark(k)).read_bytes(), (1, len(fields)), "uint64")
        return dict(zip(fields, row[0].tolist(), strict=True))

    def discard(self, k: int) -> None:
        """Forget a chunk, so that it counts as missing."""
        with explained(self.path, f"discard chunk {k}"):
            # The mark last: killed in between, the chunk is not whole, and `recover` leaves it.
            for file in [*self.files(k).values(), self.mark(k)]:
                (self.path / file).unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove drafts that a killed writer left."""
        shutil.rmtree(work_folder(self.path), ignore_errors=True)

    def dataset(self, **options: Any) -> xarray.Dataset:
        """All arrays with their coordinates; values are read when they are used.

        Args:
            **options: for `xarray.open_zarr`, as ``chunks={}`` for dask arrays.
        """
        xarray = optional("xarray", "campaign", "a study's dataset")
        optional("zarr", "campaign", "a study's dataset")
        return xarray.open_zarr(self.path, **{"chunks": None, **options})

    def _chunk(self, name: str, k: int) -> np.ndarray:
        """The samples of a chunk of one array."""
        f, (start, stop) = self.layout.fields[name], self.rows(k)
        file = self.path / key(name, k, *[0] * len(f.shape))
        try:
            rows = decoded(file.read_bytes(), (self.layout.chunk, *f.shape), f.dtype)
        except Exception as error:  # whatever the decoders make of damaged files
            raise StoreError(
                f"'{name}' of chunk {k} of {self.path} is damaged: {error}. Verify the store "
                "with its study to compute it again"
            ) from error
        return rows[: stop - start]

    def _checked(self, k: int, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        start, stop = self.rows(k)
        if arrays.keys() != self.layout.fields.keys():
            raise ValueError(
                f"chunk {k} has {sorted(arrays)} where the store has {sorted(self.layout.fields)}"
            )
        found = {}
        for name, f in self.layout.fields.items():
            x = np.asarray(arrays[name])
            shape = (stop - start, *f.shape)
            if x.shape != shape or not np.can_cast(x.dtype, f.dtype, "same_kind"):
                raise ValueError(
                    f"'{name}' of chunk {k} is {x.dtype} of shape {x.shape} where the store has "
                    f"{f.dtype} of shape {shape}"
                )
            found[name] = x.astype(f.dtype, copy=False)
        return found


def _check_is_store(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"there is no store at {path}")
    if not (path / ROOT).is_file():
        what = "a folder without zarr.json" if path.is_dir() else "a file"
        raise StoreError(f"{path} is {what}, not a study's store; it was not touched")
    try:
        about = json.loads((path / ROOT).read_bytes())
        known = about["attributes"].get("format")
    except (ValueError, KeyError, AttributeError):
        return  # damaged, or of another kind: opening will tell
    if known is None:
        raise StoreError(f"{path} is a Zarr group, but not a study's store; it was not touched")
