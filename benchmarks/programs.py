"""Is lanes right on random programs? Small and large ones, split and spilling, against jax.vmap.

    python benchmarks/programs.py [--small 10000] [--large 300] [--seed N] [--workers 2]
        [--json PATH [--resume]]

Values, forward and reverse derivatives (`tests/helpers/program_comparisons.py`), at limits drawn at
random for each program, so that kernels consist of many pieces and blocks and spill: large programs
in both precisions, and by `lanes.jit` too; every other small program in single precision. Exits
with 1 if any differs by more than the tolerance, or fails; that of an ill-conditioned program is
twice what a rounding unit of its arguments changes.

Seeds are fresh in each run unless one is given. The results file is written after each piece;
`--resume` goes on with its seed, and keeps the pieces that it holds.
"""

from __future__ import annotations

import json
import multiprocessing
import secrets
import sys
import time
from collections import Counter
from typing import Any

import _script

sys.path.append(str(_script.HERE.parent / "tests" / "helpers"))

import small_programs  # noqa: E402

small_programs.prepare()
_script.start(cache=False)

import numpy as np  # noqa: E402
from program_comparisons import LONG, SHORT, TOLERANCE, compared, problems  # noqa: E402
from throughput_cases.machine import commit  # noqa: E402

from jaxmbd.lanes.targets import cpu  # noqa: E402

PIECE = {"small": 100, "large": 5}
"""Programs of one piece, which one process runs and ends: machine code is never freed."""


def judged(piece: tuple[str, int, int]) -> tuple[str, dict[str, Any]]:
    """Name and results of a piece: its kind, first seed and number of programs."""
    kind, first, count = piece
    cpu.effort = 0
    start, counts, wrong, worst = time.monotonic(), Counter(), [], {}
    for seed in range(first, first + count):
        small = np.float32 if seed // 4 % 2 else np.float64  # a seed's last bits are its mode
        for dtype in [small] if kind == "small" else [np.float64, np.float32]:
            steps = SHORT if kind == "small" else LONG
            found, name = compared(seed, dtype, steps, one=kind == "large"), np.dtype(dtype).name
            counts.update({name: 1, "blocks": found["blocks"], "spills": found["spills"]})
            works = {path.split("'")[1] for path in found["off"]}
            counts.update({"split": found["blocks"] > 0, "spilling": found["spills"] > 0})
            counts.update({"ill-conditioned": "limits" in found})
            counts.update(dict.fromkeys(works, 1))
            wrong += problems(seed, dtype, found)
            worst[name] = max([worst.get(name, 0.0), *found["off"].values()])
    return f"{kind}, seed {first}", {
        "counts": dict(counts), "worst": worst, "wrong": wrong, "commit": commit(),
        "seconds": round(time.monotonic() - start),
    }  # fmt: skip


def pieces(options: Any) -> list[tuple[str, int, int]]:
    """Kind, first seed and number of programs of each piece."""
    return [
        (kind, options.seed + first, min(PIECE[kind], total - first))
        for kind, total in (("large", options.large), ("small", options.small))
        for first in range(0, total, PIECE[kind])
    ]


def totals(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """The sums of the pieces of one kind."""
    some = [piece for name, piece in found.items() if name.startswith(kind)]
    counts = sum((Counter(piece["counts"]) for piece in some), Counter())
    worst = {
        t: max((p["worst"].get(t, 0.0) for p in some), default=0.0) for t in ("float64", "float32")
    }
    return {
        "counts": dict(counts), "worst": worst, "wrong": sum((p["wrong"] for p in some), []),
        "seconds": sum(piece["seconds"] for piece in some),
    }  # fmt: skip


def run(options: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Run the pieces that are not found yet; the results are written after each."""
    todo = [p for p in pieces(options) if f"{p[0]}, seed {p[1]}" not in found]
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.workers, maxtasksperchild=1) as pool:
        for name, piece in pool.imap_unordered(judged, todo):
            found[name] = piece
            everything = {kind: totals(found, kind) for kind in PIECE}
            _script.write(options.json, {"seed": options.seed} | everything | {"pieces": found})
            print(f"{name}: {len(piece['wrong'])} wrong, {piece['seconds']} s", file=sys.stderr)
    return found


def report(found: dict[str, Any]) -> int:
    """Print what was found; the number of what is wrong."""
    bad = 0
    for kind in PIECE:
        all_of_it = totals(found, kind)
        print(f"{kind}: " + ", ".join(f"{n} {name}" for name, n in all_of_it["counts"].items()))
        worst = ", ".join(f"{off:.3g} in {name}" for name, off in all_of_it["worst"].items())
        print(f"  worst, in rounding units (at most {TOLERANCE}): {worst}")
        for text in all_of_it["wrong"]:
            print(f"  WRONG {text}")
        bad += len(all_of_it["wrong"])
    return bad


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--small", type=int, default=10_000, metavar="N")
    parser.add_argument("--large", type=int, default=300, metavar="N")
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--resume", action="store_true", help="keep what the results file holds")
    options, found = parser.parse_args(), {}
    if options.resume and options.json and options.json.exists():
        before = json.loads(options.json.read_text(encoding="utf-8"))
        options.seed, found = before["seed"], before["pieces"]
    if options.seed is None:
        options.seed = secrets.randbelow(10**6) * 1000
    print(f"seed {options.seed}", file=sys.stderr)
    return min(1, report(run(options, found)))


if __name__ == "__main__":
    sys.exit(main())
