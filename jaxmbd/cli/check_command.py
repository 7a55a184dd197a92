"""``jaxmbd check``: what a mechanism is, whether it closes, and how near it is to trouble."""

from __future__ import annotations

import argparse
from typing import Any

from jaxmbd.cli.jax_setup import set_up_jax
from jaxmbd.cli.model_files import NAMES, load_model
from jaxmbd.cli.says import FINDINGS, FINE, Says, add_command


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "check",
        _run,
        "check a mechanism: topology, mobility, redundancy, whether it closes",
        "Check a mechanism: its topology and mobility, redundant constraints, whether its loops\n"
        "close and which joint stays open, how well conditioned it is, and what is nearest to\n"
        "trouble. The exit status is 3 if it does not close or cannot be trusted.",
        "jaxmbd check corner.json --variables\njaxmbd check zoo:bricard --figure redundant.png",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument("--variables", action="store_true", help="list all numbers by path, too")
    parser.add_argument(
        "--figure", metavar="FILE", help="draw its topology with what is redundant: png, svg, pdf"
    )


def _run(options: argparse.Namespace, says: Says) -> int:
    set_up_jax()
    from jaxmbd.cli.diagnosis import diagnose
    from jaxmbd.variables import variables

    if options.model.endswith(".toml"):
        raise ValueError(
            f"{options.model}: `check` is of mechanisms: give its model's JSON file or zoo:NAME; "
            "`jaxmbd run` finds what is wrong with a study before it computes anything"
        )
    mech, warned = load_model(options.model)
    found = diagnose(mech)
    for key, value in found["facts"].items():
        says.text(f"{key:14} {value}")
    for text in (*(f"warning: {x}" for x in warned), *(f"trouble: {x}" for x in found["trouble"])):
        says.text(text)
    if not found["trouble"]:
        says.text("no trouble found")
    if options.variables:
        says.text("", variables(mech))
        table = {p: {"value": x.value, "unit": x.unit} for p, x in variables(mech).items()}
        found["variables"] = table
    if options.figure:
        from jaxmbd.viz import redundancy_figure

        redundancy_figure(mech, found["configuration"], options.figure)
        says.text(f"{options.figure}: its topology, and what is redundant")
        found["figure"] = options.figure
    says.result(found | {"warnings": warned})
    return FINE if found["sound"] else FINDINGS
