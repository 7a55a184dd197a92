"""The measurements and the file that they are saved to. Needs no package."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_cases.device import Device

GOAL = 1e9
"""Forward dynamics of the RSSR per second, float64, on an H200."""
FORWARD, ROLLOUT, GRADIENT = "forward dynamics", "rollout", "rollout and gradient"
LANES, LAST, ONE, VMAP = "lanes", "lanes, batch last", "lanes, one design", "jax.vmap"
"""Columns: `lanes.vmap` of arrays with the batch as first axis; with the batch as last axis; of one
mechanism with varying states; and `jax.vmap` by XLA."""


@dataclass
class Run:
    """Options, progress and results of a run.

    Attributes:
        deadline: by the monotonic clock [s].
        head: facts of the machine.
        place: the device, for JAX.
        timer: of calls there.
        prepared: kernels that other processes compile, or None.
    """

    device: Device
    options: Any
    path: Path
    deadline: float
    head: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    place: Any = None
    timer: Any = None
    prepared: Any = None

    def left(self) -> float:
        """Seconds."""
        return self.deadline - time.monotonic()

    def skip(self, text: str) -> None:
        self.skipped.append(text)
        print(f"    not run: {text}", flush=True)

    def fail(self, text: str) -> None:
        self.wrong.append(text)
        print(f"    WRONG: {text}", flush=True)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, print it and save all."""
        self.rows.append(row)
        unit = "/s" if row["steps"] == 1 else " steps/s"
        share = f" {100 * row['share']:5.1f} % of peak" if row.get("share") else ""
        state = f" {row['clock_mhz']} MHz {row['power_w']:.0f} W" if row.get("power_w") else ""
        print(
            f"    {row['column']:18s} batch {row['batch']:<8d} {row['per_second']:10.3e} by the "
            f"wall, {row['kernel_per_second']:10.3e} on the device {unit:8s}{share}{state} "
            f"compile {row['compile_seconds']:.2f} s",
            flush=True,
        )
        self.save()

    def save(self) -> None:
        """Write all results; the file is replaced at once, never partially written."""
        data = self.head | dict(
            goal=self.goal(), rows=self.rows, skipped=self.skipped, wrong=self.wrong
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        os.replace(part, self.path)

    def goal(self) -> dict[str, Any]:
        """The fastest forward dynamics of the RSSR in float64, each sample with its own design."""
        rates = {
            column: max(r["per_second"] for r in self.rows if _is_goal(r) and r["column"] == column)
            for column in {r["column"] for r in self.rows if _is_goal(r)}
        }
        checked = [x for c, x in rates.items() if c in (LANES, LAST)]
        reached = max(checked, default=None)
        return dict(target=GOAL, reached=reached, ratio=reached and reached / GOAL, by_column=rates)


def _is_goal(row: dict[str, Any]) -> bool:
    return (row["case"], row["work"], row["dtype"]) == ("rssr", FORWARD, "float64")
