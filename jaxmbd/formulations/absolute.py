"""Newton-Euler equations in absolute coordinates: all joints as rows of one dense KKT system.

    [ M  −Jᵀ ] [ṫ]   [ f ]
    [ J   0  ] [λ] = [ γ ]

with ``t = [ω; v of the COM]`` of each body, about its COM in world axes,

    M = diag(R I Rᵀ, m 1),   f = [n − ω × (R I Rᵀ) ω; F + m g]

(lecture text (4.6)-(4.8) with the opposite sign of λ, which gives joint forces directly). `f`
gathers gravity, the gyroscopic moment, the force elements and the efforts along the joints'
coordinates.

A constraint row is ``J t = b``, and ``J ṫ = γ``; its multiplier puts the wrench ``Jᵀ λ`` on the
bodies. Joint rows come from `jaxmbd.formulations.absolute_coordinates`. A drive's is
``E_iᵀ (relative twist) = ḟ`` with the wrench E_i of its unit effort, so λ is its effort; a
coupling's is ``Σ (∂f/∂q_i) E_iᵀ (relative twist) = 0``, with the effort ``λ ∂f/∂q_i`` along q_i.

`absolute_accelerations` takes a state in absolute coordinates and shares only the description and
the force elements with the engine, so that it is an independent check. `absolute_forward_dynamics`
takes the engine's q and v instead. Both are slow, because all matrices are dense.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.absolute_coordinates import (
    State,
    StateMotion,
    constraint,
    effort_directions,
    joint_speeds,
    linearised,
    rows_are_lengths,
    speed_rows,
    state_of,
    whole_turns,
)
from jaxmbd.graph import topology
from jaxmbd.kinematics import joint_coordinates
from jaxmbd.model import Armature, Effort, Load, Mechanism, PointDrive
from jaxmbd.numerics import AnyArray, tolerances


def world_inertia(motion: StateMotion, body: str) -> Float[Array, "3 3"]:
    """Inertia of a body about its COM [kg m²], world axes: ``R I Rᵀ``."""
    r = motion.rotation(body)
    return r @ jnp.asarray(motion.mech.inertia(body), r.dtype) @ r.T


def body_masses(motion: StateMotion) -> Float[Array, "twists twists"]:
    """``diag(R I Rᵀ, m 1)`` of all bodies in the order of their declaration, and the armatures."""
    bodies = motion.mech.structure.bodies
    mass = jnp.zeros((6 * len(bodies), 6 * len(bodies)), motion.mech.dtype)
    for i, name in enumerate(bodies):
        k, eye = 6 * i, jnp.eye(3, dtype=mass.dtype)
        mass = mass.at[k : k + 3, k : k + 3].set(world_inertia(motion, name))
        mass = mass.at[k + 3 : k + 6, k + 3 : k + 6].set(motion.mech.bodies[name].mass * eye)
    for wrenches, inertia, rows, _ in _armatures(motion):
        mass = mass + (wrenches * inertia) @ rows
    return mass


def _armatures(motion: StateMotion) -> list[tuple[Array, Array, Array, Array]]:
    """Of each armature: wrenches (6n, nv) of unit efforts on all bodies, a, and ``v̇ = J ṫ + β``."""
    bodies, out = motion.mech.structure.bodies, []
    for name, joint_name in motion.mech.structure.armatures:
        joint, s, a, b = motion.halves(joint_name)
        pair, rate = speed_rows(joint, s, a, b, motion.pair_twist(joint_name))
        blocks = ((joint.a, pair[:, :6]), (joint.b, pair[:, 6:]))
        wrenches = motion.on_bodies(joint_name, effort_directions(joint, s, a, b))
        element = motion.mech.forces[name]
        assert isinstance(element, Armature)
        out.append((wrenches, element.along(joint.nv), on_all(blocks, bodies, pair), rate))
    return out


def on_all(blocks: Iterable[tuple[str, Array]], bodies: tuple[str, ...], like: Array) -> Array:
    """Rows (len(like), 6n) by the twists of all bodies, from their columns (rows, 6) by body."""
    full = jnp.zeros((like.shape[0], 6 * len(bodies)), like.dtype)
    for body, columns in blocks:
        if body != "ground":
            i = 6 * bodies.index(body)
            full = full.at[:, i : i + 6].add(columns)
    return full


def body_loads(
    motion: StateMotion, efforts: Mapping[str, Any] | None = None
) -> Float[Array, "twists"]:
    """`applied_wrenches` minus gyroscopic moments and those of armatures (6n,); same arguments."""
    turning = []
    for name in motion.mech.structure.bodies:
        inertia, omega = world_inertia(motion, name), motion.angular_velocity(name)
        turning += [jnp.cross(omega, inertia @ omega), jnp.zeros(3, omega.dtype)]
    total = applied_wrenches(motion, efforts) - jnp.concatenate(turning)
    return total - sum(w @ (a * rate) for w, a, _, rate in _armatures(motion))


def applied_wrenches(
    motion: StateMotion, efforts: Mapping[str, Any] | None = None
) -> Float[Array, "twists"]:
    """Wrenches [n; f] about the COMs, world axes: gravity, force elements and efforts.

    Raises:
        ValueError: efforts on an unknown joint, or of the wrong shape.
    """
    mech, weights = motion.mech, []
    for name in mech.structure.bodies:
        weight = mech.bodies[name].mass * mech.field()
        weights += [jnp.zeros_like(weight), weight]
    acting: list[Load | Effort] = [Effort(*x) for x in _given(motion, efforts or {})]
    for name in mech.structure.forces:
        acting += mech.forces[name].loads(motion)
    return jnp.concatenate(weights) + _on_bodies(motion, acting)


def _on_bodies(motion: StateMotion, acting: Sequence[Load | Effort]) -> Float[Array, "twists"]:
    """Wrenches [n; f] about the COMs, world axes."""
    mech = motion.mech
    total = {name: jnp.zeros(6, mech.dtype) for name in mech.structure.bodies}
    for load in acting:
        if isinstance(load, Load) and load.body in total:
            arm = load.point - motion.pose(load.body).position
            wrench = jnp.concatenate([load.moment + jnp.cross(arm, load.force), load.force])
            total[load.body] = total[load.body] + wrench
    forces = jnp.concatenate([total[n] for n in mech.structure.bodies])
    for effort in acting:
        if isinstance(effort, Effort):
            columns = effort_directions(*motion.halves(effort.joint))
            size = _sized(effort.joint, effort.value, columns)
            forces = forces + motion.on_bodies(effort.joint, columns) @ size
    return forces


def beside_couples(
    motion: StateMotion, multipliers: Mapping[str, Array]
) -> Float[Array, "twists"] | None:
    """What couplings exert on bodies beside the couples of their rows, which joints alone balance.

    None if there is nothing such (6n,).
    """
    acting: list[Load | Effort] = []
    couples: list[Load | Effort] = []
    for name, _ in motion.mech.structure.couplings:
        coupling = motion.mech.coupling(name)
        if not coupling.couples_alone:
            acting += coupling.loads(motion, multipliers[name])
            couples += coupling.efforts(motion, multipliers[name])
    return _on_bodies(motion, acting) - _on_bodies(motion, couples) if acting else None


def _given(motion: StateMotion, efforts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    unknown = [n for n in efforts if n not in motion.sketches]
    if unknown:
        raise ValueError(f"efforts on {unknown}, which are no joints: {list(motion.sketches)}")
    return list(efforts.items())


def _sized(name: str, value: Any, columns: Array) -> Array:
    value, size = jnp.asarray(value, columns.dtype), columns.shape[1:]
    if value.shape not in ((), size):
        raise ValueError(
            f"effort on joint '{name}' has shape {value.shape}; give one number or {size}"
        )
    return jnp.broadcast_to(value, size)


class Rows(NamedTuple):
    """The rows of a joint, a coupling or a drive."""

    name: str
    phi: Array  # (rows,): position-level error
    blocks: tuple[tuple[str, Array], ...]  # body, and J with respect to its twist (rows, 6)
    rate: Array  # (rows,): b
    gamma: Array  # (rows,)
    lengths: np.ndarray  # (rows,), whether a row is a length

    def of(self, bodies: tuple[str, ...]) -> Array:
        """J (rows, 6n) with respect to the twists of all bodies."""
        return on_all(self.blocks, bodies, self.phi)


def joint_rows(motion: StateMotion, name: str) -> Rows:
    """The constraint rows of a joint; the second block is that of its second body."""
    joint, s, a, b = motion.halves(name)
    phi, pair, gamma = linearised(partial(constraint, joint, s), a, b, motion.pair_twist(name))
    blocks = ((joint.a, pair[:, :6]), (joint.b, pair[:, 6:]))
    return Rows(name, phi, blocks, jnp.zeros_like(phi), gamma, rows_are_lengths(joint))


def coordinate_rows(motion: StateMotion, name: str, index: int) -> Rows:
    """One joint coordinate as a row: ``v_i = J t`` and ``v̇_i = J ṫ − γ``."""
    joint = motion.mech.joint(name)
    pair, bias = speed_rows(*motion.halves(name), motion.pair_twist(name))
    row = pair[index : index + 1]
    blocks = ((joint.a, row[:, :6]), (joint.b, row[:, 6:]))
    q, none = motion.coordinates(name)[index], jnp.zeros(1, row.dtype)
    return Rows(
        name,
        q[None],
        blocks,
        none,
        -bias[index : index + 1],
        np.array([joint.speeds[index] == "travel"]),
    )


def coupling_rows(motion: StateMotion, name: str) -> Rows:
    """The row of a coupling."""
    coupling = motion.mech.coupling(name)
    terms = [coordinate_rows(motion, joint, index) for joint, index in coupling.terms]
    q = jnp.concatenate([r.phi for r in terms])
    v = jnp.stack(
        [
            joint_speeds(*motion.halves(joint), motion.pair_twist(joint))[index]
            for joint, index in coupling.terms
        ]
    )
    slope = coupling.slope(q)
    gamma = sum(k * r.gamma for k, r in zip(slope, terms, strict=True))
    blocks = [(body, k * x) for k, r in zip(slope, terms, strict=True) for body, x in r.blocks]
    return Rows(
        name,
        coupling.condition(q)[None],
        tuple(blocks),
        jnp.zeros_like(q[:1]),
        gamma - coupling.curvature(q, v)[None],
        terms[-1].lengths,
    )


def drive_rows(motion: StateMotion, name: str) -> Rows:
    """The rheonomic row of a drive: on a joint's coordinate, or on one of a point."""
    drive = motion.mech.drives[name]
    value, rate, acceleration = drive.value(jnp.asarray(motion.t, motion.mech.dtype))
    if isinstance(drive, PointDrive):
        row = _point_row(motion, drive)
        phi = row.phi - value
    else:
        row = coordinate_rows(motion, drive.joint, drive.index)
        phi = row.phi - value
        if not row.lengths[0] and drive.joint not in motion.known:
            phi = phi - whole_turns(phi)
    return row._replace(name=name, phi=phi, rate=rate[None], gamma=acceleration + row.gamma)


