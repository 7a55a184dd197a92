"""How an equilibrium moves as what is held is moved slowly: small changes of a balance.

About an equilibrium let x be small coordinates, J the rows of loops and held coordinates,
``K = −∂(f + Jᵀ λ)/∂x`` the tangent stiffness, o how far the rows are opened and p what pushes:

    J x = −o ,   K x − Jᵀ Λ = p .

Freedoms that no row holds thus give way as springs and loads have it. The tangent of (x, Λ) solves
the same equations, with ``ȯ + J̇ x`` and ``ṗ − K̇ x + J̇ᵀ Λ``: no factorisation is differentiated.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.balance import (
    Balance,
    Problem,
    Stiffness,
    Tangent,
    balance,
    held_force,
    rows_of,
    stiffness,
)
from jaxmbd.analysis.known import Key
from jaxmbd.analysis.velocity import is_met
from jaxmbd.kinematics import motion_state, speed_units, step_coordinates
from jaxmbd.model import Mechanism
from jaxmbd.numerics import FactoredRows, factor_rows, lu_solve

LEAST_DAMPING = 1e-9
"""Stiffness that is added to all motions, relative to its size, for those that have none."""
_REFINEMENTS = 6


class Response(NamedTuple):
    """The equations at one equilibrium, factored.

    Attributes:
        stiff: K.
        project: P (nv, nv), onto the null space of the rows.
        rows: J (n, nv), with the factors of ``J Jᵀ``.
        factors: of ``P K P`` with what is added.
    """

    stiff: Stiffness
    project: Array
    rows: FactoredRows
    factors: Tangent

    def onto(self, opened: Array) -> Array:
        """The least change (nv,) that satisfies the rows."""
        return -self.rows.solve(opened)

    def along(self, onto: Array, pushed: Array) -> Array:
        """What is added to it within the rows: ``(P K P)⁻¹ P (p − K onto)``.

        It has nothing along motions without stiffness. There the factors have only what was added,
        and rounding would be divided by that. With f the part ``μ s / (k + μ s)`` that was added
        along a motion of stiffness k, n refinements leave the error ``fⁿ``, and ``(μ s A⁻¹)ⁿ`` has
        ``fⁿ`` of the motion, but all of one without stiffness.
        """
        wanted = self.project @ (pushed - self.stiff.k @ onto)
        added = LEAST_DAMPING * self.stiff.size

        x = jnp.zeros_like(wanted)
        for _ in range(_REFINEMENTS):
            x = x + self._solve(wanted - self.project @ (self.stiff.k @ x))
        idle = x
        for _ in range(_REFINEMENTS):
            idle = added * self._solve(idle)
        return x - idle

    def _solve(self, b: Array) -> Array:
        return self.project @ lu_solve(self.factors.lower, self.factors.upper, b)

    def multipliers(self, x: Array, pushed: Array) -> Array:
        """Λ (n,), of least norm."""
        if self.rows.gram is None:
            return jnp.zeros(0, x.dtype)
        rest = self.rows.rows @ (self.stiff.k @ x - pushed)
        return self.rows.gram.solve(rest[:, None])[:, 0]


def response(at: Balance, stiff: Stiffness) -> Response:
    """The equations at a balance, with the stiffness there."""
    return Response(stiff, at.project, factor_rows(at.rows), stiff.factored(LEAST_DAMPING))


class _Fixed(NamedTuple):
    """What is static: rows that are held or moved, and all whose efforts balance the loads."""

    keys: tuple[Key, ...]
    loaded: tuple[Key, ...]


def settled_speeds(
    keys: tuple[Key, ...],
    loaded: tuple[Key, ...],
    mech: Mechanism,
    q: Array,
    rates: Array,
    *,
    t: Any = 0.0,
    inputs: Any = None,
) -> Array:
    """Speeds with which an equilibrium moves as its rows are moved slowly.

    Masses and dampers play no part; motions without stiffness and load have least change. All
    derivatives are exact, as functions of the mechanism and of q along equilibria.

    Args:
        keys: coordinates that are held or moved.
        loaded: coordinates whose efforts balance the loads at q: those of `keys`, and such as are
            let go while their efforts stay as they are.
        mech: the mechanism.
        q: coordinates (nq,) of the equilibrium.
        rates: (k, n) of the rows of loops and `keys`, each in metres (`closing_rows`).
        t: time [s].
        inputs: efforts on joints, ``{joint: value}``.

    Returns:
        (k, nv); NaN where the rows contradict each other.
    """
    fixed, p = _Fixed(keys, loaded), Problem(mech, [], jnp.asarray(t, q.dtype), inputs or {})
    whole = _holding(loaded, p)
    multipliers = balance(loaded, whole, q).multipliers
    at: Balance = balance(keys, _holding(keys, p), q)
    solver = lax.stop_gradient(response(at, stiffness(loaded, whole, q, at, multipliers)))
    units, rows = speed_units(mech), lax.stop_gradient(at.rows)

    def moved(rate: Array) -> Array:
        x, _ = _moved(fixed, p, q, multipliers, solver, -rate, jnp.zeros_like(units))
        met = jnp.all(is_met(rows, lax.stop_gradient(x), rate))
        return jnp.asarray(jnp.where(met, units * x, jnp.nan))

    return lax.map(moved, rates)


def _holding(keys: tuple[Key, ...], p: Problem) -> Problem:
    """The problem with values of the held coordinates; forces and rows do not depend on them."""
    return p._replace(values=[jnp.zeros((), p.t.dtype)] * len(keys))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _moved(
    fixed: _Fixed,
    p: Problem,
    q: Array,
    multipliers: Array,
    solver: Response,
    opened: Array,
    pushed: Array,
) -> tuple[Array, Array]:
    """X (nv,) and Λ (n,); `solver` has the factors at the other arguments."""
    onto = solver.onto(opened)
    x = onto + solver.along(onto, pushed)
    return x, solver.multipliers(x, pushed)


@_moved.defjvp
def _moved_jvp(fixed: _Fixed, primals: Any, tangents: Any) -> Any:
    p, q, multipliers, solver, opened, pushed = primals
    x, lam = found = _moved(fixed, *primals)

    def missed(p: Problem, q: Array, multipliers: Array, o: Array, f: Array) -> Any:
        """``J x + o`` and ``p − K x + Jᵀ Λ``, for fixed x and Λ."""
        _, rows = rows_of(fixed.keys, _holding(fixed.keys, p), motion_state(p.mech, q, t=p.t))
        units = speed_units(p.mech)

        def force(step: Array) -> Array:
            to = step_coordinates(p.mech, q, step * x * units)
            return held_force(fixed.loaded, _holding(fixed.loaded, p), to, multipliers)

        none = jnp.zeros((), q.dtype)
        bent = jax.jvp(force, (none,), (jnp.ones_like(none),))[1]
        return rows @ x + o, f + bent + rows.T @ lam

    at, dot = ((y[0], y[1], y[2], y[4], y[5]) for y in (primals, tangents))
    _, (gap, push) = jax.jvp(missed, at, dot)
    return found, _moved(fixed, p, q, multipliers, solver, gap, push)
