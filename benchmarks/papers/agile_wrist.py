"""The agile wrist of Ghaedrahmati et al. (2019): kinematics, torques and joint reactions.

    python benchmarks/papers/agile_wrist.py [--json FILE] [--plots FOLDER]

The base joints follow two periods of a motion of our own (the paper does not give its motion). At
each instant the mechanism is assembled at the base angles and compared with the agile eye's closed
form. The base torques come from the recursion (DeNOC), from the constraint matrices and from
Lagrange's equations on the closed form; the reactions from the recursion with λ, from the
constraint matrices and from Newton-Euler in absolute coordinates. For the over-constrained wrist
the determinate part of the reactions is compared; with legs 2 and 3 on cylindrical joints all
reactions are determinate.

The closed form is that of the agile eye (Gosselin and Hamel 1994): all axes intersect in one
centre, and consecutive ones are orthogonal. Leg i turns about u_i, fixed in the ground (x, z, y
for legs 1, 2, 3), then about w_i, then about v_i, fixed in the platform (−y, −x, −z as
drawn). With R the platform's rotation and θ the angles of the base joints,

    w_1 = (0, −s1, c1),  w_2 = (−s2, c2, 0),  w_3 = (c3, 0, −s3),    w_i · R v_i = 0

(s_i = sin θ_i, c_i = cos θ_i), and R = 1 at θ = 0. With the columns r_1, r_2, r_3 of R the three
conditions are ``w_1 · r_2 = w_2 · r_1 = w_3 · r_3 = 0``.

Inverse: each condition gives ``tan θ_i``, so that each leg has two angles, half a turn apart: 8
working modes.

Direct: with p_1 = (0, c1, s1), p_2 = (c2, s2, 0), p_3 = (s3, 0, c3), orthogonal to u_i and w_i,

    r_1 ∝ A z + p_2,   r_2 ∝ C x + p_1,   r_3 ∝ E y + p_3

and orthogonality of the columns is linear in (A, C, E):

    [ s1  c2  0  ] [A]     [ s2 c1 ]
    [ 0   s3  c1 ] [C] = − [ s1 c3 ],    D = c1 c2 c3 + s1 s2 s3
    [ c3  0   s2 ] [E]     [ s3 c2 ]

The signs of the three columns are free except that det R = 1: four assembly modes. The sign of leg
i's column is that of its working mode, so that one triple of signs names both; a triple can be
assembled if its product is the sign of D. If D = 0 the platform can move with the legs at rest (the
self-motions of Bonev, Chablat and Wenger 2006). Four more solutions exist for all θ, with
``r_1 = ±z, r_2 = ±x, r_3 = ±y``: there the legs can move with the platform at rest.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import _script  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import Array  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd.formulations import (  # noqa: E402
    absolute_forward_dynamics,
    constraint_matrix_reactions,
    determinate_projections,
    lagrange_efforts,
)
from jaxmbd.spatial import axis_rotation, cross  # noqa: E402
from jaxmbd.zoo.parallel_robots import AGILE_EYE_AXES  # noqa: E402

BASES = ("base1", "base2", "base3")
AMPLITUDE, PHASE, PERIOD = np.array([0.6, 0.5, 0.55]), np.array([0.0, 2.0, 4.0]), 1.0
POINTS = 41
MODES = tuple(itertools.product((1, -1), repeat=3))
"""The 8 triples of signs that name working and assembly modes."""
LIMITS = {"kinematics": 1e-12, "modes": 1e-12, "torques": 1e-10, "reactions": 1e-10}


_X, _Y, _Z = np.eye(3)
BASE_AXES, ELBOW_AXES, PLATFORM_AXES = np.moveaxis(AGILE_EYE_AXES, 1, 0)
"""u_i, w_i and v_i as drawn."""


def agile_eye_inverse(rotation: Any, mode: Any = (1, 1, 1)) -> Array:
    """Base angles θ (3,) [rad] of the agile eye for an orientation of its platform.

    ``θ_1 = atan2(s_1 R32, s_1 R22)``, ``θ_2 = atan2(s_2 R21, s_2 R11)``,
    ``θ_3 = atan2(s_3 R13, s_3 R33)``.

    Args:
        rotation: R (3, 3) of the platform from the drawn orientation.
        mode: signs (3,) of the working mode; (1, 1, 1) is the drawn one.

    Returns:
        θ in (-π, π]; undetermined for a leg whose platform axis lies along its base axis.
    """
    r, s = jnp.asarray(rotation), jnp.asarray(mode)
    sine, cosine = jnp.stack([r[2, 1], r[1, 0], r[0, 2]]), jnp.stack([r[1, 1], r[0, 0], r[2, 2]])
    return jnp.arctan2(s * sine, s * cosine)


def agile_eye_direct(theta: Any, mode: Any = (1, 1, 1)) -> Array:
    """Platform orientation R (3, 3) of the agile eye for its base angles.

    Args:
        theta: base angles (3,) [rad].
        mode: signs (3,) of the assembly mode; (1, 1, 1) is the drawn one.

    Returns:
        R with ``agile_eye_inverse(R, mode)`` = θ (up to whole turns). NaN if the mode cannot be
        assembled: the product of its signs is not the sign of ``D = c1 c2 c3 + s1 s2 s3``, or
        D = 0.
    """
    theta, signs = 1.0 * jnp.asarray(theta), jnp.asarray(mode)
    s1, s2, s3 = (jnp.sin(x) for x in theta)
    c1, c2, c3 = (jnp.cos(x) for x in theta)
    d = c1 * c2 * c3 + s1 * s2 * s3
    possible = jnp.prod(signs) * d > 0.0
    d = jnp.where(possible, d, 1.0)
    # Cramer's rule, (A, C, E) in the order of r_1, r_2, r_3.
    b1, b2, b3 = s2 * c1, s1 * c3, s3 * c2
    along_z = b1 * s3 * s2 - c2 * (b2 * s2 - c1 * b3)
    along_x = s1 * (b2 * s2 - c1 * b3) + b1 * c1 * c3
    along_y = s1 * s3 * b3 + c3 * (c2 * b2 - b1 * s3)
    offsets = jnp.stack([along_z, along_x, along_y]) / -d
    zero = jnp.zeros_like(s1)
    columns = [
        offsets[0] * _Z + jnp.stack([c2, s2, zero]),
        offsets[1] * _X + jnp.stack([zero, c1, s1]),
        offsets[2] * _Y + jnp.stack([s3, zero, c3]),
    ]
    sizes = jnp.sqrt(1.0 + offsets**2)
    order = signs[jnp.asarray([1, 0, 2])] / sizes  # r_2 belongs to leg 1, r_1 to leg 2
    r = jnp.stack(columns, axis=1) * order
    return jnp.where(possible, r, jnp.nan)


def agile_eye_trivial_orientations() -> np.ndarray:
    """The four orientations (4, 3, 3) in which all legs can turn with the platform at rest.

    There every platform axis lies along its leg's base axis: ``r_1 = ±z, r_2 = ±x, r_3 = ±y``.
    """
    base = np.stack([_Z, _X, _Y], axis=1)  # an even permutation of the axes: det 1
    return np.stack([base * np.array(s, float) for s in MODES if np.prod(s) > 0])


def agile_eye_jacobian(theta: Any, rotation: Any) -> Array:
    """J (3, 3) of the agile eye: the platform's angular velocity is ``ω = J θ̇``, world axes.

    The rate of ``w_i · R v_i = 0`` is ``(w_i × R v_i) · ω = ((u_i × w_i) · R v_i) θ̇_i``.

    Args:
        theta: base angles (3,) [rad].
        rotation: R (3, 3) of the platform at these angles.
    """
    w = _elbows(1.0 * jnp.asarray(theta))
    v = jnp.asarray(PLATFORM_AXES) @ jnp.asarray(rotation).T
    rows = cross(w, v)
    scale = jnp.sum(cross(jnp.asarray(BASE_AXES), w) * v, axis=1)
    # Rows are three vectors: their reciprocal basis is the inverse.
    basis = jnp.stack([cross(rows[i - 2], rows[i - 1]) for i in range(3)], axis=1)
    return basis * scale / (rows[0] @ cross(rows[1], rows[2]))


def _elbows(theta: Array) -> Array:
    """The w_i as rows (3, 3), at the base angles."""
    s, c, zero = jnp.sin(theta), jnp.cos(theta), jnp.zeros_like(theta[0])
    return jnp.stack(
        [
            jnp.stack([zero, -s[0], c[0]]),
            jnp.stack([-s[1], c[1], zero]),
            jnp.stack([c[2], zero, -s[2]]),
        ]
    )


def agile_wrist_rotations(theta: Any, mode: Any = (1, 1, 1)) -> dict[str, Array]:
    """Rotations (3, 3) of all bodies of `agile_wrist` in closed form, from the drawn orientation.

    A proximal link turns by θ_i about u_i; a distal link carries the frame (w_i, R v_i).

    Args:
        theta: base angles (3,) [rad].
        mode: signs (3,) of the assembly mode.
    """
    theta = 1.0 * jnp.asarray(theta)
    r, w, out = agile_eye_direct(theta, mode), _elbows(theta), {}
    for i in range(3):
        drawn = _frame(ELBOW_AXES[i], PLATFORM_AXES[i])
        out[f"proximal{i + 1}"] = axis_rotation(jnp.asarray(BASE_AXES[i]), theta[i])
        out[f"distal{i + 1}"] = _frame(w[i], r @ PLATFORM_AXES[i]) @ drawn.T
    return {**out, "platform": r}


def _frame(x: Any, y: Any) -> Array:
    x, y = jnp.asarray(x), jnp.asarray(y)
    return jnp.stack([x, y, cross(x, y)], axis=1)


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
        return {n: (r, r @ mech.com(n)) for n, r in agile_wrist_rotations(s).items()}

    return poses


def compare_kinematics(mech: mbd.Mechanism, found: list[tuple[Any, ...]]) -> float:
    """Largest difference of the assembled mechanism from the direct and inverse closed forms."""

    def worst(theta: Any, rate: Any, q: Any, v: Any) -> Any:
        place, twist = mbd.poses(mech, q), mbd.body_velocities(mech, q, v)["platform"][:3]
        platform = place["platform"].rotation
        turned = agile_wrist_rotations(theta)
        errors = [jnp.ravel(place[n].rotation - r) for n, r in turned.items()]
        errors.append(agile_eye_inverse(platform) - theta)
        errors.append(agile_eye_jacobian(theta, platform) @ rate - twist)
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
    direct = jax.jit(jax.vmap(lambda t: jax.vmap(lambda m: agile_eye_direct(t, m))(signs)))
    inverse = jax.jit(jax.vmap(lambda r: jax.vmap(agile_eye_inverse)(r, signs)))
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
