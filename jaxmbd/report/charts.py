"""The figures of a report, as Altair charts.

Among them is what drives each output: the bars of rank correlations, Sobol indices and gradients.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from jaxmbd.plumbing import optional
from jaxmbd.report.digest import Digest, Fan, Quantity
from jaxmbd.statistics import (
    Association,
    Sensitivity,
    convergence_of_mean,
    convergence_of_quantile,
    correlation_table,
    sobol_of,
)

_BLUE, _ORANGE, _GREY = "#2f6f9f", "#d95f02", "#9a9a9a"
_WIDTH, _HEIGHT = 300, 170
_BINS = 60


def altair() -> Any:
    """The plotting library, or how to install it."""
    return optional("altair", "report", "a report")


def rounded(values: Any) -> list[Any]:
    """Numbers with six digits, and None for those that are not finite, to keep the file small."""
    flat = np.asarray(values, np.float64).ravel().tolist()
    return [float(f"{x:.6g}") if np.isfinite(x) else None for x in flat]


def rows_of(**columns: Any) -> Any:
    """Altair data of equally long columns."""
    lists = {n: x if isinstance(x, list) else rounded(x) for n, x in columns.items()}
    rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return altair().Data(values=rows)


def histogram(quantity: Quantity) -> Any:
    """The distribution of a number, with its nominal value and its limits."""
    alt = altair()
    x = quantity.values[np.isfinite(quantity.values)]
    counts, edges = np.histogram(x, _BINS if np.ptp(x) > 0.0 else 1)
    scale = alt.Scale(zero=False, nice=False)
    bars = (
        alt.Chart(rows_of(low=edges[:-1], high=edges[1:], count=counts))
        .mark_bar(color=_BLUE, opacity=0.8)
        .encode(
            x=alt.X("low:Q", bin="binned", scale=scale, title=_wrapped(quantity.title)),
            x2="high:Q",
            y=alt.Y("count:Q", title="samples"),
            tooltip=["low:Q", "high:Q", "count:Q"],
        )
    )
    lines = [*_limit("nominal", quantity.nominal, "x"), *_limits(quantity, "x")]
    return alt.layer(bars, *lines).properties(width=_WIDTH, height=_HEIGHT)


def _limits(shown: Quantity | Fan, channel: str) -> list[Any]:
    return [*_limit("low", shown.low, channel), *_limit("high", shown.high, channel)]


def _limit(what: str, value: float | None, channel: str) -> list[Any]:
    """A dashed line at a value; none if there is no value."""
    if value is None or not np.isfinite(value):
        return []
    chart = altair().Chart(rows_of(at=[value], what=[what]))
    rule = chart.mark_rule(color="black" if what == "nominal" else _ORANGE, strokeDash=[4, 2])
    return [rule.encode(tooltip=["what:N", "at:Q"], **{channel: "at:Q"})]


def fan(curves: Fan) -> Any:
    """Bands of the curves' quantiles, the nominal one, and the worst samples."""
    alt = altair()
    q = dict(zip(curves.spread.levels.tolist(), curves.spread.quantiles, strict=True))
    levels = (0.005, 0.05, 0.25, 0.75, 0.95, 0.995)
    data = rows_of(x=curves.x, median=q[0.5], **{f"q{i}": q[x] for i, x in enumerate(levels)})
    ticks = alt.Axis(tickCount=7, labelOverlap="greedy", labelSeparation=6)
    x = alt.X("x:Q", title=curves.axis, scale=alt.Scale(nice=False), axis=ticks)
    y = {"title": _wrapped(curves.title), "scale": alt.Scale(zero=False)}
    base = alt.Chart(data).encode(x=x)
    layers = [
        base.mark_area(color=_BLUE, opacity=opacity).encode(y=alt.Y(f"q{i}:Q", **y), y2=f"q{5 - i}")
        for i, opacity in ((0, 0.2), (1, 0.3), (2, 0.4))
    ]
    layers.append(base.mark_line(color=_BLUE, strokeWidth=1).encode(y="median:Q"))
    if curves.nominal is not None:
        nominal = alt.Chart(rows_of(x=curves.x, y=curves.nominal))
        layers.append(nominal.mark_line(color="black").encode(x=x, y="y:Q"))
    k = len(curves.x)
    worst = rows_of(
        x=np.tile(curves.x, len(curves.extremes)),
        y=np.concatenate([y for _, _, y in curves.extremes]),
        sample=[f"{s}: {text}" for s, text, _ in curves.extremes for _ in range(k)],
    )
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=300)
    colour = alt.Color("sample:N", scale=alt.Scale(scheme="dark2"), legend=legend)
    lines = alt.Chart(worst).mark_line(strokeWidth=1.5)
    layers.append(lines.encode(x=x, y="y:Q", color=colour, tooltip=["sample:N", "x:Q", "y:Q"]))
    layers += _limits(curves, "y")
    return alt.layer(*layers).properties(width=_WIDTH + 60, height=_HEIGHT + 50)


