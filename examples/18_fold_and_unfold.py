"""Linkages that move though a count of their joints says that they cannot, folded and unfolded.

    python examples/18_fold_and_unfold.py [folder for the files]

Bennett's four hinges, Bricard's six, Sarrus's straight line and a scissor lift: how free they are
and which reactions no calculation with rigid parts can know, their motion against closed forms, and
what a small error of one hinge does to each.
"""

import sys
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd.observe import Coordinate, HoldingEffort, Position, Sweep, status_text

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
off = {}  # how far each motion is from its closed form


# --- How free they are -------------------------------------------------------------------------
bennett, bricard, sarrus, lift = (
    *(mbd.zoo.bennett(gravity=0.0), mbd.zoo.bricard(), mbd.zoo.sarrus()),
    mbd.zoo.scissors(3, masses=(0.0, 50.0)),
)
for name, mech in {"Bennett": bennett, "Bricard": bricard, "Sarrus": sarrus, "lift": lift}.items():
    found = mbd.mobility(mech)
    redundant = found.kutzbach < found.dof
    print(f"{name}: {found.kutzbach} by Kutzbach, {found.dof} in truth, redundant: {redundant}")

# --- Bennett: tan(θ/2) tan(φ/2) is constant ----------------------------------------------------
turn = np.linspace(0.0, 2.0, 41)
found = Sweep({"J0": turn}, {"second": Coordinate("J1")})(bennett)
wanted = mbd.zoo.bennett_angle(1.5 + turn) - mbd.zoo.bennett_angle(1.5)
off["Bennett [rad]"] = np.abs(found["second"] - wanted).max()

# --- Bricard: hinges stay where two rods meet --------------------------------------------------
ends = {
    "one": Position("rod2", "P3"),
    "other": Position("rod3", "P3"),
    "far": Position("rod2", "P2"),
}
found = Sweep({"J0": np.linspace(0.0, 1.2, 25)}, ends)(bricard)
rod = np.linalg.norm(np.asarray(found["one"] - found["far"]), axis=1)
off["Bricard [m]"] = max(np.abs(found["one"] - found["other"]).max(), np.abs(rod - 1.0).max())

# --- Sarrus: the plate goes straight -----------------------------------------------------------
bend = np.linspace(-0.6, 0.5, 23)
plate = np.asarray(Sweep({"Ax": -bend}, {"P": Position("plate", "Cx")})(sarrus)["P"])
height = 0.6 * np.sin(0.9 + bend)
off["Sarrus [m]"] = np.abs(plate - np.stack([0 * bend + 0.2, 0 * bend, height], 1)).max()

# --- The lift: force at the foot, by virtual work ----------------------------------------------
travel = np.linspace(-0.3, 0.08, 39)
held = Sweep(
    {"foot": travel}, {"force": HoldingEffort("foot"), "top": Position("table", "P3", "y")}
)
found = held(lift)
angle = np.arccos(np.cos(0.5) + travel)
off["lift, its height [m]"] = np.abs(found["top"] - 3.0 * np.sin(angle)).max()
load = 50.0 * 9.81 * 3.0 / np.tan(angle)
off["lift, its force"] = np.abs(-found["force"] / load - 1.0).max()
for name, error in off.items():
    print(f"off by {error:.1e}: {name}")

# --- A hinge that is a milliradian askew -------------------------------------------------------
for mech, drive, joint in ((bennett, "J0", "J2"), (sarrus, "Ax", "Bx"), (lift, "foot", None)):
    if joint is not None:
        hinge = mech.joints[joint]
        axis = np.asarray(hinge.axis) + np.array([1e-3, 0.0, 1e-3])
        mech = mech.replace(
            joints={joint: mbd.Revolute(hinge.a, hinge.b, hinge.at, axis=hinge.axis, axis_b=axis)}
        )
    found = Sweep({drive: [0.0, 0.05]}, {"moved": Coordinate(drive)})(mech)
    print(f"{joint or 'nothing'} askew, {drive} moved: {status_text(int(found['status']))}")
if max(off.values()) > 1e-11:
    sys.exit("a motion is not that of its closed form")

# --- A picture of each, folding ----------------------------------------------------------------
BARS, FEET = ["P0 Q1 P2 Q3", "Q0 P1 Q2 P3"], ["Ax Bx Cx", "Ay By Cy", "Cx Cy"]
shown = {
    "Bennett": (bennett, "J0", np.linspace(0.0, 2.4, 5), ["J0 J1 J2 J3 J0"]),
    "Bricard": (bricard, "J0", np.linspace(0.0, 1.2, 4), ["P1 P2 P3 P4 P5 P6 P1"]),
    "Sarrus": (sarrus, "Ax", np.linspace(-0.5, 0.6, 4), FEET),
    "scissor lift": (lift, "foot", np.linspace(-0.5, 0.05, 4), BARS),
}
fig = plt.figure(figsize=(9, 8), layout="constrained")
for k, (name, (mech, drive, values, lines)) in enumerate(shown.items()):
    carriers = {j.at.name: j.b if j.a == "ground" else j.a for j in mech.joints.values()}
    used = {point for line in lines for point in line.split()}
    places = Sweep({drive: values}, {p: Position(carriers[p], p) for p in used})(mech)
    flat = len(mech.gravity) == 2
    ax = fig.add_subplot(2, 2, k + 1, projection=None if flat else "3d", title=name)
    for i in range(len(values)):
        for line in lines:
            path = np.stack([np.asarray(places[p][i]) for p in line.split()])
            ax.plot(
                *path.T[: 2 if flat else 3],
                "o-",
                color=plt.cm.viridis(i / len(values)),
                markersize=3,
            )
    names = {f"{axis}label": f"{axis} [m]" for axis in ("xy" if flat else "xyz")}
    ax.set(aspect="equal", **names)
OUT.mkdir(parents=True, exist_ok=True)
fig.savefig(OUT / "18_fold_and_unfold.png", dpi=120)
print(f"wrote {OUT / '18_fold_and_unfold.png'}")
