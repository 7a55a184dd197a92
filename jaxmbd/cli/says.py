"""What a command prints: texts for people, or one JSON object for programs."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

FINE, WRONG, FINDINGS, INTERRUPTED = 0, 1, 3, 130
"""Exit statuses: all well; an error that the user can fix; done, but something was found that needs
attention; stopped by Ctrl-C. (2 is for a wrong command line.)"""

EXIT_STATUSES = (
    "exit status: 0 all well; 1 an error; 2 a wrong command line; 3 done, but something was found\n"
    "that needs attention; 130 stopped by Ctrl-C"
)

Run = Callable[[argparse.Namespace, "Says"], int]


class Says:
    """Prints for people on stdout; with ``--json`` one object on stdout, and nothing else there."""

    def __init__(self, as_json: bool):
        self.as_json = as_json

    def text(self, *parts: Any, sep: str = "\n") -> None:
        """Print for people; not at all with ``--json``."""
        if not self.as_json:
            print(*parts, sep=sep)

    def note(self, text: str) -> None:
        """Print on stderr, where neither kind of output is disturbed."""
        print(text, file=sys.stderr)

    def result(self, data: Mapping[str, Any]) -> None:
        """Print the JSON object; nothing without ``--json``."""
        if self.as_json:
            print(json.dumps(plain(data), ensure_ascii=False, allow_nan=False))


def plain(x: Any) -> Any:
    """JSON values; numbers that are not finite become null."""
    if isinstance(x, Mapping):
        return {str(k): plain(y) for k, y in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(y) for y in x]
    if isinstance(x, (bool, str)) or x is None:
        return x
    if hasattr(x, "tolist"):
        return plain(x.tolist())
    if isinstance(x, float):
        return x if math.isfinite(x) else None
    return x if isinstance(x, int) else str(x)


def add_command(
    commands: Any, name: str, run: Run, help: str, description: str, examples: str = ""
) -> argparse.ArgumentParser:
    """A command with its help, its examples and the option ``--json``."""
    shown = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    epilog = f"examples:\n{shown}\n\n{EXIT_STATUSES}" if shown else EXIT_STATUSES
    parser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.set_defaults(run=run)
    return parser
