"""``jaxmbd resume``: go on with a study."""

from __future__ import annotations

import argparse
from typing import Any

from jaxmbd.cli.says import Says, add_command
from jaxmbd.cli.study_options import (
    ATTENTION,
    add_computing,
    add_study,
    computed,
    store_of,
    study_of,
)


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "resume",
        _run,
        "go on with a study that was stopped or killed",
        "Compute the chunks that a store lacks. The store ends with the same bytes as one that\n"
        "was never interrupted. If the study's file has changed what it means, the command\n"
        f"refuses and shows the difference. {ATTENTION}",
        "jaxmbd resume study.toml\njaxmbd resume study.toml --out results/first.zarr",
    )
    add_study(parser)
    add_computing(parser)


def _run(options: argparse.Namespace, says: Says) -> int:
    store = store_of(options)
    if not store.exists():
        raise ValueError(f"there is no {store} to go on with; begin: jaxmbd run {options.study}")
    return computed(options, says, study_of(options), store)
