"""Where two descriptions differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """Where two trees of JSON values differ, as "path: old -> new".

    Example:
        >>> from jaxmbd.campaign.runner import differences
        >>> differences({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3], "c": 0})
        ['b/1: 2 -> 3', 'c: nothing -> 0']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(k for k in new if k not in old)]
        pairs = [(str(k), old.get(k, _NOTHING), new.get(k, _NOTHING)) for k in keys]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(str(i), a, b) for i, (a, b) in enumerate(zip(old, new, strict=True))]
    elif old == new or (old != old and new != new):
        return []
    else:
        return [f"{name}: {_short(old)} -> {_short(new)}"]
    prefix = f"{name}/" if name else ""
    return [line for key, a, b in pairs for line in differences(a, b, prefix + key)]


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
