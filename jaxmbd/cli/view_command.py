"""``jaxmbd view``: a mechanism and its motion, in the browser or as a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from jaxmbd.cli.jax_setup import set_up_jax
from jaxmbd.cli.model_files import NAMES, limits_of, open_model
from jaxmbd.cli.says import FINE, Says, add_command

_STEP = 1e-3
_PICTURES = (".png", ".svg", ".pdf")


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "view",
        _run,
        "a mechanism and its motion, in the browser or as HTML, MP4, GIF or PNG",
        "Show a mechanism in motion. A corner goes through its wheel travel, any other mechanism\n"
        "of jaxmbd through what its first joint can do, an imported robot stands still; --over,\n"
        "--time and --state ask for something else. The page needs no network: it can be sent on.",
        "jaxmbd view zoo:multi_link\n"
        "jaxmbd view zoo:rssr --over crank --range '0 deg' '360 deg' --trace coupler:B\n"
        "jaxmbd view zoo:double_wishbone --time 1 --arrows reactions --speed 0.2 --out drop.html\n"
        "jaxmbd view robot.xml --state home --out robot.png\n"
        "jaxmbd view zoo:delta_robot --over shoulder_1 --out delta.mp4",
    )
    parser.add_argument("model", help=NAMES)
    motion = parser.add_mutually_exclusive_group()
    motion.add_argument("--over", metavar="JOINT", help="the joint that is moved, or 'travel'")
    motion.add_argument("--time", type=float, metavar="SECONDS", help="move freely, from rest")
    motion.add_argument("--still", action="store_true", help="the assembled pose only")
    parser.add_argument("--state", metavar="NAME", help="an imported model's keyframe, or start")
    parser.add_argument(
        "--range",
        nargs=2,
        metavar=("FROM", "TO"),
        help="of the joint that is moved, with units as '-40 deg' '30 mm'",
    )
    parser.add_argument(
        "--step", type=float, default=_STEP, help="of the free motion [s] (default %(default)g)"
    )
    parser.add_argument(
        "--trace",
        action="append",
        default=[],
        type=trace,
        metavar="BODY:POINT",
        help="draw the path of a named point; may be repeated",
    )
    parser.add_argument(
        "--arrows",
        nargs="+",
        metavar="NAME",
        help="force arrows of joints or force elements; 'reactions' and 'forces' are all of them",
    )
    parser.add_argument("--speed", type=float, default=1.0, help="of the playback (default 1)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write .html, .mp4, .gif, .png, .svg or .pdf; without it the browser shows the page",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it exists")


def trace(text: str) -> tuple[str, str]:
    """A body and one of its points, as ``BODY:POINT``."""
    body, colon, point = text.partition(":")
    if not (body and colon and point):
        raise argparse.ArgumentTypeError(f"{text!r} is not BODY:POINT, as upright:wheel_centre")
    return body, point


def _run(options: argparse.Namespace, says: Says) -> int:
    out = options.out
    if out is not None and out.exists() and not options.overwrite:
        raise ValueError(f"{out} exists; choose another --out, or replace it with --overwrite")
    if out is not None and out.suffix not in (".html", ".mp4", ".gif", *_PICTURES):
        raise ValueError(f"--out {out}: name a .html, .mp4, .gif, .png, .svg or .pdf")
    set_up_jax()
    model, warned = open_model(options.model)
    for text in warned:
        says.text(f"warning: {text}")
    model, solution, wheels = _course(model, options, says)
    shown = {
        "title": options.model.removeprefix("zoo:"),
        "traces": options.trace,
        "arrows": options.arrows,
        "speed": options.speed,
        "wheels": wheels,
    }
    path = _written(model, solution, out, shown)
    says.text(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")
    says.result({"file": path, "bytes": path.stat().st_size})
    return FINE


def _course(model: Any, options: argparse.Namespace, says: Says) -> tuple[Any, Any, list[Any]]:
    """The model, its motion, and the wheel of a corner."""
    from jaxmbd.model import Mechanism
    from jaxmbd.viz import held_text, undriven, usual_experiment

    own = isinstance(model, Mechanism)
    start = _start(model, options.state)
    if options.time is not None:
        return model, _free_motion(model, start, options, says), _wheels(model)
    if options.over or options.range or (own and not options.still and start is None):
        model = undriven(model) if own else model
        mech = model if own else model.mechanism
        limits = limits_of(options.range)
        try:
            experiment = usual_experiment(mech, options.over, limits)
        except ValueError as error:
            if options.over or options.range:
                raise
            says.text(f"{error}: shown as it is assembled")
        else:
            says.text(held_text(mech, experiment))
            return model, experiment.trajectory(mech), _wheels(model)
    return model, start, _wheels(model)


def _start(model: Any, name: str | None) -> Any:
    """The coordinates that were asked for, or None: those that assembly finds."""
    if name is None:
        return None
    from jaxmbd.observe import unknown

    states = getattr(model, "states", {})
    if problems := unknown("state", name, states):
        raise ValueError(problems[0])
    return states[name].q


def _free_motion(model: Any, start: Any, options: argparse.Namespace, says: Says) -> Any:
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
        says.text(
            f"warning: the motion is {status.name} from {float(motion.failed_at):.4g} s on, and is "
            "shown until then; a smaller --step may help"
        )
    return motion


def _wheels(model: Any) -> list[Any]:
    """The wheel of a corner with names of the zoo."""
    from jaxmbd.suspension import find_corner
    from jaxmbd.viz import corner_wheel

    mech = getattr(model, "mechanism", model)
    try:
        return [corner_wheel(mech, find_corner(mech))]
    except ValueError:
        return []


def _written(model: Any, solution: Any, out: Path | None, shown: dict[str, Any]) -> Path:
    from jaxmbd.viz import animation, movie, page, picture

    if out is None:
        return page(model, solution, **shown).open()
    if out.suffix == ".html":
        return animation(out, model, solution, **shown)
    if out.suffix in _PICTURES:
        picture(model, solution, out, **shown)
        return out
    return movie(out, model, solution, progress=_counted, **shown)


def _counted(done: int, count: int) -> None:
    """The progress of a film, where somebody looks at it."""
    if sys.stderr.isatty():
        print(f"\r{done} of {count} frames", end="\n" if done == count else "", file=sys.stderr)
