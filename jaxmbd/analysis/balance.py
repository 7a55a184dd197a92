"""The balance of forces at rest, which `equilibrium` makes zero, and its tangent stiffness.

All vectors are in coordinates x with ``v = U ẋ``, where U is the mechanism's length for travels and
one for angles, so that all efforts are moments [N·m].

Multipliers at rest come from balance alone: no inertia counts, and no mass matrix is formed.
Drives hold what they drive. What else is free is held too, so that the balance exists:

- a coordinate that no loop and no drive depends on (a wheel's spin) by an effort along it;
- the spin of a link between two balls by a moment about their line, as friction in the balls would.

Each of these efforts follows from the balance of its own freedom. A link whose spin asks for more
than a hundredth of the loads is under load, not idle, and so is any other freedom that nothing
holds: nothing balances then, and the multipliers are NaN.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis.driven import SpinLine, spin_lines, spin_rows
from jaxmbd.analysis.known import Key, Known, closing_rows, parse_known
from jaxmbd.dynamics import (
    Inputs,
    applied_loads,
    inertia_efforts,
    joint_efforts,
    required_efforts,
    share_efforts,
)
from jaxmbd.kinematics import (
    MotionState,
    digit_doubt,
    mechanism_length,
    motion_state,
    propagate_accelerations,
    speed_units,
    step_coordinates,
)
from jaxmbd.model import GROUND, Mechanism, Torque
from jaxmbd.numerics import (
    jacobian,
    ldlt_rank_revealing,
    ldlt_solve,
    minimum_norm,
    product,
    tolerances,
    unpivoted_lu,
)

_IDLE = 1e-2
"""Largest moment that holds the spin of a link, over the loads times the mechanism's length."""


def balance_at_rest(m: MotionState, inputs: Inputs | None) -> tuple[MotionState, Array]:
    """The state with the moments that hold idle spins as loads, and the multipliers λ (nc,).

    λ is of least norm where rows are redundant, and NaN if a load acts along a freedom that nothing
    holds.

    Args:
        m: the state, at rest; held coordinates are drives of its mechanism.
        inputs: efforts on joints.
    """
    still = jnp.zeros_like(m.v)
    if m.top.nc == 0:
        return m, jnp.zeros(0, m.q.dtype)
    acc = propagate_accelerations(m.mech, m.q, m.pos, m.vel, m.v, still)
    required, size = required_efforts(m, acc, inputs)
    bound = np.isin(np.arange(m.top.nv), [i for row in m.top.row_speeds for i in row])
    lines = spin_lines(m)
    spins = jnp.where(bound, spin_rows(m, lines) / mechanism_length(m.mech), 0.0)
    needed = jnp.asarray(jnp.where(bound, required, 0.0))
    shared = share_efforts(m, spins.T, needed, size, still, inputs)
    idle = jnp.all(jnp.abs(shared.effort) <= _IDLE * size)
    lam = jnp.asarray(jnp.where(idle, shared.lam, jnp.nan))
    if not lines:
        return m, lam
    held = _with_moments(m, lines, shared.effort)
    return motion_state(held, m.q, m.v, m.t), lam


def _with_moments(m: MotionState, lines: list[SpinLine], moments: Array) -> Mechanism:
    """The mechanism with moments (n,) [N·m] about the lines on their bodies."""
    forces = {}
    for line, moment in zip(lines, moments, strict=True):
        body = m.top.bodies[line.body]
        name = f"hold {body}"
        while name in m.mech.forces:
            name += "'"
        forces[name] = Torque(GROUND, body, moment * line.direction)
    return m.mech.replace(forces=forces, cut=m.top.cut)


class Problem(NamedTuple):
    """What an equilibrium depends on, and is differentiated with respect to."""

    mech: Mechanism
    values: list[Any]
    """Values of the held coordinates."""
    t: Any
    inputs: Inputs


def problem(
    mech: Mechanism, known: Known | None, t: Any, inputs: Any
) -> tuple[tuple[Key, ...], Problem]:
    """The held coordinates, and the problem with arrays for all numbers.

    Args:
        mech: the mechanism.
        known: held coordinates, with the keys of `assemble`.
        t: time [s].
        inputs: efforts on joints, ``{joint: value}`` or a function of t that returns it.

    Raises:
        ValueError: `known` names an unknown part.
    """
    keys, values = parse_known(mech, known)
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    t = jnp.asarray(t, mech.dtype)
    given: Any = inputs(t) if callable(inputs) else inputs or {}
    efforts = {name: jnp.asarray(x, mech.dtype) for name, x in given.items()}
    return keys, Problem(mech, values, t, efforts)


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
    none = jnp.zeros((), m.q.dtype)
    size = sum((m.mech.bodies[b].mass for b in m.top.bodies), none) * pull * length
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
    # Rows that are nearer to redundant could balance any load, by forces without end.
    doubt, least = digit_doubt(m), jnp.asarray(tolerances.carrying(q.dtype), q.dtype)
    error = least if doubt.error is None else jnp.maximum(doubt.error, least)
    factors = ldlt_rank_revealing(rows @ rows.T, doubt=doubt._replace(error=error))
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


class Tangent(NamedTuple):
    """``A = P K P + s (1 − P) + μ s 1``, factored: K on the null space of the rows, s elsewhere."""

    lower: Array
    upper: Array
    definite: Array
    """Whether every pivot is positive: stable, for loads with a potential."""
    soft: Array
    """Whether some motion that the rows allow has next to no stiffness."""


class Stiffness(NamedTuple):
    """The tangent stiffness at a balance.

    Attributes:
        k: K (nv, nv) [N·m].
        size: s [N·m], which scales the other terms of A, never zero.
        inner: ``P K P``.
        outer: ``1 − P``.
    """

    k: Array
    size: Array
    inner: Array
    outer: Array

    def factored(self, damping: Any) -> Tangent:
        """A for a damping μ, by ``L U`` without pivoting: stable if all pivots are positive."""
        eye = jnp.eye(self.k.shape[0], dtype=self.k.dtype)
        a = self.inner + self.size * self.outer + damping * self.size * eye
        lower, upper = unpivoted_lu(a)
        pivots = jnp.diagonal(upper)
        soft = jnp.any(pivots < 1e2 * damping * self.size)
        return Tangent(lower, upper, jnp.all(pivots > 0.0), soft)


def stiffness(
    keys: tuple[Key, ...], p: Problem, q: Array, at: Balance, multipliers: Array
) -> Stiffness:
    """``K = −∂(f + rowsᵀ λ)/∂x`` with λ fixed.

    At balance it is the Hessian of ``V − λᵀ φ``, symmetric where the loads have a potential V.
    """
    units = speed_units(p.mech)

    def moved(x: Array) -> Array:
        return -held_force(keys, p, step_coordinates(p.mech, q, x * units), multipliers)

    k = jacobian(moved, jnp.zeros(units.shape, q.dtype))
    size = jnp.maximum(jnp.max(jnp.abs(k), initial=0.0), 1e-3 * at.scale)
    size = jax.lax.stop_gradient(jnp.where(size > 0.0, size, 1.0))
    inner = product(product(at.project, k), at.project) if at.rows.shape[0] else k
    return Stiffness(k, size, inner, jnp.eye(len(units), dtype=k.dtype) - at.project)
