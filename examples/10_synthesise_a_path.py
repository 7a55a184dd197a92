"""Synthesise a linkage: a four-bar whose coupler point follows a vertical line.

    python examples/10_synthesise_a_path.py [folder for the figure]

Six points are to be met in order, at whatever crank angles; links are 5 to 60 long, the crank turns
fully, and no dead centre lies on the way. The hardpoints are the unknowns. Thirty-two random
drawings are improved in step, followed along their input to find defects, and the best is finished
with closed loops.
"""

import sys
from pathlib import Path

import jax
import matplotlib
import numpy as np

from jaxmbd import point_position
from jaxmbd.design import Between, Within
from jaxmbd.synthesis import PathGeneration, Problem, follow, massless_four_bar, synthesize

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")

# --- The problem --------------------------------------------------------------------------------
LINE = np.array([(20.0, 20.0 + 5.0 * i) for i in range(6)])
LIMITS = [-60.0, -60.0], [60.0, 60.0]
BEGIN = {"A": (10.0, 25.0), "B": (10.0, 30.0), "C": (30.0, 35.0), "D": (30.0, 25.0)}

problem = Problem(
    massless_four_bar(),
    PathGeneration("A", body="coupler", point="P", targets=LINE),
    {f"points/{name}": Between(*LIMITS, start=at) for name, at in BEGIN.items()}
    | {"points/P": Within(1.0, start=LINE[0])},
    lengths=dict.fromkeys([("A", "B"), ("B", "C"), ("C", "D"), ("A", "D")], (5.0, 60.0)),
    least_transmission=np.sin(np.deg2rad(15.0)),
    full_turn=True,
)

# --- The search ---------------------------------------------------------------------------------
found = synthesize(problem, starts=32, seed=0, finishes=1)
print(found)
linkage = found.mechanism
turn = np.linspace(0.0, 2.0 * np.pi, 181)
course = follow(linkage, "A", turn)
if found.root_mean_square > 1e-6 or not found.defects.sound or not np.all(course.closed):
    sys.exit("no linkage was found that meets the points")


# --- Plot ---------------------------------------------------------------------------------------
def path_of(point, body):
    """Positions (181, 2) of a point over the turn."""
    at = jax.jit(jax.vmap(lambda q: point_position(linkage, q, body, point)))
    return np.asarray(at(course.q))[:, :2]


figure, axes = plt.subplots(figsize=(6, 6), layout="constrained")
axes.plot(*path_of("P", "coupler").T, color="#1f3d5c", lw=2, label="path of P")
axes.plot(*LINE.T, "o", color="#d1495b", label="wanted")
points = {name: np.asarray(x) for name, x in linkage.points.items()}
for chain in ("ABCD", "BPC"):
    axes.plot(*np.array([points[name] for name in chain]).T, "-o", color="#8a97a3", lw=1, ms=4)
axes.set(xlabel="x", ylabel="y", title=f"Root mean square error {found.root_mean_square:.1e}")
axes.set_aspect("equal")
axes.grid(True, color="#e3e7eb")
axes.legend(frameon=False)
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "10_path.png", dpi=110)
print(f"wrote {OUT / '10_path.png'}")
