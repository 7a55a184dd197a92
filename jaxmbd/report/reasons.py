"""Why samples failed, from the status and from what the experiment says of the worst joint."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Failures(NamedTuple):
    """Failed samples and their reasons.

    Attributes:
        samples: their numbers.
        reasons: of each of them.
        details: by title, what else the study says of each of them.
    """

    samples: np.ndarray
    reasons: list[str]
    details: dict[str, list[Any]]


def failures(dataset: Any, ok: np.ndarray) -> Failures:
    """The failed samples of a study.

    Args:
        dataset: of the study.
        ok: which samples succeeded (n,).
    """
    samples = np.flatnonzero(~ok)
    status = [n for n in dataset.data_vars if dataset[n].attrs.get("role") == "status"]
    reasons = [""] * len(samples)
    if status and len(samples):
        reasons = _meanings(dataset[status[0]], samples)
    details: dict[str, list[Any]] = {}
    for name in dataset.data_vars:
        variable = dataset[name]
        if (
            variable.attrs.get("role") != "reason"
            or variable.dims != ("sample",)
            or not len(samples)
        ):
            continue
        if "flag_meanings" in variable.attrs:
            shown = _meanings(variable, samples)
        else:
            shown = [float(x) for x in np.asarray(variable)[samples]]
        unit = variable.attrs.get("units", "")
        path = str(variable.attrs.get("path", name)).replace("_", " ")
        details[f"{path} [{unit}]" if unit else path] = shown
    return Failures(samples, reasons, details)


def _meanings(variable: Any, samples: np.ndarray) -> list[str]:
    """What whole numbers mean, by the attributes flag_values and flag_meanings."""
    meanings = str(variable.attrs.get("flag_meanings", "")).split()
    values = np.atleast_1d(variable.attrs.get("flag_values", np.arange(len(meanings)))).tolist()
    known = dict(zip(values, meanings, strict=False))
    numbers = np.asarray(variable)[samples].tolist()
    none = "–" if known else ""
    return [known.get(x, f"{x}" if x >= 0 else none).replace("_", " ") for x in numbers]
