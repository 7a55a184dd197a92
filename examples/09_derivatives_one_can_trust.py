"""Derivatives one can trust: a four-bar on both sides of its dead centre.

    python examples/09_derivatives_one_can_trust.py [folder for the figure]

With the crank held, the loop closes if coupler and rocker are long enough together. The closure
margin is how much longer they are, or by how much the loop stays open: its gradient is exact on
both sides, so that a search comes back from designs that cannot close.
"""

import sys
from pathlib import Path

import jax
import matplotlib
import numpy as np

import jaxmbd as mbd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
CRANK_ANGLE = 1.2  # [rad]


def four_bar(rocker):
    return mbd.zoo.four_bar(crank=0.5, coupler=0.75, rocker=rocker, ground=0.7)


def margin(mech):
    """How far the loop is from not closing [m]; negative: by how much it stays open."""
    return mbd.closure_margin(mech, {"A": CRANK_ANGLE})


rockers = np.linspace(0.3, 0.6, 25)
margins = np.asarray(jax.jit(jax.vmap(lambda r: margin(four_bar(r))))(rockers))
for rocker in (0.3, 0.6):
    found = margins[np.searchsorted(rockers, rocker)]
    print(f"rocker of {rocker} m: {1e3 * found:.3f} mm")

checked = mbd.check_gradient(margin, four_bar(0.3), vary=["points/B", "points/D"])
print(checked)

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.axhline(0.0, color="#8a97a3", lw=0.8)
axes.plot(1e3 * rockers, 1e3 * margins, color="#1f3d5c", lw=2)
axes.set(xlabel="rocker [mm]", ylabel="closure margin [mm]", title="Open below, closed above zero")
axes.grid(True, color="#e3e7eb")
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "09_closure_margin.png", dpi=110)
