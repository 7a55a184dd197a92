"""Printed static values of a double-wishbone corner, format ``kc-static-1``.

Hardpoints in mm, x rearward (or forward, where the file says so), y lateral, z up; the corner is
mirrored to a left one in ISO 8855 axes. What the printed names mean was found from the values:

- `castor`, `KPI`: `caster` and `kingpin_inclination` of the line through both outer balls;
- `castor_offset`, `kp_offset_ground`: `caster_trail` and `scrub_radius`, from the contact point;
- `mechanical_trail`: castor offset times cos(castor);
- `hub_trail`: along x *rearwards* from the wheel centre to the axis at its height, so minus
  `caster_offset_wheel`; `kp_offset_wheel`: `kingpin_offset_wheel`;
- `RCH`: `roll_centre_height`, by contact-point velocity with the track rod; not the one by arm
  planes, which differs by centimetres.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accuracy_cases.report import Row, compare, failed, unsupported
from jaxmbd import observe, suspension, zoo

FORMAT = "kc-static-1"
MM = 1000.0
POINTS = {
    "lower_front": "lower_wishbone_inboard_front",
    "lower_rear": "lower_wishbone_inboard_rear",
    "lower_ball": "lower_wishbone_outboard",
    "upper_front": "upper_wishbone_inboard_front",
    "upper_rear": "upper_wishbone_inboard_rear",
    "upper_ball": "upper_wishbone_outboard",
    "trackrod_outer": "trackrod_outboard",
    "trackrod_inner": "trackrod_inboard",
    "wheel_centre": "axle_outboard",
}
DEG = np.rad2deg(1.0)
# Printed name, lower case: our characteristic, factor to the printed unit, derivative or value.
VALUES = {
    "castor": ("caster", DEG),
    "caster": ("caster", DEG),
    "kpi": ("kingpin_inclination", DEG),
    "hub_trail": ("caster_offset_wheel", -MM),
    "castor_offset": ("caster_trail", MM),
    "caster_offset": ("caster_trail", MM),
    "kp_offset_wheel": ("kingpin_offset_wheel", MM),
    "kp_offset_ground": ("scrub_radius", MM),
    "mechanical_trail": ("mechanical_trail", MM),
    "rch": ("roll_centre_height", MM),
    "rch_arm_planes": ("roll_centre_height_arms", MM),
    "camber_slope_deg_per_mm": ("camber_gradient", DEG / MM),
    "toe_slope_deg_per_mm": ("toe_gradient", DEG / MM),
}
HEIGHTS = ("rch", "rch_arm_planes")
ANGLES_AND_OFFSETS, HEIGHT = 0.01, 0.1


def detect(data: dict[str, Any]) -> bool:
    return data.get("format") == FORMAT


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    case = data.get("name", FORMAT)
    points, radius = data.get("hardpoints", {}), data.get("rolling_radius")
    if missing := [n for n in POINTS if n not in points]:
        return [unsupported(case, f"no double wishbone with track rod: no hardpoints {missing}")]
    if radius is None:
        return [failed(case, "the file has no rolling_radius, so no contact point")]
    ours = found(left_corner(data), float(radius) / MM)
    rows = []
    for section in ("printed", "recomputed"):
        for name, value in data.get(section, {}).items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                rows.append(_compared(case, section, name, value, ours, data.get("accuracy", {})))
    return rows or [failed(case, "the file has no printed values")]


def left_corner(data: dict[str, Any]) -> dict[str, np.ndarray]:
    """Hardpoints [m] of a left corner in ISO 8855 axes, with the zoo's names."""
    forward = "x forward" in str(data.get("units", ""))
    side = np.sign(data["hardpoints"]["wheel_centre"][1]) or 1.0
    signs = np.array([1.0 if forward else -1.0, side, 1.0]) / MM
    points = {ours: signs * np.asarray(data["hardpoints"][n], float) for n, ours in POINTS.items()}
    return points | {"axle_inboard": points["axle_outboard"] - np.array([0.0, 0.1, 0.0])}


def found(points: dict[str, np.ndarray], radius: float) -> dict[str, float]:
    """All characteristics in VALUES as drawn, in SI units."""
    roles = replace(suspension.zoo_corner("double_wishbone_kinematic"), tyre_radius=radius)
    names = {ours for ours, _ in VALUES.values() if not ours.endswith("_gradient")}
    wanted = suspension.characteristics(roles, sorted(names), gradients=["camber", "toe"])
    drawn = observe.Configuration({}, wanted)
    values = drawn(zoo.double_wishbone_kinematic(points=points))
    return {name: float(values[name]) for name in wanted}


def _compared(
    case: str, section: str, name: str, value: float, ours: dict[str, float], stated: dict[str, Any]
) -> Row:
    key = name.lower()
    if key not in VALUES:
        return unsupported(case, f"{name} = {value}: no value of this name is known")
    ours_name, factor = VALUES[key]
    mine = factor * ours[ours_name]
    if key.endswith("per_mm"):  # the file gives magnitudes
        mine, allowed, basis = abs(mine), _half_a_digit(value), "half of the last digit"
    elif key in HEIGHTS:
        allowed, basis = float(stated.get("RCH", HEIGHT)), "stated"
    else:
        allowed, basis = float(stated.get("angles and offsets", ANGLES_AND_OFFSETS)), "stated"
    text = f"{name}: {mine:.4f}, {section} {value:g} (difference {mine - value:+.4f})"
    return compare(case, text, mine, value, allowed=allowed, basis=basis)


def _half_a_digit(value: float) -> float:
    digits = len(repr(float(value)).partition(".")[2])
    return 0.5 * 10.0**-digits * (1.0 + 1e-9)
