"""Write the figures of studies from the result files of `studies`, `workers`, `survive`.

python benchmarks/studies_table.py
"""

from __future__ import annotations

import json
from typing import Any

from _script import HERE, MEASURED, with_table

RESULTS = HERE / "results"
PAGE = MEASURED / "studies.md"
NAMES = ("studies", "workers", "survive")
BEGIN, END = "<!-- studies table -->", "<!-- end of studies table -->"


def results() -> dict[str, Any]:
    """Content of the result files."""
    return {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in NAMES}


def line(name: str, row: dict[str, Any]) -> str:
    """A study's line of the table."""
    cells = [
        name,
        f"{row['samples']:,}".replace(",", " "),
        f"{row['numbers drawn']}",
        f"{row['rate [1/s]']:.3g}",
        f"{100 * row['drawing and computing']:.0f} %, {100 * row['kernels']:.0f} %",
        f"{row['cores']:.2f}",
        f"{row['memory after a tenth [GiB]']:.2f}, {row['memory at most [GiB]']:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def survived(found: dict[str, Any]) -> str:
    """What became of the killed runs."""
    trials = {name: row for name, row in found.items() if "kills" in row}
    kills = sum(row["kills"] for row in trials.values())
    same = sum(row["identical"] for row in trials.values())
    stores = sum(row["stores"] for row in trials.values())
    each = ", ".join(f"{name} {row['kills']}" for name, row in trials.items())
    return (
        f"`make survive`: {kills} SIGKILLs ({each}); {same} of {stores} stores end byte for byte "
        "like one of an uninterrupted run; a kill of one process costs at most "
        f"{trials['one process']['most_lost']} chunk."
    )


def lines(found: dict[str, Any]) -> list[str]:
    studies, workers = found["studies"], found["workers"]["workers"]
    machine, versions = studies["machine"], studies["versions"]
    one = workers["1"]["samples a second"]
    scaling = ", ".join(
        f"{n}: {row['samples a second'] / one:.2f}" for n, row in workers.items() if n != "1"
    )
    return [
        f"{machine['processor']}, {found['workers']['cores']} cores, JAX {versions['jax']}: build "
        "tolerances of the multi-link corner; a sweep of thirteen wheel positions, and one second "
        "of motion in 1000 projected RK4 steps. Samples a second; share of the time spent in "
        "drawing and computing samples, and in kernels alone; cores busy; memory after a tenth of "
        "the run and at most [GiB].",
        "",
        "| study | samples | numbers drawn | rate [1/s] | computing | cores | memory |",
        "|---|---|---|---|---|---|---|",
        *(line(name, row) for name, row in studies["studies"].items()),
        "",
        survived(found["survive"]),
        f"`make workers`: Dask workers of one core each on these {found['workers']['cores']} "
        f"cores, samples a second over those of one worker: {scaling} (all cores in one process); "
        "the same bytes from all.",
    ]


def filled(page: str, found: dict[str, Any]) -> str:
    """The page's text with its table replaced."""
    return with_table(page, BEGIN, END, lines(found))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), results()), "utf-8")
