"""What a car is set up by: lengths that are screwed, and points of a part that are moved.

A hardpoint of the drawing is drawn on all parts that meet there, and moving it makes every part
anew: that is design. An *adjuster* leaves all parts as they are but one:

- an `AdjustableLength` is the length of a rod, or the free length of a spring (its seat on a
  thread): no hardpoint moves;
- a `Shim` moves a point of one body, by a distance along a direction of the drawing. All joints and
  forces that hold the body there go with it; what other bodies have there stays. A wishbone's ball
  on the upright, the hinge of an arm on the chassis, and the end of a link that is a body (along
  itself: a turnbuckle) are adjusted so. Lengths that follow the drawing are those before.

An adjusted mechanism is drawn with its loops open; `assemble` and every experiment close them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbd.model import Mechanism, PointRef, Toward, changed
from jaxmbd.plumbing import hint, refuse
from jaxmbd.suspension.corner import Corner
from jaxmbd.variables import get_variables, set_variables, variables

_Z = (0.0, 0.0, 1.0)
_LENGTHS = {"joints": "length", "forces": "free_length"}
"""Fields that are lengths to be screwed, by the kind of part."""


@dataclass(frozen=True)
class AdjustableLength:
    """The length of a rod, or the free length of a spring, as an adjuster.

    Attributes:
        part: name of a `Rod` or a `SpringDamper`, or the path of any length of a joint or force
            element (`jaxmbd.variables`).
        per_turn: change of the length by one turn [m]; of a turnbuckle with a left-handed and a
            right-handed thread the sum of both pitches.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import AdjustableLength
        >>> AdjustableLength("trackrod").path(mbd.zoo.double_wishbone_kinematic())
        'joints/trackrod/length'
    """

    part: str
    per_turn: float | None = None

    def path(self, mech: Mechanism) -> str:
        """Path of the length; empty where the mechanism has no such one."""
        return next((p for p in self._paths() if p in _lengths(mech)), "")

    def _paths(self) -> tuple[str, ...]:
        return self.part, *(f"{kind}/{self.part}/{field}" for kind, field in _LENGTHS.items())

    def problems(self, mech: Mechanism) -> list[str]:
        """That the mechanism has no such length, with those that it has; a turn of no length."""
        found = _turn_problems(self.per_turn)
        if self.path(mech):
            return found
        if self.part.startswith("points/"):
            return [
                f"{self.part!r} is a hardpoint of all parts that meet there, and moving it makes "
                "these anew; name the part that is shimmed, Shim(body, point, along)",
                *found,
            ]
        known = [p.split("/")[1] if p.count("/") == 2 else p for p in _lengths(mech)]
        return [f"there is no adjustable length {self.part!r}; {hint(self.part, known)}", *found]


@dataclass(frozen=True)
class Shim:
    """A point of one body, moved along a direction: a shim, a spacer or a turnbuckle.

    Attributes:
        body: its name, or "ground".
        point: name of the hardpoint, where joints or forces hold the body.
        along: direction (3,) as drawn, of any length, or the names of two points (from, to).
        per_turn: distance by one turn, or by one shim [m].
        parts: names of the joints and forces that go with it; by default all that hold the body
            there. A rack whose slide is drawn at the track rod's end is shimmed there by
            ``parts=("trackrod",)``: the slide stays.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import Shim
        >>> plate = Shim("upright", "upper_wishbone_outboard", (0.0, 1.0, 0.0))
        >>> plate.problems(mbd.zoo.double_wishbone_kinematic())
        []
    """

    body: str
    point: str
    along: Any
    per_turn: float | None = None
    parts: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        along = tuple(x if isinstance(x, str) else float(x) for x in self.along)
        object.__setattr__(self, "along", along)
        if self.parts is not None:
            one = isinstance(self.parts, str)
            object.__setattr__(self, "parts", (self.parts,) if one else tuple(self.parts))

    def moves(self, part: str) -> bool:
        """Whether a joint or force element goes with it."""
        return self.parts is None or part in self.parts

    def direction(self, mech: Mechanism) -> Any:
        """Unit vector (3,) as drawn."""
        if isinstance(self.along[0], str):
            start, end = (mech.point(n) for n in self.along)
            along = jnp.asarray(end - start)
        else:
            along = jnp.asarray(self.along, mech.dtype)
        return along / jnp.sqrt(along @ along)

    def problems(self, mech: Mechanism) -> list[str]:
        """That nothing holds the body there, or that the direction is none."""
        found = _turn_problems(self.per_turn)
        names = [x for x in self.along if isinstance(x, str)]
        missing = [x for x in names if x not in mech.points]
        if len(self.along) != (2 if names else 3) or len(names) not in (0, 2):
            found.append(f"along={self.along}; give a direction (3,) or two points (from, to)")
        elif missing:
            found.append(f"along={self.along}: there is no point {missing[0]!r}")
        elif names and names[0] == names[1]:
            found.append(f"along={self.along} is one point; give two points (from, to)")
        elif not names and not 0.0 < math.hypot(*self.along) < math.inf:
            found.append(f"along={self.along} has no direction")
        held = _held_points(mech, self.body)
        some = [n for n, points in held.items() if self.point in points]
        if not some:
            known = dict.fromkeys(x for points in held.values() for x in points)
            found.append(
                f"no joint or force element holds {self.body!r} at point {self.point!r}; "
                f"{hint(self.point, known)}"
            )
        return found + [
            f"{n!r} of parts= does not hold {self.body!r} at {self.point!r}; {hint(n, some)}"
            for n in self.parts or ()
            if some and n not in some
        ]


Adjuster = AdjustableLength | Shim


def adjuster(x: Any) -> Adjuster:
    """An adjuster as it is; a name stands for an `AdjustableLength`."""
    if isinstance(x, str):
        return AdjustableLength(x)
    if not isinstance(x, (AdjustableLength, Shim)):
        raise ValueError(f"{x!r} is no adjuster; give an AdjustableLength, a Shim or a part's name")
    return x


def adjusted(mech: Mechanism, changes: Mapping[Adjuster, Any]) -> Mechanism:
    """The mechanism with some adjusters changed; its hardpoints stay where they are drawn.

    It is a pure function of numbers that may be traced. A shimmed point is a further point of the
    mechanism, ``"<point> on <body>"``, which `adjusted_roles` puts into the roles of a corner.

    Args:
        mech: the mechanism.
        changes: adjuster to its change [m].

    Raises:
        ValueError: an adjuster does not fit the mechanism.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import AdjustableLength, adjusted
        >>> corner = mbd.zoo.double_wishbone_kinematic()
        >>> longer = adjusted(corner, {AdjustableLength("trackrod"): 0.001})
        >>> change = longer.joints["trackrod"].length - mbd.get_variables(
        ...     corner, ["joints/trackrod/length"])["joints/trackrod/length"]
        >>> round(float(change), 6)
        0.001
    """
    refuse("adjusters", [text for x in changes for text in x.problems(mech)])
    lengths: dict[str, Any] = {}
    offsets: dict[Shim, Any] = {}
    for what, change in changes.items():
        if isinstance(what, Shim):
            place = Shim(what.body, what.point, _Z, parts=what.parts)
            offsets[place] = offsets.get(place, 0.0) + change * what.direction(mech)
        else:
            path = what.path(mech)
            lengths[path] = lengths.get(path, 0.0) + change
    result = _shimmed(mech, offsets) if offsets else mech
    if lengths:
        now = get_variables(mech, lengths)  # as drawn before the shims
        result = set_variables(result, {path: now[path] + x for path, x in lengths.items()})
    return result


def adjusted_roles(corner: Corner, adjusters: Sequence[Adjuster]) -> Corner:
    """The roles of a corner in an adjusted mechanism: points that are shimmed go with their body.

    Example:
        >>> from jaxmbd.suspension import Shim, adjusted_roles, zoo_corner
        >>> plate = Shim("upright", "upper_wishbone_outboard", (0.0, 1.0, 0.0))
        >>> adjusted_roles(zoo_corner("double_wishbone_kinematic"), [plate]).kingpin[1]
        'upper_wishbone_outboard on upright'
    """
    moved = {
        (x.body, x.point): _new_name(x.body, x.point) for x in adjusters if isinstance(x, Shim)
    }

    def place(role: str, x: Any) -> Any:
        body, point = corner.placed(role, x)
        found = moved.get((body, point)) if isinstance(point, str) else None
        if found is None:
            return x
        return (body, found) if isinstance(x, tuple) else found

    def places(points: Any, on_upright: Sequence[int]) -> Any:
        if points is None:
            return None
        usual = ("upright" if i in on_upright else "chassis" for i in range(len(points)))
        return tuple(place(role, x) for role, x in zip(usual, points, strict=True))

    spindle = corner.spindle
    return replace(
        corner,
        wheel_centre=place("upright", corner.wheel_centre),
        spindle=places(spindle, (0, 1)) if spindle is not None and len(spindle) == 2 else spindle,
        kingpin=places(corner.kingpin, (0, 1)),
        upper_arm=places(corner.upper_arm, (2,)),
        lower_arm=places(corner.lower_arm, (2,)),
        strut=places(corner.strut, (0,)),
    )


def _turn_problems(per_turn: float | None) -> list[str]:
    if per_turn is None or 0.0 < per_turn < math.inf:
        return []
    return [f"per_turn={per_turn!r}; give the change by one turn, a positive length [m]"]


def _lengths(mech: Mechanism) -> list[str]:
    """Paths of all single lengths of joints and force elements."""
    every = variables(mech, implied=True).values()
    single = [x.path for x in every if x.unit == "m" and np.ndim(x.value) == 0]
    return [path for path in single if path.partition("/")[0] in _LENGTHS]


def _new_name(body: str, point: str) -> str:
    return f"{point} on {body}"


def _halves(element: Any) -> dict[str, tuple[str, str]]:
    """Points and directions: the body that each is on, and the field it is as where not given."""
    a, b = getattr(element, "a", None), getattr(element, "b", None)
    both = hasattr(element, "at_b")
    places = {"at_a": (a, "at_a"), "at": (a if both else b, "at")}
    places["at_b"] = b, "at" if hasattr(element, "at") else "at_b"
    for f in getattr(element, "directions", ()):
        base = f.removesuffix("_b")
        on_b = f != base
        places[f] = b if on_b else a, base if on_b and hasattr(element, base) else f
    return {f: (x, base) for f, (x, base) in places.items() if hasattr(element, f) and x}


def _held_points(mech: Mechanism, body: str) -> dict[str, list[str]]:
    """Names of joints and forces to those of the points by which they hold a body."""
    every: dict[str, list[str]] = {}
    for name, element in (*mech.joints.items(), *mech.forces.items()):
        found = every.setdefault(name, [])
        for f, (on, base) in _halves(element).items():
            x = getattr(element, f)
            x = getattr(element, base) if x is None else x
            if on == body and isinstance(x, PointRef):
                found.append(x.name)
            elif on == body and isinstance(x, Toward):
                found += [x.start, x.end]
    return every


def _shimmed(mech: Mechanism, offsets: Mapping[Shim, Any]) -> Mechanism:
    """The mechanism with points of bodies moved; the direction of these shims is not used."""
    names = {shim: _new_name(shim.body, shim.point) for shim in offsets}
    found = [f"{n!r} is a point already; rename it" for n in names.values() if n in mech.points]
    if len(set(names.values())) < len(names):
        found.append("shims of one body at one point need the same parts=")
    refuse("Shim", found)
    points = {n: mech.point(shim.point) + offsets[shim] for shim, n in names.items()}
    parts: dict[str, dict[str, Any]] = {"joints": {}, "forces": {}}
    for kind, some in parts.items():
        for name, element in getattr(mech, kind).items():
            moved = {(x.body, x.point): n for x, n in names.items() if x.moves(name)}
            changes = _split(element, moved)
            if changes:
                some[name] = changed(element, **_as_drawn(mech, element), **changes)
    return mech.replace(points=points, **parts)


def _as_drawn(mech: Mechanism, element: Any) -> dict[str, Any]:
    """Numbers that follow the drawing, fixed."""
    empty = {f.name for f in fields(element) if getattr(element, f.name) is None}
    return {n: x for n, x in element.implied(mech.point).items() if n in empty}


def _split(element: Any, names: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Fields of an element that change where bodies get points of their own."""

    def own(body: str, x: Any) -> Any:
        if isinstance(x, PointRef) and (body, x.name) in names:
            return PointRef(names[body, x.name])
        if isinstance(x, Toward):
            ends = [names.get((body, n), n) for n in (x.start, x.end)]
            return x if ends == [x.start, x.end] else Toward(*ends)
        return x

    new, changes = {}, {}
    for f, (body, base) in _halves(element).items():
        given, other = getattr(element, f), getattr(element, base)
        old = other if given is None else given
        new[f] = own(body, old)
        as_other = given is None and new[f] is old and new[base] is other
        if new[f] is not given and not as_other:
            changes[f] = new[f]
    return changes
