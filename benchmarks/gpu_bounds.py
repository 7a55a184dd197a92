"""Write the bounds of kernels on GPUs, from counts, beside what was measured on one.

    python benchmarks/gpu_bounds.py

A bound is the least of three: the arithmetic that a sample executes, its spilled bytes from the
first-level cache (of straight-line code only), and its arguments and results from memory.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from _script import HERE, MEASURED, markdown, with_table
from gpu_cases.device import per_cycle
from gpu_cases.record import FORWARD, LANES, ROLLOUT
from throughput_table import TITLES

PAGE = MEASURED / "gpu.md"
BEGIN, END = "<!-- GPU bounds -->", "<!-- end of GPU bounds -->"
CACHE_BYTES = 128.0
"""That a multiprocessor's first-level cache delivers per cycle."""

Row = dict[str, Any]


@dataclass(frozen=True)
class GPU:
    """A kind of GPU, by its maker's data sheet.

    Attributes:
        arch: target of its code; capability: (major, minor).
        processors: multiprocessors; clock: highest [Hz]; memory: bytes per second.
    """

    name: str
    arch: str
    capability: tuple[int, int]
    processors: int
    clock: float
    memory: float

    def bound(self, row: Row) -> tuple[float, str]:
        """Samples (of a rollout steps) per second at most, and what limits them."""
        floats = "f64" if row["dtype"] == "float64" else "f32"
        each = per_cycle(self.capability, row["dtype"]) / 2  # a fused multiply-add counts two
        done, code = row["executed"], row["assembled"][self.arch]
        cycles = self.processors * self.clock
        spilled = code["spill_stores"] + code["spill_loads"] if row["steps"] == 1 else 0
        found = [
            (cycles * each / done[floats], "arithmetic"),
            (self.memory / (row["argument_bytes"] + row["result_bytes"]), "memory"),
        ]
        if spilled:
            found.append((cycles * CACHE_BYTES / spilled, "spills"))
        rate, by = min(found)
        return rate * row["steps"], by


GPUS = (
    GPU("A100", "sm_80", (8, 0), 108, 1.41e9, 2.0e12),
    GPU("H100", "sm_90", (9, 0), 132, 1.98e9, 3.35e12),
    GPU("H200", "sm_90", (9, 0), 132, 1.98e9, 4.8e12),
    GPU("B200", "sm_100", (10, 0), 148, 1.97e9, 8.0e12),
    GPU("RTX 5090", "sm_120", (12, 0), 170, 2.41e9, 1.79e12),
)


def measured_on(results: Row) -> GPU:
    """The one of `GPUS` that a result file is of."""
    name = results["device"]["name"]
    return next(gpu for gpu in GPUS if gpu.name in name)


def measured(rows: list[Row], row: Row) -> float | None:
    """The fastest batch of the same kernel on the GPU that was measured [1/s]."""
    key = ("case", "work", "dtype")
    same = [r for r in rows if r["column"] == LANES and all(r[k] == row[k] for k in key)]
    return max((r["kernel_per_second"] for r in same), default=None)


def line(row: Row, before: Row | None, results: Row) -> list[str]:
    code = row["assembled"]["sm_90"]
    done = row["executed"]
    bounds = {gpu.name: gpu.bound(row) for gpu in GPUS}
    reached = measured(results["rows"], row)
    then = before["assembled"]["sm_90"] if before else None
    spilled = [f"{x['spill_stores'] + x['spill_loads']}" for x in (then, code) if x]
    stacks = [f"{x['stack']}" for x in (then, code) if x]
    return [
        TITLES[row["case"]],
        f"{row['work']}, {row['dtype']}",
        f"{(done['f64'] + done['f32']) / row['steps']:.0f}",
        " → ".join(stacks),
        " → ".join(spilled),
        *(f"{x / 1e6:.0f} ({by})" for x, by in bounds.values()),
        f"{reached / 1e6:.0f}" if reached else "",
        f"{100 * reached / bounds[measured_on(results).name][0]:.0f}" if reached else "",
    ]


def lines(counts: Row, before: Row, results: Row) -> list[str]:
    card = measured_on(results).name
    head = [
        "mechanism", "work", "float instructions", "stack [B]", "spilled [B]",
        *(f"{gpu.name} [10⁶/s]" for gpu in GPUS), f"{card} measured", "of the bound [%]",
    ]  # fmt: skip

    def key(row: Row) -> tuple[str, str, str]:
        return row["case"], row["work"], row["dtype"]

    old = {key(row): row for row in before["rows"]}
    kept = [r for r in counts["rows"] if r["work"] in (FORWARD, ROLLOUT)]
    order = sorted(kept, key=lambda r: (r["dtype"] == "float32", r["work"] == ROLLOUT))
    return [
        f"Counts of commit {counts['commit'][:10]}, ptxas {counts['versions']['ptxas']}; stack and "
        "spills are those of an H100's code, an arrow from those before the kernels were arranged "
        "for GPUs. Bounds are computed from data sheets, not measured; rollouts are per step, and "
        "their spills are not counted.",
        "",
        *markdown(head, (line(r, old.get(key(r)), results) for r in order)),
    ]


def results() -> tuple[Row, Row, Row]:
    """Counts now and before, and what was measured."""
    names = ("gpu_counts", "gpu_counts_before", "gpu")
    folder = HERE / "results"
    found = [json.loads((folder / f"{name}.json").read_text("utf-8")) for name in names]
    return found[0], found[1], found[2]


def filled(page: str, found: tuple[Row, Row, Row]) -> str:
    """The page's text with its table replaced."""
    return with_table(page, BEGIN, END, lines(*found))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), results()), "utf-8")