def _point_row(motion: StateMotion, drive: PointDrive) -> Rows:
    """x_k of a point: ``ẋ_k = e_k · (v + ω × r)``, ``ẍ_k = e_k · (v̇ + ω̇ × r + ω × (ω × r))``."""
    x, velocity = motion.point(drive.body, drive.at)
    omega, k = motion.angular_velocity(drive.body), drive.component
    arm = x - motion.pose(drive.body).position
    axis = jnp.eye(3, dtype=x.dtype)[k]
    row = jnp.concatenate([jnp.cross(arm, axis), axis])[None]
    turning = jnp.cross(omega, jnp.cross(omega, arm))[k]
    rest = jnp.zeros_like(velocity[:1])
    return Rows("", x[k][None], ((drive.body, row),), rest, -turning[None], np.array([True]))


def wrench_units(n: int, length: Array) -> Float[Array, "twists"]:
    """Divisors that turn n wrenches into forces: the length for moments, one for forces."""
    return jnp.where(jnp.arange(6 * n) % 6 < 3, length, 1.0)


def all_rows(motion: StateMotion) -> list[Rows]:
    """The rows of all joints, then couplings, then drives, in the order of declaration."""
    structure = motion.mech.structure
    return [
        *(joint_rows(motion, n) for n in motion.sketches),
        *(coupling_rows(motion, n) for n, _ in structure.couplings),
        *(drive_rows(motion, n) for n, _, _ in structure.drives),
    ]


