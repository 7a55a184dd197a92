"""The RSRRP linkage as in Urbaś (2016): 15 s under a drive that reaches 10 N·m at 5 s.

Results: the rigid linkage (cut-joint technique) by RK4 with a step of 1e-4 s and no stabilisation,
with its loop closure error; the linkage with the ball S, and with the hinge R, replaced by springs
and dampers, from its static equilibrium, by an implicit solver; convergence of both to the rigid
one at first order in 1/stiffness, over four decades. The plots are figure 11's forces and moments,
and the convergence. Dimensions, masses and the resistance law are those of `jaxmbd.zoo.rsrrp`.

    python benchmarks/papers/rsrrp.py --json benchmarks/results/rsrrp.json --plots plots
"""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import _script  # noqa: E402
import diffrax
import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.kinematics import motion_state

DURATION, STEP, SAVED = 15.0, 1e-4, 0.02  # [s]
DECADES = (1e3, 1e4, 1e5, 1e6, 1e7)  # [N/m]
OVER = 6.0  # duration of the convergence runs [s]
PLOTTED = 1e5  # stiffness of the runs of figure 11 [N/m]
LEVER = 0.1  # moment stiffness over force stiffness is its square [m]
MASS = 0.2  # critical damping of this mass [kg]


def softened(joint: str, stiffness: float) -> mbd.Mechanism:
    """The linkage with one soft joint, its damping critical for `MASS`."""
    damping = 2.0 * np.sqrt(stiffness * MASS)
    both = (LEVER**2 * stiffness, stiffness), (LEVER**2 * damping, damping)
    return mbd.zoo.rsrrp(soft=joint, stiffness=both[0], damping=both[1])


def run_rigid(t1: float) -> tuple[mbd.Solution, float, float]:
    """RK4 without stabilisation; computing times of the first and second run [s]."""
    mech = mbd.zoo.rsrrp()
    q0, v0 = mbd.neutral(mech), np.zeros(mbd.topology(mech).nv)
    times = []
    for _ in range(2):
        start = time.perf_counter()
        run = mbd.simulate(
            mech, q0, v0, t1=t1, dt=STEP, save_every=round(SAVED / STEP), constraints="none"
        )
        jax.block_until_ready(run.q)
        times.append(time.perf_counter() - start)
    return run, *times


def run_soft(
    joint: str, stiffness: float, t1: float, method: Any = None
) -> tuple[mbd.Mechanism, mbd.Equilibrium, mbd.Solution, float]:
    """From rest at the static equilibrium with the crank upright; the computing time [s]."""
    mech = softened(joint, stiffness)
    still = mbd.equilibrium(mech, known={"A": 0.0})
    v0 = np.zeros(mbd.topology(mech).nv)
    start = time.perf_counter()
    if method is None:
        run = mbd.simulate(mech, still.q, v0, t1=t1, dt=SAVED, method=diffrax.Kvaerno5())
    else:
        every = round(SAVED / STEP)
        run = mbd.simulate(mech, still.q, v0, t1=t1, dt=STEP, save_every=every, method=method)
    jax.block_until_ready(run.q)
    return mech, still, run, time.perf_counter() - start


def crank_angle(mech: mbd.Mechanism, run: mbd.Solution) -> np.ndarray:
    """ψ(t) [rad]."""
    return np.asarray(run.q[:, mbd.topology(mech).layout["A"].q])[:, 0]


def reactions(mech: mbd.Mechanism, run: mbd.Solution) -> dict[str, np.ndarray]:
    """Figure 11: force in S, force and moment in R, each on b of the joint, world axes."""

    def at(t: Any, q: Any, v: Any) -> dict[str, Any]:
        vdot, lam = mbd.forward_dynamics(mech, q, v, t)
        found = mbd.joint_reactions(mech, q, v, vdot, lam, t)
        found |= {
            name: _load(mech.forces[name], motion_state(mech, q, v, t))
            for name in ("S", "R")
            if name in mech.forces
        }
        return {"f_S": found["S"][3:], "f_R": found["R"][3:], "n_R": found["R"][:3]}

    found = lanes.vmap(at)(run.t, run.q, run.v)
    return {name: np.asarray(x) for name, x in found.items()}


def _load(element: Any, m: Any) -> Any:
    """The wrench [n; f] of a soft joint on b."""
    load = element.loads(m)[1]
    return jax.numpy.concatenate([load.moment, load.force])


def statics(joint: str, stiffness: float, still: mbd.Equilibrium) -> dict[str, float]:
    """Deflection of the joint at rest, compared with force/stiffness of the rigid one."""
    mech = softened(joint, stiffness)
    element = mech.forces[joint]
    assert isinstance(element, mbd.SoftJoint)
    delta, _ = element.deformation(motion_state(mech, still.q))
    return {
        "sag_m": float(np.linalg.norm(delta[:3])),
        "residual": float(still.residual),
        "torque_to_hold_the_crank": float(still.held[0]),
    }


