"""Accelerations in point coordinates: all conditions as rows of one dense KKT system.

With y the unknown particles and r(y) all of them (linear, except for a dependent particle (12)),

    [ M  −Jᵀ ] [ÿ]   [ f ]      M = Dᵀ 𝓜 D,  D = ∂r/∂y,  f = Dᵀ (F − 𝓜 D' ẏ)
    [ J   0  ] [λ] = [ γ ]

where 𝓜 holds the bodies' particle mass matrices and F the forces distributed on the particles. No
rotation, angle or angular velocity is an unknown: those that force elements read are computed from
the particles. The loads on a body are reduced to the force R and the moment G_1 about its particle
1 of Attia's (2) and (3), which `distribute` distributes to the particles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.absolute import solve_dense
from jaxmbd.formulations.absolute_coordinates import (
    State,
    check_bodies,
    expanded,
    state_of,
    whole_turns,
)
from jaxmbd.formulations.particles.bodies import (
    couple_stiffness,
    distribute,
    spin,
)
from jaxmbd.formulations.particles.system import Forms, ParticleSystem, Positions
from jaxmbd.kinematics import joint_coordinates
from jaxmbd.model import (
    GROUND,
    Armature,
    Drive,
    Effort,
    ForceElement,
    Free,
    Joint,
    JointFriction,
    Mechanism,
    PointDrive,
    Spherical,
    in_space,
)
from jaxmbd.numerics import AnyArray
from jaxmbd.spatial import cross, quaternion_from_matrix


class ParticleMotion:
    """The motion as force elements need it, from positions and velocities of the particles."""

    def __init__(self, system: ParticleSystem, r: Positions, v: Positions, t: Any):
        self.system, self.mech, self.t = system, system.mech, t
        self.r, self.v = r, v
        self._spins = {b: spin(r[b], v[b]) for b in r}

    def drawn(self, at: Any) -> Array:
        """Drawn coordinates (3,) [m] of a point."""
        return self.mech.point(at)

    def declared(self, name: str) -> Joint:
        """A joint with directions as components."""
        return self.mech.joint(name)

    def point(self, body: str, at: Any) -> tuple[Array, Array]:
        """World position [m] and velocity [m/s] of the point of `body` drawn at `at`."""
        c = self.system.of_point(body, self.drawn(at))
        return c @ self.r[body], c @ self.v[body]

    def rotation(self, body: str) -> Array:
        """Rotation (3, 3) of `body` from its drawn orientation: ``Σ d dᵀ_drawn / ℓ²``."""
        frame = self.system.frames[body]
        if frame.edges.shape[0] == 1:
            raise ValueError(f"body '{body}' has two particles and so no orientation; give it 3")
        return (self.r[body][1:] - self.r[body][0]).T @ frame.edges / frame.square

    def angular_velocity(self, body: str) -> Array:
        """Angular velocity [rad/s] of `body`, world axes; a rod's without spin."""
        return self._spins[body]

    def joint(self, name: str) -> tuple[Array, Array]:
        """Coordinates (nq,) and speeds (nv,) of a joint; angles in (-π, π]."""
        q = self.system.coordinates(name, self.r)
        if q is not None:
            rates = jax.jvp(lambda r: self.system.coordinates(name, r), (self.r,), (self.v,))[1]
            return q, rates
        joint, (half_a, half_b) = self.mech.joint(name), self.system.halves[name]
        r_a = self.rotation(joint.a)
        q = quaternion_from_matrix(r_a.T @ self.rotation(joint.b))
        v = r_a.T @ (self._spins[joint.b] - self._spins[joint.a])
        if isinstance(joint, Spherical):
            return q, v
        if not isinstance(joint, Free):
            raise ValueError(f"joint '{name}', a {type(joint).__name__}, has no coordinates")
        xa, _ = self.point(joint.a, half_a.point)
        xb, vb = self.point(joint.b, half_b.point)
        arm = xb - self.r[joint.a][0]
        slip = vb - self.v[joint.a][0] - cross(self._spins[joint.a], arm)
        return jnp.concatenate([q, r_a.T @ (xb - xa)]), jnp.concatenate([v, r_a.T @ slip])