def _menu(name: str, options: Sequence[str], value: str, label: str = "") -> Any:
    """A parameter that is chosen from a list."""
    alt = altair()
    bind = alt.binding_select(options=list(options), name=f"{label or name}: ")
    return alt.param(name=name, bind=bind, value=value)


def drivers(bars: Sequence[Mapping[str, Any]], outputs: Sequence[str]) -> Any:
    """What drives an output, chosen from a list: a column of bars for each measure.

    Args:
        bars: ``output``, ``measure``, ``input``, ``value``, and ``low`` and ``high`` of the bar's
            confidence interval or None.
        outputs: in the order of the list.
    """
    alt = altair()
    names, order = alt.Axis(labelLimit=230), alt.EncodingSortField("rank", op="min")
    y = alt.Y("input:N", sort=order, title=None, axis=names)
    columns = []
    for i, measure in enumerate(dict.fromkeys(bar["measure"] for bar in bars)):
        own = [bar for bar in bars if bar["measure"] == measure]
        base = alt.Chart(alt.Data(values=own)).transform_filter("datum.output == driven")
        base = base.encode(y=y)
        bar = base.mark_bar(color=_BLUE if i % 2 == 0 else _ORANGE)
        layers = [bar.encode(x=alt.X("value:Q", title=measure), tooltip=["input:N", "value:Q"])]
        if any(row["low"] is not None for row in own):
            layers.append(base.mark_rule().encode(x="low:Q", x2="high:Q"))
        columns.append(alt.layer(*layers).properties(width=210, height=alt.Step(16)))
    return alt.hconcat(*columns).add_params(_menu("driven", outputs, outputs[0], "output"))


def linked(
    samples: Sequence[int],
    numbers: Mapping[str, Any],
    curves: Sequence[Fan],
    across: Sequence[str],
) -> Any:
    """A scatter plot whose selection shows the curves of the selected samples.

    Args:
        samples: their numbers.
        numbers: by title, of each sample.
        curves: fans with the curves of these samples.
        across: titles of those numbers that are first on the axes.
    """
    alt = altair()
    columns = {"sample": map(int, samples)} | {n: rounded(x) for n, x in numbers.items()}
    columns |= {c.title: [rounded(y) for y in c.linked] for c in curves}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    menus = [_menu(n, list(numbers), at) for n, at in zip(("across", "up"), across, strict=True)]
    brush = alt.selection_interval(name="brush")
    data = alt.Data(values=rows)
    places = {"across_value": "datum[across]", "up_value": "datum[up]"}
    free = alt.Scale(zero=False)
    scatter = (
        alt.Chart(data, title=alt.TitleParams(alt.expr("up + '  over  ' + across"), anchor="start"))
        .mark_circle(size=28)
        .transform_calculate(**places)
        .encode(
            x=alt.X("across_value:Q", scale=free, title=None),
            y=alt.Y("up_value:Q", scale=free, title=None),
            color=alt.condition(brush, alt.value(_ORANGE), alt.value(_BLUE), empty=False),
            tooltip=["sample:Q", "across_value:Q", "up_value:Q"],
        )
        .add_params(brush, *menus)
        .properties(width=_WIDTH + 40, height=_HEIGHT + 130)
    )
    if not curves:
        return scatter
    return alt.hconcat(scatter, _selected(data, curves, places, brush))


def _selected(data: Any, curves: Sequence[Fan], places: Mapping[str, str], brush: Any) -> Any:
    """All curves in grey, those of the selected samples in colour."""
    alt = altair()
    names = [c.title for c in curves]
    axes = alt.param(name="axes", value={c.title: rounded(c.x) for c in curves})
    over = alt.param(name="over", value={c.title: c.axis for c in curves})
    title = alt.TitleParams(alt.expr("curve + '  over  ' + over[curve]"), anchor="start")
    every = (
        alt.Chart(data)
        .transform_calculate(**places, curve_y="datum[curve]", curve_x="axes[curve]")
        .transform_flatten(["curve_x", "curve_y"])
        .encode(
            x=alt.X("curve_x:Q", title=None, scale=alt.Scale(nice=False)),
            y=alt.Y("curve_y:Q", title=None, scale=alt.Scale(zero=False)),
            detail="sample:Q",
        )
    )
    grey = every.mark_line(color=_GREY, opacity=0.3, strokeWidth=1)
    # Drawn invisibly rather than left out, so that the scales always have their domain.
    seen = alt.condition(brush, alt.value(0.7), alt.value(0.0), empty=False)
    chosen = every.mark_line(color=_ORANGE, strokeWidth=1.2).encode(opacity=seen)
    chart = alt.layer(grey, chosen, title=title).add_params(_menu("curve", names, names[0]))
    return chart.add_params(axes, over).properties(width=_WIDTH + 140, height=_HEIGHT + 130)


