"""Reports: what they say agrees with the samples; one small file that needs no network."""

import asyncio
import json
import re

import numpy as np
import pytest
from browser import chromium, page
from study_dataset import TRAVEL, study_dataset

from jaxmbd.report import ReportPage, write_report
from jaxmbd.report.digest import digest
from jaxmbd.statistics import sensitivities

pytest.importorskip("altair")
pytest.importorskip("xarray")
pytest.importorskip("vl_convert")

LIMITS = {"frequency": (4.9, 5.2), "toe": (-0.002, 0.002)}


@pytest.fixture(scope="module")
def dataset():
    return study_dataset()


@pytest.fixture(scope="module")
def report(dataset, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    # Of curves too: the report takes them where the curve scatters most.
    gradient = sensitivities(
        lambda s: {"toe": s["a"] * TRAVEL + s["b"]}, {"a": 0.0, "b": 0.0}, {"a": 0.1, "b": 0.008}
    )
    return write_report(dataset, path, limits=LIMITS, gradients=gradient)


def test_the_worst_samples_are_those_of_all(dataset):
    found = digest(dataset.chunk({"sample": 300}) if dataset.chunks else dataset, LIMITS)
    toe, ok = dataset["toe"].values, dataset["status"].values == 0
    (fan,) = found.fans
    reasons = {text: sample for sample, why, _ in fan.extremes for text in why.split(", ")}
    assert reasons["largest"] == np.nanargmax(toe.max(axis=1))
    assert reasons["smallest"] == np.nanargmin(toe.min(axis=1))
    far = np.abs(toe - dataset["nominal.toe"].values).max(axis=1)
    assert reasons["farthest from nominal"] == np.nanargmax(far)
    beyond = np.maximum(toe.max(axis=1) - 0.002, -0.002 - toe.min(axis=1))
    assert reasons["worst against the limits"] == np.nanargmax(beyond)
    assert set(reasons.values()) <= set(found.linked.tolist())
    np.testing.assert_array_equal(fan.linked, toe[found.linked])
    inside = (np.abs(toe[ok]) <= 0.002).all(axis=1)
    assert fan.inside == (inside.sum(), ok.size) and fan.left_out == np.sum(~ok)
    assert fan.spread.count == ok.sum()
    np.testing.assert_allclose(fan.spread.quantiles[3], np.median(toe[ok], axis=0))


def test_numbers_are_found_in_outputs_of_every_shape(dataset):
    found = digest(dataset)
    at = TRAVEL[np.nanstd(dataset["toe"].values, axis=0).argmax()]
    labels = [q.label for q in found.quantities]
    assert labels == [f"toe at travel {at:.4g}", "frequency", *(f"hub[axis={a}]" for a in "xyz")]
    np.testing.assert_array_equal(found.quantities[3].values, dataset["hub"].values[:, 1])
    assert found.quantities[1].nominal == pytest.approx(5.0329, abs=1e-4)
    names = {"points/ball/x", "points/ball/y", "points/ball/z", "bodies/wheel/mass"}
    assert names | {"forces/spring/stiffness"} == set(found.inputs)


def test_the_file_is_small_and_needs_no_network(report):
    text = report.read_text("utf-8")
    assert report.stat().st_size < 2e6
    markup = re.sub(r"(<script[^>]*>).*?</script>", r"\1", text, flags=re.DOTALL)
    assert markup.count("<script") == 2
    assert not re.search(r"\ssrc=|<link|@import|url\(", markup)
    assert "<title>A corner &lt;with&gt; scatter &amp; more</title>" in text


def cells(text, heading):
    table = text.split(f"<h2>{heading}</h2>")[1].split("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_tables_say_what_the_samples_say(report, dataset):
    text = report.read_text("utf-8")
    x = dataset["frequency"].values
    count = int(np.isfinite(x).sum())
    inside = ((x >= 4.9) & (x <= 5.2)).sum() / 2000
    limits = {row[0]: row for row in cells(text, "Limits")}
    assert limits["frequency [Hz]"][1:4] == ["4.9", "5.2", f"{inside:.5g}"]
    assert limits["frequency [Hz]"][-1] == str(2000 - count)
    failures = cells(text, "Failures")
    assert failures[1] == ["not assembled", str(2000 - count)]
    assert f"{2000 - count} failed" in text
    assert "tierod&lt;inner&gt;" in text


def test_yields_are_of_all_and_missing_values_are_told(dataset, tmp_path):
    """Of an output some samples have no value though they are OK; of another none has one."""
    ok = dataset["status"].values == 0
    seldom = np.where(ok & (np.arange(2000) % 5 == 0), 1.0 + 0.001 * np.arange(2000), np.nan)
    about = {"role": "output", "path": "seldom", "units": "m"}
    lost = {"role": "output", "path": "lost", "units": "m"}
    given = dataset.assign(
        seldom=("sample", seldom, about),
        lost=("sample", np.full(2000, np.nan), lost),
        never=(("sample", "travel"), np.full((2000, 13), np.nan), {**lost, "path": "never"}),
    )
    limits = {"seldom": (0.0, 2.0), "lost": (0.0, 1.0), "never": (None, 1.0)}
    path = write_report(given, tmp_path / "report.html", limits=limits)
    text = path.read_text("utf-8")
    count, good = np.isfinite(seldom).sum(), np.sum(seldom <= 2.0)
    missing = ok.sum() - count
    rows = {row[0]: row for row in cells(text, "Limits")}
    assert rows["seldom [m]"][3] == f"{good / 2000:.5g}"
    assert rows["seldom [m]"][-1] == str(2000 - count)
    for name in ("lost [m]", "never [m]"):
        assert rows[name][3] == "0" and rows[name][-1] == "2000"
    assert f"seldom [m] in {missing} " in text and f"lost [m] in {ok.sum()} " in text
    assert f'<td class="text">{count} of 2000</td>' in text
    table = text.split("<h2>Failures</h2>")[1]
    assert f'<td class="text">seldom [m]</td><td>{missing}</td>' in table


def test_samples_that_are_not_computed_are_neither_good_nor_bad(dataset):
    half = dataset.copy(deep=True)
    half["status"][1200:] = -1
    for name in ("toe", "frequency", "hub"):
        half[name][1200:] = np.nan
    found = digest(half, LIMITS)
    bad = int((half["status"].values > 0).sum())
    assert found.built.sum() == 1200 and found.ok.sum() == 1200 - bad
    assert found.fans[0].inside[1] == 1200 and found.rows.max() < 1200


def test_figures_have_their_numbers(report):
    specs = [
        json.loads(x)
        for x in re.findall(r'"#figure\d+", (\{.*\}), \{"mode"', report.read_text("utf-8"))
    ]
    text = json.dumps(specs)
    assert "share of the variance, by gradients" in text and "rank correlation" in text
    bars = [row for data in specs for rows in _values(data) for row in rows if "measure" in row]
    exact = [b["value"] for b in bars if "gradients" in b["measure"] and b["output"][:3] == "toe"]
    np.testing.assert_allclose(exact, [0.64, 0.36], rtol=1e-6)
    of_toe = [
        b for b in bars if b["output"].startswith("toe") and b["measure"] == "rank correlation"
    ]
    assert {b["input"] for b in of_toe if b["rank"] < 2} == {"points/ball/x", "points/ball/z"}


def _values(spec):
    if isinstance(spec, dict):
        if isinstance(spec.get("values"), list):
            yield [row for row in spec["values"] if isinstance(row, dict)]
        spec = list(spec.values())
    for part in spec if isinstance(spec, list) else []:
        yield from _values(part)


def test_sobol_indices_are_shown_for_their_design(tmp_path):
    pytest.importorskip("SALib")
    path = write_report(study_dataset(saltelli=True), tmp_path / "sobol.html")
    assert "Sobol index, total" in path.read_text("utf-8")


def test_studies_of_a_few_numbers_have_a_report_too(dataset, tmp_path):
    few = dataset.isel(sample=np.flatnonzero(dataset["status"].values == 0)[:3])
    few = few.drop_vars(["toe", "nominal.toe", "open_joint", "open_distance", "hub", "travel"])
    few.attrs = {}
    for name, given in (("three", few), ("one", few.isel(sample=[0]))):
        text = write_report(given, tmp_path / f"{name}.html").read_text("utf-8")
        assert "No sample failed" in text and "<h2>Curves</h2>" not in text
        assert "frequency [Hz]" in text


def test_what_cannot_be_reported_is_said(report, dataset, tmp_path):
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_report(dataset, report)
    with pytest.raises(ValueError, match="'tow', which is no output"):
        write_report(dataset, tmp_path / "x.html", limits={"tow": (0.0, 1.0)})
    lost = dataset.assign(status=dataset["status"] * 0 + 1)
    lost["status"].attrs = dataset["status"].attrs
    with pytest.raises(
        ValueError, match="all 2000 samples failed .2000 not assembled, as sample 0: open joint"
    ):
        write_report(lost, tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


# The linked figure; how many of its curves are coloured; where it is.
FIGURE = "[...document.querySelectorAll('figure')].find(f => f.textContent.includes('across: '))"
COLOURED = f"""
[...{FIGURE}.querySelectorAll('path[stroke="#d95f02"]')]
  .filter(p => Number(p.getAttribute('opacity') ?? 1) > 0.5).length
"""
BOX = f"""
(() => {{
  const svg = {FIGURE}.querySelector('svg');
  svg.scrollIntoView({{block: 'center'}});
  const r = svg.getBoundingClientRect();
  return [r.x, r.y, r.width, r.height];
}})()
"""


async def browse(report):
    async with page(report) as tab:
        await tab.until(
            "document.querySelectorAll('figure svg.marks').length"
            " == document.querySelectorAll('figure').length"
        )
        x, y, width, height = await tab.evaluate(BOX)
        found = [await tab.evaluate(COLOURED)]
        # A narrow frame, a wide one begun beside it, and a click that removes it.
        for start, end in ((0.12, 0.2), (0.4, 0.1), (0.42, 0.42)):
            below = 0.85 if start != end else 0.15
            frame = [(x + start * width, y + 0.15 * height), (x + end * width, y + below * height)]
            await tab.drag(*frame)
            await asyncio.sleep(0.3)
            found.append(await tab.evaluate(COLOURED))
        return found, tab.console


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason="no Chromium")
def test_a_selection_in_a_browser_shows_its_curves(report):
    pytest.importorskip("tornado")
    (none, some, more, again), console = asyncio.run(browse(report))
    assert console == []
    assert none == again == 0 < some < more


def test_a_page_without_charts_is_small_and_escapes():
    sheet = ReportPage("a < b")
    sheet.table(["x & y"], [[1.23456789], ["<i>"]])
    sheet.raw("<svg></svg>")
    text = sheet.html()
    assert len(text) < 5000 and "a &lt; b" in text and "x &amp; y" in text and "&lt;i&gt;" in text
    assert "1.2346" in text and "<svg></svg>" in text
