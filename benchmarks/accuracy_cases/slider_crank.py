"""SUNDIALS' slider-crank with sensitivities: a motion, a time integral, its derivatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.report import Row, compare, read_series

NEEDED = ("a", "rod_length", "J1", "J2", "m2", "k", "c", "l0", "F")
AXIS = (0.0, 0.0, 1.0)
LONGEST_STEP = 2e-3  # [s]; the errors of RK4 and Simpson's rule are then 1e-9
PRINTED = 5e-5  # of values that the reference prints to 5 digits


def detect(data: dict[str, Any]) -> bool:
    parameters = data.get("parameters")
    return isinstance(parameters, dict) and all(n in parameters for n in NEEDED)


def mechanism(p: dict[str, Any], q: float, stiffness: Any, damping: Any) -> mbd.Mechanism:
    """Drawn at the crank angle `q`; the crank turns about the origin, the rod's end slides on x."""
    a, length = p["a"], p["rod_length"]
    end = np.array([a * np.cos(q), a * np.sin(q), 0.0])
    tilt = np.arcsin(-end[1] / length)
    along = length * np.array([np.cos(tilt), np.sin(tilt), 0.0])
    slider = end + along
    return mbd.Mechanism(
        bodies={
            "crank": mbd.Body(0.0, (0.0, 0.0, 0.0), (p["J1"],) * 3),
            "block": mbd.Body(com=slider),
            "rod": mbd.Body(p["m2"], slider, (p["J2"],) * 3),
        },
        joints={
            "crank": mbd.Revolute("ground", "crank", (0.0, 0.0, 0.0), AXIS),
            "slide": mbd.Prismatic("ground", "block", slider, (1.0, 0.0, 0.0)),
            "wrist": mbd.Revolute("block", "rod", slider, AXIS),
            "pin": mbd.Spherical("crank", "rod", end),
        },
        forces={
            "spring": mbd.SpringDamper(
                "crank", "rod", 0.5 * end, slider - 0.5 * along, stiffness, damping, p["l0"]
            ),
            "push": mbd.PointForce("rod", slider + along, (p["F"], 0.0, 0.0)),
        },
        gravity=(0.0, -p.get("gravity", 0.0), 0.0),
        cut=("pin",),
    )


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    case, p, end = data["name"], data["parameters"], float(data["t_end"])
    columns = read_series(folder / data["series"]).columns if data.get("series") else {}
    spacing = float(np.diff(columns["t"]).min()) if columns else end / 1000
    dt = spacing / (2 * int(np.ceil(spacing / (2 * LONGEST_STEP))))  # even, for Simpson's rule
    start = float(data["initial"]["q"])
    tilt = float(np.arcsin(-p["a"] * np.sin(start) / p["rod_length"]))

    def run(kc: Any) -> tuple[Any, dict[str, Any]]:
        mech = mechanism(p, start, kc[0], kc[1])
        layout = mbd.topology(mech).layout

        def observe(t: Any, q: Any, v: Any) -> dict[str, Any]:
            return {
                "q_crank": start + q[layout["crank"].q][0],
                "x_slider": mbd.poses(mech, q)["rod"].position[0],
                "p_rod": tilt + q[layout["wrist"].q][0],
                "q_dot": v[layout["crank"].v][0],
                "T": mbd.kinetic_energy(mech, q, v),
            }

        still = jnp.zeros(mbd.topology(mech).nv)
        s = mbd.simulate(mech, mbd.neutral(mech), still, t1=end, dt=dt, outputs=observe)
        return _simpson(s.outputs["T"], dt)[-1], {"t": s.t, **s.outputs}

    kc = jnp.array([p["k"], p["c"]], float)
    (slope, motion) = jax.jit(jax.jacfwd(run, has_aux=True))(kc)
    motion = {k: np.asarray(x) for k, x in motion.items()}
    motion["G_running"] = np.asarray(_simpson(motion["T"], dt))
    ours = {"G": motion["G_running"][-1], "dG_dk": slope[0], "dG_dc": slope[1]}
    rows = _series(case, data, columns, motion, dt)
    for key, value in (data.get("high_precision") or {}).items():
        if key in ours:
            rows.append(compare(case, f"{key}, high precision", ours[key], value))
    for key, value in (data.get("published") or {}).items():
        name = "G" if key.startswith("G_") else key
        if name in ours:
            limit, basis = PRINTED * abs(value), "5 digits"
            rows.append(
                compare(case, f"{key}, published", ours[name], value, allowed=limit, basis=basis)
            )
    return rows


def _simpson(values: Any, dt: float) -> Any:
    """Integral from the start to every second value, repeated for those between (not used)."""
    thirds = dt / 3.0 * (values[:-2:2] + 4.0 * values[1:-1:2] + values[2::2])
    sums = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.asarray(thirds))])
    return jnp.repeat(sums, 2)[: values.shape[0]]


def _series(
    case: str, data: dict[str, Any], columns: dict[str, Any], motion: dict[str, Any], dt: float
) -> list[Row]:
    rows = []
    for name in [n for n in columns if n in motion and n != "t"]:
        index = np.round(columns["t"] / dt).astype(int)
        rows.append(compare(case, name, motion[name][index], columns[name]))
    table = np.asarray((data.get("published") or {}).get("table_t_q_x_p", []), float)
    stated = data.get("max_abs_difference_published_table") or {}
    for i, (key, name) in enumerate((("q", "q_crank"), ("x", "x_slider"), ("p", "p_rod")), start=1):
        if not len(table) or key not in stated:
            continue
        ours = np.interp(table[:, 0], motion["t"], motion[name])
        text, limit = f"{name}, published table", 1.01 * stated[key]
        rows.append(compare(case, text, ours, table[:, i], allowed=limit, basis="stated"))
    return rows
