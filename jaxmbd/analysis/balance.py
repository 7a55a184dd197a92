"""Balance of forces at rest, its tangent stiffness, and small changes of an equilibrium.

All vectors are in coordinates x with ``v = U ẋ``, where U is the mechanism's length for travels and
one for angles, so that all efforts are moments [N·m].

Multipliers at rest come from balance alone: no inertia counts, and no mass matrix is formed.
Drives hold what they drive. What else is free is held too, so that the balance exists:

- a coordinate that no loop and no drive depends on (a wheel's spin) by an effort along it;
- the spin of a link between two balls by a moment about their line, as friction in the balls would.

Each of these efforts follows from the balance of its own freedom. A link whose spin asks for more
than a hundredth of the loads is under load, not idle, and so is any other freedom that nothing
holds: nothing balances then, and the multipliers are NaN.

About an equilibrium let x be small coordinates, J the rows of loops and held coordinates,
``K = −∂(f + Jᵀ λ)/∂x`` the tangent stiffness (the Hessian of ``V − λᵀ φ`` where the loads have a
potential V), o how far the rows are opened and p what pushes:

    J x = −o ,   K x − Jᵀ Λ = p .

Freedoms that no row holds thus give way as springs and loads have it. The tangent of (x, Λ) solves
the same equations, with ``ȯ + J̇ x`` and ``ṗ − K̇ x + J̇ᵀ Λ``: no factorisation is differentiated.

With B the twists of some bodies per unit of ẋ, wrenches w on these (``p = Bᵀ w``) move them by
``C w``, ``C = B Y`` with the solution Y for ``p = Bᵀ``. With ``Y', Λ'`` the same for Kᵀ, the
derivative of C with respect to anything needs no further solution: C is stationary in Y and Λ, so
that

    dC = dB Y + (dB Y')ᵀ − Y'ᵀ dK Y + (dJ Y')ᵀ Λ + Λ'ᵀ dJ Y .
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.driven import SpinLine, spin_lines, spin_rows
from jaxmbd.analysis.known import (
    Key,
    Known,
    Problem,
    closing_rows,
    key_speeds,
    problem,
    single_rows,
)
from jaxmbd.analysis.programs import program
from jaxmbd.analysis.velocity import asked_rows, is_met
from jaxmbd.dynamics import (
    Inputs,
    applied_loads,
    inertia_efforts,
    joint_efforts,
    required_efforts,
    share_efforts,
)
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    MotionState,
    check_shape,
    digit_doubt,
    mechanism_length,
    motion_state,
    speed_units,
    step_coordinates,
)
from jaxmbd.model import GROUND, Mechanism, Torque
from jaxmbd.numerics import (
    FactoredRows,
    SplitRows,
    factor_rows,
    jacobian,
    ldlt_rank_revealing,
    lu_solve,
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
    """
    still = jnp.zeros_like(m.v)
    if m.top.nc == 0:
        return m, jnp.zeros(0, m.q.dtype)
    acc = m.accelerations(still)
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


def holding_efforts(m: MotionState, keys: tuple[Key, ...], inputs: Inputs | None) -> Array:
    """Efforts (nk,) that hold coordinates at rest [N·m or N], as drives on them would have.

    They are the last of the multipliers λ in ``Rᵀ λ = f``, with the rows R of loops and held
    coordinates: all that the balance says of the others is that they exist. NaN where a load acts
    along a freedom that nothing holds. A coordinate that the loops hold too bears all of it.

    Args:
        m: the state at rest.
        keys: the held coordinates, each a single one.
        inputs: efforts on joints.
    """
    asked, units, lines = asked_rows(m, keys), speed_units(m.mech), spin_lines(m)
    required, size = required_efforts(m, m.accelerations(jnp.zeros_like(m.v)), inputs)
    held = [i for key in keys for i in key_speeds(m.top, key)]
    bound = np.isin(np.arange(m.top.nv), [*held, *(i for row in m.top.row_speeds for i in row)])
    needed = jnp.asarray(jnp.where(bound, required, 0.0))
    rows = jnp.concatenate([asked.matrix, jnp.where(bound, spin_rows(m, lines), 0.0)])
    lam = SplitRows(rows, units**2, single_rows(m.top, keys)).balancing(needed)
    efforts, spins = jnp.split(lam[m.top.nc :], [len(keys)])
    left, loads = jnp.abs(units * (needed - rows.T @ lam)), jnp.abs(units * needed)
    size = size + jnp.max(loads, initial=0.0)
    carried = jnp.all(left <= tolerances.carrying(m.q.dtype) * size)
    idle = jnp.all(mechanism_length(m.mech) * jnp.abs(spins) <= _IDLE * size)
    return jnp.asarray(jnp.where(carried & idle, asked.held_scale * efforts, jnp.nan))


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
    acc = m.accelerations()
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


