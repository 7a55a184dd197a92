"""``jaxmbd view`` and ``explore``: a mechanism in motion, and its numbers as sliders."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from jaxmbd.cli.common import (
    FINE,
    NAMES,
    Printer,
    add_command,
    add_overwrite,
    corners_of,
    limits_of,
    open_model,
    refuse_to_replace,
    roles_of,
    set_up_jax,
)
from jaxmbd.plumbing import unknown


def add(commands: Any) -> None:
    """The commands' arguments."""
    _add_view(commands)
    _add_explore(commands)


_STEP = 1e-3
_PICTURES = (".png", ".svg", ".pdf")


def _add_view(commands: Any) -> None:
    parser = add_command(
        commands,
        "view",
        _view,
        "a mechanism and its motion, in the browser or as HTML, MP4, GIF or PNG",
        "Show a mechanism in motion. A corner goes through its wheel travel, an axle on its rig\n"
        "through parallel travel (--over roll, left, right, opposite, steer), any other mechanism\n"
        "of jaxmbd through what its first joint can do, an imported robot stands still; --over,\n"
        "--time and --state ask for something else. The page needs no network: it can be sent on.\n"
        "A picture (.png, .svg, .pdf) shows the mechanism as it is drawn and closed; with --over,\n"
        "--range or --trace at the beginning of the range, with --time at the end of that time.",
        "jaxmbd view zoo:multi_link\n"
        "jaxmbd view zoo:rssr --over crank --range '0 deg' '360 deg' --trace coupler:B\n"
        "jaxmbd view zoo:double_wishbone --time 1 --arrows reactions --speed 0.2 --out drop.html\n"
        "jaxmbd view robot.xml --state home --out robot.png\n"
        "jaxmbd view zoo:delta_robot --over shoulder_1 --out delta.mp4\n"
        "jaxmbd view axle.json --over roll --lines --out roll.html",
    )
    parser.add_argument("model", help=NAMES)
    motion = parser.add_mutually_exclusive_group()
    motion.add_argument("--over", metavar="JOINT", help="the joint that is moved, or 'travel'")
    motion.add_argument("--time", type=float, metavar="SECONDS", help="move freely, from rest")
    motion.add_argument("--still", action="store_true", help="the assembled pose only")
    parser.add_argument("--state", metavar="NAME", help="an imported model's keyframe, or start")
    add_range_and_traces(parser)
    parser.add_argument(
        "--step", type=float, default=_STEP, help="of the free motion [s] (default %(default)g)"
    )
    parser.add_argument(
        "--arrows",
        nargs="+",
        metavar="NAME",
        help="force arrows of joints or force elements; 'reactions' and 'forces' are all of them",
    )
    parser.add_argument(
        "--lines",
        action="store_true",
        help="draw instant and steering axes and the lines to the roll centre of a suspension",
    )
    parser.add_argument("--labels", action="store_true", help="write names at all hardpoints")
    parser.add_argument("--speed", type=float, default=1.0, help="of the playback (default 1)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write .html, .mp4, .gif, .png, .svg or .pdf; without it the browser shows the page",
    )
    add_overwrite(parser)


def add_range_and_traces(parser: argparse.ArgumentParser) -> None:
    """The options of a motion that is shown: how far a joint moves, and paths of points."""
    parser.add_argument(
        "--range",
        nargs=2,
        metavar=("FROM", "TO"),
        help="of the joint that is moved, with units as '-40 deg' '30 mm'",
    )
    parser.add_argument(
        "--trace",
        action="append",
        default=[],
        type=trace,
        metavar="BODY:POINT",
        help="draw the path of a named point; may be repeated",
    )


def trace(text: str) -> tuple[str, str]:
    """A body and one of its points, as ``BODY:POINT``."""
    body, colon, point = text.partition(":")
    if not (body and colon and point):
        raise argparse.ArgumentTypeError(f"{text!r} is not BODY:POINT, as upright:wheel_centre")
    return body, point


