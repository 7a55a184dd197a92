"""The outputs of a dataset as single numbers and single curves."""

from __future__ import annotations

from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

# Of an output of many components, so many are shown.
_MOST_COMPONENTS = 12


class Part(NamedTuple):
    """One number or one curve of an output.

    Attributes:
        label: the output's path, with the component if it has several: ``hub[axis=z]``.
        variable: name in the dataset.
        index: of the component, by dimension.
        dim: along which it is a curve; "" for a number.
        unit: SI unit.
        text: what it is.
    """

    label: str
    variable: str
    index: tuple[tuple[str, int], ...]
    dim: str
    unit: str
    text: str

    def of(self, values: np.ndarray, dims: tuple[str, ...]) -> np.ndarray:
        """This part (n,) or (n, k) of the output's values, whose axes are `dims`."""
        at = tuple(dict(self.index).get(d, slice(None)) for d in dims)
        return np.asarray(values, np.float64)[at]

    def place(self, dataset: Any, along: int = 0) -> tuple[str, tuple[int, ...]]:
        """The output's path, and the index in it of this number, or of that point of this curve."""
        variable = dataset[self.variable]
        index = dict(self.index) | ({self.dim: along} if self.dim else {})
        path = str(variable.attrs.get("path", self.variable))
        return path, tuple(index[d] for d in variable.dims[1:])


def parts(dataset: Any, role: str = "output") -> list[Part]:
    """Numbers and curves of all outputs, in the order of the dataset."""
    found: list[Part] = []
    for name in dataset.data_vars:
        variable = dataset[name]
        real = np.issubdtype(variable.dtype, np.number)
        if variable.attrs.get("role") == role and variable.dims[:1] == ("sample",) and real:
            found += _of(dataset, str(name))
    return found


def _of(dataset: Any, name: str) -> list[Part]:
    variable = dataset[name]
    dims = variable.dims[1:]
    numeric = [d for d in dims if _is_axis(dataset, d)]
    curve = max(numeric, key=lambda d: dataset.sizes[d], default="")
    others = [d for d in dims if d != curve]
    about = variable.attrs
    unit, text = about.get("units", ""), about.get("long_name", "")
    found = []
    combinations = product(*(range(dataset.sizes[d]) for d in others))
    for index in islice(combinations, _MOST_COMPONENTS):
        chosen = tuple(zip(others, index, strict=True))
        where = ", ".join(f"{d}={_coordinate(dataset, d, i)}" for d, i in chosen)
        path = about.get("path", name)
        label = f"{path}[{where}]" if where else path
        found.append(Part(label, name, chosen, curve, unit, text))
    return found


def _is_axis(dataset: Any, dim: str) -> bool:
    """Whether values along a dimension are a curve, not components."""
    if dim in dataset.coords:
        return dataset.sizes[dim] > 1 and np.issubdtype(dataset[dim].dtype, np.number)
    return dataset.sizes[dim] > 3


def _coordinate(dataset: Any, dim: str, index: int) -> str:
    return str(dataset[dim].values[index]) if dim in dataset.coords else str(index)


def coordinate(dataset: Any, dim: str) -> tuple[np.ndarray, str]:
    """Values along a dimension and its title with unit; 0, 1, … if it has no coordinate."""
    if dim not in dataset.coords:
        return np.arange(float(dataset.sizes[dim])), dim
    return np.asarray(dataset[dim], np.float64), titled(dim, dataset[dim].attrs.get("units", ""))


def titled(label: str, unit: str) -> str:
    """A label with its unit.

    Example:
        >>> from jaxmbd.report.parts import titled
        >>> titled("toe", "rad"), titled("ratio", "")
        ('toe [rad]', 'ratio')
    """
    return f"{label} [{unit}]" if unit else label


def nominal(dataset: Any, part: Part) -> np.ndarray | None:
    """The part of the nominal sample; None if the dataset does not have it."""
    name = f"nominal.{part.variable}"
    if name not in dataset:
        return None
    return part.of(np.asarray(dataset[name])[None], ("sample", *dataset[name].dims))[0]
