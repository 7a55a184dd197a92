"""20 000 slider-cranks with correlated scatter: stopped, continued, the worst one run again."""

import sys
from pathlib import Path

import jax
import matplotlib
import numpy as np

import jaxmbd as mbd
from jaxmbd.observe import Coordinate, Sweep
from jaxmbd.sampling import Normal, TruncatedNormal

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")

crank, rod, slider = mbd.Body(0.4, "pin"), mbd.Body(0.3, "wrist"), mbd.Body(0.8, "wrist")
joints = {
    "shaft": mbd.Revolute("ground", "crank", at="shaft"),
    "pin": mbd.Revolute("crank", "rod", at="pin"),
    "wrist": mbd.Revolute("rod", "slider", at="wrist"),
    "guide": mbd.Prismatic("ground", "slider", at="wrist", axis=(1, 0)),
}
points = {"shaft": (0.0, 0.0), "pin": (0.05, 0.0), "wrist": (0.20, 0.01)}
position = Coordinate("guide")
turn = Sweep({"shaft": np.linspace(0.0, 6.28, 37)}, {"s": position, "stroke": position.span()})
jig, eccentricity = Normal(3e-4), TruncatedNormal(5e-4, half_width=1e-3)
study = mbd.Study(
    mbd.Mechanism({"crank": crank, "rod": rod, "slider": slider}, joints, points=points),
    {"points/pin/x": jig, "points/wrist/x": jig, "points/wrist/y": eccentricity},
    correlation={("points/pin/x", "points/wrist/x"): 0.8},  # drilled on one jig
    observe=turn,
    samples=20_000,
)


def stop(report):
    """Press Ctrl-C after the third chunk. A kill or a power cut does no more harm."""
    if report.chunk == 2:
        raise KeyboardInterrupt


try:
    study.run(OUT / "slider_crank.zarr", progress=stop)
except KeyboardInterrupt as stopped:
    print(stopped)
results = study.run(OUT / "slider_crank.zarr", progress=False)  # in a new process too
print(mbd.campaign.status_line(results), mbd.campaign.spread_table(results), sep="\n")
worst = int(np.argmax(np.abs(results.stroke.values - results["nominal.stroke"].values)))
again = study.rerun(OUT / "slider_crank.zarr", worst)
print("alone, the same to the last bit:", again.outputs["stroke"] == again.stored["stroke"])
away = again.trajectory.curves["s"] - results["nominal.s"].values
plt.plot(np.degrees(again.trajectory.x), 1e3 * away)
plt.gca().set(xlabel="crank [deg]", ylabel=f"slider, sample {worst} less nominal [mm]")
plt.savefig(OUT / "05_worst_sample.png", dpi=110)
