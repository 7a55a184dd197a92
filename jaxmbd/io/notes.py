"""What a file of a mechanism holds beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jaxmbd.io.files import read_json


def load_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The notes that `save` wrote beside a mechanism; empty if there are none.

    Raises:
        ValueError: the file is no JSON, or its notes are no object.
        FileNotFoundError: there is no such file.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.io import load_notes
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mbd.save(mbd.zoo.rssr(), f"{folder}/rssr.json", notes={"source": "a drawing"})
        ...     load_notes(f"{folder}/rssr.json")
        {'source': 'a drawing'}
    """
    data = read_json(Path(path), dict)
    notes = data.get("notes", {}) if isinstance(data, dict) else {}
    if not isinstance(notes, dict):
        raise ValueError(f"{path}: 'notes' is a {type(notes).__name__}; give an object")
    return notes
