"""Scaling of mixed units by the mechanism's length.

Angles times this length are travels, moments divided by it are forces; so all rows, all speeds and
all efforts get a common unit each, and one tolerance fits them all.

Rows of the constraints are forces along the world's axes and moments. All solvers use `own_rows`:
in one unit, and along directions that turn with the mechanism: in a loop of parallel axes on a
moving body two of the world's axes may come to be parallel within the plane of motion, and which of
the two rows is redundant would be decided by rounding errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.graph import topology
from jaxmbd.kinematics.closure import closure_jacobian, closure_residual, closure_rows
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.lanes import nothing, traced_once
from jaxmbd.model import Mechanism
from jaxmbd.numerics import AnyRows, BlockRows, Doubt, row_sum, tolerances, turned


@partial(traced_once, runs=nothing)
def mechanism_length(mech: Mechanism) -> Array:
    """A typical length [m]: RMS distance of points and COMs from their mean; 1 if they coincide.

    NaN where squares of the distances are beyond the floating-point type.

    Results of least norm depend on it where they are not unique, so it has its derivative.
    """
    points = [mech.point(name) for name in mech.structure.points]
    points += [mech.com(body) for body in mech.structure.bodies]
    share = 1.0 / len(points)

    def moments(x: Array) -> Array:
        return jnp.stack([x - points[0], (x - points[0]) ** 2])

    first, second = share * row_sum(points, moments)
    square = jnp.sum(second - first**2)
    flat = square <= 0.0  # not where it is NaN
    return jnp.where(flat, 1.0, jnp.sqrt(jnp.where(flat, 1.0, square)))


def row_scale(m: MotionState) -> Array:
    """(nc,): 1 for force rows, the mechanism's length for moment rows."""
    moment = np.array([kind == "moment" for kind in m.top.row_kinds], bool)
    if not moment.any():
        return jnp.ones(m.top.nc, m.q.dtype)
    return jnp.where(moment, mechanism_length(m.mech), 1.0).astype(m.q.dtype)


def speed_units(mech: Mechanism) -> Array:
    """(nv,): the mechanism's length for travels, 1 for angles."""
    travel = np.array([k == "travel" for k in topology(mech).speed_kinds], bool)
    return jnp.where(travel, mechanism_length(mech), 1.0)


def placed_numbers(mech: Mechanism) -> list[Array]:
    """The parameters that closure errors depend on: of points, joints, couplings and drives.

    Centres of mass are among them: links are measured from there, so that they count by rounding.
    """
    centres = [body.com for body in mech.bodies.values()]
    parts = (mech.points, mech.joints, mech.couplings, mech.drives, centres)
    leaves = [jnp.asarray(x) for x in jax.tree_util.tree_leaves(parts) if hasattr(x, "dtype")]
    return [x for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)]


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


def stored_jacobian(m: MotionState, own: OwnRows) -> AnyRows:
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
