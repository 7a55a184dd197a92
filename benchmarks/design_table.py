"""Write the figures of design from the result files of its benchmarks.

python benchmarks/design_table.py
"""

from __future__ import annotations

import json
from typing import Any

from _script import HERE, MEASURED, markdown, with_table

RESULTS = HERE / "results"
PAGE = MEASURED / "design.md"
NAMES = ("design", "synthesis", "published_synthesis", "identification", "gradients")
BEGIN, END = "<!-- design table -->", "<!-- end of design table -->"


def results() -> dict[str, Any]:
    """Content of the result files."""
    return {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in NAMES}


def bump_steer(found: dict[str, Any]) -> list[str]:
    """Who finds which design, from a cold start."""
    machine, wide = found["machine"], found["starts that cannot close"]
    rows = [
        f"| {name} | {row['evaluations']} | {row['seconds']:.1f} | "
        f"{row['bump steer, rms [deg]']:.5f} | {row['objective']:.6g} | {row['KKT residual']:.0e} |"
        for name, row in found["methods"].items()
    ]
    return [
        f"{machine['processor']}, {machine['cores']} cores: bump steer of the multi-link corner, "
        f"{found['published, rms [deg]']:.4f}° as published, twelve coordinates of its tie rod and "
        "lateral link within ±15 mm, the distance of the links kept (`make design`). Seconds from "
        "the start of a new process with empty caches. Differences and CMA-ES use the same "
        "compiled evaluation.",
        "",
        "| method | evaluations | seconds | bump steer [deg] | objective | KKT residual |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        f"With limits so wide that {wide['cannot close']} of {wide['starts']} starts cannot close, "
        f"{wide['of them end feasible']} of these come back.",
    ]


def linkages(found: dict[str, Any]) -> list[str]:
    """The classical problems of synthesis."""
    rows = [
        f"| {row['problem']} | {row['error']:.3g} | {row['KKT residual']:.0e} | "
        f"{100 * row['starts that reach it']:.0f} % | {row['CPU [s]']:.0f} |"
        for row in found["cases"].values()
    ]
    return [
        "Linkages (`make synthesis`): sum of squared errors at the positions, share of the starts "
        "that reach it before they are finished, CPU seconds.",
        "",
        "| problem | error | KKT residual | starts | CPU [s] |",
        "|---|---|---|---|---|",
        *rows,
    ]


def printed(found: dict[str, Any]) -> list[str]:
    """Problems with printed results, over seeds."""
    rows = [
        (
            x["problem"],
            x["meaning"],
            f"{x['published']:.4g}",
            f"{x['error']:.4g}",
            f"{x['succeed']:.0%} of {x['seeds']}",
            f"{x['median seconds']:.0f}",
        )
        for x in found["cases"].values()
    ]
    head = ("problem", "error", "printed", "ours", "seeds as good as printed", "wall [s]")
    return [
        "Linkages against printed results (`make published-synthesis`), judged by followers of "
        "their own: Norton's Hoeken linkages, Chebyshev's line, Klann's six-bar, Jansen's "
        "eight-bar and a spherical four-bar, whose deviations follow from the printed numbers, and "
        "two sets of nine points that were met exactly, whatever order and branch; here both "
        "count. Of the lines and feet ours makes the mean of power 16 of the deviations least; no "
        "dead centre is on the way.",
        "",
        *markdown(head, rows),
    ]


def trusted(identification: dict[str, Any], gradients: dict[str, Any]) -> list[str]:
    """Standard errors and gradients at singular places."""
    key = "truth within two standard errors"
    cases = identification["cases"].values()
    shares = [x for row in cases for x in row.get(key, {}).values()]
    repetitions = min(row["repetitions"] for row in cases)
    counts: dict[str, int] = {}
    for family in gradients["families"].values():
        for outcome in family.values():
            for name, count in outcome.items():
                counts[name] = counts.get(name, 0) + count
    total = sum(counts.values())
    wrong = counts.pop("WRONG", 0)
    others = ", ".join(f"{n} {name}" for name, n in counts.items())
    return [
        "`make identification`: the truth is within two standard errors in "
        f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % of {repetitions} repetitions, for "
        "every unknown.",
        f"`make gradients`: {total} gradients of {gradients['samples']} designs in each of "
        f"{len(gradients['families'])} singular families, against differences: {others}; "
        f"{wrong} wrong.",
    ]


def lines(found: dict[str, Any]) -> list[str]:
    return [
        *bump_steer(found["design"]),
        "",
        *linkages(found["synthesis"]),
        "",
        *printed(found["published_synthesis"]),
        "",
        *trusted(found["identification"], found["gradients"]),
    ]


def filled(page: str, found: dict[str, Any]) -> str:
    """The page's text with the figures of these results."""
    return with_table(page, BEGIN, END, lines(found))


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(filled(text, results()), "utf-8")
