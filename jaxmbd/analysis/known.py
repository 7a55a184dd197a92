"""What a caller prescribes: coordinates that are held, of joints and of points, and efforts.

Efforts on joints are values, functions of time, or state feedback.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics import Inputs
from jaxmbd.graph import Topology, neutral, topology
from jaxmbd.kinematics import (
    MotionState,
    check_shape,
    closure_jacobian,
    closure_residual,
    mechanism_length,
    motion_state,
    own_rows,
    speed_units,
)
from jaxmbd.model import GROUND, Mechanism, Sampled, prepared


class PointCoordinate(NamedTuple):
    """One world coordinate of a point of a body [m], to be held or moved: an absolute position.

    Attributes:
        body: name of the body.
        point: name of a point, or its drawn coordinates as a tuple [m].
        axis: "x", "y" or "z".

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.PointCoordinate("upright", "wheel_centre", "z").axis
        'z'
    """

    body: str
    point: str | tuple[float, float, float]
    axis: str


@dataclass(frozen=True)
class PointTravel:
    """The same counted from where the point is drawn [m]: a displacement, zero as drawn.

    Wherever coordinates are held or moved, either may be given.

    Attributes:
        body: name of the body.
        point: name of a point, or its drawn coordinates as a tuple [m].
        axis: "x", "y" or "z".

    Example:
        >>> import jaxmbd as mbd
        >>> corner = mbd.zoo.double_wishbone()
        >>> rise = mbd.PointTravel("upright", "wheel_centre", "z")
        >>> q = mbd.assemble(corner, known={rise: 0.05}).q
        >>> place = mbd.point_position(corner, q, "upright", "wheel_centre")
        >>> round(float(place[2] - corner.points["wheel_centre"][2]), 9)
        0.05
    """

    body: str
    point: str | tuple[float, float, float]
    axis: str

    @property
    def coordinate(self) -> PointCoordinate:
        """The coordinate that it is a change of."""
        return PointCoordinate(self.body, self.point, self.axis)


class JointCoordinate(NamedTuple):
    """One coordinate of a tree joint; index None holds all of q for a joint with a quaternion."""

    joint: str
    index: int | None


Key = PointCoordinate | JointCoordinate
Known = Mapping[Any, Any]


def _array(value: Any, dtype: Any) -> Array:
    """A value as an array; of a plain number NumPy makes one, JAX would compile a program."""
    known = np.asarray(value, dtype) if isinstance(value, (int, float)) else value
    return jnp.asarray(known, dtype)


def parse_known(
    mech: Mechanism, known: Known | None, rates: bool = False
) -> tuple[tuple[Key, ...], list[Any]]:
    """Split `known` into static keys and their values, one key for each coordinate.

    A `PointTravel` becomes the `PointCoordinate` of its point, with an absolute value. With `rates`
    the values are speeds or accelerations.

    Raises:
        ValueError: a key names an unknown part, a coordinate that another key names too, or a cut
            joint (the message names the joints that could be cut instead).
    """
    top = topology(mech)
    keys: list[Key] = []
    values: list[Any] = []
    if known is not None and not isinstance(known, Mapping):
        raise ValueError(f"known is {known!r}; name what is held: known={{'a joint': value}}")
    for key, value in (known or {}).items():
        if isinstance(key, (PointCoordinate, PointTravel)):
            place = key.coordinate if isinstance(key, PointTravel) else key
            _check_point(mech, place)
            if place in keys:
                raise ValueError(f"known: {held_name(mech, place)} is named twice; leave one out")
            moved = isinstance(key, PointTravel) and not rates
            keys.append(place)
            values.append(_array(value + drawn_value(mech, place) if moved else value, mech.dtype))
            continue
        joint, index = key if isinstance(key, tuple) else (key, None)
        _check_joint(mech, top, joint, index)
        kind = mech.joint(joint)
        value = _array(value, mech.dtype)
        if not kind.scalar_coordinates and not rates:
            if value.shape != (kind.nq,):
                raise ValueError(
                    f"known: '{joint}' takes {kind.nq} numbers: {kind.coordinates_text}"
                )
            keys.append(JointCoordinate(joint, None))
            values.append(kind.normalized(value))
            continue
        size = kind.nv
        if value.shape not in ((), (1 if index is not None else size,)):
            raise ValueError(
                f"known: the value of '{joint}' has shape {value.shape}; it has {size} coordinates "
                f"({kind.coordinates_text})"
            )
        value = jnp.broadcast_to(value, (1 if index is not None else size,))
        for k, i in enumerate(range(size) if index is None else [index]):
            keys.append(JointCoordinate(joint, i))
            values.append(value[k])
    return tuple(keys), values


def drawn_value(mech: Mechanism, key: PointCoordinate) -> Any:
    """Where a coordinate of a point is drawn [m]."""
    at = "xyz".index(key.axis)
    x = mech.points[key.point] if isinstance(key.point, str) else np.asarray(key.point)
    return mech.point(point_of(key))[at] if isinstance(x, Array) or at >= len(x) else x[at]


def _check_point(mech: Mechanism, key: PointCoordinate) -> None:
    planar = mech.structure.planar
    named = f"known: {key.axis!r} of {key.point!r} on {key.body!r}"
    if key.body not in mech.bodies or key.axis not in ("x", "y", "z"):
        raise ValueError(
            f"{named} is no coordinate; bodies are {list(mech.structure.bodies)}, axes "
            f"{'x, y' if planar else 'x, y, z'}"
        )
    if planar and key.axis == "z":
        raise ValueError(f"{named} cannot be held: the mechanism lies in the plane; axes are x, y")
    if isinstance(key.point, str) and key.point not in mech.points:
        raise ValueError(f"{named} names no point; points are {sorted(mech.points)}")


def _check_joint(mech: Mechanism, top: Topology, joint: Any, index: int | None) -> None:
    if joint not in mech.joints:
        raise ValueError(
            f"known names the joint {joint!r}, which does not exist: {list(mech.joints)}"
        )
    if joint in top.cut:
        edge = mech.joint(joint)
        loop = _loop(top, edge.a, edge.b)
        cure = (
            f"; describe the mechanism with cut= naming another joint of its loop: {loop}"
            if loop
            else ""
        )
        raise ValueError(f"known names '{joint}', which is cut and so has no coordinate{cure}")
    kind = mech.joint(joint)
    if index is not None and (not kind.scalar_coordinates or not 0 <= index < kind.nq):
        raise ValueError(
            f"known: '{joint}' has {kind.coordinates_text}; coordinate {index} cannot be held"
        )


def _loop(top: Topology, a: str, b: str) -> list[str]:
    """Tree joints on the path between two bodies."""

    def path(body: str) -> list[str]:
        names, i = [], top.index(body)
        while i >= 0:
            names.append(top.tree[i])
            i = top.parent[i]
        return names

    up, down = path(a), path(b)
    return [n for n in up if n not in down] + [n for n in down if n not in up]


def known_values(m: MotionState, keys: tuple[Key, ...]) -> list[Array]:
    """Present values of the held coordinates."""
    out = []
    for key in keys:
        if isinstance(key, PointCoordinate):
            out.append(m.position(key.body, point_of(key))["xyz".index(key.axis)])
        else:
            q = m.q[m.top.layout[key.joint].q]
            out.append(q if key.index is None else q[key.index])
    return out


def closing_rows(m: MotionState, keys: tuple[Key, ...], values: list[Any]) -> tuple[Array, Array]:
    """Residual (n,) and Jacobian (n, nv) of own rows and of held coordinates, in metres."""
    held, held_rows = known_rows(m, keys, values, mechanism_length(m.mech))
    own = own_rows(m)
    residual = jnp.concatenate([own.of(closure_residual(m)), held])
    return residual, jnp.concatenate([own.of(closure_jacobian(m)), held_rows])


def closing_residual(m: MotionState, keys: tuple[Key, ...], values: list[Any]) -> Array:
    """The residual of `closing_rows`."""
    held = known_rows(m, keys, values, mechanism_length(m.mech))[0] if keys else m.q[:0]
    return jnp.concatenate([own_rows(m).of(closure_residual(m)), held])


def overheld(m: MotionState, keys: tuple[Key, ...]) -> str:
    """That held coordinates follow from each other, for messages; empty if they do not.

    Their values contradict each other then, unless they fit by luck.
    """
    rows = np.asarray(closing_rows(m, keys, known_values(m, keys))[1] * speed_units(m.mech))
    if not np.all(np.isfinite(rows)):
        return ""
    own, held = rows[: m.top.nc], rows[m.top.nc :]
    _, sizes, vh = np.linalg.svd(own) if len(own) else (None, np.zeros(0), np.eye(m.top.nv))
    free = vh[np.sum(sizes > _LOST * max(sizes, default=0.0)) :].T
    left, sizes, _ = np.linalg.svd(held @ free)
    independent = int(np.sum(sizes > _LOST * np.max(np.abs(held), initial=0.0)))
    among = np.linalg.norm(left[:, independent:], axis=1) > _LOST
    each = [held_name(m.mech, key) for key in keys for _ in range(_count(m, key))]
    names = tuple(dict.fromkeys(n for n, it in zip(each, among, strict=True) if it))
    if len(names) < 2:  # one alone that nothing moves may also be at a dead centre
        return ""
    dof = free.shape[1]
    return (
        f"Too many coordinates are held: {' and '.join(names)} follow from each other, because "
        f"constraints and drives leave {dof} degree{'s' * (dof != 1)} of freedom. Leave "
        f"{len(held) - independent} of them out"
    )


_LOST = 1e-6
"""A row of which constraints leave no more than this share counts as dependent on them."""


def _count(m: MotionState, key: Key) -> int:
    """Number of rows of a held coordinate."""
    if isinstance(key, PointCoordinate):
        return 1
    place = _speeds(m.top, key)
    return place.stop - place.start


class Problem(eqx.Module):
    """What an assembly or an equilibrium depends on, and is differentiated with respect to.

    Attributes:
        keys, values: the held coordinates.
        t: time [s].
        inputs: efforts on joints.
    """

    keys: tuple[Key, ...] = eqx.field(static=True)
    mech: Mechanism
    values: list[Any]
    t: Any
    inputs: Inputs = eqx.field(default_factory=dict)

    def state(self, q: Array) -> MotionState:
        """The state at rest at q."""
        return motion_state(self.mech, q, t=self.t)

    def start(self, guess: Any) -> Array:
        """Coordinates (nq,) to start from: a guess, or by default the drawing."""
        q = jnp.asarray(neutral(self.mech) if guess is None else guess, self.mech.dtype)
        check_shape("guess", q, topology(self.mech).nq)
        return q

    def residual(self, q: Array) -> Array:
        """`closing_residual` at q."""
        return closing_residual(self.state(q), self.keys, self.values)

    def rows(self, q: Array) -> tuple[Array, Array]:
        """`closing_rows` at q."""
        return closing_rows(self.state(q), self.keys, self.values)


def problem(mech: Mechanism, known: Known | None, t: Any, inputs: Any = None) -> Problem:
    """The `Problem` with arrays for all numbers; `inputs` may be functions of t."""
    keys, values = parse_known(mech, known)
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    t = jnp.asarray(t, mech.dtype)
    given: Any = inputs(t) if callable(inputs) else inputs or {}
    given = {name: x(t) if isinstance(x, Sampled) else x for name, x in given.items()}
    efforts = {name: jnp.asarray(x, mech.dtype) for name, x in given.items()}
    return Problem(keys, mech, values, t, efforts)


def known_rows(
    m: MotionState, keys: tuple[Key, ...], values: list[Array], length: Array
) -> tuple[Array, Array]:
    """Residual (nk,) and Jacobian (nk, nv) of the held coordinates, angles times `length`."""
    residuals, rows = [jnp.zeros(0, m.q.dtype)], [jnp.zeros((0, m.top.nv), m.q.dtype)]
    for key, value, now in zip(keys, values, known_values(m, keys), strict=True):
        if isinstance(key, PointCoordinate):
            residuals.append((now - value)[None])
            rows.append(_point_row(m, key)[None])
            continue
        whole = key.index is None
        residuals.append(
            m.mech.joint(key.joint).change(value, now) if whole else (now - value)[None]
        )
        rows.append(jnp.asarray(np.eye(m.top.nv)[_speeds(m.top, key)], m.q.dtype))
    scale = held_scale(m.top, keys, length)
    return scale * jnp.concatenate(residuals), scale[:, None] * jnp.concatenate(rows)


def held_scale(top: Topology, keys: tuple[Key, ...], length: Array) -> Array:
    """The factors (nk,) of `known_rows`: `length` for angles, else 1."""
    angles: list[bool] = []
    for key in keys:
        held = isinstance(key, JointCoordinate)
        kinds = top.speed_kinds[_speeds(top, key)] if held else ("travel",)
        angles += [kind == "angle" for kind in kinds]
    return jnp.where(np.array(angles, bool), length, 1.0)


def key_speeds(top: Topology, key: Key) -> Sequence[int]:
    """The speeds that a held coordinate depends on."""
    if isinstance(key, PointCoordinate):
        return top.columns(key.body)
    place = _speeds(top, key)
    return range(place.start, place.stop)


def single_rows(top: Topology, keys: tuple[Key, ...]) -> list[tuple[int, int]]:
    """Row and speed of each held joint coordinate, in rows of which the first are the loops'."""
    found: dict[int, int] = {}
    row = top.nc
    for key in keys:
        speeds = [None] if isinstance(key, PointCoordinate) else key_speeds(top, key)
        for speed in speeds:
            if speed is not None:
                found.setdefault(speed, row)
            row += 1
    return [(row, speed) for speed, row in found.items()]


