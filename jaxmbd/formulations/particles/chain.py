"""Recursive equations of a serial chain of particles (Attia, section 2.4).

Each body keeps particles 1, 2 and 4; particle 3 follows by (12) and its acceleration by (15), and
connected bodies share particles. Neither constraint forces nor multipliers enter: from the tip to
the base,

    G_j = Σ_{k≥j} rate of the angular momentum of body k about particle 1 of body j,    (20)
    R   = Σ_k     rate of its linear momentum,                                          (22)

where body k adds ``Σ_i A_i r̈_i`` with A_i = m̄̄_i r̃_i + ¼ Σ m_ij r̃_j (8), and ``Σ_i m̄_i r̈_i``
(7). For a body joined by a ball all three components of (20) hold, by a revolute the one along its
axis; (22) holds where the base floats. With the distances between particles 1, 2, 4 of each body
(19), (21) they make as many equations as unknown accelerations.

Notes on the printed equations: (15) omits the velocity term 2λ ṙ_21 × ṙ_41 of (14), which (16) has;
in A_3k under (20) the sum over i must start at 3k − 2, because moments are not taken about particle
1 of body k; m̄_3k under (22) correctly has ½, while that under (20), a different quantity, has ¼.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.absolute_coordinates import state_of
from jaxmbd.formulations.particles.accelerations import (
    ParticleLoads,
    ParticleMotion,
    bodies_of_particles,
    particles_of_state,
)
from jaxmbd.formulations.particles.bodies import dependent_acceleration, invariants
from jaxmbd.formulations.particles.system import ParticleSystem
from jaxmbd.kinematics import joint_coordinates
from jaxmbd.model import Free, Mechanism, Revolute, Spherical, in_space
from jaxmbd.numerics import AnyArray
from jaxmbd.spatial import cross, skew


class Affine(NamedTuple):
    """A vector that is an affine function of the unknown accelerations: ``matrix u + constant``."""

    matrix: Float[Array, "3 n"]
    constant: Float[Array, "3"]

    def plus(self, other: Affine) -> Affine:
        """Their sum."""
        return Affine(self.matrix + other.matrix, self.constant + other.constant)


def chain_accelerations(
    mech: Mechanism,
    q: AnyArray,
    v: AnyArray,
    t: Any = 0.0,
    inputs: Mapping[str, Any] | None = None,
) -> dict[str, Float[Array, "6"]]:
    """Body to [ω̇; v̇ of the COM] [rad/s², m/s²] by the recursion along a serial chain.

    Args:
        mech: a chain: each body is joined to the one before by a ball or a revolute; the first to
            the ground by one of these (a fixed base) or by a free joint (a floating base). No
            loops, rods, drives or couplings.
        q: coordinates (nq,).
        v: speeds (nv,).
        t: time [s].
        inputs: efforts on joints by name, a number or (nv,) each [N·m or N].

    Raises:
        ValueError: the mechanism is no such chain; the message names the joints or bodies.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> from jaxmbd.formulations import chain_accelerations
        >>> m = mbd.zoo.double_pendulum()
        >>> found = chain_accelerations(m, mbd.neutral(m), jnp.ones(2))
        >>> vdot, _ = mbd.forward_dynamics(m, mbd.neutral(m), jnp.ones(2))
        >>> expected = mbd.body_accelerations(m, mbd.neutral(m), jnp.ones(2), vdot)
        >>> all(jnp.allclose(found[b], expected[b]) for b in found)
        True
    """
    near = joint_coordinates(mech, jnp.asarray(q))
    state, mech = state_of(mech, q, v), in_space(mech)
    system = ParticleSystem(mech, 3, near)
    _check_chain(system)
    r, v_of = particles_of_state(system, state)
    loads = ParticleLoads(ParticleMotion(system, r, v_of, jnp.asarray(t, mech.dtype)), inputs or {})
    for name, value in loads.efforts:  # on revolutes; all others are already loads on bodies
        joint, (_, half) = mech.joint(name), system.ends(name, r)
        torque = value[0] * half.directions[0]
        loads.add(joint.b, half.point, jnp.zeros_like(torque), torque)
        loads.add(joint.a, half.point, jnp.zeros_like(torque), -torque)
    acceleration = _unknown(system, r, v_of)
    rows, right = _distances(system, r, v_of, acceleration)
    momentum_rows, momentum_right = _momenta(system, r, acceleration, loads)
    u = jnp.linalg.solve(
        jnp.concatenate([*momentum_rows, *rows]), jnp.concatenate([*momentum_right, *right])
    )
    second = {
        body: jnp.stack([x.matrix @ u + x.constant for x in acceleration[body]])
        for body in system.top.bodies
    }
    return bodies_of_particles(system, r, v_of, second)


def _check_chain(system: ParticleSystem) -> None:
    top, mech, problems = system.top, system.mech, []
    extra = [*top.cut, *top.couplings, *top.drives]
    if extra:
        problems.append(f"{extra} are constraint rows; a serial chain is open")
    for i, (body, name) in enumerate(zip(top.bodies, top.tree, strict=True)):
        kind = type(mech.joint(name))
        if top.parent[i] != i - 1:
            problems.append(f"'{body}' is not carried by the body before it in {list(top.bodies)}")
        if kind not in (Spherical, Revolute) and not (i == 0 and kind is Free):
            problems.append(
                f"joint '{name}' is a {kind.__name__}; give a Spherical or a Revolute"
                + (" or, at the base, a Free" if i == 0 else "")
            )
    if problems:
        raise ValueError(
            "no serial chain of particles: " + "; ".join(problems) + ". For other mechanisms use "
            "particle_accelerations"
        )


def _unknown(
    system: ParticleSystem, r: dict[str, Array], v: dict[str, Array]
) -> dict[str, list[Affine]]:
    """Accelerations of each body's particles 1, 2, 4, 3 as functions of the unknown ones."""
    n, dtype = 3 * system.count, system.mech.dtype
    still = Affine(jnp.zeros((3, n), dtype), jnp.zeros(3, dtype))
    out = {"ground": [still] * 4}
    for body in system.top.bodies:
        own: list[Affine] = []
        if body in system.carried:
            carrier, combine = system.carried[body]
            for row in combine:
                own.append(_combined(row, out[carrier]))
        slots = system.slots[body]
        for k in range(slots.start, slots.stop):
            matrix = jnp.zeros((3, n), dtype).at[:, 3 * k : 3 * k + 3].set(jnp.eye(3, dtype=dtype))
            own.append(Affine(matrix, jnp.zeros(3, dtype)))
        i = invariants(*system.frames[body].points)
        matrices, moving = dependent_acceleration(i, r[body][:3], v[body][:3])
        third = _combined(matrices, own)
        out[body] = [*own, Affine(third.matrix, third.constant + moving)]
    return out


