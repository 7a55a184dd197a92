"""Inputs of a study: what is drawn, about which nominal value, in which unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbd.sampling import Distribution
from jaxmbd.variables import Variable, in_si

Find = Callable[[str], Mapping[str, Variable]]


@dataclass(frozen=True)
class Input:
    """One input of a study.

    Attributes:
        distribution: of `jaxmbd.sampling` or a frozen one of `scipy.stats`; None if it is fixed.
        nominal: number or array; by default the mechanism's own value.
        unit: SI unit; checked against the mechanism's where that is known.
        text: description.
        dims: names of its axes.

    Example:
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Normal
        >>> Input(Normal(1e-3), nominal=0.25, unit="m", text="length of the rod").unit
        'm'
    """

    distribution: Any = None
    nominal: Any = None
    unit: str = ""
    text: str = ""
    dims: tuple[str, ...] = ()


def read_inputs(given: Mapping[str, Any], find: Find | None, found: list[str]) -> dict[str, Input]:
    """Inputs with nominal values, from what a user gives.

    Args:
        given: name, or pattern of names such as ``"points/*"``, to a distribution, an `Input` or a
            number.
        find: the variables of the model by name or pattern; None if any name will do.
        found: problems are added to it.
    """
    inputs: dict[str, Input] = {}
    for name, entry in given.items():
        known: Mapping[str, Variable | None] = {name: None}
        if find is not None:
            try:
                known = find(name)
            except ValueError as error:
                found.append(f"input '{name}': {error}")
                continue
        for each, variable in known.items():
            if each in inputs:
                found.append(f"input '{each}' is given twice, the second time by '{name}'")
                continue
            inputs[each] = _settled(each, entry, variable, found)
    return inputs


def _settled(name: str, entry: Any, known: Variable | None, found: list[str]) -> Input:
    if not isinstance(entry, Input):
        fixed = entry is None or isinstance(entry, (int, float, str, list, tuple, np.ndarray))
        entry = Input(nominal=entry) if fixed else Input(distribution=entry)
    unit, text, nominal = entry.unit, entry.text, entry.nominal
    if known is not None:
        if unit and known.unit and unit != known.unit:
            found.append(f"input '{name}' is given in {unit!r}; the model has it in {known.unit!r}")
        unit, text = known.unit or unit, text or known.text
        nominal = known.value if nominal is None else nominal
    distribution, nominal = _in_si(name, entry.distribution, nominal, unit, found)
    if nominal is None:
        found.append(f"input '{name}' has no nominal value; give Input(distribution, nominal=…)")
        nominal = np.nan
    value = np.asarray(nominal, np.float64)
    if known is not None and value.shape != np.shape(known.value):
        shape = np.shape(known.value)
        found.append(f"input '{name}': nominal value of shape {value.shape}, the model has {shape}")
    elif not np.all(np.isfinite(value)):
        found.append(f"input '{name}': its nominal value {value.tolist()} is not finite")
    dims = tuple(entry.dims) or tuple(_axis(name, k, n) for k, n in enumerate(value.shape))
    if len(dims) != value.ndim:
        found.append(f"input '{name}' has {value.ndim} axes, but dims={list(dims)}")
    return Input(distribution, value, unit, text, dims)


def _in_si(
    name: str, distribution: Any, nominal: Any, unit: str, found: list[str]
) -> tuple[Any, Any]:
    """Distribution and nominal value with quantities such as "1 mm" as numbers in SI units."""
    try:
        if isinstance(nominal, str):
            nominal = in_si(nominal, unit, f"input '{name}'")
        if isinstance(distribution, Distribution):
            distribution = distribution.in_units(lambda text: in_si(text, unit, f"input '{name}'"))
    except ValueError as error:
        found.append(str(error))
        nominal = np.nan if isinstance(nominal, str) else nominal
    return distribution, nominal


def _axis(name: str, k: int, size: int) -> str:
    """The name of an axis: vectors in space share theirs."""
    return "axis" if size == 3 else f"{name.replace('/', '.')}_{k}"