def _speeds(top: Topology, key: JointCoordinate) -> slice:
    """The speeds of a held joint coordinate."""
    place = top.layout[key.joint].v
    assert place is not None
    return (
        place if key.index is None else slice(place.start + key.index, place.start + key.index + 1)
    )


def point_of(key: PointCoordinate) -> Any:
    """The point of a held point coordinate, in the form that the model expects."""
    return key.point if isinstance(key.point, str) else np.asarray(key.point)


def _point_row(m: MotionState, key: PointCoordinate) -> Array:
    """∂(point coordinate)/∂(speeds) (nv,)."""
    x = m.position(key.body, point_of(key))
    moves = m.moves(GROUND, key.body)
    return jnp.where(moves == 0.0, 0.0, m.columns_at(x)[:, "xyz".index(key.axis)])


def is_angle(top: Topology, key: Key) -> bool:
    """Whether a held coordinate is an angle [rad] rather than a length [m]."""
    return isinstance(key, JointCoordinate) and top.speed_kinds[_speeds(top, key)] == ("angle",)


def held_name(mech: Mechanism, key: Key) -> str:
    """A held coordinate in words, for messages."""
    if isinstance(key, PointCoordinate):
        return f"{key.axis} of {key.point} on '{key.body}'"
    whole = key.index is None or mech.joint(key.joint).nq == 1
    return f"'{key.joint}'" if whole else f"coordinate {key.index} of '{key.joint}'"


