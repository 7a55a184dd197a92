"""The rows of the constraints in units and directions of their own.

Rows of the constraints are forces along the world's axes and moments. All solvers use them in one
unit, and along directions that turn with the mechanism: in a loop of parallel axes on a moving body
two of the world's axes may come to be parallel within the plane of motion, and which of the two
rows is redundant would be decided by rounding errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.kinematics.closure import closure_jacobian, closure_residual, closure_rows
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.kinematics.scales import mechanism_length, row_scale
from jaxmbd.numerics import BlockRows, Doubt, Rows, tolerances, turned


class OwnRows(NamedTuple):
    """How own rows follow from those of the constraints; multipliers of own rows are in newtons.

    Attributes:
        scale: (nc,), the factors applied to the rows.
        turns: by the first of three force rows, the directions (3, 3) that replace the world's axes
            (`Joint.load_directions`).
    """

    scale: Array
    turns: Mapping[int, Array] = {}  # noqa: RUF012

    def of(self, x: Array) -> Array:
        """Values (nc,) or (nc, m) of the constraints' rows as values of own rows."""
        return self._aligned((x.T * self.scale).T)

    def multipliers(self, x: Array) -> Array:
        """λ (nc,) or (nc, m) of the constraints [N, N·m] from those of own rows [N]."""
        for k, turn in self.turns.items():
            x = turned(x, k, turn.T)
        return (x.T * self.scale).T

    def own_multipliers(self, lam: Array) -> Array:
        """The inverse of `multipliers`."""
        return self._aligned((lam.T / self.scale).T)

    def _aligned(self, x: Array) -> Array:
        for k, turn in self.turns.items():
            x = turned(x, k, turn)
        return x


def own_rows(m: MotionState) -> OwnRows:
    """The scale and the directions of a state's own rows."""
    return OwnRows(row_scale(m), dict(_turns(m)))


def _turns(m: MotionState) -> Iterator[tuple[int, Array]]:
    """First row and directions of the cut joints of loops that hang on a moving body."""
    for name in m.top.cut:
        joint, place = m.mech.joint(name), m.top.layout[name].rows
        carried = set(m.top.columns(joint.a)) & set(m.top.columns(joint.b))
        if carried and place and (turn := joint.load_directions(m.offset(name)[0])) is not None:
            yield place.start, turn


def own_jacobian(m: MotionState) -> Array:
    """J (nc, nv) of own rows: all multipliers in newtons."""
    return own_rows(m).of(closure_jacobian(m))


def stored_jacobian(m: MotionState, own: OwnRows) -> Rows:
    """The same, stored by `Topology.loop_blocks` if the mechanism has them."""
    rows = closure_rows(m)
    if not isinstance(rows, BlockRows):
        return own.of(rows)
    rows = rows.scaled(own.scale)
    for k, turn in own.turns.items():
        rows = rows.turned(k, turn)
    return rows


def row_doubt(m: MotionState) -> Doubt:
    """How far the loops are open, as an error of the rows, and what is rounding.

    On the constraints it is rounding, and redundant rows are found by their pivots. At a stage of a
    Runge-Kutta step or an iterate of a projection the loops are open by φ, rows are turned by about
    φ over the mechanism's length, and redundant rows would contradict the others by as much.
    """
    rows = [place.rows for name in m.top.cut if (place := m.top.layout[name]).rows]
    if not rows:
        return Doubt()
    most, planar = max(map(len, m.top.row_groups), default=0), m.mech.structure.planar
    end = rows[-1].stop  # those of couplings and drives follow
    loops = None if end == m.top.nc else jnp.asarray(np.arange(m.top.nc) < end)
    if planar and most < 3:  # the two rows of a pin, which are neither
        return Doubt(loops=loops)
    length = lax.stop_gradient(mechanism_length(m.mech))
    rounding = tolerances.rounding(m.q.dtype, 64) * length
    if most < 2:
        return Doubt(None, rounding, loops)
    phi = lax.stop_gradient(row_scale(m) * closure_residual(m))
    each = tolerances.TURNED_BY_OPENING / length  # a run divides once
    turned = jnp.minimum(each * jnp.max(jnp.abs(phi[:end])), tolerances.MOST_TURNED)
    return Doubt(turned, rounding, loops)


def digit_doubt(m: MotionState) -> Doubt:
    """The same for a state that is closed but for a file's digits, on which runs may start.

    Beyond `tolerances.CONTRADICTION` its rows are taken as they are.
    """
    found = row_doubt(m)
    if found.error is None:
        return found
    digits = tolerances.TURNED_BY_OPENING * tolerances.CONTRADICTION
    return found._replace(error=jnp.where(found.error <= digits, found.error, 0.0))
