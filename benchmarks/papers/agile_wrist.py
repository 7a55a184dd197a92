"""The agile wrist of Ghaedrahmati et al. (2019): kinematics, torques and joint reactions.

    python benchmarks/papers/agile_wrist.py [--json FILE] [--plots FOLDER]

The base joints follow two periods of a motion of our own (the paper does not give its motion). At
each instant the mechanism is assembled at the base angles and compared with the agile eye's closed
form. The base torques come from the recursion (DeNOC), from the constraint matrices and from
Lagrange's equations on the closed form; the reactions from the recursion with λ, from the
constraint matrices and from Newton-Euler in absolute coordinates. For the over-constrained wrist
the determinate part of the reactions is compared; with legs 2 and 3 on cylindrical joints all
reactions are determinate.
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
    constraint_matrix_reactions,
    determinate_projections,
    lagrange_efforts,
)
from jaxmbd.zoo.agile_wrist import MODES  # noqa: E402

BASES = ("base1", "base2", "base3")
AMPLITUDE, PHASE, PERIOD = np.array([0.6, 0.5, 0.55]), np.array([0.0, 2.0, 4.0]), 1.0
POINTS = 41
LIMITS = {"kinematics": 1e-12, "modes": 1e-12, "torques": 1e-10, "reactions": 1e-10}


def swing(t: Any) -> Any:
    """Base angles θ (3,) [rad] at the time t [s]."""
    return AMPLITUDE * jnp.sin(2.0 * jnp.pi * t / PERIOD + PHASE)


def motion(t: Any) -> tuple[Any, Any, Any]:
    """θ and its first and second derivatives."""
    rate = jax.jacfwd(swing)
    return swing(t), rate(t), jax.jacfwd(rate)(t)


def states(mech: mbd.Mechanism, keys: Any, times: Any) -> list[tuple[Any, ...]]:
    """θ, θ̇, θ̈, q, v and v̇ at all times; each assembly starts from the one before."""
    found, q = [], mbd.assemble(mech).q
    given = jax.jit(motion)
    for t in times:
        theta, rate, acceleration = (np.asarray(x) for x in given(t))
        q = mbd.assemble(mech, known=dict(zip(keys, theta, strict=True)), guess=q).q
        v = mbd.assemble_velocity(mech, q, dict(zip(keys, rate, strict=True)))
        vdot = mbd.assemble_acceleration(mech, q, v, dict(zip(keys, acceleration, strict=True)))
        found.append((theta, rate, acceleration, q, v, vdot))
    return found


def closed_form(mech: mbd.Mechanism) -> Any:
    """Poses of all bodies from the base angles."""

    def poses(s: Any) -> dict[str, tuple[Any, Any]]:
        return {n: (r, r @ mech.com(n)) for n, r in mbd.zoo.agile_wrist_rotations(s).items()}

    return poses


def compare_kinematics(mech: mbd.Mechanism, found: list[tuple[Any, ...]]) -> float:
    """Largest difference of the assembled mechanism from the direct and inverse closed forms."""

    def worst(theta: Any, rate: Any, q: Any, v: Any) -> Any:
        place, twist = mbd.poses(mech, q), mbd.body_velocities(mech, q, v)["platform"][:3]
        platform = place["platform"].rotation
        turned = mbd.zoo.agile_wrist_rotations(theta)
        errors = [jnp.ravel(place[n].rotation - r) for n, r in turned.items()]
        errors.append(mbd.zoo.agile_eye_inverse(platform) - theta)
        errors.append(mbd.zoo.agile_eye_jacobian(theta, platform) @ rate - twist)
        return jnp.max(jnp.abs(jnp.concatenate(errors)))

    worst = jax.jit(worst)
    return max(float(worst(theta, rate, q, v)) for theta, rate, _, q, v, _ in found)


def compare_modes(count: int = 2000) -> dict[str, float]:
    """All modes at random angles: how many close, and how well direct and inverse agree."""
    theta = np.random.default_rng(0).uniform(-np.pi, np.pi, (count, 3))
    s, c = np.sin(theta), np.cos(theta)
    # Angles near a self-motion (D = 0) determine the orientation badly.
    theta = theta[np.abs(np.prod(c, axis=1) + np.prod(s, axis=1)) > 0.05]
    signs = jnp.asarray(MODES)
    direct = jax.jit(jax.vmap(lambda t: jax.vmap(lambda m: mbd.zoo.agile_eye_direct(t, m))(signs)))
    inverse = jax.jit(jax.vmap(lambda r: jax.vmap(mbd.zoo.agile_eye_inverse)(r, signs)))
    rotations = direct(jnp.asarray(theta))
    angles = np.asarray(inverse(rotations))
    exists = ~np.isnan(angles).any(axis=2)
    turn = angles - theta[:, None]
    turn = turn - 2.0 * np.pi * np.round(turn / (2.0 * np.pi))
    return {
        "angles tried": len(theta),
        "fewest assembly modes": int(exists.sum(axis=1).min()),
        "most assembly modes": int(exists.sum(axis=1).max()),
        "inverse of direct": float(np.abs(turn[exists]).max()),
    }


def formulations(mech: mbd.Mechanism, keys: Any) -> Any:
    """Torques of three formulations, reactions of three, and projections, at one state."""
    layout = mbd.topology(mech).layout
    inverse = jax.jit(lambda *x: mbd.inverse_dynamics(mech, *x, actuated=keys))
    matrices = jax.jit(lambda *x: constraint_matrix_reactions(mech, *x, actuated=keys))
    lagrange = jax.jit(lambda *x: lagrange_efforts(mech, closed_form(mech), *x))
    recursion = jax.jit(lambda *x: mbd.joint_reactions(mech, *x[:-1], 0.0, x[-1]))
    absolute = jax.jit(lambda q, v, x: absolute_forward_dynamics(mech, q, v, 0.0, x)[1].reactions)
    projections = jax.jit(lambda q: determinate_projections(mech, q, keys))

    def at(theta: Any, rate: Any, acceleration: Any, q: Any, v: Any, vdot: Any) -> Any:
        tau, lam = inverse(q, v, vdot)
        inputs = {n: tau[layout[n].v] for n in BASES}
        found = matrices(q, v, vdot)
        torques = {
            "recursion": jnp.stack([x[0] for x in inputs.values()]),
            "constraint matrices": jnp.stack([found.efforts[n][0] for n in BASES]),
            "lagrange": lagrange(theta, rate, acceleration),
        }
        reactions = {
            "recursion": recursion(q, v, vdot, lam, inputs),
            "constraint matrices": found.reactions,
            "absolute coordinates": absolute(q, v, inputs),
        }
        return torques, reactions, projections(q)

    return at


def dynamics(mech: mbd.Mechanism, keys: Any, found: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Torques and reactions over the motion, and their largest relative differences."""
    at, series = formulations(mech, keys), []
    for state in found:
        series.append(jax.tree_util.tree_map(np.asarray, at(*state)))
    torques = {k: np.stack([s[0][k] for s in series]) for k in series[0][0]}
    largest = np.abs(torques["recursion"]).max()
    wrench = max(float(np.abs(w).max()) for s in series for w in s[1]["recursion"].values())

    def apart(other: str, projected: bool = True) -> float:
        worst = 0.0
        for _, reactions, keep in series:
            for joint, w in reactions["recursion"].items():
                difference = w - reactions[other][joint]
                difference = keep[joint] @ difference if projected else difference
                worst = max(worst, float(np.abs(difference).max()))
        return worst / wrench

    traces = {j: round(float(np.trace(p)), 6) for j, p in series[0][2].items()}
    return {
        "torques": {k: x.tolist() for k, x in torques.items()},
        "base forces": [
            [float(np.linalg.norm(s[1]["constraint matrices"][n][3:])) for n in BASES]
            for s in series
        ],
        "largest torque": float(largest),
        "largest wrench": wrench,
        "torque differences": {
            k: float(np.abs(x - torques["recursion"]).max() / largest) for k, x in torques.items()
        },
        "determinate components of a joint": sorted(set(traces.values())),
        "reaction differences": {
            "constraint matrices": apart("constraint matrices"),
            "absolute coordinates": apart("absolute coordinates"),
            "constraint matrices, indeterminate parts too": apart("constraint matrices", False),
        },
    }


