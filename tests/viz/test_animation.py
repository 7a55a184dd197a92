"""Animations as files: self-contained, played by a browser without a network, films."""

import asyncio
import base64
import io
import re
import shutil
import sys

import numpy as np
import pytest
from browser import SOFTWARE_3D, chromium, page

import jaxmbd as mbd
from jaxmbd.viz import animation, movie, moving_picture, picture, show, viser_scene

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def rssr():
    mech = mbd.zoo.rssr()
    turn = np.linspace(0.0, 2.0 * np.pi, 25)
    run = mbd.simulate_driven(mech, {"crank": lambda t: 2.0 * np.pi / 1.2 * t}, t=turn * 0.2)
    return mech, run


@pytest.fixture(scope="module")
def file(rssr, tmp_path_factory):
    pytest.importorskip("viser")
    path = tmp_path_factory.mktemp("animation") / "rssr.html"
    title = "RSSR <at 50 rpm> & more"
    return animation(path, *rssr, title=title, traces=[("coupler", "B")], arrows=["A"])


def test_the_file_needs_no_network(file):
    text = file.read_text("utf-8")
    assert 5e5 < file.stat().st_size < 2e6
    assert "<title>RSSR &lt;at 50 rpm&gt; &amp; more</title>" in text
    assert "longest arrow: " in text
    head = text[: text.index("__VISER_EMBED_DATA__")]
    assert not re.search(r"<(script|link|img|iframe)[^>]*\s(src|href)=[\"']?(https?:)?//", head)


def test_show_in_a_notebook_and_at_the_prompt(rssr, monkeypatch, capsys):
    pytest.importorskip("viser")
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    shown = show(rssr[0], title="still")
    assert len(opened) == 1 and opened[0].startswith("file://")
    assert shown._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html')
    assert repr(shown).startswith("Page of 0.")
    monkeypatch.setattr(viser_scene, "in_notebook", lambda: True)
    still = show(rssr[0])
    assert len(opened) == 1 and repr(still).startswith("Page of 0.")
    assert capsys.readouterr().out == ""  # of the viewer


def test_a_picture_shows_itself_in_a_notebook(rssr):
    """Whether or not pyplot was imported, as its last value."""
    assert picture(rssr[0])._repr_png_().startswith(b"\x89PNG")


def test_a_film_has_all_frames(rssr, tmp_path):
    from PIL import Image

    done = []
    path = movie(tmp_path / "rssr.gif", *rssr, rate=5.0, progress=lambda k, n: done.append((k, n)))
    with Image.open(path) as film:
        assert film.n_frames == done[-1][1] == len(done) == 7
        first = np.asarray(film.convert("RGB"), float)
        film.seek(3)
        assert np.abs(np.asarray(film.convert("RGB"), float) - first).max() > 50.0
    assert [x.name for x in tmp_path.iterdir()] == ["rssr.gif"]


@pytest.mark.slow
def test_a_film_by_ffmpeg(rssr, tmp_path):
    if shutil.which("ffmpeg") is None:
        pytest.importorskip("imageio_ffmpeg")
    path = movie(tmp_path / "rssr.mp4", *rssr, rate=5.0)
    assert b"ftyp" in path.read_bytes()[:16] and path.stat().st_size > 5000


def test_what_no_film_can_be_made_of(rssr, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="neither .mp4 nor .gif"):
        movie(tmp_path / "rssr.avi", *rssr)
    monkeypatch.setattr(moving_picture.shutil, "which", lambda _: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match=r"\.gif needs none.*pip install 'jaxmbd\[film\]'"):
        movie(tmp_path / "rssr.mp4", *rssr)

    def stop(done, count):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        movie(tmp_path / "rssr.gif", *rssr, rate=5.0, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_shows_what_is_there(rssr, tmp_path):
    from PIL import Image

    picture(*rssr, tmp_path / "first.png")
    picture(*rssr, tmp_path / "later.png", frame=12)
    first, later = (
        np.asarray(Image.open(tmp_path / f"{n}.png").convert("RGB"), float)
        for n in ("first", "later")
    )
    drawn = np.ptp(first, axis=2) > 40.0  # coloured, unlike the ground and its grid
    assert 0.005 < drawn.mean() < 0.3
    rows, columns = np.nonzero(drawn)
    assert rows.min() > 0 and rows.max() < len(first) - 1 and columns.max() < len(first[0]) - 1
    assert np.mean(np.abs(first - later).max(axis=2) > 40.0) > 0.005
    with pytest.raises(ValueError, match="'a.png' is no motion; name the file by path="):
        picture(rssr[0], "a.png")
    with pytest.raises(ValueError, match="frame=50, but a single pose has one frame, 0"):
        picture(rssr[0], rssr[1].q[0], frame=50)
    with pytest.raises(ValueError, match=r"frame=5000, but there are \d+ frames: give 0 to"):
        picture(*rssr, frame=5000)


TIME = "Number(document.querySelector('input').value)"
SILENT = ("GL Driver Message", "THREE.Clock")  # of the graphics card's substitute, and of a library


async def watch(path):
    from PIL import Image

    async with page(path, 900, 600, SOFTWARE_3D) as tab:
        await tab.until("!!(document.querySelector('canvas') && document.querySelector('input'))")
        await tab.until(f"{TIME} > 0.0")
        pictures = []
        for share in (0.1, 0.6):
            x, y, w, h = await tab.evaluate(
                "(() => {const r = document.querySelector('.mantine-Slider-track')"
                ".getBoundingClientRect(); return [r.x, r.y, r.width, r.height]})()"
            )
            at = (x + share * w, y + 0.5 * h)
            await tab.drag(at, at)
            await asyncio.sleep(3.0)
            found = await tab.do("Page.captureScreenshot")
            data = base64.b64decode(found["data"])
            time = await tab.evaluate(TIME)
            pictures.append((time, np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), float)))
        return pictures, [x for x in tab.console if not any(s in x for s in SILENT)]


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason="no Chromium")
def test_a_browser_plays_it_without_a_network(file):
    pytest.importorskip("tornado")
    (early, late), console = asyncio.run(watch(file))
    assert console == []
    assert early[0] == pytest.approx(0.12, abs=0.11) and late[0] == pytest.approx(0.72, abs=0.11)
    inside = slice(80, 480)
    for _, seen in (early, late):
        assert np.mean(np.ptp(seen[inside], axis=2) > 40.0) > 0.003
    moved = np.abs(early[1] - late[1])[inside].max(axis=2) > 40.0
    assert moved.mean() > 0.003
