"""The RSSR linkage as in Hanzaki, Saha and Rao (2009): ψ from 0 to 2π in 0.6 s, no gravity.

Results: the drive torque τ, the reactions of the cut joint B on the coupler, and the torque τ_32x
of the paper's φ5, which determines the coupler's spin and equals ``I_xx α_x`` (the paper prints
zero, which it is if the spin is free); three formulations against each other; operations and time
for Euler parameters with relative angular velocities, with the paper's ė, and for three revolutes
in place of each ball. The plots have the layout of the paper's figures 7 and 9.

    python benchmarks/papers/rssr.py --json benchmarks/results/rssr.json --plots plots
"""

from __future__ import annotations

import os
import platform
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import _script  # noqa: E402
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.formulations import (
    absolute_forward_dynamics,
    particle_accelerations,
    with_euler_parameter_rates,
)
from jaxmbd.spatial.rotations import quaternion_from_matrix, quaternion_product

TURN = 0.6  # [s]
AXIAL_INERTIA = 1.53e-6  # of the coupler [kg m²]
Z = np.array([0.0, 0.0, 1.0])
PAPER = {"euler_parameters_s": 0.438, "revolutes_s": 0.486, "steps": 1000}
ROUNDS = 15
FIRST = "angular velocity"


def crank_angle(t: Any) -> Any:
    """ψ(t) [rad]."""
    return 2.0 * np.pi / TURN * t


def turn(mech: mbd.Mechanism, times: Any, **held: Any) -> mbd.DrivenMotion:
    """The driven motion over the turn."""
    return mbd.simulate_driven(mech, {"crank": crank_angle, **held}, t=times)


def coupler_frame(mech: mbd.Mechanism, q: Any) -> Any:
    """The paper's frame x2 y2 z2 as columns: x along AB, z across it and Z as drawn."""
    line = mech.points["B"] - mech.points["A"]
    x = line / np.linalg.norm(line)
    z = np.cross(Z, x) / np.linalg.norm(np.cross(Z, x))
    return mbd.poses(mech, q)["coupler"].rotation @ np.stack([x, np.cross(z, x), z], axis=1)


def curves(mech: mbd.Mechanism, run: mbd.DrivenMotion) -> dict[str, np.ndarray]:
    """The curves of figures 7 and 9, with ``I_xx α_x`` for comparison with τ_32x [rad, N·m, N]."""
    layout = mbd.topology(mech).layout
    held = "spin" in layout

    def at(q: Any, v: Any, vdot: Any, lam: Any) -> dict[str, Any]:
        frame = coupler_frame(mech, q)
        out = {"lambda_32": -frame.T @ lam[layout["B"].rows]}  # on link 2, in its frame
        alpha = mbd.body_accelerations(mech, q, v, vdot)["coupler"][:3]
        out["I_xx alpha_x"] = AXIAL_INERTIA * frame[:, 0] @ alpha
        # φ5's torque acts on the coupler along z2 × Z.
        torque = lam[layout["spin"].rows][0] if held else 0.0
        out["tau_32x"] = torque * frame[:, 0] @ jnp.cross(frame[:, 2], Z)
        return out

    found = lanes.vmap(at)(run.q, run.v, run.vdot, run.lam)
    theta = mbd.zoo.rssr_theta(0.0) + run.q[:, layout["rocker"].q][:, 0]
    found |= {"psi": crank_angle(run.t), "theta": theta, "tau": run.effort[:, 0]}
    return {n: np.asarray(x) for n, x in found.items()} | {
        "euler_parameters": euler_parameters(mech, run)
    }


def euler_parameters(mech: mbd.Mechanism, run: mbd.DrivenMotion) -> np.ndarray:
    """The paper's p_e21 (n, 4), of link 2's frame in link 1's, continuous in sign.

    ``B_21 = B_10ᵀ · (relative rotation) · B_20``, so ``p_21 = p_10* ∘ p ∘ p_20``.
    """
    crank = np.asarray(getattr(mech.joints["crank"], "axis"))  # noqa: B009
    b10 = np.stack([[1.0, 0.0, 0.0], np.cross(crank, [1.0, 0.0, 0.0]), crank], axis=1)
    b20 = coupler_frame(mech, mbd.neutral(mech))
    p10, p20 = (quaternion_from_matrix(jnp.asarray(b)) for b in (b10, b20))
    inverse = p10 * jnp.array([1.0, -1.0, -1.0, -1.0])
    p = run.q[:, mbd.topology(mech).layout["A"].q]
    return np.asarray(
        jax.vmap(lambda x: quaternion_product(quaternion_product(inverse, x), p20))(p)
    )


def torque_of_the_spin(free: dict[str, np.ndarray], held: dict[str, np.ndarray]) -> dict[str, Any]:
    """τ_32x against ``I_xx α_x`` with φ5, and both without it."""
    return {
        "largest_tau_32x": float(np.abs(held["tau_32x"]).max()),
        "difference_from_I_xx_alpha_x": float(np.abs(held["tau_32x"] - held["I_xx alpha_x"]).max()),
        "free_spin_I_xx_alpha_x": float(np.abs(free["I_xx alpha_x"]).max()),
        "change_of_tau_by_the_spin": float(np.abs(held["tau"] - free["tau"]).max()),
    }


