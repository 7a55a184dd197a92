"""The car axis of the DAE test set: two point masses on springs, one of them on a moving line.

The line through the origin perpendicular to (xb, yb) turns with an arm of length L that is driven
to ``yb = r sin ω t``: the left mass slides along the arm's y axis. The right mass has a carriage
for each direction, and a rod holds it at the distance L from the left one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.integrate import integrate
from accuracy_cases.report import RELATIVE, Row, compare, read_series

X, Y, Z = np.eye(3)
KEYS = ("xl", "yl", "xr", "yr", "xl_d", "yl_d", "xr_d", "yr_d", "lam1", "lam2")


def detect(data: dict[str, Any]) -> bool:
    start = data.get("initial")
    return isinstance(start, dict) and {"xl", "yl", "xr", "yr"} <= start.keys()


def tilt(t: Any, p: dict[str, Any]) -> Any:
    """Angle of the arm [rad], with the height r sin ω t at its end."""
    return jnp.arcsin(p["r"] * jnp.sin(p["w"] * t) / p["L"])


def mechanism(data: dict[str, Any]) -> mbd.Mechanism:
    p, s = data["parameters"], data["initial"]
    left, right = (s["xl"], s["yl"], 0.0), (s["xr"], s["yr"], 0.0)
    mass, length = p["M"] * p["eps"] ** 2 / 2, p["L"]
    return mbd.Mechanism(
        {
            "arm": mbd.Body(),
            "left": mbd.Body(mass, left),
            "carriage": mbd.Body(0.0, right),
            "right": mbd.Body(mass, right),
        },
        {
            "arm": mbd.Revolute("ground", "arm", (0, 0, 0), Z),
            "left": mbd.Prismatic("arm", "left", left, Y),
            "across": mbd.Prismatic("ground", "carriage", right, X),
            "right": mbd.Prismatic("carriage", "right", right, Y),
            "link": mbd.Rod("left", "right", left, right, length=length),
        },
        {
            "spring_left": mbd.SpringDamper("ground", "left", (0, 0, 0), left, 1.0, 0.0, p["L0"]),
            "spring_right": mbd.SpringDamper(
                "arm", "right", (length, 0, 0), right, 1.0, 0.0, p["L0"]
            ),
        },
        {"road": mbd.Drive("arm", tilt, {n: float(p[n]) for n in ("r", "w", "L")})},
        gravity=(0.0, -p["g"], 0.0),
    )


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    """Positions, velocities and the file's multipliers.

    Its first condition has the gradient (xb, yb), of length L, on the left mass alone: λ1 is the
    sliding joint's force along the arm over L. Its second is |left − right|² = L²: λ2 is the
    rod's force over 2 L.
    """
    case, p, s = data["name"], data["parameters"], data["initial"]
    series, mech = read_series(folder / data["series"]), mechanism(data)
    q0 = mbd.assemble(mech, known={"across": 0.0, "right": 0.0}).q
    known = {"left": s["yl_d"], "across": s["xr_d"], "right": s["yr_d"]}
    v0 = mbd.assemble_velocity(mech, q0, known)

    def observe(t: Any, q: Any, v: Any) -> dict[str, Any]:
        where, twist = mbd.poses(mech, q), mbd.body_velocities(mech, q, v)
        vdot, lam = mbd.forward_dynamics(mech, q, v, t)
        pull = mbd.joint_reactions(mech, q, v, vdot, lam, t)
        along = where["arm"].rotation[:, 0]
        rod = where["right"].position - where["left"].position
        force = pull["link"][3:] @ rod / p["L"]
        ends = ("left", "right")
        return {
            "position": jnp.concatenate([where[n].position[:2] for n in ends]),
            "velocity": jnp.concatenate([twist[n][3:5] for n in ends]),
            "multiplier": jnp.stack([along @ pull["left"][3:] / p["L"], force / (2.0 * p["L"])]),
        }

    columns = {"position": KEYS[:4], "velocity": KEYS[4:8], "multiplier": KEYS[8:]}
    theirs = {k: series.stack(names) for k, names in columns.items()}
    check_lines = [re.search(r"max_error_vs_published_t3: (\S+)", c) for c in series.comments]
    stated = max([float(m[1]) for m in check_lines if m] + [2e-11])
    allowed = {k: RELATIVE * float(np.abs(x).max()) for k, x in theirs.items()}
    motion = integrate(mech, q0, v0, series.times, observe, {"position": stated})
    rows = []
    published = np.asarray(data["published_reference_t3"])
    last = np.concatenate([motion.values[k][-1] for k in columns])
    text, limit = "all ten values at 3 s, published", max(stated, data.get("ours_max_error", 0.0))
    rows.append(compare(case, text, last, published, allowed=limit, basis="stated"))
    for key, ours in motion.values.items():
        rows.append(compare(case, key, ours, theirs[key], allowed=allowed[key]))
    return rows
