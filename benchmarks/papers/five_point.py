"""The five-point suspension of Attia: free response from rest to static equilibrium.

    python benchmarks/papers/five_point.py [--json FILE] [--plots FOLDER]

The quarter car of the paper's tables on published hardpoints (the paper's are only in a figure)
is released from rest with its springs unstressed. Results: displacement and acceleration of the
chassis as in figures 5 and 6; agreement of the final state with `equilibrium`, of the accelerations
by DeNOC, by Newton-Euler in absolute coordinates and by equivalent particles, and of the decaying
vibration with `linearize`; the number of equations that each formulation solves, compared with the
paper's 27 and 37.
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
from jaxmbd.formulations import (  # noqa: E402
    absolute_forward_dynamics,
    particle_accelerations,
    particle_count,
)

END, STEP, SHOWN = 20.0, 2e-4, 5.0
LIMITS = {"end": 1e-10, "formulations": 1e-9, "decay": 1e-3, "drift": 1e-12}
PAPER = {"point coordinates": "5 + 22 = 27", "absolute coordinates": "22 + 15 = 37"}


def simulated(mech: mbd.Mechanism) -> tuple[mbd.Solution, float]:
    """The run from rest, saved every 10 ms, and its computing time [s]."""

    def chassis(t: Any, q: Any, v: Any) -> Any:
        return q[0], mbd.forward_dynamics(mech, q, v, t, backend="xla")[0][0]

    start = time.perf_counter()
    run = mbd.simulate(
        mech, mbd.neutral(mech), t1=END, dt=STEP, save_every=round(0.01 / STEP), outputs=chassis
    )
    jax.block_until_ready(run)
    return run, time.perf_counter() - start


def formulations(mech: mbd.Mechanism, run: mbd.Solution, count: int = 20) -> dict[str, float]:
    """Largest difference of the accelerations from DeNOC's, over the largest of them."""

    def at(q: Any, v: Any) -> Any:
        vdot, _ = mbd.forward_dynamics(mech, q, v, backend="xla")
        bodies = mbd.body_accelerations(mech, q, v, vdot)
        found = {
            "absolute coordinates": absolute_forward_dynamics(mech, q, v)[1].accelerations,
            "four particles a body": particle_accelerations(mech, q, v, forms=4).accelerations,
            "three particles a body": particle_accelerations(mech, q, v, forms=3).accelerations,
        }
        size = jnp.max(jnp.stack([jnp.abs(x).max() for x in bodies.values()]))
        apart = {
            name: jnp.max(jnp.stack([jnp.abs(a[b] - bodies[b]).max() for b in bodies]))
            for name, a in found.items()
        }
        return apart, size

    at = jax.jit(at)
    chosen = np.linspace(0, round(2.0 / 0.01), count).astype(int)
    results = [at(run.q[k], run.v[k]) for k in chosen]
    largest = max(float(size) for _, size in results)
    return {n: max(float(r[0][n]) for r in results) / largest for n in results[0][0]}


def equations(mech: mbd.Mechanism) -> dict[str, str]:
    """Unknowns that each formulation solves for at an instant."""
    top = mbd.topology(mech)
    rows = sum(6 - e.kind.nv for e in mech.structure.joints)
    bodies = len(top.bodies)
    out = {
        "DeNOC: speeds + cut rows": f"{top.nv} + {top.nc} = {top.nv + top.nc}",
        "absolute: Newton-Euler + joint rows": f"{6 * bodies} + {rows} = {6 * bodies + rows}",
    }
    for forms in (4, 3):
        c = particle_count(mech, forms=forms)
        out[f"particles, {forms} a body: motion + conditions"] = (
            f"{c.differential} + {c.constraints} = {c.coordinates}"
        )
    return out


