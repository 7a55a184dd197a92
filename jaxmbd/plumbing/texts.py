"""Texts for people: which name was perhaps meant, the first of many, tables, warnings."""

from __future__ import annotations

import difflib
import inspect
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any


def near(name: Any, known: Iterable[str]) -> list[str]:
    """The known names that are similar to `name`, the most similar first."""
    return difflib.get_close_matches(str(name), list(known))


def meant(name: Any, known: Iterable[str]) -> str:
    """A hint at the known name closest to `name`, or nothing."""
    return "".join(f" (did you mean {close!r}?)" for close in near(name, known)[:1])


def hint(name: Any, known: Iterable[str], most: int = 1) -> str:
    """What to say of an unknown name: the most similar known ones, or some that there are."""
    known = list(known)
    if close := near(name, known)[:most]:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"there are {listed(known, 8)}" if known else "there are none"


def unknown(kind: str, name: Any, known: Iterable[str]) -> list[str]:
    """A problem if there is no part of that name."""
    known = list(known)
    return [] if name in known else [f"there is no {kind} {name!r}; {hint(name, known)}"]


def refuse(title: str, problems: Sequence[str]) -> None:
    """Raise one `ValueError` with all problems under a title, if there are any."""
    if problems:
        raise ValueError("\n  - ".join([f"{title}:", *problems]))


def listed(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """The first of many names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def plain(x: Any, unbounded: Callable[[float], Any] = repr) -> Any:
    """The same as dictionaries, lists, texts and numbers that JSON can hold.

    Args:
        x: mappings, sequences, arrays, numbers.
        unbounded: function of a number that is not finite, to what is put in its place.
    """
    if isinstance(x, Mapping):
        return {str(k): plain(y, unbounded) for k, y in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(y, unbounded) for y in x]
    if hasattr(x, "tolist"):  # an array
        return plain(x.tolist(), unbounded)
    if isinstance(x, float) and not math.isfinite(x):
        return unbounded(x)
    return x


def text_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: Collection[int] = (0, -1),
    rule: bool = True,
) -> str:
    """Texts in columns under a head.

    Args:
        head: of the columns.
        rows: a text for each column.
        left: columns whose texts are aligned to the left, from the last one where negative.
        rule: whether there is a line under the head.
    """
    table = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    aligned = {i % len(head) for i in left}
    lines = [
        "  ".join(
            x.ljust(w) if i in aligned else x.rjust(w)
            for i, (x, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join([lines[0], *["-" * max(map(len, lines))] * rule, *lines[1:]])


def outline(self: Any) -> str:
    """A named tuple's fields in lines, for its ``__str__``: few numbers, or shapes and ranges."""
    rows = [(name, *_size_and_range(x)) for name, x in self._asdict().items() if x is not None]
    return text_table((f"{type(self).__name__}:", "", ""), rows, range(3), rule=False)


def _size_and_range(x: Any) -> tuple[str, str]:
    if isinstance(x, Mapping) or hasattr(x, "_fields"):
        return "", ", ".join(x) if isinstance(x, Mapping) else type(x).__name__
    shape = getattr(x, "shape", None)
    try:
        flat = [] if shape is None else plain(x.reshape(-1), lambda _: None)
    except TypeError:  # traced
        return str(shape), "not known yet"
    known = [y for y in flat if y is not None]
    if not shape or 0 < len(flat) == len(known) < 5:
        return str(shape or ""), ", ".join(f"{y:.6g}" for y in known) or str(x)[:60]
    lost = f", {len(flat) - len(known)} not finite" if len(known) < len(flat) else ""
    return str(shape), (f"{min(known):.6g} to {max(known):.6g}" if known else "none") + lost


_OURS = ("jax", "equinox", "contextlib", "functools")  # jaxmbd, jaxtyping and what JAX traces, too


def warn_user(text: str) -> None:
    """A `UserWarning` that points to the user's line which called into the package."""
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_back and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)
