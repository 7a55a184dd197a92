"""A variational method: steps that make a discrete action stationary, on the constraints.

A step of length h from q to q' is that of the midpoint Lagrangian ``h L(q_m, u)`` with
``q = q_m ∘ (−h u/2)`` and ``q' = q_m ∘ (h u/2)``, ∘ being `step_coordinates` (J. E. Marsden and
M. West, "Discrete mechanics and variational integrators", Acta Numerica 10, 357 (2001), 2.3 and
3.5.2 for its constraints). With the momenta ``p = M v`` along the speeds it is

    p̄ − ½ Δ = M(q) v + J(q)ᵀ λ,    φ(q', t + h) = 0,            for u and λ,
    M(q') v' = p̄ + ½ Δ + J(q')ᵀ λ',    J(q') v' = b(q', t + h),  for v' and λ',

as SHAKE and RATTLE are. Here ``μ = M(q_m) u``, ``Δ = h (Ṁ u + τ − h_b)``, Ṁ being M's rate along u
and h_b the bias: by Lagrange's equations ``τ − h_b + Ṁ u`` is ``∂L/∂q`` plus the efforts without
potential (of d'Alembert), and for the speeds ω of a ball also the ``ω × μ`` of its moving axes. p̄
is μ, but for balls, whose ends are turned from the midpoint by Cayley's map: with ``x = h ω/2``

    p̄ = (1 + x·x/4) μ + ¼ x × Δ,

from the tangent ``(1 + x^/2)/(1 + x·x/4)`` of that map. So the step is symplectic and symmetric,
and keeps momenta of symmetries: of a free body Δ is zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.methods.fixed_steps import FixedSteps
from jaxmbd.analysis.methods.generalized_alpha import solved
from jaxmbd.analysis.methods.method import Equations, Step
from jaxmbd.analysis.projection import but_rounding
from jaxmbd.dynamics import Factors, System, kkt_factors, kkt_system, mass_operator, solve_kkt
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    closure_residual,
    closure_velocity,
    coordinate_rates,
    mechanism_length,
    motion_state,
    placed_numbers,
    row_scale,
    speed_units,
    step_coordinates,
)
from jaxmbd.lanes import bounded_while
from jaxmbd.model import Joint, Mechanism
from jaxmbd.numerics import jacobian, pivoted_lu, solution, tolerances
from jaxmbd.spatial import cross

MOST = 12
"""Corrections with a matrix, and matrices of a step."""

_SUZUKI = 1.0 / (4.0 - 4.0 ** (1.0 / 3.0))
_KAHAN_LI = [
    0.39216144400731413928,
    0.33259913678935943860,
    -0.70624617255763935981,
    0.08221359629355080023,
]
SHARES = {
    2: [1.0],
    4: [_SUZUKI, _SUZUKI, 1.0 - 4.0 * _SUZUKI, _SUZUKI, _SUZUKI],
    6: [*_KAHAN_LI, 1.0 - 2.0 * sum(_KAHAN_LI), *_KAHAN_LI[::-1]],
}
"""Parts of a step by the order of the whole: the midpoint rule, M. Suzuki's (1990) and W. Kahan's
and R. C. Li's (1997) symmetric compositions (Hairer, Lubich & Wanner, Geometric Numerical
Integration, II.4 and V.3.2)."""


class Variational(FixedSteps):
    """A variational (symplectic) method of order 2, 4 or 6, for long conservative runs.

    The energy of such a run goes up and down with the step's error but does not drift, and momenta
    are kept to rounding. Closed loops, drives, balls and floating bodies are in; the constraints
    hold at the end of each step by its own multipliers, whatever ``constraints=`` of `simulate`
    says. Efforts without potential, as dampers and inputs, act as at the midpoint. J. E. Marsden
    and M. West, Acta Numerica 10, 357 (2001). Equations are in
    `jaxmbd.analysis.methods.variational`.

    A step of order 4 consists of five of order 2, one of order 6 of nine; some go backwards. Each
    is solved to rounding by corrections with the factors of the KKT matrix at its begin and, where
    these do not get there, by Newton's method. A step without a solution is NaN. Derivatives are
    those of the solution.

    Attributes:
        order: 2, 4 or 6.

    Raises:
        ValueError: there is no such order.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> run = mbd.simulate(m, [1.0], t1=100.0, dt=0.02, method=mbd.Variational(order=4))
        >>> energy = 0.5 * run.v[:, 0] ** 2 - 9.81 * np.sin(run.q[:, 0])
        >>> run.status.item(), bool(abs(energy - energy[0]).max() < 1e-4)
        (0, True)
    """

    order: int = eqx.field(static=True, default=2)

    def __check_init__(self) -> None:
        if self.order not in SHARES:
            raise ValueError(f"Variational: order={self.order!r}; give 2, 4 or 6")

    def first_memory(self, v: Array) -> Array:
        """Mean acceleration over the step before, and its length (2, nv): NaN, as there is none."""
        return jnp.full((2, *v.shape), jnp.nan, v.dtype)

    def step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Array
    ) -> Step:
        """One step, with its estimates."""
        ends = np.cumsum([0.0, *SHARES[self.order]])
        ends[-1] = 1.0

        def part(state: tuple[Array, Array], place: tuple[Array, Array]) -> Any:
            begin, end = place
            w = equations.acceleration(t + h * begin, *state)
            over = Interval(t + h * begin, t + h * end, h * (end - begin))
            return midpoint_step(equations, over, *state, w), w

        places = tuple(jnp.asarray(x, v.dtype) for x in (ends[:-1], ends[1:]))
        (q_new, v_new), w = lax.scan(jax.checkpoint(part, prevent_cse=False), (q, v), places)
        mean, first = lax.stop_gradient(((v_new - v) / h, w[0]))
        if self.order == 2:
            before, length = memory
            bend = mean - first - h * (first - before) / length
            bend = jnp.where(jnp.isnan(before) & ~jnp.isnan(first), 0.0, bend)
            estimates = [h * (mean - first), h / 6.0 * bend]
        else:
            rate = (lax.stop_gradient(w[1]) - first) / ends[1]
            estimates = [h * (mean - first - 0.5 * rate), jnp.zeros_like(v)]
        return Step(q_new, v_new, jnp.stack(estimates), jnp.stack([mean, h + 0.0 * mean]))

    def smooth_error(self, e: Array, d: Array, change: Array, scale: Array) -> Array:
        """The leading error of vibrations."""
        if self.order == 2:
            return 1.25 * d
        return 0.29 * (e / change) ** (self.order // 2 - 1) * e


class Interval(NamedTuple):
    """Begin and end of a step of the midpoint Lagrangian [s], and its length h, free of theirs."""

    begin: Array
    end: Array
    h: Array

    @property
    def middle(self) -> Array:
        """Its midpoint [s]."""
        return self.begin + 0.5 * self.h


def midpoint_step(
    equations: Equations, over: Interval, q: Array, v: Array, w: Array
) -> tuple[Array, Array]:
    """(q', v') after a step of the midpoint Lagrangian.

    `w` is the acceleration at its begin, from which the mean speeds are expected.
    """
    mech, h = equations.mech, over.h

    def begun_at(v: Array) -> Begin:
        system = kkt_system(motion_state(mech, q, v, over.begin))
        return Begin(system, kkt_factors(system), system.mass @ v)

    def excess_at(u: Array, begin: Begin) -> Array:
        return -correction(equations, begin, over, q, u)

    def excess_of(u: Array) -> Array:
        return excess_at(u, begun_at(v))

    def slope_of(u: Array) -> Array:
        return jacobian(excess_of, u)

    excess, given = jax.closure_convert(excess_of, v)
    slope, fixed = jax.closure_convert(slope_of, v)
    begun, numbers = jax.closure_convert(begun_at, v)
    held = lax.stop_gradient(v)
    begin = begun(held, *lax.stop_gradient(numbers))
    from_begin, others = jax.closure_convert(excess_at, v, begin)
    others = lax.stop_gradient(others)
    expected, units, length = lax.stop_gradient((v + 0.5 * h * w, speed_units(mech), h))
    u = root(lambda u: from_begin(u, begin, *others), expected, units, length)
    u = solved(excess, slope, u, given, fixed)
    middle, q_new = at_midpoint(equations, over, q, u)
    m = motion_state(mech, q_new, u, over.end)
    # What u misses by rounding is not lost from the momenta.
    force = lax.stop_gradient(begin.momenta - (middle.mean - 0.5 * middle.change))
    left, _ = solve_kkt(
        begin.system, force[:, None], jnp.zeros((m.top.nc, 1), u.dtype), factors=begin.factors
    )
    push = middle.mean + 0.5 * middle.change + lax.stop_gradient(begin.system.mass @ left[:, 0])
    miss = row_scale(m) * closure_residual(m)
    q_new = solution(q_new, miss, [q, v, u], placed_numbers(mech))
    v_new, _ = solve_kkt(kkt_system(m), push[:, None], closure_velocity(m)[:, None])
    return q_new, v_new[:, 0]


class Begin(NamedTuple):
    """The KKT system at the begin of a step, its factors, and the momenta p (nv,) there."""

    system: System
    factors: Factors
    momenta: Array


class Midpoint(NamedTuple):
    """P̄ and Δ (nv,) of a step."""

    mean: Array
    change: Array


def at_midpoint(equations: Equations, over: Interval, q: Array, u: Array) -> tuple[Midpoint, Array]:
    """What is taken at the midpoint of a step from q with mean speeds u, and q'."""
    mech, half = equations.mech, 0.5 * over.h * u
    assert equations.efforts is not None
    q = step_coordinates(mech, q, half)

    def momenta(q: Array) -> Array:
        return mass_operator(motion_state(mech, q, u)) @ u

    mu, rate = jax.jvp(momenta, (q,), (coordinate_rates(mech, q, u),))
    change = over.h * (rate + equations.efforts(over.middle, q, u))
    mean = mu + _turned(mech, half, mu, change)
    return Midpoint(mean, change), step_coordinates(mech, q, half)


