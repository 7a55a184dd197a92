"""Choose bushing rates that give a wheel the steer by side force and by braking that is wanted.

    python examples/12_compliance_steer.py [folder for the figure]

The lower arm of a published MacPherson corner hangs on two rubber bushings. Their radial rates
decide how the wheel steers when forces act at its contact patch. Newton's method finds the rates,
with exact derivatives of the compliance matrix; the static equilibrium moves with them.
"""

import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import jaxmbd as mbd
from jaxmbd import lanes, suspension

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
warnings.simplefilter("ignore")

# --- The corner: its lower arm's hinge becomes two bushings along the arm's axis -----------------
rigid = mbd.zoo.macpherson(wheel_load=4000.0)
front, rear = (np.asarray(rigid.points[f"lower_arm_{end}"]) for end in ("front", "rear"))
frame = np.stack([front - rear, (0.0, 0.0, 1.0)])  # x along the arm's axis
rates = np.array([30.0, 30.0, 30.0, 2e6, 5e6, 5e6])  # [N·m/rad; N/m]
corner = rigid.replace(
    joints={"rev_lca": mbd.Free("ground", "lca")},
    forces={
        f"bushing_{end}": mbd.Bushing("ground", "lca", f"lower_arm_{end}", rates, frame=frame)
        for end in ("front", "rear")
    },
)
roles = suspension.zoo_corner("macpherson")

# --- Steer per side force, toe per braking force [rad/N], by the rates across the arm's axis -----
RADIAL = [f"forces/bushing_{end}/stiffness/{i}" for end in ("front", "rear") for i in "yz"]
WANTED = np.array([0.012, 0.005])  # [deg/kN]


def steer(logs):
    """Coefficients [deg/kN] at rates of exp(logs) times those of the start, and all others."""
    scale = jnp.repeat(jnp.exp(logs), 2)
    values = {path: 5e6 * x for path, x in zip(RADIAL, scale, strict=True)}
    now = mbd.set_variables(corner, values)
    found = suspension.compliance(now, roles, known={"rev_spindle": 0.0}, throw=False)
    c = found.coefficients()
    pair = jnp.stack([c["lateral/single/steer"][0], c["braking/single/toe"][0]])
    return jnp.rad2deg(pair) * 1e3, found


columns = lanes.vmap(lambda x, dx: jax.jvp(steer, (x,), (dx,), has_aux=True))

logs, steps = np.zeros(2), []
for iteration in range(12):
    value, rate, found = columns(np.tile(logs, (2, 1)), np.eye(2))
    now = jax.tree.map(lambda x: x[0], found)
    missing = WANTED - np.asarray(value[0])
    steps.append(np.asarray(value[0]))
    if iteration == 0:
        print("as it is:", now, sep="\n")
    if np.abs(missing).max() < 1e-13:
        break
    logs = logs + np.clip(np.linalg.solve(np.asarray(rate).T, missing), -0.5, 0.5)

print("with other bushings:", now, sep="\n")
front_rate, rear_rate = 5e6 * np.exp(logs)
print(
    f"radial rates {front_rate / 1e3:.1f} N/mm in front, {rear_rate / 1e3:.1f} N/mm behind; "
    f"off by {np.abs(missing).max():.0e} deg/kN after {iteration} steps"
)
if np.abs(missing).max() > 1e-13:
    sys.exit("the wanted coefficients were not found")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for k, (name, color) in enumerate(
    [("steer by side force", "#1f3d5c"), ("toe in braking", "#d1495b")]
):
    axes.plot(1e3 * np.array(steps)[:, k], "o-", color=color, label=name)
    axes.axhline(1e3 * WANTED[k], color=color, lw=0.8, ls="--")
axes.set(xlabel="Newton step", ylabel="coefficient [mdeg/kN]", title="Compliance steer as wanted")
axes.legend(frameon=False)
axes.grid(True, color="#e3e7eb")
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "12_compliance_steer.png", dpi=110)
