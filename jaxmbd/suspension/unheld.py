"""Freedoms of a corner that nobody holds: the wheel could be anywhere along them.

Of the motions in which the closed loops and the held coordinates stay as they are, those count that
move the upright, the chassis, or a point with a role on another body; the spin of a wheel or of a
rod between two balls does not.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis import Key
from jaxmbd.graph import neutral
from jaxmbd.kinematics import mechanism_length, motion_state, speed_units
from jaxmbd.lanes import compiled, host_jit
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.observe import counted, held_rows, point_moves
from jaxmbd.suspension.corner import Corner


def unheld(mech: Mechanism, corner: Corner, keys: tuple[Key, ...]) -> tuple[int, list[str]]:
    """How many freedoms are not held as drawn, and joints that hold them; not for use in `jit`.

    Args:
        mech: the mechanism.
        corner: the roles.
        keys: the coordinates that are held or moved.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import zoo_corner
        >>> from jaxmbd.suspension.motions import wheel_key
        >>> from jaxmbd.suspension.unheld import unheld
        >>> roles = zoo_corner("double_wishbone_kinematic")
        >>> unheld(mbd.zoo.double_wishbone_kinematic(), roles, (wheel_key(roles).coordinate,))
        (1, ['rack'])
    """
    rows, moves = (np.asarray(x) for x in _compiled(corner, keys, mech))
    return counted(mech, rows, moves, _likely(mech, corner))


@host_jit
def _compiled(corner: Corner, keys: tuple[Key, ...], mech: Mechanism) -> tuple[Array, Array]:
    return compiled("auto", lambda mech: _rows(corner, keys, mech), mech)


def _rows(corner: Corner, keys: tuple[Key, ...], mech: Mechanism) -> tuple[Array, Array]:
    """Rows of all that is held, and what the speeds move (k, nv), both in metres."""
    m = motion_state(mech, jnp.asarray(neutral(mech), mech.dtype))
    length, units = mechanism_length(mech), speed_units(mech)
    moves = []
    for body, point in dict.fromkeys((body, point) for _, body, point in corner.points()):
        x = m.position(body, point if isinstance(point, str) else np.asarray(point))
        moves.append(point_moves(m, body, x))
    for body in (corner.upright, *(() if corner.chassis == GROUND else (corner.chassis,))):
        moves.append(length * (m.moves(GROUND, body)[:, None] * m.angular_columns()).T * units)
    return held_rows(m, keys), jnp.concatenate(moves)


def _likely(mech: Mechanism, corner: Corner) -> list[str]:
    """Joints in the order in which they are likely to be meant: a chassis, racks, others."""
    fixed = {GROUND, corner.chassis}

    def order(joint: tuple[str, str, str]) -> tuple[bool, bool, bool]:
        name, *ends = joint
        touches = bool(fixed & {*ends})
        slides = touches and mech.joint(name).speeds == ("travel",)
        return {*ends} != fixed, not slides, not touches

    joints = [(e.name, e.a, e.b) for e in mech.structure.joints if e.kind.can_be_in_tree]
    return [name for name, *_ in sorted(joints, key=order)]
