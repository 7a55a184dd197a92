"""The characteristics of an axle on a rig: functions of one instant, with name, unit and sign.

Axes are those of the body, ISO 8855: x forward, y left, z up. The *ground line* is the line through
both contact points in front view, η along it to the left and ζ normal to it upwards, with its
origin where it meets the body's middle plane y = 0. In the *roll motion* the body rolls on the
road with heave, pads and rack held; u is the velocity of the upright's point at a contact in it.

*Roll centre*. In front view the body turns relative to each wheel's contact point about a point of
the normal to u through that contact. *By geometry* the roll centre is where both normals meet; it
moves sideways as the body rolls, and does not exist where they are parallel. *By forces* it is the
height at which equal side forces on both wheels have no moment: a side force F on a wheel works
like the vertical force ``F u_η / u_ζ`` there, so that with the contacts at η_L and η_R

    h = ½ (η_L (u_η / u_ζ)_L + η_R (u_η / u_ζ)_R),

which exists wherever the wheels can rise. For a symmetric axle in parallel travel both are
`roll_centre_height` of a corner.

*Loads* are those of the pads on the wheels, along the road's normal, beyond what the mechanism
carries by itself (weights, `PointForce`): from the efforts that hold the pads. The *roll moment*
holds the road against the body; its derivative along roll is the roll stiffness, with springs,
bars, bushings and tyres as the mechanism has them.

*Support* of braking and driving forces is that of `travel_motion`, in the motion in which both pads
rise, in the body's axes; of an axle that is one body, too. Where the differential is on the axle,
the driving torque acts on it: `Corner(drive="outboard")`.

*Steering*. Ackermann error, share and turning circle are those of `steering_geometry`, of the
angles and contacts in the body's axes. In the *steering motion* the rack moves with heave, roll and
pads held. Its effort E is what holds it, by virtual work: with ``[ω; u]`` the twist of an upright
at its contact in that motion, f and n the force and moment on it there, V the energy of springs,

    E = dV/ds − Σ (f · u + n · ω).

The vertical loads come in by the springs that carry them, as the wheels rise or sink on their pads
by caster and kingpin inclination. With a gear of i metres of the rack per radian of the steering
wheel (`Corner.steering_gear`) its torque is ``i E``, and the ratio of its angle to the mean steer
angle ``1 / (i dδ/ds)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis import Key, holding_efforts, parse_known
from jaxmbd.kinematics import MotionState, coordinate_rates, motion_state
from jaxmbd.model import Mechanism
from jaxmbd.observe import Observable, Output, Snapshot
from jaxmbd.plumbing import unknown
from jaxmbd.spatial import cross
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.motions import CornerState, Held, placed_state, speeds_at_rates, twist
from jaxmbd.suspension.rig import RIG, ROAD
from jaxmbd.suspension.steering_axis import spin_gain
from jaxmbd.suspension.steering_geometry import ABOUT, turn
from jaxmbd.suspension.wheel_characteristics import CHARACTERISTICS, Instant

OF_WHEELS = (
    *("wheel_travel", "camber", "toe", "steer_angle", "half_track", "half_track_change"),
    *("wheelbase_change", "recession", "caster", "kingpin_inclination", "caster_trail"),
    *("mechanical_trail", "scrub_radius"),
)
"""Characteristics of each wheel, with the prefix ``left_`` or ``right_``: those of its place."""


class AxleState(NamedTuple):
    """An axle on a rig at an instant, in the body's axes.

    Attributes:
        wheels: places of the left and the right corner.
        up: the road's normal (3,).
        heave, roll: coordinates of the road [m, rad].
        twists: ``[ω; v]`` (2, 6) of the uprights at the wheel centres per radian of roll.
        loads: of the left and the right pad (2,) [N], upwards.
        moment: that holds the road [N·m], positive along `roll`.
        rise: twists (2, 6) of the uprights per metre by which both pads rise.
        steer: twists (2, 6) of the uprights per unit of the rack; None without one.
        effort: that holds the rack, positive along its coordinate [N]; None likewise.
    """

    wheels: tuple[CornerState, CornerState]
    up: Array
    heave: Array
    roll: Array
    twists: Array
    loads: Array
    moment: Array
    rise: Array
    steer: Array | None = None
    effort: Array | None = None


class AxleInstant:
    """An axle at an instant, as its characteristics see it.

    Attributes:
        corners: roles of the left and the right wheel.
        state: places, motions and loads.
        wheels: both corners as their own characteristics see them, on the road.
    """

    def __init__(self, corners: tuple[Corner, Corner], state: AxleState):
        self.corners, self.state = corners, state
        pairs = zip(corners, state.wheels, strict=True)
        self.wheels = tuple(Instant(c, x, up=state.up) for c, x in pairs)

    @cached_property
    def line(self) -> tuple[Array, Array]:
        """Unit vectors (2,) in front view (y, z): along the ground line to the left, normal."""
        left, right = (w.contact[1:] for w in self.wheels)
        along = left - right
        along = along / jnp.sqrt(along @ along)
        return along, jnp.stack([-along[1], along[0]])

    @cached_property
    def origin(self) -> Array:
        """Where the ground line meets the body's middle plane (2,) [m]."""
        at, (along, _) = self.wheels[0].contact[1:], self.line
        return at - along * (at[0] / along[0])

    @cached_property
    def contacts(self) -> list[tuple[Array, Array]]:
        """Place (η, ζ) of each contact and the velocity (η, ζ) of the upright's point there."""
        along, normal = self.line
        axes, found = jnp.stack([along, normal]), []
        for wheel, motion in zip(self.wheels, self.state.twists, strict=True):
            velocity = motion[3:] + cross(motion[:3], wheel.contact - wheel.state.centre)
            found.append((axes @ (wheel.contact[1:] - self.origin), axes @ velocity[1:]))
        return found

    @cached_property
    def roll_centre(self) -> Array:
        """(η, ζ) of the point where the normals to both velocities meet: ``u · (x − c) = 0``."""
        (c_l, u_l), (c_r, u_r) = self.contacts
        det = u_l[0] * u_r[1] - u_l[1] * u_r[0]
        size = jnp.sqrt((u_l @ u_l) * (u_r @ u_r))
        parallel = jnp.abs(det) <= 1e2 * jnp.finfo(det.dtype).eps * size
        det = jnp.where(parallel, jnp.nan, det)
        left, right = u_l @ c_l, u_r @ c_r
        return jnp.stack([left * u_r[1] - right * u_l[1], right * u_l[0] - left * u_r[0]]) / det


