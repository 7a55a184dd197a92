"""``jaxmbd corner`` and ``kinematics``: a suspension from its hardpoints, and its tables."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jaxmbd.cli.common import (
    FINE,
    NAMES,
    Printer,
    add_command,
    add_overwrite,
    limits_of,
    load_model,
    refuse_to_replace,
    set_up_jax,
    suspension_of,
    write_suspension,
)
from jaxmbd.plumbing import unknown

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
UNITS = {
    "tyre_radius": "m",
    "camber": "rad",
    "toe": "rad",
    "spring_rate": "N/m",
    "spring_preload": "N",
    "wheel_load": "N",
    "damping": "N s/m",
    "gravity": "m/s²",
    "wheelbase": "m",
    "cg_height": "m",
    "brake_share": "",
    "drive_share": "",
    "link_rate": "N/m",
    "torsion_rate": "N m/rad",
    "bending_rate": "N m/rad",
    "anti_roll_bar": "N m/rad",
    "heave_spring": "N/m",
    "heave_damping": "N s/m",
}
"""SI units of the templates' arguments that are numbers."""


def add(commands: Any) -> None:
    """The commands' arguments."""
    _add_corner(commands)
    _add_kinematics(commands)


def _add_corner(commands: Any) -> None:
    parser = add_command(
        commands,
        "corner",
        _corner,
        "a suspension corner or axle from a table of hardpoints",
        "Build a corner or an axle by a template from a table of hardpoints (CSV, workbook), and\n"
        "write its model with the roles of its parts: for jaxmbd kinematics, view, explore, …\n"
        "Without a template the templates are listed, with one alone its hardpoints and numbers.\n"
        "--example writes a table with which the template runs as it stands, to be filled in.",
        "jaxmbd corner\n"
        "jaxmbd corner double_wishbone\n"
        "jaxmbd corner double_wishbone --set spring_by=pushrod --example points.csv\n"
        "jaxmbd corner double_wishbone points.csv --set spring_by=pushrod tyre_radius='320 mm' \\\n"
        "  spring_rate='40 N/mm' --out corner.json\n"
        "jaxmbd corner macpherson points.csv --mapping mapping.toml --side left --axle \\\n"
        "  --set anti_roll_bar='15 N m/deg' --out axle.json",
    )
    parser.add_argument("template", nargs="?", help="by its name")
    parser.add_argument("points", nargs="?", metavar="TABLE", help="its hardpoints: .csv or .xlsx")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the model that is written, .json")
    parser.add_argument("--example", metavar="FILE", help="write such a table: .csv or .xlsx")
    parser.add_argument("--mapping", metavar="FILE", help="TOML: the table's names, units and axes")
    parser.add_argument("--units", help="of the table: mm (default), cm, m or in")
    parser.add_argument("--side", help="one of the mapping's sides")
    parser.add_argument("--axle", action="store_true", help="both wheels, from a template of one")
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="arguments of the template, numbers with units; masses as masses/upright='30 kg'",
    )
    add_overwrite(parser)


def _corner(options: argparse.Namespace, printer: Printer) -> int:
    if options.template is None:
        return _listed(printer)
    set_up_jax()
    from jaxmbd.io import read_hardpoints, write_hardpoints
    from jaxmbd.suspension import TEMPLATES, example_hardpoints, template_axle

    name = options.template
    if problems := unknown("template", name, TEMPLATES):
        raise ValueError(problems[0])
    make = TEMPLATES[name]
    own, of_axle = _arguments(name, options)
    mapping = {"units": options.units, "side": options.side}
    if options.example is not None:
        refuse_to_replace(options.overwrite, options.example)
        write_hardpoints(
            options.example, example_hardpoints(name, **own), options.mapping, **mapping
        )
        printer.text(f"wrote {options.example}: fill in your own, and leave out what you lack")
        printer.result({"template": name, "example": options.example})
        return FINE
    if options.points is None:
        printer.text(inspect.getdoc(make), "", _common_numbers())
        printer.result({"template": name, "text": inspect.getdoc(make)})
        return FINE
    if options.out is None or options.out.suffix != ".json":
        raise ValueError("name the model that is to be written: --out corner.json")
    refuse_to_replace(options.overwrite, options.out)
    mech, roles = make(read_hardpoints(options.points, options.mapping, **mapping), **own)
    if options.axle and not isinstance(roles, tuple):
        mech, roles = template_axle(mech, roles, **of_axle)
    return _saved(name, mech, roles if isinstance(roles, tuple) else (roles,), options.out, printer)


def _saved(name: str, mech: Any, roles: Any, out: Path, printer: Printer) -> int:
    from jaxmbd.analysis import mobility

    write_suspension(out, mech, tuple(roles), printer)
    free = int(mobility(mech).dof)
    bodies = ", ".join(mech.structure.bodies)
    printer.text(
        f"{name}, {'an axle' if len(roles) == 2 else 'a corner'} with {free} degrees "
        f"of freedom; bodies {bodies}",
        f"go on with  jaxmbd kinematics {out}  or  jaxmbd view {out}  or  jaxmbd explore {out}",
    )
    printer.result(
        {"template": name, "file": out, "wheels": len(roles), "dof": free, "bodies": bodies}
    )
    return FINE


