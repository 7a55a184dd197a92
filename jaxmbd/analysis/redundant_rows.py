"""Redundancy: why constraint rows are redundant, and which speeds an idle spin has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbd.analysis.freedoms import Mobility, examined, mobility
from jaxmbd.graph import Loop, Topology, loops, neutral, topology
from jaxmbd.kinematics import MotionState, motion_state
from jaxmbd.kinematics.own_rows import own_rows
from jaxmbd.kinematics.scales import mechanism_length
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics import tolerances

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
    rows, _, twists, *_ = map(np.asarray, examined(mech, q))
    m = motion_state(mech, q)
    circuits = {loop.cut: loop for loop in loops(mech)}
    parts = [_part(top, k) for k in range(top.nc)]
    kept = [k for k, name in enumerate(top.row_names) if name not in free.redundant]
    found = []
    for k in (k for k in range(top.nc) if k not in kept):
        share = _shares(rows, k, [j for j in kept if j < k], tolerances.agreement(mech.dtype))
        around = dict.fromkeys(parts[j] for j in (k, *share))
        closed = tuple(circuits[part] for part in around if part in circuits)
        load = _load(m, parts[k], share | {k: -1.0}) if parts[k] in circuits else (None, None)
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


def _load(
    m: MotionState, cut: str, share: Mapping[int, float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Force and moment of a cut joint for multipliers of scaled rows."""
    place = m.top.layout[cut].rows
    assert place is not None
    own = jnp.asarray([share.get(k, 0.0) for k in range(m.top.nc)], m.q.dtype)
    lam = own_rows(m).multipliers(own)[place]
    wrench = np.asarray(m.wrenches(cut)[0]) @ np.asarray(lam)
    moment, force = wrench[:3] / float(mechanism_length(m.mech)), wrench[3:]
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
