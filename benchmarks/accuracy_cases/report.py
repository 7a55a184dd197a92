"""Common to all kinds of files: comparisons, their table, and the reading of series."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RELATIVE = 1e-6  # tolerance if a file states none
ROUNDING = 1e-12  # smallest tolerance, relative to the largest value


@dataclass(frozen=True)
class Row:
    """One comparison: the largest error of a quantity and what is allowed of it."""

    case: str
    quantity: str
    error: float
    allowed: float
    basis: str = ""
    verdict: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict in ("ok", "not run", "note")


def compare(
    case: str,
    quantity: str,
    ours: Any,
    theirs: Any,
    *,
    allowed: float | None = None,
    basis: str = "",
) -> Row:
    """The largest difference; entries that are NaN in the file are skipped, our NaN never.

    `allowed` is absolute; if it is None, it is `RELATIVE` times the largest value.
    """
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    if ours.shape != theirs.shape:
        text = f"shape {ours.shape}, the file's {theirs.shape}"
        return Row(case, quantity, np.inf, 0.0, text, "FAIL")
    given = ~np.isnan(theirs)
    size = float(np.max(np.abs(theirs[given]), initial=0.0))
    if allowed is None:
        allowed, basis = RELATIVE * (size or 1.0), basis or f"{RELATIVE:g} of the largest"
    allowed = max(float(allowed), ROUNDING * size)
    difference = np.abs(ours - theirs)[given]
    error = float(np.max(difference, initial=0.0)) if np.all(np.isfinite(ours[given])) else np.inf
    return Row(case, quantity, error, allowed, basis, "ok" if error <= allowed else "FAIL")


def unsupported(case: str, text: str) -> Row:
    """A file, or a part of one, that is not supported: a failure."""
    return Row(case, text, np.nan, np.nan, "", "UNSUPPORTED")


def failed(case: str, text: str) -> Row:
    return Row(case, text, np.nan, np.nan, "", "FAIL")


def note(case: str, text: str) -> Row:
    """A remark, neither a success nor a failure."""
    return Row(case, text, np.nan, np.nan, "", "note")


def not_run(case: str, text: str) -> Row:
    """A part that is omitted on purpose; the text says why."""
    return Row(case, text, np.nan, np.nan, "", "not run")


def table(rows: Sequence[Row]) -> str:
    head = ("case", "quantity", "error", "allowed", "error/allowed", "", "allowed is")
    cells = [
        (
            r.case,
            r.quantity,
            _number(r.error),
            _number(r.allowed),
            _number(r.error / r.allowed if r.allowed else r.error),
            r.verdict,
            r.basis,
        )
        for r in rows
    ]
    widths = [max(len(c[i]) for c in [head, *cells]) for i in range(len(head))]
    return "\n".join(
        "  ".join(x.ljust(w) for x, w in zip(c, widths, strict=True)).rstrip()
        for c in [head, *cells]
    )


def _number(x: float) -> str:
    return "" if np.isnan(x) else f"{x:.2e}"


@dataclass(frozen=True)
class Series:
    """A CSV file: its comment lines and its columns by name."""

    path: Path
    comments: tuple[str, ...]
    columns: dict[str, np.ndarray]

    @property
    def times(self) -> np.ndarray:
        """The column of times [s]: `t` or `time`, else the first."""
        named = [n for n in self.columns if n.lower() in ("t", "time")]
        return self.columns[named[0] if named else next(iter(self.columns))]

    def stack(self, names: Iterable[str]) -> np.ndarray:
        """(rows, len(names)); a column that is missing is NaN."""
        rows = len(next(iter(self.columns.values())))
        return np.stack([self.columns.get(n, np.full(rows, np.nan)) for n in names], axis=1)


def read_series(path: Path) -> Series:
    with open(path, encoding="utf-8", newline="") as file:
        lines = [line for line in file if line.strip()]
    comments = tuple(line.strip() for line in lines if line.startswith("#"))
    head, *rows = csv.reader([line for line in lines if not line.startswith("#")])
    table = np.array([[float(x) if x.strip() else np.nan for x in row] for row in rows])
    columns = {name.strip(): table[:, i] for i, name in enumerate(head)}
    return Series(path, comments, columns)


def spread(values: Any) -> float:
    """The largest range (maximum minus minimum) of any column."""
    values = np.asarray(values, float)
    values = values.reshape(len(values), -1)
    kept = values[:, ~np.all(np.isnan(values), axis=0)]
    if kept.size == 0:
        return 0.0
    return float(np.max(np.nanmax(kept, axis=0) - np.nanmin(kept, axis=0)))
