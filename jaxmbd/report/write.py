"""A study's report: one HTML file that opens anywhere, the network off."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.plumbing import optional
from jaxmbd.report import charts
from jaxmbd.report.charts import driver_bars, rank_correlations, strongest_inputs
from jaxmbd.report.digest import Digest, Failures, Fan, Limits, Quantity, digest, failures
from jaxmbd.statistics import (
    Association,
    Sensitivity,
    capability,
    counted,
    failure_map,
    proportion_interval,
    worst,
)

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 1180px; margin: 2em auto;
       padding: 0 1.5em; }
h1 { font-size: 1.6em; margin-bottom: .2em; }
h2 { font-size: 1.2em; margin-top: 2.2em; border-bottom: 1px solid #ddd; padding-bottom: .2em; }
p.note { color: #555; max-width: 60em; }
table { border-collapse: collapse; margin: .8em 0; font-size: .9em; display: block;
        overflow-x: auto; }
th, td { padding: .25em .7em; border-bottom: 1px solid #e4e4e4; text-align: right; }
th:first-child, td:first-child, td.text { text-align: left; }
th { border-bottom: 1px solid #999; font-weight: 600; }
figure { margin: 0 1.2em 1em 0; display: inline-block; vertical-align: top; }
details { margin: .8em 0; }
pre { background: #f6f6f6; padding: 1em; overflow-x: auto; font-size: .85em; }
.vega-bind { margin: .2em 1em .2em 0; display: inline-block; }
.vega-bind select { max-width: 26em; }
.bad { color: #b3400a; font-weight: 600; }
"""


class ReportPage:
    """A page that grows from the top; `html` is the whole file.

    Example:
        >>> from jaxmbd.report import ReportPage
        >>> page = ReportPage("Corner")
        >>> page.table(["point", "x"], [["wheel", 0.1]])
        >>> page.html().startswith("<!DOCTYPE html>")
        True
    """

    def __init__(self, title: str):
        self.title = title
        self._body: list[str] = [f"<h1>{html.escape(title)}</h1>"]
        self._specs: list[dict[str, Any]] = []

    def heading(self, text: str) -> None:
        """A section begins."""
        self._body.append(f"<h2>{html.escape(text)}</h2>")

    def note(self, text: str, *, bad: bool = False) -> None:
        """A paragraph."""
        kind = "note bad" if bad else "note"
        self._body.append(f'<p class="{kind}">{html.escape(text)}</p>')

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A table; numbers with five digits."""
        head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
        lines = ["".join(map(_cell, row)) for row in rows]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        self._body.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def figure(self, chart: Any) -> None:
        """An Altair chart."""
        name = f"figure{len(self._specs)}"
        self._specs.append(chart.to_dict())
        self._body.append(f'<figure id="{name}"></figure>')

    def raw(self, text: str) -> None:
        """HTML or SVG as it is."""
        self._body.append(text)

    def details(self, summary: str, data: Any) -> None:
        """Data that is shown when it is asked for."""
        text = html.escape(json.dumps(data, indent=1, ensure_ascii=False, default=str))
        title = html.escape(summary)
        self._body.append(f"<details><summary>{title}</summary><pre>{text}</pre></details>")

    def html(self) -> str:
        """The file: the plotting library, the tables, and the figures' descriptions."""
        library = ""
        if self._specs:
            library = optional("vl_convert", "report", "a report").javascript_bundle()
        options = json.dumps({"mode": "vega-lite", "renderer": "svg", "actions": False})
        calls = "\n".join(
            f'vegaEmbed("#figure{i}", {_in_script(spec)}, {options}).catch(console.error);'
            for i, spec in enumerate(self._specs)
        )
        title = html.escape(self.title)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n"
            f'<script type="text/javascript">{library}</script>\n</head>\n<body>\n'
            + "\n".join(self._body)
            + f'\n<script type="text/javascript">\n{calls}\n</script>\n</body>\n</html>\n'
        )


def number(x: float) -> str:
    """A number with five digits, a dash for none."""
    return "–" if np.isnan(x) else f"{x:.5g}"