def _turned(mech: Mechanism, x: Array, mu: Array, change: Array) -> Array:
    """``p̄ − μ`` (nv,): of balls ``¼ (x·x μ + x × Δ)``."""
    top, parts = topology(mech), [jnp.zeros(0, x.dtype)]
    for name in top.tree:
        place = top.layout[name].v
        assert place is not None
        rest = place.stop - place.start
        if type(mech.joint(name)).rate is not Joint.rate:
            turn, rest = slice(place.start, place.start + 3), rest - 3
            half = x[turn]
            parts.append(0.25 * (half @ half * mu[turn] + cross(half, change[turn])))
        parts.append(jnp.zeros(rest, x.dtype))
    return jnp.concatenate(parts)


def correction(equations: Equations, begin: Begin, over: Interval, q: Array, u: Array) -> Array:
    """δu (nv,) of ``M(q) δu − J(q)ᵀ λ = p − p̄ + ½ Δ, J(q) δu = −φ(q')/h``; zero at the solution.

    Errors of φ of the size of rounding are not corrected, as by `project`.
    """
    mech, h = equations.mech, over.h
    middle, q_new = at_midpoint(equations, over, q, u)
    m = motion_state(mech, q_new, u, over.end)
    force = begin.momenta - (middle.mean - 0.5 * middle.change)
    noise = tolerances.rounding(u.dtype, 8) * mechanism_length(mech)
    rows = but_rounding(-closure_residual(m), noise) / h
    found, _ = solve_kkt(
        begin.system, force[:, None], rows[:, None], test=False, factors=begin.factors
    )
    return found[:, 0]


