"""Static equilibrium: the configuration at rest in which the loads balance.

Newton's method on the constraint manifold. With f(q) = τ − h(q, 0) the efforts at rest, φ the
closure errors, J their Jacobian and P the projection onto its null space, the equations are
``f + Jᵀ λ = 0, φ = 0``. A step is ``δ = (P K P + μ)⁻¹ P f``, ``K = −∂(f + Jᵀ λ)/∂q``, after which
the loops are closed again. μ is increased until K + μ is positive definite and the step does not
overshoot (``δ·f`` at its end is not much below zero). The search thus descends in energy from the
guess to a stable equilibrium; the loads need not have a potential.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.assembly import assemble, attempt
from jaxmbd.analysis.balance import (
    LEAST_DAMPING,
    Balance,
    Tangent,
    balance,
    held_force,
    response,
    rows_of,
    stiffness,
)
from jaxmbd.analysis.known import Known, Problem, held_name, held_scale, problem
from jaxmbd.analysis.programs import program
from jaxmbd.analysis.status import Status, closing_tolerance, visible
from jaxmbd.analysis.velocity import implied_change
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import (
    coordinate_rates,
    mechanism_length,
    own_rows,
    speed_units,
    step_coordinates,
)
from jaxmbd.model import Mechanism
from jaxmbd.numerics import (
    factor_rows,
    finite_where,
    generic,
    limited,
    lu_solve,
    tolerances,
)
from jaxmbd.plumbing import outline

_MAX_STEPS = 300
_CLOSING = 5
_LARGEST_STEP = 0.5


class Equilibrium(NamedTuple):
    """A configuration at rest.

    Attributes:
        q: coordinates (nq,); NaN where none was found.
        lam: multipliers (nc,) [N, N·m] as in `forward_dynamics`; of least norm if redundant.
        residual: largest unbalanced effort over the size of the loads. It has to be below
            `tolerances.balance`, or below the effect of rounding of q where that is larger (stiff
            springs).
        status: a `Status` number: SINGULAR if a force remains along a motion without stiffness;
            INACCURATE if springs are so stiff that their forces are lost in the rounding of q, as
            bushings of 1e8 N/m are in single precision.
        iterations: Newton steps taken.
        held: efforts (nk,) [N, N·m] that hold the `known` coordinates, one for each.

    Example:
        >>> import jaxmbd as mbd
        >>> round(float(mbd.equilibrium(mbd.zoo.simple_pendulum()).q[0]), 6)
        1.570796
    """

    q: Array
    lam: Array
    residual: Array
    status: Array
    iterations: Array
    held: Array

    __str__ = outline


_LOST = 1e-2
"""Largest force that rounding of q may cause, over the loads; beyond it they are lost in it."""


class _Search(NamedTuple):
    """State of the search; `damping` is μ relative to the size of K."""

    q: Array
    damping: Array
    residual: Array
    iterations: Array
    soft: Array
    done: Array
    enough: Array


def equilibrium(
    mech: Mechanism,
    *,
    known: Known | None = None,
    guess: Any = None,
    t: Any = 0.0,
    inputs: Any = None,
    throw: bool = True,
    backend: str = "auto",
) -> Equilibrium:
    """A stable static equilibrium of a mechanism, by descent in energy from `guess`.

    All speeds are zero, so dampers and friction exert no force. Derivatives are those of the
    solution, by the implicit function theorem, forward and reverse; freedoms without stiffness and
    load (a wheel's spin) have least change. One mechanism; a batch by `jax.vmap`.

    Args:
        mech: the mechanism.
        known: coordinates that are held in addition, with the keys of `assemble`.
        guess: coordinates (nq,) to start from; by default as drawn. It need not be assembled.
        t: time [s] at which drives and laws are evaluated.
        inputs: efforts on joints, ``{joint: value or Sampled}``, or a function of t that returns
            such a dictionary of values.
        throw: raise an error if no equilibrium is found (outside `jit` and `vmap`).
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Raises:
        ValueError: `known` or `inputs` names an unknown part; outside `jit`, the mechanism does not
            assemble, or no equilibrium is found (the message names the motions along which a force
            remains).

    Example:
        >>> import jaxmbd as mbd
        >>> hanging = mbd.Mechanism(
        ...     bodies={"mass": mbd.Body(mass=2.0)},
        ...     joints={"guide": mbd.Prismatic("ground", "mass", at=(0, 0, 0), axis=(0, 0, 1))},
        ...     forces={"spring": mbd.TorsionSpring("guide", stiffness=981.0)},
        ... )
        >>> round(float(mbd.equilibrium(hanging).q[0]), 12)
        -0.02
    """
    p = problem(mech, known, t, inputs)
    guess = p.start(guess)
    found = Equilibrium(*program(backend, _found, p, guess))
    if throw and visible(found.status) and not bool(_balanced(found.status)):
        held = {key: lax.stop_gradient(x) for key, x in (known or {}).items()}
        _raise(*lax.stop_gradient((p, guess)), held, Status(int(found.status)))
    return found


def _found(p: Problem, guess: Array) -> tuple[Array, ...]:
    """The equilibrium and its multipliers; the latter are differentiated as functions of (p, q)."""
    q, residual, status, iterations = _equilibrium(p, guess)
    ok = jnp.all(jnp.isfinite(lax.stop_gradient(q)))
    safe, _ = finite_where(ok, p, ())
    rest = jnp.asarray(jnp.where(ok, q, jnp.asarray(neutral(p.mech))))
    at: Balance = balance(safe, rest)
    nc = topology(p.mech).nc
    own = own_rows(safe.state(rest))
    lam = jnp.where(ok, own.multipliers(at.multipliers[:nc]), jnp.nan)
    scale = held_scale(topology(p.mech), p.keys, mechanism_length(safe.mech))
    held = jnp.where(ok, scale * at.multipliers[nc:], jnp.nan)
    return q, lam, residual, status, iterations, held


def _close(p: Problem, q: Array) -> tuple[Array, Array, Array]:
    """Coordinates after Newton steps of least change onto the rows, their error [m], the last step.

    The step is the largest change in angles and lengths of the mechanism. It vanishes to rounding,
    but near a change point, where steps only halve along a motion that no finite one follows.
    """
    units = speed_units(p.mech)

    def correct(_: Any, found: tuple[Array, Array]) -> tuple[Array, Array]:
        q, _ = found
        residual, rows = rows_of(p, p.state(q))
        x = factor_rows(rows).solve(residual)
        return step_coordinates(p.mech, q, -units * x), jnp.max(jnp.abs(x), initial=0.0)

    last = jnp.zeros((), q.dtype)
    if topology(p.mech).nc + len(p.keys):
        q, last = lax.fori_loop(0, _CLOSING, correct, (q, last))
    residual, _ = rows_of(p, p.state(q))
    return q, jnp.max(jnp.abs(residual), initial=0.0), last


def _largest(at: Balance) -> Array:
    """Largest unbalanced force relative to the size of the loads."""
    scale = jnp.where(at.scale > 0.0, at.scale, 1.0)
    return jnp.max(jnp.abs(at.force), initial=0.0) / scale


def _enough(size: Array, scale: Array) -> Array:
    """The largest residual in balance: rounding ε of q causes forces of ``ε size`` [N·m]."""
    rounded = tolerances.rounding(size.dtype, 16) * size / jnp.where(scale > 0.0, scale, 1.0)
    return jnp.maximum(tolerances.balance(size.dtype), rounded)


def _balanced(status: Array) -> Array:
    return (status == Status.OK) | (status == Status.INACCURATE)


def _newton_step(a: Tangent, at: Balance, added: Array) -> Array:
    """``A⁻¹ f``, without rounding along motions that have neither stiffness nor load.

    ``(μ s A⁻¹)²`` keeps such motions and next to nothing of the others.
    """

    def solve(b: Array) -> Array:
        return at.project @ lu_solve(a.lower, a.upper, b)

    x = solve(at.force)
    idle = added * solve(added * solve(x))
    noise = tolerances.rounding(x.dtype, 64) * at.scale
    return jnp.where(jnp.max(jnp.abs(added * idle), initial=0.0) <= noise, x - idle, x)


@jax.jit
def _search(p: Problem, start: Array) -> _Search:
    fine, resolved = tolerances.rounding(start.dtype, 8), tolerances.agreement(start.dtype)
    units, closed = speed_units(p.mech), closing_tolerance(start.dtype, mechanism_length(p.mech))

    def step(s: _Search) -> _Search:
        at: Balance = balance(p, s.q)
        stiff = stiffness(p, s.q, at, at.multipliers)
        enough = _enough(stiff.size, at.scale)
        plain = stiff.factored(LEAST_DAMPING)
        least = jnp.where(plain.definite, s.damping, jnp.maximum(s.damping, 1e-4))
        damping = lax.while_loop(
            lambda x: ~stiff.factored(x).definite & (x < 1e4),
            lambda x: 4.0 * x,
            least,
        )
        a = stiff.factored(damping)
        before = _largest(at)
        # An unstable equilibrium has no force to leave it: perturb it in an arbitrary direction.
        resting = (before <= enough) & ~plain.definite
        nudge = 1e-2 * (at.project @ generic(units.shape[0], s.q.dtype))
        change = limited(_newton_step(a, at, damping * stiff.size), _LARGEST_STEP)
        change = jnp.where(resting, nudge, change)
        trial, opened, last = _close(p, step_coordinates(p.mech, s.q, change * units))
        beyond: Balance = balance(p, trial)
        work, rest = change @ at.force, change @ beyond.force
        followed = last <= 1e-3 * jnp.max(jnp.abs(change), initial=0.0) + resolved
        stays = (opened < closed) & followed & jnp.isfinite(rest)
        downhill = a.definite & stays & ((rest >= -0.5 * work) | (_largest(beyond) < before))
        accept = downhill | (resting & stays)
        # What is left is rounding if a step does not halve it. Its size is the root of the work, in
        # which soft motions count as stiff ones do: the largest force may well grow in a step along
        # soft motions, by its square times what is stiff. One measure cannot halve for ever.
        left = _newton_step(a, beyond, damping * stiff.size) @ beyond.force
        settled = (before <= enough) & (left >= 0.25 * work)
        done = plain.definite & (settled | (before <= fine))
        weaker = jnp.maximum(0.1 * damping, LEAST_DAMPING)
        kept = jnp.where(rest >= -0.25 * work, weaker, 2.0 * damping)
        damping = jnp.where(accept, kept, jnp.maximum(10.0 * damping, 1e-4))
        move = accept & ~done
        return _Search(
            jnp.where(move, trial, s.q),
            jnp.asarray(jnp.where(resting, LEAST_DAMPING, damping), s.q.dtype),
            jnp.where(move, _largest(beyond), before),
            s.iterations + 1,
            plain.soft,
            done,
            enough,
        )

    def going(s: _Search) -> Array:
        return ~s.done & (s.iterations < _MAX_STEPS) & jnp.isfinite(s.residual)

    zero = jnp.zeros((), start.dtype)
    no = jnp.asarray(False)
    first = _Search(start, zero + LEAST_DAMPING, zero + 1.0, jnp.zeros((), jnp.int32), no, no, zero)
    return lax.while_loop(going, step, first)


@jax.custom_jvp
def _equilibrium(p: Problem, guess: Array) -> tuple[Array, Array, Array, Array]:
    start, _, assembled, *_ = attempt(p.keys, p.mech, p.values, p.t, guess)
    ok = assembled == Status.OK
    found = _search(p, start)
    missed = jnp.where(found.soft, Status.SINGULAR, Status.DIVERGED)
    reached = jnp.where(found.enough < _LOST, Status.OK, Status.INACCURATE)
    status = jnp.where(found.done, reached, missed)
    status = jnp.where(jnp.isfinite(found.residual), status, Status.NON_FINITE)
    status = jnp.asarray(jnp.where(ok, status, assembled), jnp.int32)
    q = jnp.asarray(jnp.where(_balanced(status), found.q, jnp.nan))
    return q, found.residual, status, found.iterations


@_equilibrium.defjvp
def _equilibrium_jvp(primals: Any, tangents: Any) -> Any:
    """``J δ = −φ_p ṗ`` and ``P K δ = P (f + Jᵀ λ)_p ṗ`` at the solution, λ fixed.

    δ is the least change that satisfies the rows plus a step in their null space, which is refined
    iteratively with A: its μ affects only motions without stiffness. A sample without an
    equilibrium has zero tangents.
    """
    p, guess = primals
    out = _equilibrium(p, guess)
    ok = _balanced(out[2])
    q = jnp.asarray(jnp.where(ok, out[0], jnp.asarray(neutral(p.mech))))
    safe, dot = finite_where(ok, p, tangents[0])
    at: Balance = balance(safe, q)
    units = speed_units(safe.mech)

    def of(p: Problem) -> tuple[Array, Array]:
        residual, _ = rows_of(p, p.state(q))
        return residual, held_force(p, q, at.multipliers)

    _, (opened, pushed) = jax.jvp(of, (safe,), (dot,))
    solver = response(at, stiffness(safe, q, at, at.multipliers))
    onto = implied_change(safe, dot, solver.rows, opened)
    change = units * (onto + solver.along(onto, pushed))
    qdot = jnp.where(ok, coordinate_rates(safe.mech, q, change), 0.0)
    zero = np.zeros((), jax.dtypes.float0)
    return out, (qdot, jnp.zeros_like(out[1]), zero, zero)


def _raise(p: Problem, guess: Array, known: Known | None, status: Status) -> None:
    start = assemble(p.mech, known, guess, t=p.t).q  # raises where that is what failed
    if status == Status.NON_FINITE:
        raise ValueError(
            "no equilibrium: a load is not finite at the guess; print(mech) shows all numbers"
        )
    found = _search(p, start)
    at: Balance = balance(p, found.q)
    force = np.asarray(at.force / speed_units(p.mech))
    worst = np.argsort(-np.abs(np.asarray(at.force)))[:3]
    top = topology(p.mech)
    unit = {"angle": "N·m", "travel": "N"}
    left = ", ".join(
        f"{force[i]:.3g} {unit[top.speed_kinds[i]]} along '{top.speed_names[i]}'" for i in worst
    )
    names = " and ".join(held_name(p.mech, key) for key in p.keys)
    held = f" while {names} {'is' if len(p.keys) == 1 else 'are'} held" if names else ""
    why = (
        "nothing holds that motion: give it a spring, a stop or a constraint, or hold it with "
        "known="
        if status == Status.SINGULAR
        else "give a guess nearer the equilibrium, or soften what is very stiff"
    )
    raise ValueError(
        f"no static equilibrium ({status.name.lower()}){held}: after {int(found.iterations)} "
        f"steps there remain {left}; {why}"
    )