class AxleDefinition(NamedTuple):
    """What a characteristic of an axle is.

    Attributes:
        unit: SI unit, "" for a pure number.
        text: what it is, with its sign.
        fn: the function of an `AxleInstant`.
        needs: attributes of `Corner` that both corners must have, "steering" one for both.
        axle: "front" or "rear" if it exists for that axle only.
    """

    unit: str
    text: str
    fn: Callable[[AxleInstant], Array]
    needs: tuple[str, ...] = ()
    axle: str | None = None

    def missing(self, corners: tuple[Corner, Corner]) -> list[str]:
        """Why it does not exist for an axle; empty where it does."""
        if self.axle is not None and corners[0].axle != self.axle:
            return [f"it is of a {self.axle} axle, and this one has axle={corners[0].axle!r}"]
        found = [
            f"it needs {x}= in the Corner"
            for x in self.needs
            if any(getattr(c, x) is None for c in corners)
        ]
        if "steering" in self.needs and not found and rack_of(corners) is None:
            found.append("it needs one rack for both wheels, Corner(steering=)")
        return found


def rack_of(corners: tuple[Corner, Corner]) -> str | None:
    """The joint that steers both wheels, if there is one."""
    left, right = (c.steering for c in corners)
    return left if left == right else None


AXLE_CHARACTERISTICS: dict[str, AxleDefinition] = {}
"""All characteristics of an axle by name, in the order of a table's columns."""


def _of_axle(unit: str, text: str, *needs: str) -> Callable[[Any], Any]:
    """Register a function of an `AxleInstant` under its own name."""

    def registered(fn: Callable[[AxleInstant], Array]) -> Callable[[AxleInstant], Array]:
        AXLE_CHARACTERISTICS[fn.__name__] = AxleDefinition(unit, text, fn, needs)
        return fn

    return registered


@_of_axle("rad", "roll of the body on the road [rad], positive: right side down")
def roll(at: AxleInstant) -> Array:
    """The coordinate of the rig."""
    return at.state.roll