def rows_of(p: Problem, m: MotionState) -> tuple[Array, Array]:
    """Scaled residual (n,) and Jacobian (n, nv) to x of closure and held coordinates [m]."""
    residual, rows = closing_rows(m, p.keys, p.values)
    return residual, rows * speed_units(p.mech)


@jax.jit
def balance(p: Problem, q: Array) -> Balance:
    """The balance at q; multipliers solve ``rows rowsᵀ λ = −rows f``."""
    m = p.state(q)
    residual, rows = rows_of(p, m)
    force, scale = rest_force(m, p.inputs)
    force = force * speed_units(p.mech)
    eye = jnp.eye(m.top.nv, dtype=q.dtype)
    if rows.shape[0] == 0:
        return Balance(rows, residual, residual, force, eye, scale)
    # Rows that are nearer to redundant could balance any load, by forces without end.
    doubt, least = digit_doubt(m), jnp.asarray(tolerances.carrying(q.dtype), q.dtype)
    error = least if doubt.error is None else jnp.maximum(doubt.error, least)
    factors = ldlt_rank_revealing(rows @ rows.T, doubt=doubt._replace(error=error))
    solved = factors.solve(jnp.concatenate([-(rows @ force)[:, None], rows], axis=1))
    multipliers = factors.minimum_norm(solved[:, 0])
    project = eye - rows.T @ solved[:, 1:]
    # Projected twice, to remove what rounding left along the rows in the first projection.
    left = project @ (project @ force)
    return Balance(rows, residual, multipliers, left, project, scale)


@jax.jit
def held_force(p: Problem, q: Array, multipliers: Array) -> Array:
    """``f + rowsᵀ multipliers`` (nv,) [N·m] at q, for given multipliers."""
    m = p.state(q)
    force, _ = rest_force(m, p.inputs)
    _, rows = rows_of(p, m)
    return force * speed_units(p.mech) + rows.T @ multipliers


class Tangent(NamedTuple):
    """``A = P K P + s (1 − P) + μ s 1``, factored: K on the null space of the rows, s elsewhere."""

    lower: Array
    upper: Array
    definite: Array
    """Whether every pivot is positive: stable, for loads with a potential."""
    soft: Array
    """Whether some motion that the rows allow has next to no stiffness."""

    def transposed(self) -> Tangent:
        """The factors of Aᵀ: ``Uᵀ Lᵀ = (Uᵀ D⁻¹) (D Lᵀ)`` with the diagonal D of U."""
        pivots = jnp.diagonal(self.upper)
        lower, upper = (self.upper / pivots[:, None]).T, (self.lower * pivots).T
        return self._replace(lower=lower, upper=upper)


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


def stiffness(p: Problem, q: Array, at: Balance, multipliers: Array) -> Stiffness:
    """``K = −∂(f + rowsᵀ λ)/∂x`` with λ fixed.

    At balance it is the Hessian of ``V − λᵀ φ``, symmetric where the loads have a potential V.
    """
    units = speed_units(p.mech)

    def moved(x: Array) -> Array:
        return -held_force(p, step_coordinates(p.mech, q, x * units), multipliers)

    k = jacobian(moved, jnp.zeros(units.shape, q.dtype))
    size = jnp.maximum(jnp.max(jnp.abs(k), initial=0.0), 1e-3 * at.scale)
    size = jax.lax.stop_gradient(jnp.where(size > 0.0, size, 1.0))
    inner = product(product(at.project, k), at.project) if at.rows.shape[0] else k
    return Stiffness(k, size, inner, jnp.eye(len(units), dtype=k.dtype) - at.project)


def stiffness_along(p: Problem, q: Array, multipliers: Array, x: Array) -> Array:
    """``K x`` (nv,), as a function of all of its arguments."""

    def moved(step: Array) -> Array:
        to = step_coordinates(p.mech, q, step * x * speed_units(p.mech))
        return -held_force(p, to, multipliers)

    none = jnp.zeros((), q.dtype)
    return jax.jvp(moved, (none,), (jnp.ones_like(none),))[1]


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
        x = self.within(pushed - self.stiff.k @ onto, _REFINEMENTS)
        added, idle = LEAST_DAMPING * self.stiff.size, x
        for _ in range(_REFINEMENTS):
            idle = added * self._solve(idle)
        return x - idle

    def within(self, pushed: Array, refinements: int) -> Array:
        """``(P K P)⁻¹ P p`` in so many steps of iterative refinement."""
        wanted = self.project @ pushed
        x = jnp.zeros_like(wanted)
        for _ in range(refinements):
            x = x + self._solve(wanted - self.project @ (self.stiff.k @ x))
        return x

    def transposed(self) -> Response:
        """The equations with Kᵀ."""
        stiff = self.stiff._replace(k=self.stiff.k.T)
        return self._replace(stiff=stiff, factors=self.factors.transposed())

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
    # Forces and rows do not depend on the values of the held coordinates.
    none = jnp.zeros((), q.dtype)
    p, whole = (
        Problem(held, mech, [none] * len(held), jnp.asarray(t, q.dtype), inputs or {})
        for held in (keys, loaded)
    )
    multipliers = balance(whole, q).multipliers
    at: Balance = balance(p, q)
    solver = lax.stop_gradient(response(at, stiffness(whole, q, at, multipliers)))
    units, rows = speed_units(mech), lax.stop_gradient(at.rows)

    def moved(rate: Array) -> Array:
        x, _ = _moved(p, whole, q, multipliers, solver, -rate, jnp.zeros_like(units))
        met = jnp.all(is_met(rows, lax.stop_gradient(x), rate))
        return jnp.asarray(jnp.where(met, units * x, jnp.nan))

    return lax.map(moved, rates)


