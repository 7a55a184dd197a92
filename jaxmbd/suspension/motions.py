"""A corner at an instant: where its wheel is, and how it can move there, as plain arrays.

The two motions of a corner are solutions of one linear system, the rows of the closed loops with
those of the held coordinates, ``J v = b``: the *travel* motion raises the wheel centre by one metre
with the steering held, the *steering* motion moves the rack (or lengthens the track rod) by one
metre with the wheel centre's height held. What an experiment holds beside the wheel's height stays
held. In an equilibrium the motions are slow ones of the equilibrium, `settled_speeds`:
what nothing holds, as bushings, gives way as all springs and loads have it.

Each gives the upright a twist ``[ω; v]`` at the wheel centre. Everything instantaneous, as instant
centres, roll centre and steering axis, is algebra of these two twists, and derivatives along a
motion are exact, without differences of neighbouring positions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.analysis import (
    JointCoordinate,
    Key,
    PointCoordinate,
    PointTravel,
    asked_rows,
    is_met,
    parse_known,
    settled_speeds,
    single_rows,
)
from jaxmbd.kinematics import (
    MotionState,
    coordinate_rates,
    mechanism_length,
    motion_state,
    placed_numbers,
    speed_units,
)
from jaxmbd.lanes import compiled, host_jit
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.numerics import SplitRows, solution, tolerances
from jaxmbd.observe import model_point, wheel_axis
from jaxmbd.spatial import cross, unit
from jaxmbd.suspension.corner import Corner

_LENGTHS = 100.0
"""Closure errors that a spring must be long to have a direction."""


class Spring(NamedTuple):
    """The spring of a corner.

    Attributes:
        length: distance of its ends [m].
        force: at rest, positive in tension [N].
        travel: rate of its length in the travel motion [1]; NaN where it has no length.
        steer: rate of its length in the steering motion [1]; None for an unsteered wheel.
    """

    length: Array
    force: Array
    travel: Array
    steer: Array | None


class CornerState(NamedTuple):
    """A corner at an instant; points and directions in world axes.

    Attributes:
        centre: wheel centre (3,) [m].
        spin: unit vector (3,) along the wheel's axis, outwards.
        drawn_centre, drawn_spin: the same as drawn.
        travel: twist (6,) of the upright at the wheel centre, in the travel motion.
        steer: the same in the steering motion; None for an unsteered wheel.
        held: rates of what is held in steering (`Corner.held_in_steering`), in the travel and in
            the steering motion (2,); None for an unsteered wheel.
        kingpin: its points (2, 3), lower and upper; None where the corner has no such line.
        upper_arm, lower_arm: points (3, 3) of the arms; None likewise.
        strut: points (2, 3) of the strut's line; None likewise.
        spring: the spring; None likewise.
        speeds: of the travel motion (nv,).
        steering: speeds of the steering motion (nv,); None for an unsteered wheel.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import corner_state, zoo_corner
        >>> mech = mbd.zoo.double_wishbone_kinematic()
        >>> state = corner_state(mech, zoo_corner("double_wishbone_kinematic"), mbd.neutral(mech))
        >>> state.kingpin.shape
        (2, 3)
    """

    centre: Array
    spin: Array
    drawn_centre: Array
    drawn_spin: Array
    travel: Array
    steer: Array | None
    held: Array | None
    kingpin: Array | None
    upper_arm: Array | None
    lower_arm: Array | None
    strut: Array | None
    spring: Spring | None
    speeds: Array
    steering: Array | None


def contact_point(centre: Array, spin: Array, radius: Any, up: Any = (0.0, 0.0, 1.0)) -> Array:
    """The wheel's ground contact (3,) [m]: the lowest point of its middle plane's circle.

    With s the wheel's axis and z the ground's normal, it is ``centre + radius · e`` with e the
    direction of steepest descent in the wheel's plane, ``e = ((z·s) s − z) / |…|``. It is a point
    of space, not of the wheel; it is smooth unless the wheel lies flat.

    Args:
        centre: wheel centre (3,) [m].
        spin: unit vector (3,) along the wheel's axis.
        radius: of the tyre [m].
        up: unit vector (3,) normal to the ground.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.suspension import contact_point
        >>> contact_point(jnp.zeros(3), jnp.array([0.0, 1.0, 0.0]), 0.3).tolist()
        [0.0, 0.0, -0.3]
    """
    spin = jnp.asarray(spin)
    z = jnp.asarray(up, spin.dtype)
    down = (z @ spin) * spin - z
    return centre + radius * down / jnp.sqrt(down @ down)


def wheel_key(corner: Corner) -> PointTravel:
    """The rise of the wheel centre from where it is drawn, to be held or moved."""
    return PointTravel(*corner.placed("upright", corner.wheel_centre), "z")


def held_joints(mech: Mechanism, corner: Corner) -> dict[Any, float]:
    """The joints of `Corner.hold` with the values at which they are held, as drawn."""
    return {(name, i): 0.0 for name in corner.hold for i in range(mech.joint(name).nv)}


class Held(NamedTuple):
    """How a corner is held at an instant.

    Attributes:
        keys: coordinates that the experiment holds.
        settled: whether it is in equilibrium, so that what is not held gives way elastically.
        inputs: efforts on joints by name.
    """

    keys: tuple[Key, ...] = ()
    settled: bool = False
    inputs: Any = None


FREE = Held()
"""Held by its own steering and `Corner.hold` alone."""


def corner_state(mech: Mechanism, corner: Corner, q: Array, held: Held = FREE) -> CornerState:
    """The corner at assembled coordinates q (nq,), held by itself alone or as `held` says.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import corner_state, zoo_corner
        >>> mech = mbd.zoo.double_wishbone_kinematic()
        >>> state = corner_state(mech, zoo_corner("double_wishbone_kinematic"), mbd.neutral(mech))
        >>> round(float(state.travel[5]), 12)  # the wheel centre rises
        1.0
    """
    if any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves((mech, q))):
        return _state(mech, corner, q, held)
    return _compiled(corner, held, mech, jnp.asarray(q, mech.dtype))


@host_jit
def _compiled(corner: Corner, held: Held, mech: Mechanism, q: Array) -> CornerState:
    return compiled("auto", lambda mech, q: _state(mech, corner, q, held), mech, q)


def _state(mech: Mechanism, corner: Corner, q: Array, held: Held) -> CornerState:
    m = motion_state(mech, q)
    speeds, steering = _motions(m, corner, held)
    twists = twist(m, corner, speeds), None if steering is None else twist(m, corner, steering)
    spring = _spring(mech, corner, m.q, speeds, steering)
    return placed_state(m, corner)._replace(
        travel=twists[0],
        steer=twists[1],
        held=_held_rates(m, corner, twists, spring),
        spring=spring,
        speeds=speeds,
        steering=steering,
    )


def placed_state(m: MotionState, corner: Corner) -> CornerState:
    """Where a corner's points and axes are; all that is of its motions is NaN or missing."""

    def points(role: str) -> Array | None:
        found = [_position(m, (body, x)) for name, body, x in corner.points() if name == role]
        return jnp.stack(found) if found else None

    drawn_centre, drawn_spin = drawn_wheel(m.mech, corner)
    return CornerState(
        centre=_position(m, corner.placed("upright", corner.wheel_centre)),
        spin=m.rotation(corner.upright) @ drawn_spin,
        drawn_centre=drawn_centre,
        drawn_spin=drawn_spin,
        travel=jnp.full(6, jnp.nan, m.q.dtype),
        steer=None,
        held=None,
        kingpin=points("kingpin"),
        upper_arm=points("upper_arm"),
        lower_arm=points("lower_arm"),
        strut=points("strut"),
        spring=None,
        speeds=jnp.full(m.top.nv, jnp.nan, m.q.dtype),
        steering=None,
    )


