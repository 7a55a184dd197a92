"""The command ``jaxmbd``: studies from files, checks of models, a demonstration.

`entry` reads the command line. The files ``…_commands.py`` describe their commands in `add` and run
them; `common` is what they share.
"""

from jaxmbd.cli.entry import command, main

__all__ = ["command", "main"]
