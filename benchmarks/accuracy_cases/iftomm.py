"""IFToMM library: the simple pendulum and the N-four-bar, described by a few numbers each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import jaxmbd as mbd
from accuracy_cases.integrate import initial_state, integrate
from accuracy_cases.report import Row, compare, not_run, read_series

AXIS = (0.0, 0.0, 1.0)
NEAR_SINGULAR = np.deg2rad(80.0)
MOST_LOOPS = 4


def detect(data: dict[str, Any]) -> bool:
    return _is_pendulum(data) or _is_four_bar(data)


def _is_pendulum(data: dict[str, Any]) -> bool:
    return "length" in data and "mass" in data and "x" in (data.get("initial") or {})


def _is_four_bar(data: dict[str, Any]) -> bool:
    return "link" in data and "moving_joints" in data


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    return _pendulum(data, folder) if _is_pendulum(data) else _four_bars(data, folder)


def _pendulum(data: dict[str, Any], folder: Path) -> list[Row]:
    """A point mass on a massless rod from the origin, in the plane of x and y."""
    case, columns = data["name"], read_series(folder / data["series"]).columns
    start = data["initial"]
    place, speed = [start["x"], start["y"], 0.0], [start.get("vx", 0.0), start.get("vy", 0.0), 0.0]
    mech = mbd.Mechanism(
        {"bob": mbd.Body(data["mass"], place)},
        {"hinge": mbd.Revolute("ground", "bob", (0.0, 0.0, 0.0), AXIS)},
        gravity=np.asarray(data["gravity"], float),
    )
    spin = np.cross(place, speed)[2] / data["length"] ** 2
    q0, v0, _ = initial_state(mech, {"bob": np.array([0, 0, spin, *speed], float)})
    kept = columns["t"] <= data.get("t_end", columns["t"].max()) + 1e-9

    def observe(t: Any, q: Any, v: Any) -> dict[str, Any]:
        return {"position": mbd.poses(mech, q)["bob"].position}

    exact = 1e-6 * data["length"]
    motion = integrate(mech, q0, v0, columns["t"][kept], observe, {"position": exact})
    official = data.get("max_abs_difference_official_vs_exact_first_10s", 1e-6)
    allowed = {"exact": (exact, "1e-6 of the length"), "official": (official + exact, "stated")}
    rows = []
    for name, values in columns.items():
        match = re.fullmatch("([xy])_(exact|official)", name)
        if match:
            ours = motion.values["position"][:, "xy".index(match[1])]
            limit, basis = allowed[match[2]]
            rows.append(compare(case, name, ours, values[kept], allowed=limit, basis=basis))
    return rows


def n_four_bar(data: dict[str, Any], n: int) -> mbd.Mechanism:
    """N + 1 upright links from the ground and N links between their tops."""
    link, length = data["link"], data["link"]["length"]
    inertia = (1e-3 * link["inertia_com"],) * 2 + (link["inertia_com"],)
    bodies, joints = {}, {}
    for i in range(n + 1):
        bodies[f"up{i}"] = mbd.Body(link["mass"], (i * length, 0.5 * length, 0.0), inertia)
        joints[f"A{i}"] = mbd.Revolute("ground", f"up{i}", (i * length, 0.0, 0.0), AXIS)
    for i in range(n):
        bodies[f"across{i}"] = mbd.Body(link["mass"], ((i + 0.5) * length, length, 0.0), inertia)
        for end in (i, i + 1):
            at = (end * length, length, 0.0)
            joints[f"B{end}_{i}"] = mbd.Revolute(f"up{end}", f"across{i}", at, AXIS)
    return mbd.Mechanism(bodies, joints, gravity=np.asarray(data["gravity"], float))


def _four_bars(data: dict[str, Any], folder: Path) -> list[Row]:
    columns, rows = read_series(folder / data["series"]).columns, []
    for n in sorted({int(m[1]) for c in columns if (m := re.match(r"N(\d+)_", c))}):
        case = f"{data['name']}, N = {n}"
        if n > MOST_LOOPS:
            rows.append(not_run(case, f"{2 * n + 1} bodies: too long to compile here"))
            continue
        rows += _four_bar(case, data, n, columns)
    return rows


def _four_bar(case: str, data: dict[str, Any], n: int, columns: dict[str, np.ndarray]) -> list[Row]:
    """Until the links are nearly horizontal, where all loops are singular."""
    mech, length = n_four_bar(data, n), data["link"]["length"]
    turned = np.abs(columns[f"N{n}_theta"]) > NEAR_SINGULAR
    end = int(np.argmax(turned)) if turned.any() else len(turned)
    start = {b: np.array([0, 0, -1.0 / length, 0.5, 0, 0]) for b in mech.structure.bodies}
    for body in start:
        if body.startswith("across"):
            start[body] = np.array([0, 0, 0, 1.0, 0, 0])
    q0, v0, _ = initial_state(mech, start)

    def observe(t: Any, q: Any, v: Any) -> dict[str, Any]:
        top = (0.0, length, 0.0)
        spin = mbd.body_velocities(mech, q, v)["up0"][2:3]
        return {"B0": mbd.point_position(mech, q, "up0", top), "omega": -spin}

    motion = integrate(mech, q0, v0, columns["t"][:end], observe, {"B0": 1e-6 * length})
    place, rows = motion.values["B0"], []
    ours = {"x_closed": place[:, 0], "y_closed": place[:, 1], "x_official": place[:, 0]}
    ours |= {"y_official": place[:, 1], "omega": motion.values["omega"][:, 0]}
    ours["theta"] = np.unwrap(np.arctan2(place[:, 0], place[:, 1]))
    for name, values in ours.items():
        if f"N{n}_{name}" in columns:
            rows.append(compare(case, name, values, columns[f"N{n}_{name}"][:end]))
    rest = f"the other {len(turned) - end} rows: the links pass their singular horizontal position"
    return [*rows, not_run(case, rest)] if end < len(turned) else rows
