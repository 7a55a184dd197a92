"""``jaxmbd run``, ``resume``, ``verify``, ``report`` and ``demo``: studies and their stores."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxmbd.cli.common import (
    FINDINGS,
    FINE,
    Printer,
    add_command,
    add_overwrite,
    refuse_to_replace,
    set_up_jax,
)
from jaxmbd.cli.suspension_commands import report_on_suspension
from jaxmbd.plumbing import optional


def add(commands: Any) -> None:
    """The commands' arguments."""
    _add_run(commands)
    _add_resume(commands)
    _add_verify(commands)
    _add_report(commands)
    _add_demo(commands)


def _add_run(commands: Any) -> None:
    parser = add_command(
        commands,
        "run",
        _run,
        "run a study from a TOML file",
        "Run a study into a new store. The nominal sample is judged first: if it fails, nothing\n"
        "is run, and outputs of which it has no value are warned of. Every chunk of samples is\n"
        "durable as soon as it is computed: after Ctrl-C, a kill or a power cut go on with\n"
        f"`jaxmbd resume`, and nothing is lost. {ATTENTION}\n\n"
        "The file has title, samples, seed, design, correlation, and the tables\n"
        "  [mechanism]   zoo = NAME, or file = MODEL.json\n"
        "  [tolerances]  if there: each part is made with errors of its own (build scatter)\n"
        "  [inputs]      a distribution for each variable that scatters; quantities have units\n"
        "                (`jaxmbd check MODEL --variables` lists the variables)\n"
        "  [experiment]  what is done, and in [experiment.observe] what is observed of it: types\n"
        "                and their arguments are those of the classes in help(jaxmbd.observe);\n"
        "                several have names: [experiments.NAME] and [experiments.NAME.observe]\n"
        "examples/build_scatter.toml has all of them.",
        "jaxmbd run study.toml\n"
        "jaxmbd run study.toml --out results/first.zarr\n"
        "jaxmbd run study.toml --scheduler tcp://10.0.0.1:8786",
    )
    add_study(parser)
    add_computing(parser)
    parser.add_argument(
        "--overwrite", action="store_true", help="remove the store if it exists, and begin anew"
    )


def _run(options: argparse.Namespace, printer: Printer) -> int:
    store = store_of(options)
    if store.exists() and not options.overwrite:
        raise ValueError(
            f"{store} exists. Go on with it: jaxmbd resume {options.study}; or choose another "
            "--out, or replace it with --overwrite"
        )
    study = study_of(options)
    if store.exists():
        from jaxmbd.campaign import remove_study

        study.check()  # before anything is removed
        remove_study(store)
    return computed(options, printer, study, store)


def _add_resume(commands: Any) -> None:
    parser = add_command(
        commands,
        "resume",
        _resume,
        "go on with a study that was stopped or killed",
        "Compute the chunks that a store lacks. The store ends with the same bytes as one that\n"
        "was never interrupted. If the study's file has changed what it means, the command\n"
        f"refuses and shows the difference. {ATTENTION}",
        "jaxmbd resume study.toml\njaxmbd resume study.toml --out results/first.zarr",
    )
    add_study(parser)
    add_computing(parser)


def _resume(options: argparse.Namespace, printer: Printer) -> int:
    store = store_of(options)
    if not store.exists():
        raise ValueError(f"there is no {store} to go on with; begin: jaxmbd run {options.study}")
    return computed(options, printer, study_of(options), store)


def _add_verify(commands: Any) -> None:
    parser = add_command(
        commands,
        "verify",
        _verify,
        "check every byte of a store, and compute again what is damaged",
        "Check every file of a store against its checksum. Given the study's TOML file, damaged\n"
        "chunks are computed again, to the same bytes; given the store alone, they are named.\n"
        "The exit status is 3 if there was damage.",
        "jaxmbd verify study.toml\n"
        "jaxmbd verify study.toml --out results/first.zarr\n"
        "jaxmbd verify results/first.zarr",
    )
    add_study(parser, "a study as TOML, or a study's store")


def _verify(options: argparse.Namespace, printer: Printer) -> int:
    alone = options.study.is_dir()
    if alone and options.out is not None:
        raise ValueError(f"{options.study} is a folder; --out goes with a study's TOML file")
    store = options.study if alone else store_of(options)
    if not store.exists():
        raise ValueError(f"there is no {store} to verify; choose it with --out")
    if alone:
        from jaxmbd.campaign import StudyStore, verify_store

        found = verify_store(StudyStore.open(store))
        how = f"not mended: jaxmbd verify STUDY.toml --out {store} does that"
    else:
        shown = not printer.as_json and sys.stderr.isatty()
        found, how = study_of(options).verify(store, progress=shown), "mended"
    for damage in found:
        printer.text(str(damage))
    printer.text(f"{store}: {f'{len(found)} damaged files, {how}' if found else 'no damage'}")
    damages = [{"text": str(x), "chunk": getattr(x, "chunk", None)} for x in found]
    printer.result({"store": store, "damage": damages})
    return FINDINGS if found else FINE


