"""A policy for an active suspension, learned by gradients through the simulation.

    python examples/14_learn_an_active_suspension.py [folder for the figure] [number of updates]

A double wishbone carries a quarter of a car over rough roads (ISO 8608, class C, 20 m/s), with a
camera that sees the road ahead. A network learns moments of its motor by short-horizon
actor-critic; more updates than 60 gain some percent. It is compared on roads that it has never seen
with the passive corner and with a skyhook, a moment against the body's speed and for a softer
damper, whose two gains are tuned for the same reward.
"""

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from scipy.optimize import minimize

from jaxmbd import ml
from jaxmbd.observe import Element

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
UPDATES = int(sys.argv[2]) if len(sys.argv) > 2 else 60
AHEAD = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3)  # what the camera sees [s]

# --- The same corner with one more sensor, to judge by: policies do not see it -------------------
env = ml.active_corner(preview=AHEAD)
judged = ml.active_corner(preview=AHEAD, observe={**env.observe, "load": Element("tyre", "normal")})


def ride(policy, params, keys):
    """Three seconds on the roads of some lanes."""

    def blind(params, seen, key):
        return policy(params, seen[:-1], key)

    return jax.vmap(partial(ml.rollout, judged, blind, params, steps=300))(keys)


def rms(x):
    return float(np.sqrt(np.mean(np.square(x))))


# --- Rivals --------------------------------------------------------------------------------------
def skyhook(gains, seen, key):
    return 1e3 * (gains[0] * seen[:1] + gains[1] * seen[4:5])


def cost(gains):
    return -jnp.mean(ride(skyhook, gains, ml.lane_keys(1000, 64)).reward)


value_and_slope = jax.jit(jax.value_and_grad(cost))
gains = minimize(lambda x: tuple(map(np.asarray, value_and_slope(x))), np.zeros(2), jac=True).x

# --- Learning ------------------------------------------------------------------------------------
learned = ml.shac(env, updates=UPDATES)
print(f"{UPDATES} updates, {learned.history['samples'][-1]} steps of 10 ms")

# --- On unseen roads -----------------------------------------------------------------------------
unseen, runs = ml.lane_keys(2000, 256), {}
print(f"{'':10}{'acceleration':>14}{'tyre load':>12}{'travel':>10}")
for name, policy, params in (
    ("passive", lambda params, seen, key: jnp.zeros(1), None),
    ("skyhook", skyhook, gains),
    ("learned", ml.best_action, learned.agent),
):
    run = runs[name] = ride(policy, params, unseen)
    comfort = rms(np.diff(run.next_observation[..., 0])) / env.control_dt
    grip = rms(run.next_observation[..., -1] - 448.0 * 9.81)
    travel = 1e3 * rms(run.next_observation[..., 3])
    print(f"{name:10}{comfort:9.3f} m/s²{grip:10.0f} N{travel:7.1f} mm")
    runs[name] = run, comfort, grip
better = all(runs["learned"][k] < min(runs["passive"][k], runs["skyhook"][k]) for k in (1, 2))
print(f"softer than both, and firmer on the road: {better}")
if not better:
    sys.exit("the policy has not learned enough: give more updates")

# --- Plot ----------------------------------------------------------------------------------------
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
axes[0].plot(learned.history["samples"], learned.history["reward"], color="#1f3d5c")
axes[0].set(xlabel="steps", ylabel="mean reward, with drawn actions")
for (name, (run, *_)), color in zip(runs.items(), ("#9aa5b1", "#d1495b", "#1f3d5c"), strict=True):
    axes[1].plot(0.01 * np.arange(300), run.next_observation[0, :, 1], color=color, label=name)
axes[1].set(xlabel="time [s]", ylabel="acceleration of the body [m/s²]")
axes[1].legend(frameon=False, loc="upper right")
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "14_active_suspension.png", dpi=110)
print(f"wrote {OUT / '14_active_suspension.png'}")
