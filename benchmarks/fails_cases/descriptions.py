"""Broken descriptions: the plain dictionary of a mechanism with one thing changed at random."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

import jaxmbd as mbd

NUMBERS: tuple[Any, ...] = (
    float("nan"), float("inf"), -1.0, 0.0, 1e300, 1e-300, "many", None, [1.0], [[1.0, 2.0]], True,
)  # fmt: skip
NAMES: tuple[Any, ...] = ("nobody", "", 3, None, ["ground"])


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything in a nested dictionary."""
    found = [path] if path else []
    if isinstance(data, dict):
        items: Any = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    else:
        return found
    for key, value in items:
        found += places(value, (*path, key))
    return found


def broken(data: dict[str, Any], rng: np.random.Generator) -> tuple[dict[str, Any], str]:
    """A copy with one entry changed, removed, added or doubled, and what was done."""
    data = copy.deepcopy(data)
    path = places(data)[rng.integers(len(places(data)))]
    *way, last = path
    parent = data
    for key in way:
        parent = parent[key]
    value, where = parent[last], "/".join(map(str, path))
    choice = rng.random()
    if choice < 0.15:
        del parent[last]
        return data, f"without {where}"
    if choice < 0.25 and isinstance(parent, dict):
        parent[f"{last}_"] = parent.pop(last)
        return data, f"{where} renamed"
    options = NAMES if isinstance(value, str) else NUMBERS
    new = options[rng.integers(len(options))]
    if isinstance(value, str) and rng.random() < 0.5:
        parts = [x for key in ("bodies", "joints", "points") for x in data.get(key, ())]
        names = [*(x["name"] for x in parts if isinstance(x, dict) and "name" in x), "ground"]
        new = names[rng.integers(len(names))]
    elif isinstance(value, list) and rng.random() < 0.5:
        new = [*value, *value][: rng.integers(2 * len(value) + 1)]
    parent[last] = new
    return data, f"{where} = {new!r}"


def build(data: dict[str, Any]) -> tuple[mbd.Mechanism | None, str]:
    """The mechanism, or why there is none: "refused" with a ValueError, or "crashed".

    A refusal must be a sentence: an error raised by Python or NumPy internally is a crash.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mbd.io.from_dict(data), ""
    except ValueError as error:
        return None, "refused" if len(str(error)) > 30 else f"crashed: {error}"
    except Exception as error:
        return None, f"crashed: {type(error).__name__}: {error}"