class ParticleLoads:
    """Loads on all bodies: R [N] and G_1 about particle 1 [N·m], and efforts on joints."""

    def __init__(self, motion: ParticleMotion, inputs: Mapping[str, Any]):
        system, self.motion = motion.system, motion
        zero = jnp.zeros(3, system.mech.dtype)
        self.force = dict.fromkeys(system.top.bodies, zero)
        self.moment = dict.fromkeys(system.top.bodies, zero)
        self.efforts: list[tuple[str, Array]] = []
        """Efforts on joints whose coordinates are functions of the particles."""
        self.lost = zero
        """Moments along rods' axes, which move no particle [N·m]."""
        names = [e.name for e in system.mech.structure.joints]
        unknown = [n for n in inputs if n not in names]
        if unknown:
            raise ValueError(f"inputs on {unknown}, which are no joints: {names}")
        for body in system.top.bodies:
            part = system.mech.bodies[body]
            x, _ = motion.point(body, system.mech.com(body))
            weight = jnp.asarray(part.mass) * system.mech.field()
            self.add(body, x, weight, zero)
        for name in system.mech.structure.forces:
            _refuse_reactive(name, system.mech.forces[name])
            for load in system.mech.forces[name].loads(motion):
                if isinstance(load, Effort):
                    self.add_effort(load.joint, load.value)
                else:
                    self.add(load.body, load.point, load.force, load.moment)
        for name, value in inputs.items():
            self.add_effort(name, value)

    def add(self, body: str, x: Array, force: Array, moment: Array) -> None:
        """A force [N] at the world point `x` [m] and a moment [N·m]."""
        if body == GROUND:
            return
        r = self.motion.r[body]
        about = moment + cross(x - r[0], force)
        if r.shape[0] == 2:
            d = r[1] - r[0]
            self.lost = self.lost + jnp.abs(d @ about) / jnp.sqrt(d @ d)
        self.force[body] = self.force[body] + force
        self.moment[body] = self.moment[body] + about

    def add_effort(self, name: str, value: Any) -> None:
        """An effort along the speeds of a joint, a number or (nv,) [N·m or N]."""
        motion = self.motion
        joint = motion.mech.joint(name)
        value = jnp.asarray(value, motion.mech.dtype)
        if value.shape not in ((), (joint.nv,)) or joint.nq == 0:
            raise ValueError(
                f"effort on joint '{name}' has shape {value.shape}; give a number or "
                f"({joint.nv if joint.nq else 0},)"
            )
        value = jnp.broadcast_to(value, (joint.nv,))
        if not isinstance(joint, (Spherical, Free)):
            self.efforts.append((name, value))
            return
        r_a, half = motion.rotation(joint.a), motion.system.halves[name][1]
        x, _ = motion.point(joint.b, half.point)
        moment, force = r_a @ value[:3], jnp.zeros(3, value.dtype)
        if isinstance(joint, Free):
            force = r_a @ value[3:]
        self.add(joint.b, x, force, moment)
        self.add(joint.a, x, -force, -moment)


def _refuse_reactive(name: str, element: ForceElement) -> None:
    if isinstance(element, JointFriction):
        raise ValueError(
            f"friction '{name}' needs the reaction of joint '{element.joint}', which shared "
            "particles do not have: leave it out and give its effort with inputs= (from "
            "jaxmbd.dynamics.friction_efforts)"
        )
    if isinstance(element, Armature):
        raise ValueError(
            f"armature '{name}' is an inertia along coordinates, which particles do not have: "
            "leave it out, or give the body that turns the inertia"
        )


class Conditions(NamedTuple):
    """All conditions on the unknown particles: φ, J, γ, velocity error, and the rows by name."""

    phi: Float[Array, "rows"]
    jacobian: Float[Array, "rows n"]
    gamma: Float[Array, "rows"]
    drift: Float[Array, "rows"]
    parts: dict[str, slice]
    """Joint or drive to its rows; those of the distances come first."""


