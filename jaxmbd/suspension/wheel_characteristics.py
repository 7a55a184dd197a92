"""The characteristics of a corner: functions of one instant, each with name, unit and sign.

A characteristic is a function of an `Instant`, registered by `characteristic` under its own name;
a new one is one more such function. All signs are those of ISO 8855 axes (x forward, y left, z up),
stated for each; a quantity of a right wheel has the sign of its mirror image on the left.

Those of the wheel's attitude and place are here, with s the unit vector along the wheel's axis,
outwards, and σ = +1 on the left, −1 on the right; the others are in `steering_axis` and
`travel_motion`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.model import Mechanism
from jaxmbd.observe import Observable, Output, Snapshot
from jaxmbd.plumbing import unknown
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.motions import CornerState, Held, contact_point, corner_state, state_rates


class Instant:
    """A corner at one instant, as its characteristics see it.

    Attributes:
        corner: the roles.
        state: points, directions and twists.
        rates: function of "travel" or "steer" that gives the state's derivatives along that motion.
        up: normal of the ground (3,), a unit vector.
        shared: what characteristics have found and other ones need too, by keys of their own.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Snapshot
        >>> from jaxmbd.suspension import instant, zoo_corner
        >>> mech = mbd.zoo.double_wishbone_kinematic()
        >>> at = instant(Snapshot(mech, mbd.neutral(mech)), zoo_corner("double_wishbone_kinematic"))
        >>> at.state.centre.shape
        (3,)
    """

    def __init__(
        self,
        corner: Corner,
        state: CornerState,
        rates: Callable[[str], CornerState] | None = None,
        up: Any = (0.0, 0.0, 1.0),
    ):
        self.corner, self.state, self.rates, self.up = corner, state, rates, up
        self.shared: dict[Any, Any] = {}

    @cached_property
    def contact(self) -> Array:
        """The wheel's ground contact (3,) [m], `contact_point`."""
        return contact_point(self.state.centre, self.state.spin, self.corner.tyre_radius, self.up)

    @cached_property
    def drawn_contact(self) -> Array:
        """The same as drawn."""
        s = self.state
        return contact_point(s.drawn_centre, s.drawn_spin, self.corner.tyre_radius)

    def gradient(self, name: str, along: str = "travel") -> Array:
        """Exact derivative of a characteristic along the "travel" or the "steer" motion."""
        assert self.rates is not None
        fn, corner = CHARACTERISTICS[name].fn, self.corner
        tangents = (self.rates(along),)
        return jax.jvp(lambda s: fn(Instant(corner, s)), (self.state,), tangents)[1]


class Definition(NamedTuple):
    """What a characteristic is.

    Attributes:
        name: its name.
        unit: SI unit, "" for a pure number.
        text: what it is, with its sign.
        fn: the function of an `Instant`.
        needs: attributes of `Corner` that must be given; one of those separated by "|".
        axle: "front" or "rear" if it exists for that axle only.
        vector: whether it has three components.
        second: whether it is made of second derivatives, so that it has no gradient here.

    Example:
        >>> from jaxmbd.suspension import CHARACTERISTICS
        >>> CHARACTERISTICS["camber"].unit
        'rad'
    """

    name: str
    unit: str
    text: str
    fn: Callable[[Instant], Array]
    needs: tuple[str, ...] = ()
    axle: str | None = None
    vector: bool = False
    second: bool = False

    def missing(self, corner: Corner) -> list[str]:
        """Why it does not exist for a corner; empty where it does."""
        if self.axle is not None and corner.axle != self.axle:
            return [f"it is of a {self.axle} axle, and this corner has axle={corner.axle!r}"]
        return [
            f"it needs {' or '.join(f'{x}=' for x in need.split('|'))} in the Corner"
            for need in self.needs
            if all(getattr(corner, x) is None for x in need.split("|"))
        ]


CHARACTERISTICS: dict[str, Definition] = {}
"""All characteristics by name, in the order of their declaration."""


