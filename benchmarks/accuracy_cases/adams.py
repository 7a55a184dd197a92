"""Single joints and springs: ``cases``, each a body, a joint described in words, and a series.

The first `SPAN` seconds are compared, for which these files have been reproduced independently.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.integrate import initial_state, integrate
from accuracy_cases.report import Row, Series, compare, failed, read_series, unsupported
from jaxmbd.spatial.rotations import quaternion_from_matrix, rotation_matrix

SPAN = 3.0
XYZ = ("X", "Y", "Z")
COLUMNS = {
    "position": [f"Pos_{c}_Pos" for c in XYZ],
    "velocity": [f"Vel_{c}_Vel" for c in XYZ],
    "acceleration": [f"Acc_{c}_Acc" for c in XYZ],
    "orientation": [f"Quat_e{i}" for i in range(4)],
    "angular velocity": [f"Avel_{c}_AngVel" for c in XYZ],
    "angular acceleration": [f"Aacc_{c}_AngAcc" for c in XYZ],
    "joint force": [f"Rforce_{c}_Force" for c in XYZ],
}
# Joint forces whose sign (on the ground) has been verified for the file.
FORCES = ("revolute", "spherical", "universal")


class UnknownCase(ValueError):
    """The words that describe a joint were not understood."""


def detect(data: dict[str, Any]) -> bool:
    cases = data.get("cases")
    return isinstance(cases, dict) and all("joint" in c and "body" in c for c in cases.values())


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    rows = []
    for name, case in data["cases"].items():
        path = folder / case.get("series", f"{name}.csv")
        try:
            mech, joint = build(case, data.get("gravity", [0.0, 0.0, -9.81]))
        except UnknownCase as error:
            rows.append(unsupported(name, str(error)))
            continue
        if not path.exists():
            rows.append(failed(name, f"the series {path.name} is missing"))
            continue
        try:
            rows += _compare(name, case, mech, joint, read_series(path), _stated(data, name))
        except Exception as error:  # one bad case must not hide the others
            rows.append(failed(name, f"{type(error).__name__}: {error}".splitlines()[0]))
    return rows


def _stated(data: dict[str, Any], name: str) -> float:
    """The accuracy of positions [m]: the file's own check of the case, at least 5e-5."""
    found = (data.get("our_check") or {}).get("max_difference", {}).get(name, {}).get("pos", 0.0)
    return max(5e-5, float(f"{1.02 * found:.2g}"))


# Mechanisms ------------------------------------------------------------------------------------


def build(case: dict[str, Any], gravity: Any) -> tuple[mbd.Mechanism, str | None]:
    """The mechanism, and the joint whose force is compared."""
    words, given = case["joint"].lower(), case["body"]
    turn = np.asarray(rotation_matrix(jnp.asarray(given["quat0_wxyz"], float)))
    inertia = turn @ np.diag(np.asarray(given["inertia_diag_body"], float)) @ turn.T
    bodies = {"body": mbd.Body(given["mass"], given["pos0"], inertia)}
    drives: dict[str, Any] = {}
    forces: dict[str, Any] = {}
    if "imposed" in words:
        joints, drives = _actuator(case, turn)
    elif "rotational spring" in words:
        joints = {"joint": mbd.Revolute("ground", "body", *_place(case, "z"))}
        forces["spring"] = _rotational_spring(words)
    elif "composite revolute" in words:
        joints, bodies["link"] = _revolute_spherical(case), mbd.Body(com=case["ground_point"])
    elif "spring-damper" in words:
        joints = {"free": mbd.Free("ground", "body")}
        forces["spring"] = _spring(case, words)
    elif "constant distance" in words:
        ends = case["ground_point"], case["body_point_world"]
        joints = {"free": mbd.Free("ground", "body"), "joint": mbd.Rod("ground", "body", *ends)}
    else:
        joints = {"joint": _simple(case, words)}
    compared = "joint" if words.startswith(FORCES) else None
    return mbd.Mechanism(
        bodies, joints, forces, drives, gravity=np.asarray(gravity, float)
    ), compared


def _place(case: dict[str, Any], *axes: str) -> list[Any]:
    return [case["joint_location"], *(case[f"joint_{a}_axis_world"] for a in axes)]


def _simple(case: dict[str, Any], words: str) -> Any:
    if words.startswith("universal"):
        # The given axes are perpendicular to printed accuracy only; the constraint is exact.
        at, x, y = _place(case, "x", "y")
        x = np.asarray(x) / np.linalg.norm(x)
        return mbd.Universal("ground", "body", at, x, np.asarray(y) - (x @ np.asarray(y)) * x)
    if words.startswith("spherical"):
        return mbd.Spherical("ground", "body", case["joint_location"])
    kinds = {"revolute": mbd.Revolute, "prismatic": mbd.Prismatic, "cylindrical": mbd.Cylindrical}
    for start, kind in kinds.items():
        if words.startswith(start):
            return kind("ground", "body", *_place(case, "z"))
    raise UnknownCase(f"no joint is built from the words {case['joint']!r}")


