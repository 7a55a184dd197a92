"""One mechanism in one JSON file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from jaxmbd.io.data_file import read_json
from jaxmbd.io.read_dict import from_dict
from jaxmbd.io.write_dict import to_dict
from jaxmbd.model import Mechanism


def save(mech: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a mechanism to a JSON file, from which `load` restores the same numbers bit by bit.

    Laws are written as their `register_law` names with their parameters, never pickled.

    Args:
        mech: one mechanism with known numbers (not traced, not a batch).
        path: the file; it is replaced only once the new text is complete.

    Raises:
        ValueError: lists what cannot be saved, each part with the remedy.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> mech = mbd.Mechanism(
        ...     bodies={"bob": mbd.Body(mass=1.0, com=(1, 0, 0))},
        ...     joints={"hinge": mbd.Revolute("ground", "bob", at=(0, 0, 0), axis=(0, 1, 0))},
        ... )
        >>> from jaxmbd.io import load, save
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(mech, f"{folder}/pendulum.json")
        ...     again = load(f"{folder}/pendulum.json")
        >>> again.structure == mech.structure
        True
    """
    replace_file(path, _text(to_dict(mech)))


def replace_file(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file; an old one stays until the new one is complete."""
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Read a mechanism that `save` wrote, or that was written by hand in the same form.

    Raises:
        ValueError: names the file and lists all its problems, each with the part and the remedy.
        FileNotFoundError: there is no such file.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mbd.save(mbd.zoo.rssr(), f"{folder}/rssr.json")
        ...     again = mbd.load(f"{folder}/rssr.json")
        >>> again.structure == mbd.zoo.rssr().structure
        True
    """
    path = Path(path)
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [k for k, _ in pairs]
        name = dict(pairs).get("name")
        repeated.extend(
            f"the object{f' of {name!r}' if name else ''} gives {k!r} twice; keep one of them"
            for k in dict.fromkeys(keys)
            if keys.count(k) > 1
        )
        return dict(pairs)

    data = read_json(path, unique)
    return from_dict(data, source=str(path), found=repeated)


def _text(data: dict[str, Any]) -> str:
    """JSON with one body, joint, force or point per line."""
    parts = []
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = ",\n".join("  " + json.dumps(item, allow_nan=False) for item in value)
            parts.append(f" {json.dumps(key)}: [\n{lines}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
