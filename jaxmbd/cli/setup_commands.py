"""``jaxmbd reach``, ``setup`` and ``optimum``: how far a corner goes, and how it gets there."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxmbd.cli.common import (
    FINDINGS,
    FINE,
    NAMES,
    Printer,
    add_command,
    add_overwrite,
    assigned,
    quantity,
    refuse_to_replace,
    set_up_jax,
    suspension_of,
    write_suspension,
)
from jaxmbd.plumbing import refuse, text_table, unknown

_OF_CORNER = ("travel", "steer")
_OF_AXLE = ("heave", "roll", "left", "right", "steer")
_LIKELY = {"deg": 0.1, "mm": 1.0}
"""Tolerances of targets in shown units, where none is given."""


def add(commands: Any) -> None:
    """The commands' arguments."""
    _add_reach(commands)
    _add_setup(commands)
    _add_optimum(commands)


def _add_reach(commands: Any) -> None:
    parser = add_command(
        commands,
        "reach",
        _reach,
        "how far a wheel, a rack or an axle can be moved",
        "Limits of wheel travel and steering of a corner, of heave, roll and single wheels of an\n"
        "axle, from where it is drawn, with the joints whose loops end it. Stops and bushings do\n"
        "not end it.",
        "jaxmbd reach corner.json\n"
        "jaxmbd reach corner.json --of steer --held travel='30 mm' --out reach.csv\n"
        "jaxmbd reach axle.json --of roll heave",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument(
        "--of",
        nargs="+",
        metavar="MOTION",
        help="travel, steer; of an axle heave, roll, left, right, steer (default: all)",
    )
    parser.add_argument(
        "--held", nargs="+", default=[], metavar="MOTION=VALUE", help="where others are held"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write them as CSV")
    add_overwrite(parser)


def _reach(options: argparse.Namespace, printer: Printer) -> int:
    refuse_to_replace(options.overwrite, options.out)
    set_up_jax()
    from jaxmbd.suspension import reach, write_csv
    from jaxmbd.variables import shown

    mech, roles = suspension_of(options.model, printer)
    of_corner = not isinstance(roles, tuple)
    known = _OF_CORNER if of_corner else _OF_AXLE
    held = assigned(options.held, "--held", "MOTION=VALUE, as steer='10 mm'")
    refuse("--held", [text for n in held for text in unknown("motion", n, known)])
    values = {n: quantity(x, f"--held {n}") for n, x in held.items()}
    steered = (roles if of_corner else roles[0]).slides(mech)
    every = [n for n in known if n not in values and (n != "steer" or steered)]
    found = [reach(mech, roles, of=n, **values) for n in options.of or every]
    printer.text(*found)
    rows = []
    for x in found:
        unit, factor = shown(x.unit)
        joints = [" ".join(names) for names in x.limited_by]
        rows.append([x.of, factor * x.low, factor * x.high, unit, *joints])
    if options.out is not None:
        head = ["motion", "low", "high", "unit", "low limited by", "high limited by"]
        write_csv(options.out, head, rows)
        printer.text(f"wrote {options.out}")
    printer.result({x.of: {"low": x.low, "high": x.high, "unit": x.unit} for x in found})
    return FINE


def _add_setup(commands: Any) -> None:
    parser = add_command(
        commands,
        "setup",
        _setup,
        "changes of track rods, spring seats and shims that meet targets",
        "Find the changes of adjusters by which camber, toe, ride height and loads are as wanted.\n"
        "An adjuster is the name of a rod or spring, whose length is changed, or BODY:POINT:x, a\n"
        "shim that moves a point of one body along x, y or z (or BODY:POINT:FROM:TO, along the\n"
        "line of two points); =PITCH is the change by one turn or one shim. --rest lets the\n"
        "wheels come to rest under springs and loads: wheel_travel (of an axle heave) is then the\n"
        "rise of the wheels, by which the ride height sinks.",
        "jaxmbd setup corner.json --target camber='-2.5 deg' toe='0.1 deg' \\\n"
        "  --by tierod='1.5 mm' upright:upper_arm_ball:y='1 mm' --out set.json\n"
        "jaxmbd setup corner.json --rest --target wheel_travel='-10 mm' --by spring='2 mm'",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument("--target", nargs="+", required=True, metavar="COLUMN=VALUE")
    parser.add_argument("--by", nargs="+", required=True, metavar="ADJUSTER[=PITCH]")
    parser.add_argument("--observe", nargs="+", default=[], metavar="NAME", help="told as well")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--travel", default="0 mm", metavar="VALUE", help="of the wheels (0 mm)")
    place.add_argument("--rest", action="store_true", help="the wheels come to rest")
    parser.add_argument("--steer", default="0 mm", metavar="VALUE", help="of the rack (0 mm)")
    parser.add_argument("--settle", action="store_true", help="bushings come to rest")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the model set up, .json")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the changes as CSV")
    add_overwrite(parser)


def _setup(options: argparse.Namespace, printer: Printer) -> int:
    refuse_to_replace(options.overwrite, options.out, options.table)
    set_up_jax()
    from jaxmbd.suspension import AXLE_CHARACTERISTICS, CHARACTERISTICS, solve_setup, write_csv
    from jaxmbd.variables import shown

    mech, roles = suspension_of(options.model, printer)
    known: Any = AXLE_CHARACTERISTICS if isinstance(roles, tuple) else CHARACTERISTICS
    targets = assigned(options.target, "--target", "COLUMN=VALUE, as toe='0.1 deg'")
    refuse("--target", [text for n in targets for text in unknown("column", n, known)])
    found = solve_setup(
        mech,
        roles,
        targets={n: _with_unit(x, known[n].unit, f"--target {n}") for n, x in targets.items()},
        by=_adjusters(options.by),
        observe=options.observe,
        travel=None if options.rest else quantity(options.travel, "--travel"),
        steer=quantity(options.steer, "--steer"),
        settle=True if options.settle else None,
    )
    printer.text(found)
    rows: list[list[Any]] = []
    for n, x in found.changes.items():
        rows.append(["adjuster", n, "mm", 0.0, 1e3 * x, "", found.turns.get(n, "")])
    for n, x in found.after.items():
        unit, factor = shown(found.about[n].unit)
        wanted = factor * found.targets[n] if n in found.targets else ""
        rows.append(["column", n, unit, factor * found.before[n], factor * x, wanted, ""])
    if options.table is not None:
        write_csv(
            options.table, ["kind", "name", "unit", "before", "after", "wanted", "turns"], rows
        )
        printer.text(f"wrote {options.table}")
    if options.out is not None:
        write_suspension(options.out, found.mech, found.corners, printer)
    printer.result({"changes": found.changes, "turns": found.turns, "after": found.after})
    return FINE


def _with_unit(text: str, unit: str, what: str) -> float:
    """A value in SI units; its unit is needed, since 0.1 of an angle is rarely meant in rad."""
    from jaxmbd.variables import in_si

    if unit:
        quantity(text, what)
    return in_si(text, unit, what)


def _adjusters(texts: list[str]) -> dict[str, Any]:
    """Adjusters by how they were written, without their pitch."""
    from jaxmbd.suspension import AdjustableLength, Shim
    from jaxmbd.variables import in_si

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, pitch = (part.strip() for part in text.partition("="))
        per_turn = in_si(pitch, "m", f"--by {text!r}") if equals else None
        parts = name.split(":")
        if len(parts) == 1:
            found[name] = AdjustableLength(name, per_turn)
        elif len(parts) == 3 and parts[2] in ("x", "y", "z"):
            along = tuple(float(axis == parts[2]) for axis in "xyz")
            found[name] = Shim(parts[0], parts[1], along, per_turn)
        elif len(parts) == 4:
            found[name] = Shim(parts[0], parts[1], (parts[2], parts[3]), per_turn)
        else:
            raise ValueError(
                f"--by {text!r}: give a rod or spring, as tierod='1.5 mm', or a shim BODY:POINT:y, "
                "as upright:upper_arm_ball:y"
            )
    return found


def _add_optimum(commands: Any) -> None:
    parser = add_command(
        commands,
        "optimum",
        _optimum,
        "hardpoints and other numbers by which curves come nearest to wanted ones",
        "Move hardpoints within limits so that columns over travel, steering or roll come as near\n"
        "as they can to those of a table: the CSV that jaxmbd kinematics writes, with the wanted\n"
        "values in it, and without the columns that do not matter. Empty cells are not wanted.\n"
        "The sum of squares of (column - wanted)/tolerance is least; tolerances are 0.1 of an\n"
        "angle in deg and 1 of all else in the table's units, unless given. Of an axle both sides\n"
        "stay mirror images.",
        "jaxmbd kinematics corner.json --observe toe camber --out wanted.csv  # and edit it\n"
        "jaxmbd optimum corner.json wanted.csv --vary tierod_inboard='10 mm' \\\n"
        "  tierod_outboard/z='5 mm' --tolerance toe='0.02 deg' camber='0.2 deg' \\\n"
        "  --out better.json --table curves.csv\n"
        "jaxmbd report better.json --before corner.json",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument("wanted", metavar="TABLE", help="of the wanted curves, .csv")
    parser.add_argument(
        "--vary",
        nargs="+",
        required=True,
        metavar="NAME=WIDTH",
        help="hardpoints, coordinates of them or paths of any numbers, with wildcards, and how far "
        "to either side they may move",
    )
    parser.add_argument("--tolerance", nargs="+", default=[], metavar="COLUMN=VALUE")
    parser.add_argument("--steps", type=int, default=100, metavar="N", help="at most (100)")
    parser.add_argument("--settle", action="store_true", help="bushings come to rest")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the better model, .json")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the curves as CSV")
    add_overwrite(parser)


class _Wanted(NamedTuple):
    """Wanted curves.

    Attributes:
        axis: what moves.
        x: where (n,), SI.
        columns: name to wanted values (n,), SI, NaN where none.
        factors: name to its unit as in the table's titles [SI/unit].
        units: name to that unit.
        si: name to its SI unit.
    """

    axis: str
    x: Any
    columns: dict[str, Any]
    factors: dict[str, float]
    units: dict[str, str]
    si: dict[str, str]


def _optimum(options: argparse.Namespace, printer: Printer) -> int:
    refuse_to_replace(options.overwrite, options.out, options.table)
    set_up_jax()
    import jax.numpy as jnp
    import numpy as np

    from jaxmbd.design import Within, minimize
    from jaxmbd.suspension import write_csv
    from jaxmbd.variables import mirrored

    mech, roles = suspension_of(options.model, printer)
    wanted = read_wanted(options.wanted, isinstance(roles, tuple))
    sweep = _sweep_of(mech, roles, wanted, options.settle)
    widths = assigned(options.vary, "--vary", "NAME=WIDTH, as tierod_inboard='10 mm'")
    vary = {_path(mech, n): x for n, x in widths.items()}
    for path, x in vary.items():
        if path.startswith("points/"):
            quantity(x, f"--vary {path}")
    scales = _tolerances(options.tolerance, wanted)
    asked = {n: np.isfinite(y) for n, y in wanted.columns.items()}

    def residuals(seen: Any) -> Any:
        parts = [(seen[n][m] - wanted.columns[n][m]) / scales[n] for n, m in asked.items()]
        return jnp.concatenate(parts)

    def curves(mech: Any) -> Any:
        seen = sweep(mech)
        return {n: seen[n] for n in wanted.columns}

    of_axle = isinstance(roles, tuple)
    found = minimize(
        residuals,
        mirrored(mech) if of_axle else mech,
        {path: Within(x) for path, x in vary.items()},
        observe=curves if of_axle else sweep,
        method="least-squares",
        steps=options.steps,
    )
    printer.text(found, "")
    before, after = (
        {n: np.asarray(y) for n, y in sweep(m).items()} for m in (mech, found.mechanism)
    )
    rows, off = [], {}
    for n, m in asked.items():
        ends = [
            float(np.sqrt(np.mean(((y[n] - wanted.columns[n])[m] / wanted.factors[n]) ** 2)))
            for y in (before, after)
        ]
        off[n] = ends
        rows.append([n, *(f"{x:.4g}" for x in ends), wanted.units[n]])
    head = ["off the wanted curve (rms)", "before", "after", ""]
    printer.text(text_table(head, rows, left=(0,)))
    if options.table is not None:
        titles = [f"{wanted.axis} [{wanted.units[wanted.axis]}]"]
        series = [wanted.x / wanted.factors[wanted.axis]]
        for n, y in wanted.columns.items():
            for word, z in (("wanted", y), ("before", before[n]), ("after", after[n])):
                titles.append(f"{n} {word} [{wanted.units[n]}]")
                series.append(z / wanted.factors[n])
        write_csv(options.table, titles, np.stack(series, axis=1).tolist())
        printer.text(f"wrote {options.table}")
    if options.out is not None:
        write_suspension(options.out, found.mechanism, roles, printer)
    printer.result({"status": found.status, "rms": off, "values": found.values})
    return FINE if found.status == "optimal" else FINDINGS


def _path(mech: Any, name: str) -> str:
    """The path of a number; names of hardpoints need no ``points/``."""
    from jaxmbd.variables import find_variables

    kinds = ("points/", "bodies/", "joints/", "forces/", "drives/")
    path = name if name.startswith(kinds) else f"points/{name}"
    if not find_variables(mech, path):
        raise ValueError(f"--vary {name}: there is no such hardpoint or number")
    return path


def _tolerances(texts: list[str], wanted: _Wanted) -> dict[str, float]:
    """What counts as one of each column [SI]."""
    given = assigned(texts, "--tolerance", "COLUMN=VALUE, as toe='0.05 deg'")
    refuse("--tolerance", [t for n in given for t in unknown("column", n, wanted.columns)])
    found = {n: _LIKELY.get(wanted.units[n], 1.0) * wanted.factors[n] for n in wanted.columns}
    for n, text in given.items():
        found[n] = _with_unit(text, wanted.si[n], f"--tolerance {n}")
        if not found[n] > 0.0:
            raise ValueError(f"--tolerance {n}={text!r}; give a positive value")
    return found


def read_wanted(path: str, of_axle: bool) -> _Wanted:
    """The wanted curves of a table as `Kinematics.to_csv` writes it.

    Raises:
        ValueError: lists all that is wrong with it.
    """
    import numpy as np

    from jaxmbd.suspension import AXLE_CHARACTERISTICS, CHARACTERISTICS
    from jaxmbd.variables import in_si

    names, units, rows = _titled_rows(path)
    axis = names[0]
    problems = unknown("motion", axis, _OF_AXLE if of_axle else _OF_CORNER)
    known: Mapping[str, Any] = AXLE_CHARACTERISTICS if of_axle else CHARACTERISTICS
    in_units = {axis: "rad" if axis == "roll" or units[0] in ("deg", "rad") else "m"}
    for n in names[1:]:
        base = n.removesuffix("_gradient")
        problems += unknown("column", base, known)
        if base in known:
            per = f"/{in_units[axis]}" if n != base else ""
            in_units[n] = f"{known[base].unit or ('1' if per else '')}{per}"
    refuse(path, problems)
    factors = {
        n: in_si(f"1 {u}", in_units[n], f"{path}, {n}") if u else 1.0
        for n, u in zip(names, units, strict=True)
    }
    values = np.array([[_cell(path, x) for x in row] for row in rows]).T
    series = {n: factors[n] * y for n, y in zip(names, values, strict=True)}
    x = series.pop(axis)
    if not np.all(np.isfinite(x)):
        raise ValueError(f"{path}: {axis} has an empty cell")
    empty = [n for n, y in series.items() if not np.any(np.isfinite(y))]
    refuse(path, [f"column {n} has no value; take it out" for n in empty])
    return _Wanted(axis, x, series, factors, dict(zip(names, units, strict=True)), in_units)


def _titled_rows(path: str) -> tuple[tuple[str, ...], tuple[str, ...], list[list[str]]]:
    """Names and units of the titles ``NAME [UNIT]`` of a table, and its rows of as many cells."""
    import csv
    import re

    with open(path, encoding="utf-8-sig", newline="") as file:
        head, *rows = [row for row in csv.reader(file) if any(x.strip() for x in row)] or [[]]
    if len(head) < 2 or not rows:
        raise ValueError(f"{path}: give a row of titles, 'travel [mm]', 'toe [deg]', … and values")
    titles = [re.fullmatch(r"\s*(\w+)\s*(?:\[(.*)\])?\s*", x) for x in head]
    problems = [
        f"title {x!r} is no NAME [UNIT]" for x, m in zip(head, titles, strict=True) if not m
    ]
    problems += [
        f"row {i} has {len(row)} values, the titles {len(head)}"
        for i, row in enumerate(rows, start=2)
        if len(row) != len(head)
    ]
    refuse(path, problems)
    names, units = zip(*((m[1], (m[2] or "").strip()) for m in titles if m), strict=True)
    return names, units, rows


def _cell(path: str, text: str) -> float:
    try:
        return float(text) if text.strip() else float("nan")
    except ValueError:
        raise ValueError(f"{path}: {text!r} is no number; leave a cell empty for none") from None


def _sweep_of(mech: Any, roles: Any, wanted: _Wanted, settle: bool) -> Any:
    """The experiment whose columns are wanted."""
    from jaxmbd.suspension import axle_sweep, kinematics_sweep

    slopes = [n.removesuffix("_gradient") for n in wanted.columns if n.endswith("_gradient")]
    names = [n for n in wanted.columns if not n.endswith("_gradient")]
    observe = list(dict.fromkeys([*names, *slopes]))
    moved: dict[str, Any] = {wanted.axis: wanted.x.tolist()}
    if isinstance(roles, tuple):
        sweep = axle_sweep(
            roles, **moved, observe=observe, gradients=slopes, settle=True if settle else None
        )
    else:
        sweep = kinematics_sweep(roles, **moved, observe=observe, gradients=slopes, settle=settle)
    sweep.check(mech)
    return sweep
