"""A thousand RSSR linkages with scattered hardpoints, some of which cannot be assembled.

    python examples/03_a_batch.py [folder for the figure]

A mechanism is a pytree, so `jax.vmap` over a function that builds one is a batch of designs. A
variant that cannot be assembled returns NaN with a status, and affects neither the others nor the
gradient with respect to a shared number.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import jaxmbd as mbd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")

# --- Variants -----------------------------------------------------------------------------------
# The crank's pivot scatters by 15 mm in each direction, the coupler's length by 8 mm: far more than
# real tolerances, so that some variants cannot make half a turn.
COUNT = 1000
rng = np.random.default_rng(1)
LENGTHS = np.array([0.050, 0.110, 0.100])  # crank, coupler, rocker [m]
pivots = np.array([-0.130, -0.020, -0.02036]) + 15e-3 * rng.standard_normal((COUNT, 3))
lengths = LENGTHS + np.array([0.0, 8e-3, 0.0]) * rng.standard_normal((COUNT, 1))
angles = jnp.radians(jnp.arange(0.0, 181.0, 10.0))


def rocker_swing(pivot, lengths):
    """Rocker angle [rad] of one variant over half a turn of its crank, and the worst status."""
    mech = mbd.zoo.rssr(lengths=lengths, pivot=pivot)

    def at(guess, angle):
        """One position, starting from the last one that was assembled."""
        found = mbd.assemble(mech, known={"crank": angle}, guess=guess)
        rocker = mbd.joint_coordinates(mech, found.q)["rocker"][0]
        return jnp.where(found.status == 0, found.q, guess), (rocker, found.status)

    _, (rocker, status) = jax.lax.scan(at, jnp.asarray(mbd.neutral(mech)), angles)
    return rocker, jnp.max(status)


rocker, status = jax.jit(jax.vmap(rocker_swing))(pivots, lengths)

# --- Statuses and a check -----------------------------------------------------------------------
ok = np.asarray(status) == mbd.Status.OK
for kind in mbd.Status:
    if count := int(np.sum(status == kind)):
        print(f"{kind.name:14} {count:5d}")

# The closed-form solution is NaN where the loop cannot close: it must fail for the same variants
# and agree for the others.
theta = jax.vmap(lambda pivot, l: mbd.zoo.rssr_theta(angles, lengths=l, pivot=pivot))
exact = np.asarray(theta(pivots, lengths))
possible = np.all(np.isfinite(exact), axis=1)
print(
    f"impossible by the closed form: {np.sum(~possible)}, of these reported ok: "
    f"{np.sum(ok & ~possible)}; possible but not assembled: {np.sum(possible & ~ok)}"
)
error = np.abs(np.asarray(rocker)[ok] - (exact - exact[:, :1])[ok])
print(f"largest difference of the others: {error.max():.1e} rad")


# --- A gradient through the whole batch ---------------------------------------------------------
def mean_swing(coupler):
    """Mean rocker angle at 180° of the variants that assemble; `coupler` is added to all [m]."""
    mech = jax.vmap(lambda p, l: mbd.zoo.rssr(lengths=l.at[1].add(coupler), pivot=p))
    batch = mech(jnp.asarray(pivots), jnp.asarray(lengths))

    def one(mech):
        found = mbd.assemble(mech, known={"crank": jnp.pi})
        good = found.status == mbd.Status.OK
        safe = jnp.where(good, found.q, mbd.neutral(mech))
        return jnp.where(good, mbd.joint_coordinates(mech, safe)["rocker"][0], 0.0), good

    values, good = jax.vmap(one)(batch)
    return jnp.sum(values) / jnp.sum(good), jnp.sum(~good)


(mean, failed), slope = jax.jit(jax.value_and_grad(mean_swing, has_aux=True))(0.0)
print(
    f"at 180° ({failed} not assembled): mean rocker angle {np.degrees(mean):.3f}°, "
    f"slope {np.degrees(slope) / 1e3:.3f}° per mm of coupler"
)

# --- Plot ---------------------------------------------------------------------------------------
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(np.degrees(angles), np.degrees(rocker[ok]).T, color="#4c78a8", lw=0.4, alpha=0.2)
left.set(xlabel="crank [deg]", ylabel="rocker from where it is drawn [deg]")
left.set_title(f"{ok.sum()} variants that turn half round")
swing = np.degrees(np.ptp(np.asarray(rocker)[ok], axis=1))
right.hist(swing, bins=30, color="#4c78a8", alpha=0.6, edgecolor="white")
right.set(xlabel="swing of the rocker [deg]", ylabel="variants")
right.set_title(f"mean {swing.mean():.1f}°, standard deviation {swing.std():.1f}°")
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "03_batch.png", dpi=110)
print(f"wrote {OUT / '03_batch.png'}")
