"""Velocity and acceleration assembly, and the least-norm solution that they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd.analysis.known import (
    Key,
    Known,
    PointCoordinate,
    Problem,
    held_name,
    held_scale,
    known_rows,
    known_values,
    overheld,
    parse_known,
    point_of,
)
from jaxmbd.analysis.programs import program
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    Accelerations,
    MotionState,
    OwnRows,
    check_shape,
    closure_gamma,
    closure_jacobian,
    closure_velocity,
    digit_doubt,
    mechanism_length,
    motion_state,
    own_rows,
    placed_numbers,
    point_acceleration,
    speed_units,
)
from jaxmbd.lanes import is_inline
from jaxmbd.model import Mechanism
from jaxmbd.numerics import (
    Doubt,
    FactoredRows,
    SplitRows,
    factor_rows,
    solution,
    tested,
    tolerances,
)


def implied_change(
    p: Problem, dot: Problem, rows: FactoredRows | SplitRows, opened: Array
) -> Array:
    """The least x (nv,) with ``J x = −opened``, the tangent of a configuration that satisfies rows.

    NaN where redundant rows would contradict each other, so that there is no derivative.

    Args:
        p: the problem.
        dot: its tangents, which `opened` follows from.
        rows: J (n, nv) to x, travels in units of the mechanism's length; in metres.
        opened: tangents (n,) of the residuals [m] at the configuration.
    """
    x = -rows.solve(opened)
    terms = [opened, mechanism_length(p.mech) * x]
    given = [placed_numbers(dot.mech), dot.values, dot.t]
    return tested(x, rows.rows @ x + opened, terms, given)


def assemble_velocity(
    mech: Mechanism,
    q: Array,
    known: Known | None = None,
    guess: Any = None,
    *,
    t: Any = 0.0,
    known_v: Known | None = None,
) -> Array:
    """Speeds v (nv,) on the constraints, ``J v = b``, of least change from `guess` (zero).

    Args:
        mech: the mechanism.
        q: assembled coordinates (nq,).
        known: speeds that are held, with the keys of `assemble` [rad/s, m/s].
        guess: speeds to start from (nv,).
        t: time [s] at which drives are evaluated.
        known_v: another name of `known`.

    Returns:
        v (nv,); differentiable with respect to the mechanism, q and the held speeds. NaN inside
        `jit` if no speeds satisfy all conditions.

    Raises:
        ValueError: outside `jit`, the held speeds contradict the constraints or each other.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> v = mbd.assemble_velocity(m, mbd.neutral(m), {"crank": 2.0})
        >>> round(float(v[0]), 6)
        2.0
    """
    known = known_v if known is None else known
    return _compiled(_velocity, mech, known, guess, t, q)


def assemble_acceleration(
    mech: Mechanism,
    q: Array,
    v: Array,
    known: Known | None = None,
    guess: Any = None,
    *,
    t: Any = 0.0,
    known_vdot: Known | None = None,
) -> Array:
    """Accelerations v̇ (nv,) on the constraints, ``J v̇ = γ``, of least change from `guess` (zero).

    Args:
        mech: the mechanism.
        q: assembled coordinates (nq,).
        v: speeds (nv,) on the constraints.
        known: accelerations that are held, with the keys of `assemble` [rad/s², m/s²].
        guess: accelerations to start from (nv,).
        t: time [s] at which drives are evaluated.
        known_vdot: another name of `known`.

    Returns:
        v̇ (nv,), as `assemble_velocity` returns v.

    Raises:
        ValueError: outside `jit`, the held accelerations contradict the constraints or each other.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> q = mbd.assemble(m).q
        >>> v = mbd.assemble_velocity(m, q, {"crank": 2.0})
        >>> vdot = mbd.assemble_acceleration(m, q, v, {"crank": 0.0})
        >>> bool(abs(mbd.constraint_jacobian(m, q) @ vdot - mbd.gamma(m, q, v)).max() < 1e-12)
        True
    """
    known = known_vdot if known is None else known
    return _compiled(_acceleration, mech, known, guess, t, q, v)


def _compiled(
    fn: Callable[..., Any], mech: Mechanism, known: Known | None, guess: Any, t: Any, *state: Any
) -> Array:
    """``x`` of ``fn(problem, guess, *state) = x, met``; NaN or an error if not met.

    It is one program, as by `jaxmbd.lanes.whole`: JAX would compile its hundreds of operations one
    by one, ten times as slowly.
    """
    keys, values = parse_known(mech, known, rates=True)
    numbers = (values, t, guess, *state)
    values, t, *rest = jax.tree_util.tree_map(lambda x: jnp.asarray(x, mech.dtype), numbers)
    args = Problem(keys, mech, values, t), *rest
    x, met = fn(*args) if is_inline() else program("auto", fn, *args)
    if not isinstance(met, Tracer) and not np.all(np.asarray(met)):
        surplus = overheld(args[0].state(rest[1]), keys) if keys else ""
        rows = np.array([*topology(mech).row_names, *(held_name(mech, key) for key in keys)])
        raise ValueError(
            "no motion satisfies all constraints and held coordinates: "
            f"{', '.join(rows[~np.asarray(met)])} contradict the others. "
            + (surplus or "Hold fewer, or look for a singular position")
        )
    return jnp.asarray(jnp.where(jnp.all(met), x, jnp.nan))


def _velocity(p: Problem, guess: Any, q: Array) -> tuple[Array, Array]:
    m = p.state(q)
    return _meet(m, p.keys, closure_velocity(m), p.values, guess)


def _acceleration(p: Problem, guess: Any, q: Array, v: Array) -> tuple[Array, Array]:
    m = motion_state(p.mech, q, v, p.t)
    acc = m.accelerations()
    values = [x - y for x, y in zip(p.values, held_products(m, acc, p.keys), strict=True)]
    return _meet(m, p.keys, closure_gamma(m, acc), values, guess)


def held_products(m: MotionState, acc: Accelerations, keys: tuple[Key, ...]) -> list[Array]:
    """The velocity-product part (from `acc`) of the accelerations of the held coordinates."""
    zero = jnp.zeros((), m.q.dtype)
    return [
        point_acceleration(m, acc, key.body, point_of(key))["xyz".index(key.axis)]
        if isinstance(key, PointCoordinate)
        else zero
        for key in keys
    ]


class AskedRows(NamedTuple):
    """The rows of the closure, as own rows, and of held coordinates, in metres.

    Attributes:
        matrix: (n, nv).
        own: how own rows follow from those of the closure.
        doubt: how far the state is off the constraints.
        held_scale: (n − nc,), the mechanism's length for angles, else 1.
    """

    matrix: Array
    own: OwnRows
    doubt: Doubt
    held_scale: Array

    def of(self, target: Array) -> Array:
        """Values (n,) or (n, m) of the closure and of the held coordinates as those of the rows."""
        nc = self.own.scale.shape[0]
        held = (target[nc:].T * self.held_scale).T
        return jnp.concatenate([self.own.of(target[:nc]), held])


def asked_rows(m: MotionState, keys: tuple[Key, ...]) -> AskedRows:
    """The rows that motions with held coordinates have to meet."""
    length, own = mechanism_length(m.mech), own_rows(m)
    _, held = known_rows(m, keys, known_values(m, keys), length)
    rows = jnp.concatenate([own.of(closure_jacobian(m)), held])
    return AskedRows(rows, own, digit_doubt(m), held_scale(m.top, keys, length))


def is_met(rows: Array, x: Array, target: Array, kept: Array | None = None) -> Array:
    """(n,): whether ``rows x = target``, to the precision that is left at a singular position.

    Rows that are not `kept`, because they are redundant, may contradict the others by
    `tolerances.CONTRADICTION`.
    """
    largest = [jnp.max(jnp.abs(y), initial=0.0) for y in (target, rows, x)]
    size = largest[0] + largest[1] * largest[2]
    within = tolerances.agreement(x.dtype)
    if kept is not None:
        within = jnp.where(kept, within, max(within, 1e1 * tolerances.CONTRADICTION))
    return jnp.abs(rows @ x - target) <= within * size


def _meet(
    m: MotionState, keys: tuple[Key, ...], target: Array, values: list[Any], guess: Any
) -> tuple[Array, Array]:
    """``J x = target`` with the held rates at `values`, of least change from `guess`; rows met."""
    guess = jnp.zeros(m.top.nv, m.q.dtype) if guess is None else guess
    check_shape("guess", guess, m.top.nv)
    asked = asked_rows(m, keys)
    rows = asked.matrix
    if rows.shape[0] == 0:
        return guess, jnp.ones(0, bool)
    target = asked.of(jnp.concatenate([target, *(x[None] for x in values)]))
    factors = factor_rows(rows, speed_units(m.mech) ** 2, doubt=asked.doubt)
    change = target - rows @ guess
    contradicted = change - factors.consistent(lax.stop_gradient(change))
    change = change - lax.stop_gradient(contradicted)
    x = factors.solve(change)
    # The Gram matrix squares the condition number; a second solution makes up for that.
    x = guess + x + lax.stop_gradient(factors.solve(change - rows @ x))
    length = mechanism_length(m.mech)
    x = solution(x, rows @ x - target, [target, length * x, m.q], placed_numbers(m.mech))
    assert factors.gram is not None
    return x, is_met(rows, x, target, factors.gram.kept)
