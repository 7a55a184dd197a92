"""The numbers that a report shows, read once from a study's dataset.

Outputs are taken as single numbers and single curves. Why samples failed is told by the status and
by what the experiment says of the worst joint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.statistics import (
    Envelope,
    computed,
    counted,
    envelope,
    input_values,
    pieces,
    succeeded,
    varying,
)

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
    """

    label: str
    variable: str
    index: tuple[tuple[str, int], ...]
    dim: str
    unit: str

    @property
    def title(self) -> str:
        """The label with the unit."""
        return titled(self.label, self.unit)

    def of(self, values: np.ndarray, dims: tuple[str, ...]) -> np.ndarray:
        """This part (n,) or (n, k) of the output's values, whose axes are `dims`."""
        at = tuple(dict(self.index).get(d, slice(None)) for d in dims)
        return np.asarray(values, np.float64)[at]

    def at_rows(self, dataset: Any, rows: np.ndarray) -> np.ndarray:
        """This part (m,) or (m, k) of some samples."""
        variable = dataset[self.variable]
        return self.of(np.asarray(variable.isel(sample=rows)), variable.dims)

    def nominal(self, dataset: Any) -> np.ndarray | None:
        """This part of the nominal sample; None if the dataset does not have it."""
        if (name := f"nominal.{self.variable}") not in dataset:
            return None
        values = dataset[name]
        return self.of(np.asarray(values)[None], ("sample", *values.dims))[0]

    def path(self, dataset: Any) -> str:
        """The output's path in the study."""
        return str(dataset[self.variable].attrs.get("path", self.variable))

    def place(self, dataset: Any, along: int = 0) -> tuple[int, ...]:
        """The index in the output of this number, or of that point of this curve."""
        index = dict(self.index) | ({self.dim: along} if self.dim else {})
        return tuple(index[d] for d in dataset[self.variable].dims[1:])


def parts(dataset: Any) -> list[Part]:
    """Numbers and curves of all outputs, in the order of the dataset."""
    found: list[Part] = []
    for name, variable in dataset.data_vars.items():
        real = np.issubdtype(variable.dtype, np.number)
        if variable.attrs.get("role") == "output" and variable.dims[:1] == ("sample",) and real:
            found += _of(dataset, str(name))
    return found


def _of(dataset: Any, name: str) -> list[Part]:
    about = dataset[name].attrs
    dims = dataset[name].dims[1:]
    numeric = [d for d in dims if _is_axis(dataset, d)]
    curve = max(numeric, key=lambda d: dataset.sizes[d], default="")
    others = [d for d in dims if d != curve]
    found = []
    combinations = product(*(range(dataset.sizes[d]) for d in others))
    for index in islice(combinations, _MOST_COMPONENTS):
        chosen = tuple(zip(others, index, strict=True))
        where = ", ".join(f"{d}={_coordinate(dataset, d, i)}" for d, i in chosen)
        path = about.get("path", name)
        label = f"{path}[{where}]" if where else path
        found.append(Part(label, name, chosen, curve, about.get("units", "")))
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
    """A label with its unit, if it has one: ``toe [rad]``."""
    return f"{label} [{unit}]" if unit else label


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
    """The failed samples of a study, those that are not `ok` (n,)."""
    samples = np.flatnonzero(~ok)
    reasons = [""] * len(samples)
    details: dict[str, list[Any]] = {}
    for name, variable in dataset.data_vars.items() if len(samples) else ():
        about = variable.attrs
        if about.get("role") == "status":
            reasons = _meanings(variable, samples)
        elif about.get("role") == "reason" and variable.dims == ("sample",):
            flags = "flag_meanings" in about
            values = np.asarray(variable)[samples]
            title = titled(str(about.get("path", name)).replace("_", " "), about.get("units", ""))
            details[title] = _meanings(variable, samples) if flags else list(map(float, values))
    return Failures(samples, reasons, details)


def _meanings(variable: Any, samples: np.ndarray) -> list[str]:
    """What whole numbers mean, by the attributes flag_values and flag_meanings."""
    meanings = str(variable.attrs.get("flag_meanings", "")).split()
    values = np.atleast_1d(variable.attrs.get("flag_values", np.arange(len(meanings)))).tolist()
    known = dict(zip(values, meanings, strict=False))
    numbers = np.asarray(variable)[samples].tolist()
    none = "–" if known else ""
    return [known.get(x, f"{x}" if x >= 0 else none).replace("_", " ") for x in numbers]


