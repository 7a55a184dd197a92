"""``jaxmbd verify``: look for damage in a store, and mend it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from jaxmbd.cli.says import FINDINGS, FINE, Says, add_command
from jaxmbd.cli.study_options import add_study, store_of, study_of


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "verify",
        _run,
        "check every byte of a store, and compute again what is damaged",
        "Check every file of a store against its checksum. Damaged chunks are computed again, to\n"
        "the same bytes. The exit status is 3 if there was damage.",
        "jaxmbd verify study.toml\njaxmbd verify study.toml --out results/first.zarr",
    )
    add_study(parser)


def _run(options: argparse.Namespace, says: Says) -> int:
    store = store_of(options)
    if not store.exists():
        raise ValueError(f"there is no {store} to verify; choose it with --out")
    shown = not says.as_json and sys.stderr.isatty()
    found = study_of(options).verify(store, progress=shown)
    for damage in found:
        says.text(str(damage))
    says.text(f"{store}: {f'{len(found)} damaged files, mended' if found else 'no damage'}")
    damages = [{"text": str(x), "chunk": getattr(x, "chunk", None)} for x in found]
    says.result({"store": store, "damage": damages})
    return FINDINGS if found else FINE
