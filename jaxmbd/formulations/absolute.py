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
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.constraints import (
    FORCE_ROWS,
    Pose,
    Sketch,
    constraint,
    drawn_com,
    helical_angle,
    linearised,
    points,
    sketch,
    turn,
)
from jaxmbd.model import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)
from jaxmbd.model.forces import Effort
from jaxmbd.model.joints import Joint

State = Mapping[str, tuple[Any, Any, Any, Any]]
"""Body to (rotation from the drawn orientation (3, 3), COM (3,) [m], ω (3,) [rad/s], velocity of
the COM (3,) [m/s]), world axes."""


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
        >>> print(np.round(solution.accelerations["bob"][1], 6))
        9.81
    """
    motion = StateMotion(mech, state, t)
    bodies = mech.structure.bodies
    system = _System(*_masses(motion), *_rows(motion))
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


class StateMotion:
    """The motion of all bodies as force elements see it, read from the absolute state."""

    def __init__(self, mech: Mechanism, state: State, t: Any = 0.0):
        missing = [n for n in mech.structure.bodies if n not in state]
        if missing:
            raise ValueError(f"state has no entry for {missing}; give (R, com, omega, v) of each")
        if mech.structure.drives:
            names = [n for n, _, _ in mech.structure.drives]
            raise ValueError(f"drives {names} are not supported here; give their efforts instead")
        self.mech, self.t = mech, t
        self.state = {n: tuple(jnp.asarray(x, mech.dtype) for x in state[n]) for n in state}
        zero = jnp.zeros(3, mech.dtype)
        self.state["ground"] = (jnp.eye(3, dtype=mech.dtype), zero, zero, zero)
        self.sketches = {e.name: sketch(mech, mech.joints[e.name]) for e in mech.structure.joints}
        arms = [x for s in self.sketches.values() for x in (s.arm_a, s.arm_b)]
        longest = jnp.max(jnp.stack([jnp.linalg.norm(x) for x in arms]))
        self.length = jnp.where(longest > 0.0, longest, 1.0)

    def pose(self, body: str) -> Pose:
        """Rotation and COM of a body."""
        return Pose(*self.state[body][:2])

    def twist(self, body: str) -> Float[Array, "6"]:
        """[ω; v of the COM] of a body."""
        return jnp.concatenate(self.state[body][2:])

    def halves(self, name: str) -> tuple[Joint, Sketch, Pose, Pose]:
        """A joint, as drawn, with the poses of its bodies."""
        joint = self.mech.joints[name]
        return joint, self.sketches[name], self.pose(joint.a), self.pose(joint.b)

    def velocity(self, body: str, x: Array) -> Float[Array, "3"]:
        """Velocity [m/s] of the point of `body` that is at the world position `x`."""
        _, com, omega, v = self.state[body]
        return v + jnp.cross(omega, x - com)

    def point(self, body: str, at: Any) -> tuple[Array, Array]:
        """World position [m] and velocity [m/s] of the point of `body` drawn at `at`."""
        r, com = self.pose(body)
        x = com + r @ (self.drawn(at) - drawn_com(self.mech, body))
        return x, self.velocity(body, x)

    def drawn(self, at: Any) -> Array:
        """Drawn coordinates [m] of a point."""
        return self.mech.point(at)

    def rotation(self, body: str) -> Array:
        """Rotation of a body from its drawn orientation."""
        return self.state[body][0]

    def angular_velocity(self, body: str) -> Array:
        """Angular velocity [rad/s] of a body, world axes."""
        return self.state[body][2]

    def joint(self, name: str) -> tuple[Array, Array]:
        """Coordinates (nq,) and speeds (nv,) of a joint; angles in (-π, π]."""
        joint, s, a, b = self.halves(name)
        _, x = points(s, a, b)
        angular = self.angular_velocity(joint.b) - self.angular_velocity(joint.a)
        linear = self.velocity(joint.b, x) - self.velocity(joint.a, x)
        speeds = _directions(joint, s, a, b).T @ jnp.concatenate([angular, linear])
        return _coordinates(joint, s, a, b), speeds

    def at_joint_point(self, name: str, wrench: Array) -> Float[Array, "6"]:
        """A wrench on b about its COM, moved to b's joint point."""
        _, s, a, b = self.halves(name)
        _, x = points(s, a, b)
        return jnp.concatenate([wrench[:3] - jnp.cross(x - b.com, wrench[3:]), wrench[3:]])


