"""Rows of results, their printed lines, and the file that they are saved to."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        case, work, dtype: what was run.
        column: which engine or compiler ran it.
        batch: samples in a call.
        steps: of a rollout; 1 for forward dynamics.
        seconds: of a call, the best of the repeats; for `measured_steps` steps.
        measured_steps: steps that were run; times are scaled if fewer than `steps`.
        compile_seconds: tracing, lowering and compiling, not included in `seconds`.
        difference: largest relative difference from `jax.vmap` of the same function.
        odd: samples that are finite in only one of the two.
        overhead: of an empty call, already subtracted [s].
        flops: operations per sample, if known.
        note: a remark for the reader.
    """

    case: str
    work: str
    dtype: str
    column: str
    batch: int
    steps: int
    seconds: float
    measured_steps: int = 1
    compile_seconds: float | None = None
    difference: float | None = None
    odd: int = 0
    overhead: float | None = None
    flops: float | None = None
    note: str = ""

    @property
    def per_second(self) -> float:
        """Samples (forward dynamics) or steps of a sample (rollouts) per second."""
        return self.batch * self.measured_steps / self.seconds

    def line(self) -> str:
        unit = "/s" if self.steps == 1 else " steps/s"
        parts = [f"    {self.column:14s} batch {self.batch:<8d} {self.per_second:10.3e}{unit:8s}"]
        if self.measured_steps != self.steps:
            parts.append(f"(over {self.measured_steps} of {self.steps} steps)")
        if self.compile_seconds is not None:
            parts.append(f"compile {self.compile_seconds:.2f} s")
        if self.overhead is not None:
            parts.append(f"less {1e6 * self.overhead:.2f} µs a call")
        if self.difference is not None:
            parts.append(f"difference {self.difference:.1e}")
        if self.odd:
            parts.append(f"{self.odd} samples finite in one only")
        return "  ".join([*parts, self.note]).rstrip()


@dataclass
class Results:
    """All measurements; saved after each case."""

    head: dict[str, Any]
    path: Path | None = None
    rows: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    first_calls: list[dict[str, Any]] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)
    targets: list[dict[str, Any]] = field(default_factory=list)

    def keep(self, old: dict[str, Any], measured: list[str]) -> None:
        """Take over from another run the cases that this one does not measure."""
        names = {f.name for f in fields(Row)}
        rows = [r for r in old["rows"] if r["case"] not in measured]
        self.rows += [Row(**{k: x for k, x in r.items() if k in names}) for r in rows]
        self.first_calls += [f for f in old["first_calls"] if f["case"] not in measured]
        self.memory += [x for x in old["memory"] if x["case"] not in measured]
        before = old.get("commits") or dict.fromkeys((r["case"] for r in rows), old["commit"])
        self.head["commits"] = before | dict.fromkeys(measured, self.head["commit"])

    def add(self, row: Row) -> None:
        self.rows.append(row)
        print(row.line(), flush=True)

    def skip(self, text: str) -> None:
        self.skipped.append(text)
        print(f"    not run: {text}", flush=True)

    def find(self, **wanted: Any) -> Row | None:
        """The fastest of the rows with these fields."""
        rows = [r for r in self.rows if all(getattr(r, k) == x for k, x in wanted.items())]
        return max(rows, key=lambda r: r.per_second, default=None)

    def save(self) -> None:
        """Write all results; the file is replaced at once, never partially written."""
        if self.path is None:
            return
        rows = [asdict(r) | {"per_second": r.per_second} for r in self.rows]
        parts = ("skipped", "first_calls", "memory", "targets")
        data = self.head | {"rows": rows} | {key: getattr(self, key) for key in parts}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(_plain(data), indent=1) + "\n", encoding="utf-8")
        os.replace(part, self.path)


def _plain(x: Any) -> Any:
    """JSON has no infinity and no NaN; numbers to six digits."""
    if isinstance(x, dict):
        return {key: _plain(value) for key, value in x.items()}
    if isinstance(x, list):
        return [_plain(value) for value in x]
    if isinstance(x, float):
        return float(f"{x:.6g}") if math.isfinite(x) else None
    return x
