"""The explorer's speed: from a number to curves and arrows, and from a slider to a drawn curve.

    python benchmarks/explorer.py [--json FILE] [--no-browser]

For each model: the first curves and the first derivatives with all their compiling (nothing
cached), then single calls at random designs, median and 99th percentile. Then the page in a
headless browser: a slider is moved by the keyboard. `slider_to_curves_sent` is what the explorer
takes; the other two are taken in the browser, from the key to the first and to the last of all
charts being drawn, and contain the browser's own work: without a graphics card above all that of
drawing the picture, so once more with WebGL's drawing calls switched off, and all else as it is.
The curves are checked: those that were drawn are those that the mechanism with these numbers has.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
import time
import warnings
from typing import Any

import _script

_folder = tempfile.TemporaryDirectory()
os.environ["JAXMBD_LANES_CACHE"] = _folder.name
os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
_script.start(cache=False)
sys.path.append(str(_script.HERE.parent / "tests" / "helpers"))

import jax  # noqa: E402
import numpy as np  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd.observe import Sweep  # noqa: E402
from jaxmbd.viz import Exploration  # noqa: E402

MODELS = (
    "multi_link",
    "double_wishbone",
    "macpherson_steering",
    "five_point",
    "delta_robot",
    "rssr",
)
CALLS, MOVES = 300, 40
HOOK = """
window.draws = [];
const clear = CanvasRenderingContext2D.prototype.clearRect;
CanvasRenderingContext2D.prototype.clearRect = function (...box) {
  if (this.canvas.closest('.uplot')) window.draws.push(performance.now());
  return clear.apply(this, box);
};
window.addEventListener('keydown', () => { window.pressed = performance.now(); }, true);
"""
STILL = """
for (const f of ['drawElements', 'drawArrays', 'drawElementsInstanced', 'drawArraysInstanced',
                 'clear', 'blitFramebuffer']) WebGL2RenderingContext.prototype[f] = () => {};
"""
PAGES = {"picture_drawn_by_the_processor": HOOK, "picture_not_drawn": HOOK + STILL}


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--no-browser", action="store_true", help="leave the page out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {
        "what": "ms, median and 99th percentile; first calls in s",
        "machine": f"{platform.machine()}, {len(jax.devices())} device(s)",
        "models": {name: of_model(name) for name in MODELS},
    }
    if not options.no_browser:
        found["page"] = {
            what: asyncio.run(of_page("multi_link", hook)) for what, hook in PAGES.items()
        }
    found["load"] = [round(x, 1) for x in os.getloadavg()] if hasattr(os, "getloadavg") else None
    print(_script.as_json(found))
    _script.write(options.json, found)


def of_model(name: str) -> dict[str, Any]:
    """Times of a model's curves and derivatives."""
    begun = time.perf_counter()
    design = Exploration.of(getattr(mbd.zoo, name)())
    made = time.perf_counter()
    design.response  # noqa: B018
    first = time.perf_counter()
    design.improvement()
    second = time.perf_counter()
    curves, slopes, closed = [], [], 0
    for x in np.random.default_rng(0).uniform(-0.2, 0.2, (CALLS, len(design.x))):
        t0 = time.perf_counter()
        closed += not design.live(x).trouble
        t1 = time.perf_counter()
        design.live.slopes(x)
        curves.append(t1 - t0)
        slopes.append(time.perf_counter() - t1)
    return {
        "numbers": len(design.x),
        "curves": len(design.live.about),
        "places": len(design.live.x),
        "closed": f"{closed} of {CALLS}",
        "made_s": round(made - begun, 2),
        "first_curves_s": round(first - made, 2),
        "first_derivatives_s": round(second - first, 2),
        "curves_ms": of_times(curves),
        "derivatives_ms": of_times(slopes),
    }


def of_times(seconds: list[float]) -> list[float]:
    """Median and 99th percentile in milliseconds."""
    return [round(1e3 * float(x), 3) for x in np.percentile(seconds, [50, 99])]


async def of_page(name: str, hook: str) -> dict[str, Any]:
    """Times in the browser, from a key on a slider to the drawn charts."""
    import browser

    explorer = mbd.viz.explore(getattr(mbd.zoo, name)(), title=name, browser=False)
    design, page = explorer.design, explorer
    charts, path = len(design.live.about), page.sliders.paths[0]
    before = design.numbers[design.index(path)]
    size: dict[str, Any] = {"width": 1500, "height": 900, "arguments": browser.SOFTWARE_3D}
    first, last = [], []
    async with browser.page("about:blank", **size) as tab:
        await tab.do("Page.addScriptToEvaluateOnNewDocument", source=hook)
        await tab.do("Page.navigate", url=explorer.url)
        await tab.until(f"document.querySelectorAll('.uplot canvas').length === {charts}", 60.0)
        await asyncio.sleep(3.0)
        await tab.evaluate("[...document.querySelectorAll('[role=slider]')][1].focus()")
        page.busy.clear()
        for k in range(MOVES):
            await tab.evaluate("window.draws = []")
            name_, code = ("ArrowRight", 39) if k < MOVES // 2 else ("ArrowLeft", 37)
            key = {"key": name_, "code": name_, "windowsVirtualKeyCode": code}
            for kind in ("keyDown", "keyUp"):
                await tab.do("Input.dispatchKeyEvent", type=kind, **key)
            await tab.until(f"window.draws.length >= {charts}", 20.0)
            first.append(await tab.evaluate("window.draws[0] - window.pressed"))
            last.append(await tab.evaluate(f"window.draws[{charts - 1}] - window.pressed"))
            if k == MOVES // 2 - 1:
                page.shown()
                check(design, page, path, before)
            await asyncio.sleep(0.2)
    explorer.close()
    return {
        "model": name,
        "moves": MOVES,
        "slider_to_curves_sent_ms": of_times(page.busy),
        "key_to_first_chart_ms": of_times([1e-3 * x for x in first]),
        "key_to_all_charts_ms": of_times([1e-3 * x for x in last]),
    }


def check(design: Exploration, page: Any, path: str, before: float) -> None:
    """The charts show the curves of the mechanism with the slider's number."""
    now = design.numbers[design.index(path)]
    assert now > before, (before, now)
    sweep = design.live.experiment
    mech = mbd.set_variables(design.live.unknowns.base, {path: now})
    plain = sweep.on(mech) if hasattr(sweep, "on") else sweep
    assert isinstance(plain, Sweep)
    curves = plain.trajectory(mech).curves
    from jaxmbd.variables import shown

    for name, about in design.live.about.items():
        drawn = page.charts.shown(name)
        np.testing.assert_allclose(
            drawn[-2], shown(about.unit)[1] * curves[name], rtol=1e-10, atol=1e-12
        )
        assert not np.allclose(drawn[1], drawn[-2], rtol=1e-6, atol=0.0), name


if __name__ == "__main__":
    main()
