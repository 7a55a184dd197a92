"""Write the table of what redundant loops cost, from `throughput.py --against d23f71d --json`.

python benchmarks/redundancy_table.py
"""

from __future__ import annotations

import json
from typing import Any

from _script import HERE, MEASURED, with_table
from throughput_table import TITLES

RESULTS = HERE / "results" / "throughput_against.json"
PAGE = MEASURED / "speed.md"
BEGIN, END = "<!-- redundancy table -->", "<!-- end of redundancy table -->"


def line(row: dict[str, Any]) -> str:
    """A mechanism and a work: operations and speeds, new relative to old."""
    flops = "" if row["flops"] is None else f"{row['flops']:.3f}"
    speeds = f"{row['speed']:.2f} ({row['least']:.2f} to {row['most']:.2f})"
    compiled = f"{row['compile']:.2f}"
    return f"| {TITLES[row['case']]} | {row['work']} | {flops} | {speeds} | {compiled} |"


def filled(page: str, results: dict[str, Any]) -> str:
    """The page's text with its table replaced."""
    lines = [
        "| mechanism | work | operations | speed: median (least to most of the repetitions) "
        "| compile time |",
        "|---|---|---|---|---|",
        *(line(row) for row in results["rows"]),
    ]
    return with_table(page, BEGIN, END, lines)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")
