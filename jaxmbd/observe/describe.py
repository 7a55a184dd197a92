"""Descriptions: plain data that determines an observable, an experiment or a part of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


def described(x: Any) -> Any:
    """JSON values that determine `x`: types by name, functions by import path, numbers exactly.

    Example:
        >>> from jaxmbd.observe import Travel, described
        >>> described(Travel("upright", "wheel_centre", "z"))["type"]
        'Travel'
    """
    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        return x if np.isfinite(x) else repr(x)
    if isinstance(x, Mapping):
        plain = all(isinstance(k, str) for k in x)
        pairs = [(k if plain else described(k), described(v)) for k, v in x.items()]
        return dict(pairs) if plain else [list(p) for p in pairs]
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        fields = {f.name: described(getattr(x, f.name)) for f in dataclasses.fields(x)}
        return {"type": type(x).__name__, **fields}
    if (fields := getattr(x, "_asdict", None)) is not None:
        return {"type": type(x).__name__, **{n: described(y) for n, y in fields().items()}}
    if isinstance(x, (list, tuple)):
        return [described(y) for y in x]
    if hasattr(x, "tolist"):
        return described(np.asarray(x).tolist())
    if callable(x):
        thing = x if hasattr(x, "__qualname__") else type(x)
        return {"function": f"{thing.__module__}:{thing.__qualname__}"}
    return repr(x)
