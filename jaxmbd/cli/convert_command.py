"""``jaxmbd convert``: a mechanism from one format to another."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from jaxmbd.cli.jax_setup import set_up_jax
from jaxmbd.cli.model_files import NAMES, open_model
from jaxmbd.cli.says import FINDINGS, FINE, Says, add_command

FORMATS = (".json", ".xml", ".urdf")


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "convert",
        _run,
        "convert a mechanism: JSON, MJCF, URDF",
        "Read a mechanism in one format and write it in another: jaxmbd's JSON, MuJoCo's MJCF\n"
        "(.xml), or URDF. What either format does not have is printed; the exit status is then 3.",
        "jaxmbd convert robot.urdf robot.json\njaxmbd convert zoo:rssr rssr.xml\n"
        "jaxmbd convert corner.json corner.xml --strict",
    )
    parser.add_argument("source", help=NAMES)
    parser.add_argument("target", type=Path, help=f"the new file: {', '.join(FORMATS)}")
    parser.add_argument(
        "--strict", action="store_true", help="write nothing if something would be left out"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def _run(options: argparse.Namespace, says: Says) -> int:
    set_up_jax()
    target: Path = options.target
    _check(options.source, target, options.force)
    model, told = open_model(options.source)
    if options.strict and told:
        raise ValueError(f"--strict, and of {options.source}: " + "; ".join(told))
    mech = getattr(model, "mechanism", model)
    states, shapes = _not_written(model, target)
    if options.strict and states:
        raise ValueError(f"--strict, and {target.suffix} does not have all: {states[0]}")
    lost = states + shapes
    table = _write(mech, getattr(model, "shapes", {}), target, options.strict)
    for text in told:
        says.text(f"reading {options.source}: {text}")
    if lost:
        says.text(f"not written: {', '.join(lost)}")
    if table:
        says.text(f"writing {target}:", table)
    says.text(f"{target}: {len(mech.bodies)} bodies, {len(mech.joints)} joints")
    rows = [row._asdict() for row in table]
    says.result({"file": str(target), "reading": told, "left_out": rows, "not_written": lost})
    return FINDINGS if told or rows or states else FINE


def _check(source: str, target: Path, force: bool) -> None:
    if target.suffix.lower() not in FORMATS:
        raise ValueError(f"{target}: its ending says no format; give one of {', '.join(FORMATS)}")
    if target.exists() and os.path.exists(source) and target.samefile(source):
        raise ValueError(f"{target} is the file to read; give another name")
    if target.exists() and not force:
        raise ValueError(f"{target} exists; give another name, or --force to replace it")


def _not_written(model: Any, target: Path) -> tuple[list[str], list[str]]:
    """States of an import that the file does not have, and shapes, which are pictures alone."""
    shapes = () if target.suffix.lower() == ".xml" else getattr(model, "shapes", ())
    states = [name for name in getattr(model, "states", ()) if name != "reference"]
    counts = {"states": len(states), "shapes": len(shapes)}
    first, second = ([f"{n} {what}"] if n else [] for what, n in counts.items())
    return first, second


def _write(mech: Any, shapes: Any, target: Path, strict: bool) -> Any:
    """Write the file; what is left out of it."""
    from jaxmbd.io import LeftOutTable, save, save_mjcf, save_urdf

    suffix = target.suffix.lower()
    if suffix == ".json":
        save(mech, target)
        return LeftOutTable()
    if suffix == ".xml":
        return save_mjcf(mech, target, shapes=shapes, strict=strict).left_out
    return save_urdf(mech, target, strict=strict).left_out
