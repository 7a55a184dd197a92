"""What drives each output: the bars of rank correlations, Sobol indices and gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxmbd.report.charts import rounded
from jaxmbd.report.digest import Digest, Quantity
from jaxmbd.sampling import Saltelli, design
from jaxmbd.sampling.design_types import space_of
from jaxmbd.statistics import Association, Sensitivity, correlation_table, sobol_indices

# Bars of each measure.
_MOST = 12

Bar = dict[str, Any]


def driver_bars(
    dataset: Any,
    found: Digest,
    ranked: Mapping[str, Association],
    gradients: Mapping[str, Sensitivity],
) -> list[Bar]:
    """Bars as `jaxmbd.report.charts.drivers` draws them, for all quantities and measures.

    Args:
        dataset: of the study.
        found: its numbers.
        ranked: of `rank_correlations`.
        gradients: sensitivities of outputs, as far as they are known.
    """
    bars: list[Bar] = []
    for q in found.quantities:
        if q.title in ranked:
            names, values = ranked[q.title][:2]
            bars += _bars(q.title, "rank correlation", names, values)
        bars += _sobol(dataset, q, found)
        if exact := gradients.get(q.output):
            shares = exact.shares[q.place]
            bars += _bars(q.title, "share of the variance, by gradients", exact.names, shares)
    outputs = dict.fromkeys(bar["output"] for bar in bars)
    for measure in dict.fromkeys(bar["measure"] for bar in bars):
        known = {bar["output"] for bar in bars if bar["measure"] == measure}
        for output in outputs.keys() - known:  # a figure without data has no scale
            bars += _bars(output, measure, ["not known"], [0.0])
    return bars


def rank_correlations(found: Digest) -> dict[str, Association]:
    """Rank correlations of all quantities, by their titles, with the numbers of the inputs."""
    values = {q.title: q.values[found.rows] for q in found.quantities}
    return correlation_table(found.inputs, values, found.ok[found.rows]) if found.inputs else {}


def strongest_inputs(ranked: Mapping[str, Association]) -> list[str]:
    """Numbers of the inputs: those that drive each output most, then the second ones, and so on."""
    orders = [a.names for a in ranked.values()]
    longest = max(map(len, orders), default=0)
    return list(
        dict.fromkeys(order[i] for i in range(longest) for order in orders if i < len(order))
    )


def _sobol(dataset: Any, q: Quantity, found: Digest) -> list[Bar]:
    said = dataset.attrs.get("study", {})
    if said.get("design", {}).get("design") != Saltelli.kind:
        return []
    made = design(said["design"])
    assert isinstance(made, Saltelli)
    space = space_of((n, tuple(shape)) for n, shape in said["drawn"])
    try:
        s = sobol_indices(made, space, q.values, found.ok)
    except ValueError:  # too few of its base samples succeeded
        return []
    first = _bars(q.title, "Sobol index, first", s.names, s.first, s.first_error)
    return first + _bars(q.title, "Sobol index, total", s.names, s.total, s.total_error)


def _bars(output: str, measure: str, names: Any, values: Any, error: Any = None) -> list[Bar]:
    """The largest of the values, with their intervals if there is an error."""
    values = np.asarray(values)
    half = np.full(values.shape, np.nan) if error is None else error
    order = np.argsort(-np.abs(values), kind="stable")[:_MOST]
    return [
        {"output": output, "measure": measure, "input": names[i], "rank": rank}
        | dict(
            zip(
                ("value", "low", "high"),
                rounded([values[i], values[i] - half[i], values[i] + half[i]]),
                strict=True,
            )
        )
        for rank, i in enumerate(order.tolist())
    ]
