"""Adaptive integration by diffrax between two times."""

from __future__ import annotations

from typing import Any

import diffrax
import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis.integrators import Acceleration, normalise
from jaxmbd.kinematics import coordinate_rates
from jaxmbd.model.mechanism import Mechanism


def adaptive_interval(
    mech: Mechanism,
    solver: Any,
    acceleration: Acceleration,
    t: Array,
    q: Array,
    v: Array,
    h: float,
) -> tuple[Array, Array]:
    """State at t + h by `solver` with its own steps; tolerances follow the number type.

    In double precision rtol is 1e-10 and atol 1e-12. A step that fails gives NaN.
    """

    def rates(s: Any, y: tuple[Array, Array], _: Any) -> tuple[Array, Array]:
        return coordinate_rates(mech, y[0], y[1]), acceleration(s, y[0], y[1])

    eps = float(jnp.finfo(q.dtype).eps)
    controller = diffrax.PIDController(rtol=eps**0.64, atol=eps**0.77)
    result = diffrax.diffeqsolve(
        diffrax.ODETerm(rates),
        solver,
        t,
        t + h,
        None,
        (q, v),
        stepsize_controller=controller,
        max_steps=4096,
        throw=False,
    )
    ok = result.result == diffrax.RESULTS.successful
    assert result.ys is not None
    q, v = (jnp.asarray(jnp.where(ok, y[-1], jnp.nan)) for y in result.ys)
    return normalise(mech, q, v), v
