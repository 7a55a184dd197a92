"""Does it fail safely? Every number that the package gives a name, judged by an oracle of its own.

    python benchmarks/fails_safely.py [--only FAMILIES] [--size 1000] [--seed N]
        [--json PATH [--resume]] [--processes 2]

Families of cases (`fails_cases`) draw mechanisms, broken descriptions, samples and states at random
and compare what is reported as ok with oracles that share no code with it. Nothing may be wrong and
reported as ok, and nothing may raise anything but an error that says what is wrong: exits with 1
otherwise. The table has each public number with its oracle and the counts of its outcomes; a number
without an oracle stands in it as such.

Seeds are fresh at each run, unless one is given, and printed. Each family runs in a process of its
own; the results file is written as each ends. `--resume` keeps the families that it holds, and its
seed.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections import Counter
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
    return {"numbers": found, "bad": bad}


def judge_family(name: str, seed: int, size: int) -> dict[str, Any]:
    """The summary of a family, judged in this process."""
    _script.start()
    return summary(families.run(name, seed, size))


def in_process(name: str, seed: int, size: int) -> dict[str, Any]:
    """The same in a process of its own; if that dies, it is a crash."""
    start = time.monotonic()
    command = [sys.executable, "-W", "ignore", __file__, "--piece", name]
    command += ["--seed", str(seed), "--size", str(size)]
    ended = subprocess.run(command, capture_output=True, text=True)
    lines = ended.stdout.splitlines()
    if ended.returncode or not lines:
        text = f"the process ended with {ended.returncode}: {ended.stderr[-300:]}"
        number = next(iter(families.family(name).NUMBERS))
        found = summary([Judged(number, CRASHED, float("nan"), f"{name}, seed {seed}: {text}")])
    else:
        found = json.loads(lines[-1])
    seconds = round(time.monotonic() - start)
    return found | {"seed": seed, "size": size, "seconds": seconds, "commit": commit()}


def pieces(names: list[str], options: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The summary of each family, as it ends."""
    with ThreadPoolExecutor(options.processes) as pool:
        running = {pool.submit(in_process, n, options.seed, options.size): n for n in names}
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
        line["worst"] = max((x["worst"] for x in each), default=0.0)
    return dict(sorted(lines.items(), key=lambda x: x[0].lower()))


def results(found: dict[str, Any], options: Any) -> dict[str, Any]:
    """What the results file holds."""
    lines = table(found)
    counts = {outcome: sum(line[outcome] for line in lines.values()) for outcome in OUTCOMES}
    return {
        "seed": options.seed,
        "all": {"all": counts},
        "seconds": sum(p["seconds"] for p in found.values()),
        "table": lines,
        "bad": [text for piece in found.values() for text in piece["bad"]],
        "pieces": found,
    }


def run(options: Any) -> dict[str, Any]:
    """Judge all families, writing the results as each ends: what the results file holds."""
    kept = _kept(options.json) if options.resume else {}
    found: dict[str, Any] = kept.get("pieces", {})
    if options.seed is None:
        options.seed = kept.get("seed", secrets.randbelow(2**31))
    print(f"seed {options.seed}", flush=True)
    names = [n for n in options.only or families.names() if n not in found]
    for k, (name, piece) in enumerate(pieces(names, options), 1):
        found[name] = piece
        _script.write(options.json, results(found, options))
        counts = sum(
            (Counter({o: x.get(o, 0) for o in OUTCOMES}) for x in piece["numbers"].values()),
            Counter(),
        )
        told = f"{counts.total()} cases, {len(piece['bad'])} bad, {piece['seconds']} s"
        print(f"{k}/{len(names)} {name}: {told}", file=sys.stderr, flush=True)
    return results(found, options)


def _kept(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    return kept if "table" in kept else {}


def report(found: dict[str, Any]) -> int:
    """Print the table, and what is bad; the number of the bad."""
    names = ("right", "flagged", "refused", "wrong", "crashed")
    print(f"{'number':52s}{'cases':>8s}" + "".join(f"{n:>9s}" for n in names) + "    worst  oracle")
    for number, line in found["table"].items():
        counts = "".join(f"{line[o]:9d}" for o in OUTCOMES)
        print(f"{number:52s}{line['cases']:8d}{counts}  {line['worst']:7.0e}  {line['oracle']}")
    print(*(f"  {text}" for text in found["bad"]), sep="\n")
    without = sum(line["oracle"] == NO_ORACLE for line in found["table"].values())
    total = sum(found["all"]["all"].values())
    print(f"seed {found['seed']}: {total} cases, {len(found['bad'])} of them wrong or crashed")
    print(f"{len(found['table'])} lines, {without} of them numbers without an oracle")
    return len(found["bad"])


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--only", nargs="*", choices=families.names(), help="families")
    parser.add_argument("--size", type=int, default=1000, help="cases of a family, about")
    parser.add_argument("--seed", type=int, help="by default a new one")
    parser.add_argument("--processes", type=int, default=2, help="families judged at once")
    parser.add_argument("--resume", action="store_true", help="keep the families in the JSON file")
    parser.add_argument("--piece", help="judge this family here, and print its summary as JSON")
    options = parser.parse_args()
    if options.piece:
        print(json.dumps(judge_family(options.piece, options.seed, options.size)))
        return 0
    return int(report(run(options)) > 0)


if __name__ == "__main__":
    sys.exit(main())
