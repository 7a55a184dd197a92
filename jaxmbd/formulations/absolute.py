"""Newton-Euler equations in absolute coordinates: all joints as rows of one dense KKT system.

    [ M  −Jᵀ ] [ṫ]   [ f ]
    [ J   0  ] [λ] = [ γ ]

with, for each body, ``M = diag(R I Rᵀ, m 1)``, ``f = [n − ω × (R I Rᵀ) ω; F + m g]`` about its
COM in world axes, and the rows of `jaxmbd.formulations.constraints` (lecture text (4.6)-(4.8) with
the opposite sign of λ, which gives joint forces directly). Couplings and drives add further rows
(`jaxmbd.formulations.newton_euler`).

`absolute_accelerations` takes a state in absolute coordinates and shares only the description and
the force elements with the engine, so that it is an independent check. `absolute_forward_dynamics`
takes the engine's q and v instead. Both are slow, because all matrices are dense.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.newton_euler import all_rows, body_loads, body_masses, wrench_units
from jaxmbd.formulations.state import State, StateMotion, speed_rows, state_of
from jaxmbd.graph import topology
from jaxmbd.kinematics import joint_coordinates
from jaxmbd.model import Mechanism
from jaxmbd.numerics import AnyArray, tolerances


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
