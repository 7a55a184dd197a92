"""Does it fail safely? Every number that the package gives a name, judged by an oracle of its own.

    python benchmarks/fails_safely.py [--only FAMILIES] [--size 300] [--runs 3]
        [--seed N N N] [--json PATH [--resume]] [--processes 2]

Families of cases (`fails_cases`) draw mechanisms, broken descriptions, samples and states at random
and compare what is reported as ok with oracles that share no code with it. Nothing may be wrong and
reported as ok, and nothing may raise anything but an error that says what is wrong: exits with 1
otherwise. The table has each public number with its oracle and the counts of its outcomes; a number
without an oracle stands in it as such.

Seeds are fresh at each run, unless they are given, and printed. Each family runs in a process of
its own; the results file is written as each ends. `--resume` keeps the pieces that it holds,
and its seeds.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import _script
from fails_cases import families
from fails_cases.judged import BAD, CRASHED, OUTCOMES, RIGHT, Judged
from throughput_cases.machine import commit

NO_ORACLE = "no oracle"


def summary(cases: Iterable[Judged]) -> dict[str, Any]:
    """By number, counts of outcomes and the worst error of the right; the text of the bad."""
    found: dict[str, Any] = {}
    bad: list[str] = []
    for number, outcome, error, detail in cases:
        line = found.setdefault(number, dict.fromkeys((*OUTCOMES, "worst"), 0))
        line[outcome] += 1
        if outcome == RIGHT and error == error:
            line["worst"] = max(line["worst"], error)
        if outcome in BAD:
            bad.append(f"{number}, {outcome}, {error:.1e}: {detail}"[:500])
    kept = {n: {k: x for k, x in line.items() if x} for n, line in found.items()}
    return {"numbers": kept, "bad": bad}


def judge_family(name: str, seed: int, size: int) -> dict[str, Any]:
    """The summary of a family, judged in this process."""
    _script.start()
    return summary(families.run(name, seed, size))


def in_process(name: str, seed: int, size: int) -> dict[str, Any]:
    """The same in a process of its own; if that dies, it is a crash."""
    start = time.monotonic()
    command = [sys.executable, "-W", "ignore", __file__, "--piece", name]
    command += ["--seed", str(seed), "--size", str(size)]
    alone = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # matrices are small
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | alone)
    lines = ended.stdout.splitlines()
    if ended.returncode or not lines:
        text = f"the process ended with {ended.returncode}: {ended.stderr[-300:]}"
        number = next(iter(families.family(name).NUMBERS))
        found = summary([Judged(number, CRASHED, float("nan"), f"{name}, seed {seed}: {text}")])
    else:
        found = json.loads(lines[-1])
    seconds = round(time.monotonic() - start)
    return found | {"seed": seed, "size": size, "seconds": seconds, "commit": commit()}


Piece = tuple[str, int]
"""A family and its seed."""


def pieces(todo: list[Piece], options: Any) -> Iterator[tuple[Piece, dict[str, Any]]]:
    """The summary of each piece, as it ends."""
    with ThreadPoolExecutor(options.processes) as pool:
        running = {pool.submit(in_process, *piece, options.size): piece for piece in todo}
        for ended in as_completed(running):
            yield running[ended], ended.result()


def table(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Public number to its oracle, the counts of its outcomes and the worst error of the right."""
    lines: dict[str, dict[str, Any]] = {}
    for number, oracles in families.oracles().items():
        lines[number] = {"oracle": "; ".join(dict.fromkeys(oracles.values()))}
    lines |= {number: {"oracle": NO_ORACLE} for number in families.without_oracle()}
    for number, line in lines.items():
        each = [p["numbers"][number] for p in found.values() if number in p["numbers"]]
        counts = {outcome: sum(x.get(outcome, 0) for x in each) for outcome in OUTCOMES}
        line |= {"cases": sum(counts.values())} | counts
        line["worst"] = max((x.get("worst", 0.0) for x in each), default=0.0)
    return dict(sorted(lines.items(), key=lambda x: x[0].lower()))