def decay(run: mbd.Solution, rest: float) -> tuple[float, float]:
    """Frequency [Hz] and damping ratio of the chassis' tail, from its turning points."""
    t, z = np.asarray(run.t), np.asarray(run.outputs[0]) - rest
    tail = (t > 4.0) & (t < 10.0)
    t, z = t[tail], z[tail]
    crossings = np.flatnonzero(z[:-1] * z[1:] < 0.0)
    # The zeros of a decaying cosine are evenly spaced; between them the parabola's vertex is read.
    zeros = t[crossings] - z[crossings] * (t[crossings + 1] - t[crossings]) / (
        z[crossings + 1] - z[crossings]
    )
    damped = np.pi / np.mean(np.diff(zeros))
    peaks = []
    for a, b in zip(crossings[:-1], crossings[1:], strict=True):
        k = a + 1 + int(np.argmax(np.abs(z[a + 1 : b + 1])))
        left, mid, right = z[k - 1 : k + 2]
        peaks.append(abs(mid - (right - left) ** 2 / (8.0 * (right - 2.0 * mid + left))))
    fall = -np.polyfit(np.arange(len(peaks)), np.log(peaks), 1)[0] * damped / np.pi
    natural = np.hypot(damped, fall)
    return float(natural / (2.0 * np.pi)), float(fall / natural)


def report() -> dict[str, Any]:
    mech = mbd.zoo.five_point()
    rest = mbd.equilibrium(mech)
    run, seconds = simulated(mech)
    linear = mbd.linearize(mech, rest.q)
    modes = linear.modes()
    measured = decay(run, float(rest.q[0]))
    shown = run.t <= SHOWN + 1e-9
    hub = [mbd.point_position(mech, q, "wheel", "axle_outboard")[2] for q in (run.q[-1], rest.q)]
    return {
        "t": np.round(np.asarray(run.t[shown]), 6).tolist(),
        "displacement": np.asarray(run.outputs[0][shown]).tolist(),
        "acceleration": np.asarray(run.outputs[1][shown]).tolist(),
        "equilibrium": {
            "chassis [m]": float(rest.q[0]),
            "iterations": int(rest.iterations),
            "end of run less equilibrium, chassis [m]": float(run.q[-1, 0] - rest.q[0]),
            "the same, wheel centre [m]": float(hub[0] - hub[1]),
            "tyre deflection [m]": float(0.35 - (hub[1] + 0.034)),
        },
        "drift [m]": float(run.drift),
        "seconds": round(seconds, 2),
        "formulations, relative difference": formulations(mech, run),
        "modes": {
            "frequencies [Hz]": np.asarray(modes.frequencies).tolist(),
            "damping ratios": np.asarray(modes.damping_ratios).tolist(),
            "of the run's tail": list(measured),
            "of linearize": [float(modes.frequencies[2]), float(modes.damping_ratios[2])],
        },
        "equations": equations(mech),
        "equations in the paper": PAPER,
    }


def plot(found: dict[str, Any], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), constrained_layout=True)
    axes[0].plot(found["t"], found["displacement"])
    axes[0].axhline(found["equilibrium"]["chassis [m]"], color="k", lw=0.8, ls=":")
    axes[0].set(ylabel="displacement of the chassis [m]", title="as figure 5; dotted: equilibrium")
    axes[1].plot(found["t"], found["acceleration"])
    axes[1].set(ylabel="acceleration of the chassis [m/s²]", title="as figure 6")
    for axis in axes:
        axis.set(xlabel="time [s]")
        axis.grid(alpha=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "five_point.png", dpi=120)


def main(arguments: list[str] | None = None) -> int:
    options = _script.parser(__doc__, plots=True).parse_args(arguments)
    _script.start()
    found = report()
    rest, modes = found["equilibrium"], found["modes"]
    for key in ("equilibrium", "formulations, relative difference", "equations"):
        print(f"{key}:")
        for name, x in found[key].items():
            print(f"  {name:45s} {x}")
    print(f"in the paper: {found['equations in the paper']}")
    print(f"drift {found['drift [m]']:.1e} m, {found['seconds']} s with compiling")
    print(f"tail of the run: {modes['of the run' + chr(39) + 's tail']}, {modes['of linearize']}")
    apart = np.abs(np.subtract(modes["of the run's tail"], modes["of linearize"]))
    good = bool(np.all(apart < LIMITS["decay"]))
    good &= abs(rest["end of run less equilibrium, chassis [m]"]) < LIMITS["end"]
    good &= abs(rest["the same, wheel centre [m]"]) < LIMITS["end"]
    good &= found["drift [m]"] < LIMITS["drift"]
    worst = max(found["formulations, relative difference"].values())
    good &= worst < LIMITS["formulations"]
    _script.write(options.json, found)
    if options.plots:
        plot(found, options.plots)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
