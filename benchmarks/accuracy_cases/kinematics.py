"""Sweeps of a suspension corner: hardpoints (mm) and series of wheel angles and points."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.report import RELATIVE, Row, Series, compare, note, read_series, unsupported
from jaxmbd import suspension, zoo
from jaxmbd.observe import Snapshot

MM = 1000.0
WALK = 0.01  # [m], largest change of travel or rack from one solution to the next
# Column: our characteristic, factor to mm and deg. The file's scrub radius is the distance of the
# contact point from the axis at the ground, its mechanical trail is along the wheel's heading, and
# its virtual axis is that about which the wheel turns while the lower arm stands still.
DEG = float(np.rad2deg(1.0))
AXIS = {
    "caster": ("caster", DEG),
    "caster_virtual": ("virtual_caster", DEG),
    "kpi": ("kingpin_inclination", DEG),
    "kpi_virtual": ("virtual_kingpin_inclination", DEG),
    "deriv_camber_wrt_hub_z": ("camber_gradient", DEG / MM),
    "deriv_toe_angle_wrt_hub_z": ("toe_gradient", DEG / MM),
}
CONTACT = {
    "scrub_radius": ("steering_offset", MM),
    "mechanical_trail": ("wheel_trail", MM),
    "deriv_half_track_wrt_hub_z": ("half_track_gradient", 1.0),
}
UNITS = {"scrub_radius": "mm", "mechanical_trail": "mm", "deriv_half_track_wrt_hub_z": "mm/mm"}
UPRIGHT = ("axle_inboard", "axle_outboard", "trackrod_outboard", "strut_bottom")
CHASSIS = ("strut_top",)
CHECKED = ("axle_inboard", "axle_outboard", "axle_midpoint", "wheel_center")


def detect(data: dict[str, Any]) -> bool:
    return "hardpoints" in data and "axle_outboard" in data["hardpoints"]


def builder_of(points: dict[str, Any]) -> Callable[..., Any] | None:
    """The zoo's corner with these hardpoints."""
    if "upper_wishbone_outboard" in points and "lower_wishbone_outboard" in points:
        return zoo.double_wishbone_kinematic
    if "lower_wishbone_outboard" in points and "strut_top" in points:
        return zoo.macpherson_kinematic
    if sum(n.endswith("_link_outboard") for n in points) == 4:
        return zoo.five_link_kinematic
    return None


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    case = data.get("name", "kinematic sweep")
    points = {n: np.asarray(x, float) / MM for n, x in data["hardpoints"].items()}
    build = builder_of(points)
    if build is None:
        return [unsupported(case, f"no corner is built from the hardpoints {sorted(points)}")]
    mech = build(points=points)
    q = mbd.assemble(mech).q
    freedom = mbd.mobility(mech, q).dof
    rows = [
        compare(case, "closes as drawn", mbd.assemble(mech).residual, 0.0, allowed=1e-12),
        compare(case, "dof (wheel travel, rack)", freedom, 2, allowed=0.0, basis="exact"),
    ]
    series = data.get("series") or []
    for name in [series] if isinstance(series, str) else series:
        rows += _sweep(case, data, mech, read_series(folder / name))
    return rows if series else [*rows, note(case, "the file has hardpoints only, no series")]


