"""Accelerations in point coordinates: all conditions as rows of one dense KKT system.

With y the unknown particles and r(y) all of them (linear, except for a dependent particle (12)),

    [ M  −Jᵀ ] [ÿ]   [ f ]      M = Dᵀ 𝓜 D,  D = ∂r/∂y,  f = Dᵀ (F − 𝓜 D' ẏ)
    [ J   0  ] [λ] = [ γ ]

where 𝓜 holds the bodies' particle mass matrices and F the forces distributed on the particles. No
rotation, angle or angular velocity is an unknown.

The KKT system of point coordinates, with redundant conditions or missing masses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.particles.geometry import couple_stiffness, distribute, spin
from jaxmbd.formulations.particles.masses import equivalent_particles
from jaxmbd.formulations.particles.motion import ParticleLoads, ParticleMotion
from jaxmbd.formulations.particles.rows import conditions, effort_forces, linearised
from jaxmbd.formulations.particles.system import Forms, ParticleSystem, Positions
from jaxmbd.kinematics import body_velocities, joint_coordinates, poses
from jaxmbd.model import GROUND, Mechanism, in_space
from jaxmbd.numerics import AnyArray, tolerances
from jaxmbd.spatial import cross


def solve_conditions(
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


State = Mapping[str, tuple[Any, Any, Any, Any]]
"""Body to (rotation from the drawn orientation (3, 3), COM (3,) [m], ω (3,) [rad/s], velocity of
the COM (3,) [m/s]), world axes."""


class ParticleSolution(NamedTuple):
    """Accelerations of a mechanism at an instant in point coordinates, world axes.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> from jaxmbd.formulations import particle_accelerations
        >>> m = mbd.zoo.simple_pendulum()
        >>> solution = particle_accelerations(m, mbd.neutral(m), jnp.zeros(1))
        >>> int(solution.rank)  # two free particles, six coordinates, one DOF
        5
    """

    accelerations: dict[str, Float[Array, "6"]]
    """Body to [angular; linear of the COM] [rad/s², m/s²]; a rod's angular part without spin."""
    particles: dict[str, Float[Array, "n 3"]]
    """Body to accelerations of its particles [m/s²]."""
    multipliers: dict[str, Float[Array, "rows"]]
    """Joint or drive to λ [N], what a exerts on b along its conditions; a drive's is its effort.
    Joints whose particles are shared have none."""
    rank: Array
    """Number of independent conditions: 3 · particles − rank is the number of DOF."""
    residual: Array
    """Largest position error of a particle or a condition [m]."""
    velocity_residual: Array
    """Largest velocity error of a condition [m/s]; of a drive [rad/s or m/s]."""
    imbalance: Array
    """Largest error of the equations over the mechanism's largest mass [m/s²]; not zero if a load
    acts along a motion that has neither inertia nor a condition."""


def particle_accelerations(
    mech: Mechanism,
    q: AnyArray,
    v: AnyArray,
    t: Any = 0.0,
    inputs: Mapping[str, Any] | None = None,
    *,
    forms: Forms = 4,
) -> ParticleSolution:
    """Accelerations in point coordinates (Attia): every body as equivalent particles.

    Args:
        mech: the mechanism; its coordinates and speeds only determine the particles' state.
        q: coordinates (nq,), on the constraints.
        v: speeds (nv,), on the constraints.
        t: time [s].
        inputs: efforts on joints by name, a number or (nv,) each [N·m or N].
        forms: primary particles of every body, or of bodies by name: 4; 3, the fourth following
            from them; 2 for a rod that meets others in balls and rods on its axis.

    Raises:
        ValueError: a joint has no conditions on points, or a body does not fit its form.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> from jaxmbd.formulations import particle_accelerations
        >>> m = mbd.Mechanism(
        ...     {"bob": mbd.Body(1.0, (1, 0, 0))},
        ...     {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0))},
        ... )
        >>> solution = particle_accelerations(m, mbd.neutral(m), jnp.zeros(1))
        >>> [round(float(x), 6) + 0.0 for x in solution.accelerations["bob"]]
        [0.0, 9.81, 0.0, 0.0, 0.0, -9.81]
    """
    system = ParticleSystem(in_space(mech), forms, joint_coordinates(mech, jnp.asarray(q)))
    return _accelerations(system, state_of(mech, q, v), t, inputs or {})


def particle_accelerations_of_state(
    mech: Mechanism,
    state: State,
    t: Any = 0.0,
    inputs: Mapping[str, Any] | None = None,
    *,
    forms: Forms = 4,
) -> ParticleSolution:
    """`particle_accelerations` from poses and velocities of the bodies.

    Args:
        mech: the mechanism.
        state: body to (R (3, 3), COM (3,) [m], ω (3,) [rad/s], v of the COM (3,) [m/s]).
        t: time [s].
        inputs: efforts on joints by name, a number or (nv,) each [N·m or N].
        forms: as in `particle_accelerations`.

    Raises:
        ValueError: as `particle_accelerations`, and for a body without a state.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.formulations import particle_accelerations_of_state
        >>> mech = mbd.Mechanism({"ball": mbd.Body(1.0, (0, 0, 0), 0.1)},
        ...                      {"float": mbd.Free("ground", "ball")})
        >>> state = {"ball": (np.eye(3), np.zeros(3), np.ones(3), np.zeros(3))}
        >>> fall = particle_accelerations_of_state(mech, state).accelerations["ball"]
        >>> (np.round(fall, 12) + 0.0).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, -9.81]
    """
    return _accelerations(ParticleSystem(in_space(mech), forms), state, t, inputs or {})