def _view(options: argparse.Namespace, printer: Printer) -> int:
    out = options.out
    refuse_to_replace(options.overwrite, out)
    if out is not None and out.suffix not in (".html", ".mp4", ".gif", *_PICTURES):
        raise ValueError(f"--out {out}: name a .html, .mp4, .gif, .png, .svg or .pdf")
    set_up_jax()
    model, warned = open_model(options.model)
    for text in warned:
        printer.text(f"warning: {text}")
    model, solution = _course(model, options, printer)
    shown = {
        "title": options.model.removeprefix("zoo:"),
        "traces": options.trace,
        "arrows": options.arrows,
        "speed": options.speed,
        "wheels": _wheels(options.model, model),
        "corners": _lined(options, model),
        "labels": options.labels,
    }
    path = _written(model, solution, out, shown, frame=0 if options.time is None else -1)
    printer.text(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")
    printer.result({"file": path, "bytes": path.stat().st_size})
    return FINE


def _course(model: Any, options: argparse.Namespace, printer: Printer) -> tuple[Any, Any]:
    """The model and its motion."""
    from jaxmbd.model import Mechanism
    from jaxmbd.suspension import AxleSweep
    from jaxmbd.viz import held_text, undriven, usual_experiment

    own = isinstance(model, Mechanism)
    start = _start(model, options.state)
    if options.time is not None:
        return model, _free_motion(model, start, options, printer)
    asked = options.over or options.range
    picture = options.out is not None and options.out.suffix in _PICTURES and not options.trace
    if not asked and (options.still or start is not None or not own or picture):
        return model, start
    model = undriven(model) if own else model
    mech = model if own else model.mechanism
    try:
        corner = _corner(options.model, mech)
        limits = limits_of(options.range)
        experiment = usual_experiment(mech, options.over, limits, corner=corner)
    except ValueError as error:
        if asked:
            raise
        printer.text(f"{error}: shown as it is assembled")
        return model, start
    printer.text(held_text(mech, experiment))
    if isinstance(experiment, AxleSweep):
        plain, model = experiment.on(mech)
        return model, plain.trajectory(model)
    return model, experiment.trajectory(mech)


def _start(model: Any, name: str | None) -> Any:
    """The coordinates that were asked for, or None: those that assembly finds."""
    if name is None:
        return None

    states = getattr(model, "states", {})
    if problems := unknown("state", name, states):
        raise ValueError(problems[0])
    return states[name].q


def _free_motion(model: Any, start: Any, options: argparse.Namespace, printer: Printer) -> Any:
    """The motion from rest; what it lacks at its end is told."""
    from jaxmbd.analysis import Status, assemble, simulate

    mech = getattr(model, "mechanism", model)
    start = assemble(mech, guess=start).q
    steps = max(1, round(options.time / options.step))
    every = max(1, int(options.speed / (60.0 * options.step)))
    steps = -(-steps // every) * every
    motion = simulate(
        mech, start, steps=steps, dt=options.step, save_every=every, method="rk4", throw=False
    )
    if (status := Status(int(motion.status))) != Status.OK:
        printer.text(
            f"warning: the motion is {status.name} from {float(motion.failed_at):.4g} s on, and is "
            "shown until then; a smaller --step may help"
        )
    return motion


def _lined(options: argparse.Namespace, model: Any) -> tuple[Any, ...]:
    """The roles of a suspension whose lines are drawn."""
    if not options.lines:
        return ()
    return roles_of(options.model, getattr(model, "mechanism", model))


def _wheels(name: str, model: Any) -> list[Any]:
    """The wheels of a corner or an axle."""
    from jaxmbd.viz import corner_wheel

    mech = getattr(model, "mechanism", model)
    return [corner_wheel(mech, corner) for corner in corners_of(name, mech)]


def _corner(name: str, mech: Any) -> Any:
    """The roles of the corner in a model, of an axle those of both wheels, or None."""
    found = corners_of(name, mech)
    return found[0] if len(found) == 1 else found or None


def _written(
    model: Any, solution: Any, out: Path | None, shown: dict[str, Any], frame: int
) -> Path:
    """The file, or the page that the browser shows; of a picture it is that frame."""
    from jaxmbd.viz import animation, movie, page, picture

    if out is None:
        return page(model, solution, **shown).open()
    if out.suffix == ".html":
        return animation(out, model, solution, **shown)
    if out.suffix in _PICTURES:
        picture(model, solution, out, frame=frame, **shown)
        return out
    return movie(out, model, solution, progress=_counted, **shown)


def _counted(done: int, count: int) -> None:
    """The progress of a film, where somebody looks at it."""
    if sys.stderr.isatty():
        print(f"\r{done} of {count} frames", end="\n" if done == count else "", file=sys.stderr)


def _add_explore(commands: Any) -> None:
    parser = add_command(
        commands,
        "explore",
        _explore,
        "a page with sliders, live curves and arrows that show what makes them better",
        "Open a page in the browser: sliders on hardpoints and rates, curves that follow them,\n"
        "the mechanism in three dimensions, and arrows on its hardpoints that show which way the\n"
        "chosen curve becomes better. Variants are kept for comparison; the design can be\n"
        "exported. Ctrl-C ends it.",
        "jaxmbd explore zoo:multi_link\n"
        "jaxmbd explore zoo:four_bar --over A --range '-40 deg' '80 deg'\n"
        "jaxmbd explore zoo:rssr --observe rocker coupler:B\n"
        "jaxmbd explore corner.json --observe toe camber --vary 'points/tierod_*'\n"
        "jaxmbd explore axle.json --over roll --observe axle_steer track\n"
        "jaxmbd explore zoo:double_pendulum --time 2",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument(
        "--over",
        metavar="JOINT",
        help="the joint that is moved (default: the wheel travel of a corner, or the first "
        "joint); of an axle heave, roll, left, right, opposite or steer (default: heave)",
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


def _explore(options: argparse.Namespace, printer: Printer) -> int:
    set_up_jax()
    from jaxmbd.observe import Sweep
    from jaxmbd.viz import explore, held_text

    model, warned = open_model(options.model)
    for text in warned:
        printer.text(f"warning: {text}")
    printer.note("compiling the curves; it takes some seconds the first time")
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
        printer.text(held_text(explorer.design.observed(), live.experiment))
    printer.text(f"{name} at {explorer.url}; Ctrl-C ends it")
    printer.result({"model": name, "url": explorer.url})
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
    corner = _corner(options.model, free)
    if not (options.over or options.range or options.observe or corner):
        return None
    limits = limits_of(options.range)
    return usual_experiment(free, options.over, limits, options.observe, corner=corner)
