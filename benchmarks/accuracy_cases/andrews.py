"""Andrews' squeezing mechanism: its points as a mechanism file, and its angles and forces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases import gt_mech
from accuracy_cases.integrate import initial_state, integrate
from accuracy_cases.report import RELATIVE, Row, Series, compare, note
from jaxmbd.io import read_gt_mech

# The joint whose coordinate plus its drawn value is the angle; loop closures with their forces.
ANGLES = {
    "beta": "O",
    "Theta": "F",
    "gamma": "B",
    "Phi": "G",
    "delta": "A5",
    "Omega": "H",
    "epsilon": "A7",
}
CLOSURES = ("E23", "E24", "E26")


def detect(data: dict[str, Any]) -> bool:
    return "angles_series" in data and "initial_angles" in data


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    return gt_mech.check(data, folder) + _angles(data, folder)


def _series(case: str, path: Path, end: float) -> tuple[Series, list[Row]]:
    """The file of angles; evenly spaced times if its rows lack the time named in its head."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    comments = tuple(line for line in lines if line.startswith("#"))
    head, *rest = [line.split(",") for line in lines if not line.startswith("#")]
    table, found = np.array(rest, float), []
    if table.shape[1] == len(head) - 1 and head[0] == "t":
        table = np.concatenate([np.linspace(0.0, end, len(table))[:, None], table], axis=1)
        found.append(note(case, f"{path.name} has no times: taken as evenly spaced to {end} s"))
    columns = {name: table[:, i] for i, name in enumerate(head)}
    return Series(path, comments, columns), found


def _angles(data: dict[str, Any], folder: Path) -> list[Row]:
    """Angles, rates, accelerations and multipliers: the published values and the series."""
    case, mech = data["name"], read_gt_mech(data)
    series, rows = _series(case, folder / data["angles_series"], data["t_end"])
    start = np.array([data["initial_angles"][n] for n in ANGLES])
    layout = mbd.topology(mech).layout
    place = np.array([layout[joint].v.start for joint in ANGLES.values()])

    def observe(t: Any, q: Any, v: Any) -> dict[str, Any]:
        vdot, lam = mbd.forward_dynamics(mech, q, v, t)
        reactions = mbd.joint_reactions(mech, q, v, vdot, lam, t)
        return {
            "angle": start + q[place],
            "rate": v[place],
            "acceleration": vdot[place],
            "multiplier": jnp.concatenate([reactions[name][3:5] for name in CLOSURES]),
        }

    columns = {
        "angle": list(ANGLES),
        "rate": [f"d_{n}" for n in ANGLES],
        "acceleration": [f"dd_{n}" for n in ANGLES],
        "multiplier": [f"lambda{i}" for i in range(1, 7)],
    }
    theirs = {k: series.stack(names) for k, names in columns.items()}
    stated = {"angle": 5.12e-8, "rate": 5.12e-8, "acceleration": 1.32e-6, "multiplier": 1.32e-6}
    found = [float(x) for c in series.comments for x in re.findall(r"= (\d\.\d+e-\d+)", c)]
    if len(found) == 2:
        stated = dict(zip(stated, np.repeat(found, 2), strict=True))
    published = data["published_reference_t0_03"]
    allowed = {k: stated[k] * float(np.abs(x).max()) for k, x in theirs.items()}
    q0, v0, _ = initial_state(mech, {b: np.zeros(6) for b in mech.structure.bodies})
    motion = integrate(mech, q0, v0, series.times, observe, {k: allowed[k] for k in ("angle",)})
    at = int(np.argmin(np.abs(series.times - 0.03)))
    for key, names in columns.items():
        values = [published[n] for n in names]
        limit = stated[key] * float(np.max(np.abs(values)))
        text, basis = f"{key}s at 0.03 s, published", "the file's own check of it"
        ours = motion.values[key]
        rows.append(compare(case, text, ours[at], values, allowed=limit, basis=basis))
        limit = max(RELATIVE, stated[key]) * float(np.abs(theirs[key]).max())
        rows.append(compare(case, f"{key}s", ours, theirs[key], allowed=limit))
    return rows
