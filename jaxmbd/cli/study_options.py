"""What the commands on studies share: the study's file, its store, where it is computed."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxmbd.cli.jax_setup import set_up_jax
from jaxmbd.cli.says import FINDINGS, FINE, Says


def add_study(parser: argparse.ArgumentParser) -> None:
    """The study's file and its store."""
    parser.add_argument("study", type=Path, help="a study as TOML")
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
    from jaxmbd.campaign.study_file import load_study

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
def executor_of(options: argparse.Namespace, says: Says) -> Iterator[Any]:
    """The executor of a Dask scheduler; None without one."""
    if options.scheduler is None:
        yield None
        return
    from jaxmbd.numerics.extras import optional

    distributed = optional("distributed", "dask", "--scheduler")
    with distributed.Client(options.scheduler, timeout=30) as client:
        says.note(f"{len(client.scheduler_info()['workers'])} workers at {options.scheduler}")
        with client.get_executor() as executor:
            yield executor


def computed(options: argparse.Namespace, says: Says, study: Any, store: Path) -> int:
    """Run a study into its store, and say what came out."""
    from jaxmbd.campaign.run import run_study

    shown = not (options.quiet or says.as_json) and sys.stderr.isatty()
    begun = time.perf_counter()
    study.model.warn()
    try:
        with executor_of(options, says) as executor:
            results = run_study(study, store, executor=executor, progress=shown).arrays()
    except KeyboardInterrupt as stop:
        out = "" if options.out is None else f" --out {options.out}"
        how = f"go on with: jaxmbd resume {options.study}{out}"
        raise KeyboardInterrupt(f"{stop}\n{how}" if str(stop) else how) from None
    seconds = time.perf_counter() - begun
    if not options.quiet:
        from jaxmbd.campaign import spread_table, status_line

        says.text(f"{status_line(results)}; {seconds:.0f} s\n", spread_table(results), sep="\n")
    status, about = outcome(results, says)
    if not options.quiet:
        says.text(f"\nwrote {store}; open it with xarray.open_zarr({str(store)!r})")
    says.result({"store": store, "seconds": seconds, **about, **summary(results)})
    return status


ATTENTION = "The exit status is\n3 if samples failed, or have no value of an output."
"""What the helps of the commands say that end with `outcome`."""


def outcome(results: Any, says: Says) -> tuple[int, dict[str, Any]]:
    """The exit status, and the outputs of which samples have no value; they are told.

    Args:
        results: the `xarray.Dataset` of a study, or its store's arrays.
        says: prints them, on stderr.
    """
    from jaxmbd.campaign.table import missing_line
    from jaxmbd.statistics import value_counts

    counts = value_counts(results)
    if text := missing_line(counts):
        says.note(f"jaxmbd: {text}")
    fine = all(x.count == x.samples for x in counts.values())
    return FINE if fine else FINDINGS, {"missing": {n: x.missing for n, x in counts.items()}}


def summary(results: Any) -> dict[str, Any]:
    """Samples, failures by kind, and the spread of each output, of a study's results."""
    import numpy as np

    from jaxmbd.analysis import Status
    from jaxmbd.campaign.table import spreads

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
