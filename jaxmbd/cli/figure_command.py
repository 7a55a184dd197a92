"""``jaxmbd figure``: a kinematic diagram for a report, or a DXF drawing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jaxmbd.cli.common import (
    FINE,
    NAMES,
    Printer,
    add_command,
    add_overwrite,
    assigned,
    corners_of,
    limits_of,
    open_model,
    quantity,
    refuse_to_replace,
    set_up_jax,
)
from jaxmbd.cli.view_commands import add_range_and_traces

_FORMATS = (".svg", ".pdf", ".png", ".dxf")


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "figure",
        _figure,
        "a kinematic diagram as SVG, PDF, PNG or DXF",
        "Draw a mechanism in a plane view with symbols of its joints and names: links, pins,\n"
        "sliders, gears, cams, springs, hatched ground. It is shown as it is drawn and closed, or\n"
        "with --at where joints are held; --trace draws paths of points as --over moves a joint.\n"
        "DXF is in full scale, each body on a layer of its own.",
        "jaxmbd figure zoo:slider_crank --at O='40 deg' --out slider_crank.svg\n"
        "jaxmbd figure zoo:four_bar --over A --trace coupler:B --out four_bar.pdf\n"
        "jaxmbd figure zoo:double_wishbone --plane=-yz --out front.png\n"
        "jaxmbd figure zoo:quick_return --out quick_return.dxf --unit mm",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument(
        "--at",
        nargs="+",
        default=[],
        metavar="JOINT=VALUE",
        help="where joints are held, with units as crank='30 deg'",
    )
    parser.add_argument(
        "--plane",
        metavar="AXES",
        help="to the right and upwards, as xz, or --plane=-yz for y to the left (default: the "
        "plane in which the mechanism moves)",
    )
    parser.add_argument("--over", metavar="JOINT", help="the joint that is moved for --trace")
    add_range_and_traces(parser)
    parser.add_argument("--no-names", action="store_true", help="write no names")
    parser.add_argument(
        "--unit", choices=("mm", "m", "in"), default="mm", help="of a .dxf (default mm)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help=f"{', '.join(_FORMATS)} (default: NAME.svg, here)"
    )
    add_overwrite(parser)


def _figure(options: argparse.Namespace, printer: Printer) -> int:
    name = Path(options.model.removeprefix("zoo:")).stem
    out: Path = options.out or Path(f"{name}.svg")
    if out.suffix not in _FORMATS:
        raise ValueError(f"--out {out}: name a {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}")
    refuse_to_replace(options.overwrite, out)
    if (options.over or options.range) and not options.trace:
        raise ValueError("--over and --range are of the paths of points: name some by --trace")
    set_up_jax()
    from jaxmbd.analysis import assemble
    from jaxmbd.viz import corner_wheel, plane_figure, write_dxf

    model, warned = open_model(options.model)
    for text in warned:
        printer.text(f"warning: {text}")
    mech = getattr(model, "mechanism", model)
    held = assigned(options.at, "--at", "JOINT=VALUE, as crank='30 deg'")
    pose = assemble(mech, known={n: quantity(x, "--at") for n, x in held.items()})
    shown: dict[str, Any] = {
        "plane": options.plane,
        "names": not options.no_names,
        "traces": options.trace,
        "along": _motion(mech, options, printer) if options.trace else None,
        "wheels": [corner_wheel(mech, x) for x in corners_of(options.model, mech)],
    }
    if out.suffix == ".dxf":
        write_dxf(out, model, pose, unit=options.unit, **shown)
    else:
        plane_figure(model, pose, out, **shown)
    printer.text(f"wrote {out}")
    printer.result({"file": out, "bytes": out.stat().st_size, "warnings": warned})
    return FINE


def _motion(mech: Any, options: argparse.Namespace, printer: Printer) -> Any:
    """The motion along which paths are drawn.

    Raises:
        ValueError: as of `usual_experiment`.
    """
    from jaxmbd.viz import held_text, undriven, usual_experiment

    free = undriven(mech)
    experiment = usual_experiment(free, options.over, limits_of(options.range))
    printer.text(held_text(free, experiment))
    return experiment.trajectory(free)
