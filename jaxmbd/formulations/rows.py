"""The constraint rows of joints, couplings and drives in the twists of the bodies.

A row is ``J t = b`` in the twists ``t = [ω; v of the COM]``, and ``J ṫ = γ``; its multiplier puts
the wrench ``Jᵀ λ`` on the bodies. Joint rows come from `jaxmbd.formulations.constraints`. A
drive's is ``E_iᵀ (relative twist) = ḟ`` with the wrench E_i of its unit effort, so λ is its effort;
a coupling's is ``Σ (∂f/∂q_i) E_iᵀ (relative twist) = 0``, with the effort ``λ ∂f/∂q_i`` along q_i.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.formulations.constraints import constraint, linearised, rows_are_lengths
from jaxmbd.formulations.state import StateMotion, joint_speeds, speed_rows
from jaxmbd.model import PointDrive


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
        full = jnp.zeros((self.phi.shape[0], 6 * len(bodies)), self.phi.dtype)
        for body, columns in self.blocks:
            if body != "ground":
                i = 6 * bodies.index(body)
                full = full.at[:, i : i + 6].add(columns)
        return full


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
            phi = phi - 2.0 * jnp.pi * jnp.round(phi / (2.0 * jnp.pi))
    return row._replace(name=name, phi=phi, rate=rate[None], gamma=acceleration + row.gamma)


def _point_row(motion: StateMotion, drive: PointDrive) -> Rows:
    """x_k of a point: ``ẋ_k = e_k · (v + ω × r)``, ``ẍ_k = e_k · (v̇ + ω̇ × r + ω × (ω × r))``."""
    x, velocity = motion.point(drive.body, drive.at)
    omega, k = motion.angular_velocity(drive.body), drive.component
    arm = x - motion.pose(drive.body).com
    axis = jnp.eye(3, dtype=x.dtype)[k]
    row = jnp.concatenate([jnp.cross(arm, axis), axis])[None]
    turning = jnp.cross(omega, jnp.cross(omega, arm))[k]
    rest = jnp.zeros_like(velocity[:1])
    return Rows("", x[k][None], ((drive.body, row),), rest, -turning[None], np.array([True]))


def all_rows(motion: StateMotion) -> list[Rows]:
    """The rows of all joints, then couplings, then drives, in the order of declaration."""
    structure = motion.mech.structure
    return [
        *(joint_rows(motion, n) for n in motion.sketches),
        *(coupling_rows(motion, n) for n, _ in structure.couplings),
        *(drive_rows(motion, n) for n, _, _ in structure.drives),
    ]