def convergence(quantity: Quantity) -> Any:
    """Mean and 95 % quantile of the first n samples, with their confidence intervals."""
    alt = altair()
    charts = []
    for what, found in (
        ("mean", convergence_of_mean(quantity.values)),
        ("95 % quantile", convergence_of_quantile(quantity.values, 0.95)),
    ):
        known = np.isfinite(found.low) & np.isfinite(found.high)
        columns = {"n": found.counts, "estimate": found.estimate}
        columns |= {"low": found.low, "high": found.high}
        scale = alt.Scale(type="log", nice=False)
        base = alt.Chart(rows_of(**{n: x[known] for n, x in columns.items()}))
        base = base.encode(x=alt.X("n:Q", scale=scale, title="samples"))
        y = alt.Y("low:Q", scale=alt.Scale(zero=False), title=None)
        band = base.mark_area(color=_BLUE, opacity=0.3).encode(y=y, y2="high:Q")
        line = base.mark_line(color=_BLUE).encode(y="estimate:Q")
        of = f" (of {found.counts[-1]} samples)" if found.left_out else ""
        charts.append(alt.layer(band, line, title=f"{what} of {quantity.title}{of}"))
    return alt.hconcat(*(c.properties(width=_WIDTH, height=_HEIGHT - 30) for c in charts))


def separated(failed: Mapping[str, Any], passed: Mapping[str, Any]) -> Any:
    """Failed and passed samples over the two inputs that tell them apart best."""
    alt = altair()
    first, *_, last = [*failed, *failed]
    x, y = (
        alt.X("x:Q", title=first, scale=alt.Scale(zero=False)),
        alt.Y("y:Q", title=last, scale=alt.Scale(zero=False)),
    )
    layers = []
    for kind, numbers, colour in (("passed", passed, _GREY), ("failed", failed, _ORANGE)):
        data = rows_of(x=numbers[first], y=numbers[last], kind=[kind] * len(numbers[first]))
        points = alt.Chart(data).mark_circle(size=18, opacity=0.6, color=colour)
        layers.append(points.encode(x=x, y=y, tooltip=["kind:N", "x:Q", "y:Q"]))
    return alt.layer(*layers).properties(width=_WIDTH + 100, height=_HEIGHT + 100)


def _wrapped(title: str) -> list[str]:
    """A long title in several lines."""
    return textwrap.wrap(title, 44)


# Bars of each measure.
_MOST = 12

Bar = dict[str, Any]


def driver_bars(
    dataset: Any,
    found: Digest,
    ranked: Mapping[str, Association],
    gradients: Mapping[str, Sensitivity],
) -> list[Bar]:
    """Bars as `drivers` draws them, for all quantities and measures.

    Rank correlations are those of `rank_correlations`, gradients as far as they are known.
    """
    bars: list[Bar] = []
    for q in found.quantities:
        if q.title in ranked:
            names, values = ranked[q.title][:2]
            bars += _bars(q.title, "rank correlation", names, values)
        bars += _sobol(dataset, q)
        if exact := gradients.get(q.output):
            shares = exact.shares[q.place]
            bars += _bars(q.title, "share of the variance, by gradients", exact.names, shares)
    outputs = list(dict.fromkeys(bar["output"] for bar in bars))
    for measure in dict.fromkeys(bar["measure"] for bar in bars):
        known = {bar["output"] for bar in bars if bar["measure"] == measure}
        for output in [x for x in outputs if x not in known]:  # to give its figure a scale
            bars += _bars(output, measure, ["not known"], [0.0])
    return bars


def rank_correlations(found: Digest) -> dict[str, Association]:
    """Rank correlations of all quantities, by their titles, with the numbers of the inputs."""
    values = {q.title: q.values[found.rows] for q in found.quantities}
    return correlation_table(found.inputs, values, found.ok[found.rows]) if found.inputs else {}


def strongest_inputs(ranked: Mapping[str, Association]) -> list[str]:
    """Numbers of the inputs: those that drive each output most, then the second ones, and so on."""
    rounds = zip_longest(*(a.names for a in ranked.values()))
    return [n for n in dict.fromkeys(chain.from_iterable(rounds)) if n is not None]


def _sobol(dataset: Any, q: Quantity) -> list[Bar]:
    try:
        s = sobol_of(dataset, q.values)
    except ValueError:  # another design, or too few of its base samples succeeded
        return []
    first = _bars(q.title, "Sobol index, first", s.names, s.first, s.first_error)
    return first + _bars(q.title, "Sobol index, total", s.names, s.total, s.total_error)


def _bars(output: str, measure: str, names: Any, values: Any, error: Any = None) -> list[Bar]:
    """The largest of the values, with their intervals if there is an error."""
    values = np.asarray(values)
    half = np.full(values.shape, np.nan) if error is None else error
    found = []
    for rank, i in enumerate(np.argsort(-np.abs(values), kind="stable")[:_MOST].tolist()):
        value, low, high = rounded([values[i], values[i] - half[i], values[i] + half[i]])
        bar: Bar = {"output": output, "measure": measure, "input": names[i], "rank": rank}
        found.append(bar | {"value": value, "low": low, "high": high})
    return found
