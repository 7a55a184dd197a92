"""The balance of forces at rest, which `equilibrium` makes zero, and its tangent stiffness.

All vectors are in coordinates x with ``v = U ẋ``, where U is the mechanism's length for travels and
one for angles, so that all efforts are moments [N·m].
"""

from __future__ import annotations

from functools import partial
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
from jaxmbd.numerics.products import product
from jaxmbd.numerics.rank_revealing import ldlt_rank_revealing, ldlt_solve, minimum_norm


class Problem(NamedTuple):
    """What an equilibrium depends on, and is differentiated with respect to."""

    mech: Mechanism
    values: list[Any]
    """Values of the held coordinates."""
    t: Any
    inputs: Inputs


class Balance(NamedTuple):
    """The balance at one configuration.

    Attributes:
        rows: scaled Jacobian (n, nv) of closure and held coordinates with respect to x [m].
        residual: scaled errors of these rows (n,) [m].
        multipliers: (n,) [N], the least-squares ones, of least norm.
        force: unbalanced force ``f + rowsᵀ multipliers`` (nv,) [N·m].
        project: (nv, nv), projection onto the null space of the rows.
        scale: size of the applied loads [N·m].
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


@partial(jax.jit, static_argnums=0)
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
    # Projected twice, to remove what rounding left along the rows in the first projection.
    left = project @ (project @ force)
    return Balance(rows, residual, multipliers, left, project, scale)


@partial(jax.jit, static_argnums=0)
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
    """``A = P K P + s (1 − P) + μ s 1``, factored: K on the null space of the rows, s elsewhere."""

    lower: Array
    upper: Array
    definite: Array
    """Whether every pivot is positive: stable, for loads with a potential."""
    soft: Array
    """Whether some motion that the rows allow has next to no stiffness."""


def stiffness_size(k: Array, scale: Array) -> Array:
    """The stiffness s [N·m] that scales the other terms of A, never zero."""
    size = jnp.maximum(jnp.max(jnp.abs(k), initial=0.0), 1e-3 * scale)
    return jax.lax.stop_gradient(jnp.where(size > 0.0, size, 1.0))


def projected(k: Array, at: Balance) -> Array:
    """``P K P``."""
    if not at.rows.shape[0]:
        return k
    return product(product(at.project, k), at.project)


def factor_tangent(inner: Array, at: Balance, size: Array, damping: Any) -> Tangent:
    """Factor A by ``L U`` without pivoting: all pivots are positive if every motion is stiff.

    Args:
        inner: ``P K P``.
        at: with P.
        size: s.
        damping: μ.
    """
    eye = jnp.eye(inner.shape[0], dtype=inner.dtype)
    a = inner + size * (eye - at.project) + damping * size * eye
    lower, upper = unpivoted_lu(a)
    pivots = jnp.diagonal(upper)
    soft = jnp.any(pivots < 1e2 * damping * size)
    return Tangent(lower, upper, jnp.all(pivots > 0.0), soft)
