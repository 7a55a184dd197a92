"""The explorer's page: what its sliders and buttons do, seen from the server and in a browser."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser")

from browser import SOFTWARE_3D, chromium, page  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd.design import Between  # noqa: E402
from jaxmbd.observe import Coordinate, Sweep  # noqa: E402
from jaxmbd.viz import Explorer, explore  # noqa: E402
from jaxmbd.viz.explorer.widgets import FEW, MOST  # noqa: E402

INBOARD = "points/tierod_inboard/z"


@pytest.fixture(scope="module")
def opened():
    explorer = explore(mbd.zoo.multi_link(), vary="points/*", title="corner", browser=False)
    yield explorer
    explorer.close()


@pytest.fixture
def explorer(opened):
    """The page with the corner as given, and nothing kept."""
    opened.design.variants.clear()
    opened.sliders.search.value = ""
    opened.where.value = 0.0
    opened.act(opened.design.reset)
    opened.act(lambda: opened.design.choose("toe", "flatter"))
    assert opened.shown()
    return opened


def drawn(explorer, name="toe"):
    """The axis and the curves of a chart, as they were sent."""
    return explorer.charts.shown(name)


def test_curves_follow_a_slider(explorer):
    """In the slider's millimetres to the chart's degrees; the given design stays."""
    x = drawn(explorer)
    np.testing.assert_allclose(x[1], x[-2])
    explorer.sliders.handle(INBOARD).value = -110.0
    assert explorer.shown()
    assert explorer.design.numbers[explorer.design.index(INBOARD)] == pytest.approx(-0.110)
    moved = mbd.set_variables(mbd.zoo.multi_link(), {INBOARD: -0.110})
    sweep = explorer.design.live.experiment
    for name in ("toe", "camber"):
        axis, given, *_, now, dot = drawn(explorer, name)
        np.testing.assert_allclose(axis, np.linspace(-60.0, 60.0, len(axis)), rtol=0, atol=1e-9)
        np.testing.assert_allclose(now, np.rad2deg(sweep(moved)[name]), rtol=1e-9, atol=1e-12)
        assert not np.allclose(now, given, rtol=1e-3)
        assert np.isfinite(dot).sum() == 1


def test_the_sliders_that_matter_most_are_up(explorer):
    assert len(explorer.sliders.paths) == FEW
    assert INBOARD in explorer.sliders.paths
    explorer.curve.value = "roll_centre_height"
    assert explorer.shown() and explorer.design.curve == "roll_centre_height"
    assert INBOARD not in explorer.sliders.paths


def test_a_click_on_a_hardpoint_brings_its_sliders(explorer):
    explorer.look_at("upper_arm_ball")
    assert explorer.sliders.paths == [f"points/upper_arm_ball/{a}" for a in "xyz"]
    explorer.sliders.search.value = "*/z"
    assert len(explorer.sliders.paths) == MOST
    explorer.sliders.search.value = "no such number"
    assert explorer.sliders.paths == []


def test_following_the_arrows_moves_the_sliders(explorer):
    before = explorer.design.improvement()[0]
    explorer.act(explorer.improve)
    assert explorer.shown()
    assert explorer.design.improvement()[0] < before
    moved = [x.path for x in explorer.design.changes()]
    assert moved and set(moved) <= set(explorer.sliders.paths)
    for path in moved:
        k = explorer.design.index(path)
        now = 1e3 * explorer.design.numbers[k]
        assert explorer.sliders.handle(path).value == pytest.approx(now, abs=0.051)


def test_moves_without_a_pause_are_one_step_of_history(explorer):
    slider = explorer.sliders.handle(INBOARD)
    for z in (-115.0, -114.0, -113.0):
        slider.value = z
    explorer.act(explorer.design.undo)
    assert explorer.shown() and explorer.design.changes() == []
    assert slider.value == pytest.approx(-116.0)
    np.testing.assert_allclose(drawn(explorer)[1], drawn(explorer)[-2], rtol=0, atol=1e-12)


def test_kept_variants_stay_in_the_charts(explorer):
    explorer.sliders.handle(INBOARD).value = -110.0
    assert explorer.shown()
    explorer.act(explorer.design.keep)
    kept = drawn(explorer)[-2]
    explorer.act(explorer.design.reset)
    assert explorer.shown()
    axis, given, variant, now, _ = drawn(explorer)
    np.testing.assert_array_equal(variant, kept)
    np.testing.assert_allclose(now, given, rtol=0, atol=1e-12)


def test_kept_variants_have_buttons_that_restore_them(explorer):
    for z in (-110.0, -112.0):
        explorer.sliders.handle(INBOARD).value = z
        explorer.act(explorer.design.keep)
    explorer.act(explorer.design.reset)
    assert explorer.shown()
    assert [b.label for _, b in explorer.restoring] == ["Restore variant 1", "Restore variant 2"]
    explorer.restoring[0][1].value = True  # pressed
    assert explorer.shown() and explorer.sliders.handle(INBOARD).value == pytest.approx(-110.0)
    now, kept = drawn(explorer)[-2], drawn(explorer)[2]
    np.testing.assert_array_equal(now, kept)
    explorer.design.variants.clear()
    explorer.act(explorer.design.reset)
    assert explorer.shown() and explorer.restoring == []


def test_the_place_that_is_shown_follows_its_slider(explorer):
    explorer.where.value = 30.0
    assert explorer.shown()
    x, dot = drawn(explorer)[0], drawn(explorer)[-1]
    assert x[np.flatnonzero(np.isfinite(dot))[0]] == pytest.approx(30.0)


def test_exports_are_sent_to_the_browser_that_asked(explorer, tmp_path):
    explorer.sliders.handle(INBOARD).value = -110.0
    assert explorer.shown()
    sent = {}
    client = SimpleNamespace(send_file_download=sent.__setitem__)
    explorer.export(SimpleNamespace(client=client))
    assert list(sent) == ["corner.json", "corner_changes.csv"]
    (tmp_path / "corner.json").write_bytes(sent["corner.json"])
    again = mbd.load(tmp_path / "corner.json")
    assert again.points["tierod_inboard"][2] == pytest.approx(-0.110)
    assert INBOARD.encode() in sent["corner_changes.csv"]


@pytest.mark.slow
def test_what_does_not_close_or_is_no_mechanism_is_told():
    """The page says so, shows the rest, and goes on."""
    sweep = Sweep({"crank": np.linspace(0.3, 1.5, 21)}, {"rocker": Coordinate("rocker")})
    vary = {"points/*": Between(-9.0, 9.0, scale=1.0), "bodies/*/mass": Between(-9.0, 9.0)}
    explorer = explore(mbd.zoo.rssr(), sweep, vary, browser=False, port=8200)
    design = explorer.design
    try:
        name = next(n for n in design.names if n.startswith("points/") and n.endswith("/x"))
        start = design.numbers[design.index(name)]
        for k in range(12):
            explorer.slide(name, start + 0.5 * k)
            if not design.response.reached.all():
                break
        assert explorer.shown() and "stays open by" in explorer.trouble
        reached = design.response.reached
        assert 0 < reached.sum() < 21 and reached[explorer.place]
        assert (np.isfinite(drawn(explorer, "rocker")[-2]) == reached).all()
        picture = explorer.picture
        assert not picture.note.visible and None in {n.opacity for n in picture.view.nodes}
        explorer.slide(name, start + 8.5)
        assert explorer.shown() and not design.response.reached.any()
        assert picture.note.visible and None not in {n.opacity for n in picture.view.nodes}
        explorer.act(design.reset)
        assert explorer.shown() and explorer.trouble == ""
        assert not picture.note.visible and None in {n.opacity for n in picture.view.nodes}
        mass = next(n for n in design.names if n.endswith("/mass"))
        explorer.slide(mass, -1.0)
        assert explorer.shown() and "mass" in explorer.trouble
        notes = []
        client = SimpleNamespace(add_notification=lambda *a, **_: notes.append(a))
        explorer.export(SimpleNamespace(client=client))
        assert "mass" in str(notes)
        explorer.act(design.undo)
        assert explorer.shown() and explorer.trouble == ""
    finally:
        explorer.close()


@pytest.mark.slow
def test_planar_mechanisms_have_a_page(monkeypatch):
    """In a notebook, whose cell shows it, no other window opens."""
    windows = []
    monkeypatch.setattr("webbrowser.open", windows.append)
    monkeypatch.setattr("jaxmbd.viz.explorer.page.in_notebook", lambda: True)
    explorer = explore(mbd.zoo.five_bar(), vary="points/*", port=8210)
    assert isinstance(explorer, Explorer) and explorer.url in explorer._repr_html_()
    assert windows == []
    try:
        path = explorer.sliders.paths[0]
        explorer.slide(path, explorer.design.numbers[explorer.design.index(path)] + 1e-3)
        assert explorer.shown() and explorer.trouble == ""
        assert all(way[2] == 0.0 for way in explorer.design.arrows().values())
    finally:
        explorer.close()


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason="needs Chromium")
def test_a_key_on_a_slider_changes_the_curves_in_the_browser(explorer, tmp_path):
    asyncio.run(_key_on_a_slider(explorer, tmp_path / "explorer.png"))


async def _key_on_a_slider(explorer, picture):
    charts = "[...document.querySelectorAll('.uplot canvas')]"
    pixels = f"{charts}.map(c => c.toDataURL()).join('')"
    async with page(explorer.url, width=1500, height=1000, arguments=SOFTWARE_3D) as tab:
        count = len(explorer.design.live.about)
        await tab.until(f"{charts}.length === {count}", seconds=60.0)
        sliders = "[...document.querySelectorAll('[role=slider]')]"
        await tab.until(f"{sliders}.length === {1 + FEW}", seconds=60.0)
        await asyncio.sleep(2.0)
        at = drawn(explorer)[-2].copy()
        await tab.evaluate(f"window.before = {pixels}, 0")
        await tab.evaluate(f"{sliders}[1].focus()")
        for _ in range(20):
            for kind in ("keyDown", "keyUp"):
                key = dict(key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
                await tab.do("Input.dispatchKeyEvent", type=kind, **key)
        path = explorer.sliders.paths[0]
        start = explorer.design.live.unknowns.start[explorer.design.index(path)]
        for _ in range(300):
            if explorer.design.numbers[explorer.design.index(path)] > start + 1.5e-3:
                break
            await asyncio.sleep(0.1)
        assert explorer.shown()
        assert np.max(np.abs(drawn(explorer)[-2] - at)) > 1e-3
        await tab.until(f"{pixels} !== window.before")
        await tab.screenshot(picture)
        told = [x for x in tab.console if "error" in x.lower() or "exception" in x.lower()]
        assert not told, told
    assert picture.stat().st_size > 50_000
