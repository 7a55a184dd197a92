"""Joint friction and the reactions that cause it, solved together.

With f the friction efforts of all joints with friction, accelerations and reactions w are affine
in f: at given velocities ``v̇ = v̇₀ + R f``, ``λ = λ₀ + L f``, ``w = w₀ + G f``, from one
factorisation with one more right-hand side per effort (but for w where gears are pushed apart by
``|F| tan α``, which friction may turn round). The friction laws (`JointFriction`) give
``f = Φ(w)``, and a fixed number of Newton iterations on ``f − Φ(w₀ + G f) = 0`` converges to
rounding: Φ is smooth except where a load vanishes. For small coefficients of friction,
``|Φ' G| < 1``, the solution exists and is unique. If the iteration does not converge (a joint that
jams by its own friction), f is NaN, and so is the motion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.dynamics.bias_forces import Inputs, joint_efforts
from jaxmbd.dynamics.kkt import System, kkt_system, least_norm, solve_kkt
from jaxmbd.dynamics.loop_embedding import Embedding
from jaxmbd.dynamics.reactions import (
    constraint_wrenches,
    reactions_and_friction,
    rubbing_efforts,
)
from jaxmbd.kinematics import MotionState, motion_state
from jaxmbd.model import Mechanism, RubbingElement
from jaxmbd.numerics import lu_solve, tolerances, unpivoted_lu

_PASSES = 6


def rubbing_joints(mech: Mechanism) -> tuple[str, ...]:
    """Names of the joints with friction, each once."""
    elements = (mech.forces[n] for n in mech.structure.forces)
    return tuple(dict.fromkeys(e.joint for e in elements if isinstance(e, RubbingElement)))


def rubbing_columns(m: MotionState) -> Array:
    """(nv, nf): generalised forces of unit efforts on the joints with friction."""
    columns = [jnp.zeros((m.top.nv, 0), m.q.dtype)]
    for name in rubbing_joints(m.mech):
        for unit in np.eye(m.mech.joint(name).nv):
            effort = {name: jnp.asarray(unit, m.q.dtype)}
            columns.append(joint_efforts(m, effort)[:, None])
    return jnp.concatenate(columns, axis=1)


def solve_motion(
    m: MotionState,
    force: Array,
    rhs: Array,
    inputs: Inputs | None,
    embedding: Embedding | None = None,
) -> tuple[Array, Array, System]:
    """v̇ (nv,), λ (nc,) and the KKT matrices: `force` is ``τ − h`` without dry friction, `rhs` γ.

    With an embedding λ is zero in the rows that it does not use. Where joints rub, reactions matter
    and it is not used.
    """
    system = kkt_system(m)
    if not rubbing_joints(m.mech):
        vdot, lam = solve_kkt(system, force[:, None], rhs[:, None], embedding=embedding)
        return vdot[:, 0], lam[:, 0], system
    columns = rubbing_columns(m)
    forces = jnp.concatenate([force[:, None], columns], axis=1)
    rights = jnp.concatenate([rhs[:, None], jnp.zeros((rhs.shape[0], columns.shape[1]))], axis=1)
    vdot, lam = solve_kkt(system, forces, rights.astype(forces.dtype))
    lam = jnp.stack([least_norm(system, x, m.top.row_groups) for x in lam.T], axis=1)
    f = balanced_friction(m, inputs, vdot, lam)
    return vdot[:, 0] + vdot[:, 1:] @ f, lam[:, 0] + lam[:, 1:] @ f, system


def less_friction(
    m: MotionState,
    vdot: Array,
    inputs: Inputs | None,
    required: Array,
    carried: Callable[[Array], Array],
) -> Array:
    """The forces `required` (nv,) for a given motion, minus those of dry friction.

    Args:
        m: the state.
        vdot: accelerations (nv,).
        inputs: efforts on joints.
        required: ``M v̇ + h − inputs`` (nv,).
        carried: linear function from a required force (nv,) to its multipliers λ (nc,).
    """
    if not rubbing_joints(m.mech):
        return required
    columns = rubbing_columns(m)
    lam = jnp.stack([carried(required), *(-carried(c) for c in columns.T)], axis=1)
    motion = jnp.concatenate([vdot[:, None], jnp.zeros_like(columns)], axis=1)
    return required - columns @ balanced_friction(m, inputs, motion, lam)


def balanced_friction(m: MotionState, inputs: Inputs | None, vdot: Array, lam: Array) -> Array:
    """The friction efforts f (nf,) that are consistent with the reactions they cause.

    Args:
        m: the state.
        inputs: efforts on joints.
        vdot: (nv, 1 + nf), v̇ without friction, and its change by each unit effort.
        lam: (nc, 1 + nf), the same for λ.
    """
    names = rubbing_joints(m.mech)
    split = np.cumsum([0, *(m.mech.joint(n).nv for n in names)])

    def wrenches(f: Array) -> Array:
        rubbing = {n: f[split[i] : split[i + 1]] for i, n in enumerate(names)}
        a = vdot[:, 0] + vdot[:, 1:] @ f
        acc = m.accelerations(a)
        found = constraint_wrenches(m, acc, lam[:, 0] + lam[:, 1:] @ f, inputs, rubbing)
        return jnp.stack([found[n] for n in names])

    n = int(split[-1])
    base, along = jax.linearize(wrenches, jnp.zeros(n, m.q.dtype))
    response = jnp.stack([along(jnp.asarray(e, m.q.dtype)) for e in np.eye(n)], axis=-1)

    affine = all(m.mech.coupling(name).couples_alone for name in m.top.couplings)

    def gap(f: Array) -> Array:
        felt = base + response @ f if affine else wrenches(f)
        efforts = rubbing_efforts(m, {name: felt[i] for i, name in enumerate(names)})
        return f - jnp.concatenate([efforts[name] for name in names])

    def newton(_: Any, f: Array) -> Array:
        # Without pivoting: the matrix is close to the identity where f is unique.
        return f - lu_solve(*unpivoted_lu(jax.jacfwd(gap)(f)), gap(f))

    f = lax.fori_loop(0, _PASSES, newton, jnp.zeros(n, m.q.dtype))
    close = tolerances.agreement(f.dtype) * jnp.max(jnp.abs(f))
    return jnp.asarray(jnp.where(jnp.max(jnp.abs(gap(f))) <= close, f, jnp.nan))


def friction_efforts(
    mech: Mechanism,
    q: Array,
    v: Array,
    vdot: Array,
    lam: Array,
    t: Any = 0.0,
    inputs: Inputs | None = None,
) -> dict[str, Array]:
    """Friction efforts (nv,) of joints with friction, along their speeds, dry and viscous [N·m, N].

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        v: speeds (nv,).
        vdot: accelerations (nv,), as from `forward_dynamics`.
        lam: multipliers (nc,), as from `forward_dynamics`.
        t: time [s].
        inputs: efforts on joints by name.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> m = m.replace(forces={"rub": mbd.JointFriction("hinge", 0.1, radius=0.01)})
        >>> q, v = mbd.neutral(m) + jnp.pi / 2, jnp.ones(1)
        >>> vdot, lam = mbd.forward_dynamics(m, q, v)
        >>> round(float(mbd.friction_efforts(m, q, v, vdot, lam)["hinge"][0]), 5)
        -0.01081
    """
    m = motion_state(mech, q, v, t)
    acc = m.accelerations(jnp.asarray(vdot, m.q.dtype))
    out = reactions_and_friction(m, acc, jnp.asarray(lam, m.q.dtype), inputs)[1]
    for name in mech.structure.forces:
        element = mech.forces[name]
        if isinstance(element, RubbingElement):
            effort = element.viscous_effort(m.joint(element.joint)[1])
            out[element.joint] = out[element.joint] + effort
    return out
