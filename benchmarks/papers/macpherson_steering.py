"""The rack force of a MacPherson suspension with steering, as in figure 12 of Hanzaki (2009).

    python benchmarks/papers/macpherson_steering.py [--json FILE] [--plots FOLDER]

The rack follows a sine of two seconds; the tyre force is that of `PacejkaTyre` as in
`jaxmbd.zoo.macpherson_steering` (the paper gives none). Each half and the whole axle are simulated
from static equilibrium. Checks, with the largest difference over the largest force: the whole axle
against the two halves; the drive's multiplier against Newton-Euler in absolute coordinates, against
inverse dynamics of the undriven mechanism, and against the power balance.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import _script  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd.formulations import absolute_forward_dynamics  # noqa: E402
from jaxmbd.kinematics.motion import motion_state  # noqa: E402
from jaxmbd.model.forces import Effort  # noqa: E402

AMPLITUDE, PERIOD, STEP, EVERY = 0.06, 2.0, 5e-4, 20
RUBBING = {  # of struts and rack: a plausible addition, plotted beside
    "left_rub": mbd.JointFriction("left_slide", 0.06, length=0.2, velocity_scale=0.02),
    "right_rub": mbd.JointFriction("right_slide", 0.06, length=0.2, velocity_scale=0.02),
    "rack_rub": mbd.JointFriction("rack", 0.1, length=0.4, drag=60.0, velocity_scale=0.02),
}


def rack_force(mech: mbd.Mechanism, t: Any, q: Any, v: Any) -> Any:
    """The multiplier of the rack's drive [N]."""
    return mbd.forward_dynamics(mech, q, v, t)[1][mbd.topology(mech).layout["steer"].rows][0]


def run(mech: mbd.Mechanism) -> mbd.Solution:
    """One period from static equilibrium, with the rack's force at every saved time.

    The struts start at rest, the rack with the speed of its sine.
    """
    q = mbd.equilibrium(mech).q
    struts = [e.name for e in mech.structure.joints if e.name.endswith("_slide")]
    v = mbd.assemble_velocity(mech, q, known=dict.fromkeys(struts, 0.0))
    return mbd.simulate(
        mech,
        q,
        v,
        t1=PERIOD,
        dt=STEP,
        save_every=EVERY,
        outputs=lambda t, q, v: rack_force(mech, t, q, v),
    )


def force_power(mech: mbd.Mechanism, t: Any, q: Any, v: Any) -> Any:
    """Power of weight and of all force elements [W], load by load."""
    m = motion_state(mech, q, v, t)
    total = jnp.zeros(())
    for i, body in enumerate(m.top.bodies):
        total = total + mech.bodies[body].mass * (jnp.asarray(mech.gravity) @ m.vel.linear[i])
    for element in mech.forces.values():
        for load in element.loads(m):
            if isinstance(load, Effort):
                total = total + load.value @ m.joint(load.joint)[1]
            else:
                total = total + load.force @ m.velocity_at(load.body, load.point)
                total = total + load.moment @ m.angular_velocity(load.body)
    return total


def balance(mech: mbd.Mechanism, t: Any, q: Any, v: Any) -> tuple[Any, Any]:
    """The drive's power ``λ ẋ`` and ``dT/dt − (power of all other forces)`` [W]."""
    vdot, lam = mbd.forward_dynamics(mech, q, v, t)

    def kinetic(s: Any) -> Any:
        rates = mbd.coordinate_rates(mech, q, v)
        return mbd.kinetic_energy(mech, q + s * rates, v + s * vdot)

    gained = jax.jvp(kinetic, (0.0,), (1.0,))[1]
    top = mbd.topology(mech)
    speed = v[top.layout["rack"].v][0]
    return lam[top.layout["steer"].rows][0] * speed, gained - force_power(mech, t, q, v)


def difference(a: Any, b: Any) -> float:
    a, b = np.asarray(a), np.asarray(b)
    return float(np.max(np.abs(a - b)) / np.max(np.abs(a)))


def series(x: Any) -> list[float]:
    return np.round(np.asarray(x, float), 6).tolist()


