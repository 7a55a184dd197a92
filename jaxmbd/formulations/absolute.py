"""Newton-Euler equations in absolute coordinates, every joint as constraint rows, one dense KKT.

    [ M  −Jᵀ ] [ṫ]   [ f ]
    [ J   0  ] [λ] = [ γ ]

with, for each body, ``M = diag(R I Rᵀ, m 1)``, ``f = [n − ω × (R I Rᵀ) ω; F + m g]`` about its
COM in world axes, and the rows of `jaxmbd.formulations.constraints` (lecture text (4.6)-(4.8)
with λ's sign turned; joint forces directly, as in Ghaedrahmati et al. 2019). It is slow and has
no state of its own: an independent oracle for the engine, with which it shares only the
description and the force elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.constraints import FORCE_ROWS, constraint, linearised, points
from jaxmbd.formulations.state import State, StateMotion, effort_directions
from jaxmbd.model import Mechanism
from jaxmbd.model.forces import Effort


class AbsoluteSolution(NamedTuple):
    """Accelerations and joint forces of a mechanism at an instant, world axes."""

    accelerations: dict[str, Float[Array, "6"]]
    """Body to [angular; linear of the COM] [rad/s², m/s²]; least where not unique."""
    multipliers: dict[str, Float[Array, "rows"]]
    """Joint to λ, what a exerts on b: forces [N], then moments [N·m]; least where not unique."""
    reactions: dict[str, Float[Array, "6"]]
    """Joint to the constraint wrench [n; f] [N·m, N] of a on b about b's joint point (`at_b`, or
    `at` where that is None; the COM of b for a free joint). Efforts are not part of it."""
    rank: Array
    """Number of independent constraint rows: 6 · bodies − rank is the number of DOF."""
    residual: dict[str, Float[Array, "rows"]]
    """Joint to its position-level error [m], then [rad]."""
    velocity_residual: Array
    """Largest ``|J t|`` [m/s, rad/s]."""
    imbalance: Array
    """Largest error of the equations over the mechanism's mass and length [m/s²]: it is not zero
    where a load meets a motion that has neither inertia nor a constraint."""


def absolute_accelerations(
    mech: Mechanism,
    state: State,
    t: Any = 0.0,
    efforts: Mapping[str, Any] | None = None,
) -> AbsoluteSolution:
    """Accelerations and joint reactions by Newton-Euler in absolute coordinates.

    Args:
        mech: the mechanism; drives are not supported.
        state: body to (R (3, 3), COM (3,) [m], ω (3,) [rad/s], v of the COM (3,) [m/s]).
        t: time [s], for force elements.
        efforts: joint to generalised forces (nv,) along its speeds [N·m or N], positive along
            +q, beside those of the force elements. A universal's are the torques conjugate to
            its two angles, a helical's is a pure torque, a free joint's is [torque; force at
            b's COM] in a's axes, a ball's a torque in a's axes.

    Returns:
        Accelerations, multipliers, reactions, and how well the state satisfies the joints.
        Angles of revolutes, cylindricals, universals and planars that force elements ask for
        are read from the state, in (-π, π].

    Raises:
        ValueError: for a mechanism with drives, a body without a state, efforts on no joint.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import numpy as np
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import absolute_accelerations
        >>> mech = mbd.Mechanism(
        ...     {"bob": mbd.Body(1.0, (1, 0, 0))},
        ...     {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0))},
        ... )
        >>> state = {"bob": (np.eye(3), np.array([1.0, 0, 0]), np.zeros(3), np.zeros(3))}
        >>> solution = absolute_accelerations(mech, state)
        >>> print(f"{solution.accelerations['bob'][1]:.3f}")
        9.810
    """
    motion = StateMotion(mech, state, t)
    bodies = mech.structure.bodies
    system = _System(_masses(motion), *_rows(motion))
    force = _loads(motion, dict(efforts or {}))
    acceleration, lam, rank, imbalance = _solve(system, force, motion.length)
    split = np.cumsum([0, *(system.counts[n] for n in motion.sketches)])
    parts = {n: slice(split[i], split[i + 1]) for i, n in enumerate(motion.sketches)}
    twists = jnp.concatenate([motion.twist(n) for n in bodies])
    return AbsoluteSolution(
        accelerations={n: acceleration[6 * i : 6 * i + 6] for i, n in enumerate(bodies)},
        multipliers={n: lam[part] for n, part in parts.items()},
        reactions={
            n: motion.at_joint_point(n, system.wrenches[n].T @ lam[part])
            for n, part in parts.items()
        },
        rank=rank,
        residual={n: system.phi[part] for n, part in parts.items()},
        velocity_residual=jnp.max(jnp.abs(system.jacobian @ twists), initial=0.0),
        imbalance=imbalance,
    )


class _System(NamedTuple):
    mass: Array  # (6n, 6n)
    phi: Array  # (rows,)
    jacobian: Array  # (rows, 6n)
    gamma: Array  # (rows,)
    wrenches: dict[str, Array]  # joint to its rows' Jacobian along b, (rows, 6)
    counts: dict[str, int]  # joint to its number of rows
    is_force: np.ndarray  # (rows,), whether a row is a length


def _masses(motion: StateMotion) -> Float[Array, "6n 6n"]:
    bodies = motion.mech.structure.bodies
    mass = jnp.zeros((6 * len(bodies), 6 * len(bodies)), motion.mech.dtype)
    for i, name in enumerate(bodies):
        k, eye = 6 * i, jnp.eye(3, dtype=mass.dtype)
        mass = mass.at[k : k + 3, k : k + 3].set(_world_inertia(motion, name))
        mass = mass.at[k + 3 : k + 6, k + 3 : k + 6].set(motion.mech.bodies[name].mass * eye)
    return mass


def _world_inertia(motion: StateMotion, body: str) -> Float[Array, "3 3"]:
    r = motion.rotation(body)
    return r @ jnp.asarray(motion.mech.bodies[body].inertia, r.dtype) @ r.T


def _rows(motion: StateMotion) -> tuple[Any, ...]:
    """φ, J and γ of all joints, and what is needed to take them apart again."""
    mech = motion.mech
    place = {name: 6 * i for i, name in enumerate(mech.structure.bodies)}
    empty = jnp.zeros(0, mech.dtype)
    phis, gammas, jacobians = [empty], [empty], [jnp.zeros((0, 6 * len(place)), mech.dtype)]
    wrenches, counts, is_force = {}, {}, []
    for name in motion.sketches:
        joint, s, a, b = motion.halves(name)
        twists = jnp.concatenate([motion.twist(joint.a), motion.twist(joint.b)])
        phi, pair, gamma = linearised(partial(constraint, joint, s), a, b, twists)
        rows = jnp.zeros((phi.shape[0], 6 * len(place)), mech.dtype)
        for body, columns in ((joint.a, pair[:, :6]), (joint.b, pair[:, 6:])):
            if body != "ground":
                rows = rows.at[:, place[body] : place[body] + 6].set(columns)
        phis.append(phi)
        gammas.append(gamma)
        jacobians.append(rows)
        wrenches[name], counts[name] = pair[:, 6:], phi.shape[0]
        is_force += [i < FORCE_ROWS[type(joint)] for i in range(phi.shape[0])]
    joined = (jnp.concatenate(x) for x in (phis, jacobians, gammas))
    return *joined, wrenches, counts, np.array(is_force, bool)


def _loads(motion: StateMotion, efforts: dict[str, Any]) -> Float[Array, "6n"]:
    """Wrenches [n; f] about the COMs: gyroscopic moments, gravity, force elements and efforts."""
    mech, total = motion.mech, {}
    for name in mech.structure.bodies:
        inertia, omega = _world_inertia(motion, name), motion.angular_velocity(name)
        weight = mech.bodies[name].mass * jnp.asarray(mech.gravity)
        total[name] = jnp.concatenate([-jnp.cross(omega, inertia @ omega), weight])

    def add(body: str, x: Array, moment: Array, force: Array) -> None:
        if body != "ground":
            about_com = moment + jnp.cross(x - motion.pose(body).com, force)
            total[body] = total[body] + jnp.concatenate([about_com, force])

    unknown = [n for n in efforts if n not in motion.sketches]
    if unknown:
        raise ValueError(f"efforts on {unknown}, which are no joints: {list(motion.sketches)}")
    acting = [Effort(n, value) for n, value in efforts.items()]
    for name in mech.structure.forces:
        for load in mech.forces[name].loads(motion):
            if isinstance(load, Effort):
                acting.append(load)
            else:
                add(load.body, load.point, load.moment, load.force)
    for name, value in acting:
        joint, s, a, b = motion.halves(name)
        columns = effort_directions(joint, s, a, b)
        value = jnp.asarray(value, mech.dtype)
        if value.shape != columns.shape[1:]:
            raise ValueError(
                f"effort on joint '{name}' has shape {value.shape}; give {columns.shape[1:]}"
            )
        wrench, (_, x) = columns @ value, points(s, a, b)
        add(joint.b, x, wrench[:3], wrench[3:])
        add(joint.a, x, -wrench[:3], -wrench[3:])
    return jnp.concatenate([total[n] for n in mech.structure.bodies])


def _solve(
    system: _System, force: Float[Array, "6n"], length: Array
) -> tuple[Float[Array, "6n"], Float[Array, "rows"], Array, Array]:
    """Accelerations, λ, rank of J and imbalance; the least ones where they are not unique.

    All is made dimensionless with the mechanism's length and largest inertia. The rows enter
    through an orthonormal basis of their row space, ``J = U S Vᵀ``, so that redundant ones drop
    out, and λ = U S⁻¹ μ is least among those with the same ``Jᵀλ = V μ``.
    """
    n, eps = force.shape[0], float(jnp.finfo(force.dtype).eps)
    along = jnp.where(jnp.arange(n) % 6 < 3, 1.0 / length, 1.0)  # unit of each motion over metres
    row = jnp.where(system.is_force, 1.0, length)
    mass = along[:, None] * system.mass * along
    heaviest = jnp.max(jnp.abs(mass))
    heaviest = jnp.where(heaviest > 0.0, heaviest, 1.0)
    u, sigma, vt = jnp.linalg.svd(row[:, None] * system.jacobian * along, full_matrices=False)
    keep = sigma > eps**0.6 * jnp.max(sigma, initial=0.0)
    inverse = jnp.where(keep, 1.0 / jnp.where(keep, sigma, 1.0), 0.0)
    basis = jnp.where(keep[:, None], vt, 0.0)
    kkt = jnp.block(
        [[mass / heaviest, -basis.T], [basis, jnp.zeros((basis.shape[0],) * 2, mass.dtype)]]
    )
    right = jnp.concatenate([along * force / heaviest, inverse * (u.T @ (row * system.gamma))])
    x = jnp.linalg.lstsq(kkt, right, rcond=500.0 * eps)[0]
    x = x + jnp.linalg.lstsq(kkt, right - kkt @ x, rcond=500.0 * eps)[0]
    imbalance = jnp.max(jnp.abs(kkt @ x - right))
    lam = heaviest * row * (u @ (inverse * x[n:]))
    return along * x[:n], lam, jnp.sum(keep), imbalance
