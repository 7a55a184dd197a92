"""``jaxmbd demo``: what a new user sees first."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from jaxmbd.cli.jax_setup import set_up_jax
from jaxmbd.cli.says import Says, add_command
from jaxmbd.cli.study_commands import outcome, summary


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "demo",
        _run,
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


def _run(options: argparse.Namespace, says: Says) -> int:
    samples = options.samples or (200 if options.quick else 2000)
    says.text(
        f"{samples} samples of a published multi-link suspension corner. Each joint of each part "
        "is\nmade with an error of its own (0.3 mm, one standard deviation), spring rate and "
        "damping\nscatter too: curves over the wheel's travel, and 0.5 s of motion after a release."
    )
    set_up_jax()
    from jaxmbd.campaign import corner_study, run_study, spread_table, status_line
    from jaxmbd.plumbing import import_aside, optional
    from jaxmbd.viz import corner_figure

    optional("matplotlib", "demo", "the demonstration")
    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / f"corner_{samples}_seed{options.seed}.zarr"
    if store.exists():
        says.text(f"{store} is there already: what it has is not computed again")
    begun = time.perf_counter()
    study = corner_study(samples, options.seed)
    _ = study.program.outputs  # traced before other threads want the interpreter
    import_aside("matplotlib.backends.backend_agg", "matplotlib.figure", "xarray", "zarr")
    progress = not says.as_json and sys.stderr.isatty()
    results = run_study(study, store, progress=progress).dataset()
    took = time.perf_counter() - begun
    says.text(f"\n{status_line(results)}; {took:.0f} s\n", spread_table(results))
    picture = options.out / "suspension_corner.png"
    corner_figure(results, picture)
    says.text(f"\nwrote {store} and {picture}")
    status, about = outcome(results, says)
    found = {"store": store, "picture": picture, "seconds": took, **about, **summary(results)}
    says.result(found)
    return status