def compare(mech: mbd.Mechanism, free: mbd.Mechanism, s: mbd.Solution) -> dict[str, float]:
    """The rack's force of a run by three other ways."""
    power, rest = jax.jit(jax.vmap(lambda t, q, v: balance(mech, t, q, v)))(s.t, s.q, s.v)

    def needed(t: Any, q: Any, v: Any) -> Any:
        vdot, _ = mbd.forward_dynamics(mech, q, v, t)
        tau, _ = mbd.inverse_dynamics(free, q, v, vdot, t, actuated=["rack"])
        return tau[mbd.topology(free).layout["rack"].v][0]

    effort = jax.jit(jax.vmap(needed))(s.t, s.q, s.v)
    some = np.arange(0, s.t.shape[0], 10)
    absolute = jax.jit(
        lambda t, q, v: absolute_forward_dynamics(mech, q, v, t)[1].multipliers["steer"][0]
    )
    others = [absolute(s.t[k], s.q[k], s.v[k]) for k in some]
    return {
        "absolute coordinates": difference(s.outputs[some], others),
        "inverse dynamics": difference(s.outputs, effort),
        "power balance": difference(power, rest),
    }


def report() -> dict[str, Any]:
    def steering(sides: tuple[str, ...], **options: Any) -> mbd.Mechanism:
        return mbd.zoo.macpherson_steering(sides, **{"amplitude": AMPLITUDE, **options})

    begin = time.perf_counter()
    both = steering(("left", "right"))
    half = {"rack_mass": 0.5 * float(both.bodies["rack"].mass)}
    left, back = steering(("left",), **half), steering(("left",), amplitude=-AMPLITUDE, **half)
    runs = {"both": run(both), "left": run(left), "back": run(back)}
    rubbing = run(both.replace(forces=RUBBING))
    force = {name: np.asarray(s.outputs) for name, s in runs.items()}
    rack = mbd.topology(both).layout["rack"].q
    checks = {"halves": difference(force["both"], force["left"] - force["back"])}
    checks |= compare(both, steering(("left", "right"), amplitude=None), runs["both"])
    return {
        "source": "Hanzaki, Saha and Rao (2009), section 4.2, figure 12",
        "tyre": "PacejkaTyre, default coefficients, rolling freely at 10 m/s, trail 0.04 m",
        "amplitude": AMPLITUDE,
        "period": PERIOD,
        "step": STEP,
        "cut": {"left": mbd.topology(left).cut, "both": mbd.topology(both).cut},
        "largest_cdof": max(mbd.topology(both).cdof.values()),
        "drift": float(max(s.drift for s in runs.values())),
        "differences": checks,
        "t": series(runs["both"].t),
        "travel": series(runs["both"].q[:, rack][:, 0]),
        "force_both": series(force["both"]),
        "force_left": series(force["left"]),
        "force_both_with_friction": series(rubbing.outputs),
        "seconds": time.perf_counter() - begin,
    }


def plot(found: dict[str, Any], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = (
        ("force_both", "both sides", "C0"),
        ("force_both_with_friction", "both sides, struts and rack rub", "C1"),
        ("force_left", "left half, half the rack", "C2"),
    )
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    for name, label, colour in curves:
        axes[0].plot(found["t"], found[name], color=colour, label=label)
        axes[1].plot(1e3 * np.array(found["travel"]), found[name], color=colour)
    axes[0].set(xlabel="time [s]", ylabel="force on the rack [N]", title="after figure 12")
    axes[1].set(xlabel="travel of the rack [mm]")
    axes[1].legend(*axes[0].get_legend_handles_labels(), loc="lower right", fontsize="small")
    for axis in axes:
        axis.grid(alpha=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "macpherson_steering.png", dpi=120)


def main(arguments: list[str] | None = None) -> int:
    options = _script.parser(__doc__, plots=True).parse_args(arguments)
    _script.start()
    found = report()
    force = np.array(found["force_both"])
    print(f"cut joints: {', '.join(found['cut']['both'])}; largest CDOF {found['largest_cdof']}")
    print(f"force on the rack: {force.min():.1f} N to {force.max():.1f} N")
    print(f"loop error {found['drift']:.1e} m")
    for name, value in found["differences"].items():
        print(f"  {name:22s} {value:.1e}")
    _script.write(options.json, found)
    if options.plots:
        plot(found, options.plots)
    limits = {"halves": 1e-6, "absolute coordinates": 1e-9, "inverse dynamics": 1e-9}
    limits["power balance"] = 1e-9
    return int(any(found["differences"][n] > x for n, x in limits.items()))


if __name__ == "__main__":
    sys.exit(main())
