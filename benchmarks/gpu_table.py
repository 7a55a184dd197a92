"""Write the table of speeds on a GPU from a result file of `gpu.py`.

    python benchmarks/gpu_table.py

One line per mechanism, work and number type, of the fastest batch; what was not measured is empty.
"""

from __future__ import annotations

import json
from typing import Any

from _script import HERE, MEASURED, markdown, with_table
from gpu_cases.record import FORWARD, GRADIENT, LANES, LAST, ROLLOUT, VMAP
from throughput_table import TITLES, ratio

RESULTS = HERE / "results" / "gpu.json"
PAGE = MEASURED / "gpu.md"
BEGIN, END = "<!-- GPU table -->", "<!-- end of GPU table -->"

Row = dict[str, Any]


def fastest(rows: list[Row], key: str = "per_second") -> Row | None:
    return max((r for r in rows if key in r), key=lambda r: r[key], default=None)


def number(row: Row | None, key: str, scale: float = 1.0) -> str:
    if row is None or row.get(key) is None:
        return ""
    x = row[key] * scale
    return f"{x:.0f}" if x >= 1000.0 else f"{x:.3g}"


HEAD = (
    "mechanism", "work", "batch", "on the device [10⁶/s]", "by the wall [10⁶/s]",
    "share of peak [%]", "GB/s", "registers / stack [B]", "clock [MHz]", "power [W]",
    "× `jax.vmap`", "difference ‖ scatter",
)  # fmt: skip


def cells_of(rows: list[Row], case: str, work: str, dtype: str) -> list[str] | None:
    """A line of the table; None if it was not measured."""
    here = [r for r in rows if (r["case"], r["work"], r["dtype"]) == (case, work, dtype)]
    steps = max((r["steps"] for r in here), default=1)
    ours = [r for r in here if r["column"] in (LANES, LAST) and r["steps"] == steps]
    best = fastest(ours, "kernel_per_second") or fastest(ours)
    if best is None:
        return None
    vmap = fastest([r for r in here if r["column"] == VMAP])
    beside = [r for r in here if vmap and r["column"] == LANES and r["steps"] == vmap["steps"]]
    gaps = [r["difference"] for r in ours if r.get("difference") is not None]
    scatters = [r["scatter"] for r in ours if r.get("scatter") is not None]
    cells = [
        TITLES[case],
        f"{work}, {dtype}",
        f"{best['batch']}" + (", batch last" if best["column"] == LAST else ""),
        number(best, "kernel_per_second", 1e-6),
        number(fastest(ours), "per_second", 1e-6),
        number(best, "share", 100.0),
        number(best, "gb_per_second"),
        f"{number(best, 'registers')} / {number(best, 'local_bytes')}",
        number(best, "clock_mhz"),
        number(best, "power_w"),
        ratio(next((r for r in beside if vmap and r["batch"] == vmap["batch"]), None), vmap),
        " ‖ ".join(f"{max(x):.0e}" if max(x) else "0" for x in (gaps, scatters) if x),
    ]
    return cells


def lines(results: dict[str, Any]) -> list[str]:
    device, versions, rows = results["device"], results["versions"], results["rows"]
    driver = next((r["driver"] for r in rows if r.get("driver")), None)
    made = [
        cells_of(rows, case, work, dtype)
        for dtype in ("float64", "float32")
        for work in (FORWARD, ROLLOUT, GRADIENT)
        for case in TITLES
    ]
    found = [cells for cells in made if cells]
    kept = [k for k in range(len(HEAD)) if any(cells[k] for cells in found)]
    steps = max((r["steps"] for r in rows), default=1)
    return [
        f"{device['name']}{f', driver {driver}' if driver else ''}, JAX {versions['jax']}, commit "
        f"{results['commit'][:10]}, {results['date']}. Rollouts and gradients are of {steps} "
        "projected RK4 steps, and their speeds are steps per second. The speed on the device is "
        "that of the kernels alone, at the batch that is named; the share is that of the peak of "
        f"the vector units ({results['peak_flops']['float64'] / 1e12:.1f} TFLOP/s in float64); "
        "GB/s are of arguments and results. The difference is the largest relative one from the "
        "host's results (0: equal bits), and beside it stands the scatter, the largest that "
        "neighbouring floats make on the host.",
        "",
        *markdown([HEAD[k] for k in kept], ([cells[k] for k in kept] for cells in found)),
    ]


def filled(page: str, results: dict[str, Any]) -> str:
    """The page's text with its table replaced."""
    return with_table(page, BEGIN, END, lines(results))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")
