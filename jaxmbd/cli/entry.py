"""The command line: which command, and how it ends."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from typing import Any

from jaxmbd.cli import (
    bench_command,
    check_command,
    convert_command,
    demo_command,
    explore_command,
    info_command,
    report_command,
    study_commands,
    view_command,
)
from jaxmbd.cli.says import EXIT_STATUSES, INTERRUPTED, WRONG, Says

COMMANDS = (
    study_commands,
    report_command,
    check_command,
    info_command,
    view_command,
    explore_command,
    convert_command,
    bench_command,
    demo_command,
)


_ALLOCATIONS = 500_000
"""Objects made, less those freed, before the collector looks for garbage among the new ones: more
than a short command makes, and some fifty megabytes of a long one."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: command-line arguments; by default ``sys.argv[1:]``.

    Returns:
        the exit status, as `jaxmbd.cli.says` lists them.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    says = Says(options.json)
    try:
        return options.run(options, says)
    except KeyboardInterrupt as stop:
        return _ended(says, str(stop) or "stopped by Ctrl-C", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader, such as `head`, has gone
        return WRONG
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        return _ended(says, str(error), WRONG)


def _ended(says: Says, text: str, status: int) -> int:
    says.note(f"jaxmbd: {text}")
    if says.as_json:
        print(json.dumps({"error": text}, ensure_ascii=False))
    return status


def command() -> None:
    """Run one command and end the process with its exit status.

    Garbage is looked for seldom, since what imports and tracing make is all kept. What exists at
    the end is exempt: else the collector looks through all of JAX's and matplotlib's objects a
    last time, for a tenth of a short command's time.
    """
    gc.set_threshold(_ALLOCATIONS, *gc.get_threshold()[1:])
    status = main()
    gc.freeze()
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxmbd",
        description="Batched, differentiable multibody dynamics on JAX: studies of many variants "
        "of a mechanism.",
        epilog="begin:\n"
        "  jaxmbd demo                     a study of a suspension corner, with a figure\n"
        "  jaxmbd check zoo:multi_link     what a mechanism is, and whether it closes\n"
        "  jaxmbd run study.toml           run a study; Ctrl-C or a power cut does no harm\n"
        "  jaxmbd resume study.toml        go on with it\n"
        "  jaxmbd COMMAND --help           all about a command\n\n" + EXIT_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version, and end")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return parser


class _Version(argparse.Action):
    """Looks for the version only where it is asked for: that takes longer than all other help."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"jaxmbd {version()}")
        parser.exit()


def version() -> str:
    """The installed version."""
    from importlib import metadata

    try:
        return metadata.version("jaxmbd")
    except metadata.PackageNotFoundError:
        return "(a checkout that is not installed)"