def state_rates(
    mech: Mechanism, corner: Corner, q: Array, speeds: Array, held: Held = FREE
) -> CornerState:
    """Derivatives of a `CornerState` along the motion with these speeds (nv,): one of its own."""
    rates = coordinate_rates(mech, q, speeds)
    return jax.jvp(lambda x: _state(mech, corner, x, held), (q,), (rates,))[1]


def _position(m: MotionState, place: tuple[str, Any]) -> Array:
    body, point = place
    return m.position(body, model_point(point))


def drawn_wheel(mech: Mechanism, corner: Corner) -> tuple[Array, Array]:
    """The wheel centre (3,) [m] and the wheel's axis (3,), a unit vector, as drawn."""

    def at(place: Any) -> Array:
        return jnp.asarray(mech.point(model_point(corner.placed("upright", place)[1])))

    if corner.spindle is None:
        axis = wheel_axis(mech, corner.upright, (0.0, corner.sign, 0.0))
    elif len(corner.spindle) == 2:
        axis = unit(at(corner.spindle[1]) - at(corner.spindle[0]))
    else:
        axis = unit(jnp.asarray(corner.spindle, mech.dtype))
    return at(corner.wheel_centre), axis


def _motions(m: MotionState, corner: Corner, held: Held) -> tuple[Array, Array | None]:
    """Speeds (nv,) of the travel and of the steering motion.

    NaN where no such motion exists: the wheel or the rack cannot move. Outside of equilibrium they
    are of least norm where some are idle.
    """
    own, every = _keys(m.mech, corner, held.keys)
    moved = [m.top.nc]
    if corner.steering is not None:
        rod = m.top.layout[corner.steering].rows if corner.is_rod(m.mech) else None
        rack = JointCoordinate(corner.steering, 0)
        moved.append(m.top.nc + own.index(rack) if rod is None else rod.start)
    targets = jnp.asarray(np.eye(m.top.nc + len(own))[moved], m.q.dtype)
    speeds = speeds_at_rates(m, own, held._replace(keys=every), targets)
    return speeds[0], None if corner.steering is None else speeds[1]