@_of_axle("m", "rise of the road in the middle [m], positive: bump")
def heave(at: AxleInstant) -> Array:
    """The coordinate of the rig."""
    return at.state.heave


def _wheel(name: str, side: int) -> Callable[[AxleInstant], Array]:
    return lambda at: CHARACTERISTICS[name].fn(at.wheels[side])


for _name in OF_WHEELS:
    _what = CHARACTERISTICS[_name]
    for _k, _side in enumerate(("left", "right")):
        AXLE_CHARACTERISTICS[f"{_side}_{_name}"] = AxleDefinition(
            _what.unit, f"{_side} wheel: {_what.text}", _wheel(_name, _k)
        )


def _camber_to_road(at: AxleInstant, side: int) -> Array:
    """``−asin(s · n)``: of the wheel's plane to the road's normal n, s the axis outwards."""
    return -jnp.arcsin(at.state.wheels[side].spin @ at.state.up)


@_of_axle("rad", "camber of the left wheel to the road [rad], positive: top leans outward")
def left_camber_to_road(at: AxleInstant) -> Array:
    """Of the wheel's plane to the road's normal."""
    return _camber_to_road(at, 0)


@_of_axle("rad", "camber of the right wheel to the road [rad], positive: top leans outward")
def right_camber_to_road(at: AxleInstant) -> Array:
    """Of the wheel's plane to the road's normal."""
    return _camber_to_road(at, 1)


@_of_axle("rad", "steer angle of the axle [rad], mean of both wheels, positive: to the left")
def axle_steer(at: AxleInstant) -> Array:
    """Its derivative along roll is the axle's roll steer."""
    return 0.5 * sum(CHARACTERISTICS["steer_angle"].fn(wheel) for wheel in at.wheels)  # pyright: ignore[reportReturnType]


@_of_axle("m", "track [m]: distance of the contact points in front view")
def track(at: AxleInstant) -> Array:
    """``η_L − η_R``."""
    (left, _), (right, _) = at.contacts
    return left[0] - right[0]


@_of_axle("m", "roll centre height [m] over the ground line, by geometry")
def roll_centre_height(at: AxleInstant) -> Array:
    """ζ of the point where the normals to both contacts' velocities meet; NaN if parallel."""
    return at.roll_centre[1]


@_of_axle("m", "roll centre [m], its distance from the body's middle plane, positive: to the left")
def roll_centre_lateral(at: AxleInstant) -> Array:
    """Its y in the body's axes."""
    along, normal = at.line
    place = at.roll_centre
    return at.origin[0] + place[0] * along[0] + place[1] * normal[0]


@_of_axle("m", "roll centre height [m] over the ground line, by equal side forces")
def roll_centre_height_forces(at: AxleInstant) -> Array:
    """``½ Σ η u_η / u_ζ``."""
    return 0.5 * sum(c[0] * u[0] / u[1] for c, u in at.contacts)  # pyright: ignore[reportReturnType]


@_of_axle("N", "load of the left pad [N], positive: up")
def left_load(at: AxleInstant) -> Array:
    """The effort that holds the pad, along the road's normal."""
    return at.state.loads[0]


@_of_axle("N", "load of the right pad [N], positive: up")
def right_load(at: AxleInstant) -> Array:
    """The effort that holds the pad, along the road's normal."""
    return at.state.loads[1]


@_of_axle("N", "load of both pads [N], positive: up")
def axle_load(at: AxleInstant) -> Array:
    """Its derivative along heave is the ride rate of the axle."""
    return at.state.loads[0] + at.state.loads[1]


@_of_axle("N", "load transfer [N]: half the right load minus half the left, positive: to the right")
def load_transfer(at: AxleInstant) -> Array:
    """``(F_R − F_L) / 2``."""
    return 0.5 * (at.state.loads[1] - at.state.loads[0])


@_of_axle("N m", "roll moment [N·m] that holds the road, positive along roll")
def roll_moment(at: AxleInstant) -> Array:
    """Its derivative along roll is the roll stiffness."""
    return at.state.moment


def _support(name: str) -> Callable[[AxleInstant], Array]:
    """The mean of both wheels' own, in the motion in which both pads rise."""

    def value(at: AxleInstant) -> Array:
        states = zip(at.corners, at.state.wheels, at.state.rise, strict=True)
        up = at.state.up
        wheels = [Instant(c, x._replace(travel=motion), up=up) for c, x, motion in states]
        left, right = (CHARACTERISTICS[name].fn(w) for w in wheels)
        return 0.5 * (left + right)

    return value