Limits = Mapping[str, tuple[float | None, float | None]]

# Samples that fans and correlations are made of, and that the linked plots have.
_ROWS, _LINKED = 20_000, 300


class Quantity(NamedTuple):
    """One number of each sample: an output, or a curve where it scatters most.

    Attributes:
        label: what it is, with the place on its curve.
        title: the same with its unit.
        values: (n,), NaN where a sample failed.
        nominal: of the nominal sample; NaN if unknown.
        low, high: its limits; None where there is none.
        output: the output's name in the study.
        place: index of the number in the output of one sample.
    """

    label: str
    title: str
    values: np.ndarray
    nominal: float
    low: float | None
    high: float | None
    output: str
    place: tuple[int, ...]


class Fan(NamedTuple):
    """The curves of one output.

    Attributes:
        part: which.
        axis: title of what it is over.
        x: coordinates (k,).
        nominal: curve of the nominal sample (k,), or None.
        spread: envelope over a part of the samples.
        extremes: (sample, why it is shown, curve), the worst of all samples.
        linked: curves of the samples `Digest.linked` (m, k).
        low, high: limits; None where there is none.
        inside: how many samples keep the limits everywhere, and the number of all.
        left_out: samples without a whole curve.
    """

    part: Part
    axis: str
    x: np.ndarray
    nominal: np.ndarray | None
    spread: Envelope
    extremes: list[tuple[int, str, np.ndarray]]
    linked: np.ndarray
    low: float | None
    high: float | None
    inside: tuple[int, int]
    left_out: int

    @property
    def title(self) -> str:
        """What it is, with its unit."""
        return self.part.title


class Digest(NamedTuple):
    """What a report shows.

    Attributes:
        built: which samples were computed (n,).
        ok: which of them succeeded.
        whole: which of these have a value of all outputs.
        quantities: numbers of each sample.
        empty: those of which no sample has a value.
        fans: curves.
        rows: samples of which the inputs were read.
        inputs: numbers of the inputs that vary, at those samples.
        linked: samples that the linked plots have.
    """

    built: np.ndarray
    ok: np.ndarray
    whole: np.ndarray
    quantities: list[Quantity]
    empty: list[Quantity]
    fans: list[Fan]
    rows: np.ndarray
    inputs: dict[str, np.ndarray]
    linked: np.ndarray


