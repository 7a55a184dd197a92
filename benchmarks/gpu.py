"""Speed on an NVIDIA GPU: forward dynamics, rollouts, gradients, each checked against the host.

    make bench-gpu              # installs what it needs, then runs this
    python benchmarks/gpu.py --quick

Results are printed and written after each case. Exit code 2: there is no GPU; 1: a result differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from typing import Any

import _script
from gpu_cases.device import NoGPU, find
from gpu_cases.record import FORWARD, GOAL, GRADIENT, ROLLOUT, Run

CASES = ("rssr", "four_bar_1", "double_wishbone", "multi_link", "macpherson")
BATCHES = {FORWARD: (4096, 65_536, 1_000_000, 4_000_000), ROLLOUT: (10_000, 100_000)}
BATCHES[GRADIENT] = (10_000, 50_000)
QUICK = {FORWARD: (65_536, 1_000_000), ROLLOUT: (10_000,), GRADIENT: (10_000,)}
TOLERANCE = {FORWARD: 1e-8, ROLLOUT: 1e-6, GRADIENT: 1e-5}  # relative, float64
TOLERANCE_SINGLE = 0.05  # of forward dynamics; rollouts in float32 drift apart
ROOM = {  # least remaining seconds to start a case: for compiling, checking and timing
    FORWARD: 10.0, ROLLOUT: 20.0, GRADIENT: 45.0,
}  # fmt: skip
VMAP_ROOM = {FORWARD: 60.0, ROLLOUT: 90.0, GRADIENT: 150.0}


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = _script.parser(__doc__)
    parser.add_argument("--check", action="store_true", help="only look for a GPU; name its wheel")
    parser.add_argument("--quick", action="store_true", help="RSSR alone, below two minutes")
    parser.add_argument("--cases", nargs="+", choices=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--steps", type=int, default=1000, help="of a rollout")
    parser.add_argument("--minutes", type=float, help="nothing is started that would pass them")
    parser.set_defaults(json=_script.HERE / "results" / "gpu.json")
    options = parser.parse_args(arguments)
    options.cases = options.cases or (CASES[:1] if options.quick else CASES)
    options.minutes = options.minutes or (1.5 if options.quick else 5.0)
    options.batches = QUICK if options.quick else BATCHES
    return options


def measure(run: Run, name: str, work: str, dtype: str) -> None:
    """One kind of work of one case: lanes at every batch size, checked."""
    from gpu_cases import runs
    from throughput_cases.catalogue import CASES as CATALOGUE
    from throughput_cases.work import difference, function

    case, steps = CATALOGUE[name], 1 if work == FORWARD else run.options.steps
    title = f"{case.title}, {work}, {dtype}"
    if run.left() < ROOM[work]:
        run.skip(f"{title}: the time is over")
        return
    print(f"  {title} ({run.left():.0f} s left)", flush=True)
    fn, sample = function(case, work, steps), runs.drawn(case, work, dtype)
    facts = runs.facts(fn, sample)
    print("    " + ", ".join(f"{key} {x}" for key, x in facts.items()), flush=True)
    count = runs.checked_samples(work)
    truth, by = runs.reference(case, work, steps, sample, count)
    fastest = 0.0
    columns = (runs.LANES, runs.LAST, runs.ONE) if work == FORWARD else (runs.LANES,)
    for column in columns:
        for k, batch in enumerate(run.options.batches[work]):
            if fastest and batch * steps / fastest > 0.2 * run.left():
                run.skip(f"{title}, {column}, batch {batch}: would take too long")
                continue
            args = runs.repeated(sample, batch, last=column == runs.LAST)
            program = runs.Program(runs.batched(fn, column, case, dtype), args)
            gap: dict[str, Any] = {}
            if not k and column != runs.ONE:
                worst, odd = difference(program.result(count, column == runs.LAST), truth)
                gap = dict(difference=worst, odd=odd, checked_by=by)
                judge(run, f"{title}, {column}", work, dtype, worst, odd)
            row = timed(run, program, name, work, dtype, column, batch, steps)
            fastest = max(fastest, row["per_second"])
            if column != runs.ONE:
                row["share"] = facts["flops"] / steps * row["per_second"] / run.device.peak(dtype)
            run.add(row | facts | gap)
    run.save()


def judge(run: Run, title: str, work: str, dtype: str, worst: float, odd: int) -> None:
    """Print a difference, and record it if it is too large."""
    print(f"    {'difference':18s} {worst:.1e}, {odd} samples finite in one only", flush=True)
    limit = TOLERANCE[work] if dtype == "float64" else TOLERANCE_SINGLE
    if (worst > limit or odd) and (dtype == "float64" or work == FORWARD):
        run.wrong.append(f"{title}: {worst:.1e} (at most {limit:.0e}), {odd} finite in one only")
        print(f"    WRONG: {run.wrong[-1]}", flush=True)


def timed(
    run: Run, program: Any, name: str, work: str, dtype: str, column: str, batch: int, steps: int
) -> dict[str, Any]:
    seconds = program.seconds(min(0.5, 0.02 * run.options.minutes * 60.0))
    return dict(
        case=name, work=work, dtype=dtype, column=column, batch=batch, steps=steps,
        seconds=seconds, per_second=batch * steps / seconds,
        compile_seconds=program.compile_seconds,
    )  # fmt: skip


def beside(run: Run, name: str, work: str) -> None:
    """`jax.vmap` on the same GPU, once, if there is time to compile it."""
    from gpu_cases import runs
    from throughput_cases.catalogue import CASES as CATALOGUE
    from throughput_cases.work import function

    if run.left() < VMAP_ROOM[work]:
        run.skip(f"{name}, {work}, jax.vmap on the GPU: no time left for its compiler")
        return
    case, steps = CATALOGUE[name], 1 if work == FORWARD else 20  # time is linear in the steps
    batch = 65_536 if work == FORWARD else 10_000
    print(f"  {case.title}, {work}, float64, {steps} steps", flush=True)
    args = runs.repeated(runs.drawn(case, work, "float64"), batch)
    for column in (runs.VMAP, runs.LANES):
        program = runs.Program(
            runs.batched(function(case, work, steps), column, case, "float64"), args
        )
        run.add(timed(run, program, name, work, "float64", column, batch, steps))
    run.save()


def limits(run: Run, name: str) -> None:
    """Forward dynamics with fewer registers: more threads at a time, but more spills."""
    from gpu_cases import runs
    from throughput_cases.catalogue import CASES as CATALOGUE
    from throughput_cases.work import function

    case, batch = CATALOGUE[name], max(run.options.batches[FORWARD])
    fn, sample = function(case, FORWARD, 1), runs.drawn(case, FORWARD, "float64")
    print(f"  {case.title}, {FORWARD}, float64, fewer registers", flush=True)
    args = runs.repeated(sample, batch)
    for most in (168, 128, 96):
        if run.left() < ROOM[FORWARD]:
            return
        with runs.registers(most):
            program = runs.Program(runs.batched(fn, runs.LANES, case, "float64"), args)
        row = timed(run, program, name, FORWARD, "float64", f"lanes, {most} reg.", batch, 1)
        run.add(row)
    run.save()


def steps_of(options: argparse.Namespace) -> list[tuple[Any, ...]]:
    """The steps in their order: the goal first, what XLA has to compile late."""
    cases = options.cases
    plan: list[tuple[Any, ...]] = []
    plan += [(measure, "rssr", w, "float64") for w in (FORWARD, ROLLOUT) if "rssr" in cases]
    plan += [(measure, n, FORWARD, "float64") for n in cases if n != "rssr"]
    plan += [(limits, n) for n in cases[:1]]
    plan += [(measure, n, GRADIENT, "float64") for n in cases[:1]]
    plan += [(beside, n, FORWARD) for n in cases[:1]]
    plan += [(measure, n, FORWARD, "float32") for n in cases]
    plan += [(measure, n, ROLLOUT, "float64") for n in cases if n != "rssr"]
    plan += [(measure, n, ROLLOUT, "float32") for n in cases[:1]]
    plan += [(measure, n, GRADIENT, "float64") for n in cases[1:]]
    plan += [
        (beside, n, w) for n in cases for w in (FORWARD, ROLLOUT) if (n, w) != (cases[0], FORWARD)
    ]
    return plan


def main(arguments: list[str] | None = None) -> int:
    begin = time.monotonic()
    options = parsed(arguments)
    try:
        device = find()
    except NoGPU as error:
        print(f"no GPU, nothing to run: {error}", file=sys.stderr)
        return 2
    if options.check:
        print(device.wheel)
        return 0
    import jax

    _script.start(cache=False)
    if jax.default_backend() != "gpu":
        print(
            f"JAX does not use the GPU ({device.name}): install jax[{device.wheel}], or run "
            "`make bench-gpu`",
            file=sys.stderr,
        )
        return 2
    return benchmark(Run(device, options, options.json, begin + 60.0 * options.minutes))


def benchmark(run: Run) -> int:
    from throughput_cases.columns import keep_nothing
    from throughput_cases.machine import commit, machine, versions

    keep_nothing()
    device = run.device
    run.head = dict(
        device=asdict(device), machine=machine(), versions=versions(), commit=commit(),
        date=time.strftime("%Y-%m-%d"), settings={"quick": run.options.quick},
        peak_flops={d: device.peak(d) for d in ("float64", "float32")},
    )  # fmt: skip
    print(
        f"{device.name}, {device.processors} multiprocessors at {device.clock / 1e9:.2f} GHz, peak "
        f"{device.peak('float64') / 1e12:.1f} TFLOP/s in float64; commit {run.head['commit']}"
    )
    run.save()
    interrupted = False
    for action, *what in steps_of(run.options):
        try:
            action(run, *what)
        except KeyboardInterrupt:
            interrupted = True
            run.skip("the rest: interrupted")
            break
        except Exception as error:  # go on with the others
            text = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            run.wrong.append(f"{', '.join(map(str, what))}: {text}")
            print(f"    FAILED: {run.wrong[-1]}", flush=True)
            run.save()
    return finished(run, interrupted)


def finished(run: Run, interrupted: bool) -> int:
    """Print the goal and all failures; returns the exit code."""
    run.save()
    goal = run.goal()
    if goal["reached"]:
        print(
            f"\nRSSR forward dynamics, float64: {goal['reached']:.3g} /s of {GOAL:.0e} wanted on "
            f"an H200: reached / target {goal['ratio']:.2f}"
        )
    for text in run.wrong:
        print(f"wrong: {text}")
    print(f"written to {run.options.json}")
    return 130 if interrupted else int(bool(run.wrong))


if __name__ == "__main__":
    sys.exit(main())