for _name in ("anti_dive", "anti_lift_braking", "anti_lift_driving", "anti_squat"):
    _what = CHARACTERISTICS[_name]
    AXLE_CHARACTERISTICS[_name] = AxleDefinition(
        _what.unit, _what.text, _support(_name), _what.needs, _what.axle
    )


def _turn(name: str) -> Callable[[AxleInstant], Array]:
    """A column of `steering`, of the wheels where they are."""

    def value(at: AxleInstant) -> Array:
        left, right = ((CHARACTERISTICS["steer_angle"].fn(w), w.contact) for w in at.wheels)
        first, second = (w.drawn_contact for w in at.wheels)
        track = jnp.abs(first[1] - second[1])
        return turn(at.corners[0], left, right, track, first[0])[name]

    return value


for _name in ("ackermann_error", "ackermann_share", "turning_circle"):
    AXLE_CHARACTERISTICS[_name] = AxleDefinition(
        ABOUT[_name].unit, ABOUT[_name].text, _turn(_name), ("steering", "wheelbase")
    )


@_of_axle("N", "effort [N, N·m] that holds the rack, positive along its coordinate", "steering")
def steering_effort(at: AxleInstant) -> Array:
    """Of a rack the rack force, of a pitman arm its torque."""
    assert at.state.effort is not None
    return at.state.effort


@_of_axle(
    "N m",
    "torque [N·m] on the steering wheel that holds the rack, positive: moves it along",
    *("steering", "steering_gear"),
)
def steering_wheel_torque(at: AxleInstant) -> Array:
    """``i E``, without the gear's losses or assistance."""
    return _gear(at) * steering_effort(at)


def _gear(at: AxleInstant) -> float:
    gear = at.corners[0].steering_gear
    assert gear is not None
    return gear


@_of_axle(
    "",
    "steering ratio [1]: angle of the steering wheel over the mean steer angle",
    *("steering", "steering_gear"),
)
def steering_ratio(at: AxleInstant) -> Array:
    """``1 / (i dδ/ds)``, at fixed heave, roll and pads."""
    assert at.state.steer is not None
    gains = [spin_gain(w, motion) for w, motion in zip(at.wheels, at.state.steer, strict=True)]
    return 2.0 / (_gear(at) * (gains[0] + gains[1]))


def axle_state(corners: tuple[Corner, Corner], q: Array, at: Snapshot) -> AxleState:
    """The axle on its rig at assembled coordinates q (nq,), held and loaded as the snapshot is."""
    m = motion_state(at.mech, q)
    efforts = holding_efforts(m, at.keys, at.inputs)
    held = {name: parse_known(at.mech, {joint: 0.0})[0][0] for name, joint in RIG.items()}
    rack = rack_of(corners)
    steered = rack is not None and (key := parse_known(at.mech, {rack: 0.0})[0][0]) in at.keys
    moving: list[dict[Key, float]] = [{held["roll"]: 1.0}, {held["left"]: 1.0, held["right"]: 1.0}]
    motions = _speeds(m, at, [*moving, *([{key: 1.0}] if steered else [])])
    twists = jnp.stack([jnp.stack([twist(m, c, v) for c in corners]) for v in motions])

    def effort(name: str) -> Array:
        key = held[name]
        return efforts[at.keys.index(key)] if key in at.keys else jnp.zeros((), q.dtype)

    def coordinate(name: str) -> Array:
        return q[m.top.layout[RIG[name]].q][0]

    left, right = corners
    return AxleState(
        wheels=(placed_state(m, left), placed_state(m, right)),
        up=m.rotation(ROAD)[:, 2],
        heave=coordinate("heave"),
        roll=coordinate("roll"),
        twists=twists[0],
        loads=jnp.stack([effort("left"), effort("right")]),
        moment=effort("roll"),
        rise=twists[1],
        steer=twists[2] if steered else None,
        effort=efforts[at.keys.index(key)] if steered else None,
    )