def _actuator(case: dict[str, Any], turn: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    """A slider along the body's initial velocity, or its own z axis, driven at that speed."""
    start = np.asarray(case["body"].get("vel0", [0.0, 0.0, 0.0]), float)
    speed = float(np.linalg.norm(start))
    axis = start / speed if speed else turn[:, 2]
    slider = mbd.Prismatic("ground", "body", case["body"]["pos0"], axis)
    return {"joint": slider}, {"motor": mbd.Drive("joint", lambda t, p: p * t, speed)}


def _rotational_spring(words: str) -> Any:
    number = r"([0-9.eE+-]+)"
    linear = re.search(rf"-\({number}\*angle\s*\+\s*{number}\*rate\)", words)
    if linear:
        return mbd.TorsionSpring("joint", float(linear[1]), float(linear[2]))
    square = re.search(
        rf"-\(\({number}\s*\+\s*{number}\*\|angle\|\)\*angle\s*\+\s*{number}\*rate\)", words
    )
    if square:
        law = mbd.SignedSquare(float(square[2]))
        return mbd.TorsionSpring("joint", float(square[1]), float(square[3]), law=law)
    raise UnknownCase(f"no torque law is read from the words {words!r}")


def _revolute_spherical(case: dict[str, Any]) -> dict[str, Any]:
    """A massless link that turns about an axis of the ground and carries a ball."""
    at, axis = case["ground_point"], case["revolute_axis_ground"]
    return {
        "hinge": mbd.Revolute("ground", "link", at, axis),
        "ball": mbd.Spherical("link", "body", case["body_point_world"]),
    }


def _spring(case: dict[str, Any], words: str) -> Any:
    ends = ("ground", "body", case["ground_point"], case["body_point_world"])
    if "k" in case:
        return mbd.SpringDamper(*ends, stiffness=case["k"], damping=case.get("c", 0.0))
    number = r"([0-9.eE+-]+)"
    found = re.search(rf"=\s*{number}\*x\s*\+\s*{number}\*\|x\|\*x\s*\+\s*{number}\*dl/dt", words)
    if found is None:
        raise UnknownCase(f"no spring law is read from the words {words!r}")
    law = mbd.SignedSquare(float(found[2]))
    return mbd.SpringDamper(*ends, stiffness=float(found[1]), damping=float(found[3]), law=law)


# Comparison ------------------------------------------------------------------------------------


def _compare(
    name: str, case: dict[str, Any], mech: Any, joint: str | None, series: Series, stated: float
) -> list[Row]:
    kept = series.times <= SPAN + 1e-9
    wanted = {k: c for k, c in COLUMNS.items() if all(n in series.columns for n in c)}
    if joint is None:
        wanted.pop("joint force", None)
    theirs = {k: series.stack(c)[kept] for k, c in wanted.items()}
    given = case["body"]
    start = [*given.get("angvel0", [0.0, 0.0, 0.0]), *given.get("vel0", [0.0, 0.0, 0.0])]
    q0, v0, _ = initial_state(mech, {"body": np.asarray(start, float)})
    turn = rotation_matrix(jnp.asarray(given["quat0_wxyz"], float))

    def observe(t: Any, q: Any, v: Any) -> dict[str, Any]:
        return {k: x for k, x in _observed(mech, joint, turn, t, q, v).items() if k in wanted}

    allowed = _allowed(theirs, stated)
    motion = integrate(mech, q0, v0, series.times[kept], observe, {"position": stated})
    rows = []
    for key, ours in motion.values.items():
        if key == "orientation":  # a quaternion and its negative are the same orientation
            ours = ours * np.sign(np.sum(ours * theirs[key], axis=1, keepdims=True))
        limit, basis = allowed[key]
        rows.append(compare(name, key, ours, theirs[key], allowed=limit, basis=basis))
    return rows


def _allowed(theirs: dict[str, np.ndarray], stated: float) -> dict[str, tuple[float, str]]:
    """Positions [m] as stated; other quantities the same share of their largest value (at least 1).

    Accelerations and forces ten times that, because these series are less accurate than positions:
    for Revolute_Case01, ``m g x / (I + m L²)`` from its positions is 5.5e-4 off its accelerations.
    """
    out = {}
    for key, values in theirs.items():
        factor = 10.0 if key.endswith(("acceleration", "force")) else 1.0
        share = factor * stated
        out[key] = (share * max(1.0, float(np.max(np.abs(values)))), f"{share:.2g} of the largest")
    return out | {"position": (stated, "stated")}


def _observed(mech: Any, joint: str | None, turn: Any, t: Any, q: Any, v: Any) -> dict[str, Any]:
    vdot, lam = mbd.forward_dynamics(mech, q, v, t)
    pose = mbd.poses(mech, q)["body"]
    twist = mbd.body_velocities(mech, q, v)["body"]
    rate = mbd.body_accelerations(mech, q, v, vdot)["body"]
    out = {
        "position": pose.position,
        "velocity": twist[3:],
        "acceleration": rate[3:],
        "orientation": quaternion_from_matrix(pose.rotation @ turn),
        "angular velocity": twist[:3],
        "angular acceleration": rate[:3],
    }
    if joint is not None:
        out["joint force"] = -mbd.joint_reactions(mech, q, v, vdot, lam, t)[joint][3:]
    return out
