"""The command ``jaxmbd``: studies from files, checks of models, a demonstration.

`entry` reads the command line; each command is a file ``…_command.py`` with a function `add`, which
describes it, and one that runs it; those that compute a study are together in `study_commands`.
What they share is in `says` (texts or JSON), `model_files` and `jax_setup`.
"""

from jaxmbd.cli.entry import command, main

__all__ = ["command", "main"]
