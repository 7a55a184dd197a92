"""Names in messages, and warnings that show the user's own line."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any


def near(name: Any, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that are similar to `name`, the most similar first."""
    return difflib.get_close_matches(str(name), list(known), n=most)


def closest(name: Any, known: Iterable[str]) -> str | None:
    """The known name most similar to `name`, if any is similar."""
    return next(iter(near(name, known, 1)), None)


def meant(name: Any, known: Iterable[str]) -> str:
    """A hint at the known name closest to `name`, or nothing."""
    close = closest(name, known)
    return "" if close is None else f" (did you mean {close!r}?)"


def listed(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """The first of many names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


_OURS = ("jax", "equinox", "contextlib", "functools")  # jaxmbd, jaxtyping and what JAX traces, too


def warn_user(text: str) -> None:
    """A `UserWarning` that points to the user's line which called into the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)
