"""Write the accuracy table from a result file of `accuracy.py --json`.

    python benchmarks/accuracy_table.py

One line per file: the comparison whose error is closest to the allowed one.
"""

from __future__ import annotations

import json
from typing import Any

from _script import HERE, MEASURED, with_table

RESULTS = HERE / "results" / "accuracy.json"
PAGE = MEASURED / "accuracy.md"
BEGIN, END = "<!-- accuracy table -->", "<!-- end of accuracy table -->"

SETS = {
    "dw_generic_quarter": "double wishbone, free response",
    "dw_generic_quarter_undamped": "the same, undamped",
    "mac_generic_quarter": "MacPherson, free response",
    "mac_generic_quarter_undamped": "the same, undamped",
    "ml_generic_quarter": "multi-link, free response",
    "ml_generic_quarter_undamped": "the same, undamped",
    "kin_double_wishbone": "double wishbone, bump and steer sweeps [mm, deg]",
    "kin_macpherson": "MacPherson, bump and steer sweeps [mm, deg]",
    "kc_lotus_4x4v23": "printed statics of a double wishbone, Lotus SHARK [mm, deg]",
    "iftomm_A01_simple_pendulum": "IFToMM A01, simple pendulum",
    "iftomm_A02_nfourbar": "IFToMM A02, N = 2 and 40, through all singular positions",
    "andrews_squeezer": "IFToMM A03, Andrews' squeezer, with published values",
    "iftomm_A04_bricard": "IFToMM A04, Bricard",
    "iftomm_spatial_slider_crank": "IFToMM spatial slider-crank",
    "car_axis_dae": "car axis of the DAE test set, published values",
    "sundials_slider_crank": "SUNDIALS slider-crank with sensitivities",
    "chrono_adams_joints": "28 ADAMS runs of single joints",
    "chrono_suspension_hardpoints": "23 published corners and steerings against five rods",
    "closedloop_fourbar_pin": "closed four-bar, accelerations and λ",
    "robot_panda": "Panda arm, Pinocchio",
    "robot_ur5": "UR5 arm, Pinocchio",
    "robot_solo12": "Solo-12 quadruped, Pinocchio",
}


def lines(results: dict[str, Any]) -> list[str]:
    out = [
        "| reference | comparisons | nearest to its limit | error | allowed |",
        "|---|---|---|---|---|",
    ]
    for name, title in SETS.items():
        rows = [r for r in results["files"][name] if r["verdict"] == "ok"]
        if any(r["verdict"] not in ("ok", "note", "not run") for r in results["files"][name]):
            raise SystemExit(f"{name} does not agree: run accuracy.py and look")
        worst = max(rows, key=lambda r: r["error"] / (r["allowed"] or 1.0))
        out.append(
            f"| {title} | {len(rows)} | {worst['quantity']} | {worst['error']:.1e} "
            f"| {worst['allowed']:.1e} |"
        )
    return out


def filled(page: str, results: dict[str, Any]) -> str:
    """The page's text with its table replaced."""
    return with_table(page, BEGIN, END, lines(results))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")
