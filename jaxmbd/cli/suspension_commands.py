"""``jaxmbd kinematics``: tables of a suspension corner or an axle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jaxmbd.cli.common import (
    FINE,
    NAMES,
    Printer,
    add_command,
    corners_of,
    limits_of,
    load_model,
    set_up_jax,
)

_PLACES = 13
_TRAVEL = (-0.06, 0.06)
EVENTS = {
    "travel": "wheel travel; of an axle parallel travel",
    "opposite": "opposite travel of an axle, of the left wheel",
    "roll": "roll of an axle's body on the road",
    "steer": "travel of the rack",
    "lateral": "side force on both contacts of an axle",
    "braking": "braking force on both contacts of an axle",
}


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "kinematics",
        _kinematics,
        "tables of a suspension corner or an axle: travel, roll, steering, loads",
        "Characteristics of a corner or an axle over an event, by default wheel travel of ±60 mm.\n"
        "A model file holds the roles of its parts where jaxmbd.suspension.save_with_roles wrote\n"
        "it: of one corner, or of both of an axle. Names as those of the zoo need no roles.",
        "jaxmbd kinematics zoo:multi_link --out bump.csv\n"
        "jaxmbd kinematics corner.json --steer '-40 mm' '40 mm' --observe toe camber\n"
        "jaxmbd kinematics axle.json --roll '-3 deg' '3 deg' --figure roll.png\n"
        "jaxmbd kinematics axle.json --lateral '-1 kN' '1 kN' --settle",
    )
    parser.add_argument("model", help=NAMES)
    event = parser.add_mutually_exclusive_group()
    for name, text in EVENTS.items():
        event.add_argument(f"--{name}", nargs=2, metavar=("FROM", "TO"), help=f"{text}, with units")
    parser.add_argument(
        "--places", type=int, default=_PLACES, metavar="N", help="of the axis (default %(default)d)"
    )
    parser.add_argument("--observe", nargs="+", metavar="NAME", help="columns; by default all")
    parser.add_argument(
        "--settle", action="store_true", help="bushings come to rest; with loads they always do"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the whole table as CSV")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw it: png, svg, pdf")


def _kinematics(options: argparse.Namespace, printer: Printer) -> int:
    set_up_jax()
    mech, warned = load_model(options.model)
    for text in warned:
        printer.text(f"warning: {text}")
    corners = corners_of(options.model, mech)
    if not corners:
        raise ValueError(
            f"{options.model} does not say what its parts are; write it with "
            "jaxmbd.suspension.save_with_roles(mech, path, Corner(…))"
        )
    table = _table(mech, corners, options)
    printer.text(table)
    if options.out is not None:
        table.to_csv(options.out)
        printer.text(f"wrote {options.out}")
    if options.figure is not None:
        from jaxmbd.viz import kinematics_figure

        kinematics_figure(table, path=options.figure)
        printer.text(f"wrote {options.figure}")
    columns = {n: y.tolist() for n, y in table.columns.items()}
    units = {n: table.about[n].unit for n in columns}
    axis = {"axis": table.axis, "unit": table.unit, "x": table.x.tolist()}
    printer.result(axis | {"columns": columns, "units": units})
    return FINE


def _table(mech: Any, corners: tuple[Any, ...], options: argparse.Namespace) -> Any:
    """The table that was asked for."""
    import numpy as np

    from jaxmbd.suspension import axle_kinematics, kinematics

    asked = [n for n in EVENTS if getattr(options, n) is not None]
    event = asked[0] if asked else "travel"
    low, high = limits_of(getattr(options, event)) or _TRAVEL
    if options.places < 2:
        raise ValueError(f"--places {options.places}: give at least 2")
    values = np.linspace(low, high, options.places).round(15)
    wanted: dict[str, Any] = {"observe": options.observe}
    if len(corners) == 2:
        if event == "travel":
            moved = {"heave": values}
        elif event == "opposite":
            moved = {"left": values, "right": -values}
        else:
            moved = {event: values}
        settle = True if options.settle else None
        return axle_kinematics(mech, corners, **moved, **wanted, settle=settle)
    if event not in ("travel", "steer"):
        raise ValueError(
            f"--{event} is of an axle, and {options.model} is a corner; make one by "
            "jaxmbd.suspension.axle, and write it with save_with_roles"
        )
    moved = {event: values.tolist()}
    return kinematics(mech, corners[0], **moved, **wanted, settle=options.settle)
