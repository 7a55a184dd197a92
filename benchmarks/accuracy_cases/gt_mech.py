"""gt-mech-1 files: a mechanism, checks at t = 0, and a series of its motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.determinate import determinate_part
from accuracy_cases.integrate import initial_state, integrate
from accuracy_cases.report import (
    RELATIVE,
    Row,
    Series,
    compare,
    failed,
    not_run,
    note,
    read_series,
    spread,
    unsupported,
)
from jaxmbd.io import UnsupportedConstraint, gt_velocities, read_gt_mech

XYZ = ("x", "y", "z")


def detect(data: dict[str, Any]) -> bool:
    inner = data.get("mechanism", data)
    return isinstance(inner, dict) and "bodies" in inner and "joints" in inner


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    case = data.get("name", "mechanism")
    try:
        mech = read_gt_mech(data)
    except UnsupportedConstraint as error:
        return [unsupported(case, str(error))]
    q0, v0, off = initial_state(mech, gt_velocities(data))
    given = np.concatenate(list(gt_velocities(data).values()))
    rows = [compare(case, "initial velocities, least squares", off, 0.0 * off, allowed=_one(given))]
    rows += _at_start(case, data, mech, q0, v0)
    if not data.get("series"):
        return [*rows, note(case, "no series in the file: checked at t = 0 only")]
    if not isinstance(data["series"], str):
        return [*rows, failed(case, "series is not the name of one file beside this one")]
    path = folder / data["series"]
    if not path.exists():
        return [*rows, failed(case, f"the series {path.name} is missing")]
    return rows + _motion(case, data, mech, q0, v0, read_series(path))


def _one(values: np.ndarray) -> float:
    return RELATIVE * max(1.0, float(np.max(np.abs(values), initial=0.0)))


def _at_start(case: str, data: dict[str, Any], mech: Any, q0: Any, v0: Any) -> list[Row]:
    rows = []
    found = mbd.mobility(mech, q0)
    if "dof" in data:
        rows.append(compare(case, "dof", found.dof, data["dof"], allowed=0.0, basis="exact"))
    counted = 6 * len(mech.structure.bodies) - found.kutzbach
    if "n_constraints" in data:
        theirs = data["n_constraints"]
        rows.append(compare(case, "n_constraints", counted, theirs, allowed=0.0, basis="exact"))
    if "redundant" in data:
        redundant = counted > 6 * len(mech.structure.bodies) - found.dof
        rows.append(
            compare(case, "redundant", redundant, data["redundant"], allowed=0.0, basis="exact")
        )
    energy = data.get("initial_energy") or {}
    size = max((abs(x) for x in energy.values()), default=0.0)
    ours = {"T": mbd.kinetic_energy(mech, q0, v0), "V": mbd.potential_energy(mech, q0)}
    for key, value in energy.items():
        allowed = RELATIVE * (size or 1.0)
        rows.append(compare(case, f"initial {key}", ours[key], value, allowed=allowed))
    theirs = data.get("initial_accelerations_world")
    if theirs:
        accelerations = mbd.body_accelerations(mech, q0, v0, mbd.forward_dynamics(mech, q0, v0)[0])
        for kind, part in (("angular", slice(0, 3)), ("linear", slice(3, 6))):
            a = [np.asarray(accelerations[n])[part] for n in theirs]
            rows.append(
                compare(
                    case, f"initial {kind} accelerations", a, [x[kind] for x in theirs.values()]
                )
            )
    return rows


def _names(label: str, columns: list[str] | None, plain: tuple[str, ...]) -> list[str]:
    return [f"{label}_{c}" if label else c for c in (columns or plain)]


def with_points(data: dict[str, Any], series: Series) -> dict[str, Any]:
    """The description with added outputs for columns of points that it does not describe.

    Columns ``<label>_x, _y, _z`` belong to the joint or spring whose point has their first values.
    """
    inner, outputs = data.get("mechanism", data), dict(data.get("outputs") or {})
    if outputs.get("points"):
        return data
    drawn = [(e["B"], e["point"]) for e in inner["joints"] if "point" in e]
    drawn += [(e["B"], e["pB"]) for e in inner.get("springs") or []]
    labels = {n[:-2] for n in series.columns if n.endswith("_x") and not n.startswith("exudyn")}
    outputs["points"] = []
    for label in sorted(labels):
        start = series.stack(f"{label}_{c}" for c in XYZ)[0]
        for body, at in drawn:
            if body != "ground" and np.max(np.abs(start - at)) < 1e-12:
                outputs["points"].append({"label": label, "body": body, "point": at})
                break
    return {**data, "outputs": outputs}


def described_columns(data: dict[str, Any], present: Any) -> dict[str, list[str]]:
    """Quantity to its columns, for all that the file describes and the series contains."""
    outputs, out = data.get("outputs") or {}, {}
    for point in outputs.get("points") or []:
        label = point["label"]
        # A file may name an output's columns; positions come first, then velocities.
        names = _names(label, point.get("columns"), (*XYZ, *(f"v{c}" for c in XYZ)))
        out[f"position {label}".strip()] = names[:3]
        out[f"velocity {label}".strip()] = names[3:6]
    for direction in outputs.get("directions") or []:
        label = direction["label"]
        names = _names(label, direction.get("columns"), tuple(f"d{c}" for c in XYZ))
        out[f"direction {label}"] = names
    for reaction in outputs.get("reactions") or []:
        label = reaction["label"]
        out[f"reaction {label}"] = _names(label, reaction.get("columns"), XYZ)
    out |= {"T_kin": ["T_kin"], "V_pot": ["V_pot"]}
    return {k: names for k, names in out.items() if any(n in present for n in names)}


def observer(data: dict[str, Any], mech: Any, wanted: Any) -> Any:
    """A function of (t, q, v) giving the wanted quantities."""
    outputs = data.get("outputs") or {}

    def observe(t: Any, q: Any, v: Any) -> dict[str, Any]:
        out = {
            "T_kin": mbd.kinetic_energy(mech, q, v)[None],
            "V_pot": mbd.potential_energy(mech, q)[None],
        }
        for p in outputs.get("points") or []:
            at = tuple(p["point"])
            out[f"position {p['label']}".strip()] = mbd.point_position(mech, q, p["body"], at)
            out[f"velocity {p['label']}".strip()] = mbd.point_velocity(mech, q, v, p["body"], at)
        poses = mbd.poses(mech, q)
        for d in outputs.get("directions") or []:
            turn = poses[d["body"]].rotation
            out[f"direction {d['label']}"] = turn @ jnp.asarray(d["direction"], float)
        if outputs.get("reactions"):
            vdot, lam = mbd.forward_dynamics(mech, q, v, t)
            reactions = mbd.joint_reactions(mech, q, v, vdot, lam, t)
            for r in outputs["reactions"]:
                out[f"reaction {r['label']}"] = reactions[r["joint"]][3:]
        return {k: out[k] for k in wanted}

    return observe


def stated_accuracy(data: dict[str, Any]) -> float | None:
    """The accuracy of positions [m] that a file states for its series."""
    check = data.get("cross_check")
    if not isinstance(check, dict):
        return None
    if "max_abs_position_difference_m" in check:
        return float(check["max_abs_position_difference_m"])
    others = [v for k, v in check.items() if k.endswith("_m") and "unextrapolated" not in k]
    numbers = [float(x) for x in others if isinstance(x, (int, float))]
    return min(numbers) if numbers else None


def _motion(
    case: str, data: dict[str, Any], mech: Any, q0: Any, v0: Any, series: Series
) -> list[Row]:
    data = with_points(data, series)
    columns = described_columns(data, series.columns)
    if not columns:
        names = ", ".join(series.columns)
        text = f"{series.path.name} has nothing to compare: outputs describes none of {names}"
        return [failed(case, text)]
    theirs = {k: series.stack(names) for k, names in columns.items()}
    allowed, basis = _tolerances(data, theirs)
    # Forces that are not unique need not converge and are not compared.
    unique = not mbd.mobility(mech, q0).redundant
    watched = {k: a for k, a in allowed.items() if unique or not k.startswith("reaction")}
    motion = integrate(mech, q0, v0, series.times, observer(data, mech, columns), watched)
    rows = []
    for key, ours in motion.values.items():
        values = theirs[key]
        if key.startswith("reaction ") and not unique:
            part = determinate_part(mech, _joint_of(data, key), motion.q)
            ranks = np.rint(np.trace(part, axis1=1, axis2=2)).astype(int)
            if ranks.min() < 3:
                text = f"{key}: unique in {ranks.min()} of 3 directions only, compared there"
                rows.append(note(case, text) if ranks.max() else not_run(case, text))
                ours, values = (np.einsum("nij,nj->ni", part, x) for x in (ours, values))
        rows.append(compare(case, key, ours, values, allowed=allowed[key], basis=basis[key]))
    known = {n for names in columns.values() for n in names}
    rest = [n for n, x in series.columns.items() if n not in known and x is not series.times]
    rest = sorted({n.split("_")[0] + "_*" if n.startswith("exudyn_") else n for n in rest})
    if rest:
        rows.append(note(case, f"columns that outputs does not describe: {', '.join(rest)}"))
    text = f"RK4 at {motion.dt:.3g} s, its error {motion.estimate:.1e} of what is allowed"
    return [*rows, note(case, text)]


def _joint_of(data: dict[str, Any], key: str) -> str:
    reactions = data["outputs"]["reactions"]
    return next(r["joint"] for r in reactions if f"reaction {r['label']}" == key)


def _tolerances(
    data: dict[str, Any], theirs: dict[str, np.ndarray]
) -> tuple[dict[str, float], dict[str, str]]:
    """The tolerance of each quantity, and why: positions as stated, else 1e-6 of the range."""
    allowed, basis = {}, {}
    stated = stated_accuracy(data)
    for key, values in theirs.items():
        size = float(np.nanmax(np.abs(values), initial=0.0))
        if key.startswith("position") and stated is not None:
            allowed[key], basis[key] = stated, "stated cross-check"
        elif key.startswith("direction"):
            allowed[key], basis[key] = RELATIVE, "1e-6 of a unit vector"
        else:
            allowed[key], basis[key] = (
                RELATIVE * (spread(values) or size or 1.0),
                "1e-6 of the range",
            )
    return allowed, basis