def _speeds(m: MotionState, at: Snapshot, motions: Sequence[Mapping[Key, float]]) -> Array:
    """Speeds (k, nv) at which held coordinates move at the rates of each motion, others held."""
    rates = np.zeros((len(motions), m.top.nc + len(at.keys)))
    for row, moving in zip(rates, motions, strict=True):
        for key, rate in moving.items():
            row[m.top.nc + at.keys.index(key)] = rate
    held = Held(at.keys, at.settled, at.inputs)
    return speeds_at_rates(m, at.keys, held, jnp.asarray(rates, m.q.dtype))


@dataclass(frozen=True)
class AxleCharacteristic(Observable):
    """A characteristic of an axle on a rig, or its exact derivative along an event.

    Attributes:
        corners: the roles of the left and the right wheel's parts.
        name: of `jaxmbd.suspension.AXLE_CHARACTERISTICS`.
        along: for a derivative, the rig's joints that move with their rates, the first of them 1:
            ``(("rig_roll", 1.0),)``; None for the value itself.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> car = suspension.axle(mbd.zoo.double_wishbone_kinematic(), shared=["rack"])
        >>> roles = suspension.axle_corners(
        ...     car, suspension.zoo_corner("double_wishbone_kinematic"))
        >>> suspension.AxleCharacteristic(roles, "track").about(car).unit
        'm'
    """

    corners: tuple[Corner, Corner]
    name: str
    along: tuple[tuple[str, float], ...] | None = None

    @property
    def partial(self) -> bool:
        """Normals of contacts may be parallel."""
        return True

    def value(self, at: Snapshot) -> Array:
        """Its value at an instant, or its derivative."""

        def state(q: Array) -> AxleState:
            return axle_state(self.corners, q, at)

        if self.corners not in at.shared:
            at.shared[self.corners] = AxleInstant(self.corners, state(at.q))
        fn, now = AXLE_CHARACTERISTICS[self.name].fn, at.shared[self.corners]
        if self.along is None:
            return fn(now)
        found = self.corners, self.along
        if found not in at.shared:
            moving = {parse_known(at.mech, {n: 0.0})[0][0]: rate for n, rate in self.along}
            rates = coordinate_rates(at.mech, at.q, _speeds(at.motion, at, [moving])[0])
            at.shared[found] = jax.jvp(state, (at.q,), (rates,))[1]
        tangents = (at.shared[found],)
        return jax.jvp(lambda s: fn(AxleInstant(self.corners, s)), (now.state,), tangents)[1]

    def about(self, mech: Mechanism) -> Output:
        """Its unit and meaning."""
        what = AXLE_CHARACTERISTICS[self.name]
        rack = rack_of(self.corners)
        turns = {RIG["roll"]}
        if rack is not None and mech.joint(rack).speeds == ("angle",):
            turns.add(rack)
        unit = "N m" if self.name == "steering_effort" and rack in turns else what.unit
        if self.along is None:
            return Output(unit, what.text)
        by = "rad" if self.along[0][0] in turns else "m"
        return Output(f"{unit or '1'}/{by}", f"its derivative along the event: {self.name}")

    def problems(self, mech: Mechanism) -> list[str]:
        """Roles that do not fit the mechanism, and unknown names."""
        found = [text for corner in self.corners for text in corner.problems(mech)]
        found = found or unknown("characteristic of an axle", self.name, AXLE_CHARACTERISTICS)
        if found:
            return found
        what = AXLE_CHARACTERISTICS[self.name]
        return [f"{self.name}: {text}" for text in what.missing(self.corners)]


def axle_available(corners: tuple[Corner, Corner]) -> tuple[str, ...]:
    """Names of the characteristics that an axle has, with the roles that its corners name.

    Example:
        >>> from jaxmbd import suspension
        >>> roles = suspension.zoo_corner("macpherson_steering")
        >>> other = suspension.zoo_corner("macpherson_steering", "right")
        >>> "roll_centre_lateral" in suspension.axle_available((roles, other))
        True
    """

    def there(name: str) -> bool:
        side, _, own = name.partition("_")
        if side not in ("left", "right") or own not in OF_WHEELS:
            return not AXLE_CHARACTERISTICS[name].missing(corners)
        return not CHARACTERISTICS[own].missing(corners[side == "right"])

    return tuple(filter(there, AXLE_CHARACTERISTICS))


def axle_names(names: Iterable[str] | str | None, corners: tuple[Corner, Corner]) -> list[str]:
    """Chosen names as a list, by default all that the axle has."""
    if isinstance(names, str):
        return [names]
    return list(axle_available(corners) if names is None else names)
