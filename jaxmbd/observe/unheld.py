"""Degrees of freedom that nothing holds: along them a swept mechanism may be anywhere.

Of the motions in which the closed loops and the held coordinates stay as they are, those count that
move what is looked at. The spin of a rod between two balls does not, nor that of a wheel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.analysis import Key, closing_rows, known_values
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import (
    MotionState,
    mechanism_length,
    motion_state,
    speed_units,
    step_coordinates,
)
from jaxmbd.lanes import compiled, host_jit
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.numerics import tolerances
from jaxmbd.observe.observable import model_point
from jaxmbd.plumbing import warn_user

_STEP = 1e-2
"""Length of the step beside the drawn configuration, relative to the mechanism's speeds."""
_CLOSING = 4
"""The step, and as many of Newton's, less one, that close the loops there."""
_DEPENDENT = 1e-3
"""Of rows that depend on others the part that is left while loops are open by `_STEP` squared."""


class Looked(NamedTuple):
    """What is looked at, where it is not all joints.

    Attributes:
        places: (body, point) by names or drawn coordinates, whose motion counts.
        turned: bodies whose turning counts as well.
        likely: names of joints, in the order in which they are likely to be meant.
    """

    places: tuple[tuple[str, Any], ...]
    turned: tuple[str, ...]
    likely: tuple[str, ...]


def unheld_joints(
    mech: Mechanism, keys: tuple[Key, ...], looked: Looked | None = None
) -> tuple[int, list[str]]:
    """How many degrees of freedom neither keys nor loops hold as drawn, and joints that would.

    None are found while tracing. Where there are rows enough to hold everything, some depend on
    others; what is free then as drawn must be so beside it too, since it may be a dead centre.
    """
    top = topology(mech)
    traced = any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves(mech))
    enough = top.nv - top.nc <= len(keys)
    if traced or (enough and not top.nc):
        return 0, []
    seen = None if looked is None else looked[:2]
    likely = _likely(mech) if looked is None else looked.likely
    q, still = jnp.asarray(neutral(mech), mech.dtype), jnp.zeros(top.nv, mech.dtype)
    _, _, rows, moves = map(np.asarray, _stepped(keys, seen, mech, q, still))
    found = _counted(mech, rows, moves, likely)
    if not (enough and found[0]):
        return found
    # A small step along the motion that moves most, then the loops are closed again.
    free = _free(rows, tolerances.agreement(mech.dtype))
    step = _STEP * (np.linalg.svd(moves @ free.T)[2][0] @ free)
    for _ in range(_CLOSING):
        q, residual, rows, moves = map(
            np.asarray, _stepped(keys, seen, mech, q, jnp.asarray(step, mech.dtype))
        )
        step = -np.linalg.pinv(rows, rcond=_DEPENDENT) @ residual
    return _counted(mech, rows, moves, likely)


def warn_of_unheld(mech: Mechanism, keys: tuple[Key, ...]) -> None:
    """Warn of degrees of freedom that neither keys nor loops hold (`unheld_joints`)."""
    count, names = unheld_joints(mech, keys)
    if count:
        holding = ", ".join(_held_by(mech, name) for name in names)
        warn_user(
            f"{degrees_not_held(count)}, so results depend on where the search starts; hold "
            f"{holding} by known=, or give settle=True"
        )


def degrees_not_held(count: int) -> str:
    """The beginning of a message."""
    degrees = "degree of freedom is" if count == 1 else "degrees of freedom are"
    return f"{count} {degrees} not held"


def _held_by(mech: Mechanism, name: str) -> str:
    """What would hold a joint: of one with a quaternion all its numbers hold too much."""
    joint = mech.joint(name)
    body = joint.a if joint.b == GROUND else joint.b
    return repr(name) if joint.scalar_coordinates else f"a PointCoordinate of {body!r}"


def _likely(mech: Mechanism) -> tuple[str, ...]:
    """Joints in the order in which they are likely to be meant: racks and cranks first."""

    def order(name: str) -> tuple[int, bool, bool]:
        joint = mech.joint(name)
        return joint.nv, GROUND not in (joint.a, joint.b), joint.speeds != ("travel",)

    return tuple(sorted(topology(mech).tree, key=order))


def _counted(
    mech: Mechanism, rows: np.ndarray, moves: np.ndarray, likely: tuple[str, ...]
) -> tuple[int, list[str]]:
    """How many speeds that move something the rows (n, nv) leave, and joints that hold them."""
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
        if not left or layout[name].v is None:
            continue
        more = np.concatenate([rows, np.abs(rows).max(initial=1.0) * unit[layout[name].v]])
        if (now := count(more)) < left:
            rows, left = more, now
            names.append(name)
    return first, names


def _free(rows: np.ndarray, lost: float) -> np.ndarray:
    """An orthonormal basis (k, nv) of the speeds that rows do not hold, but for a part `lost`."""
    _, sizes, vh = np.linalg.svd(rows)
    return vh[int(np.sum(sizes > lost * max(np.max(sizes, initial=0.0), 1e-300))) :]


@host_jit
def _stepped(
    keys: tuple[Key, ...], seen: Any, mech: Mechanism, q: Array, step: Array
) -> tuple[Array, ...]:
    """After a step of the scaled speeds: coordinates, what is to be closed or held, `_rows`."""

    def look(mech: Mechanism, q: Array, step: Array) -> tuple[Array, ...]:
        drawn = motion_state(mech, jnp.asarray(neutral(mech), mech.dtype))
        m = motion_state(mech, step_coordinates(mech, q, speed_units(mech) * step))
        residual, rows = closing_rows(m, keys, known_values(drawn, keys))
        return m.q, residual, rows * speed_units(mech), _moves(m, seen)

    return compiled("auto", look, mech, q, step)


def _moves(m: MotionState, seen: Any) -> Array:
    """What the scaled speeds move of what is looked at (k, nv), in metres."""
    units, length = speed_units(m.mech), mechanism_length(m.mech)
    if seen is None:
        places, turned = _joint_places(m), ()
    else:
        names, turned = seen
        places = [(body, m.position(body, model_point(x))) for body, x in names]
    found = [m.moves(GROUND, body)[:, None] * m.columns_at(x) for body, x in places]
    found += [length * m.moves(GROUND, body)[:, None] * m.angular_columns() for body in turned]
    return jnp.concatenate([x.T * units for x in found])


def _joint_places(m: MotionState) -> list[tuple[str, Array]]:
    """(body, place) of the joints' points, and of a body with one joint its centre of mass."""
    places: dict[str, list[Array]] = {body: [] for body in m.mech.structure.bodies}
    for joint in m.mech.joints.values():
        for body, ref in joint.attachments:
            if body != GROUND:
                places[body].append(m.position(body, ref))
    for body, found in places.items():
        if len(found) < 2:
            found.append(m.pos.com[m.top.index(body)])
    return [(body, x) for body, found in places.items() for x in found]