def _accelerations(
    system: ParticleSystem, state: State, t: Any, inputs: Mapping[str, Any]
) -> ParticleSolution:
    given, moving = particles_of_state(system, state)
    y, rate = (system.own(x).reshape(-1) for x in (given, moving))
    t = jnp.asarray(t, system.mech.dtype)
    r, v = jax.jvp(lambda x: system.positions(x.reshape(-1, 3)), (y,), (rate,))
    motion = ParticleMotion(system, r, v, t)
    loads = ParticleLoads(motion, inputs)

    (_, spread, slip) = linearised(
        lambda x: system.stack(system.positions(x.reshape(-1, 3))).reshape(-1), y, rate
    )
    matrices = [particle_matrix(system, b) for b in system.top.bodies]
    mass = jnp.kron(jax.scipy.linalg.block_diag(*matrices), jnp.eye(3, dtype=y.dtype))
    applied = jnp.concatenate(
        [distribute(r[b], loads.force[b], loads.moment[b]) for b in system.top.bodies]
    )
    force = spread.T @ (applied.reshape(-1) - mass @ slip) + effort_forces(system, loads.efforts, y)
    rows = conditions(system, t, y, rate)
    acceleration, lam, rank, imbalance = solve_conditions(
        spread.T @ mass @ spread, force, rows.jacobian, rows.gamma
    )
    second = system.unstack((spread @ acceleration + slip).reshape(-1, 3))
    gap = jnp.abs(system.stack(given) - system.stack(r))
    return ParticleSolution(
        accelerations=bodies_of_particles(system, r, v, second),
        particles={b: second[b] for b in system.top.bodies},
        multipliers={n: lam[part] for n, part in rows.parts.items()},
        rank=rank,
        residual=jnp.maximum(jnp.max(gap), jnp.max(jnp.abs(rows.phi), initial=0.0)),
        velocity_residual=jnp.max(jnp.abs(rows.drift), initial=0.0),
        imbalance=imbalance + jnp.max(loads.lost) / system.length,
    )


def state_of(
    mech: Mechanism, q: AnyArray, v: AnyArray
) -> dict[str, tuple[Array, Array, Array, Array]]:
    """Body to (R, COM, ω, velocity of the COM) from coordinates and speeds."""
    q, v = jnp.asarray(q), jnp.asarray(v)
    place, twist = poses(mech, q), body_velocities(mech, q, v)
    return {
        b: (place[b].rotation, place[b].position, twist[b][:3], twist[b][3:])
        for b in mech.structure.bodies
    }


def particles_of_state(system: ParticleSystem, state: State) -> tuple[Positions, Positions]:
    """Positions [m] and velocities [m/s] of all particles from the bodies' poses and twists."""
    missing = [n for n in system.mech.structure.bodies if n not in state]
    if missing:
        raise ValueError(f"state has no entry for {missing}; give (R, com, omega, v) of each")
    r = {GROUND: system.frames[GROUND].points}
    v = {GROUND: jnp.zeros_like(r[GROUND])}
    for body in system.top.bodies:
        turn, com, omega, speed = (jnp.asarray(x, system.mech.dtype) for x in state[body])
        arms = (system.frames[body].points - system.mech.com(body)) @ turn.T
        r[body], v[body] = com + arms, speed + cross(jnp.broadcast_to(omega, arms.shape), arms)
    return r, v


def bodies_of_particles(
    system: ParticleSystem, r: Positions, v: Positions, a: Positions
) -> dict[str, Float[Array, "6"]]:
    """[ω̇; v̇ of the COM] of every body from its particles' positions, velocities, accelerations."""
    out = {}
    for body in system.top.bodies:
        omega, d = spin(r[body], v[body]), r[body][1:] - r[body][0]
        centripetal = cross(omega, cross(jnp.broadcast_to(omega, d.shape), d))
        turning = a[body][1:] - a[body][0] - centripetal
        alpha = jnp.sum(cross(d, turning), axis=0) / couple_stiffness(d)
        com = system.of_point(body, system.mech.com(body)) @ a[body]
        out[body] = jnp.concatenate([alpha, com])
    return out


def particle_matrix(system: ParticleSystem, body: str) -> Float[Array, "k k"]:
    """The mass matrix of a body's particles, the same along x, y and z [kg]."""
    part, com = system.mech.bodies[body], system.mech.com(body)
    points, inertia = system.frames[body].points, system.mech.inertia(body)
    try:
        return equivalent_particles(points, part.mass, com, inertia).matrix
    except ValueError as error:
        raise ValueError(f"body '{body}': {error}") from None
