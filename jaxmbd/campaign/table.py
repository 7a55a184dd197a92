"""The spread of a campaign as a readable table."""

from __future__ import annotations

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.campaign.monte_carlo import spread
from jaxmbd.campaign.results import Results

SHOWN = {"m": ("mm", 1e3), "rad": ("deg", 180.0 / np.pi), "s": ("ms", 1e3)}
"""SI unit to the displayed unit and the factor."""

_HEAD = ("", "unit", "nominal", "mean", "std", "min", "max", "worst", "sample")


def shown(unit: str) -> tuple[str, float]:
    """The unit in which a number is shown, and the factor from SI."""
    return SHOWN.get(unit, (unit, 1.0))


def spread_table(results: Results) -> str:
    """A line for each output that is one number per sample, over the samples that succeeded.

    "worst" is the value farthest from the nominal one, "sample" the index of its sample.
    """
    lines = []
    for name, variable in results.variables.items():
        if variable.role != "output" or variable.dims != ("sample",):
            continue
        if name in ("status", "drift"):
            continue
        unit, factor = shown(variable.unit)
        s = spread(variable.values, results.ok, float(results.nominal[name]))
        numbers = _numbers([x * factor for x in s[:-1]], s.std * factor)
        lines.append((variable.text, unit, *numbers, str(s.sample)))
    widths = [max(len(row[i]) for row in [_HEAD, *lines]) for i in range(len(_HEAD))]
    rows = [
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [_HEAD, *lines]
    ]
    return "\n".join([rows[0], "-" * max(map(len, rows)), *rows[1:]])


def _numbers(values: list[float], std: float) -> list[str]:
    """Texts with the number of decimals that shows the standard deviation to three digits."""
    size = std if np.isfinite(std) and std > 0.0 else max(abs(values[0]), 1e-9)
    digits = 2 - int(np.floor(np.log10(size))) if np.isfinite(size) else 3
    return [f"{x:.{min(max(digits, 0), 9)}f}" for x in values]


def status_line(results: Results) -> str:
    """The number of samples that succeeded, failures by status, and the largest drift, if any."""
    status = results["status"]
    text = f"{np.sum(status == 0)} of {len(status)} samples ok"
    for kind in Status:
        bad = np.flatnonzero(status == kind)
        if kind == Status.OK or not bad.size:
            continue
        names = ", ".join(map(str, bad[:10])) + (", …" if bad.size > 10 else "")
        text += f"; {bad.size} {kind.name.lower().replace('_', ' ')} (sample {names})"
    if results.ok.any() and "drift" in results.variables:
        text += f"; largest closure error {np.max(results['drift'][results.ok]):.0e} m"
    return text