def convergence(joint: str, reference: mbd.Solution) -> dict[str, Any]:
    """Errors of the crank angle relative to the rigid linkage over four decades of stiffness."""
    rigid = np.asarray(reference.q[:, 0])
    rows, angles = [], {}
    for stiffness in DECADES:
        mech, still, run, seconds = run_soft(joint, stiffness, OVER)
        angles[stiffness] = crank_angle(mech, run)
        error = np.abs(angles[stiffness] - rigid[: len(run.t)]).max()
        rows.append(
            {"stiffness": stiffness, "error_rad": float(error), "seconds": round(seconds, 2)}
            | statics(joint, stiffness, still)
        )
        print(joint, rows[-1], file=sys.stderr, flush=True)
    mech, _, run, seconds = run_soft(joint, DECADES[0], OVER, "rk4")
    errors = np.log10([row["error_rad"] for row in rows])
    return {
        "runs": rows,
        "orders": (-np.diff(errors)).round(4).tolist(),
        "slope": float(np.polyfit(np.log10(DECADES), errors, 1)[0]),
        "rk4_against_implicit_at_the_softest": float(
            np.abs(crank_angle(mech, run) - angles[DECADES[0]]).max()
        ),
        "rk4_seconds": round(seconds, 2),
    }


def plot(curves: dict[str, Any], converged: dict[str, Any], folder: Path) -> None:
    """Figure 11's layout, and the errors over stiffness."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    titles = {"f_S": "force in S [N]", "f_R": "force in R [N]", "n_R": "moment in R [N m]"}
    figure, axes = plt.subplots(3, 3, figsize=(14, 8), sharex=True, layout="constrained")
    for i, (quantity, title) in enumerate(titles.items()):
        for axis in range(3):
            panel = axes[i, axis]
            for name, (t, values) in curves.items():
                dashed = "--" if name != "rigid" else "-"
                panel.plot(t, values[quantity][:, axis], dashed, label=name, linewidth=0.8)
            panel.set_title(f"{title}, {'xyz'[axis]}", fontsize=9)
    axes[0, 0].legend(fontsize=8)
    for panel in axes[2]:
        panel.set_xlabel("t [s]")
    figure.savefig(folder / "rsrrp_reactions.png", dpi=120)
    figure, panel = plt.subplots(figsize=(6, 4.5), layout="constrained")
    for joint, found in converged.items():
        k = [row["stiffness"] for row in found["runs"]]
        panel.loglog(k, [row["error_rad"] for row in found["runs"]], "o-", label=f"{joint} soft")
    stiffest = found["runs"][-1]["error_rad"]
    panel.loglog(k, [stiffest * k[-1] / x for x in k], "k:", label="first order")
    panel.set(xlabel="stiffness [N/m]", ylabel="largest error of the crank's angle [rad]")
    panel.grid(which="both", alpha=0.3)
    panel.legend()
    figure.savefig(folder / "rsrrp_convergence.png", dpi=120)


def main() -> None:
    """Run everything, print, and write the requested files."""
    options = _script.parser(__doc__, plots=True).parse_args()
    _script.start(cache=False)
    rigid = mbd.zoo.rsrrp()
    run, first, again = run_rigid(DURATION)
    curves = {"rigid": (run.t, reactions(rigid, run))}
    late = np.asarray(run.t) > DURATION / 2
    result: dict[str, Any] = {
        "system": "RSRRP, Urbaś (2016): β = 60°, drive 10 N·m from 5 s on, dimensions ours; "
        "resistance 10 N·m · ψ̇/(9 rad/s)",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, JAX {jax.__version__}, float64",
        "rigid": {
            "method": f"rk4, dt = {STEP} s, {DURATION} s, no stabilisation",
            "loop_error_m": float(run.drift),
            "turns": float(run.q[-1, 0] / (2.0 * np.pi)),
            "mean_speed_after_half": float(run.v[late, 0].mean()),
            "seconds": round(again, 3),
            "seconds_with_compiling": round(first, 3),
        },
        "soft": {},
    }
    for joint in ("S", "R"):
        mech, still, motion, seconds = run_soft(joint, PLOTTED, DURATION)
        found = reactions(mech, motion)
        curves[f"{joint} soft"] = (motion.t, found)
        gaps = {n: np.abs(x - curves["rigid"][1][n])[5:] for n, x in found.items()}
        result["soft"][joint] = {
            "stiffness": PLOTTED,
            "seconds_with_compiling": round(seconds, 2),
            "error_of_angle_rad": float(np.abs(crank_angle(mech, motion) - run.q[:, 0]).max()),
            "largest_difference": {n: float(x.max()) for n, x in gaps.items()},
            "largest": {n: float(np.abs(x).max()) for n, x in curves["rigid"][1].items()},
            "convergence": convergence(joint, run),
        }
    print(_script.as_json(result))
    _script.write(options.json, result)
    if options.plots:
        plot(curves, {j: x["convergence"] for j, x in result["soft"].items()}, options.plots)


if __name__ == "__main__":
    main()