def formulations(mech: mbd.Mechanism, run: mbd.DrivenMotion) -> dict[str, dict[str, float]]:
    """Forward dynamics under the drive's torque by three formulations: largest differences.

    Accelerations of the bodies, and the force in B, over the largest of each.
    """
    cut, bodies = mbd.topology(mech).layout["B"].rows, mech.structure.bodies

    def others(q: Any, v: Any, tau: Any) -> Any:
        inputs = {"crank": tau[0]}
        _, absolute = absolute_forward_dynamics(mech, q, v, inputs=inputs)
        particles = particle_accelerations(mech, q, v, inputs=inputs)
        stack = [jnp.stack([s.accelerations[b] for b in bodies]) for s in (absolute, particles)]
        return *stack, absolute.multipliers["B"]

    def engine(q: Any, v: Any, tau: Any) -> Any:
        vdot, lam = mbd.forward_dynamics(mech, q, v, inputs={"crank": tau[0]})
        found = mbd.body_accelerations(mech, q, v, vdot)
        return jnp.stack([found[b] for b in bodies]), lam[cut]

    states = run.q, run.v, run.effort
    ours, force = (np.asarray(x) for x in lanes.vmap(engine)(*states))
    absolute, particles, their_force = (np.asarray(x) for x in jax.jit(jax.vmap(others))(*states))

    def error(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.abs(x - y).max() / np.abs(y).max())

    def both(x: np.ndarray) -> float:
        return max(error(x[..., :3], ours[..., :3]), error(x[..., 3:], ours[..., 3:]))

    driven = lanes.vmap(partial(mbd.body_accelerations, mech))(run.q, run.v, run.vdot)
    return {
        "absolute": {"accelerations": both(absolute), "force_in_B": error(their_force, force)},
        "particles": {"accelerations": both(particles)},
        "driven": {
            "accelerations": both(np.stack([np.asarray(driven[b]) for b in bodies], axis=1)),
            "force_in_B": error(np.asarray(run.lam[:, cut]), force),
        },
    }


# --- What the choice of speeds costs --------------------------------------------------------------


def variants() -> dict[str, tuple[mbd.Mechanism, dict[str, Any]]]:
    """The three descriptions, and the coordinates held besides the crank: the idle spin, in the
    description in which the engine does not recognise it."""
    ball = mbd.zoo.rssr()
    return {
        FIRST: (ball, {}),
        "e rates": (with_euler_parameter_rates(ball), {}),
        "three revolutes": (mbd.zoo.rssr_revolutes(), {"A3": 0.0}),
    }


def tasks(mech: mbd.Mechanism, held: dict[str, Any]) -> dict[str, Any]:
    """Functions of one sample, and their batched arguments: states along the turn."""
    # Up to 0.2 s, before e0 = 0, where ė is singular.
    times = jnp.linspace(0.0, 0.2, _script.BATCH)
    run = turn(mech, times, **held)
    vdot, _ = lanes.vmap(partial(mbd.forward_dynamics, mech))(run.q, run.v)

    def inverse(q: Any, v: Any, vdot: Any) -> Any:
        return mbd.inverse_dynamics(mech, q, v, vdot, actuated=["crank"])

    def analysis(t: Any, guess: Any) -> Any:
        """Positions from those of a nearby time, speeds, accelerations, torque, multipliers."""
        known = {"crank": crank_angle, **held}
        return mbd.simulate_driven(mech, known, t=t[None], q0=guess)

    before = jnp.concatenate([run.q[:1], run.q[:-1]])
    return {
        "forward dynamics": (partial(mbd.forward_dynamics, mech), (run.q, run.v)),
        "inverse dynamics": (inverse, (run.q, run.v, vdot)),
        "driven analysis": (analysis, (times, before)),
    }


def cost() -> dict[str, Any]:
    """Operations, and the best seconds of interleaved runs of batches, without compiling."""
    work = {name: tasks(*variant) for name, variant in variants().items()}
    out: dict[str, Any] = {}
    for task in next(iter(work.values())):
        programs, rows, best = {}, {}, dict.fromkeys(work, np.inf)
        for name, functions in work.items():
            fn, arguments = functions[task]
            report = lanes.explain(fn, *(x[0] for x in arguments))
            start = time.perf_counter()
            programs[name] = jax.jit(lanes.vmap(fn)).lower(*arguments).compile(), arguments
            rows[name] = {
                "operations": report.operations,
                "flops": report.flops,
                "compile_seconds": round(time.perf_counter() - start, 3),
                "fell_back": report.unsupported,
            }
        for _ in range(ROUNDS):
            for name, (run, arguments) in programs.items():
                start = time.perf_counter()
                jax.block_until_ready(run(*arguments))
                best[name] = min(best[name], time.perf_counter() - start)
        for name, row in rows.items():
            row["nanoseconds_a_sample"] = round(1e9 * best[name] / _script.BATCH, 1)
            row["time_ratio"] = round(best[name] / best[FIRST], 3)
            row["operations_ratio"] = round(row["operations"] / rows[FIRST]["operations"], 3)
        out[task] = rows
    return out


