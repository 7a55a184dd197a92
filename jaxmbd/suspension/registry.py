"""The characteristics of a corner: functions of one instant, each with name, unit and sign.

A characteristic is a function of an `Instant`, registered by `characteristic` under its own name;
a new one is one more such function. All signs are those of ISO 8855 axes (x forward, y left, z up),
stated for each; a quantity of a right wheel has the sign of its mirror image on the left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
from jax import Array

from jaxmbd.plumbing import meant
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.motions import CornerState, contact_point


class Instant:
    """A corner at one instant, as its characteristics see it.

    Attributes:
        corner: the roles.
        state: points, directions and twists.
        rates: function of "travel" or "steer" that gives the state's derivatives along that motion.

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
        self, corner: Corner, state: CornerState, rates: Callable[[str], CornerState] | None = None
    ):
        self.corner, self.state, self.rates = corner, state, rates

    @property
    def contact(self) -> Array:
        """The wheel's ground contact (3,) [m], `contact_point`."""
        return contact_point(self.state.centre, self.state.spin, self.corner.tyre_radius)

    @property
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


def name_problems(corner: Corner, name: str) -> list[str]:
    """Why there is no characteristic of this name for the corner."""
    if name not in CHARACTERISTICS:
        return [
            f"there is no characteristic {name!r}"
            f"{meant(name, CHARACTERISTICS) or f'; there are {list(CHARACTERISTICS)}'}"
        ]
    return [f"{name}: {text}" for text in CHARACTERISTICS[name].missing(corner)]


def texts() -> Mapping[str, str]:
    """What every characteristic is, with unit and sign: a table to read.

    Example:
        >>> from jaxmbd.suspension import texts
        >>> texts()["camber"]
        'camber [rad], positive: top leans outward'
    """
    return {n: f"{x.text}" for n, x in CHARACTERISTICS.items()}
