"""Closed loops embedded: the equations of motion in as many speeds as there are freedoms.

Speeds d follow from the others, i, by as many rows of J as there are of them,

    v_d = G v_i,   G = −J_d⁻¹ J_i,

and with ``N = [1; G]`` the KKT system is ``NᵀM N v̇_i = Nᵀ(f − M x)``, where x has the d alone that
meet the right side (A. Jain, "Multibody graph transformations and analysis, part II: closed-chain
constraint embedding", Nonlinear Dynamics 67, 2012). Zeros are literal, so that loops of different
legs have nothing to do with each other, and of the mass matrix what is left is small.

Which rows and speeds are taken is decided once, by the mechanism as drawn (`embedding`), and no
more than proposed: each sample's numbers tell whether the rows left out follow from the others and
whether J_d is far from singular (`Embedded.fine`). Where that is not so, as at a dead centre of the
speeds i, the KKT system is solved as it is (`jaxmbd.dynamics.kkt`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import motion_state, own_jacobian, speed_units
from jaxmbd.lanes import Recent, compiled, host_jit, traced_once
from jaxmbd.model import Mechanism
from jaxmbd.numerics import (
    PivotedLU,
    ltdl,
    ltdl_backward,
    ltdl_forward,
    pivoted_lu,
    squared_rows,
    symmetric,
    tolerances,
)

LEAST = 12
"""Rows from which on loops are embedded: two loops in space. Below, it is some tenths of a step."""
FIRM = 3e-3
"""Least pivot of the rows, relative to the largest, with which few digits are lost; in single
precision it is ``ε^¼`` = 0.02."""
CERTAIN = 0.05
"""The same for the mechanism as drawn, so that few of its motions pass `FIRM`."""
ALIKE = 0.5
"""Share of a row's largest entry from which on a later speed is preferred to follow, so that small
changes of a mechanism's numbers do not change the choice and with it the program."""


@dataclass(frozen=True)
class Embedding:
    """Which rows are used, and which speeds follow from the others by them.

    Attributes:
        loops: for each loop, in this order, its rows of J and as many speeds d.
    """

    loops: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


def embedding(mech: Mechanism) -> Embedding | None:
    """How the loops are embedded, by their Jacobian as drawn; None if they are not.

    They are not if they are few, have gears or drives, or are so many that M is factored
    recursively or J has blocks; if points or directions are traced; or if the mechanism is drawn
    near a singular position.
    """
    top = topology(mech)
    if top.nc < LEAST or top.couplings or top.drives or top.loop_blocks is not None:
        return None
    placed = jax.tree_util.tree_leaves((mech.points, mech.joints))
    if top.elimination.is_recursive or any(isinstance(x, Tracer) for x in placed):
        return None
    numbers = tuple((np.shape(x), np.asarray(x).tobytes()) for x in placed)
    name = jax.tree_util.tree_structure(mech), numbers
    return _known.get(name, lambda: _chosen(mech))


_known = Recent(64)


def _chosen(mech: Mechanism) -> Embedding | None:
    """Rows in their order, of short loops first, and the last of the large entries of each."""
    top = topology(mech)
    with jax.ensure_compile_time_eval():
        left = np.asarray(_compiled("auto", _drawn_jacobian, mech))
    lengths = np.linalg.norm(left, axis=1)
    places = [top.layout[name].rows for name in top.cut]
    loops = sorted((p for p in places if p), key=lambda p: np.any(left[p], axis=0).sum())
    found, pivots = [], []
    for loop in loops:
        rows: list[int] = []
        following: list[int] = []
        for k in range(loop.start, loop.stop):
            size, least = np.linalg.norm(left[k]), tolerances.consistency(float)
            if size <= least * max(lengths[k], least * lengths.max()):
                continue
            column = int(np.flatnonzero(np.abs(left[k]) >= ALIKE * np.abs(left[k]).max())[-1])
            pivots.append(np.abs(left[k, column]))
            left = left - np.outer(left[:, column] / left[k, column], left[k])
            rows.append(k)
            following.append(column)
        found.append((tuple(rows), tuple(following)))
    return Embedding(tuple(found)) if min(pivots) >= CERTAIN * max(pivots) else None


def _drawn_jacobian(mech: Mechanism) -> Array:
    """J (nc, nv) of own rows as drawn, speeds in one unit."""
    return own_jacobian(motion_state(mech, jnp.asarray(neutral(mech)))) * speed_units(mech)


_compiled = host_jit(compiled)


class EmbeddedLoop(NamedTuple):
    """One loop: its rows ``J_l N`` of the speeds that are free without it, which N maps to all.

    Attributes:
        own: those (n, n) of the speeds that follow.
        factors: of `own`.
        along: the columns (nv, n) of N of the speeds that follow.
        rows: J_l (n, nv).
    """

    own: Array
    factors: PivotedLU
    along: Array
    rows: Array