def add_study(parser: argparse.ArgumentParser, what: str = "a study as TOML") -> None:
    """The study's file and its store."""
    parser.add_argument("study", type=Path, help=what)
    parser.add_argument(
        "--out", type=Path, metavar="STORE", help="the store (default: STUDY.zarr, here)"
    )


def add_computing(parser: argparse.ArgumentParser) -> None:
    """Where and how it is computed."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="compute with the workers of this Dask scheduler, which see the same folder "
        "(default: all cores or GPUs of this process)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar, no table")


def store_of(options: argparse.Namespace) -> Path:
    """The path of the store."""
    return options.out or Path(options.study.with_suffix(".zarr").name)


def study_of(options: argparse.Namespace) -> Any:
    """The study, with JAX set up for it."""
    set_up_jax()
    from jaxmbd.campaign import load_study

    if options.study.is_dir():
        raise ValueError(
            f"{options.study} is a folder; give the study's TOML file, and with --out the store"
        )
    with warnings.catch_warnings(record=True) as caught:
        study = load_study(options.study)
    for warning in caught:
        print(f"jaxmbd: warning: {warning.message}", file=sys.stderr)
    return study


@contextmanager
def executor_of(options: argparse.Namespace, printer: Printer) -> Iterator[Any]:
    """The executor of a Dask scheduler; None without one."""
    if options.scheduler is None:
        yield None
        return

    distributed = optional("distributed", "dask", "--scheduler")
    with distributed.Client(options.scheduler, timeout=30) as client:
        printer.note(f"{len(client.scheduler_info()['workers'])} workers at {options.scheduler}")
        with client.get_executor() as executor:
            yield executor


def computed(options: argparse.Namespace, printer: Printer, study: Any, store: Path) -> int:
    """Run a study into its store, and say what came out."""
    try:
        with executor_of(options, printer) as executor:
            results, seconds = results_of(study, store, printer, executor, options.quiet)
    except KeyboardInterrupt as stop:
        out = "" if options.out is None else f" --out {options.out}"
        how = f"go on with: jaxmbd resume {options.study}{out}"
        raise KeyboardInterrupt(f"{stop}\n{how}" if str(stop) else how) from None
    status, about = outcome(results, printer)
    if not options.quiet:
        printer.text(f"\nwrote {store}; open it with xarray.open_zarr({str(store)!r})")
    printer.result({"store": store, "seconds": seconds, **about, **summary(results)})
    return status


def results_of(
    study: Any, store: Path, printer: Printer, executor: Any = None, quiet: bool = False
) -> tuple[Any, float]:
    """The results of a study, computed into its store, and the seconds that it took."""
    from jaxmbd.campaign import spread_table, status_line

    shown = not (quiet or printer.as_json) and sys.stderr.isatty()
    begun = time.perf_counter()
    results = study.run(store, executor=executor, progress=shown)
    seconds = time.perf_counter() - begun
    if not quiet:
        printer.text(f"{status_line(results)}; {seconds:.0f} s\n", spread_table(results))
    return results, seconds


ATTENTION = "The exit status is\n3 if samples failed, or have no value of an output."
"""What the helps of the commands say that end with `outcome`."""


def outcome(results: Any, printer: Printer) -> tuple[int, dict[str, Any]]:
    """The exit status, and how many samples have no value of each output, which is printed too."""
    from jaxmbd.campaign import missing_line
    from jaxmbd.statistics import value_counts

    counts = value_counts(results)
    if text := missing_line(counts):
        printer.note(f"jaxmbd: {text}")
    fine = all(x.count == x.samples for x in counts.values())
    return FINE if fine else FINDINGS, {"missing": {n: x.missing for n, x in counts.items()}}


def summary(results: Any) -> dict[str, Any]:
    """Samples, failures by kind, and the spread of each output, of a study's results."""
    import numpy as np

    from jaxmbd.analysis import Status
    from jaxmbd.campaign import spreads

    status = np.asarray(results["status"])
    kinds = {s.name.lower(): int(np.sum(status == s)) for s in Status if s != Status.OK}
    outputs = {}
    for x in spreads(results):
        count = int(x.values.size)
        about = {"unit": x.unit, "nominal": x.nominal, "count": count, "left_out": x.left_out}
        if x.values.size:
            about["mean"] = float(x.values.mean())
            about |= {"std": x.std} if x.values.size > 1 else {}
            about |= {"min": float(x.values.min()), "max": float(x.values.max())}
        outputs[x.name] = about
    failed = {kind: n for kind, n in kinds.items() if n}
    return {"samples": len(status), "failed": failed, "outputs": outputs}