def conditions(
    system: ParticleSystem, t: Array, y: Float[Array, "n"], rate: Float[Array, "n"]
) -> Conditions:
    """Distances within bodies, joints between them, couplings, drives: ``J ÿ = γ``."""
    mech, parts = system.mech, {}
    drives = [mech.drives[n] for n in system.top.drives]
    values = [d.value(t) for d in drives]

    def all_rows(x: Array) -> Array:
        r = system.positions(x.reshape(-1, 3))
        rows = [("", system.distance_rows(b, r)) for b in system.top.bodies]
        rows += [(name, system.joint_rows(name, r)) for name in system.halves]
        for name in system.top.couplings:
            coupling = mech.coupling(name)
            q = jnp.stack([_coordinates(system, joint, r)[k] for joint, k in coupling.terms])
            rows.append((name, coupling.condition(q)[None]))
        rows += [(n, _driven(system, d, r)[None]) for n, d in _drives(system)]
        at = 0
        for name, row in rows:
            if name and len(row):
                parts[name] = slice(at, at + len(row))
            at += len(row)
        return jnp.concatenate([jnp.zeros(0, x.dtype), *(row for _, row in rows)])

    phi, jacobian, second = expanded(all_rows, y, rate)
    before = jnp.zeros(phi.shape[0] - len(drives), phi.dtype)
    wanted = [jnp.concatenate([before, *(x[k][None] for x in values)]) for k in range(3)]
    error = phi - wanted[0]
    for name, drive in _drives(system):
        if isinstance(drive, Drive) and mech.joints[drive.joint].speeds[drive.index] == "angle":
            at = parts[name].start  # the angle is known up to full turns
            error = error.at[at].add(-whole_turns(error[at]))
    return Conditions(error, jacobian, wanted[2] - second, jacobian @ rate - wanted[1], parts)


def _drives(system: ParticleSystem) -> list[tuple[str, Drive | PointDrive]]:
    """Drives by name, in the order of their rows."""
    return [(n, system.mech.drives[n]) for n in system.top.drives]


def _driven(system: ParticleSystem, drive: Drive | PointDrive, r: Positions) -> Float[Array, ""]:
    """The coordinate of a joint or of a point that a drive prescribes."""
    if isinstance(drive, PointDrive):
        c = system.of_point(drive.body, system.mech.point(drive.at))
        return (c @ r[drive.body])[drive.component]
    return _coordinates(system, drive.joint, r)[drive.index]


def _coordinates(system: ParticleSystem, name: str, r: Positions) -> Array:
    q = system.coordinates(name, r)
    if q is None:
        kind = type(system.mech.joints[name]).__name__
        raise ValueError(f"a drive or an effort on '{name}': a {kind} has no angles or travels")
    return q


def effort_forces(
    system: ParticleSystem, efforts: list[tuple[str, Array]], y: Float[Array, "n"]
) -> Float[Array, "n"]:
    """``(∂q/∂y)ᵀ τ``: forces with the power of the efforts."""

    def power(x: Array) -> Array:
        r = system.positions(x.reshape(-1, 3))
        terms = [jnp.zeros((), x.dtype)]
        terms += [_coordinates(system, name, r) @ value for name, value in efforts]
        return jnp.sum(jnp.stack(terms))

    return jax.grad(power)(y) if efforts else jnp.zeros_like(y)


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

    (_, spread, slip) = expanded(
        lambda x: system.stack(system.positions(x.reshape(-1, 3))).reshape(-1), y, rate
    )
    matrices = [system.mass_matrix(b) for b in system.top.bodies]
    mass = jnp.kron(jax.scipy.linalg.block_diag(*matrices), jnp.eye(3, dtype=y.dtype))
    applied = jnp.concatenate(
        [distribute(r[b], loads.force[b], loads.moment[b]) for b in system.top.bodies]
    )
    force = spread.T @ (applied.reshape(-1) - mass @ slip) + effort_forces(system, loads.efforts, y)
    rows = conditions(system, t, y, rate)
    acceleration, lam, rank, imbalance = solve_dense(
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


def particles_of_state(system: ParticleSystem, state: State) -> tuple[Positions, Positions]:
    """Positions [m] and velocities [m/s] of all particles from the bodies' poses and twists."""
    check_bodies(system.mech, state)
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