def speeds_at_rates(m: MotionState, keys: tuple[Key, ...], held: Held, rates: Array) -> Array:
    """Speeds (k, nv) at which the rows of loops and of held coordinates move at rates (k, n).

    Args:
        m: the state at rest.
        keys: coordinates that are held or moved.
        held: how it is held; in equilibrium the efforts of its keys balance the loads, otherwise
            speeds are of least norm where some are idle.
        rates: of the rows of the loops (nc) and of the keys, in metres or radians per unit.
    """
    asked = asked_rows(m, keys)
    targets = asked.of(rates.T).T
    if held.settled:
        return settled_speeds(keys, held.keys, m.mech, m.q, targets, inputs=held.inputs)
    return _least_speeds(m, keys, asked.matrix, targets)


def _keys(
    mech: Mechanism, corner: Corner, held: tuple[Key, ...]
) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Coordinates that are held or moved in the motions, the wheel's height first, and all held.

    What an experiment holds in place of the wheel's height, as the angle of an arm, is let go.
    """
    own: list[Key] = [
        wheel_key(corner).coordinate,
        *parse_known(mech, held_joints(mech, corner))[0],
    ]
    if corner.steering is not None and not corner.is_rod(mech):
        own += parse_known(mech, {corner.steering: 0.0})[0]  # refuses a rack that is cut
    single: list[Key] = []
    for key in held:
        if isinstance(key, PointCoordinate) or key.index is not None:
            single.append(key)
        else:
            single += [JointCoordinate(key.joint, i) for i in range(mech.joint(key.joint).nv)]
    every = tuple(dict.fromkeys([*own, *single]))
    return (every if own[0] in held else tuple(dict.fromkeys(own))), every


def _least_speeds(m: MotionState, keys: tuple[Key, ...], rows: Array, targets: Array) -> Array:
    """Speeds (k, nv) of least norm that move the rows at rates (k, n)."""
    factors = SplitRows(rows, speed_units(m.mech) ** 2, single_rows(m.top, keys))
    length, found = mechanism_length(m.mech), []
    for target in targets:
        v = factors.solve(target)
        met = jnp.all(is_met(rows, v, target))
        terms = [target, length * v, m.q]
        v = solution(v, rows @ v - target, terms, placed_numbers(m.mech))
        found.append(jnp.where(met, v, jnp.nan))
    return jnp.stack(found)


def twist(m: MotionState, corner: Corner, speeds: Array) -> Array:
    """Twist (6,) ``[ω; v]`` of the upright at the wheel centre."""
    body, _ = wheel = corner.placed("upright", corner.wheel_centre)
    rates = m.moves(GROUND, body) * speeds
    return jnp.concatenate([rates @ m.angular_columns(), rates @ m.columns_at(_position(m, wheel))])


def _spring(
    mech: Mechanism, corner: Corner, q: Array, speeds: Array, steering: Array | None
) -> Spring | None:
    if corner.spring is None:
        return None
    element = mech.forces[corner.spring]
    joints = {e.name: mech.joint(e.name) for e in mech.structure.joints}

    def measured(v: Array | None) -> dict[str, Any]:
        return element.measures(motion_state(mech, q, v), joints)

    still = measured(None)
    length = still["length"].value
    # Within some closure errors of no length the direction of its ends is rounding.
    there = length > _LENGTHS * tolerances.closing(mech.dtype) * mechanism_length(mech)

    def rate(v: Array) -> Array:
        return jnp.asarray(jnp.where(there, measured(v)["rate"].value, jnp.nan))

    return Spring(
        length=length,
        force=still["force"].value,
        travel=rate(speeds),
        steer=None if steering is None else rate(steering),
    )


def _held_rates(
    m: MotionState, corner: Corner, twists: tuple[Array, Array | None], spring: Spring | None
) -> Array | None:
    """Rates of what keeps its place while the wheel is steered about its virtual axis."""
    travel, steer = twists
    if steer is None:
        return None
    if corner.held_in_steering == "spring":
        assert spring is not None and spring.steer is not None
        return jnp.stack([spring.travel, spring.steer])
    place = corner.wheel_centre if corner.held_in_steering == "wheel_centre" else corner.lower_ball
    arm = _position(m, corner.placed("upright", place)) - _position(
        m, corner.placed("upright", corner.wheel_centre)
    )
    return jnp.stack([(x[3:] + cross(x[:3], arm))[2] for x in (travel, steer)])