def counted(some: Iterable[dict[str, Any]]) -> dict[str, int]:
    """The outcomes of pieces, counted."""
    lines = [line for piece in some for line in piece["numbers"].values()]
    return {outcome: sum(line.get(outcome, 0) for line in lines) for outcome in OUTCOMES}


def results(found: dict[str, Any], seeds: list[int]) -> dict[str, Any]:
    """What the results file holds: `found` has the pieces by their labels."""
    runs = {}
    for seed in seeds:
        some = [piece for piece in found.values() if piece["seed"] == seed]
        counts, seconds = counted(some), sum(piece["seconds"] for piece in some)
        runs[str(seed)] = {"cases": sum(counts.values())} | counts | {"seconds": seconds}
    return {
        "all": {"all": counted(found.values())},
        "runs": runs,
        "table": table(found),
        "bad": [text for piece in found.values() for text in piece["bad"]],
        "pieces": found,
    }


def label(piece: Piece) -> str:
    return f"{piece[0]}, seed {piece[1]}"


def run(options: Any) -> dict[str, Any]:
    """Judge all families, writing the results as each ends: what the results file holds."""
    kept = _kept(options.json) if options.resume else {}
    found: dict[str, Any] = kept.get("pieces", {})
    seeds = options.seed or [int(seed) for seed in kept.get("runs", ())]
    seeds = seeds or [secrets.randbelow(2**31) for _ in range(options.runs)]
    print("seeds", *seeds, flush=True)
    named = options.only or families.names()
    todo = [p for seed in seeds for name in named if label(p := (name, seed)) not in found]
    for k, (one, piece) in enumerate(pieces(todo, options), 1):
        found[label(one)] = piece
        _script.write(options.json, results(found, seeds))
        told = f"{sum(counted([piece]).values())} cases, {len(piece['bad'])} bad"
        told += f", {piece['seconds']} s"
        print(f"{k}/{len(todo)} {label(one)}: {told}", file=sys.stderr, flush=True)
    return results(found, seeds)


def _kept(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    return kept if "runs" in kept else {}


def report(found: dict[str, Any]) -> int:
    """Print the table, and what is bad; the number of the bad."""
    names = ("right", "flagged", "refused", "wrong", "crashed")
    print(f"{'number':52s}{'cases':>8s}" + "".join(f"{n:>9s}" for n in names) + "    worst  oracle")
    for number, line in found["table"].items():
        counts = "".join(f"{line[o]:9d}" for o in OUTCOMES)
        print(f"{number:52s}{line['cases']:8d}{counts}  {line['worst']:7.0e}  {line['oracle']}")
    print(*(f"  {text}" for text in found["bad"]), sep="\n")
    without = sum(line["oracle"] == NO_ORACLE for line in found["table"].values())
    for seed, one in found["runs"].items():
        bad = sum(one[outcome] for outcome in BAD)
        print(f"seed {seed}: {one['cases']} cases, {bad} wrong or crashed, {one['seconds']} s")
    print(f"{len(found['table'])} lines, {without} of them numbers without an oracle")
    return len(found["bad"])


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--only", nargs="*", choices=families.names(), help="families")
    parser.add_argument("--size", type=int, default=300, help="cases of a family, about")
    parser.add_argument("--runs", type=int, default=1, help="runs, each with a seed of its own")
    parser.add_argument("--seed", type=int, nargs="+", help="of each run; by default new ones")
    parser.add_argument("--processes", type=int, default=2, help="families judged at once")
    parser.add_argument("--resume", action="store_true", help="keep the families in the JSON file")
    parser.add_argument("--piece", help="judge this family here, and print its summary as JSON")
    parser.add_argument("--list", action="store_true", help="renew the list without oracles")
    options = parser.parse_args()
    if options.list:
        families.list_without_oracle()
        return 0
    if options.piece:
        print(json.dumps(judge_family(options.piece, options.seed[0], options.size)))
        return 0
    return int(report(run(options)) > 0)


if __name__ == "__main__":
    sys.exit(main())
