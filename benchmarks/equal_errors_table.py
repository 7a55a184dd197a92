"""Write the table of what methods cost at equal errors, from `equal_errors.py --json`.

python benchmarks/equal_errors_table.py
"""

from __future__ import annotations

import json
from typing import Any

from _script import HERE, with_table

RESULTS = HERE / "results" / "equal_errors.json"
PAGE = HERE.parent / "docs" / "theory" / "simulation.md"
BEGIN, END = "<!-- table of equal errors -->", "<!-- end of table of equal errors -->"


def filled(page: str, results: dict[str, Any]) -> str:
    """The page's text with its table replaced: costs relative to those of RK4."""
    errors, costs = results["errors"], results["cost"]
    rows = [
        [name, *(f"{x / one:.2g}" for x, one in zip(row, costs["RK4"], strict=True))]
        for name, row in costs.items()
    ]
    head = ["error [rad]", *(f"{x:.0e}" for x in errors)]
    lines = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]
    return with_table(page, BEGIN, END, lines)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")