def characteristic(unit: str, text: str, **options: Any) -> Callable[[Any], Any]:
    """Register a function of an `Instant` under its own name.

    Example:
        >>> from jaxmbd.suspension import CHARACTERISTICS, characteristic
        >>> @characteristic("m", "height of the wheel centre [m]")
        ... def wheel_height(at):
        ...     return at.state.centre[2]
        >>> CHARACTERISTICS.pop("wheel_height").unit  # and out again
        'm'
    """

    def registered(fn: Callable[[Instant], Array]) -> Callable[[Instant], Array]:
        name = fn.__name__
        CHARACTERISTICS[name] = Definition(name, unit, text, fn, **options)
        return fn

    return registered


def available(corner: Corner) -> tuple[str, ...]:
    """Names of the characteristics that a corner has, with the roles that it names.

    Example:
        >>> from jaxmbd.suspension import available, zoo_corner
        >>> "kingpin_inclination" in available(zoo_corner("double_wishbone"))
        True
        >>> "kingpin_inclination" in available(zoo_corner("multi_link"))
        False
    """
    return tuple(n for n, x in CHARACTERISTICS.items() if not x.missing(corner))


def texts() -> Mapping[str, str]:
    """What every characteristic is, with unit and sign: a table to read.

    Example:
        >>> from jaxmbd.suspension import texts
        >>> texts()["camber"]
        'camber [rad], positive: top leans outward'
    """
    return {n: x.text for n, x in CHARACTERISTICS.items()}


def instant(at: Snapshot, corner: Corner) -> Instant:
    """A corner as its characteristics see it, in a snapshot.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Snapshot
        >>> from jaxmbd.suspension import CHARACTERISTICS, instant, zoo_corner
        >>> mech = mbd.zoo.double_wishbone_kinematic()
        >>> at = instant(Snapshot(mech, mbd.neutral(mech)), zoo_corner("double_wishbone_kinematic"))
        >>> abs(float(CHARACTERISTICS["half_track_change"].fn(at))) < 1e-12
        True
    """
    found, held = at.shared, Held(at.keys, at.settled, at.inputs)

    def rates(along: str) -> CornerState:
        key = corner, along
        if key not in found:
            now = found[corner].state
            speeds = now.speeds if along == "travel" else now.steering
            if speeds is None:
                raise ValueError("this corner has no steering; name its rack or rod: steering=")
            found[key] = state_rates(at.mech, corner, at.q, speeds, held)
        return found[key]

    if corner not in found:
        found[corner] = Instant(corner, corner_state(at.mech, corner, at.q, held), rates)
    return found[corner]


@dataclass(frozen=True)
class Characteristic(Observable):
    """A characteristic of a corner, or its exact derivative along the travel or the steering.

    Attributes:
        corner: the roles of the corner's parts.
        name: of `jaxmbd.suspension.CHARACTERISTICS`.
        along: "travel" for the derivative per metre of wheel travel, "steer" for that per metre of
            the rack; None for the value itself.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Configuration
        >>> from jaxmbd.suspension import Characteristic, zoo_corner
        >>> roles = zoo_corner("double_wishbone_kinematic")
        >>> drawn = Configuration({}, {"kpi": Characteristic(roles, "kingpin_inclination")})
        >>> round(float(drawn(mbd.zoo.double_wishbone_kinematic())["kpi"]), 4)  # atan(150/300)
        0.4636
    """

    corner: Corner
    name: str
    along: str | None = None

    def value(self, at: Snapshot) -> Array:
        """Its value at an instant, or its derivative."""
        now = instant(at, self.corner)
        if self.along is None:
            return CHARACTERISTICS[self.name].fn(now)
        return now.gradient(self.name, self.along)

    @property
    def partial(self) -> bool:
        """A swing arm that steers nowhere has no steering axis; a spring without length fails."""
        return self.name not in CHARACTERISTICS or "spring" not in CHARACTERISTICS[self.name].needs

    def about(self, mech: Mechanism) -> Output:
        """Its unit, meaning and dimensions."""
        what = CHARACTERISTICS[self.name]
        dims, turns = ("axis",) if what.vector else (), self.corner.turns(mech)
        unit = "rad/rad" if turns and self.name == "steer_gain" else what.unit
        if self.along is None:
            return Output(unit, what.text, dims)
        motion, by = "wheel travel", "m"
        if self.along == "steer":
            motion, by = ("the pitman arm", "rad") if turns else ("travel of the rack", "m")
        return Output(f"{unit or '1'}/{by}", f"its derivative along {motion}: {what.name}", dims)

    def problems(self, mech: Mechanism) -> list[str]:
        """Roles that do not fit the mechanism or are missing, each with its remedy."""
        found = self.corner.problems(mech)
        found = found or unknown("characteristic", self.name, CHARACTERISTICS)
        what = CHARACTERISTICS.get(self.name)
        if not found and what is not None:
            found = [f"{self.name}: {text}" for text in what.missing(self.corner)]
        if self.along not in (None, "travel", "steer"):
            found.append(f"along={self.along!r}; give 'travel', 'steer' or None")
        elif self.along == "steer" and self.corner.steering is None:
            found.append("along='steer': this corner has no steering=")
        elif not found and self.along is not None and what is not None and what.second:
            found.append(f"{self.name} has second derivatives already; leave along out")
        return found