def _sweep(case: str, data: dict[str, Any], mech: Any, series: Series) -> list[Row]:
    case = series.path.stem
    lost = [n for n in ("wheel_center_z", "trackrod_inboard_y") if n not in series.columns]
    if lost:
        return [unsupported(case, f"the series does not say what is driven: no columns {lost}")]
    found = _quantities(data, mech, series)
    stated = _stated(series)
    axle = np.linalg.norm(_hardpoint(data, "axle_outboard") - _hardpoint(data, "axle_inboard"))
    rows, points = [], {}
    for column, ours in found.items():
        theirs = series.columns[column]
        match = re.fullmatch(r"(.*)_[xyz]", column)
        named = column in AXIS or column in CONTACT
        if not named and (match or column in ("half_track", "damper_length", "wheel_travel")):
            points[column] = (ours, theirs)
            continue
        allowed = RELATIVE * float(np.nanmax(np.abs(theirs)))
        if stated and column in (
            "camber",
            "toe_angle",
            "steer_angle",
        ):  # the error in angle of an axle whose ends have this error
            allowed = max(allowed, float(np.rad2deg(2.0 * stated / axle)))
        unit = UNITS.get(column, "deg/mm" if column.startswith("deriv_") else "deg")
        rows.append(compare(case, f"{column} [{unit}]", ours, theirs, allowed=allowed))
    for name in dict.fromkeys(re.sub("_[xyz]$", "", n) for n in points):
        pairs = [p for n, p in points.items() if re.sub("_[xyz]$", "", n) == name]
        a, b = (np.stack(part) for part in zip(*pairs, strict=True))
        allowed, basis = stated, "stated check" if stated else ""
        if stated and name not in CHECKED:
            # The reference's own link lengths have errors of 1e-6 mm, which other points amplify.
            allowed, basis = 2.0 * stated, "twice the stated check, which is of the axle's points"
        rows.append(compare(case, f"{name} [mm]", a, b, allowed=allowed, basis=basis))
    rest = [n for n in series.columns if n not in found]
    if rest:
        rows.append(note(case, f"columns not compared: {', '.join(rest)}"))
    return rows


def _stated(series: Series) -> float | None:
    """The accuracy [mm] of the axle's points that the series states, plus its rounding."""
    for line in series.comments:
        match = re.search(r"agrees.*?to\s+([0-9.eE+-]+)\s*mm", line)
        if match:
            digits = match[1].lower().partition("e")[0].partition(".")[2]
            value = float(match[1])
            exponent = int(np.floor(np.log10(value))) if value > 0.0 else 0
            return value + 0.5 * 10.0 ** (exponent - len(digits))
    return None


def _hardpoint(data: dict[str, Any], name: str) -> np.ndarray:
    return np.asarray(data["hardpoints"][name], float)


def _offset(data: dict[str, Any], series: Series) -> float:
    """Distance [m] of the wheel's centre outboard of `axle_outboard`, along the axle."""
    if "wheel_center_x" not in series.columns or "axle_outboard_x" not in series.columns:
        return -float(data.get("config", {}).get("wheel", {}).get("offset", 0.0)) / MM
    centre, outboard, inboard = (
        series.stack(f"{n}_{c}" for c in "xyz")[0]
        for n in ("wheel_center", "axle_outboard", "axle_inboard")
    )
    axle = outboard - inboard
    return float((centre - outboard) @ axle / np.linalg.norm(axle)) / MM


def _radius(data: dict[str, Any]) -> float | None:
    """Unloaded radius of the tyre [m] from its size."""
    tyre = data.get("config", {}).get("wheel", {}).get("tire")
    if not tyre:
        return None
    return (tyre["rim_diameter"] * 25.4 / 2 + tyre["aspect_ratio"] * tyre["section_width"]) / MM


def _quantities(data: dict[str, Any], mech: Any, series: Series) -> dict[str, np.ndarray]:
    """Column name to our values, for the columns that are defined here."""
    inboard, outboard = (_hardpoint(data, n) / MM for n in ("axle_inboard", "axle_outboard"))
    out = (outboard - inboard) / np.linalg.norm(outboard - inboard)
    centre = tuple(outboard + _offset(data, series) * out)
    heights = series.columns["wheel_center_z"] / MM
    racks = (series.columns["trackrod_inboard_y"] - _hardpoint(data, "trackrod_inboard")[1]) / MM
    qs = _walk(mech, centre, heights, racks)
    chosen = _characteristics(data, mech, centre)

    def observe(q: Any) -> dict[str, Any]:
        at = Snapshot(mech, q, moving=False)
        found = {n: factor * what.value(at) for n, (what, factor) in chosen.items()}
        return found | _observed(data, mech, q, centre, outboard)

    values = jax.jit(lambda q: jax.lax.map(observe, q))(jnp.stack(qs))
    columns = {}
    for name, x in values.items():
        x = np.asarray(x)
        parts = {f"{name}_{c}": x[:, i] for i, c in enumerate("xyz")} if x.ndim == 2 else {name: x}
        columns |= parts
    return {n: x for n, x in columns.items() if n in series.columns and not _empty(n, series)}


