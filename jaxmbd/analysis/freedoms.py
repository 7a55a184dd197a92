"""Mobility: degrees of freedom, idle spins and redundant constraint rows at a configuration."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics.backend import compiled, host_jit
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.closure import closure_jacobian, closure_residual
from jaxmbd.kinematics.own_rows import digit_doubt, own_rows
from jaxmbd.kinematics.propagation import propagate_velocities
from jaxmbd.kinematics.scales import mechanism_length, speed_units
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.rank_revealing import ldlt_rank_revealing


class Mobility(NamedTuple):
    """Degrees of freedom at a configuration.

    Attributes:
        kutzbach: ``6 n − Σ (6 − f)``, for a planar mechanism ``3 n − Σ (3 − f)``; without drives.
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
            lines.append(f"redundant rows: {', '.join(self.redundant)}")
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
    rows, kept, twists, errors, doubt = map(np.asarray, examined(mech, q))
    lost = max(tolerances.agreement(mech.dtype), float(doubt))
    each = 3 if mech.structure.planar else 6
    freedom = each * len(top.bodies) - sum(len(e.kind.rows) for e in mech.structure.joints)
    redundant: tuple[str, ...] = ()
    null = np.eye(top.nv)
    rank = 0
    if top.nc:
        _, sizes, vh = np.linalg.svd(rows)
        rank = int(np.sum(sizes > lost * max(sizes[0], 1e-300)))
        null = vh[rank:].T
        redundant = tuple(n for n, k in zip(top.row_names, kept, strict=True) if not k)
    left = _contradiction(mech, rows, kept, errors) if redundant else 0.0
    return Mobility(freedom, top.nv - rank, rank, _idle(mech, twists @ null), redundant, left)


def _contradiction(
    mech: Mechanism, rows: np.ndarray, kept: np.ndarray, errors: np.ndarray
) -> float:
    """Largest part [m] of the closure errors outside the range of the rows.

    Zero where that is rounding, or of second order in how far the loops are open.
    """
    # The range is that of the rows as sums of the kept ones.
    sums = np.linalg.lstsq(rows[kept].T, rows.T)[0].T
    removable = sums @ np.linalg.lstsq(sums, errors)[0]
    opened, left = np.max(np.abs(removable)), np.max(np.abs(errors - removable))
    length = float(mechanism_length(mech))
    least = tolerances.closing(mech.dtype) * length + 1e1 * opened**2 / length
    return float(left) if left > least else 0.0


@host_jit
def examined(mech: Mechanism, q: Array) -> tuple[Array, ...]:
    """What `mobility` asks of a configuration.

    Returns:
        own rows (nc, nv) by units of the speeds; which of them are independent (nc,); twists of a
        unit of each speed (bodies, 6, nv), zero where no body is held by balls alone, which could
        spin idly; the errors (nc,) of own rows; the relative error up to which rows are known, as
        `digit_doubt`.
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
    if not _between_balls(mech):
        return rows, kept, jnp.zeros((len(m.top.bodies), 6, m.top.nv), q.dtype), errors, known
    spins = jax.vmap(twists, in_axes=1, out_axes=2)(jnp.diag(units))
    return rows, kept, spins, errors, known


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


def _between_balls(mech: Mechanism) -> list[int]:
    """Bodies connected by two or more joints, all of them balls."""
    joints = {
        body: [e for e in mech.structure.joints if body in (e.a, e.b)]
        for body in topology(mech).bodies
    }
    return [
        i for i, on in enumerate(joints.values()) if len(on) > 1 and all(e.kind.ball for e in on)
    ]


def _idle(mech: Mechanism, twists: np.ndarray) -> tuple[str, ...]:
    """Bodies between balls that can spin while all other bodies rest.

    `twists` (bodies, 6, motions) are those of the free motions.
    """
    motions, idle = twists.shape[2], []
    for i in _between_balls(mech) if motions else ():
        others = np.delete(twists, i, axis=0).reshape(-1, motions)
        sizes = np.linalg.svd(others, compute_uv=False) if others.size else np.zeros(0)
        if np.sum(sizes > tolerances.agreement(mech.dtype)) < motions:
            idle.append(topology(mech).bodies[i])
    return tuple(idle)
