"""Terms of the Newton-Euler equations of all bodies: inertia, loads, and constraint rows.

For each body, about its centre of mass (COM) and in world axes,

    M ṫ = f + (joint wrenches),  M = diag(R I Rᵀ, m 1),  f = [n − ω × (R I Rᵀ) ω; F + m g]

with ``t = [ω; v of the COM]``. `f` gathers gravity, the gyroscopic moment, the force elements and
the efforts along the joints' coordinates.

A constraint row is ``J t = b`` in the twists ``t = [ω; v of the COM]``, and ``J ṫ = γ``; its
multiplier puts the wrench ``Jᵀ λ`` on the bodies. Joint rows come from
`jaxmbd.formulations.constraints`. A drive's is ``E_iᵀ (relative twist) = ḟ`` with the wrench E_i of
its unit effort, so λ is its effort; a coupling's is ``Σ (∂f/∂q_i) E_iᵀ (relative twist) = 0``, with
the effort ``λ ∂f/∂q_i`` along q_i.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.constraints import (
    constraint,
    linearised,
    rows_are_lengths,
    whole_turns,
)
from jaxmbd.formulations.state import StateMotion, effort_directions, joint_speeds, speed_rows
from jaxmbd.model import Armature, Effort, PointDrive


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
        joint, *half = motion.halves(joint_name)
        pair, rate = speed_rows(joint, *half, motion.pair_twist(joint_name))
        blocks = ((joint.a, pair[:, :6]), (joint.b, pair[:, 6:]))
        wrenches = motion.on_bodies(joint_name, effort_directions(joint, *half))
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
    mech, total = motion.mech, {}
    for name in mech.structure.bodies:
        weight = mech.bodies[name].mass * mech.field()
        total[name] = jnp.concatenate([jnp.zeros_like(weight), weight])

    def add(body: str, x: Array, moment: Array, force: Array) -> None:
        if body != "ground":
            about_com = moment + jnp.cross(x - motion.pose(body).position, force)
            total[body] = total[body] + jnp.concatenate([about_com, force])

    acting = _given(motion, efforts or {})
    for name in mech.structure.forces:
        for load in mech.forces[name].loads(motion):
            if isinstance(load, Effort):
                acting.append((load.joint, load.value))
            else:
                add(load.body, load.point, load.moment, load.force)
    forces = jnp.concatenate([total[n] for n in mech.structure.bodies])
    for name, value in acting:
        columns = effort_directions(*motion.halves(name))
        forces = forces + motion.on_bodies(name, columns) @ _sized(name, value, columns)
    return forces


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
    coupling = motion.mech.couplings[name]
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
