"""Freedoms that nobody holds: a mechanism stays anywhere along them while it is swept.

Of the motions in which the closed loops and the held coordinates stay as they are, those count that
move what is looked at. The spin of a rod between two balls does not, nor that of a wheel.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.analysis import Key, closing_rows, known_values
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import MotionState, motion_state, speed_units, step_coordinates
from jaxmbd.lanes import compiled, host_jit
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.numerics import tolerances
from jaxmbd.plumbing import warn_user

_STEP = 1e-2
"""Length of the step beside the drawn configuration, relative to the mechanism's speeds."""
_CLOSING = 4
"""The step, and as many of Newton's, less one, that close the loops there."""
_DEPENDENT = 1e-3
"""Of rows that depend on others the part that is left while loops are open by `_STEP` squared."""


def counted(
    mech: Mechanism, rows: np.ndarray, moves: np.ndarray, likely: Iterable[str]
) -> tuple[int, list[str]]:
    """How many freedoms are not held, and joints that would hold them.

    Args:
        mech: the mechanism.
        rows: of all that is held (n, nv), in metres.
        moves: what the speeds move of what is looked at (k, nv), likewise.
        likely: names of joints, in the order in which they are likely to be meant.
    """
    lost = tolerances.agreement(mech.dtype)
    layout, unit = topology(mech).layout, np.eye(rows.shape[1])

    def count(rows: np.ndarray) -> int:
        free = _free(rows, lost)
        if not len(free):
            return 0
        seen = np.linalg.svd(moves @ free.T, compute_uv=False)
        return int(np.sum(seen > lost * np.abs(moves).max()))

    left = first = count(rows)
    names: list[str] = []
    for name in likely:
        place = layout[name].v
        if not left:
            break
        if place is None:
            continue
        more = np.concatenate([rows, np.abs(rows).max(initial=1.0) * unit[place]])
        if (now := count(more)) < left:
            rows, left = more, now
            names.append(name)
    return first, names


def _free(rows: np.ndarray, lost: float) -> np.ndarray:
    """An orthonormal basis (k, nv) of the speeds that rows do not hold, but for a part `lost`."""
    _, sizes, vh = np.linalg.svd(rows)
    return vh[int(np.sum(sizes > lost * max(np.max(sizes, initial=0.0), 1e-300))) :]


def held_rows(m: MotionState, keys: tuple[Key, ...]) -> Array:
    """Rows (n, nv) of loops and held coordinates by scaled speeds, in metres."""
    return closing_rows(m, keys, known_values(m, keys))[1] * speed_units(m.mech)


def point_moves(m: MotionState, body: str, place: Array) -> Array:
    """What the scaled speeds move of a point (3,) of a body (3, nv), in metres."""
    moves = m.moves(GROUND, body)[:, None] * m.columns_at(place)
    return jnp.asarray(moves.T * speed_units(m.mech))


def unheld_joints(mech: Mechanism, keys: tuple[Key, ...]) -> tuple[int, list[str]]:
    """How many freedoms, as drawn, neither the keys nor loops hold, and joints that would.

    None are found while tracing. Where there are rows enough to hold everything, some depend on
    others; what is free then as drawn must be so beside it too, since it may be a dead centre.
    """
    top = topology(mech)
    traced = any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves(mech))
    enough = top.nv - top.nc <= len(keys)
    if traced or (enough and not top.nc):
        return 0, []
    rows, moves = map(np.asarray, _compiled(keys, mech))
    found = counted(mech, rows, moves, _likely(mech))
    if not (enough and found[0]):
        return found
    rows, moves = _beside(mech, keys, rows, moves)
    return counted(mech, rows, moves, _likely(mech))


def _beside(
    mech: Mechanism, keys: tuple[Key, ...], rows: np.ndarray, moves: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same rows after a small step along the freedom that moves most, with loops closed."""
    free = _free(rows, tolerances.agreement(mech.dtype))
    along = np.linalg.svd(moves @ free.T)[2]
    step, q = _STEP * (along[0] @ free), jnp.asarray(neutral(mech), mech.dtype)
    for _ in range(_CLOSING):
        q, residual, *looked = map(np.asarray, _stepped(keys, mech, q, jnp.asarray(step, q.dtype)))
        step = -np.linalg.pinv(looked[0], rcond=_DEPENDENT) @ residual
    rows, moves = looked
    return rows, moves


def warn_of_unheld(mech: Mechanism, keys: tuple[Key, ...]) -> None:
    """Warn of freedoms that neither the keys nor loops hold (`unheld_joints`)."""
    count, names = unheld_joints(mech, keys)
    if count:
        what, them = ("freedom is", "it is") if count == 1 else ("freedoms are", "they are")
        warn_user(
            f"{count} {what} not held: {them} where the search leaves the mechanism; hold "
            f"{', '.join(_held_by(mech, name) for name in names)} by known=, or give settle=True"
        )


def _held_by(mech: Mechanism, name: str) -> str:
    """What would hold a freedom of a joint: of a quaternion joint all numbers hold too much."""
    joint = mech.joint(name)
    body = joint.a if joint.b == GROUND else joint.b
    return repr(name) if joint.scalar_coordinates else f"a PointCoordinate of {body!r}"


def _likely(mech: Mechanism) -> list[str]:
    """Joints in the order in which they are likely to be meant: racks and cranks first."""

    def order(name: str) -> tuple[int, bool, bool]:
        joint = mech.joint(name)
        return joint.nv, GROUND not in (joint.a, joint.b), joint.speeds != ("travel",)

    return sorted(topology(mech).tree, key=order)


@host_jit
def _stepped(keys: tuple[Key, ...], mech: Mechanism, q: Array, step: Array) -> tuple[Array, ...]:
    """After a step of the scaled speeds: coordinates, what is to be closed or held, `_rows`."""

    def look(mech: Mechanism, q: Array, step: Array) -> tuple[Array, ...]:
        drawn = motion_state(mech, jnp.asarray(neutral(mech), mech.dtype))
        q = step_coordinates(mech, q, speed_units(mech) * step)
        m = motion_state(mech, q)
        return q, closing_rows(m, keys, known_values(drawn, keys))[0], *_rows(keys, m)

    return compiled("auto", look, mech, q, step)


@host_jit
def _compiled(keys: tuple[Key, ...], mech: Mechanism) -> tuple[Array, Array]:
    def look(mech: Mechanism) -> tuple[Array, Array]:
        return _rows(keys, motion_state(mech, jnp.asarray(neutral(mech), mech.dtype)))

    return compiled("auto", look, mech)


def _rows(keys: tuple[Key, ...], m: MotionState) -> tuple[Array, Array]:
    """Rows of all that is held, and what the speeds move of the joints' points.

    Of a body with one joint also its centre of mass.
    """
    mech = m.mech
    points: dict[str, list[Array]] = {body: [] for body in mech.structure.bodies}
    for joint in mech.joints.values():
        for body, ref in ((joint.a, joint.point_a), (joint.b, joint.point_b)):
            if body != GROUND:
                points[body].append(m.position(body, ref))
    for body, places in points.items():
        if len(places) < 2:
            places.append(m.pos.com[m.top.index(body)])
    moves = [point_moves(m, body, x) for body, places in points.items() for x in places]
    return held_rows(m, keys), jnp.concatenate(moves)
