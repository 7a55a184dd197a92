"""Mobility and redundancy at a configuration.

Degrees of freedom, idle spins with their speeds, redundant constraint rows and why they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.graph import Loop, Topology, loops, neutral, topology
from jaxmbd.kinematics import (
    closure_jacobian,
    closure_residual,
    digit_doubt,
    mechanism_length,
    motion_state,
    own_rows,
    propagate_velocities,
    speed_units,
)
from jaxmbd.lanes import compiled, host_jit, whole
from jaxmbd.model import Edge, Mechanism
from jaxmbd.numerics import ldlt_rank_revealing, tolerances

REDUNDANT = (
    "reactions along them are not unique, and small errors of the parts jam the loops. Of what is "
    "drawn in space but moves in one plane, give the points two coordinates (x, y): joints then "
    "have rows in that plane only. Else use a joint that leaves more freedom, as Spherical for "
    "Revolute"
)
"""What redundant rows mean, and the cure, for messages that have named them."""


class Mobility(NamedTuple):
    """Degrees of freedom at a configuration.

    Attributes:
        kutzbach: ``6 n − Σ (6 − f)``, for a planar mechanism ``3 n − Σ (3 − f)``, less one for each
            coupling (a gear pair is a pair that takes one freedom); without drives.
        dof: ``nv − rank J``.
        rank: rank of the constraint Jacobian J.
        idle: bodies that can spin without moving any other body (a link between two balls).
        redundant: names of the rows that depend linearly on the rows before them.
        contradiction: largest closure error that no motion removes [m; moment rows times the
            mechanism's length], because redundant rows contradict each other.

    Example:
        >>> import jaxmbd as mbd
        >>> print(mbd.mobility(mbd.zoo.rssr()))
        Kutzbach 2, degrees of freedom 2 (rank 3)
        idle: the spin of coupler
    """

    kutzbach: int
    dof: int
    rank: int
    idle: tuple[str, ...]
    redundant: tuple[str, ...]
    contradiction: float = 0.0

    def __str__(self) -> str:
        lines = [f"Kutzbach {self.kutzbach}, degrees of freedom {self.dof} (rank {self.rank})"]
        if self.idle:
            lines.append(f"idle: the spin of {', '.join(self.idle)}")
        if self.redundant:
            lines.append(f"redundant rows: {', '.join(self.redundant)}: {REDUNDANT}")
        if self.contradiction > 0.0:
            lines.append(f"they contradict each other by {self.contradiction:.2g} m")
        return "\n".join(lines)


def mobility(mech: Mechanism, q: Any = None) -> Mobility:
    """Mobility of a mechanism at q (nq,), by default as drawn; not for use inside `jit`.

    The rank is found from the singular values of the scaled Jacobian; a row is redundant if its
    angle to the span of the rows before it is less than 1e-5 rad (6e-3 in single precision).

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.mobility(mbd.zoo.rssr()).idle
        ('coupler',)
    """
    top = topology(mech)
    q = jnp.asarray(neutral(mech) if q is None else q, mech.dtype)
    rows, kept, twists, errors, doubt, length = map(np.asarray, examined(mech, q))
    lost = max(tolerances.agreement(mech.dtype), float(doubt))
    each = 3 if mech.structure.planar else 6
    freedom = each * len(top.bodies) - len(top.couplings)
    freedom -= sum(len(e.kind.rows) for e in mech.structure.joints)
    redundant: tuple[str, ...] = ()
    null = np.eye(top.nv)
    rank = 0
    if top.nc:
        _, sizes, vh = np.linalg.svd(rows)
        rank = int(np.sum(sizes > lost * max(sizes, default=0.0)))
        null = vh[rank:].T
        redundant = tuple(n for n, k in zip(top.row_names, kept, strict=True) if not k)
    left = _contradiction(rows, kept, errors, float(length)) if redundant else 0.0
    return Mobility(freedom, top.nv - rank, rank, _idle(mech, twists @ null), redundant, left)


def _contradiction(rows: np.ndarray, kept: np.ndarray, errors: np.ndarray, length: float) -> float:
    """Largest part [m] of the closure errors outside the range of the rows.

    Zero where that is rounding, or of second order in how far the loops are open.
    """
    # The range is that of the rows as sums of the kept ones.
    sums = np.linalg.lstsq(rows[kept].T, rows.T)[0].T
    removable = sums @ np.linalg.lstsq(sums, errors)[0]
    opened, left = np.max(np.abs(removable)), np.max(np.abs(errors - removable))
    least = tolerances.closing(rows.dtype) * length + 1e1 * opened**2 / length
    return float(left) if left > least else 0.0


@host_jit
def examined(mech: Mechanism, q: Array) -> tuple[Array, ...]:
    """What `mobility` asks of a configuration.

    Returns:
        own rows (nc, nv) by units of the speeds; which of them are independent (nc,); twists of a
        unit of each speed (bodies, 6, nv), zero where no body is held by balls alone, which could
        spin idly; the errors (nc,) of own rows; the relative error up to which rows are known, as
        `digit_doubt`; the mechanism's length [m].
    """
    return compiled("auto", _rows_and_twists, mech, q)


def _rows_and_twists(mech: Mechanism, q: Array) -> tuple[Array, ...]:
    m = motion_state(mech, q)
    own, doubt = own_rows(m), digit_doubt(m)
    units, errors = speed_units(mech), own.of(closure_residual(m))
    rows = own.of(closure_jacobian(m)) * units
    alike = _alike(rows, doubt.loops)
    rows, errors = alike[:, None] * rows, alike * errors
    kept = ldlt_rank_revealing(rows @ rows.T, doubt=doubt)[2] if m.top.nc else jnp.ones(0, bool)

    def twists(v: Array) -> Array:
        found = propagate_velocities(mech, m.pos, v)
        return jnp.stack([*map(jnp.concatenate, zip(found.angular, found.linear, strict=True))])

    known = jnp.zeros((), q.dtype) if doubt.error is None else doubt.error
    spins = jnp.zeros((len(m.top.bodies), 6, m.top.nv), q.dtype)
    if between_balls(mech):
        spins = jax.vmap(twists, in_axes=1, out_axes=2)(jnp.diag(units))
    return rows, kept, spins, errors, known, mechanism_length(mech)


def _alike(rows: Array, loops: Array | None) -> Array:
    """Factors (nc,) by which rows of couplings get the length of the longest row of a loop.

    A gear's length in metres is that of its ratio, which says nothing of the loops.
    """
    if loops is None:
        return jnp.ones(len(rows), rows.dtype)
    lengths = jnp.sqrt(jnp.sum(rows * rows, axis=1))
    longest = jnp.max(jnp.where(loops, lengths, 0.0))
    usable = ~loops & (lengths > 0.0) & (longest > 0.0)
    return jnp.where(usable, longest / jnp.where(usable, lengths, 1.0), 1.0)


def between_balls(mech: Mechanism) -> dict[int, list[Edge]]:
    """Bodies connected by two or more joints, all of them balls, by index, with these joints."""
    found = {}
    for i, body in enumerate(topology(mech).bodies):
        on = [e for e in mech.structure.joints if body in (e.a, e.b)]
        if len(on) > 1 and all(e.kind.ball for e in on):
            found[i] = on
    return found


def _idle(mech: Mechanism, twists: np.ndarray) -> tuple[str, ...]:
    """Bodies between balls that can spin while all other bodies rest.

    `twists` (bodies, 6, motions) are those of the free motions.
    """
    motions, idle = twists.shape[2], []
    for i in between_balls(mech) if motions else ():
        others = np.delete(twists, i, axis=0).reshape(-1, motions)
        sizes = np.linalg.svd(others, compute_uv=False) if others.size else np.zeros(0)
        if np.sum(sizes > tolerances.agreement(mech.dtype)) < motions:
            idle.append(topology(mech).bodies[i])
    return tuple(idle)


_TRACE = 1e-3
"""Shares of a row below this one of the largest are not told."""


class RedundantRow(NamedTuple):
    """A constraint row that depends linearly on the rows before it.

    Attributes:
        name: of the row.
        part: the cut joint, coupling or drive that it belongs to.
        rows: the independent rows that it is a sum of; empty if nothing can move its way at all.
        loops: what its cut joint closes, then what those of `rows` close; none for couplings and
            drives.
        force, moment: (3,) in world axes, at b's joint point of the cut joint: the load that the
            loops can hold within themselves, of which equilibrium knows nothing. The larger of them
            has unit length, moments counted over the mechanism's length; None for couplings and
            drives.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.redundancy(mbd.zoo.bricard()).rows[0].name
        'J3 moment 2'
    """

    name: str
    part: str
    rows: tuple[str, ...]
    loops: tuple[Loop, ...]
    force: tuple[float, ...] | None
    moment: tuple[float, ...] | None

    def __str__(self) -> str:
        if self.force is None or self.moment is None:
            return f"{self.name} follows from {', '.join(self.rows) or 'nothing that moves'}"
        loads = (("a force along", self.force), ("a moment about", self.moment))
        what = " with ".join(f"{text} {_shown(x)}" for text, x in loads if any(x))
        cuts = " and ".join(loop.cut for loop in self.loops)
        many = len(self.loops) > 1
        return f"{self.name}: the loop{'s' * many} of {cuts} can hold {what} within " + (
            "themselves" if many else "itself"
        )


def _shown(x: tuple[float, ...]) -> str:
    size = float(np.linalg.norm(x))
    return f"({', '.join(f'{y / size:.3g}' for y in x)})"


class Redundancy(NamedTuple):
    """What holds a mechanism more than once, and what nothing else notices.

    Attributes:
        mobility: degrees of freedom, at the same configuration.
        rows: the redundant rows, in their order.
        idle: the speeds, by name, with which each idle body spins.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.redundancy(mbd.zoo.four_bar())
        >>> print(found.rows[0])
        C force 2: the loop of C can hold a force along (0, 1, 0) within itself
    """

    mobility: Mobility
    rows: tuple[RedundantRow, ...]
    idle: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        lines = [str(row) for row in self.rows] or ["no redundant rows"]
        lines += [f"idle: {body} spins by {', '.join(v)}" for body, v in self.idle.items()]
        return "\n".join(lines)


def redundancy(mech: Mechanism, q: Any = None) -> Redundancy:
    """Why rows are redundant at q (nq,), by default as drawn; not for use inside `jit`.

    Each redundant row of the scaled Jacobian J, as `mobility` names them, is a sum of independent
    rows before it, found by least squares. The coefficients are multipliers with ``Jᵀ λ = 0``, a
    load that its loops can hold within themselves: the reactions along it cannot be found from
    equilibrium, and errors of the parts in its direction jam the loops.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.redundancy(mbd.zoo.rssr())
        >>> found.rows, dict(found.idle)
        ((), {'coupler': ('A[0]', 'A[1]', 'A[2]')})
    """
    top = topology(mech)
    q = jnp.asarray(neutral(mech) if q is None else q, mech.dtype)
    free = mobility(mech, q)
    rows, _, twists, _, _, length = map(np.asarray, examined(mech, q))
    circuits = {loop.cut: loop for loop in loops(mech)}
    parts = [_part(top, k) for k in range(top.nc)]
    kept = [k for k, name in enumerate(top.row_names) if name not in free.redundant]
    small = tolerances.agreement(mech.dtype)
    shares = {
        k: _shares(rows, k, [j for j in kept if j < k], small)
        for k in range(top.nc)
        if k not in kept
    }
    own = np.zeros((len(shares), top.nc), mech.dtype)
    for line, (k, share) in zip(own, shares.items(), strict=True):
        line[[k, *share]] = -1.0, *share.values()
    loads = np.asarray(_loads(mech, q, own)) if shares and circuits else [None] * len(shares)
    found = []
    for (k, share), carried in zip(shares.items(), loads, strict=True):
        around = dict.fromkeys(parts[j] for j in (k, *share))
        closed = tuple(circuits[part] for part in around if part in circuits)
        load: Any = (None, None)
        if carried is not None and parts[k] in circuits:
            load = _directed(carried[top.cut.index(parts[k])], float(length))
        names = tuple(top.row_names[j] for j in share)
        found.append(RedundantRow(top.row_names[k], parts[k], names, closed, *load))
    return Redundancy(free, tuple(found), _idle_speeds(mech, free, rows, twists))


def _part(top: Topology, row: int) -> str:
    places = ((name, place.rows) for name, place in top.layout.items())
    return next(name for name, rows in places if rows and rows.start <= row < rows.stop)


def _shares(rows: np.ndarray, k: int, before: list[int], small: float) -> dict[int, float]:
    """Which of the rows `before`, times what, sum up to row k."""
    size = np.linalg.norm(rows[k])
    if not before or size <= small * np.max(np.linalg.norm(rows, axis=1)):
        return {}
    share = np.linalg.lstsq(rows[before].T, rows[k], rcond=None)[0]
    felt = np.abs(share) * np.linalg.norm(rows[before], axis=1)
    most = _TRACE * np.max(felt)
    return {j: float(s) for j, s, f in zip(before, share, felt, strict=True) if f > most}


@whole
def _loads(mech: Mechanism, q: Array, own: Array) -> Array:
    """Wrenches (n, cuts, 6) of the cut joints for multipliers (n, nc) of own rows."""
    m = motion_state(mech, q)
    scaled = own_rows(m)
    lam = [scaled.multipliers(x) for x in own]
    cuts = [(m.wrenches(cut)[0], m.top.layout[cut].rows) for cut in m.top.cut]
    return jnp.stack([jnp.stack([basis @ x[rows] for basis, rows in cuts]) for x in lam])


def _directed(wrench: np.ndarray, length: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Force and moment by the length of a wrench, the larger one of length one."""
    moment, force = wrench[:3] / length, wrench[3:]
    size = max(np.linalg.norm(moment), np.linalg.norm(force))
    sign = np.sign(max((*force, *moment), key=lambda x: abs(np.round(x, 9))))
    parts = np.round(np.stack([force, moment]) / (sign * size), 9) + 0.0
    return tuple(parts[0].tolist()), tuple(parts[1].tolist())


def _idle_speeds(
    mech: Mechanism, free: Mobility, rows: np.ndarray, twists: np.ndarray
) -> dict[str, tuple[str, ...]]:
    """The speeds of the motion in which an idle body spins and all others rest."""
    top, found = topology(mech), {}
    for body in free.idle:
        others = np.delete(twists, top.index(body), axis=0)
        _, _, vh = np.linalg.svd(np.concatenate([rows, others.reshape(-1, top.nv)]))
        spin = np.abs(vh[-1])
        moving = spin > _TRACE * np.max(spin)
        found[body] = tuple(n for n, moves in zip(top.speed_names, moving, strict=True) if moves)
    return found
