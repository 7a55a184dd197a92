"""Flexibility at rest: displacements of bodies by small loads on them, from one linear solution.

About an equilibrium let x be small coordinates, ``K = −∂(f + Jᵀ λ)/∂x`` the tangent stiffness (the
Hessian of ``V − λᵀ φ`` where the loads have a potential), J the rows of loops and held coordinates,
and B the twists of some bodies per unit of ẋ. Wrenches w on these move them by ``C w``,

    [K  −Jᵀ] [Y]   [Bᵀ]
    [J    0] [Λ] = [0 ] ,   C = B Y .

With ``Y', Λ'`` the same for Kᵀ, the derivative of C with respect to anything needs no further
solution: C is stationary in Y and Λ, so that

    dC = dB Y + (dB Y')ᵀ − Y'ᵀ dK Y + (dJ Y')ᵀ Λ + Λ'ᵀ dJ Y .
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.balance import (
    Balance,
    Problem,
    Stiffness,
    balance,
    held_force,
    problem,
    rows_of,
    stiffness,
)
from jaxmbd.analysis.known import Key, Known
from jaxmbd.graph import topology
from jaxmbd.kinematics import check_shape, motion_state, speed_units, step_coordinates
from jaxmbd.lanes import compiled
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.numerics import ldlt_rank_revealing, ldlt_solve, lu_solve, lu_transpose_solve, product

_DAMPING = 1e-9
_REFINEMENTS = 3

Places = tuple[tuple[str, Any], ...]


def flexibility(
    mech: Mechanism,
    q: Any,
    places: Sequence[tuple[str, Any]],
    *,
    known: Known | None = None,
    t: Any = 0.0,
    inputs: Any = None,
    backend: str = "auto",
) -> Array:
    """The displacements of bodies at rest per unit of small wrenches on them.

    All that is not rigid gives way: springs, bushings, softened joints; loops and held coordinates
    do not. The loads keep their direction. The matrix is symmetric where all loads have a
    potential. Freedoms without stiffness and load, such as a wheel's spin, stay where they are.
    Derivatives with respect to all numbers, forward and reverse, need no further solution.

    Args:
        mech: the mechanism.
        q: coordinates (nq,) of an equilibrium (`equilibrium`), with the same `known`.
        places: n pairs (body, point): the wrenches act, and displacements are, at these points of
            the bodies.
        known: coordinates that are held, with the keys of `equilibrium`.
        t: time [s] at which drives and laws are evaluated.
        inputs: efforts on joints, ``{joint: value}``.
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Returns:
        C (6 n, 6 n): for each place three rotations [rad] and three displacements [m], per three
        moments [N·m] and three forces [N], all along the world axes.

    Example:
        >>> import jaxmbd as mbd
        >>> scales = mbd.Mechanism(
        ...     bodies={"pan": mbd.Body(mass=2.0)},
        ...     joints={"guide": mbd.Prismatic("ground", "pan", at=(0, 0, 0), axis=(0, 0, 1))},
        ...     forces={"spring": mbd.TorsionSpring("guide", stiffness=500.0)},
        ... )
        >>> q = mbd.equilibrium(scales).q
        >>> round(float(mbd.flexibility(scales, q, [("pan", "guide.at")])[5, 5]), 12)
        0.002
    """
    keys, p = problem(mech, known, t, inputs)
    q = jnp.asarray(q, mech.dtype)
    check_shape("q", q, topology(mech).nq)
    named = tuple((body, _hashable(point)) for body, point in places)
    return _jitted(backend, keys, named, p, q)


def _hashable(point: Any) -> Any:
    return point if isinstance(point, str) else tuple(float(x) for x in point)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _jitted(backend: str, keys: tuple[Key, ...], places: Places, p: Problem, q: Array) -> Array:
    return compiled(backend, partial(_at_rest, keys, places), p, q)


def _at_rest(keys: tuple[Key, ...], places: Places, p: Problem, q: Array) -> Array:
    return _flexibility(keys, places, p, q, balance(keys, p, q).multipliers)


def twist_rows(places: Places, p: Problem, q: Array) -> Array:
    """B (6 n, nv): twists ``[ω; v]`` of the places per unit of ẋ."""
    m = motion_state(p.mech, q, t=p.t)
    rows = []
    for body, point in places:
        at = point if isinstance(point, str) else jnp.asarray(point, q.dtype)
        moves = m.moves(GROUND, body) != 0.0
        columns = m.angular_columns(), m.columns_at(m.position(body, at))
        rows += [jnp.where(moves[:, None], x, 0.0).T for x in columns]
    return jnp.concatenate(rows) * speed_units(p.mech)


class _Solver:
    """Solutions for wrenches, and of the transposed equations."""

    def __init__(self, at: Balance, stiff: Stiffness):
        self.at, self.k, self.factors = at, stiff.k, stiff.factored(_DAMPING)

    def __call__(self, b: Array, *, transposed: bool = False) -> tuple[Array, Array]:
        """Y and Λ (one row for each row of B)."""
        k = self.k.T if transposed else self.k
        project, rows = self.at.project, self.at.rows
        solve = lu_transpose_solve if transposed else lu_solve

        def column(wanted: Array) -> Array:
            x = jnp.zeros_like(wanted)
            for _ in range(_REFINEMENTS):
                rest = project @ (wanted - k @ x)
                x = x + project @ solve(self.factors.lower, self.factors.upper, rest)
            return x

        y = lax.map(column, b)
        if not rows.shape[0]:
            return y, jnp.zeros((len(b), 0), b.dtype)
        factors = ldlt_rank_revealing(rows @ rows.T)

        def multiplier(given: tuple[Array, Array]) -> Array:
            x, wanted = given
            return ldlt_solve(*factors, (rows @ (k @ x - wanted))[:, None])[:, 0]

        return y, lax.map(multiplier, (y, b))


def _solver(keys: tuple[Key, ...], p: Problem, q: Array, multipliers: Array) -> _Solver:
    at: Balance = balance(keys, p, q)
    return _Solver(at, stiffness(keys, p, q, at, multipliers))


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _flexibility(
    keys: tuple[Key, ...], places: Places, p: Problem, q: Array, multipliers: Array
) -> Array:
    b = twist_rows(places, p, q)
    return product(b, _solver(keys, p, q, multipliers)(b)[0].T)


@_flexibility.defjvp
def _flexibility_jvp(
    keys: tuple[Key, ...], places: Places, primals: Any, tangents: Any
) -> tuple[Array, Array]:
    p, q, _ = primals
    b = twist_rows(places, p, q)
    solver = _solver(*(keys, *primals))
    (y, right), (z, left) = solver(b), solver(b, transposed=True)

    def stationary(p: Problem, q: Array, multipliers: Array) -> Array:
        """C, whose derivative is that for fixed Y and Λ."""
        b = twist_rows(places, p, q)
        _, rows = rows_of(keys, p, motion_state(p.mech, q, t=p.t))
        units = speed_units(p.mech)

        def pushed(direction: Array) -> Array:
            """``K y``."""

            def moved(step: Array) -> Array:
                at = step_coordinates(p.mech, q, step * direction * units)
                return -held_force(keys, p, at, multipliers)

            return jax.jvp(moved, (jnp.zeros((), q.dtype),), (jnp.ones((), q.dtype),))[1]

        def column(given: tuple[Array, ...]) -> Array:
            """A column of C, of the wrench that causes y."""
            y, right, row = given
            bent = z @ pushed(y)
            closed = (z @ rows.T) @ right + left @ (rows @ y)
            return b @ y + z @ row - bent + closed

        return lax.map(column, (y, right, b)).T

    value, rate = jax.jvp(stationary, primals, tangents)
    return value, rate
