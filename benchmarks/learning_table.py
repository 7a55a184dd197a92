"""Write the tables of what was learned from its result file.

python benchmarks/learning_table.py
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from _script import HERE, MEASURED, markdown, with_table

RESULTS = HERE / "results" / "learning.json"
PAGE = MEASURED / "learning.md"
BEGIN, END = "<!-- learning table -->", "<!-- end of learning table -->"
DIGITS = {"acceleration [m/s²]": 3, "tyre load [N]": 0, "travel [mm]": 1, "moment [N m]": 0}


def reached(curve: list[list[float]], level: float) -> float | None:
    """Samples after which a curve is first above a level."""
    return next((samples for samples, reward in curve if reward >= level), None)


def one(sees: str, name: str, runs: list[dict[str, Any]]) -> list[str]:
    """The means of the seeds, and the range of their rewards."""
    cells = [f"{np.mean([x[c] for x in runs]):.{digits}f}" for c, digits in DIGITS.items()]
    rewards = sorted(x["reward"] for x in runs)
    reward = " to ".join(f"{x:.3f}" for x in (rewards[:1] if len(runs) == 1 else rewards[::2]))
    seconds = f"{np.mean([x['seconds'] for x in runs]):.0f}" if "seconds" in runs[0] else ""
    return [sees, name, *cells, reward, seconds]


def ride(found: dict[str, Any]) -> list[str]:
    """Measures on unseen roads."""
    camera, blind = found["with a camera"], found["without"]
    rows = [
        one("", "passive", [blind["passive"]]),
        one("", "skyhook", [blind["skyhook"]]),
        one("", "SHAC", blind["SHAC"]),
        one("camera", "SHAC", camera["SHAC"]),
        one("camera", "PPO", camera["PPO"]),
    ]
    return markdown(["sees", "", *DIGITS, "reward", "training [s]"], rows)


def reach(found: dict[str, Any]) -> list[str]:
    """The five-bar at unseen points."""
    columns = {"median [mm]": 2, "largest [mm]": 1, "reward": 4, "seconds": 0}
    rows = [
        [
            name,
            *(
                " to ".join(f"{f(x[c] for x in found[name]):.{digits}f}" for f in (min, max))
                for c, digits in columns.items()
            ),
        ]
        for name in ("SHAC", "PPO")
    ]
    return markdown(["", *columns], rows)


def samples(found: dict[str, Any], levels: list[float]) -> list[str]:
    """Control steps until each seed is first at a level of reward."""
    last = [x["curve"][-1][1] for x in found["SHAC"]]
    rows = []
    for level in (*levels, min(last)):
        cells = [f"{level:.3f}"]
        for name in ("SHAC", "PPO"):
            counts = [reached(x["curve"], level) for x in found[name]]
            end = found[name][0]["curve"][-1][0]
            cells.append(", ".join(f"{n:.3g}" if n else f"not by {end:.3g}" for n in counts))
        rows.append(cells)
    return markdown(["reward", "SHAC", "PPO"], rows)


def lines(found: dict[str, Any]) -> list[str]:
    machine = found["machine"]
    camera = found["with a camera"]
    failed = sum(x["failed in training"] for name in ("SHAC", "PPO") for x in camera[name])
    return [
        f"{machine['processor']}, {machine['cores']} cores, JAX {found['versions']['jax']}, load "
        f"of the machine at the start {machine['load_at_start']}; three seeds, whose means are "
        "given and the range of their rewards. Of all steps of the trainings with a camera "
        f"{failed} failed.",
        "",
        *ride(found),
        "",
        "With a camera, control steps until each of the seeds 0, 1, 2 is first at a reward:",
        "",
        *samples(camera, [-1.1, -1.05, -1.0, -0.95]),
        "",
        "The five-bar of `ml.five_bar_reach`, distance of its tip from 256 unseen points after "
        "2 s, range of three seeds:",
        "",
        *reach(found["five-bar"]),
        "",
        *samples(found["five-bar"], [-0.1, -0.05, -0.04]),
    ]


def filled(page: str, found: dict[str, Any]) -> str:
    """The page's text with the figures of these results."""
    return with_table(page, BEGIN, END, lines(found))


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(filled(text, json.loads(RESULTS.read_text("utf-8"))), "utf-8")
