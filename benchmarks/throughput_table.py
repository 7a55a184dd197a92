"""Write the table of speeds from a result file of `throughput.py --json`.

    python benchmarks/throughput_table.py

One line per mechanism, in float64; what was not measured is left empty.
"""

from __future__ import annotations

import json
from typing import Any

from _script import BATCH, HERE, MEASURED, with_table

RESULTS = HERE / "results" / "throughput.json"
PAGE = MEASURED / "speed.md"
BEGIN, END = "<!-- throughput table -->", "<!-- end of throughput table -->"

TITLES = {
    "chain8": "8 revolutes, 1 loop",
    "chain24": "24 revolutes, 3 loops",
    "rssr": "RSSR",
    "four_bar_1": "N-four-bar, N = 1",
    "four_bar_4": "N = 4",
    "four_bar_10": "N = 10",
    "double_wishbone": "double wishbone",
    "multi_link": "multi-link",
    "macpherson": "MacPherson",
    "arm7": "open arm, 7 revolutes",
}
FORWARD, ROLLOUT, GRADIENT = "forward dynamics", "rollout", "rollout and gradient"
LANES, ONE_CORE, VMAP = "lanes", "lanes, 1 core", "jax.vmap"

Row = dict[str, Any]


def find(results: dict[str, Any], case: str, work: str, column: str, batch: int = 0) -> Row | None:
    """The fastest float64 row, of any batch size if none is given."""
    rows = [
        r
        for r in results["rows"]
        if (r["case"], r["work"], r["column"], r["dtype"]) == (case, work, column, "float64")
        and batch in (0, r["batch"])
    ]
    return max(rows, key=lambda r: r["per_second"], default=None)


def worst(results: dict[str, Any], case: str, work: str, key: str) -> float | None:
    """The largest over all batch sizes: the first compiles, later ones may reuse its kernel."""
    wanted = (case, work, LANES, "float64")
    rows = [r for r in results["rows"] if (r["case"], r["work"], r["column"], r["dtype"]) == wanted]
    return max((r[key] for r in rows if r[key] is not None), default=None)


def ratio(a: Row | None, b: Row | None) -> str:
    return f"{a['per_second'] / b['per_second']:.3g}" if a and b else ""


def millions(row: Row | None) -> str:
    return f"{row['per_second'] / 1e6:.3g}" if row else ""


def pinocchio(results: dict[str, Any], case: str, one: Row | None) -> str:
    """Ratio to Pinocchio with as many designs and, in brackets, with one that stays in cache."""
    both = [
        ratio(one, find(results, case, FORWARD, c)) for c in ("Pinocchio", "Pinocchio, one design")
    ]
    return f"{both[0]} ({both[1]})" if any(both) else ""


def line(results: dict[str, Any], case: str, title: str) -> str:
    """A mechanism's line of the table."""
    forward = find(results, case, FORWARD, LANES, BATCH)
    one = find(results, case, FORWARD, ONE_CORE, BATCH)
    rollout, gradient = (find(results, case, w, LANES) for w in (ROLLOUT, GRADIENT))
    if rollout and gradient:  # of the same batch
        rollout_there = find(results, case, ROLLOUT, LANES, gradient["batch"]) or rollout
    else:
        rollout_there = rollout
    works = [w for w, r in ((FORWARD, forward), (ROLLOUT, rollout), (GRADIENT, gradient)) if r]
    compiled = [worst(results, case, w, "compile_seconds") for w in works]
    gaps = [worst(results, case, w, "difference") for w in works]
    cells = [
        title,
        millions(forward),
        ratio(forward, find(results, case, FORWARD, VMAP, BATCH)),
        pinocchio(results, case, one),
        ratio(one, find(results, case, FORWARD, "MuJoCo")),
        millions(rollout),
        ratio(rollout, find(results, case, ROLLOUT, VMAP)),
        ratio(rollout_there, gradient),
        " / ".join(f"{x:.1f}" for x in compiled if x is not None),
        " / ".join("–" if x is None else f"{x:.0e}" for x in gaps),
    ]
    return "| " + " | ".join(cells) + " |"


def lines(results: dict[str, Any]) -> list[str]:
    machine, versions = results["machine"], results["versions"]
    peers = [
        f"{n} {versions[k]}"
        for n, k in (("Pinocchio", "pin"), ("MuJoCo", "mujoco"))
        if k in versions
    ]
    measured = {r["case"] for r in results["rows"]}
    commits = results.get("commits") or {"": results["commit"]}
    commit = ", ".join(dict.fromkeys(x[:10] for x in commits.values()))
    return [
        f"{machine['processor']}, {machine['cores']} cores ({machine['vector_unit']}), float64, "
        f"JAX {versions['jax']}, {', '.join(peers)}, commit {commit}. Forward "
        f"dynamics at batch {BATCH}, rollouts of {results['settings']['steps']} projected RK4 "
        "steps. Ratios to `jax.vmap` are of the machine, those to Pinocchio and MuJoCo (whose "
        "loops are soft) of one core; Pinocchio is given the same batch of designs and, in "
        "brackets, one that stays in its cache. The last columns: compiling, and the "
        "largest relative difference from `jax.vmap`, for forward dynamics / rollout / gradient.",
        "",
        "| mechanism | forward dynamics [10⁶/s] | × `jax.vmap` | × Pinocchio | × MuJoCo "
        "| rollout [10⁶ steps/s] | × `jax.vmap` | gradient costs, in rollouts | compile [s] "
        "| difference |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(line(results, case, title) for case, title in TITLES.items() if case in measured),
    ]


def filled(page: str, results: dict[str, Any]) -> str:
    """The page's text with its table replaced."""
    return with_table(page, BEGIN, END, lines(results))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")
