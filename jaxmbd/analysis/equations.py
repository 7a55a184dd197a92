"""The equations that a run integrates: accelerations under inputs, and what keeps constraints."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis.known import AnyInputs, efforts_at
from jaxmbd.analysis.methods import Equations
from jaxmbd.analysis.projection import project
from jaxmbd.dynamics import Embedding, applied_efforts, forward_slopes, rubbing_joints, solve_motion
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    MotionState,
    closure_jacobian,
    closure_residual,
    closure_velocity,
    motion_state,
)
from jaxmbd.model import Mechanism

PROJECTED = ("project", "stages")
"""Values of `constraints=` by which states after a step are projected."""


def equations_of(
    mech: Mechanism,
    inputs: AnyInputs,
    constraints: str = "project",
    rate: Any = 0.0,
    held: dict[str, Array] | None = None,
    embedding: Embedding | None = None,
    **watched: Any,
) -> Equations:
    """The equations of a mechanism.

    Args:
        mech: the mechanism.
        inputs: efforts on joints, as of `parse_inputs`.
        constraints: "project", "stages", "baumgarte" or "none", as of `simulate`.
        rate: α of Baumgarte's method [1/s].
        held: switches, where no event changes them.
        embedding: how loops are embedded, if they are.
        **watched: events and corners of `Equations`.
    """

    def pull(m: MotionState) -> Array:
        if constraints != "baumgarte":
            return jnp.zeros(m.top.nc, m.q.dtype)
        slip = closure_jacobian(m) @ m.v - closure_velocity(m)
        return -2.0 * rate * slip - rate**2 * closure_residual(m)

    def acceleration(t: Array, q: Array, v: Array, switches: Any = held) -> Array:
        m, efforts = motion_state(mech, q, v, t), efforts_at(inputs, t, q, v, switches)
        force, rhs = applied_efforts(m, efforts)
        return solve_motion(m, force, rhs + pull(m), efforts, embedding)[0]

    def applied(t: Array, q: Array, v: Array, switches: Any = held) -> Array:
        m, inputs_now = motion_state(mech, q, v, t), efforts_at(inputs, t, q, v, switches)
        force, rhs = applied_efforts(m, inputs_now)
        if not rubbing_joints(mech):
            return force
        vdot, lam, system = solve_motion(m, force, rhs, inputs_now)
        return system.mass @ vdot - closure_jacobian(m).T @ lam

    def slopes(t: Array, q: Array, v: Array, switches: Any = held) -> tuple[Array, Array, Array]:
        by = partial(efforts_at, inputs, switches=switches)
        return forward_slopes(mech, q, v, t, by, pull)

    def projected(q: Array, v: Array, t: Any) -> tuple[Array, Array]:
        held = constraints in PROJECTED and topology(mech).nc
        return project(mech, q, v, t, embedding=embedding) if held else (q, v)

    hooks = {"slopes": slopes, "efforts": applied, "on_constraints": constraints == "stages"}
    return Equations(mech, acceleration, projected, **hooks, **watched)