class AbsoluteSolution(NamedTuple):
    """Accelerations and joint forces of a mechanism at an instant, world axes.

    Example:
        >>> import numpy as np
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import absolute_accelerations
        >>> mech = mbd.Mechanism(
        ...     {"bob": mbd.Body(1.0, (1, 0, 0))},
        ...     {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0))},
        ... )
        >>> state = {"bob": (np.eye(3), np.array([1.0, 0, 0]), np.zeros(3), np.zeros(3))}
        >>> absolute_accelerations(mech, state).reactions["hinge"].shape
        (6,)
    """

    accelerations: dict[str, Float[Array, "6"]]
    """Body to [angular; linear of the COM] [rad/s², m/s²]; least where not unique."""
    multipliers: dict[str, Float[Array, "rows"]]
    """Joint, coupling or drive to its λ; least where not unique. A joint's is what a exerts on b:
    forces [N], then moments [N·m]; a drive's its effort along +q [N·m or N]."""
    reactions: dict[str, Float[Array, "6"]]
    """Joint to the constraint wrench [n; f] [N·m, N] of a on b about b's joint point (`at_b`, or
    `at` where that is None; the COM of b for a free joint). Efforts are not part of it."""
    rank: Array
    """Number of independent rows, drives among them: 6 · bodies − rank is the number of DOF (and
    3 · bodies more in a planar mechanism, whose joints have the rows of the plane alone)."""
    residual: dict[str, Float[Array, "rows"]]
    """Joint to its position-level error [m], then [rad]; coupling or drive to its own."""
    velocity_residual: Array
    """Largest ``|J t − b|`` [m/s, rad/s], b the drives' rates."""
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
        mech: the mechanism.
        state: body to (R (3, 3), COM (3,) [m], ω (3,) [rad/s], v of the COM (3,) [m/s]).
        t: time [s], for force elements and drives.
        efforts: joint to what acts along its speeds, one number or (nv,) [N·m or N],
            positive along +q, in addition to those of the force elements. Of a universal joint:
            the torques conjugate to its two angles; of a helical joint: a pure torque; of a free
            joint: [torque; force at b's COM] in a's axes; of a ball: a torque in a's axes.

    Returns:
        Accelerations, multipliers, reactions, and how well the state satisfies the joints.
        Angles of revolute, cylindrical, universal and planar joints that force elements need are
        computed from the state, in (-π, π].

    Raises:
        ValueError: a body without a state, efforts on an unknown joint or of the wrong shape.

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
    return _accelerations(StateMotion(mech, state, t), efforts)


def absolute_forward_dynamics(
    mech: Mechanism,
    q: AnyArray,
    v: AnyArray,
    t: Any = 0.0,
    inputs: Mapping[str, Any] | None = None,
) -> tuple[Float[Array, "nv"], AbsoluteSolution]:
    """Forward dynamics by Newton-Euler in absolute coordinates, from the coordinates q and v.

    Poses and velocities of the bodies come from the engine's kinematics, all else from
    `absolute_accelerations`. The joints' accelerations are computed from those of the bodies.

    Args:
        mech: the mechanism.
        q: coordinates (nq,), on the constraints.
        v: speeds (nv,), on the constraints.
        t: time [s].
        inputs: efforts on joints by name, one number or (nv,) [N·m or N].

    Returns:
        v̇ (nv,), as `jaxmbd.forward_dynamics` gives it, and the `AbsoluteSolution`.

    Raises:
        ValueError: inputs on an unknown joint or of the wrong shape.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> from jaxmbd.formulations import absolute_forward_dynamics
        >>> m = mbd.zoo.simple_pendulum()
        >>> vdot, solution = absolute_forward_dynamics(m, mbd.neutral(m), jnp.zeros(1))
        >>> round(float(vdot[0]), 6), int(solution.rank)
        (9.81, 5)
    """
    motion = state_motion(mech, q, v, t)
    solution = _accelerations(motion, inputs)
    rates = [jnp.zeros(0, mech.dtype)]
    for name in topology(mech).tree:
        joint, s, a, b = motion.halves(name)
        rows, bias = speed_rows(joint, s, a, b, motion.pair_twist(name))
        rest = jnp.zeros(6, mech.dtype)
        pair = [solution.accelerations.get(body, rest) for body in (joint.a, joint.b)]
        rates.append(rows @ jnp.concatenate(pair) + bias)
    return jnp.concatenate(rates), solution


def state_motion(mech: Mechanism, q: AnyArray, v: AnyArray, t: Any = 0.0) -> StateMotion:
    """The absolute state of q (nq,) and v (nv,), with the tree joints' coordinates as given."""
    tree, read = topology(mech).tree, joint_coordinates(mech, jnp.asarray(q))
    return StateMotion(mech, state_of(mech, q, v), t, {n: x for n, x in read.items() if n in tree})


def _accelerations(motion: StateMotion, efforts: Mapping[str, Any] | None) -> AbsoluteSolution:
    bodies = motion.mech.structure.bodies
    rows, none = all_rows(motion), jnp.zeros(0, motion.mech.dtype)
    jacobian = jnp.concatenate([none.reshape(0, 6 * len(bodies)), *(r.of(bodies) for r in rows)])
    rate = jnp.concatenate([none, *(r.rate for r in rows)])
    gamma = jnp.concatenate([none, *(r.gamma for r in rows)])
    # In units of the length: x = along · [ω̇; v̇], and rows of angles times it.
    along = 1.0 / wrench_units(len(bodies), motion.length)
    is_force = np.concatenate([np.zeros(0, bool), *(r.lengths for r in rows)])
    row = jnp.where(is_force, 1.0, motion.length)
    mass, force = along[:, None] * body_masses(motion) * along, along * body_loads(motion, efforts)
    x, mu, rank, imbalance = solve_dense(mass, force, row[:, None] * jacobian * along, row * gamma)
    acceleration, lam = along * x, row * mu
    split = np.cumsum([0, *(r.phi.shape[0] for r in rows)])
    parts = {r.name: slice(split[i], split[i + 1]) for i, r in enumerate(rows)}
    beside = beside_couples(
        motion, {n: lam[parts[n]][0] for n, _ in motion.mech.structure.couplings}
    )
    if beside is not None:
        own = slice(0, split[len(motion.sketches)])
        columns = (row[own, None] * jacobian[own] * along).T
        lam = lam.at[own].add(-row[own] * (jnp.linalg.pinv(columns) @ (along * beside)))
    on_b = {r.name: r.blocks[1][1].T @ lam[parts[r.name]] for r in rows[: len(motion.sketches)]}
    twists = jnp.concatenate([motion.twist(n) for n in bodies])
    return AbsoluteSolution(
        accelerations={n: acceleration[6 * i : 6 * i + 6] for i, n in enumerate(bodies)},
        multipliers={n: lam[part] for n, part in parts.items()},
        reactions={n: motion.at_joint_point(n, wrench) for n, wrench in on_b.items()},
        rank=rank,
        residual={r.name: r.phi for r in rows},
        velocity_residual=jnp.max(jnp.abs(jacobian @ twists - rate), initial=0.0),
        imbalance=imbalance,
    )


def solve_dense(
    mass: Float[Array, "n n"], force: Array, jacobian: Float[Array, "rows n"], gamma: Array
) -> tuple[Array, Array, Array, Array]:
    """Accelerations, λ, rank of J and imbalance; of least norm if they are not unique.

    The rows enter through an orthonormal basis V of their row space, ``J = U S Vᵀ``, so that
    redundant ones drop out: λ = U S⁻¹ μ. The pseudo-inverse P of this KKT matrix is held constant
    and the solution is ``x₀ + P (b − K x₀)``: a refinement step whose derivative is the implicit
    one, without differentiating singular values.
    """
    n = force.shape[0]
    held = jax.lax.stop_gradient
    heaviest = jnp.max(jnp.abs(held(mass)))
    heaviest = jnp.where(heaviest > 0.0, heaviest, 1.0)
    u, sigma, vt = jnp.linalg.svd(held(jacobian), full_matrices=False)
    keep = sigma > tolerances.rank(force.dtype) * jnp.max(sigma, initial=0.0)
    inverse = jnp.where(keep, 1.0 / jnp.where(keep, sigma, 1.0), 0.0)
    basis = jnp.where(keep[:, None], vt, 0.0)
    empty = jnp.zeros((basis.shape[0],) * 2, force.dtype)
    kkt = jnp.block([[held(mass) / heaviest, -basis.T], [basis, empty]])
    pseudo = jnp.linalg.pinv(kkt, rtol=tolerances.rounding(force.dtype, 500))

    def left_over(a: Array, lam: Array) -> tuple[Array, Array]:
        return force + jacobian.T @ lam - mass @ a, gamma - jacobian @ a

    def correct(a: Array, lam: Array) -> tuple[Array, Array]:
        push, open_ = left_over(a, lam)
        x = pseudo @ jnp.concatenate([push / heaviest, inverse * (u.T @ open_)])
        return a + x[:n], lam + heaviest * (u @ (inverse * x[n:]))

    a, lam = jnp.zeros_like(force), jnp.zeros_like(gamma)
    for _ in range(2):
        a, lam = held(correct(a, lam))
    a, lam = correct(a, lam)
    push, open_ = left_over(a, lam)
    error = jnp.concatenate([push / heaviest, u @ (keep * (u.T @ open_))])
    return a, lam, jnp.sum(keep), jnp.max(jnp.abs(error))
