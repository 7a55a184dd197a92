"""Files that anybody may have written: errors name the place."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_DEEPEST = 64
"""Levels of lists and objects up to which data are believed to be meant."""
_LONGEST = 309
"""Digits of the largest floating-point number."""
_NESTED = f"nests lists or objects more than {_DEEPEST} deep; nothing here needs so many"
_SHOWN = 60
"""Characters of the longest name that errors show whole."""
_TOKENS = re.compile(r'"(?:\\.|[^"\\])*"|[\[{]|[\]}]')


class _TooLong(Exception):
    """An integer of more digits than numbers have."""


def read_json(path: str | os.PathLike[str], pairs: Callable[[Any], Any] | None = None) -> Any:
    """The content of a file in UTF-8.

    Args:
        path: of the file.
        pairs: makes an object of its (key, value) pairs; by default a dictionary.

    Raises:
        ValueError: it is not JSON, or has numbers or levels beyond reason; names file and place.
        OSError: it cannot be read.
    """
    name, text = _named_text(path)
    try:
        return json.loads(text, object_pairs_hook=pairs, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name} is not JSON: {error}") from None
    except _TooLong as error:
        line = text.count("\n", 0, text.index(str(error))) + 1
        raise ValueError(
            f"{name}, line {line}: the integer {shortened(str(error))} is larger than any "
            "floating-point number; correct it"
        ) from None
    except RecursionError:
        raise ValueError(f"{name}, line {_deep_line(text)}: {_NESTED}") from None


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
    data = read_json(path)
    notes = data.get("notes", {}) if isinstance(data, dict) else {}
    if not isinstance(notes, dict):
        raise ValueError(f"{path}: 'notes' is a {type(notes).__name__}; give an object")
    return notes


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a TOML file in UTF-8.

    Raises:
        ValueError: it is not TOML, or has numbers or levels beyond reason; names file and place.
        OSError: it cannot be read.
    """
    name, text = _named_text(path)
    try:
        return tomllib.loads(text)
    except ValueError as error:  # of the parser, or of integers of thousands of digits
        raise ValueError(f"{name} is no TOML: {error}") from None
    except RecursionError:
        raise ValueError(f"{name}, line {_deep_line(text)}: {_NESTED}") from None


def _named_text(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The name of a file as errors show it, and its text."""
    name = os.fspath(path) if len(os.fspath(path)) < 1000 else shortened(os.fspath(path))
    try:
        return name, Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no text in UTF-8: {error}; save it as such") from None
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError):
            raise
        raise ValueError(f"{name} is the name of no file: {error.args[-1]}") from None


def check_depth(data: Any, name: str) -> None:
    """Refuse data that are nested so deeply that they cannot be meant.

    Raises:
        ValueError: names the entry.
    """
    for key, entries in data.items():
        for i, entry in enumerate(entries if isinstance(entries, list) else [entries]):
            level = [entry]
            for _ in range(_DEEPEST):
                level = [y for x in level for y in _inner(x)]
            if level:
                raise ValueError(f"{name}: {key}[{i}] {_NESTED}")


def _inner(x: Any) -> Any:
    return x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST:
        raise _TooLong(digits)
    return int(digits)


def _deep_line(text: str) -> int:
    """The line where a text nests too deeply."""
    depth = 0
    for token in _TOKENS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > _DEEPEST:
            return text.count("\n", 0, token.start()) + 1
    return 1


def shortened(name: str) -> str:
    """A name as errors show it."""
    return repr(name) if len(name) <= _SHOWN else f"{name[:_SHOWN]!r}… ({len(name)} characters)"


def is_file(path: Path, what: str) -> bool:
    """Whether there is such a file.

    Args:
        path: its path.
        what: who names it, for the error.

    Raises:
        ValueError: no file can have this name.
    """
    try:
        return path.is_file()
    except OSError as error:
        raise ValueError(
            f"{what} names the file {shortened(str(path))}, which cannot be looked for: "
            f"{error.strerror}; correct the name"
        ) from None


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft of a file, whose place it takes at the end; an old one stays until then."""
    path = Path(path)
    draft = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def replace_file(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file; an old one stays until the new one is complete."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