def characteristics(
    corner: Corner, names: Iterable[str] | None = None, gradients: Iterable[str] = ()
) -> dict[str, Characteristic]:
    """Observables of a corner by name, to be used as ``observe=`` of any experiment.

    Args:
        corner: the roles.
        names: of characteristics; by default all that the corner has.
        gradients: those whose derivatives along the wheel's travel are wanted as well; their names
            get the suffix ``_gradient``.

    Example:
        >>> from jaxmbd.suspension import characteristics, zoo_corner
        >>> list(characteristics(zoo_corner("multi_link"), ["toe"], gradients=["toe"]))
        ['toe', 'toe_gradient']
    """
    chosen = list(available(corner) if names is None else names)
    found = {name: Characteristic(corner, name) for name in chosen}
    return found | {f"{n}_gradient": Characteristic(corner, n, "travel") for n in gradients}


@characteristic("m", "rise of the wheel centre [m] from where it is drawn, positive: bump")
def wheel_travel(at: Instant) -> Array:
    """``z − z_drawn`` of the wheel centre, relative to the chassis as it is held."""
    return at.state.centre[2] - at.state.drawn_centre[2]


@characteristic("rad", "camber [rad], positive: top leans outward")
def camber(at: Instant) -> Array:
    """``atan2(−s_z, σ s_y)``: the wheel plane's lean in the car's transverse plane (ISO 8855)."""
    s = at.state.spin
    return jnp.arctan2(-s[2], at.corner.sign * s[1])


@characteristic("rad", "toe [rad], positive: toe-in")
def toe(at: Instant) -> Array:
    """``atan2(s_x, σ s_y)``: positive where the wheel's front points to the car's middle plane."""
    s = at.state.spin
    return jnp.arctan2(s[0], at.corner.sign * s[1])


@characteristic("rad", "steer angle [rad] about the vertical, positive: to the left")
def steer_angle(at: Instant) -> Array:
    """``atan2(−σ s_x, σ s_y)``: from x to the wheel's heading, about z (ISO 8855).

    The same for both wheels: minus the toe of a left wheel, plus the toe of a right one.
    """
    s, sign = at.state.spin, at.corner.sign
    return jnp.arctan2(-sign * s[0], sign * s[1])


@characteristic("m", "half track [m]: of the contact point from the middle plane, outwards")
def half_track(at: Instant) -> Array:
    """``σ y`` of the contact point; half the track of a symmetric axle."""
    return at.corner.sign * at.contact[1]


@characteristic("m", "track change at one wheel [m]: of the contact point, positive: outwards")
def half_track_change(at: Instant) -> Array:
    """``σ (y − y_drawn)`` of the contact point; half the change of a symmetric axle's track."""
    return at.corner.sign * (at.contact[1] - at.drawn_contact[1])


@characteristic("m", "wheelbase change at one wheel [m]: of the contact point, positive: longer")
def wheelbase_change(at: Instant) -> Array:
    """``x − x_drawn`` of the contact point on a front axle, its negative on a rear one."""
    moved = at.contact[0] - at.drawn_contact[0]
    return moved if at.corner.axle == "front" else -moved


@characteristic("m", "recession of the wheel centre [m] from its drawn place, positive: rearwards")
def recession(at: Instant) -> Array:
    """``x_drawn − x`` of the wheel centre."""
    return at.state.drawn_centre[0] - at.state.centre[0]


@characteristic("m", "ground contact point [m], world axes", vector=True)
def contact(at: Instant) -> Array:
    """The lowest point of the wheel's middle plane, `contact_point`."""
    return at.contact
