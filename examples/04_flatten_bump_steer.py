"""Flatten bump steer: move hardpoints along exact gradients, and keep two links apart.

    python examples/04_flatten_bump_steer.py [folder for the figure]

Bump steer is the change of toe as the wheel moves up and down. The corner is a published multi-link
suspension; the ends of its track rod and lateral link may move by 15 mm. The whole computation,
including loop closure at every wheel height, is differentiated.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import jaxmbd as mbd
from jaxmbd.design import AtLeast, Within
from jaxmbd.observe import Sweep, Toe

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")

# --- The problem --------------------------------------------------------------------------------
corner = mbd.zoo.multi_link()
travel = np.linspace(-0.06, 0.06, 13)  # of the wheel, upwards from its drawn height [m]
height = mbd.PointTravel("upright", "wheel_centre", "z")
sweep = Sweep({height: travel}, {"toe": Toe("upright")})


def observe(mech):
    """Toe over travel [rad], and how far apart the outer ends of both links are [m]."""
    gap = mech.points["tierod_outboard"] - mech.points["lateral_ball"]
    return {"toe": sweep(mech)["toe"], "gap": jnp.linalg.norm(gap)}


def bump_steer(seen):
    """Mean square of toe [deg²]."""
    return jnp.mean(jnp.degrees(seen["toe"]) ** 2)


# --- The optimisation ---------------------------------------------------------------------------
found = mbd.minimize(
    bump_steer,
    corner,
    vary={
        "points/tierod_*/y": Within("15 mm"),
        "points/tierod_*/z": Within("15 mm"),
        "points/lateral_*/z": Within("15 mm"),
    },
    observe=observe,
    constraints={"gap": AtLeast("gap", 0.17)},
)
print(found)

# --- Result -------------------------------------------------------------------------------------
before, after = (np.degrees(np.asarray(sweep(m)["toe"])) for m in (corner, found.mechanism))
rms = [float(np.sqrt(np.mean(x**2))) for x in (before, after)]
print(f"\nbump steer, root mean square: {rms[0]:.4f}° before, {rms[1]:.5f}° after")
if rms[1] > rms[0] / 10:
    sys.exit("the bump steer did not fall to a tenth")

# --- Plot ---------------------------------------------------------------------------------------
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(before, 1e3 * travel, color="#d1495b", lw=2, label="published")
left.plot(after, 1e3 * travel, color="#1f3d5c", lw=2, label="optimised")
left.set(xlabel="toe, in positive [deg]", ylabel="wheel travel [mm]", title="Bump steer")
left.legend(frameon=False)
right.semilogy(np.sqrt(found.history[:, 0]), color="#1f3d5c")
right.set(xlabel="iteration", ylabel="root mean square of toe [deg]", title=found.method)
for ax in (left, right):
    ax.grid(True, color="#e3e7eb")
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "04_bump_steer.png", dpi=110)
print(f"wrote {OUT / '04_bump_steer.png'}")
