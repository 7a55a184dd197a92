"""``jaxmbd run``: a new study."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
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
        "                and their arguments are those of the classes in help(jaxmbd.observe)\n"
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


def _run(options: argparse.Namespace, says: Says) -> int:
    store = store_of(options)
    if store.exists() and not options.overwrite:
        raise ValueError(
            f"{store} exists. Go on with it: jaxmbd resume {options.study}; or choose another "
            "--out, or replace it with --overwrite"
        )
    study = study_of(options)
    if store.exists():
        study.check()  # before anything is removed
        _remove(store)
    return computed(options, says, study, store)


def _remove(store: Path) -> None:
    """Remove a store with its log; nothing else."""
    from jaxmbd.campaign.store import StudyStore, lock

    StudyStore.open(store)  # raises if it is something else
    with lock(store):
        shutil.rmtree(store)
        store.with_name(store.name + ".log").unlink(missing_ok=True)
