"""Evaluations kept in a file: what was computed once is not computed again.

Optimisers are deterministic, so that a run that was ended, begun anew with the same file, passes
through its past in no time and goes on where it stopped, with the same numbers.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np


class Kept:
    """Answers by question in an SQLite file.

    Args:
        path: the file; created if there is none.
        problem: JSON values that determine the problem.

    Raises:
        ValueError: the file belongs to another problem, or is no such file.
    """

    def __init__(self, path: str | Path, problem: dict[str, Any]):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(problem, sort_keys=True)
        try:
            self._file = sqlite3.connect(self.path)
            with self._file:
                self._file.execute("create table if not exists problem (text)")
                self._file.execute(
                    "create table if not exists answers (question blob primary key, answer blob)"
                )
                known = self._file.execute("select text from problem").fetchone()
                if known is None:
                    self._file.execute("insert into problem values (?)", (text,))
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is no file of kept evaluations: {error}") from None
        if known is not None and known[0] != text:
            old, new = json.loads(known[0]), json.loads(text)
            what = [k for k in sorted(old.keys() | new.keys()) if old.get(k) != new.get(k)]
            self._file.close()
            raise ValueError(
                f"{self.path} keeps the evaluations of another problem, which differs in "
                f"{', '.join(what)}; remove it, or give another store="
            )

    def __len__(self) -> int:
        return self._file.execute("select count(*) from answers").fetchone()[0]

    def find(self, questions: Sequence[bytes]) -> list[bytes | None]:
        """The answers that are known."""
        found = []
        for question in questions:
            row = self._file.execute(
                "select answer from answers where question = ?", (question,)
            ).fetchone()
            found.append(None if row is None else row[0])
        return found

    def add(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep answers; they are on disk when this returns."""
        with self._file:
            self._file.executemany("insert or replace into answers values (?, ?)", pairs)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def question(kind: str, *arrays: np.ndarray) -> bytes:
    """A key of a question by its numbers."""
    digest = blake2b(kind.encode(), digest_size=20)
    for x in arrays:
        digest.update(np.ascontiguousarray(x, np.float64).tobytes())
    return digest.digest()
