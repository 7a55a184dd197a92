"""``jaxmbd soften``, ``compliance`` and ``loads``: bushings, elastic tables, loads of members."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import Any

from jaxmbd.cli.common import (
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
from jaxmbd.plumbing import unknown

_EXAMPLE = {
    "case": ("rest", "brake 1 g", "turn 1 g", "kerb"),
    "vertical [N]": (4000.0, 5200.0, 6000.0, 4000.0),
    "braking [N]": (0.0, 5200.0, 0.0, 0.0),
    "lateral [N]": (0.0, 0.0, 6000.0, 0.0),
    "aligning [N m]": (0.0, 0.0, 120.0, 0.0),
    "centre_x [N]": (0.0, 0.0, 0.0, -8000.0),
}


def add(commands: Any) -> None:
    """The commands' arguments."""
    _add_soften(commands)
    _add_compliance(commands)
    _add_loads(commands)


def _add_soften(commands: Any) -> None:
    parser = add_command(
        commands,
        "soften",
        _soften,
        "joints of a corner or an axle become bushings",
        "Replace joints by springs along what they hold: a rate for forces (N/m, N/mm) and, where\n"
        "the joint holds angles, one for moments (N m/rad, N m/deg). All commands take the model\n"
        "that is written; with --settle they let it come to rest.\n"
        "Six rates are those of a bushing at the joint's point, along x, y, z and about them; of\n"
        "several bushings in place of a joint JOINT:POINT says where each is.\n"
        "--wheel-load preloads the springs so that the car stands as drawn on its bushings, too.",
        "jaxmbd soften corner.json lower_arm='10 kN/mm, 3 kN m/deg' upper_arm_ball='20 kN/mm' \\\n"
        "  --out soft.json\n"
        "jaxmbd soften axle.json 'left_lower_arm=10 kN/mm, 3 kN m/deg' \\\n"
        "  'right_lower_arm=10 kN/mm, 3 kN m/deg' --wheel-load '4 kN' --out soft.json\n"
        "jaxmbd soften corner.json --out soft.json \\\n"
        "  lower_arm:lower_arm_front='1 kN/mm, 8 kN/mm, 8 kN/mm, 1 N m/deg, 2 N m/deg, 2 N m/deg'",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument("joints", nargs="+", metavar="JOINT[:POINT]=RATES")
    parser.add_argument("--wheel-load", metavar="FORCE", help="on each wheel, carried as drawn")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the model, .json")
    add_overwrite(parser)


def _soften(options: argparse.Namespace, printer: Printer) -> int:
    refuse_to_replace(options.overwrite, options.out)
    set_up_jax()
    from jaxmbd.model import soften
    from jaxmbd.suspension import preloaded
    from jaxmbd.variables import in_si

    mech, roles = suspension_of(options.model, printer)
    rates = assigned(options.joints, "soften", "JOINT=RATES, as lower_arm='10 kN/mm, 3 kN m/deg'")
    found, bushings = {}, {}
    for name, text in rates.items():
        joint, colon, point = name.partition(":")
        if colon or text.count(",") == 5:
            bushings[name], found[name] = _bushing(mech, joint, point, text)
        else:
            found[name] = _rates(mech, joint, text)
    joints = list(dict.fromkeys(name.partition(":")[0] for name in found))
    if both := [n for n in joints if n in rates and any(x.startswith(f"{n}:") for x in rates)]:
        raise ValueError(f"{both[0]} is given with points and without; name the point of each")
    for joint in joints:
        own = {n.replace(":", "_"): x for n, x in bushings.items() if n.partition(":")[0] == joint}
        mech = soften(mech, joint, 1.0 if own else found[joint])
        if own:
            mech = mech.replace(forces={joint: None, **own})
    if options.wheel_load is not None:
        load = in_si(options.wheel_load, "N", "--wheel-load")
        mech = preloaded(mech, roles, load, settle=True)
    write_suspension(options.out, mech, roles, printer)
    printer.result({"file": options.out, "rates": found})
    return FINE


def _bushing(mech: Any, joint: str, point: str, text: str) -> tuple[Any, list[float]]:
    """A bushing of six rates in place of a joint, and the rates [N·m/rad; N/m]."""
    from jaxmbd.model import Bushing

    problems = unknown("joint", joint, [e.name for e in mech.structure.joints])
    problems += unknown("point", point, mech.structure.points) if point else []
    if problems:
        raise ValueError(problems[0])
    parts = [_rate(part.strip()) for part in text.split(",")]
    if [kind for kind, _ in parts] != ["force"] * 3 + ["moment"] * 3:
        raise ValueError(
            f"{joint}={text!r}: a bushing has six rates: along x, y, z in N/m or N/mm, then about "
            "x, y, z in N m/rad or N m/deg"
        )
    old, rates = mech.joints[joint], [rate for _, rate in parts]
    at = point or old.points.get("at")
    if at is None:
        raise ValueError(
            f"{joint} is a {type(old).__name__}: it has two ends; give one rate in N/mm"
        )
    stiffness = [*rates[3:], *rates[:3]]
    return Bushing(old.a, old.b, at, stiffness), stiffness


def _rates(mech: Any, joint: str, text: str) -> tuple[float, float]:
    """Rates of a joint [N m/rad, N/m]."""
    if problems := unknown("joint", joint, [e.name for e in mech.structure.joints]):
        raise ValueError(problems[0])
    found: dict[str, float] = {}
    for part in text.split(","):
        name, rate = _rate(part.strip())
        if not name or name in found:
            raise ValueError(
                f"{joint}={text!r}: give one rate in N/m or N/mm, and where the joint holds angles "
                "one in N m/rad or N m/deg, '10 kN/mm, 3 kN m/deg'"
            )
        found[name] = rate
    held = {*mech.joints[joint].rows}
    if lacking := held - found.keys():
        units = {"force": "N/mm", "moment": "N m/deg"}
        raise ValueError(
            f"{joint}={text!r}: it holds {' and '.join(sorted(held))}s; add a rate in "
            f"{units[lacking.pop()]}"
        )
    return found.get("moment", 0.0), found["force"]


def _rate(text: str) -> tuple[str, float]:
    """Whether a rate is one for forces or for moments, and its value in SI units."""
    from jaxmbd.variables import in_si, parsed

    if not parsed(text, "a rate").unitless:
        for name, unit in (("force", "N/m"), ("moment", "N m/rad")):
            with suppress(ValueError):
                return name, in_si(text, unit)
    return "", 0.0


def _add_place(parser: argparse.ArgumentParser) -> None:
    """Where the wheels are."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--travel", default="0 mm", metavar="VALUE", help="at which the wheels are held (0 mm)"
    )
    place.add_argument(
        "--rest", action="store_true", help="springs carry the wheels by their rates"
    )
    parser.add_argument("--steer", default="0 mm", metavar="VALUE", help="of the rack (0 mm)")


def _place(options: argparse.Namespace) -> dict[str, Any]:
    travel = None if options.rest else quantity(options.travel, "--travel")
    return {"travel": travel, "steer": quantity(options.steer, "--steer")}


def _add_compliance(commands: Any) -> None:
    parser = add_command(
        commands,
        "compliance",
        _compliance,
        "how a wheel or an axle moves under small loads",
        "The elastic table: steer, camber, displacements per load on the wheels at one place.\n"
        "What is held is in its heading: by default the wheels' heights and the rack. Bushings\n"
        "are those of the model; jaxmbd soften makes some.",
        "jaxmbd compliance soft.json --out elastic.csv\n"
        "jaxmbd compliance soft.json --rest --free-rack",
    )
    parser.add_argument("model", help=NAMES)
    _add_place(parser)
    parser.add_argument("--free-rack", action="store_true", help="the rack is not held")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table as CSV")
    add_overwrite(parser)


def _compliance(options: argparse.Namespace, printer: Printer) -> int:
    refuse_to_replace(options.overwrite, options.out)
    set_up_jax()
    from jaxmbd.suspension import compliance

    mech, roles = suspension_of(options.model, printer)
    place: dict[str, Any] = _place(options) | ({"steer": None} if options.free_rack else {})
    found = compliance(mech, roles, **place)
    printer.text(found)
    if options.out is not None:
        found.to_csv(options.out)
        printer.text(f"wrote {options.out}")
    coefficients = {n: x.tolist() for n, x in found.coefficients().items()}
    printer.result({"sides": found.sides, "held": found.held, "coefficients": coefficients})
    return FINE


def _add_loads(commands: Any) -> None:
    parser = add_command(
        commands,
        "loads",
        _loads,
        "forces of rods, joints, brackets, mounts and springs over load cases",
        "A table of load cases (CSV, a row for each, a column for each load on the wheel) becomes\n"
        "one of member loads. --example writes such a table, to be filled in. Loads add to those\n"
        "that the model has, as wheel_load of a template; --whole leaves that out, so that the\n"
        "cases are the whole load of the road.",
        "jaxmbd loads corner.json --example cases.csv\n"
        "jaxmbd loads corner.json cases.csv --whole --out loads.csv\n"
        "jaxmbd loads axle.json cases.csv --rest --observe left_tierod left_spring",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument("cases", nargs="?", metavar="TABLE", help="of the load cases, .csv")
    parser.add_argument("--example", metavar="FILE", help="write a table of load cases")
    _add_place(parser)
    parser.add_argument("--whole", action="store_true", help="without the model's own wheel_load")
    parser.add_argument("--observe", nargs="+", metavar="NAME", help="member loads; by default all")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the whole table as CSV")
    add_overwrite(parser)


def _loads(options: argparse.Namespace, printer: Printer) -> int:
    refuse_to_replace(options.overwrite, options.out, options.example)
    set_up_jax()
    from jaxmbd.suspension import WHEEL_LOADS, load_cases, write_csv

    if options.example is not None:
        write_csv(options.example, _EXAMPLE, zip(*_EXAMPLE.values(), strict=True))
        printer.text(
            f"wrote {options.example}; loads, of one wheel of an axle with left_ or right_ before:",
            *(f"  {n:12} {unit:4} {text}" for n, (unit, text) in WHEEL_LOADS.items()),
        )
        printer.result({"example": options.example})
        return FINE
    if options.cases is None:
        raise ValueError("name a table of load cases; --example cases.csv writes one")
    mech, roles = suspension_of(options.model, printer)
    own = [n for n in mech.forces if n in ("wheel_load", "left_wheel_load", "right_wheel_load")]
    if options.whole:
        mech = mech.replace(forces=dict.fromkeys(own))
    elif own:
        printer.text("loads add to those of the model (--whole leaves them out): " + ", ".join(own))
    table = load_cases(mech, roles, options.cases, **_place(options), observe=options.observe)
    printer.text(table)
    if options.out is not None:
        table.to_csv(options.out)
        printer.text(f"wrote {options.out}")
    loads = {n: x.tolist() for n, x in table.columns.items()}
    printer.result({"cases": table.cases, "loads": loads})
    return FINE