class Found(NamedTuple):
    """Where the corrections are: u, the correction there, and whether more of them are of use."""

    u: Array
    change: Array
    size: Array
    going: Array


def root(excess: Any, expected: Array, units: Array, h: Array) -> Array:
    """The u (nv,) of ``excess(u) = 0`` to rounding; NaN if none is found.

    Corrections are the excess itself, that with the factors at the begin of the step, as long as
    each is at most half of the one before. Where they do not get there, Newton's method goes on
    from the best u, each Jacobian serving as many corrections as it is good for.
    """
    dtype = expected.dtype
    tight, loose = tolerances.rounding(dtype, 4), tolerances.integration(dtype).rtol

    def size(x: Array) -> Array:
        return jnp.max(jnp.abs(x) / units, initial=0.0)

    def corrected(solve: Any, u: Array) -> Found:
        def more(found: Found) -> Found:
            u = found.u - found.change
            change = solve(excess(u))
            now, before = size(change), found.size
            closer = now < 0.5 * before
            left = now * jnp.where(before < jnp.inf, now / before, 1.0)
            u, change, now = (
                jnp.asarray(jnp.where(closer, x, y))
                for x, y in zip((u, change, now), found, strict=False)
            )
            return Found(u, change, now, closer & (left > tight * size(u)))

        start = Found(u, jnp.zeros_like(u), jnp.full((), jnp.inf, dtype), jnp.asarray(True))
        return bounded_while(lambda found: found.going, more, start, MOST)

    def is_open(found: Found) -> Array:
        return ~(found.size <= loose * (size(found.u) + 1.0 / jnp.abs(h)))

    def newton(found: Found) -> Found:
        found = corrected(pivoted_lu(jacobian(excess, found.u)).solve, found.u)
        return found._replace(u=found.u - found.change)

    found = corrected(lambda x: x, jnp.asarray(expected))
    # Corrections that do not get nearer may be far too long, where something is stiff.
    found = found._replace(u=jnp.where(is_open(found), found.u, found.u - found.change))
    found = bounded_while(is_open, newton, found, MOST)
    return jnp.asarray(jnp.where(is_open(found), jnp.nan, found.u))
