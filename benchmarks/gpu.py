"""Speed on an NVIDIA GPU: forward dynamics, rollouts, gradients, every sample checked.

    make bench-gpu              # installs what it needs, then runs this
    python benchmarks/gpu.py --quick
    python benchmarks/gpu.py --dry-run      # all of its code, on the host

Small programs are checked first. Of each batch the different samples are compared with the host's
results, and all others must have the bits of the sample that they repeat. Results are printed and
written after each row. Exit code 2: there is no GPU; 1: a result differs.

Registers are left to the assembler: with at most 128 or 96 per thread kernels were 1.5 to six times
slower on an H100.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from typing import Any

import _script
from gpu_cases.device import EMULATED, NoGPU, find
from gpu_cases.record import FORWARD, GOAL, GRADIENT, LANES, LAST, ONE, ROLLOUT, VMAP, Run

RESULTS = _script.HERE / "results" / "gpu.json"
DRY_RESULTS = _script.HERE.parent / "build" / "gpu_dry_run.json"
CASES = ("rssr", "chain8", "multi_link", "macpherson", "double_wishbone")
INDEPENDENT = ("rssr", "pendulum")  # also compared with XLA, which takes minutes for large ones
BATCHES = {FORWARD: (4096, 65_536, 1_000_000, 4_000_000), ROLLOUT: (10_000, 100_000)}
BATCHES[GRADIENT] = (10_000,)
QUICK = {FORWARD: (65_536, 1_000_000), ROLLOUT: (10_000,), GRADIENT: (10_000,)}
DRY = {FORWARD: (64, 150), ROLLOUT: (64,), GRADIENT: (64,)}
DRY_STEPS = 2
SINGLE = {FORWARD: 1_000_000, ROLLOUT: 100_000}  # smaller batches are left out in float32
WAVES = {FORWARD: (1, 30), ROLLOUT: (1, 3), GRADIENT: ()}
"""Batches of so many times the samples that run at once, beside the round ones."""
DRY_WAVES = {FORWARD: (1,), ROLLOUT: (1,), GRADIENT: ()}
BEYOND = 1.25  # of the scratch's budget, if each sample of a gradient had scratch of its own
DRAWN, FEWER = 4096, 512  # different samples, of rollouts fewer
SCATTERS = 10.0
"""Largest difference from the host, in those that neighbouring floats make on the host itself."""
ROOM = {FORWARD: 10.0, ROLLOUT: 15.0, GRADIENT: 40.0}
"""Least remaining seconds to start a case: for compiling, checking and timing."""
CORES = 8  # of which those that compile the next kernels do not disturb the measurements
VMAP_ROOM = {FORWARD: 45.0, ROLLOUT: 60.0}  # the longest took 8 s and 25 s on an H200


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = _script.parser(__doc__)
    parser.add_argument("--check", action="store_true", help="name the JAX extra to be installed")
    parser.add_argument("--quick", action="store_true", help="RSSR alone, below two minutes")
    parser.add_argument("--dry-run", action="store_true", help="small batches on the host")
    parser.add_argument("--cases", nargs="+", choices=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--steps", type=int, help="of a rollout; by default 1000")
    parser.add_argument("--minutes", type=float, help="nothing is started that would pass them")
    options = parser.parse_args(arguments)
    options.cases = options.cases or (CASES[:1] if options.quick else CASES)
    if options.dry_run:
        options.cases = ("pendulum",)
    options.minutes = options.minutes or (1.5 if options.quick else 7.0)
    options.steps = options.steps or (DRY_STEPS if options.dry_run else 1000)
    options.json = options.json or (DRY_RESULTS if options.dry_run else RESULTS)
    options.waves = DRY_WAVES if options.dry_run else WAVES
    options.batches = DRY if options.dry_run else QUICK if options.quick else BATCHES
    options.drawn = (32, 32) if options.dry_run else (DRAWN, FEWER)
    return options


def task(run: Run, name: str, work: str, dtype: str, steps: int = 0) -> Any:
    from gpu_cases.runs import Task

    steps = 1 if work == FORWARD else steps or run.options.steps
    return Task(name, work, dtype, steps, run.options.drawn[work != FORWARD])


def measure(run: Run, name: str, work: str, dtype: str) -> None:
    """One kind of work of one case: lanes at every batch size."""
    from gpu_cases import runs

    what = task(run, name, work, dtype)
    if run.left() < ROOM[work]:
        run.skip(f"{what.title}: the time is over")
        return
    print(f"  {what.title} ({run.left():.0f} s left)", flush=True)
    others = prepared(run, what)
    facts = runs.facts(what, run.device, run.place) | others
    print("    " + ", ".join(f"{key} {x:.6g}" for key, x in facts.items()), flush=True)
    fastest = 0.0
    for column, batch in batches(run, what, facts):
        if fastest and 8 * batch * what.steps / fastest > run.left():
            run.skip(f"{what.title}, {column}, batch {batch}: would take too long")
            continue
        fastest = max(fastest, measured(run, what, column, batch, facts))


def prepared(run: Run, what: Any) -> dict[str, float]:
    """Wait for a kernel that another process compiles, and tell how long that took."""
    if run.prepared is None or what.dtype != "float64":
        return {}
    seconds = run.prepared.seconds(what.name, what.work, run.left() - ROOM[what.work])
    return {} if seconds is None else dict(kernel_compile_seconds=seconds)


def batches(run: Run, what: Any, facts: dict[str, Any]) -> list[tuple[str, int]]:
    """Columns and sizes of the batches of a task, round ones and whole waves."""
    from gpu_cases import runs

    wave = runs.wave(run.device, facts)
    waves = [n * wave for n in run.options.waves[what.work]]
    sizes = sorted({*run.options.batches[what.work], *waves})
    if what.work == GRADIENT and what.name == run.options.cases[0] and not run.options.quick:
        sizes.append(runs.beyond_scratch(run.device, facts, BEYOND))
    if what.dtype == "float32" and not (run.options.quick or run.options.dry_run):
        sizes = [n for n in sizes if n >= SINGLE[what.work]]
    found = [(LANES, n) for n in sizes]
    if what.work == FORWARD and what.name == run.options.cases[0] and what.dtype == "float64":
        found += [(c, n) for c in (LAST, ONE) for n in run.options.batches[FORWARD][1:3]]
    return found


def measured(run: Run, what: Any, column: str, batch: int, facts: dict[str, Any]) -> float:
    """A row: checked, timed and kept. Returns the larger of its speeds."""
    from gpu_cases import runs

    args = runs.repeated(what.sample, batch, run.place, last=column == LAST)
    program = runs.Program(what.batched(column), args)
    found, program.first = program.first, None
    gap = compared(run, what, column, batch, found)
    del found
    limit = 0.06 * 60.0 * run.options.minutes
    times = run.timer.times(program.call, args, program.once, limit)
    wall, kernel = (batch * what.steps / times[k] for k in ("seconds", "kernel_seconds"))
    row = dict(
        case=what.name, work=what.work, dtype=what.dtype, column=column, batch=batch,
        steps=what.steps, per_second=wall, kernel_per_second=kernel,
        compile_seconds=program.compile_seconds,
    )  # fmt: skip
    if column in (LANES, LAST):
        row |= facts | dict(
            share=facts["flops"] / what.steps * kernel / run.device.peak(what.dtype),
            gb_per_second=1e-9 * facts["io_bytes"] * batch / times["kernel_seconds"],
            waves=batch / runs.wave(run.device, facts),
        )
    run.add(row | times | gap)
    return max(wall, kernel)


def compared(run: Run, what: Any, column: str, batch: int, out: Any) -> dict[str, Any]:
    """Every sample of a batch against the host; what is wrong is recorded.

    Returns:
        `difference`, the largest relative one from the host's results (`checked_by`), and `odd`,
        samples finite in one only, of the different samples; `scatter`, the difference that
        neighbouring floats make on the host; `unequal`, samples whose bits are not those of the one
        they repeat, and `nonfinite`, of all.
    """
    from gpu_cases import runs
    from throughput_cases.work import difference

    first, *counts = runs.compared(out, what.drawn, -1 if column == LAST else 0)
    unequal, nonfinite = map(int, counts)
    same = ONE if column == ONE else LANES
    by = {"lanes on the host": runs.reference(what, same)}
    if what.name in INDEPENDENT and (what.work, same) == (FORWARD, LANES):
        by["jax.vmap on the host"] = runs.reference(what, VMAP)
    found: dict[str, Any] = {}
    for name, truth in by.items():
        worst, odd = difference(first, truth)
        if not found or not worst <= found["difference"]:
            found = dict(difference=worst, odd=odd, checked_by=name)
    found |= dict(unequal=unequal, nonfinite=nonfinite, scatter=runs.scatter(what))
    if column != VMAP:  # XLA is no part of what is checked
        judge(run, f"{what.title}, {column}, batch {batch}", what, found)
    return found


def judge(run: Run, title: str, what: Any, gap: dict[str, Any]) -> None:
    """Record a comparison that shows wrong results."""
    worst, by, limit = gap["difference"], gap["checked_by"], SCATTERS * gap["scatter"]
    if not worst <= limit:
        run.fail(f"{title}: differs by {worst:.1e} from {by} (at most {limit:.0e})")
    if gap["odd"]:
        run.fail(f"{title}: {gap['odd']} of {what.drawn} samples are finite in one only")
    if gap["unequal"]:
        run.fail(f"{title}: {gap['unequal']} samples differ from those with the same arguments")


def beside(run: Run, name: str, work: str) -> None:
    """`jax.vmap` on the same GPU, once, if there is time to compile it."""
    from gpu_cases import runs

    if run.left() < VMAP_ROOM[work]:
        run.skip(f"{name}, {work}, jax.vmap on the GPU: no time left for its compiler")
        return
    small = run.options.dry_run
    what = task(run, name, work, "float64", steps=min(20, run.options.steps))  # linear in them
    batch = max(run.options.batches[work]) if small else 65_536 if work == FORWARD else 10_000
    print(f"  {what.title}, {what.steps} steps ({run.left():.0f} s left)", flush=True)
    facts = runs.facts(what, run.device, run.place)
    for column in (VMAP, LANES):
        measured(run, what, column, batch, facts)


def steps_of(options: argparse.Namespace) -> list[tuple[Any, ...]]:
    """The steps in their order: the goal first, what XLA has to compile last."""
    cases = options.cases
    plan: list[tuple[Any, ...]] = [(measure, cases[0], w, "float64") for w in (FORWARD, ROLLOUT)]
    plan += [(measure, n, w, "float64") for w in (FORWARD, ROLLOUT) for n in cases[1:]]
    plan += [(measure, n, GRADIENT, "float64") for n in cases]
    plan += [(measure, n, FORWARD, "float32") for n in cases]
    plan += [(measure, cases[0], ROLLOUT, "float32")]
    late = (FORWARD,) if options.dry_run else (FORWARD, ROLLOUT)
    return plan + [(beside, n, w) for n in cases for w in late]


def ready() -> bool:
    """Whether nothing has to be installed: all parts can be imported, and JAX uses the GPU."""
    try:
        import jax
        from gpu_cases import checks  # noqa: F401
    except ImportError:
        return False
    return jax.default_backend() == "gpu"


def main(arguments: list[str] | None = None) -> int:
    begin = time.monotonic()
    options = parsed(arguments)
    try:
        device = EMULATED if options.dry_run else find()
    except NoGPU as error:
        print(f"no GPU, nothing to run: {error}", file=sys.stderr)
        return 2
    if options.check:
        print("" if ready() else device.wheel)
        return 0
    import jax

    _script.start(cache=options.dry_run)
    if not options.dry_run and jax.default_backend() != "gpu":
        print(
            f"JAX does not use the GPU ({device.name}): install jax[{device.wheel}], or run "
            "`make bench-gpu`",
            file=sys.stderr,
        )
        return 2
    return benchmark(Run(device, options, options.json, begin + 60.0 * options.minutes))


def benchmark(run: Run) -> int:
    import jax
    from gpu_cases.prepare import Prepared
    from gpu_cases.timing import Timer
    from throughput_cases.columns import keep_nothing
    from throughput_cases.machine import commit, cores, machine, versions

    if not run.options.dry_run:
        keep_nothing()
    device = run.device
    run.place = jax.devices("cpu" if run.options.dry_run else "gpu")[0]
    run.head = dict(
        device=asdict(device), machine=machine(), versions=versions(), commit=commit(),
        date=time.strftime("%Y-%m-%d"),
        settings=dict(quick=run.options.quick, dry_run=run.options.dry_run),
        peak_flops={d: device.peak(d) for d in ("float64", "float32")},
    )  # fmt: skip
    print(
        f"{device.name}, {device.processors} multiprocessors at {device.clock / 1e9:.2f} GHz, peak "
        f"{device.peak('float64') / 1e12:.1f} TFLOP/s in float64; commit {run.head['commit']}"
    )
    if cores() >= CORES and not (run.options.dry_run or run.options.quick):
        run.prepared = Prepared()
        run.prepared.start(run.options.cases, run.options.steps, run.options.drawn[1])
    interrupted = False
    try:
        if tested(run):
            run.timer = Timer(device, run.place)
            interrupted = not all_done(run)
    finally:
        if run.prepared is not None:
            run.prepared.close()
    return finished(run, interrupted)


def tested(run: Run) -> bool:
    """Whether the small programs are right; only then is anything timed."""
    from gpu_cases import checks

    start = time.monotonic()
    for text in checks.failures(run.place, run.device.memory):
        run.fail(text)
    if run.wrong:
        print("checks of small programs failed: nothing is timed", file=sys.stderr)
    else:
        print(f"  small programs are right ({time.monotonic() - start:.0f} s)", flush=True)
    run.head["checks_seconds"] = time.monotonic() - start
    run.save()
    return not run.wrong


def all_done(run: Run) -> bool:
    """Take all steps; whether none was interrupted."""
    for action, *what in steps_of(run.options):
        try:
            action(run, *what)
        except KeyboardInterrupt:
            run.skip("the rest: interrupted")
            return False
        except Exception as error:  # go on with the others
            text = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            run.fail(f"{', '.join(map(str, what))}: {text}")
            run.save()
    return True


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