def _empty(name: str, series: Series) -> bool:
    return bool(np.all(np.isnan(series.columns[name])))


def _characteristics(data: dict[str, Any], mech: Any, centre: Any) -> dict[str, Any]:
    """Column name to observable and factor, for those that the corner has."""
    build = builder_of(data["hardpoints"])
    assert build is not None
    radius, roles = _radius(data), suspension.zoo_corner(build.__name__)
    roles = replace(
        roles,
        wheel_centre=tuple(centre),
        tyre_radius=radius or 1.0,
        side="left" if centre[1] > 0.0 else "right",
        held_in_steering="wheel_centre" if roles.lower_ball is None else "lower_ball",
    )
    columns = AXIS | ({} if radius is None else CONTACT)
    gradients = [x.removesuffix("_gradient") for x, _ in columns.values() if "_grad" in x]
    has = suspension.available(roles)
    known = suspension.characteristics(roles, has, [x for x in gradients if x in has])
    return {n: (known[x], factor) for n, (x, factor) in columns.items() if x in known}


def _walk(mech: Any, centre: Any, heights: np.ndarray, racks: np.ndarray) -> list[Any]:
    """One solution per row, each from the last, in steps of at most `WALK` from the design."""
    key = mbd.PointCoordinate("upright", centre, "z")

    @jax.jit
    def solve(z: Any, y: Any, guess: Any) -> tuple[Any, Any]:
        result = mbd.assemble(mech, known={key: z, "rack": y}, guess=guess, throw=False)
        return result.q, result.status

    q, here, out = mbd.assemble(mech).q, np.array([centre[2], 0.0]), []
    for target in np.stack([heights, racks], axis=1):
        steps = max(1, int(np.ceil(np.max(np.abs(target - here)) / WALK)))
        for share in np.arange(1, steps + 1) / steps:
            z, y = here + share * (target - here)
            q, status = solve(z, y, q)
            if int(status):
                raise ValueError(f"does not assemble at wheel height {z:g} m, rack {y:g} m")
        here = target
        out.append(q)
    return out


def _observed(
    data: dict[str, Any], mech: Any, q: Any, centre: Any, outboard: Any
) -> dict[str, Any]:
    """All that is defined here, at one position [mm, deg], by the names of the columns."""

    def at(body: str, point: Any) -> Any:
        return MM * mbd.point_position(mech, q, body, tuple(np.asarray(point)))

    points = {n: np.asarray(x, float) / MM for n, x in data["hardpoints"].items()}
    out = {
        n: at("upright", x) for n, x in points.items() if n in UPRIGHT or n.endswith("_outboard")
    }
    out |= {n: at("ground", points[n]) for n in CHASSIS if n in points}
    out |= {
        n: at("ground", x) for n, x in points.items() if "_inboard" in n and n != "axle_inboard"
    }
    out["trackrod_inboard"] = at("rack", points["trackrod_inboard"])
    axle = out["axle_outboard"] - out["axle_inboard"]
    side = 1.0 if outboard[1] > 0.0 else -1.0  # the angles are those of a left wheel, or mirrored
    seen = axle * jnp.array([1.0, side, 1.0])
    wheel = at("upright", centre)
    toe = jnp.rad2deg(zoo.toe_angle(seen))
    out |= {
        "axle_midpoint": 0.5 * (out["axle_outboard"] + out["axle_inboard"]),
        "wheel_center": wheel,
        "wheel_travel": wheel[2] - MM * centre[2],
        "camber": jnp.rad2deg(zoo.camber_angle(seen)),
        "toe_angle": toe,
        "steer_angle": -toe,
    }
    if "strut_top" in out and "strut_bottom" in out:
        ends = out["strut_top"] - out["strut_bottom"]
        out["damper_length"] = jnp.sqrt(ends @ ends)
    radius = _radius(data)
    if radius is not None:
        spin = axle / jnp.sqrt(axle @ axle)
        down = jnp.array([0.0, 0.0, -1.0])
        down = down - (down @ spin) * spin  # in the wheel's plane
        out["wheel_contact_centre"] = wheel + MM * radius * down / jnp.sqrt(down @ down)
        out["half_track"] = out["wheel_contact_centre"][1]
    return out