def _solved(factors: PivotedLU, b: Array) -> Array:
    """X (n, m) with ``A X = b``."""
    return jax.vmap(factors.solve, 1, 1)(b)


class Embedded(NamedTuple):
    """The factors of an embedded system; speeds are in one unit.

    Attributes:
        fine: whether the choice of rows and speeds suits this sample.
        units: of the speeds (nv,), or None.
        mass: M (nv, nv).
        loops: in the order of the embedding.
        motions: N.
        lower, pivots: factors of ``NᵀM N``.
    """

    fine: Array
    units: Array | None
    mass: Array
    loops: tuple[EmbeddedLoop, ...]
    motions: Array
    lower: Array
    pivots: Array


@partial(traced_once, static=("chosen",))
def embedded(chosen: Embedding, mass: Array, jacobian: Array, units: Array | None) -> Embedded:
    """Factor a system with the loops embedded.

    Args:
        chosen: the rows and speeds.
        mass: M (nv, nv).
        jacobian: J (nc, nv) of own rows.
        units: those of the speeds (nv,), if they are not all the same.
    """
    if units is not None:
        jacobian, mass = jacobian * units, units[:, None] * mass * units
    n, free = len(mass), list(range(len(mass)))
    motions, loops = jnp.asarray(np.eye(n, dtype=mass.dtype)), []
    for rows, following in chosen.loops:
        at = np.asarray(rows, int)
        d = np.array([free.index(k) for k in following], int)
        i = np.setdiff1d(np.arange(len(free)), d)
        reduced = jacobian[at] @ motions
        own = reduced[:, d]
        factors = pivoted_lu(own)
        loops.append(EmbeddedLoop(own, factors, motions[:, d], jacobian[at]))
        motions = motions[:, i] - motions[:, d] @ _solved(factors, reduced[:, i])
        free = [free[k] for k in i]
    pivots = jnp.concatenate([jnp.diagonal(loop.factors.upper) for loop in loops]) ** 2
    used = [row for rows, _ in chosen.loops for row in rows]
    others = jacobian[np.setdiff1d(np.arange(len(jacobian)), used)]
    least = max(FIRM, tolerances.rounding(mass.dtype) ** 0.25)
    firm = jnp.min(pivots) >= least**2 * jnp.max(pivots)
    follows = _follow(others, motions, jnp.max(pivots))
    left = symmetric(motions.T @ (mass @ motions))
    error = tolerances.rounding(mass.dtype, 64) * jnp.diagonal(left)
    lower, inertias, sound = ltdl(left, error)
    fine = firm & follows & jnp.all(sound)
    return Embedded(fine, units, mass, tuple(loops), motions, lower, inertias)


def _follow(rows: Array, motions: Array, largest: Array) -> Array:
    """Whether rows that are not used follow from the others, or are rounding errors.

    Of loops that are open they follow less well: then the KKT system is solved.
    """
    redundant = tolerances.redundancy(rows.dtype) * squared_rows(rows)
    faint = tolerances.faintness(rows.dtype) * largest
    return jnp.all(squared_rows(rows @ motions) <= jnp.maximum(redundant, faint))


@partial(traced_once, static=("chosen",))
def solve_embedded(chosen: Embedding, k: Embedded, force: Array, rhs: Array) -> Array:
    """``[x; −λ]`` (nv + nc, m) with ``M x = f + Jᵀ λ``, ``J x = c``; λ is zero in unused rows.

    Args:
        chosen: the rows and speeds.
        k: the factors.
        force: f (nv, m).
        rhs: c (nc, m).
    """
    f = force if k.units is None else k.units[:, None] * force
    x = jnp.zeros_like(f)
    for (rows, _), loop in zip(chosen.loops, k.loops, strict=True):
        x = x + loop.along @ _solved(loop.factors, rhs[np.asarray(rows, int)] - loop.rows @ x)
    y = ltdl_backward(k.lower, k.motions.T @ (f - k.mass @ x)) / k.pivots[:, None]
    x = x + k.motions @ ltdl_forward(k.lower, y)
    # Of the loops so far J N is zero, so that of Nᵀ Jᵀ (−λ) = Nᵀ (f − M x) the last one's is left.
    push, force = [jnp.zeros_like(rhs[:0])], f - k.mass @ x
    for loop in k.loops[::-1]:
        own = _solved(pivoted_lu(loop.own.T), loop.along.T @ force)
        force = force - loop.rows.T @ own
        push.insert(0, own)
    used = [row for rows, _ in chosen.loops for row in rows]
    others = np.setdiff1d(np.arange(len(rhs)), used)
    push = jnp.concatenate([*push, jnp.zeros_like(rhs[: len(others)])])
    x = x if k.units is None else k.units[:, None] * x
    return jnp.concatenate([x, push[np.argsort([*used, *others])]])
