"""Stores compared byte by byte, and what their records tell of the chunks begun and stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from jaxmbd.campaign import StudyStore


def files(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def leftovers(path: Path) -> list[str]:
    """What lies beside the store when its run has ended, other than the record."""
    kept = {path.name, path.name + ".log"}
    return sorted(f.name for f in path.parent.glob(path.name + "*") if f.name not in kept)


def done(path: Path) -> set[int]:
    """Chunks that a run into the store would not compute."""
    if not path.exists():
        return set()
    store = StudyStore.open(path)
    store.recover()
    return set(range(store.chunks)) - set(store.missing())


class Record:
    """The record of a store, read piece by piece."""

    def __init__(self, path: Path) -> None:
        self.file = path.with_name(path.name + ".log")
        self.seen = 0

    def begun(self) -> list[int]:
        """Chunks begun since the last call."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        new, self.seen = lines[self.seen :], len(lines)
        events = [json.loads(line) for line in new]
        return [e["chunk"] for e in events if e["event"] == "computing"]


class Outcome(NamedTuple):
    """A trial.

    Attributes:
        kills: signals sent.
        stores: stores that were completed.
        identical: how many of them are byte for byte the uninterrupted one.
        chunks: of each store.
        lost: chunks that were begun, wholly computed or not, and lost by kills, in all.
        most_lost: the most of one kill.
        twice: chunks computed although they were stored; must be 0.
        seconds: of the trial.
        allowed: chunks that a kill may cost.
    """

    kills: int = 0
    stores: int = 0
    identical: int = 0
    chunks: int = 0
    lost: int = 0
    most_lost: int = 0
    twice: int = 0
    seconds: float = 0.0
    allowed: int = 1

    @property
    def good(self) -> bool:
        """Every store is the uninterrupted one, and no kill cost more than it may."""
        whole = self.identical == self.stores > 0 and self.twice == 0
        few = self.most_lost <= self.allowed and self.lost <= self.allowed * self.kills
        return whole and few
