"""Describe a four-bar linkage, inspect it, assemble it over a turn, check against a hand solution.

    python examples/01_describe_and_assemble.py [folder for the figure]

A mechanism is described in global coordinates in its drawn configuration. Lengths follow from the
hardpoints: there are no body frames and no link tables.
"""

import sys
from pathlib import Path

import jax
import matplotlib
import numpy as np

import jaxmbd as mbd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)  # before anything is computed: float64 throughout
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")

# --- Describe -----------------------------------------------------------------------------------
# Four hardpoints in the plane xy [m]. The ground is the link AD; all joints turn about z.
POINTS = {
    "A": (0.0, 0.0, 0.0),
    "B": (0.0, 0.3, 0.0),
    "C": (0.7, 0.6, 0.0),
    "D": (0.7, 0.0, 0.0),
}
Z = (0.0, 0.0, 1.0)


def bar(mass, start, end):
    """A slender bar between two hardpoints, with m l²/12 about its centre."""
    p, q = np.array(POINTS[start]), np.array(POINTS[end])
    across = mass * np.sum((q - p) ** 2) / 12.0
    return mbd.Body(mass, com=(p + q) / 2, inertia=(across, across, across))


linkage = mbd.Mechanism(
    bodies={
        "crank": bar(0.5, "A", "B"),
        "coupler": bar(1.2, "B", "C"),
        "rocker": bar(1.0, "D", "C"),
    },
    joints={
        # A joint's coordinate is that of the second body relative to the first, zero as drawn.
        "crank": mbd.Revolute("ground", "crank", at="A", axis=Z),
        "left": mbd.Revolute("crank", "coupler", at="B", axis=Z),
        "right": mbd.Revolute("coupler", "rocker", at="C", axis=Z),
        "rocker": mbd.Revolute("ground", "rocker", at="D", axis=Z),
    },
    points=POINTS,
    gravity=(0.0, -9.81, 0.0),
)
print(linkage)

# --- Look ---------------------------------------------------------------------------------------
# The loop is cut at one joint, which becomes constraint rows; the others have coordinates q.
print(f"\nTopology: {mbd.topology(linkage)}")
# Some rows of a planar loop drawn in space are redundant; they are named here and handled.
print(f"\nMobility: {mbd.mobility(linkage)}")

# --- Assemble -----------------------------------------------------------------------------------
# One position: close the loop with the crank held 30° from its drawn position.
one = mbd.assemble(linkage, known={"crank": np.radians(30.0)})
print(f"\nAt 30°: q = {np.round(np.degrees(one.q), 3)}°, loop open by {one.residual:.1e} m")

# A whole turn: the same function, mapped over the angle. Each solution starts from the drawn
# position and proceeds in small steps, so that all stay on the drawn branch.
angles = np.radians(np.linspace(0.0, 360.0, 181))
turn = jax.vmap(lambda angle: mbd.assemble(linkage, known={"crank": angle}))(angles)
rocker = jax.vmap(lambda q: mbd.joint_coordinates(linkage, q)["rocker"][0])(turn.q)
path = jax.vmap(lambda q: mbd.point_position(linkage, q, "coupler", (0.35, 0.75, 0.0)))(turn.q)
print(f"Over the turn: {np.sum(turn.status == mbd.Status.OK)} of {len(angles)} positions assembled")

# --- Check --------------------------------------------------------------------------------------
# By hand: C is an intersection of a circle about B (the coupler) and one about D (the rocker).
a, b, c, d = (np.array(POINTS[name][:2]) for name in "ABCD")
coupler, length = np.linalg.norm(c - b), np.linalg.norm(c - d)
tip = a + np.linalg.norm(b - a) * np.stack([-np.sin(angles), np.cos(angles)], axis=1)
gap = tip - d
distance = np.linalg.norm(gap, axis=1)
wedge = np.arccos((length**2 + distance**2 - coupler**2) / (2 * length * distance))
by_hand = np.unwrap(np.arctan2(gap[:, 1], gap[:, 0]) - wedge - np.pi / 2)
error = np.max(np.abs(np.asarray(rocker) - by_hand))
print(f"Rocker swings {np.degrees(np.ptp(by_hand)):.3f}°; largest difference {error:.1e} rad")

# --- Plot ---------------------------------------------------------------------------------------
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(np.degrees(angles), np.degrees(by_hand), color="#d1495b", lw=6, alpha=0.35, label="hand")
left.plot(np.degrees(angles), np.degrees(rocker), color="#1f3d5c", lw=1.5, label="assembled")
left.set(xlabel="crank [deg]", ylabel="rocker [deg]", title="Rocker over a turn of the crank")
left.legend(frameon=False)
for k in range(165, -1, -15):
    end = d + length * np.array([-np.sin(by_hand[k]), np.cos(by_hand[k])])
    style = dict(color="#1f3d5c", lw=2) if k == 0 else dict(color="#4c78a8", lw=1, alpha=0.35)
    right.plot(*np.stack([a, tip[k], end, d]).T, "o-", ms=3, **style)
right.plot(path[:, 0], path[:, 1], color="#d1495b", label="a point of the coupler")
right.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", title="The linkage, every 30°")
right.set_ylim(-0.35, 0.95)
right.legend(frameon=False, loc="upper left")
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "01_four_bar.png", dpi=110)
print(f"wrote {OUT / '01_four_bar.png'}")
