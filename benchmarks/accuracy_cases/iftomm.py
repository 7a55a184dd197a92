"""IFToMM library: the simple pendulum and the N-four-bar, described by a few numbers each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import jaxmbd as mbd
from accuracy_cases.integrate import initial_state, integrate
from accuracy_cases.report import Row, compare, note, read_series

AXIS = (0.0, 0.0, 1.0)
FEW_LOOPS = 4
STEP = 5e-4  # [s] of the four-bars: there is no convergence in the step at singular positions


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
    """N + 1 upright links from the ground and N links between their tops, drawn in the plane."""
    link, length = data["link"], data["link"]["length"]
    mass, inertia = link["mass"], link["inertia_com"]
    bodies, joints = {}, {}
    for i in range(n + 1):
        bodies[f"up{i}"] = mbd.Body(mass, (i * length, 0.5 * length), inertia)
        joints[f"A{i}"] = mbd.Revolute("ground", f"up{i}", (i * length, 0.0))
    for i in range(n):
        bodies[f"across{i}"] = mbd.Body(mass, ((i + 0.5) * length, length), inertia)
        for end in (i, i + 1):
            at = (end * length, length)
            joints[f"B{end}_{i}"] = mbd.Revolute(f"up{end}", f"across{i}", at)
    return mbd.Mechanism(bodies, joints, gravity=np.asarray(data["gravity"], float)[:2])


def _four_bars(data: dict[str, Any], folder: Path) -> list[Row]:
    columns, rows = read_series(folder / data["series"]).columns, []
    for n in sorted({int(m[1]) for c in columns if (m := re.match(r"N(\d+)_", c))}):
        rows += _four_bar(f"{data['name']}, N = {n}", data, n, columns)
    return rows


def _four_bar_limits(data: dict[str, Any], n: int) -> tuple[float, str]:
    """The tolerance of the positions [m].

    With few loops it is 1e-6 of the length. With many, one of the 20 passes of the singular
    position is close to a step, and the library's own limit for high precision is used.
    """
    length = data["link"]["length"]
    if n <= FEW_LOOPS:
        return 1e-6 * length, "1e-6 of the length"
    match = re.search(r"/ (\S+) high precision", " ".join(data["source"]))
    return (float(match[1]) if match else 1e-3) * length, "the library's high precision"


def _four_bar(case: str, data: dict[str, Any], n: int, columns: dict[str, np.ndarray]) -> list[Row]:
    """The whole run, through the horizontal positions, where all loops are singular."""
    mech, length = n_four_bar(data, n), data["link"]["length"]
    start = {b: np.array([0, 0, -1.0 / length, 0.5, 0, 0]) for b in mech.structure.bodies}
    for body in start:
        if body.startswith("across"):
            start[body] = np.array([0, 0, 0, 1.0, 0, 0])
    limit, basis = _four_bar_limits(data, n)
    values, energy = _run(mech, start, columns["t"], length)
    place = values["B0"]
    ours = {"x_closed": place[:, 0], "y_closed": place[:, 1], "x_official": place[:, 0]}
    ours |= {"y_official": place[:, 1], "omega": values["omega"][:, 0]}
    ours["theta"] = np.unwrap(np.arctan2(place[:, 0], place[:, 1]))
    rows = []
    for name, x in ours.items():
        if f"N{n}_{name}" in columns:
            theirs = columns[f"N{n}_{name}"]
            allowed = limit * (float(np.abs(theirs).max()) if name in ("omega", "theta") else 1.0)
            rows.append(compare(case, name, x, theirs, allowed=allowed, basis=basis))
    turns = float(np.abs(columns[f"N{n}_theta"]).max()) / np.pi
    text = f"{int(turns + 0.5)} passes of the singular position; energy within {energy:.1e} of it"
    return [*rows, note(case, text)]


def _run(
    mech: mbd.Mechanism, start: dict[str, np.ndarray], times: np.ndarray, length: float
) -> tuple[dict[str, np.ndarray], float]:
    """The top of the first link and its speed, and the largest relative change of energy."""
    q0, v0, _ = initial_state(mech, start)

    def observe(t: Any, q: Any, v: Any) -> dict[str, Any]:
        spin = mbd.body_velocities(mech, q, v)["up0"][2:3]
        top = mbd.point_position(mech, q, "up0", (0.0, length))
        energy = mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q)
        return {"B0": top, "omega": -spin, "energy": energy}

    every = round(float(np.diff(times).min()) / STEP)
    s = mbd.simulate(mech, q0, v0, t1=times[-1], dt=STEP, save_every=every, outputs=observe)
    values = {k: np.asarray(x) for k, x in s.outputs.items()}
    energy = values["energy"]
    return values, float(np.max(np.abs(energy - energy[0])) / abs(energy[0]))
