"""What drives bump steer, and which tolerances to tighten: indices, gradients, allocation.

    python examples/07_what_drives_what.py [folder for the stores and the figure]

Three routes to the same question, for the published multi-link corner as built: Sobol indices from
a Saltelli design, rank correlations of a Monte-Carlo study, exact gradients at the nominal car.
Then the cheapest tightening for a yield of 99 %, checked by a new study.
"""

import sys
from pathlib import Path

import jax
import matplotlib
import numpy as np

import jaxmbd as mbd
from jaxmbd import statistics, tolerances
from jaxmbd.observe import Sweep, Toe
from jaxmbd.sampling import Normal, Saltelli

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
LIMIT = np.radians(0.6)  # of toe with the wheel at rest, either way

toe = Toe("upright")
height = mbd.PointTravel("upright", "wheel_centre", "z")
bump = Sweep({height: np.linspace(-0.05, 0.05, 5)}, {"toe_rest": toe.at(0.0), "bump": toe.span()})
build = tolerances.split(mbd.zoo.multi_link(), "tierod", "univ_lat")
scatter = {
    "lengths/tierod": Normal(5e-4),
    "offsets/tierod_inboard@ground": Normal(5e-4),
    "offsets/tierod_outboard@upright": Normal(5e-4),
    "offsets/lateral_inboard@ground": Normal(5e-4),
}


def study(inputs, **options):
    return mbd.Study(build, inputs, observe=bump, **options)


# --- Three routes -------------------------------------------------------------------------------
drawn = study(scatter, samples=4096)
results = drawn.run(OUT / "drawn.zarr", progress=False)
indices = statistics.sobol_of(
    study(scatter, design=Saltelli(512)).run(OUT / "saltelli.zarr", progress=False), "toe_rest"
)
ranks = statistics.correlations(
    statistics.input_values(results), statistics.output_values(results, "toe_rest")
)
exact = drawn.sensitivities()["toe_rest"]
print("share of the variance of toe at rest by Sobol indices, by exact gradients; rank correlation")
for name, first in zip(indices.names, indices.first, strict=True):
    share = sum(x for owner, x in zip(exact.owners, exact.shares, strict=True) if owner == name)
    strongest = next(n for n in ranks.names if n.startswith(name))
    rank = ranks.values[ranks.names.index(strongest)]
    print(f"  {name:32} {first:6.3f} {share:6.3f} {rank:7.3f} of {strongest}")

# --- Allocation ---------------------------------------------------------------------------------
before = statistics.capability(
    statistics.output_values(results, "toe_rest"), low=-LIMIT, high=LIMIT
)
limit = statistics.Limit(exact, low=-LIMIT, high=LIMIT)
allocation = statistics.allocate([limit], wanted=0.99)
tightened = study(allocation.apply(scatter), samples=4096, seed=1)
after = statistics.capability(
    statistics.output_values(tightened.run(OUT / "tightened.zarr", progress=False), "toe_rest"),
    low=-LIMIT,
    high=LIMIT,
)
print(f"yield {before.fraction:.3f} before, {after.fraction:.3f} after; scatter times")
for name, factor in allocation.factors.items():
    print(f"  {name:34} {factor:.2f}")

plt.barh(indices.names, indices.first, xerr=indices.first_error)
plt.xlabel("first Sobol index of toe at rest")
plt.tight_layout()
plt.savefig(OUT / "07_indices.png", dpi=110)