def variants_agree() -> dict[str, float]:
    """Largest differences over the largest torque and acceleration, with the spin held by φ5.

    Up to 0.2 s: then e0 = 0 is near, where ė loses digits.
    """
    spin = mbd.zoo.rssr(hold_spin=True).joints["spin"]
    times, runs = np.linspace(0.0, 0.2, 11), {}
    for name, (mech, _) in variants().items():
        mech = mech.replace(joints={"spin": spin})
        run, place = turn(mech, times), mbd.topology(mech).layout["rocker"].v
        runs[name] = np.asarray(run.effort[:, 0]), np.asarray(run.vdot[:, place])
    ours = runs.pop(FIRST)
    return {
        f"{key}, {name}": float(np.abs(x - y).max() / np.abs(x).max())
        for name, theirs in runs.items()
        for key, x, y in zip(("torque", "rocker acceleration"), ours, theirs, strict=True)
    }


# --- Output ---------------------------------------------------------------------------------------


def plot(free: dict[str, np.ndarray], held: dict[str, np.ndarray], folder: Path) -> None:
    """The paper's figures 7 (positions) and 9 (dynamics)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    psi = np.degrees(held["psi"])
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for k, name in enumerate(("$e_{02}$", "$e_{21}$", "$e_{22}$", "$e_{23}$")):
        axes[0].plot(psi, held["euler_parameters"][:, k], label=name)
    axes[0].set(title="Euler parameters of the coupler", xlabel="ψ [°]")
    axes[0].legend()
    axes[1].plot(psi, np.degrees(held["theta"]))
    axes[1].set(title="θ [°]", xlabel="ψ [°]")
    figure.savefig(folder / "rssr_figure_7.png", dpi=120)
    plt.close(figure)
    figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    axes[0, 0].plot(psi, held["tau"])
    axes[0, 0].set(title="(a) τ [N·m]")
    axes[0, 1].plot(psi, held["tau_32x"], label="with φ5")
    axes[0, 1].plot(psi, free["tau_32x"], "--", label="spin left free")
    axes[0, 1].set(title="(b) τ_32x [N·m]")
    axes[0, 1].legend()
    for k, place in enumerate((axes[0, 2], axes[1, 0], axes[1, 1])):
        place.plot(psi, held["lambda_32"][:, k])
        place.set(title=f"({'cde'[k]}) λ_32{'xyz'[k]} [N]")
    axes[1, 2].plot(psi, held["tau_32x"] - held["I_xx alpha_x"])
    axes[1, 2].set(title="(f) τ_32x − I_xx α_x [N·m]")
    for place in axes.ravel():
        place.set_xlabel("ψ [°]")
    figure.savefig(folder / "rssr_figure_9.png", dpi=120)
    plt.close(figure)


def main() -> None:
    """Run everything, print, and write the requested files."""
    options = _script.parser(__doc__, plots=True).parse_args()
    _script.start(cache=False)
    times = np.linspace(0.0, TURN, 241)
    mechanisms = {"free": mbd.zoo.rssr(), "held": mbd.zoo.rssr(hold_spin=True)}
    runs = {name: turn(mech, times) for name, mech in mechanisms.items()}
    found = {name: curves(mech, runs[name]) for name, mech in mechanisms.items()}
    exact = np.asarray(mbd.zoo.rssr_theta(found["held"]["psi"]))
    e0 = found["held"]["euler_parameters"][:, 0]
    result = {
        "system": "RSSR, Hanzaki, Saha and Rao (2009), table 1; ψ = 2π t / 0.6 s, no gravity",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, JAX {jax.__version__}, float64",
        "theta": {
            "closed_form_error_rad": float(np.abs(found["held"]["theta"] - exact).max()),
            "range_deg": [float(np.degrees(f(exact))) for f in (np.min, np.max)],
        },
        "euler_parameters": {
            "start": found["held"]["euler_parameters"][0].tolist(),
            "e0_crosses_zero_at_deg": float(
                np.degrees(found["held"]["psi"][np.argmax(np.diff(np.sign(e0)) != 0)])
            ),
        },
        "largest_tau": float(np.abs(found["held"]["tau"]).max()),
        "largest_lambda_32": np.abs(found["held"]["lambda_32"]).max(axis=0).tolist(),
        "tau_32x": torque_of_the_spin(found["free"], found["held"]),
        "formulations": {
            name: formulations(mech, jax.tree_util.tree_map(lambda x: x[::20], runs[name]))
            for name, mech in mechanisms.items()
        },
        "variants_agree": variants_agree(),
        "cost": cost(),
        "paper": PAPER | {"gain": 1.0 - PAPER["euler_parameters_s"] / PAPER["revolutes_s"]},
    }
    for task, rows in result["cost"].items():
        twin = rows["three revolutes"]
        result["paper"][f"our gain, {task}"] = 1.0 - 1.0 / twin["time_ratio"]
    print(_script.as_json(result))
    _script.write(options.json, result)
    if options.plots:
        plot(found["free"], found["held"], options.plots)


if __name__ == "__main__":
    main()
