"""Write where a run ended to a file, and go on from there another day."""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxmbd.analysis import Account, Record, RunEnd
from jaxmbd.io.files import replacing

RUN_END_FORMAT = "jaxmbd-run-end-1"
"""The format that files of ends of runs name."""


def save_run_end(end: RunEnd, path: str | os.PathLike[str]) -> None:
    """Write `Solution.end` to a NumPy file (npz), of one run or of a batch, bit by bit.

    Args:
        end: the end, with known numbers (not traced).
        path: the file; it is replaced only once the new one is complete.

    Raises:
        ValueError: it is no end of a run, or a number is traced.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> m, step = mbd.zoo.simple_pendulum(), {"dt": 1e-3}
        >>> half = mbd.simulate(m, [0.1], t1=0.01, **step)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mbd.io.save_run_end(half.end, f"{folder}/half.npz")
        ...     end = mbd.io.load_run_end(f"{folder}/half.npz")
        >>> rest, whole = (mbd.simulate(m, x, t1=0.02, **step) for x in (end, [0.1]))
        >>> bool(rest.q[-1] == whole.q[-1])
        True
    """
    if not isinstance(end, RunEnd):
        raise ValueError(f"a {type(end).__name__} is no end of a run; give run.end of simulate")
    numbers: dict[str, Any] = {"format": np.asarray(RUN_END_FORMAT)}
    for keys, x in jax.tree_util.tree_flatten_with_path(end)[0]:
        if isinstance(x, Tracer):
            raise ValueError("the end of a run is traced: save it outside jit and vmap")
        name = "/".join(str(getattr(k, "name", getattr(k, "key", k))) for k in keys)
        numbers[name] = np.asarray(x)
    with replacing(path) as draft, draft.open("wb") as file:
        np.savez(file, allow_pickle=False, **numbers)


def load_run_end(path: str | os.PathLike[str]) -> RunEnd:
    """Read what `save_run_end` wrote; given to `simulate` as `q0`, a run goes on to the bit.

    Raises:
        ValueError: the file is none of these, or of another version.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> run = mbd.simulate(mbd.zoo.simple_pendulum(), [0.1], t1=0.01, dt=1e-3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mbd.io.save_run_end(run.end, f"{folder}/end.npz")
        ...     mbd.io.load_run_end(f"{folder}/end.npz").t.item()
        0.01
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            numbers: dict[str, Any] = dict(file.items())
        found = str(numbers.pop("format"))
    except (ValueError, KeyError, AttributeError, EOFError) as error:
        raise ValueError(f"{path} is no file of save_run_end") from error
    if found != RUN_END_FORMAT:
        raise ValueError(f"{path} has format {found!r}; this version reads {RUN_END_FORMAT!r}")
    parts: dict[str, dict[str, Any]] = {"account": {}, "events": {}, "switches": {}}
    for name in [name for name in numbers if "/" in name]:
        part, key = name.split("/", 1)
        parts[part][key] = numbers.pop(name)
    events: dict[str, dict[str, Any]] = {}
    for name, x in parts["events"].items():
        event, field = name.rsplit("/", 1)
        events.setdefault(event, {})[field] = x
    return RunEnd(
        account=Account(**parts["account"]),
        events={name: Record(**fields) for name, fields in events.items()} or None,
        switches=parts["switches"] or None,
        **numbers,
    )
