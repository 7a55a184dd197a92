"""Speed of jaxmbd against `jax.vmap` and other engines, with the difference of every result.

    python benchmarks/throughput.py --json benchmarks/results/throughput.json
    python benchmarks/throughput.py --quick
    python benchmarks/throughput.py --against REVISION

Forward dynamics, rollouts and their reverse-mode gradients of a dozen mechanisms, every sample of a
batch with hardpoints, masses and inertias of its own. Timings are the best of interleaved repeats
of all columns, without compiling. Results are saved after each mechanism. With `--against` this
checkout's package and that of another revision are timed by turns.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import _script
import jax
from _script import BATCH
from throughput_cases import against
from throughput_cases import targets as aims
from throughput_cases.catalogue import CASES
from throughput_cases.columns import have_lanes, keep_nothing
from throughput_cases.machine import commit, cores, machine, versions
from throughput_cases.peak import peak_flops
from throughput_cases.report import Results
from throughput_cases.runner import Plan, Runner
from throughput_cases.work import FORWARD, GRADIENT, ROLLOUT, WORKS

QUICK = {  # only one gradient of jax.vmap: each compiles for a minute
    "chain8": (FORWARD,),
    "multi_link": (FORWARD, ROLLOUT),
    "rssr": WORKS,
}
OVER = 1.2  # after this multiple of --minutes no further case is started
FORWARD_BATCHES = (1, 64, BATCH, 65_536, 1_000_000)  # the last for small mechanisms only
ROLLOUT_BATCHES, GRADIENT_BATCHES = (1, 1000, 10_000), (1, 1000, 10_000)
REFERENCE = {FORWARD: BATCH, ROLLOUT: 256, GRADIENT: 64}


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = _script.parser(__doc__)
    parser.add_argument(
        "--cases", nargs="+", choices=list(CASES), metavar="CASE", help=", ".join(CASES)
    )
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS), metavar="WORK")
    parser.add_argument("--batches", nargs="+", type=int, help="instead of the usual ones")
    parser.add_argument("--dtype", nargs="+", choices=("float64", "float32"))
    parser.add_argument("--steps", type=int, default=1000, help="of a rollout")
    parser.add_argument("--quick", action="store_true", help="a few cases, below three minutes")
    parser.add_argument("--seconds-per-measurement", type=float, help="of repeats")
    parser.add_argument(
        "--update", action="store_true", help="keep the cases in the file that are not run now"
    )
    parser.add_argument("--minutes", type=float, help="jax.vmap is left out once they are over")
    parser.add_argument("--longest-compile", type=float, help="of jax.vmap [s]")
    parser.add_argument("--longest-run", type=float, default=20.0, help="of a call [s]")
    parser.add_argument(
        "--against", metavar="REVISION", help="only compare with the package of a git revision"
    )
    parser.add_argument("--no-peers", action="store_true", help="leave other engines out")
    parser.add_argument(
        "--keep-compiled",
        type=Path,
        metavar="FOLDER",
        help="keep jax.vmap's programs there; its compile times are then worth nothing",
    )
    options = parser.parse_args(arguments)
    quick = options.quick
    usual = against.CASES if options.against else QUICK if quick else CASES
    options.cases = options.cases or list(usual)
    options.dtype = options.dtype or (["float64"] if quick else ["float64", "float32"])
    options.minutes = options.minutes or (2.0 if quick else 20.0)
    options.longest_compile = options.longest_compile or (30.0 if quick else 100.0)
    options.seconds_per_measurement = options.seconds_per_measurement or (0.2 if quick else 0.5)
    return options


def plan(options: argparse.Namespace, name: str) -> Plan:
    works = [w for w in options.works if not options.quick or w in QUICK.get(name, WORKS)]
    batches: dict[str, tuple[int, ...]] = {
        FORWARD: FORWARD_BATCHES if CASES[name].small else FORWARD_BATCHES[:-1],
        ROLLOUT: ROLLOUT_BATCHES,
        GRADIENT: GRADIENT_BATCHES,
    }
    if options.quick:
        batches = {FORWARD: (1, BATCH, 65_536), ROLLOUT: (1000,), GRADIENT: (1000,)}
    if options.batches:
        batches = dict.fromkeys(WORKS, tuple(options.batches))
    return Plan(
        batches,
        REFERENCE,
        options.steps,
        options.seconds_per_measurement,
        options.longest_compile,
        options.longest_run,
        options.deadline,
        tuple(works),
        not options.no_peers,
    )


def started(options: argparse.Namespace) -> Results:
    """Print what is known before the first measurement."""
    facts = machine()
    wide = facts["vector_unit"] == "avx512f"
    peak = {dtype: peak_flops(dtype, wide) for dtype in ("float64", "float32")}
    settings = {
        key: getattr(options, key)
        for key in ("cases", "works", "dtype", "steps", "quick", "seconds_per_measurement")
    }
    head: dict[str, Any] = {
        "machine": facts,
        "versions": versions(),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "settings": settings,
        "peak_flops_per_core": peak,
    }
    print(
        f"{facts['processor']}, {facts['cores']} cores ({facts['vector_unit']}), load "
        f"{facts['load_at_start']}; commit {head['commit']}\n"
        + ", ".join(f"{name} {version}" for name, version in head["versions"].items())
        + f"\npeak of a core: {peak['float64'] / 1e9:.0f} GFLOP/s in float64, "
        f"{peak['float32'] / 1e9:.0f} in float32 (measured)"
    )
    if not have_lanes():
        print("jaxmbd.lanes cannot be imported: its columns are left out")
    results = Results(head, options.json)
    if options.update:
        results.keep(json.loads(options.json.read_text(encoding="utf-8")), options.cases)
    return results


def finished(results: Results) -> None:
    """Print and save the shares of the peak and the targets."""
    shares = aims.shares(results, results.head["peak_flops_per_core"])
    results.head["shares_of_peak"] = shares
    results.head["machine"]["load_at_end"] = round(os.getloadavg()[0], 2)
    for x in shares:
        print(
            f"  {x['case']}, {x['dtype']}, batch {x['batch']}: {x['flops']:.0f} operations a "
            f"sample, {100 * x['share']:.0f} % of a core's peak"
        )
    print(f"\n  {'target':76s} {'reached':>9s} {'wanted':>7s}  reached / target")
    for target in aims.targets(results, cores()):
        print(target.line())
    results.save()


def compared(options: argparse.Namespace) -> int:
    """Old against new; fails if a program is more than 3 % slower."""
    batches = dict.fromkeys(WORKS, options.batches[0]) if options.batches else REFERENCE
    found = against.run(
        options.against, options.cases, options.works, options.steps, batches,
        options.seconds_per_measurement,
    )  # fmt: skip
    found |= {"commit": commit(), "machine": machine(), "versions": versions()}
    _script.write(options.json, found)
    slower = [r for r in found["rows"] if r["speed"] < 1.0 - against.SLACK]
    for row in slower:
        print(f"slower than {1.0 - against.SLACK:g}: {row['case']}, {row['work']}")
    return 1 if slower else 0


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    _script.start(cache=False)
    if options.against:
        return compared(options)
    begin = time.monotonic()
    options.deadline = begin + 60.0 * options.minutes
    keep_nothing()
    if options.keep_compiled:
        jax.config.update("jax_compilation_cache_dir", str(options.keep_compiled))
    results = started(options)
    interrupted = False
    runner = Runner(results)
    try:
        if have_lanes():
            print("\nfirst calls and memory, each in a process of its own", flush=True)
            aims.first_calls(results, ["chain8"] if options.quick else options.cases, options.steps)
            if not options.quick:
                aims.memory(results, options.cases)
        for dtype in options.dtype:
            for name in options.cases:
                passed = time.monotonic() - begin
                if passed > OVER * 60.0 * options.minutes:
                    results.skip(f"{name}, {dtype}: the time is over")
                    continue
                print(f"\n{CASES[name].title} ({passed:.0f} s)", flush=True)
                runner.case(CASES[name], dtype, plan(options, name))
    except KeyboardInterrupt:
        interrupted = True
        results.skip("the rest: interrupted")
    finished(results)
    print(f"\n{time.monotonic() - begin:.0f} s in all")
    return 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
