"""Warnings that show the user's own line."""

from __future__ import annotations

import sys
import warnings

_OURS = ("jax", "equinox", "contextlib", "functools")  # jaxmbd, jaxtyping and what JAX traces, too


def warn_user(text: str) -> None:
    """A `UserWarning` that points to the user's line which called into the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)
