"""Disks that are full or read-only, files that are damaged, two processes at once."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxmbd.campaign import StoreError, StudyStore
from jaxmbd.campaign.session import verify
from survive_cases.stores import files, leftovers

Act = Callable[[Path], Any]


@contextmanager
def small_disk(at: Path, size: int) -> Iterator[Callable[[str], None]]:
    """A disk in memory of `size` bytes; the function that it yields changes its options."""
    at.mkdir()
    options = ["mount", "-t", "tmpfs", "-o"]
    subprocess.run([*options, f"size={size}", "tmpfs", str(at)], check=True)
    try:
        yield lambda new: subprocess.run([*options, f"remount,{new}", str(at)], check=True) and None
    finally:
        subprocess.run(["umount", str(at)], check=True)


def disk_full(act: Act, folder: Path, whole: Path, sizes: int, seed: int) -> dict[str, int]:
    """Run on disks of random sizes that are too small, then with room."""
    if os.geteuid():
        return {"disks": 0}  # only root may mount
    rng, expected = random.Random(seed), files(whole)
    total = sum(map(len, expected.values()))
    found = {"disks": 0, "clear errors": 0, "stores undamaged": 0, "identical": 0}
    for i in range(sizes):
        with small_disk(folder / f"disk{i}", rng.randrange(4096, total)) as remount:
            path = folder / f"disk{i}" / "s.zarr"
            found["disks"] += 1
            found["clear errors"] += "disk is full" in error_of(act, path)
            found["stores undamaged"] += not path.exists() or not verify(StudyStore.open(path))
            remount("size=1g")
            act(path)
            found["identical"] += files(path) == expected and not leftovers(path)
    return found


def read_only(act: Act, folder: Path) -> str:
    """The error of a run on a disk that may not be written."""
    if os.geteuid():
        return "only root may mount"
    with small_disk(folder / "read only", 2**20) as remount:
        remount("ro")
        return error_of(act, folder / "read only" / "s.zarr")


def error_of(act: Act, path: Path) -> str:
    """The text of the error that a run ends with; empty if it does not."""
    try:
        act(path)
    except StoreError as error:
        return str(error)
    return ""


def _flipped(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


DAMAGES = {"a bit is flipped": _flipped, "a file is cut": _cut}


def damaged(act: Act, path: Path, whole: Path, times: int, seed: int) -> dict[str, dict[str, int]]:
    """Damage one random file of chunks at a time; find it, compute it again.

    Args:
        act: runs the study into a path.
        path: a whole store, which is changed and repaired.
        whole: its copy.
        times: files to damage in each way.
        seed: of the choice.
    """
    rng, expected = random.Random(seed), files(whole)
    names = sorted(name for name in expected if "/c." in name)
    chunks = StudyStore.open(path).layout.fields
    names = [n for n in names if n.split("/c.")[0] in {*chunks, "commits/checksum"}]
    found = {}
    for what, damage in DAMAGES.items():
        counts = {"files": 0, "found": 0, "others reported": 0, "identical": 0}
        for _ in range(times):
            name = rng.choice(names)
            (path / name).write_bytes(damage(expected[name], rng))
            store = StudyStore.open(path)
            reports = verify(store)
            counts["files"] += 1
            counts["found"] += name in {d.file for d in reports}
            counts["others reported"] += sum(d.file != name for d in reports)
            for each in reports:
                if each.chunk is not None:
                    store.discard(each.chunk)
            act(path)
            counts["identical"] += files(path) == expected
        found[what] = counts
    return found
