"""Velocity assembly: speeds on the constraints, and the step of least change it rests on."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.analysis.known import Known, is_angle, known_rows, known_values, parse_known
from jaxmbd.dynamics.kkt import mechanism_length, row_scale
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.closure import closure_jacobian, closure_velocity
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.spatial.factor import ldlt_rank_revealing, ldlt_solve
from jaxmbd.topology import topology


def least_change(mech: Mechanism, rows: Array, rhs: Array, damping: Any) -> Array:
    """``W Jᵀ (J W Jᵀ + μ 1)⁻¹ rhs``; W measures travel in mechanism lengths."""
    travel = np.array([k == "travel" for k in topology(mech).speed_kinds], bool)
    if rows.shape[0] == 0:
        return jnp.zeros(rows.shape[1], rows.dtype)
    weight = jnp.where(travel, mechanism_length(mech) ** 2, 1.0)
    gram = (rows * weight) @ rows.T
    size = jnp.trace(gram) / gram.shape[0]
    gram = gram + damping * size * jnp.eye(gram.shape[0], dtype=gram.dtype)
    tolerance = float(jnp.finfo(gram.dtype).eps) ** 0.64
    solution = ldlt_solve(*ldlt_rank_revealing(gram, tolerance), rhs[:, None])[:, 0]
    return weight * (rows.T @ solution)


def assemble_velocity(
    mech: Mechanism, q: Array, known_v: Known | None = None, guess: Any = None, *, t: Any = 0.0
) -> Array:
    """Speeds v (nv,) on the constraints, ``J v = b``, of least change from `guess` (zero).

    Args:
        mech: the mechanism.
        q: assembled coordinates (nq,).
        known_v: speeds that are held, with the keys of `assemble` [rad/s, m/s].
        guess: speeds to start from (nv,).
        t: time [s] at which drives are evaluated.

    Returns:
        v (nv,); differentiable in the mechanism, q and the held speeds. NaN inside `jit` where no
        speeds meet all that is asked.

    Raises:
        ValueError: on the host, the held speeds contradict the constraints or each other.
    """
    keys, values = parse_known(mech, known_v, rates=True)
    m = motion_state(mech, q, t=t)
    guess = jnp.zeros(m.top.nv, m.q.dtype) if guess is None else jnp.asarray(guess)
    scale, length = row_scale(m), mechanism_length(mech)
    _, held = known_rows(m, keys, known_values(m, keys), length)
    rows = jnp.concatenate([scale[:, None] * closure_jacobian(m), held])
    wanted = [
        v * (length if is_angle(m.top, key) else 1.0) for key, v in zip(keys, values, strict=True)
    ]
    target = jnp.concatenate(
        [scale * closure_velocity(m), jnp.stack(wanted) if wanted else jnp.zeros(0, m.q.dtype)]
    )
    if rows.shape[0] == 0:
        return guess
    v = guess + least_change(mech, rows, target - rows @ guess, 0.0)
    miss = jnp.abs(rows @ v - target)
    size = jnp.max(jnp.abs(target)) + jnp.max(jnp.abs(rows)) * jnp.max(jnp.abs(v))
    met = miss <= float(jnp.finfo(v.dtype).eps) ** 0.5 * size
    if not isinstance(met, Tracer) and not np.all(np.asarray(met)):
        names = np.array([*m.top.row_names, *map(str, keys)])[~np.asarray(met)]
        raise ValueError(
            f"no speeds meet all that is asked: {', '.join(names)} contradict the others; hold "
            "fewer speeds, or look for a singular position"
        )
    return jnp.asarray(jnp.where(jnp.all(met), v, jnp.nan))
