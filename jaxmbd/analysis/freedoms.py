"""Mobility: degrees of freedom, idle spins and redundant constraint rows at a configuration."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import MotionState, motion_state
from jaxmbd.kinematics.propagation import propagate_velocities
from jaxmbd.kinematics.scales import scaled_jacobian
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

    def __str__(self) -> str:
        lines = [f"Kutzbach {self.kutzbach}, degrees of freedom {self.dof} (rank {self.rank})"]
        if self.idle:
            lines.append(f"idle: the spin of {', '.join(self.idle)}")
        if self.redundant:
            lines.append(f"redundant rows: {', '.join(self.redundant)}")
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
    m = motion_state(mech, q)
    rows = scaled_jacobian(m)
    lost = tolerances.agreement(mech.dtype)
    each = 3 if mech.structure.planar else 6
    freedom = each * len(top.bodies) - sum(len(e.kind.rows) for e in mech.structure.joints)
    redundant: tuple[str, ...] = ()
    null = np.eye(top.nv)
    rank = 0
    if top.nc:
        _, sizes, vh = np.linalg.svd(np.asarray(rows))
        rank = int(np.sum(sizes > lost * max(sizes[0], 1e-300)))
        null = vh[rank:].T
        kept = np.asarray(ldlt_rank_revealing(rows @ rows.T)[2])
        redundant = tuple(n for n, k in zip(top.row_names, kept, strict=True) if not k)
    return Mobility(freedom, top.nv - rank, rank, _idle(m, null), redundant)


def _idle(m: MotionState, null: np.ndarray) -> tuple[str, ...]:
    """Bodies connected by ball joints only that can spin while all other bodies rest."""
    mech, top = m.mech, m.top
    if null.shape[1] == 0:
        return ()
    moves = [propagate_velocities(mech, m.pos, jnp.asarray(n)) for n in null.T]
    twists = np.array(
        [[np.concatenate([w, u]) for w, u in zip(v.angular, v.linear, strict=True)] for v in moves]
    )
    idle = []
    for i, body in enumerate(top.bodies):
        joints = [e for e in mech.structure.joints if body in (e.a, e.b)]
        balls = all(e.kind.ball for e in joints)
        if len(joints) < 2 or not balls:
            continue
        others = np.delete(twists, i, axis=1).reshape(len(moves), -1)
        sizes = np.linalg.svd(others, compute_uv=False) if others.size else np.zeros(0)
        if np.sum(sizes > tolerances.agreement(mech.dtype)) < len(moves):
            idle.append(body)
    return tuple(idle)
