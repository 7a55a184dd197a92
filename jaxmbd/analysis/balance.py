"""The balance of forces at rest: what `equilibrium` makes zero, and the stiffness about it.

All vectors are in the coordinates x with ``v = U ẋ``, U the mechanism's length for travels and
one for angles, so that efforts are moments [N·m] throughout.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis.known import Key, closing_rows
from jaxmbd.dynamics.bias_forces import Inputs, applied_loads, inertia_efforts, joint_efforts
from jaxmbd.kinematics import motion_state, step_coordinates
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.kinematics.propagation import propagate_accelerations
from jaxmbd.kinematics.scales import mechanism_length, speed_units
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics.jacobian import jacobian
from jaxmbd.numerics.lu import unpivoted_lu
from jaxmbd.numerics.rank_revealing import ldlt_rank_revealing, ldlt_solve, minimum_norm


class Problem(NamedTuple):
    """What an equilibrium depends on: the numbers that its derivatives are taken to."""

    mech: Mechanism
    values: list[Any]
    """of the held coordinates"""
    t: Any
    inputs: Inputs


class Balance(NamedTuple):
    """The balance at one configuration.

    Attributes:
        rows: scaled Jacobian (n, nv) of closure and held coordinates, with respect to x [m].
        residual: their scaled errors (n,) [m].
        multipliers: (n,) [N], of least norm, that leave the least unbalanced force.
        force: ``f + rowsᵀ multipliers`` (nv,) [N·m], what is left.
        project: (nv, nv), onto the directions that the rows allow.
        scale: size of the loads that act [N·m].
    """

    rows: Array
    residual: Array
    multipliers: Array
    force: Array
    project: Array
    scale: Array


def rest_force(m: MotionState, inputs: Inputs) -> tuple[Array, Array]:
    """``τ − h`` at rest (nv,) [N·m, N], and the size of all loads about the mechanism [N·m]."""
    acc = propagate_accelerations(m.mech, m.q, m.pos, m.vel, m.v)
    loads, efforts = applied_loads(m, inputs)
    force = joint_efforts(m, efforts) - inertia_efforts(m, acc, loads)
    length, gravity = mechanism_length(m.mech), m.mech.field()
    pull = jnp.max(jnp.abs(gravity))
    size = sum((m.mech.bodies[b].mass for b in m.top.bodies), jnp.zeros(())) * pull * length
    for load in loads:
        size = size + jnp.sum(jnp.abs(load.force)) * length + jnp.sum(jnp.abs(load.moment))
    units = speed_units(m.mech)
    return force, size + jnp.sum(jnp.abs(joint_efforts(m, efforts)) * units)


def rows_of(keys: tuple[Key, ...], p: Problem, m: MotionState) -> tuple[Array, Array]:
    """Scaled residual (n,) and Jacobian (n, nv) to x of closure and held coordinates [m]."""
    residual, rows = closing_rows(m, keys, p.values)
    return residual, rows * speed_units(p.mech)


def balance(keys: tuple[Key, ...], p: Problem, q: Array) -> Balance:
    """The balance at q; multipliers solve ``rows rowsᵀ λ = −rows f``."""
    m = motion_state(p.mech, q, t=p.t)
    residual, rows = rows_of(keys, p, m)
    force, scale = rest_force(m, p.inputs)
    force = force * speed_units(p.mech)
    eye = jnp.eye(m.top.nv, dtype=q.dtype)
    if rows.shape[0] == 0:
        return Balance(rows, residual, residual, force, eye, scale)
    factors = ldlt_rank_revealing(rows @ rows.T)
    solved = ldlt_solve(*factors, jnp.concatenate([-(rows @ force)[:, None], rows], axis=1))
    multipliers = minimum_norm(factors[0], factors[2], solved[:, 0])
    project = eye - rows.T @ solved[:, 1:]
    # Twice: what rounding left of the rows' directions in the first projection.
    left = project @ (project @ force)
    return Balance(rows, residual, multipliers, left, project, scale)


def held_force(keys: tuple[Key, ...], p: Problem, q: Array, multipliers: Array) -> Array:
    """``f + rowsᵀ multipliers`` (nv,) [N·m] at q, for given multipliers."""
    m = motion_state(p.mech, q, t=p.t)
    force, _ = rest_force(m, p.inputs)
    _, rows = rows_of(keys, p, m)
    return force * speed_units(p.mech) + rows.T @ multipliers


def stiffness(keys: tuple[Key, ...], p: Problem, q: Array, multipliers: Array) -> Array:
    """``K = −∂(f + rowsᵀ λ)/∂x`` (nv, nv) [N·m] with λ fixed.

    At balance it is the Hessian of ``V − λᵀ φ``, symmetric where the loads have a potential V.
    """
    units = speed_units(p.mech)

    def moved(x: Array) -> Array:
        return -held_force(keys, p, step_coordinates(p.mech, q, x * units), multipliers)

    return jacobian(moved, jnp.zeros(units.shape, q.dtype))


class Tangent(NamedTuple):
    """``A = P K P + s (1 − P) + μ s 1``, factored: a step within the rows, and one out of them."""

    lower: Array
    upper: Array
    definite: Array
    """whether every pivot is positive: a stable arrangement, for loads with a potential"""
    soft: Array
    """whether some motion within the rows is held by next to nothing"""


def stiffness_size(k: Array, scale: Array) -> Array:
    """The stiffness [N·m] that A's other parts are measured in, never zero."""
    size = jnp.maximum(jnp.max(jnp.abs(k), initial=0.0), 1e-3 * scale)
    return jax.lax.stop_gradient(jnp.where(size > 0.0, size, 1.0))


def factor_tangent(k: Array, project: Array, size: Array, damping: Any) -> Tangent:
    """Factor A by ``L U`` without pivoting: its pivots are positive where K holds every motion."""
    eye = jnp.eye(k.shape[0], dtype=k.dtype)
    a = project @ k @ project + size * (eye - project) + damping * size * eye
    lower, upper = unpivoted_lu(a)
    pivots = jnp.diagonal(upper)
    soft = jnp.any(pivots < 1e2 * damping * size)
    return Tangent(lower, upper, jnp.all(pivots > 0.0), soft)
