"""Kinematics of a suspension corner: its table, which hardpoint moves what, one exact correction.

    python examples/08_suspension_kinematics.py [folder for the figure]

A published double wishbone steers out as its wheel rises. Its characteristics with their exact
derivatives along the travel come by one call, their derivatives by every hardpoint by another.
These say which single coordinate of the track rod's ends removes the bump steer most cheaply, and
Newton's method finds how far it has to move.
"""

import sys
from pathlib import Path

import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd.viz import kinematics_figure

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")

# --- The corner and the roles of its parts ------------------------------------------------------
corner = mbd.zoo.double_wishbone_kinematic()
roles = mbd.suspension.Corner(
    upright="upright",
    wheel_centre="axle_outboard",
    spindle=("axle_inboard", "axle_outboard"),
    tyre_radius=0.3136,
    steering="rack",
    kingpin=("lower_wishbone_outboard", "upper_wishbone_outboard"),
    lower_arm=tuple(f"lower_wishbone_{n}" for n in ("inboard_front", "inboard_rear", "outboard")),
    upper_arm=tuple(f"upper_wishbone_{n}" for n in ("inboard_front", "inboard_rear", "outboard")),
    wheelbase=2.5,
    cg_height=0.45,
)

# --- All characteristics by one call ------------------------------------------------------------
published = mbd.suspension.kinematics(corner, roles)
print(published, "\n")

# --- Which coordinate of the track rod moves what -----------------------------------------------
observe = ["toe", "roll_centre_height", "virtual_caster"]
rod = mbd.suspension.hardpoint_sensitivities(
    corner, roles, vary="points/trackrod_*", observe=observe
)
print(rod, "\n")
best, effect = rod.ranked("toe_gradient")[0]
print(f"most effect on bump steer: {best}, {effect:+.2f} deg/m per mm")

# --- Move it until toe does not change at the drawn height --------------------------------------
for _ in range(5):
    now = mbd.suspension.hardpoint_sensitivities(corner, roles, vary=best, observe=["toe"])
    slope, change = now.values[0, 1], now.of("toe_gradient", best)
    step = float(np.clip(-slope / change, -0.02, 0.02))
    [place] = mbd.get_variables(corner, [best]).values()
    corner = mbd.set_variables(corner, {best: place + step})
    print(f"  bump steer {np.rad2deg(slope):+.5f} deg/m, moved by {1e3 * step:+.4f} mm")

corrected = mbd.suspension.kinematics(corner, roles)
spread = [float(np.rad2deg(np.ptp(table["toe"]))) for table in (published, corrected)]
print(f"toe over ±60 mm: {spread[0]:.3f} deg as published, {spread[1]:.3f} deg corrected")

OUT.mkdir(parents=True, exist_ok=True)
columns = ["toe", "camber", "half_track_change", "roll_centre_height"]
designs = {"published": published, "corrected": corrected}
kinematics_figure(designs, columns, OUT / "08_suspension_kinematics.png")
print(f"wrote {OUT / '08_suspension_kinematics.png'}")
if abs(slope) > 1e-9 or spread[1] > spread[0] / 4.0:
    sys.exit("the bump steer did not vanish at the drawn height")