def _listed(printer: Printer) -> int:
    """The templates by name."""
    set_up_jax()
    from jaxmbd.suspension import TEMPLATES

    texts = {n: (inspect.getdoc(f) or "").partition("\n")[0] for n, f in TEMPLATES.items()}
    width = max(map(len, texts))
    printer.text(*(f"{n:{width}}  {text}" for n, text in texts.items()))
    printer.text("", "jaxmbd corner TEMPLATE says which hardpoints and numbers one has")
    printer.result({"templates": texts})
    return FINE


def _common_numbers() -> str:
    from jaxmbd.suspension import TemplateNumbers

    return f"TemplateNumbers: {inspect.getdoc(TemplateNumbers)}"


def _arguments(template: str, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of the template and of the axle that is made of it, from ``--set``."""
    import dataclasses

    from jaxmbd.suspension import TEMPLATES, TemplateNumbers, template_axle
    from jaxmbd.variables import in_si

    own = _keywords(TEMPLATES[template])
    numbers = {f.name: f.default for f in dataclasses.fields(TemplateNumbers)}
    for_axle = _keywords(template_axle) if options.axle else {}
    known = {**for_axle, **numbers, **own}
    found: dict[str, Any] = {}
    for text in options.set:
        name, equals, value = text.partition("=")
        name, _, body = name.strip().partition("/")
        if not equals or bool(body) != (name == "masses"):
            raise ValueError(
                f"--set {text!r}: write NAME=VALUE, as spring_rate='40 N/mm' or "
                "masses/upright='30 kg'"
            )
        if name not in known and name in _keywords(template_axle):
            raise ValueError(f"--set {text!r}: {name} is of an axle; add --axle")
        if problems := unknown("argument", name, known):
            raise ValueError(f"--set {text!r}: {problems[0]}")
        if body:
            found.setdefault(name, {})[body] = in_si(value, "kg", text)
        elif value.strip().lower() == "none":
            found[name] = None
        else:
            found[name] = in_si(value, UNITS[name], text) if name in UNITS else value.strip()
    own_names = {*own, *numbers}
    return (
        {n: x for n, x in found.items() if n in own_names},
        {n: x for n, x in found.items() if n not in own_names},
    )


def _keywords(function: Any) -> Mapping[str, Any]:
    """Keyword arguments of a function with their defaults."""
    parameters: Iterable[Any] = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY}


def _add_kinematics(commands: Any) -> None:
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
        "jaxmbd kinematics axle.json --roll '-3 deg' '3 deg' --rest --gradients roll_moment\n"
        "jaxmbd kinematics axle.json --lateral '-1 kN' '1 kN'",
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
        "--gradients", nargs="+", metavar="NAME", help="columns whose derivatives are told, too"
    )
    parser.add_argument(
        "--settle", action="store_true", help="bushings come to rest; with loads they always do"
    )
    parser.add_argument(
        "--rest",
        action="store_true",
        help="of an axle: the body rises and sinks freely, at the load that it carries",
    )
    parser.add_argument("--tyre-rate", metavar="RATE", help="vertical rate of a tyre of an axle")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the whole table as CSV")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw it: png, svg, pdf")
    add_overwrite(parser)


def _kinematics(options: argparse.Namespace, printer: Printer) -> int:
    refuse_to_replace(options.overwrite, options.out, options.figure)
    set_up_jax()
    mech, roles = suspension_of(options.model, printer)
    table = _table(mech, roles if isinstance(roles, tuple) else (roles,), options)
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
    low, high = limits_of(getattr(options, event), f"--{event}") or _TRAVEL
    if options.places < 2:
        raise ValueError(f"--places {options.places}: give at least 2")
    values = np.linspace(low, high, options.places).round(15)
    wanted: dict[str, Any] = {"observe": options.observe}
    if options.gradients is not None:
        wanted["gradients"] = options.gradients
    if len(corners) == 2:
        wanted |= _of_axle(options, event)
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
            f"--{event} is of an axle, and {options.model} is a corner; make one by jaxmbd corner "
            "--axle, or jaxmbd.suspension.axle and save_with_roles"
        )
    if options.rest or options.tyre_rate is not None:
        raise ValueError("--rest and --tyre-rate are of an axle; make one by jaxmbd corner --axle")
    moved = {event: values.tolist()}
    return kinematics(mech, corners[0], **moved, **wanted, settle=options.settle)


def _of_axle(options: argparse.Namespace, event: str) -> dict[str, Any]:
    """How an axle stands."""
    from jaxmbd.variables import in_si

    found: dict[str, Any] = {}
    if options.rest:
        if event == "travel":
            raise ValueError("--rest lets the heave free, which --travel moves; leave one out")
        found["heave"] = None
    if options.tyre_rate is not None:
        found["tyre_rate"] = in_si(options.tyre_rate, "N/m", "--tyre-rate")
    return found


def report_on_suspension(options: argparse.Namespace, path: Path, printer: Printer) -> int:
    """``jaxmbd report`` of a corner or an axle."""
    set_up_jax()
    from jaxmbd.viz import suspension_report

    mech, roles = suspension_of(options.store, printer)
    more: dict[str, Any] = {}
    if options.before is not None:
        more["before"] = load_model(options.before)[0]
    if (travel := limits_of(options.travel, "--travel")) is not None:
        more["travel"] = travel
    suspension_report(
        path,
        mech,
        roles,
        settle=options.settle,
        title=options.store.removeprefix("zoo:"),
        overwrite=options.overwrite,
        **more,
    )
    printer.text(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")
    printer.result({"report": path, "bytes": path.stat().st_size})
    return FINE
