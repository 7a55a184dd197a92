"""Names in messages: which one was perhaps meant, and the first of many."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def closest(name: Any, known: Iterable[str]) -> str | None:
    """The known name most similar to `name`, if any is similar."""
    return next(iter(difflib.get_close_matches(str(name), list(known), n=1)), None)


def meant(name: Any, known: Iterable[str]) -> str:
    """A hint at the known name closest to `name`, or nothing."""
    close = closest(name, known)
    return "" if close is None else f" (did you mean {close!r}?)"


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first of many names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
