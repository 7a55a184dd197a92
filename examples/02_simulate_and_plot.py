"""Simulate a press driven by a motor: a torque law of your own, joint forces, energy.

python examples/02_simulate_and_plot.py [folder for the figure]
"""

import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import jaxmbd as mbd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")


# A law is a function, or a module whose numbers are parameters. These are leaves of the mechanism:
# they can vary over a batch, and gradients can be taken with respect to them.
class Motor(eqx.Module):
    """A motor whose torque falls from `stall` [N·m] at rest to zero at `no_load` [rad/s]."""

    stall: Any
    no_load: Any

    def __call__(self, t, q, v):
        return self.stall * (1.0 - v / self.no_load)


def press(motor, stiffness):
    """A slider-crank in the plane xy: a crank, a rod, and a ram that pushes against a spring."""
    return mbd.Mechanism(
        bodies={
            "crank": mbd.Body(8.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.2)),  # a flywheel
            "rod": mbd.Body(1.0, com=(0.25, 0, 0), inertia=(0.0005, 0.0075, 0.0075)),
            "ram": mbd.Body(3.0, com="wrist", inertia=(0.01, 0.01, 0.01)),
        },
        joints={
            "crank": mbd.Revolute("ground", "crank", at=(0, 0, 0), axis=(0, 0, 1)),
            "pin": mbd.Revolute("crank", "rod", at=(0.1, 0, 0), axis=(0, 0, 1)),
            "wrist": mbd.Revolute("rod", "ram", at="wrist", axis=(0, 0, 1)),
            "guide": mbd.Prismatic("ground", "ram", at="wrist", axis=(1, 0, 0)),
        },
        forces={
            "motor": mbd.JointTorque("crank", law=motor),
            "work": mbd.SpringDamper("ground", "ram", (0.9, 0, 0), "wrist", stiffness=stiffness),
        },
        points={"wrist": (0.4, 0.0, 0.0)},
        gravity=(0.0, -9.81, 0.0),
    )


motor = Motor(stall=jnp.array(30.0), no_load=jnp.array(25.0))
mech = press(motor, stiffness=1500.0)
top = mbd.topology(mech)
print(top)

# --- Simulate -----------------------------------------------------------------------------------
# From rest in an assembled position (crank at 60°), four seconds in steps of a millisecond.
q0 = mbd.assemble(mech, known={"crank": np.radians(60.0)}).q
v0 = mbd.assemble_velocity(mech, q0, known={"crank": 0.0})
crank = top.layout["crank"].v


def outputs(t, q, v):
    """Quantities to save at each time, in addition to q and v."""
    vdot, lam = mbd.forward_dynamics(mech, q, v, t)
    reactions = mbd.joint_reactions(mech, q, v, vdot, lam, t)  # [moment; force] on the second body
    return {
        "energy": mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q),
        "power": motor(t, None, v[crank])[0] * v[crank][0],
        "ram": mbd.point_position(mech, q, "ram", "wrist")[0],
        "pin": jnp.linalg.norm(reactions["pin"][3:]),
    }


run = mbd.simulate(mech, q0, v0, t1=4.0, dt=1e-3, outputs=outputs)
t, speed, found = run.t, run.v[:, crank][:, 0], run.outputs
print(f"status {mbd.Status(int(run.status)).name}, loops open by at most {run.drift:.1e} m")

# --- Check --------------------------------------------------------------------------------------
# The motor's work (its power, integrated by Simpson's rule) equals the gain in energy.
weights = np.array([1.0, *[4.0, 2.0] * ((len(t) - 3) // 2), 4.0, 1.0])
given = float(weights @ np.asarray(found["power"])) * float(t[1] - t[0]) / 3.0
held = float(found["energy"][-1] - found["energy"][0])
print(f"the motor gave {given:.6f} J, the mechanism holds {held:.6f} J more than at rest")
late = np.asarray(t) > 3.0
print(f"crank at 3 to 4 s: {speed[late].min():.2f} to {speed[late].max():.2f} rad/s")
print(f"largest force in the pin: {found['pin'].max():.0f} N")

# --- Plot ---------------------------------------------------------------------------------------
figure, axes = plt.subplots(2, 2, figsize=(10, 5.5), sharex=True, layout="constrained")
curves = {
    "crank speed [rad/s]": speed,
    "ram position [m]": found["ram"],
    "force in the pin [N]": found["pin"],
    "kinetic and potential energy [J]": found["energy"],
}
for ax, (title, curve) in zip(axes.flat, curves.items(), strict=True):
    ax.plot(t, curve, color="#1f3d5c", lw=1)
    ax.set_title(title, fontsize=10)
    ax.grid(True, color="#e3e7eb")
for ax in axes[1]:
    ax.set_xlabel("time [s]")
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "02_press.png", dpi=110)
print(f"wrote {OUT / '02_press.png'}")
