"""The command line: which command, and how it ends."""

from __future__ import annotations

import argparse
import gc
import json
import sys
import warnings
from typing import Any

import jaxmbd
from jaxmbd.cli import (
    figure_command,
    load_commands,
    model_commands,
    setup_commands,
    study_commands,
    suspension_commands,
    view_commands,
)
from jaxmbd.cli.common import EXIT_STATUSES, INTERRUPTED, WRONG, Printer, import_own


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: command-line arguments; by default ``sys.argv[1:]``.

    Returns:
        the exit status, as `jaxmbd --help` lists them.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    printer = Printer(options.json)
    try:
        import_own(options.imports)
        return options.run(options, printer)
    except KeyboardInterrupt as stop:
        return _ended(printer, str(stop) or "stopped by Ctrl-C", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader, such as `head`, has gone
        return WRONG
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        return _ended(printer, str(error), WRONG)


def _ended(printer: Printer, text: str, status: int) -> int:
    printer.note(f"jaxmbd: {text}")
    if printer.as_json:
        print(json.dumps({"error": text}, ensure_ascii=False))
    return status


_usual = warnings.showwarning


def show_warning(message: Any, category: type[Warning], *place: Any, **options: Any) -> None:
    """A warning to the user without the line of Python that it came from."""
    if issubclass(category, UserWarning):
        print(f"jaxmbd: warning: {message}", file=sys.stderr)
    else:
        _usual(message, category, *place, **options)


def command() -> None:
    """Run one command and end the process with its exit status.

    What a short command imports and traces stays until its end, so that looking for garbage in it,
    the last time at exit, is in vain: the demonstration takes 3.9 s of CPU so, and 4.9 s otherwise.
    """
    gc.set_threshold(500_000, *gc.get_threshold()[1:])
    warnings.showwarning = show_warning
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
        "  jaxmbd corner                   a corner or an axle of one's own, by a template\n"
        "  jaxmbd check zoo:multi_link     what a mechanism is, and whether it closes\n"
        "  jaxmbd run study.toml           run a study; Ctrl-C or a power cut does no harm\n"
        "  jaxmbd resume study.toml        go on with it\n"
        "  jaxmbd COMMAND --help           all about a command\n\n" + EXIT_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"jaxmbd {jaxmbd.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    modules = study_commands, model_commands, view_commands, figure_command
    for module in (*modules, suspension_commands, setup_commands, load_commands):
        module.add(commands)
    return parser