@jax.custom_jvp
def _moved(
    p: Problem,
    whole: Problem,
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
def _moved_jvp(primals: Any, tangents: Any) -> Any:
    *at, solver, opened, pushed = primals
    *dot, _, opened_dot, pushed_dot = tangents
    x, lam = found = _moved(*primals)

    def missed(p: Problem, whole: Problem, q: Array, multipliers: Array, o: Array, f: Array) -> Any:
        """``J x + o`` and ``p − K x + Jᵀ Λ``, for fixed x and Λ."""
        _, rows = rows_of(p, p.state(q))
        return rows @ x + o, f - stiffness_along(whole, q, multipliers, x) + rows.T @ lam

    at_all, dots = (*at, opened, pushed), (*dot, opened_dot, pushed_dot)
    _, (gap, push) = jax.jvp(missed, at_all, dots)
    return found, _moved(*at, solver, gap, push)


_REFINED_LOADS = 3

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
    p = problem(mech, known, t, inputs)
    q = jnp.asarray(q, mech.dtype)
    check_shape("q", q, topology(mech).nq)
    named = tuple((body, _hashable(point)) for body, point in places)
    return program(backend, _at_rest, named, p, q)


def _hashable(point: Any) -> Any:
    return point if isinstance(point, str) else tuple(float(x) for x in point)


def _at_rest(places: Places, p: Problem, q: Array) -> Array:
    return _flexibility(places, p, q, balance(p, q).multipliers)


def twist_rows(places: Places, p: Problem, q: Array) -> Array:
    """B (6 n, nv): twists ``[ω; v]`` of the places per unit of ẋ."""
    m = p.state(q)
    rows = []
    for body, point in places:
        at = point if isinstance(point, str) else jnp.asarray(point, q.dtype)
        moves = m.moves(GROUND, body) != 0.0
        columns = m.angular_columns(), m.columns_at(m.position(body, at))
        rows += [jnp.where(moves[:, None], x, 0.0).T for x in columns]
    return jnp.concatenate(rows) * speed_units(p.mech)


def _response(p: Problem, q: Array, multipliers: Array) -> Response:
    at: Balance = balance(p, q)
    return response(at, stiffness(p, q, at, multipliers))


def _loaded(solver: Response, b: Array) -> tuple[Array, Array]:
    """Y and Λ, one row for each load in the rows of b."""

    def one(pushed: Array) -> tuple[Array, Array]:
        x = solver.within(pushed, _REFINED_LOADS)
        return x, solver.multipliers(x, pushed)

    return lax.map(one, b)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _flexibility(places: Places, p: Problem, q: Array, multipliers: Array) -> Array:
    b = twist_rows(places, p, q)
    return product(b, _loaded(_response(p, q, multipliers), b)[0].T)


@_flexibility.defjvp
def _flexibility_jvp(places: Places, primals: Any, tangents: Any) -> tuple[Array, Array]:
    p, q, _ = primals
    b = twist_rows(places, p, q)
    solver = _response(*primals)
    (y, right), (z, left) = _loaded(solver, b), _loaded(solver.transposed(), b)

    def stationary(p: Problem, q: Array, multipliers: Array) -> Array:
        """C, whose derivative is that for fixed Y and Λ."""
        b = twist_rows(places, p, q)
        _, rows = rows_of(p, p.state(q))

        def column(given: tuple[Array, ...]) -> Array:
            """A column of C, of the wrench that causes y."""
            y, right, row = given
            bent = z @ stiffness_along(p, q, multipliers, y)
            closed = (z @ rows.T) @ right + left @ (rows @ y)
            return b @ y + z @ row - bent + closed

        return lax.map(column, (y, right, b)).T

    value, rate = jax.jvp(stationary, primals, tangents)
    return value, rate