def _add_report(commands: Any) -> None:
    parser = add_command(
        commands,
        "report",
        _report,
        "a report on a store, or on a suspension, as one HTML file that needs no network",
        "Write a report on a study's store: distributions, curves with the worst samples, what\n"
        "drives what, failures with their reasons, provenance. Of a corner or an axle (a model's\n"
        "file with roles, a name of the zoo): characteristics, hardpoints, curves, what each\n"
        "hardpoint changes, an animation. One file, which opens in a browser without a network.\n"
        f"{ATTENTION}",
        "jaxmbd report study.zarr\n"
        "jaxmbd report corner.json --before corner_old.json\n"
        "jaxmbd report study.zarr --out bump_steer.html\n"
        "jaxmbd report study.zarr --limit bump/toe_range=:0.005 --limit drop/travel_end=0.01:0.03",
    )
    parser.add_argument("store", metavar="store|model", help="a study's store, or a suspension")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: NAME.html, beside it")
    parser.add_argument("--before", metavar="MODEL", help="of a suspension: an earlier design")
    parser.add_argument(
        "--travel", nargs=2, metavar=("FROM", "TO"), help="of its wheel, with units (±60 mm)"
    )
    parser.add_argument("--settle", action="store_true", help="its bushings come to rest")
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        type=limit,
        metavar="OUTPUT=LOW:HIGH",
        help="limits of an output in its SI unit, either of which may be left out: yield and Cpk; "
        "may be repeated",
    )
    add_overwrite(parser)


def limit(text: str) -> tuple[str, tuple[float | None, float | None]]:
    """An output's limits, as ``NAME=LOW:HIGH``."""
    name, _, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    try:
        numbers = tuple(float(x) if x.strip() else None for x in (low, high))
    except ValueError:
        numbers = (None, None)
    if not (name and colon) or numbers == (None, None):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=LOW:HIGH, as toe_range=:0.005")
    return name, (numbers[0], numbers[1])


def _report(options: argparse.Namespace, printer: Printer) -> int:
    store = Path(options.store)
    path = options.out or Path(options.store.removeprefix("zoo:")).with_suffix(".html")
    refuse_to_replace(options.overwrite, path)
    if options.store.startswith("zoo:") or store.suffix == ".json":
        return report_on_suspension(options, path, printer)
    if not store.is_dir():
        what = "is no store" if store.exists() else "is not there"
        raise ValueError(
            f"{store} {what}; give the folder of a store, which jaxmbd run STUDY.toml makes, or "
            "the file of a suspension, which jaxmbd.suspension.save_with_roles writes"
        )
    from jaxmbd.campaign import StudyStore
    from jaxmbd.report import write_report

    write_report(store, path, limits=dict(options.limit), overwrite=options.overwrite)
    printer.text(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")
    status, about = outcome(StudyStore.open(store).dataset(), printer)
    printer.result({"report": path, "bytes": path.stat().st_size, **about})
    return status


def _add_demo(commands: Any) -> None:
    parser = add_command(
        commands,
        "demo",
        _demo,
        "a study of a suspension corner's build tolerances, with a figure",
        "Assemble thousands of published multi-link suspension corners whose parts are made with\n"
        "errors, and see how toe, camber and the ride scatter.",
        "jaxmbd demo\njaxmbd demo --samples 20000 --out results",
    )
    parser.add_argument("--samples", type=count, help="how many (default 2000, with --quick 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default 0)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for its files")
    parser.add_argument("--quick", action="store_true", help="fewer samples")


def count(text: str) -> int:
    """A number of samples."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give at least one sample")
    return number


def _demo(options: argparse.Namespace, printer: Printer) -> int:
    samples = options.samples or (200 if options.quick else 2000)
    printer.text(
        f"{samples} samples of a published multi-link suspension corner. Each joint of each part "
        "is\nmade with an error of its own (0.3 mm, one standard deviation), spring rate and "
        "damping\nscatter too: curves over the wheel's travel, and 0.5 s of motion after a release."
    )
    set_up_jax()
    from jaxmbd.campaign import corner_study
    from jaxmbd.viz import corner_figure

    optional("matplotlib", "demo", "the demonstration")
    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / f"corner_{samples}_seed{options.seed}.zarr"
    if store.exists():
        printer.text(f"{store} is there already: what it has is not computed again")
    printer.text("")
    results, seconds = results_of(corner_study(samples, options.seed), store, printer)
    picture = options.out / "suspension_corner.png"
    corner_figure(results, picture)
    printer.text(f"\nwrote {store} and {picture}")
    status, about = outcome(results, printer)
    found = {"store": store, "picture": picture, "seconds": seconds, **about, **summary(results)}
    printer.result(found)
    return status