def _cell(x: Any) -> str:
    if isinstance(x, str):
        return f'<td class="text">{html.escape(x)}</td>'
    shown = "–" if x is None else number(x) if isinstance(x, float) else str(x)
    return f"<td>{html.escape(shown)}</td>"


def _in_script(spec: Any) -> str:
    """JSON that may stand in a script element."""
    text = json.dumps(spec, separators=(",", ":"), ensure_ascii=False)
    return text.replace("</", "<\\/").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


# Figures of each kind, inputs that the linked plots offer, failed samples that are listed.
_FIGURES, _LINKED_INPUTS, _FAILED = 24, 16, 20


def write_report(
    results: Any,
    path: str | Path,
    *,
    limits: Limits | None = None,
    gradients: Mapping[str, Sensitivity] | None = None,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the report of a study as one HTML file.

    It has the spread of all outputs, fans of curves with the worst samples, what drives each
    output, plots in which samples selected by their inputs or outputs show their curves, how far
    the estimates have converged, the failures, and where the results come from.

    Args:
        results: dataset of a study, or the folder of its store.
        path: of the file.
        limits: output to (low, high), either of which may be None: yields and Cpk.
        gradients: of `jaxmbd.statistics.sensitivities`, for the shares that they predict.
        title: by default the study's.
        overwrite: whether a file that is there may be replaced.

    Returns:
        the file's path.

    Raises:
        FileExistsError: there is such a file, and `overwrite` is not set.
        ImportError: altair, vl-convert-python or xarray is not installed.
        ValueError: all samples failed, or a limit is of no output.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Normal
        >>> inputs = {"x": Input(Normal(0.1), nominal=1.0)}
        >>> study = mbd.Study(lambda s: {"y": s["x"] ** 2}, inputs, samples=8)
        >>> from jaxmbd.report import write_report
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = study.run(folder + "/s.zarr", progress=False)
        ...     write_report(results, folder + "/s.html").name
        's.html'
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists; overwrite=True replaces it")
    dataset = results
    if isinstance(results, (str, Path)):
        dataset = optional("xarray", "campaign", "a report").open_zarr(str(results), chunks=None)
    charts.altair()
    found = digest(dataset, limits)
    ranked = rank_correlations(found._replace(quantities=found.quantities[:_FIGURES]))
    page = ReportPage(title or dataset.attrs.get("title") or "Study")
    _overview(page, dataset, found)
    _distributions(page, found)
    _fans(page, found)
    _drivers(page, dataset, found, ranked, gradients or {})
    _linked(page, found, strongest_inputs(ranked)[:_LINKED_INPUTS])
    _convergence(page, found)
    _failed(page, dataset, found)
    _provenance(page, dataset)
    target.write_text(page.html(), encoding="utf-8")
    return target


def _overview(page: ReportPage, dataset: Any, found: Digest) -> None:
    count, built, ok = len(found.ok), int(found.built.sum()), int(found.ok.sum())
    study = dataset.attrs.get("study", {})
    kind = study.get("design", {}).get("design", "")
    samples = f"{count} samples" if built == count else f"{built} of {count} samples computed"
    text = samples + (f", {kind.replace('_', ' ')}, seed {study.get('seed')}" if kind else "")
    page.note(
        f"{text}; {built - ok} failed ({100.0 * (built - ok) / built:.3g} %). Statistics of an "
        "output are of the samples that have a value of it."
    )
    if missing := _missing(found):
        listed = "; ".join(f"{title} in {n} ({100.0 * n / built:.3g} %)" for title, n in missing)
        page.note(f"Without a value, though the sample did not fail: {listed}.", bad=True)
    shown = (*found.quantities, *found.empty)
    columns = ["output", "nominal", "values", "mean", "std", "5 %", "median", "95 %", "smallest"]
    page.table([*columns, "sample", "largest", "sample"], [_row(q, found) for q in shown])
    bounded = [_bounded(q, found) for q in shown if (q.low, q.high) != (None, None)]
    bounded += [_everywhere(fan) for fan in found.fans if (fan.low, fan.high) != (None, None)]
    if bounded:
        page.heading("Limits")
        columns = ["output", "low", "high", "yield", "at least", "at most", "Cp", "Cpk"]
        page.table([*columns, "without a value"], bounded)
        page.note(
            f"The yield is of all {built} samples, with its 95 % confidence interval: one that "
            "failed, or has no value, does not keep the limits. Cp and Cpk are of those that have "
            "a value."
        )


def _missing(found: Digest) -> list[tuple[str, int]]:
    """Outputs of which samples have no value though they did not fail, and how many."""
    shown = (*found.quantities, *found.empty)
    counts = [(q.title, int((found.ok & ~counted(q.values)).sum())) for q in shown]
    return [(title, n) for title, n in counts if n]


def _row(q: Quantity, found: Digest) -> list[Any]:
    ok, built = found.ok, int(found.built.sum())
    x = q.values[counted(q.values, ok)]
    count = f"{len(x)}" if len(x) == built else f"{len(x)} of {built}"
    if not len(x):
        return [q.title, q.nominal, count, *[None] * 9]
    low, middle, high = np.quantile(x, [0.05, 0.5, 0.95]).tolist()
    extreme = worst(q.values, ok)
    std = float(x.std(ddof=1)) if len(x) > 1 else float("nan")
    ends = [float(x.min()), extreme.smallest, float(x.max()), extreme.largest]
    centre = 0.0 if abs(q.nominal) < 1e-9 * std else q.nominal  # what rounding left of zero
    return [q.title, centre, count, float(x.mean()), std, low, middle, high, *ends]


def _bounded(q: Quantity, found: Digest) -> list[Any]:
    held = capability(q.values[found.built], found.ok[found.built], low=q.low, high=q.high)
    about = [held.fraction, held.least, held.most, held.cp, held.cpk, held.left_out]
    return [q.title, q.low, q.high, *about]


def _everywhere(fan: Fan) -> list[Any]:
    """The row of limits that a curve should keep as a whole."""
    passed, count = fan.inside
    about = [passed / count, *proportion_interval(passed, count), None, None, fan.left_out]
    return [f"{fan.title}, everywhere", fan.low, fan.high, *about]


def _distributions(page: ReportPage, found: Digest) -> None:
    page.heading("Distributions")
    page.note(
        "Of the samples that have a value. Dashed: nominal value (black) and limits (orange). Of a "
        "curve, where it scatters most."
    )
    for quantity in found.quantities[:_FIGURES]:
        page.figure(charts.histogram(quantity))
    _left_out(page, found.quantities)


def _fans(page: ReportPage, found: Digest) -> None:
    if not found.fans:
        return
    page.heading("Curves")
    page.note(
        "Bands have 99 %, 90 % and 50 % of the samples with a whole curve at each point. Black: "
        "nominal."
    )
    for fan in found.fans[:_FIGURES]:
        page.figure(charts.fan(fan))
    _left_out(page, found.fans)


def _left_out(page: ReportPage, shown: Any) -> None:
    if len(shown) > _FIGURES:
        page.note(f"{len(shown) - _FIGURES} more are not drawn.")


def _drivers(
    page: ReportPage,
    dataset: Any,
    found: Digest,
    ranked: Mapping[str, Association],
    gradients: Mapping[str, Sensitivity],
) -> None:
    shown = found._replace(quantities=found.quantities[:_FIGURES])
    bars = driver_bars(dataset, shown, ranked, gradients)
    if not bars:
        return
    page.heading("What drives what")
    measures = {bar["measure"] for bar in bars}
    page.note(
        "Rank correlations see any monotone relation; they are between -1 and 1, and of the "
        "samples that have a value of the output."
    )
    if any("Sobol" in m for m in measures):
        page.note(
            "Sobol indices are shares of the variance, of an input alone (first) and with all its "
            "interactions (total), with 95 % confidence intervals."
        )
    if any("gradients" in m for m in measures):
        page.note("Gradients at the nominal sample predict the shares of a nearly linear output.")
    page.figure(charts.drivers(bars, list(dict.fromkeys(bar["output"] for bar in bars))))


def _linked(page: ReportPage, found: Digest, names: Sequence[str]) -> None:
    at = np.searchsorted(found.rows, found.linked)
    columns = {q.title: q.values[found.linked] for q in found.quantities[:_FIGURES]}
    columns |= {name: found.inputs[name][at] for name in names}
    if len(columns) < 2 or len(found.linked) < 2:
        return
    page.heading("Samples")
    page.note(
        f"{len(found.linked)} of the samples, the worst among them. Draw a frame in the left plot "
        "to see the curves of what it encloses; a click beside it removes it."
    )
    first = [*names, *list(columns)[1:]][0]
    across = (first, list(columns)[0])
    page.figure(charts.linked(found.linked.tolist(), columns, found.fans[:6], across))


def _convergence(page: ReportPage, found: Digest) -> None:
    page.heading("Convergence")
    page.note(
        "Estimates from the first n samples that have a value, with 95 % confidence intervals (of "
        "independent samples; Latin hypercubes and Sobol's sequence do better)."
    )
    for quantity in found.quantities[:6]:
        values = np.where(found.ok, quantity.values, np.nan)
        page.figure(charts.convergence(quantity._replace(values=values)))


def _failed(page: ReportPage, dataset: Any, found: Digest) -> None:
    page.heading("Failures")
    lost, missing = failures(dataset, found.ok | ~found.built), _missing(found)
    if not len(lost.samples):
        page.note("No sample failed.")
    else:
        _reasons(page, lost)
    if missing:
        page.table(["without a value, though the sample did not fail", "samples"], missing)
    good = found.whole[found.rows]
    told = failure_map(found.inputs, good)
    if not told:
        return
    page.note("Inputs that tell samples that failed or have no value from others, best first:")
    columns = ["input", "larger in these", "by chance", "median of these", "median of others"]
    page.table(columns, [list(s) for s in told[:8]])
    best = [s.name for s in told[:2]]
    passed, failed = (
        {n: found.inputs[n][np.flatnonzero(which)[:1000]] for n in best} for which in (good, ~good)
    )
    page.figure(charts.separated(failed, passed))


def _reasons(page: ReportPage, lost: Failures) -> None:
    """How many samples failed, and the first of them."""
    counts = Counter(lost.reasons).most_common()
    page.table(["reason", "samples"], [(reason or "failed", n) for reason, n in counts])
    rows = range(min(len(lost.samples), _FAILED))
    page.table(
        ["sample", "reason", *lost.details],
        [[lost.samples[i], lost.reasons[i], *(x[i] for x in lost.details.values())] for i in rows],
    )
    if len(lost.samples) > _FAILED:
        page.note(f"{len(lost.samples) - _FAILED} more failed samples are in the store.")


def _provenance(page: ReportPage, dataset: Any) -> None:
    page.heading("Where this comes from")
    study, origin = dataset.attrs.get("study", {}), dataset.attrs.get("provenance", {})
    rows = []
    for name, about in study.get("inputs", {}).items():
        scatter = {k: v for k, v in about.items() if k not in ("nominal", "unit", "text", "dims")}
        kind = scatter.pop("distribution", "fixed")
        rest = ", ".join(f"{k} = {v}" for k, v in scatter.items())
        rows.append([name, _short(about.get("nominal")), about.get("unit", ""), kind, _short(rest)])
    if rows:
        page.table(["input", "nominal", "unit", "distribution", "parameters"], rows)
    if origin:
        page.table(["provenance", ""], [[k, _short(v)] for k, v in origin.items()])
    page.details("the whole description", {k: dataset.attrs[k] for k in dataset.attrs})


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(f"{k} {v}" for k, v in value.items())
    if isinstance(value, list) and all(isinstance(x, str) for x in value):
        value = ", ".join(value)
    text = f"{value}"
    return text if len(text) <= 120 else f"{text[:120]} …"
