"""``jaxmbd report``: one HTML file about a store."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jaxmbd.cli.says import Says, add_command
from jaxmbd.cli.study_commands import ATTENTION, outcome


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "report",
        _run,
        "a report on a store, as one HTML file that needs no network",
        "Write a report on a study's store: distributions, curves with the worst samples, what\n"
        "drives what, failures with their reasons, provenance. One file, which opens in a browser\n"
        f"without a network. {ATTENTION}",
        "jaxmbd report study.zarr\n"
        "jaxmbd report study.zarr --out bump_steer.html\n"
        "jaxmbd report study.zarr --limit bump/toe_range=:0.005 --limit drop/travel_end=0.01:0.03",
    )
    parser.add_argument("store", type=Path, help="a study's store")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: STORE.html, beside it")
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        type=limit,
        metavar="OUTPUT=LOW:HIGH",
        help="limits of an output in its SI unit, either of which may be left out: yield and Cpk; "
        "may be repeated",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it exists")


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


def _run(options: argparse.Namespace, says: Says) -> int:
    path = options.out or options.store.with_suffix(".html")
    if path.exists() and not options.overwrite:
        raise ValueError(f"{path} exists; choose another --out, or replace it with --overwrite")
    if not options.store.is_dir():
        raise ValueError(f"there is no store {options.store}; jaxmbd run STUDY.toml makes one")
    from jaxmbd.campaign import StudyStore
    from jaxmbd.report import write_report

    write_report(options.store, path, limits=dict(options.limit), overwrite=options.overwrite)
    says.text(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")
    status, about = outcome(StudyStore.open(options.store).dataset(), says)
    says.result({"report": path, "bytes": path.stat().st_size, **about})
    return status
