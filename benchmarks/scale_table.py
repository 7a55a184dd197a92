"""Write the table of chains from a result file of `scale.py --json`.

python benchmarks/scale_table.py
"""

from __future__ import annotations

import json
from typing import Any

from _script import HERE, MEASURED, with_table
from scale import COLUMNS

RESULTS = HERE / "results" / "scale.json"
PAGE = MEASURED / "speed.md"
BEGIN, END = "<!-- scale table -->", "<!-- end of scale table -->"


def line(row: dict[str, Any]) -> str:
    """A system's line of the table."""
    seconds = row["seconds"]
    name = "Cassie" if row["system"] == "cassie" else f"{row['bodies']} revolutes"
    ratios = [f"{seconds[peer] / seconds[ours]:.3g}" for ours, peer in COLUMNS]
    one = f"{1e6 * seconds['one: jit, fixed']:.3g} ({1e6 * seconds['one: Pinocchio']:.3g})"
    work, first = f"{row['flops'] / row['bodies']:.0f}", f"{row['first_call_seconds']:.1f}"
    error = f"{max(row['errors'].values()):.0e}"
    return f"| {' | '.join([name, *ratios, one, work, first, error])} |"


def lines(results: dict[str, Any]) -> list[str]:
    machine, versions = results["machine"], results["versions"]
    return [
        f"{machine['processor']} ({machine['vector_unit']}), one core, float64, JAX "
        f"{versions['jax']}, Pinocchio {versions['pin']}, commit {results['commit'][:10]}. Forward "
        f"dynamics of {results['batch']} samples that share a mechanism which is constant or an "
        "argument, or that have numbers of their own: speed over that of Pinocchio (`aba`; for "
        "Cassie `constraintDynamics`). A call of one sample [µs], in brackets that of Pinocchio; "
        "floating operations per body; seconds of the first call; largest relative difference.",
        "",
        "| mechanism | constant | argument | own numbers | single call | operations | first call "
        "| difference |",
        "|---|---|---|---|---|---|---|---|",
        *(line(row) for row in results["rows"]),
    ]


def filled(page: str, results: dict[str, Any]) -> str:
    """The page's text with its table replaced."""
    return with_table(page, BEGIN, END, lines(results))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")