def _momenta(
    system: ParticleSystem,
    r: dict[str, Array],
    acceleration: dict[str, list[Affine]],
    loads: ParticleLoads,
) -> tuple[list[Array], list[Array]]:
    """Rows of (20) and, for a floating base, (22), accumulated from the tip to the base."""
    mech, rows, right = system.mech, [], []
    eye, zero = jnp.eye(3, dtype=mech.dtype), jnp.zeros(3, mech.dtype)
    linear = angular = Affine(jnp.zeros((3, 3 * system.count), mech.dtype), zero)
    force, moment, at = zero, zero, zero
    for body, name in zip(system.top.bodies[::-1], system.top.tree[::-1], strict=True):
        mass, arms = system.mass_matrix(body), r[body] - r[body][0]
        weights = jnp.sum(mass, axis=1)  # m̄_i (7)
        levers = mass @ arms  # of A_i (8)
        terms = acceleration[body]
        arm = at - r[body][0]  # to move the outer bodies' part to particle 1 of this body
        angular = _combined([eye, skew(arm)], [angular, linear])
        angular = angular.plus(_combined([skew(a) for a in levers], terms))
        linear = linear.plus(_combined(weights, terms))
        moment = moment + cross(arm, force) + loads.moment[body]
        force, at = force + loads.force[body], r[body][0]
        pick = eye
        if isinstance(mech.joint(name), Revolute):
            pick = (r[body][1] - r[body][0])[None] / system.length
        rows.append(pick @ angular.matrix)
        right.append(pick @ (moment - angular.constant))
    if isinstance(mech.joint(system.top.tree[0]), Free):
        rows.append(linear.matrix)
        right.append(force - linear.constant)
    return rows, right


def _combined(factors: Iterable[Array], vectors: list[Affine]) -> Affine:
    """``Σ m_i x_i`` with numbers or matrices (3, 3) m."""
    eye = jnp.eye(3, dtype=vectors[0].constant.dtype)
    full = [m * eye if m.ndim == 0 else m for m in factors]
    terms = list(zip(full, vectors, strict=True))
    matrix = jnp.sum(jnp.stack([m @ x.matrix for m, x in terms]), axis=0)
    return Affine(matrix, jnp.sum(jnp.stack([m @ x.constant for m, x in terms]), axis=0))


def _distances(
    system: ParticleSystem,
    r: dict[str, Array],
    v: dict[str, Array],
    acceleration: dict[str, list[Affine]],
) -> tuple[list[Array], list[Array]]:
    """Rows of (19), (21), ``r_ijᵀ (r̈_i − r̈_j) = −ṙ_ijᵀ ṙ_ij``, for particles 1, 2, 4 of a body."""
    rows, right = [], []
    for body in system.top.bodies:
        for i, j in system.pairs(body):
            x, w = r[body][j] - r[body][i], v[body][j] - v[body][i]
            start, end = acceleration[body][i], acceleration[body][j]
            rows.append((x @ (end.matrix - start.matrix))[None])
            right.append((-(w @ w) - x @ (end.constant - start.constant))[None])
    return rows, right
