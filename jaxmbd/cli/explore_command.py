"""``jaxmbd explore``: a page with sliders on a mechanism's numbers, live curves and its picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jaxmbd.cli.jax_setup import set_up_jax
from jaxmbd.cli.model_files import NAMES, limits_of, open_model
from jaxmbd.cli.says import FINE, Says, add_command


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "explore",
        _run,
        "a page with sliders, live curves and arrows that show what makes them better",
        "Open a page in the browser: sliders on hardpoints and rates, curves that follow them,\n"
        "the mechanism in three dimensions, and arrows on its hardpoints that show which way the\n"
        "chosen curve becomes better. Variants are kept for comparison; the design can be\n"
        "exported. Ctrl-C ends it.",
        "jaxmbd explore zoo:multi_link\n"
        "jaxmbd explore zoo:four_bar --over A --range '-40 deg' '80 deg'\n"
        "jaxmbd explore zoo:rssr --observe rocker coupler:B\n"
        "jaxmbd explore corner.json --observe toe camber --vary 'points/tierod_*'\n"
        "jaxmbd explore zoo:double_pendulum --time 2",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument(
        "--over",
        metavar="JOINT",
        help="the joint that is moved (default: the wheel travel of a corner, or the first joint)",
    )
    parser.add_argument(
        "--range",
        nargs=2,
        metavar=("FROM", "TO"),
        help="of its coordinate or the travel, with units as '-40 deg' '30 mm' (default: as far "
        "as the loops close)",
    )
    parser.add_argument(
        "--time", type=float, metavar="SECONDS", help="curves of a simulation over time instead"
    )
    parser.add_argument(
        "--observe",
        nargs="+",
        metavar="NAME",
        help="the curves: characteristics of a corner, joints, or points of bodies as BODY:POINT",
    )
    parser.add_argument(
        "--vary",
        nargs="+",
        metavar="PATTERN",
        help="the numbers that may move, as 'points/*' (default: points, masses, force elements)",
    )
    parser.add_argument("--port", type=int, default=8080, help="of the page (default: 8080)")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address that it is served at; 0.0.0.0 shows it to the whole network",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address only")


def _run(options: argparse.Namespace, says: Says) -> int:
    set_up_jax()
    from jaxmbd.observe import Sweep
    from jaxmbd.viz import explore, held_text

    model, warned = open_model(options.model)
    for text in warned:
        says.text(f"warning: {text}")
    says.note("compiling the curves; it takes some seconds the first time")
    name = Path(options.model.removeprefix("zoo:")).stem
    explorer = explore(
        model,
        _experiment(model, options),
        options.vary,
        title=name,
        host=options.host,
        port=options.port,
        browser=not options.no_browser,
    )
    live = explorer.design.live
    if isinstance(live.experiment, Sweep):
        says.text(held_text(explorer.design.observed(), live.experiment))
    says.text(f"{name} at {explorer.url}; Ctrl-C ends it")
    says.result({"model": name, "url": explorer.url})
    explorer.wait()
    return FINE


def _experiment(model: Any, options: argparse.Namespace) -> Any:
    """What was asked for; None for what is usual."""
    from jaxmbd.viz import undriven, usual_experiment, usual_motion

    mech = getattr(model, "mechanism", model)
    free = undriven(mech) if mech is model else mech
    if options.time is not None:
        if options.over or options.range:
            raise ValueError("--time is of a simulation: leave --over and --range out")
        return usual_motion(mech, options.time, options.observe)
    if not (options.over or options.range or options.observe):
        return None
    return usual_experiment(free, options.over, limits_of(options.range), options.observe)