def digest(dataset: Any, limits: Limits | None = None) -> Digest:
    """Read a study's results.

    Args:
        dataset: of a study.
        limits: output to (low, high), either of which may be None.

    Raises:
        ValueError: a limit names no output; no sample succeeded.
    """
    shown, limits = parts(dataset), dict(limits or {})
    known = {name for p in shown for name in (p.label, p.path(dataset))}
    if unknown := [n for n in limits if n not in known]:
        raise ValueError(f"limits of {unknown[0]!r}, which is no output: {sorted(known)}")
    ok, built = succeeded(dataset), computed(dataset)
    if not ok.any():
        raise ValueError(
            f"all {built.sum()} samples failed ({_causes(failures(dataset, ok | ~built))}): there "
            "is nothing to report. Mend the model, or scatter it less"
        )
    rng = np.random.default_rng(0)
    rows = _chosen(np.flatnonzero(built), _ROWS, rng)
    linked = _chosen(rows[ok[rows]], _LINKED, rng)
    quantities, empty, fans, whole = [], [], [], ok
    for part in shown:
        bounds = limits.get(part.label) or limits.get(part.path(dataset)) or (None, None)
        if part.dim:
            fan, quantity = _fan(dataset, part, ok, built, rows, bounds)
            fans += [fan] if fan else []
        else:
            quantity = _quantity(dataset, part, bounds)
        has = counted(quantity.values, ok)
        whole = whole & has
        (quantities if has.any() else empty).append(quantity)
    linked = np.union1d(linked, [s for fan in fans for s, _, _ in fan.extremes]).astype(np.int64)
    failed = _chosen(np.flatnonzero(built & ~whole), _ROWS // 4, rng)
    of_inputs = np.union1d(np.union1d(rows, failed), linked)
    inputs = varying(input_values(dataset.isel(sample=of_inputs)))
    fans = [fan._replace(linked=fan.part.at_rows(dataset, linked)) for fan in fans]
    return Digest(built, ok, whole, quantities, empty, fans, of_inputs, inputs, linked)


def _causes(lost: Failures) -> str:
    """The reasons of failures, with their numbers, and what is said of the first of each."""
    found = []
    for reason, count in Counter(lost.reasons).most_common():
        k = lost.reasons.index(reason)
        details = [f"{title} {x[k]}" for title, x in lost.details.items()]
        sample = f", as sample {lost.samples[k]}: {', '.join(details)}" if details else ""
        found.append(f"{count} {reason}{sample}")
    return "; ".join(found)


def _chosen(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """At random and not every so manieth, which could be of one kind in a regular design."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _quantity(dataset: Any, part: Part, limits: tuple[float | None, float | None]) -> Quantity:
    values = np.empty(dataset.sizes["sample"])
    for rows, read in pieces(dataset[part.variable]):
        values[rows] = part.of(read, dataset[part.variable].dims)
    drawn = part.nominal(dataset)
    centre = float("nan") if drawn is None else float(drawn)
    where = part.path(dataset), part.place(dataset)
    return Quantity(part.label, part.title, values, centre, *limits, *where)


def _fan(
    dataset: Any,
    part: Part,
    ok: np.ndarray,
    built: np.ndarray,
    rows: np.ndarray,
    limits: tuple[float | None, float | None],
) -> tuple[Fan | None, Quantity]:
    """The fan of a curve, and the number where it scatters most; no fan without a whole curve."""
    low, high = (
        end if limit is None else limit
        for limit, end in zip(limits, (-np.inf, np.inf), strict=True)
    )
    variable, count = dataset[part.variable], dataset.sizes["sample"]
    x, axis = coordinate(dataset, part.dim)
    drawn = part.nominal(dataset)
    largest, smallest, far, column = (np.full(count, np.nan) for _ in range(4))
    curves_of_rows, place = np.full((len(rows), len(x)), np.nan), -1
    for piece, read in pieces(variable):
        curves = part.of(read, variable.dims)
        good = ok[piece] & np.isfinite(curves).all(axis=1)
        if not good.any():
            continue
        if place < 0:
            place = int(np.argmax(curves[good].std(axis=0)))
        here = np.arange(piece.start, piece.stop)[good]
        centre = curves[good].mean(axis=0) if drawn is None else drawn
        largest[here], smallest[here] = curves[good].max(axis=1), curves[good].min(axis=1)
        far[here] = np.abs(curves[good] - centre).max(axis=1)
        column[here] = curves[good][:, place]
        inside = (rows >= piece.start) & (rows < piece.stop)
        curves_of_rows[inside] = curves[rows[inside] - piece.start]
    where = part.path(dataset), part.place(dataset, max(place, 0))
    if place < 0:
        return None, Quantity(part.label, part.title, column, float("nan"), *limits, *where)
    worst = [
        (sample, text, part.at_rows(dataset, np.array([sample]))[0])
        for sample, text in _extremes(far, largest, smallest, low, high).items()
    ]
    some = counted(curves_of_rows, ok[rows])  # of many samples these rows may have no whole curve
    spread = envelope(curves_of_rows, some) if some.any() else envelope([y for _, _, y in worst])
    whole = np.isfinite(largest)
    passed = int(np.sum(whole & (smallest >= low) & (largest <= high)))
    total = int(built.sum())
    fan = Fan(
        part,
        axis,
        x,
        drawn,
        spread,
        worst,
        np.empty((0, len(x))),
        *limits,
        (passed, total),
        total - int(whole.sum()),
    )
    at = f"{part.label} at {part.dim} {x[place]:.4g}"
    centre = float("nan") if drawn is None else float(drawn[place])
    return fan, Quantity(at, titled(at, part.unit), column, centre, None, None, *where)


def _extremes(
    far: np.ndarray, largest: np.ndarray, smallest: np.ndarray, low: float, high: float
) -> dict[int, str]:
    """The samples with the worst curves, and why they are."""
    reasons = {
        "farthest from nominal": np.nanargmax(far),
        "largest": np.nanargmax(largest),
        "smallest": np.nanargmin(smallest),
    }
    if np.isfinite(low) or np.isfinite(high):
        margin = np.fmin(smallest - low, high - largest)
        reasons["worst against the limits"] = np.nanargmin(margin)
    found: dict[int, str] = {}
    for text, sample in reasons.items():
        found[int(sample)] = f"{found[int(sample)]}, {text}" if int(sample) in found else text
    return found
