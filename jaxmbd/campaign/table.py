"""The spread of a study's outputs as a readable table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.observe import status_text
from jaxmbd.plumbing import text_table
from jaxmbd.statistics import NOT_COMPUTED, ValueCount, computed
from jaxmbd.variables import shown

_HEAD = ("output", "unit", "nominal", "values", "mean", "std", "min", "max", "farthest", "sample")
_NAMED = 10


class Spread(NamedTuple):
    """One output that is one number per sample, over the samples that have a value of it.

    Attributes:
        name: of the output.
        unit: its SI unit.
        nominal: its nominal value.
        values: of those samples.
        rows: numbers of these samples.
        left_out: number of samples without a value, failed ones and others.
    """

    name: str
    unit: str
    nominal: float
    values: np.ndarray
    rows: np.ndarray
    left_out: int

    @property
    def std(self) -> float:
        """Standard deviation; NaN of fewer than two samples."""
        return float(self.values.std(ddof=1)) if self.values.size > 1 else float("nan")


def spreads(results: Any) -> list[Spread]:
    """The spread of each output that is one number per sample.

    Args:
        results: the `xarray.Dataset` of a study.
    """
    good = np.flatnonzero(np.asarray(results["status"]) == Status.OK)
    found, samples = [], int(np.sum(computed(results)))
    for name, x in results.data_vars.items():
        if x.attrs.get("role") == "output" and x.dims == ("sample",):
            values = np.asarray(x)
            rows = good[np.isfinite(values[good])]
            label, nominal = x.attrs.get("path", str(name)), float(results[f"nominal.{name}"])
            left_out = samples - len(rows)
            found.append(Spread(label, x.attrs["units"], nominal, values[rows], rows, left_out))
    return found


def spread_table(results: Any) -> str:
    """A line for each output that is one number per sample (`spreads`).

    "values" is how many samples have one: of these are mean, std, min and max. "farthest" is the
    value farthest from the nominal one, "sample" the number of its sample.

    Args:
        results: the `xarray.Dataset` of a study.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Normal
        >>> inputs = {"x": Input(Normal(0.1), nominal=1.0)}
        >>> study = mbd.Study(lambda s: {"y": s["x"] ** 2}, inputs, samples=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = study.run(folder + "/s.zarr", progress=False)
        ...     print(mbd.campaign.spread_table(results).splitlines()[0])
        output  unit  nominal  values   mean    std    min    max  farthest  sample
    """
    return text_table(_HEAD, map(_line, spreads(results)), left=(0, 1))


def _line(spread: Spread) -> tuple[str, ...]:
    text, x, nominal = spread.name, spread.values, spread.nominal
    unit, factor = shown(spread.unit)
    count = f"{x.size} of {x.size + spread.left_out}" if spread.left_out else str(x.size)
    if not x.size:
        return (text, unit, f"{factor * nominal:.4g}", count, *[""] * (len(_HEAD) - 4))
    far, std = int(np.argmax(np.abs(x - nominal))), spread.std
    numbers = _numbers(
        [factor * y for y in (nominal, x.mean(), std, x.min(), x.max(), x[far])], factor * std
    )
    return (text, unit, numbers[0], count, *numbers[1:], str(spread.rows[far]))


def _numbers(values: list[float], std: float) -> list[str]:
    """Texts with the number of decimals that shows the standard deviation to three digits."""
    size = std if np.isfinite(std) and std > 0.0 else max(abs(values[0]), 1e-9)
    digits = 2 - int(np.floor(np.log10(size))) if np.isfinite(size) else 3
    return [f"{x:.{min(max(digits, 0), 9)}f}" for x in values]


def missing_line(counts: Mapping[str, ValueCount]) -> str:
    """Outputs of which samples have no value though they did not fail; empty if there are none.

    Args:
        counts: of `jaxmbd.statistics.value_counts`.

    Example:
        >>> from jaxmbd.campaign.table import missing_line
        >>> from jaxmbd.statistics import ValueCount
        >>> missing_line({"place": ValueCount(samples=100, count=97, failed=1, missing=2)})
        'without a value though ok: place in 2 samples'
    """
    missing = [f"{name} in {x.missing} samples" for name, x in counts.items() if x.missing]
    return f"without a value though ok: {', '.join(missing)}" if missing else ""


def status_line(results: Any) -> str:
    """The number of samples that succeeded, and the failures by status and reason.

    Args:
        results: the `xarray.Dataset` of a study.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Normal
        >>> inputs = {"x": Input(Normal(0.1), nominal=1.0)}
        >>> study = mbd.Study(lambda s: {"y": s["x"] ** 2}, inputs, samples=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(mbd.campaign.status_line(study.run(folder + "/s.zarr", progress=False)))
        8 of 8 samples ok
    """
    status = np.asarray(results["status"])
    text = f"{np.sum(status == Status.OK)} of {len(status)} samples ok"
    for number in np.unique(status[status != Status.OK]).tolist():
        bad = np.flatnonzero(status == number)
        names = ", ".join(map(str, bad[:_NAMED])) + (", …" if bad.size > _NAMED else "")
        text += f"; {bad.size} {_kind(number)} (sample {names})"
        text += _worst(results, bad)
    return text


def _kind(status: int) -> str:
    return "not computed yet" if status == NOT_COMPUTED else status_text(status)


def _worst(results: Any, bad: np.ndarray) -> str:
    """Which joint stayed open most often, and how far at most."""
    if "open_joint" not in results:
        return ""
    joint = np.asarray(results["open_joint"])[bad]
    named = joint[joint >= 0]
    if not named.size:
        return ""
    most = int(np.bincount(named).argmax())
    name = results["open_joint"].attrs["flag_meanings"].split(" ")[most]
    far = np.asarray(results["open_distance"])[bad][joint == most].max()
    return f", mostly {name} stays open, by up to {far:.2g} m"
