"""Flatten bump steer: move the ends of a track rod along exact gradients.

    python examples/04_flatten_bump_steer.py [folder for the figure]

Bump steer is the change of toe as the wheel moves up and down. The corner is a published multi-link
suspension; both ends of its track rod may move by 5 mm in y and z. The whole computation, including
loop closure at every wheel height, is differentiated.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import optax

import jaxmbd as mbd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")

# --- The problem --------------------------------------------------------------------------------
MOVABLE = ("tierod_inboard", "tierod_outboard")
LIMIT = 0.005  # [m]
TRAVEL = jnp.linspace(-0.06, 0.06, 13)  # of the wheel, upwards from its drawn height, z = 0 [m]
HEIGHT = mbd.PointCoordinate("upright", "wheel_centre", "z")
PUBLISHED = mbd.zoo.multi_link().points
SPINDLE = jnp.array([0.0, 1.0, 0.0])


def toe(shift):
    """Toe [rad] over the wheel's travel, with hardpoints moved by `shift` {name: (y, z)} [m]."""
    moved = {name: PUBLISHED[name] + jnp.array([0.0, *shift[name]]) for name in MOVABLE}
    corner = mbd.zoo.multi_link(points=moved)

    def at(travel):
        q = mbd.assemble(corner, known={HEIGHT: travel}).q
        return mbd.zoo.toe_angle(mbd.poses(corner, q)["upright"].rotation @ SPINDLE)

    return jax.vmap(at)(TRAVEL)


def bump_steer(shift):
    """Root mean square of toe [deg]; it is zero as drawn, whatever the hardpoints."""
    return jnp.sqrt(jnp.mean(jnp.degrees(toe(shift)) ** 2))


# --- The optimisation ---------------------------------------------------------------------------
optimiser = optax.adam(5e-4)


@jax.jit
def step(shift, state):
    value, slope = jax.value_and_grad(bump_steer)(shift)
    updates, state = optimiser.update(slope, state)
    shift = optax.apply_updates(shift, updates)
    shift = jax.tree.map(lambda x: jnp.clip(x, -LIMIT, LIMIT), shift)
    return shift, state, value


start = {name: jnp.zeros(2) for name in MOVABLE}
shift, state, history = start, optimiser.init(start), []
for _ in range(60):
    shift, state, value = step(shift, state)
    history.append(float(value))

# --- Result -------------------------------------------------------------------------------------
before, after = (np.degrees(jax.jit(toe)(s)) for s in (start, shift))
rms = [float(np.sqrt(np.mean(x**2))) for x in (before, after)]
print(f"bump steer, root mean square: {rms[0]:.4f}° before, {rms[1]:.4f}° after")
print(f"bump steer, range:            {np.ptp(before):.4f}° before, {np.ptp(after):.4f}° after")
for name in MOVABLE:
    y, z = 1e3 * np.asarray(shift[name])
    print(f"  {name:18} moved by {y:+.2f} mm in y, {z:+.2f} mm in z")
if rms[1] > rms[0] / 5:
    sys.exit("the bump steer did not fall to a fifth")

# --- Plot ---------------------------------------------------------------------------------------
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(before, 1e3 * TRAVEL, color="#d1495b", lw=2, label="published")
left.plot(after, 1e3 * TRAVEL, color="#1f3d5c", lw=2, label="optimised")
left.set(xlabel="toe, in positive [deg]", ylabel="wheel travel [mm]", title="Bump steer")
left.legend(frameon=False)
right.semilogy(history, color="#1f3d5c")
right.set(xlabel="step", ylabel="root mean square of toe [deg]", title="Adam on exact gradients")
for ax in (left, right):
    ax.grid(True, color="#e3e7eb")
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "04_bump_steer.png", dpi=110)
print(f"wrote {OUT / '04_bump_steer.png'}")
