"""Projection of a state onto the constraints."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.dynamics import Embedding, kkt_system, solve_kkt
from jaxmbd.kinematics import (
    closure_jacobian,
    closure_residual,
    closure_velocity,
    mechanism_length,
    motion_state,
    placed_numbers,
    row_scale,
    step_coordinates,
)
from jaxmbd.model import Mechanism
from jaxmbd.numerics import dense, solution, tolerances


def project(
    mech: Mechanism, q: Array, v: Array, t: Any = 0.0, *, embedding: Embedding | None = None
) -> tuple[Array, Array]:
    """The nearest state on the constraints, in the metric of the mass matrix.

    Two Newton passes, each ``M δ = Jᵀ λ, J δ = −φ`` for q and ``M (v' − v) = Jᵀ λ, J v' = b`` for
    v: errors after an integration step are small and converge quadratically, so that only rounding
    is left after the second pass.

    Errors of the size of rounding are not corrected: at a distance δ from a singular position,
    correcting them would move q by rounding/δ and v by rounding/δ², which the next step would
    amplify again (a four-bar would jump where its links pass their common line).

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        v: speeds (nv,).
        t: time [s].
        embedding: how loops are embedded, if they are (`jaxmbd.dynamics.loop_embedding`).

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> q, v = mbd.project(m, mbd.neutral(m) + 1e-6, jnp.zeros(5))
        >>> bool(abs(mbd.constraint_residual(m, q)).max() < 1e-12)
        True
    """

    def correct(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        q, v = state
        m = motion_state(mech, q, v, t)
        jacobian, phi = closure_jacobian(m), closure_residual(m)
        slip = closure_velocity(m) - jacobian @ v
        noise, system, rows = tolerances.rounding(v.dtype, 8), kkt_system(m), jacobian
        if embedding is not None:  # a row of each loop tells the size of all
            rows = dense(system.jacobian)[np.array([used[0] for used, _ in embedding.loops])]
        largest = jnp.max(jnp.abs(rows), initial=0.0)
        errors = jnp.stack(
            [
                but_rounding(-phi, noise * mechanism_length(mech)),
                but_rounding(slip, noise * largest * jnp.sum(jnp.abs(v))),
            ],
            axis=1,
        )
        no_force = jnp.zeros((v.shape[0], 2), v.dtype)
        options = {"test": False, "metric": True, "embedding": embedding}
        change, _ = solve_kkt(system, no_force, errors, **options)
        # The last pass corrects rounding, so its residual is compared with the size of the state.
        miss = row_scale(m)[:, None] * (jacobian @ change - errors)
        flat = solution(change.reshape(-1), miss, [q, v, change], placed_numbers(mech))
        change = flat.reshape(change.shape)
        return step_coordinates(mech, q, change[:, 0]), v + change[:, 1]

    return lax.fori_loop(0, 2, correct, (jnp.asarray(q), jnp.asarray(v)))


def but_rounding(errors: Array, noise: Array) -> Array:
    """Errors with those below `noise` set to zero; their derivatives are kept."""
    return errors - lax.stop_gradient(jnp.where(jnp.abs(errors) <= noise, errors, 0.0))