def report() -> dict[str, Any]:
    """All results."""
    times = np.linspace(0.0, 2.0 * PERIOD, POINTS)
    out: dict[str, Any] = {"t": times.tolist(), "modes": compare_modes()}
    for name, overconstrained in (("overconstrained", True), ("cylindrical legs", False)):
        start = time.perf_counter()
        mech = mbd.zoo.agile_wrist(overconstrained=overconstrained)
        keys = BASES if overconstrained else ("base1", ("base2", 0), ("base3", 0))
        found = states(mech, keys, times)
        mobility = mbd.mobility(mech)
        out[name] = {
            "degrees of freedom": mobility.dof,
            "redundant rows": list(mobility.redundant),
            "kinematic difference": compare_kinematics(mech, found),
            **dynamics(mech, keys, found),
            "seconds": round(time.perf_counter() - start, 1),
        }
        out["theta"] = [s[0].tolist() for s in found]
    return out


def plot(found: dict[str, Any], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    t, wrist, loose = found["t"], found["overconstrained"], found["cylindrical legs"]
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), constrained_layout=True)
    for i in range(3):
        torque = {k: np.array(x)[:, i] for k, x in wrist["torques"].items()}
        names = ("DeNOC", "constraint matrices", "Lagrange") if i == 0 else (None,) * 3
        axes[0].plot(t, np.degrees(np.array(found["theta"])[:, i]), f"C{i}", label=f"leg {i + 1}")
        axes[1].plot(t, torque["recursion"], f"C{i}", lw=3, alpha=0.5, label=names[0])
        axes[1].plot(t, torque["constraint matrices"], "k--", lw=1, label=names[1])
        axes[1].plot(t, torque["lagrange"], "k+", ms=5, label=names[2])
        axes[2].plot(t, np.array(loose["base forces"])[:, i], f"C{i}", label=f"base {i + 1}")
        axes[2].plot(t, np.array(wrist["base forces"])[:, i], f"C{i}", linestyle=":")
    axes[0].set(ylabel="base angle [deg]", title="motion")
    axes[1].set(ylabel="base torque [N m]", title="three formulations")
    axes[2].set(ylabel="base joint force [N]", title="cylindrical legs; dotted: least norm of 9 R")
    for axis in axes:
        axis.set(xlabel="time [s]")
        axis.grid(alpha=0.3)
        axis.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "agile_wrist.png", dpi=120)


def main(arguments: list[str] | None = None) -> int:
    options = _script.parser(__doc__, plots=True).parse_args(arguments)
    _script.start()
    found = report()
    print(f"modes: {found['modes']}")
    good = found["modes"]["inverse of direct"] < LIMITS["modes"]
    good &= found["modes"]["fewest assembly modes"] == found["modes"]["most assembly modes"] == 4
    for name in ("overconstrained", "cylindrical legs"):
        part = found[name]
        print(f"{name}: {len(part['redundant rows'])} redundant rows, {part['seconds']} s")
        print(f"  assembled against closed form  {part['kinematic difference']:.1e}")
        for key, limit in (("torque", "torques"), ("reaction", "reactions")):
            for other, x in part[f"{key} differences"].items():
                print(f"  {key}, {other:45s} {x:.1e}")
                good &= x < LIMITS[limit] or "indeterminate" in other
        good &= part["kinematic difference"] < LIMITS["kinematics"]
    _script.write(options.json, found)
    if options.plots:
        plot(found, options.plots)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