def _coordinates(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "nq"]:
    """Coordinates of b relative to a, zero as drawn."""
    start, end = points(s, a, b)
    on_a, on_b = a.rotation @ s.triad_a, b.rotation @ s.triad_b
    travels = on_a.T @ (end - start)
    angle = turn(on_a, on_b)
    match joint:
        case Revolute():
            return angle[None]
        case Helical():
            return helical_angle(joint, s, a, b)[None]
        case Prismatic():
            return travels[:1]
        case Cylindrical():
            return jnp.stack([angle, travels[0]])
        case Planar():
            return jnp.stack([angle, travels[1], travels[2]])
        case Universal():
            # In a's axes b's own axis is A(q1) axis_b; in b's axes a's is B(-q2) axis_a.
            image_b = a.rotation.T @ on_b[:, 0]
            image_a = b.rotation.T @ on_a[:, 0]
            first = _azimuth(s.triad_a, image_b) - _azimuth(s.triad_a, s.triad_b[:, 0])
            second = _azimuth(s.triad_b, s.triad_a[:, 0]) - _azimuth(s.triad_b, image_a)
            q = jnp.stack([first, second])
            return q - 2.0 * jnp.pi * jnp.round(q / (2.0 * jnp.pi))
        case Spherical():
            return _euler_parameters(a.rotation.T @ b.rotation)
        case Free():
            return jnp.concatenate([_euler_parameters(a.rotation.T @ b.rotation), travels])
        case Fixed():
            return travels[:0]
    raise ValueError(f"a {type(joint).__name__} has no coordinates; name another joint")


def _azimuth(triad: Array, x: Array) -> Array:
    """Angle [rad] of `x` about the triad's axis, from e1."""
    return jnp.arctan2(triad[:, 2] @ x, triad[:, 1] @ x)


def _euler_parameters(r: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Euler parameters with e0 ≥ 0: the eigenvector to 4 of the matrix ``4 p pᵀ``."""
    trace = jnp.trace(r)
    axial = jnp.stack([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    corner = jnp.concatenate([(1.0 + trace)[None], axial])
    block = r + r.T + (1.0 - trace) * jnp.eye(3, dtype=r.dtype)
    square = jnp.concatenate([corner[None], jnp.concatenate([axial[:, None], block], axis=1)])
    p = jnp.linalg.eigh(square)[1][:, -1]
    return jnp.where(p[0] < 0.0, -p, p)


def _directions(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "6 nv"]:
    """Wrenches [n; f] at b's point on b, world axes, that are unit efforts along the coordinates.

    They are dual to the joint's motions: their power on those is the speeds themselves.
    """
    on_a = a.rotation @ s.triad_a
    u, e1, e2 = on_a.T
    none = jnp.zeros_like(u)
    match joint:
        case Revolute() | Helical():
            columns = [(u, none)]
        case Prismatic():
            columns = [(none, u)]
        case Cylindrical():
            columns = [(u, none), (none, u)]
        case Planar():
            columns = [(u, none), (none, e1), (none, e2)]
        case Universal():
            axes = jnp.stack([u, b.rotation @ s.triad_b[:, 0]], axis=1)
            columns = [(x, none) for x in jnp.linalg.pinv(axes)]
        case Spherical():
            columns = [(x, none) for x in a.rotation.T]
        case Free():
            columns = [(x, none) for x in a.rotation.T] + [(none, x) for x in a.rotation.T]
        case Fixed() | Rod():
            return jnp.zeros((6, 0), u.dtype)
        case _:
            raise TypeError(f"no efforts for a {type(joint).__name__} joint")
    return jnp.stack([jnp.concatenate(c) for c in columns], axis=1)


class _System(NamedTuple):
    mass: Array  # (6n, 6n)
    phi: Array  # (rows,)
    jacobian: Array  # (rows, 6n)
    gamma: Array  # (rows,)
    wrenches: dict[str, Array]  # joint to its rows' Jacobian along b, (rows, 6)
    counts: dict[str, int]  # joint to its number of rows
    is_force: np.ndarray  # (rows,), whether a row is a length


def _masses(motion: StateMotion) -> tuple[Array]:
    bodies = motion.mech.structure.bodies
    mass = jnp.zeros((6 * len(bodies), 6 * len(bodies)), motion.mech.dtype)
    for i, name in enumerate(bodies):
        k, eye = 6 * i, jnp.eye(3, dtype=mass.dtype)
        mass = mass.at[k : k + 3, k : k + 3].set(_world_inertia(motion, name))
        mass = mass.at[k + 3 : k + 6, k + 3 : k + 6].set(motion.mech.bodies[name].mass * eye)
    return (mass,)


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
        phi, pair, gamma = linearised(lambda x, y, j=joint, s=s: constraint(j, s, x, y), a, b, twists)
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
        columns = _directions(joint, s, a, b)
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
    n, eps = force.shape[0], jnp.finfo(force.dtype).eps
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
