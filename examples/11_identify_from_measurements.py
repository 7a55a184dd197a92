"""Masses, friction and a hardpoint from measured series, and what they cannot tell apart.

    python examples/11_identify_from_measurements.py [folder for the figure]

A four-bar linkage on two springs is let go. The angle of its crank and a force in a bearing are
measured for two seconds: with noise, a gap and some wrong samples. The data are made here, from
numbers that the identification does not know.
"""

import sys
from pathlib import Path

import jax
import matplotlib
import numpy as np

import jaxmbd as mbd
from jaxmbd.design import Between, MovedTogether, Within
from jaxmbd.identification import identifiability
from jaxmbd.observe import Configuration, Coordinate, Motion, Reaction

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")

# --- The mechanism as it is thought to be, and the experiment ------------------------------------
spring = mbd.TorsionSpring("A", stiffness=15.0, damping=0.0, free_angle=0.3)
friction = mbd.JointFriction("D", radius=0.02, drag=0.3)
linkage = mbd.zoo.four_bar().replace(
    forces={"upper_spring": spring, "lower_spring": spring, "friction": friction}
)
outputs = {"angle": Coordinate("A"), "force": Reaction("A", axis="z")}
release = Motion(2.0, 2e-3, outputs, Configuration({"A": 0.1}), save_every=10, keep=None)
NOISE = {"angle": 2e-3, "force": 0.5}  # [rad], [N]

# --- Before measuring: what would the data tell? -------------------------------------------------
unknown = {
    "bodies/coupler/mass": Within("1 kg"),
    "forces/friction/drag": Between(0.0, 2.0),
    "points/D/x": Within("20 mm"),
}
springs = {"forces/*_spring/stiffness": Within(0.5, relative=True)}
told = identifiability(linkage, unknown | springs, release, NOISE)
print(f"before: {told.ambiguities[0]}\n")

# --- The measurement -----------------------------------------------------------------------------
TRUTH = {
    "bodies/coupler/mass": 2.9,
    "forces/friction/drag": 0.42,
    "points/D/x": 0.708,
    "springs": 3.0,  # [N·m/rad] more than thought, each
}
true = {p: x for p, x in TRUTH.items() if p != "springs"}
true |= {f"forces/{name}_spring/stiffness": 15.0 + TRUTH["springs"] for name in ("upper", "lower")}
rng, made = np.random.default_rng(0), release(mbd.set_variables(linkage, true))
data = {n: np.array(made[n]) + sigma * rng.normal(size=101) for n, sigma in NOISE.items()}
data["force"][[12, 47, 80]] += (30.0, -25.0, 40.0)
data["angle"][60:75] = np.nan

# --- The identification: both springs are alike, so they are one unknown --------------------------
alike = MovedTogether("forces/*_spring/stiffness", Within("7.5 N m/rad"))
found = mbd.identify(linkage, unknown | {"springs": alike}, data, release, loss="huber")
print(found)
off = {n: abs(found.values[n] - x) / found.errors[n] for n, x in TRUTH.items()}
print(f"\ntruth: at most {max(off.values()):.1f} standard errors away")
if max(off.values()) > 3.0 or not found.converged:
    sys.exit("the truth is not where the estimates say")

# --- Plot ----------------------------------------------------------------------------------------
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, (name, band), unit in zip(axes, found.predict().items(), ("rad", "N"), strict=True):
    ax.fill_between(
        band.places, band.lowest, band.highest, color="#c9d6e3", label="95 % of new measurements"
    )
    ax.plot(band.places, band.value, color="#1f3d5c", label="identified")
    ax.plot(band.places, data[name], ".", color="#d1495b", ms=4, label="measured")
    ax.set(xlabel="time [s]", ylabel=f"{name} [{unit}]")
    ax.grid(True, color="#e3e7eb")
axes[1].legend(frameon=False, loc="upper center")
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "11_identified.png", dpi=110)
print(f"wrote {OUT / '11_identified.png'}")