AnyInputs = Inputs | Callable[..., Inputs] | None
"""``{joint: value or Sampled}``, or a function of t, (t, q, v) or (t, q, v, switches) that returns
values."""


def parse_inputs(mech: Mechanism, inputs: Any) -> AnyInputs:
    """Values as arrays of the mechanism's type; `Sampled` prepared, those of a function too.

    Raises:
        ValueError: a function takes neither t nor (t, q, v), one input alone is a function, or a
            number or a `Sampled` has no name.
    """
    if inputs is None:
        return None
    if isinstance(inputs, Sampled):
        raise ValueError(
            "inputs is a Sampled; name what it acts on: inputs={'a joint': Sampled(…)}"
        )
    if callable(inputs):
        arguments(inputs)
        return cast(Callable[..., Inputs], prepared(inputs))
    if not isinstance(inputs, Mapping):
        raise ValueError(f"inputs is {inputs!r}; name what it acts on: inputs={{'a joint': value}}")
    for name, x in inputs.items():
        if callable(x) and not isinstance(x, Sampled):
            raise ValueError(
                f"inputs: that of {name!r} is a function; give samples of it, "
                f"inputs={{{name!r}: Sampled(t, values)}}, or one function of all inputs, of t or "
                f"(t, q, v): inputs=lambda t: {{{name!r}: …}}"
            )
    return jax.tree_util.tree_map(lambda x: jnp.asarray(x, mech.dtype), prepared(dict(inputs)))


def efforts_at(
    inputs: AnyInputs, t: Any, q: Array, v: Array, switches: Any = None
) -> Inputs | None:
    """The efforts ``{joint: value}`` at a state, with the `switches` of a run.

    Raises:
        ValueError: they depend on switches, and there are none.
    """
    if inputs is None:
        return None
    if not callable(inputs):
        return {name: x(t) if callable(x) else x for name, x in inputs.items()}
    count = arguments(inputs)
    if count == 4 and switches is None:
        raise ValueError(
            "inputs= is a function of switches, which only simulate(…, switches={…}) has"
        )
    return inputs(*(t, q, v, switches)[:count])


def arguments(inputs: Callable[..., Any]) -> int:
    """How many of (t, q, v, switches) an input function takes: 1, 3 or 4, the first that it may.

    Raises:
        ValueError: it is neither.
    """
    signature = inspect.signature(inputs)
    for count in (1, 3, 4):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count
    raise ValueError(
        f"inputs= is a function {signature}: give one of t, or of (t, q, v), or in a run of "
        "(t, q, v, switches)"
    )
