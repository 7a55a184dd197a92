"""Build and design tolerances as functions of offsets to a mechanism.

Build tolerances are of the two halves of joints and of springs: which body carries which point,
axis or length (`elements_of`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbd.model import Mechanism, PointRef, Toward, changed, is_concrete, number
from jaxmbd.plumbing import listed, near
from jaxmbd.variables import (
    Parametrization,
    Variable,
    Variables,
    drawn_point,
    in_si,
    mechanism_of,
)


def split(
    mech: Mechanism, *names: str, brackets: Mapping[str, Iterable[str]] | None = None
) -> Parametrization:
    """Build scatter: what each part has of its own, as it leaves the shop.

    A hardpoint where two bodies meet is drilled twice, once in each: both halves get an offset of
    their own. Then the parts no longer fit as drawn, and the loops close in another position. Links
    keep their length though their ends' holes are elsewhere, up to an error of their own. The
    variables, all zero as drawn:

    * ``offsets/POINT@BODY`` (3,) [m]: of a hardpoint on one body, from where it is drawn. It moves
      the halves of all joints, springs and axes there on this body, but not the body's centre of
      mass, its loads, tyres, drives and stops, nor the drawn point itself.
    * ``tilts/JOINT@BODY`` (2,) [rad]: of an axis given by components, about two perpendiculars
      (the text names them). An axis between two points tilts by their offsets.
    * ``lengths/ROD`` [m]: of a rod, or of a spring's free length.
    * ``shifts/BRACKET`` (3,) [m]: a common offset of several points.

    The result is called with any of these, and with paths of `variables` too: these move the
    design, as a shared hardpoint, from which the offsets count. For scatter of the design alone,
    to which all parts are made to fit, see `shared`.

    Args:
        mech: the mechanism.
        *names: of joints, springs or hardpoints to be split; by default all.
        brackets: name to the halves ``POINT@BODY`` that it carries, as names or patterns.

    Returns:
        a function of a dictionary of offsets to the mechanism, and a table of the offsets.

    Raises:
        ValueError: unknown names, with near misses.

    Example:
        >>> import jaxmbd as mbd
        >>> build = mbd.tolerances.split(mbd.zoo.multi_link(), "sph_ua", "tierod")
        >>> for path in build.variables:
        ...     print(path)
        offsets/upper_arm_ball@upper_arm
        offsets/upper_arm_ball@upright
        offsets/tierod_inboard@ground
        offsets/tierod_outboard@upright
        lengths/tierod
        >>> exact, longer = build({}), build({"lengths/tierod": "1 mm"})
        >>> round(float(longer.joints["tierod"].length - exact.joints["tierod"].length), 12)
        0.001
    """
    chosen = _chosen(elements_of(mech), names)
    points: dict[str, str] = {}
    for element in chosen:
        points |= element.points
    if len(set(found := [x for e in chosen for x in _own_paths(e)])) < len(found):
        twice = sorted({path for path in found if found.count(path) > 1})
        raise ValueError(f"{twice} would be two things: give joints and forces names of their own")
    carried = {name: _carried(name, halves, points) for name, halves in (brackets or {}).items()}
    function = _Build(mech, tuple(chosen), points, carried)
    return Parametrization(function, Variables(_build_variables(mech, function)), mech)


def shared(mech: Mechanism, *names: str) -> Parametrization:
    """Design scatter: hardpoints that move with all that meet there.

    Every part is made to fit, so that a suspension is aligned as drawn whatever the offsets: only
    its curves change. It answers how the design's choice of hardpoints acts, not what the shop
    delivers: for that see `split`. The variables are ``offsets/POINT`` (3,) [m], zero as drawn; the
    result is called with these and with paths of `variables`.

    Args:
        mech: the mechanism.
        *names: of hardpoints, or patterns; by default all.

    Returns:
        a function of a dictionary of offsets to the mechanism, and a table of the offsets.

    Raises:
        ValueError: unknown names, with near misses.

    Example:
        >>> import jaxmbd as mbd
        >>> design = mbd.tolerances.shared(mbd.zoo.multi_link(), "tierod_*")
        >>> design({"offsets/tierod_inboard": (0, 0, 1e-3)}).points["tierod_inboard"]
        array([-0.257,  0.32 , -0.115])
    """
    known = mech.structure.points
    chosen = [n for n in known if not names or any(fnmatchcase(n, p) for p in names)]
    missing = [p for p in names if not any(fnmatchcase(n, p) for n in known)]
    if missing:
        raise ValueError(_no_such(missing, known, "point"))
    table = [
        _offset(mech, f"offsets/{n}", n, f"offset of {n}, of all that meet there") for n in chosen
    ]
    return Parametrization(_Design(mech, tuple(chosen)), Variables(table), mech)


@dataclass(frozen=True)
class _Design:
    """Moves shared hardpoints."""

    mech: Mechanism
    points: tuple[str, ...]

    def __call__(self, values: Mapping[str, Any]) -> Mechanism:
        own = {f"offsets/{n}": n for n in self.points}
        offsets, rest = _separated(values, own)
        mech = mechanism_of(self.mech, rest)
        points = {own[path]: _added(mech, own[path], [x]) for path, x in offsets.items()}
        return mech.replace(points=points)


@dataclass(frozen=True)
class _Build:
    """Moves halves of joints, tilts axes, changes lengths."""

    mech: Mechanism
    elements: tuple[Element, ...]
    points: Mapping[str, str]
    """Half ``POINT@BODY`` to drawn point."""
    brackets: Mapping[str, tuple[str, ...]]

    def tilts(self) -> dict[str, tuple[Element, Half]]:
        """Path to element and axis."""
        return {f"tilts/{e.name}@{h.body}": (e, h) for e in self.elements for h in e.axes}

    def lengths(self) -> dict[str, tuple[Element, str]]:
        """Path to element and field."""
        return {f"lengths/{e.name}": (e, field) for e in self.elements for field in e.lengths}

    def paths(self) -> list[str]:
        """All variables of its own."""
        offsets = [f"offsets/{half}" for half in self.points]
        shifts = [f"shifts/{name}" for name in self.brackets]
        return [*offsets, *self.tilts(), *self.lengths(), *shifts]

    def __call__(self, values: Mapping[str, Any]) -> Mechanism:
        given, rest = _separated(values, self.paths())
        mech = mechanism_of(self.mech, rest)
        parts: dict[str, dict[str, Any]] = {"joints": {}, "forces": {}}
        for element in self.elements:
            part = getattr(mech, element.kind)[element.name]
            axes = {h.field: self._axis(part, element, h, given) for h in element.axes}
            error = given.get(f"lengths/{element.name}", 0.0)
            lengths = {f: x + error for f, x in _lengths(part, element, mech).items()}
            parts[element.kind][element.name] = moved_halves(part, element, axes, lengths)
        points = {}
        for half, point in self.points.items():
            carriers = [f"shifts/{n}" for n, halves in self.brackets.items() if half in halves]
            moves = [given[path] for path in (f"offsets/{half}", *carriers) if path in given]
            points[half] = _added(mech, point, moves)
        return mech.replace(points=points, **parts)

    def _axis(self, part: Any, element: Element, half: Half, given: Mapping[str, Any]) -> Any:
        """The direction, tilted if there is a tilt: ``d + θ × d``, of any length."""
        joint = getattr(part, "replaced_joint", None) or part
        direction = getattr(joint, half.field)
        direction = joint.axis if direction is None else direction
        tilt = given.get(f"tilts/{element.name}@{half.body}")
        if tilt is None:
            return direction
        drawn = np.asarray(half.value, float)
        drawn = np.append(drawn, np.zeros(3 - drawn.size))  # one in the plane lies in space too
        levers = [np.cross(axis, drawn) for axis in tilt_axes(half.value)]
        columns = np.stack(levers)[:, : direction.shape[0]]
        return direction + tilt @ columns


def _lengths(part: Any, element: Element, mech: Mechanism) -> dict[str, Any]:
    """Its lengths as given, or as drawn."""
    if all(getattr(part, f) is not None for f in element.lengths):
        return {f: getattr(part, f) for f in element.lengths}
    return {
        f: x for f, x in part.implied(partial(drawn_point, mech)).items() if f in element.lengths
    }


def _own_paths(element: Element) -> list[str]:
    """Variables of one element alone."""
    tilts = [f"tilts/{element.name}@{half.body}" for half in element.axes]
    return tilts + [f"lengths/{element.name}" for _ in element.lengths]


def _separated(
    values: Mapping[str, Any], own: Iterable[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Offsets by path, in SI units, and values that are variables of the mechanism."""
    own = set(own)
    ours = ("offsets/", "tilts/", "lengths/", "shifts/")
    if unknown := [p for p in values if p.startswith(ours) and p not in own]:
        raise ValueError(_no_such(unknown, sorted(own), "offset"))
    given = {
        p: number(
            in_si(x, "rad" if p.startswith("tilts/") else "m", p) if isinstance(x, str) else x
        )
        for p, x in values.items()
        if p in own
    }
    return given, {p: x for p, x in values.items() if p not in own}


def _added(mech: Mechanism, point: str, offsets: list[Any]) -> Any:
    """A drawn point and its offsets."""
    place = mech.points[point]
    for offset in offsets:
        if jnp.shape(offset) != jnp.shape(place):
            raise ValueError(
                f"the offset of '{point}' has shape {jnp.shape(offset)}; give {jnp.size(place)} "
                "numbers [m]"
            )
        place = place + offset
    return place


def _chosen(elements: list[Element], names: tuple[str, ...]) -> list[Element]:
    """The elements of these names, and those at hardpoints of these names."""
    if not names:
        return elements
    found = [e for e in elements if e.name in names or set(names) & set(e.points.values())]
    known = {e.name for e in elements} | {p for e in elements for p in e.points.values()}
    if unknown := [n for n in names if n not in known]:
        raise ValueError(_no_such(unknown, sorted(known), "joint, spring or hardpoint"))
    return found


def _carried(bracket: str, halves: Iterable[str], points: Mapping[str, str]) -> tuple[str, ...]:
    found: list[str] = []
    for pattern in [halves] if isinstance(halves, str) else halves:
        fit = [half for half in points if fnmatchcase(half, pattern)]
        if not fit:
            where = f"half of a joint for the bracket '{bracket}'"
            raise ValueError(_no_such([pattern], list(points), where))
        found += [half for half in fit if half not in found]
    return tuple(found)


def _no_such(names: Iterable[str], known: Collection[str], what: str) -> str:
    problems = []
    for name in names:
        cure = f"known: {listed([repr(x) for x in dict.fromkeys([*near(name, known), *known])], 8)}"
        if (whole := name.rpartition("/")[0]) in known:
            cure = f"give all components of {whole!r} at once, as three spreads (sx, sy, sz)"
        problems.append(f"there is no {what} {name!r}; {cure}")
    return listed(problems, between="; ")


def _offset(mech: Mechanism, path: str, point: str, text: str) -> Variable:
    n = int(np.size(mech.points[point]))
    return Variable(path, np.zeros(n), "m", text, tuple("xyz"[:n]))


def _build_variables(mech: Mechanism, build: _Build) -> Iterable[Variable]:
    users: dict[str, list[str]] = {}
    for element in build.elements:
        for half in element.points:
            users.setdefault(half, []).append(element.name)
    for half, point in build.points.items():
        text = f"offset of {point} on {half[len(point) + 1 :]}, for {', '.join(users[half])}"
        yield _offset(mech, f"offsets/{half}", point, text)
    for path, (element, half) in build.tilts().items():
        axes = tilt_axes(half.value)
        about = " and ".join("(" + ", ".join(f"{c:.3g}" for c in a) + ")" for a in axes)
        text = f"tilt of {half.field} of {element.name} on {half.body}, about {about}"
        yield Variable(path, np.zeros(len(axes)), "rad", text, tuple("01"[: len(axes)]))
    for path, (element, field) in build.lengths().items():
        yield Variable(path, np.zeros(()), "m", f"error of {field} of {element.name}")
    for name, halves in build.brackets.items():
        point = build.points[halves[0]]
        yield _offset(mech, f"shifts/{name}", point, f"common offset of {', '.join(halves)}")


REFERENCES = ("x_axis",)
"""Directions that only say how a coordinate is counted; they have no tolerance."""


class Half(NamedTuple):
    """A field of an element that is a feature of one body.

    Attributes:
        field: of the element, for example "at_b".
        body: the body that carries it.
        value: what it is or follows: a `PointRef`, a `Toward`, or a direction.
    """

    field: str
    body: str
    value: Any


class Element(NamedTuple):
    """A joint or force element whose halves may lie apart from each other.

    Attributes:
        kind: "joints" or "forces".
        name: its name.
        halves: its points and axes.
        lengths: fields of its own lengths, which may follow the drawing.
    """

    kind: str
    name: str
    halves: tuple[Half, ...]
    lengths: tuple[str, ...]

    @property
    def points(self) -> dict[str, str]:
        """Name of the half's own point, ``POINT@BODY``, to that of the drawn point."""
        found = {}
        for half in self.halves:
            for name in point_names(half.value):
                found[f"{name}@{half.body}"] = name
        return found

    @property
    def axes(self) -> tuple[Half, ...]:
        """Halves that are directions by components, and tilt."""
        return tuple(h for h in self.halves if not point_names(h.value))


def point_names(value: Any) -> tuple[str, ...]:
    """Names of the points that a reference refers to."""
    if isinstance(value, PointRef):
        return (value.name,)
    return (value.start, value.end) if isinstance(value, Toward) else ()


def elements_of(mech: Mechanism) -> list[Element]:
    """All joints, and the force elements that join two bodies, in the order of declaration."""
    s = mech.structure
    found = [_element("joints", e.name, mech.joints[e.name]) for e in s.joints]
    found += [_element("forces", n, mech.forces[n]) for n in s.forces if mech.forces[n].joins]
    return [x for x in found if x.halves]


def _element(kind: str, name: str, part: Any) -> Element:
    joint = getattr(part, "replaced_joint", None) or part
    lengths = [f for f in part.implied(lambda ref: np.ones(3)) if f.endswith("length")]
    return Element(kind, name, (*_points(joint), *_directions(joint)), tuple(lengths))


def _points(part: Any) -> Iterator[Half]:
    """The points on a and on b; where one point serves both, b gets its own."""
    first = "at_a" if hasattr(part, "at_a") and not hasattr(part, "at") else "at"
    at_a, at_b = getattr(part, first, None), getattr(part, "at_b", None)
    if isinstance(at_a, PointRef):
        yield Half(first, part.a, at_a)
    if isinstance(at_b or at_a, PointRef) and hasattr(part, "at_b"):
        yield Half("at_b", part.b, at_b or at_a)


def _directions(part: Any) -> Iterator[Half]:
    """The axes on a and on b, likewise."""
    for field in getattr(part, "directions", ()):
        value = getattr(part, field)
        if field == "axis_b" and value is None:
            value = part.axis
        if value is not None and field not in REFERENCES:
            yield Half(field, part.b if field.endswith("_b") else part.a, value)


def moved_halves(part: Any, element: Element, axes: dict[str, Any], lengths: dict[str, Any]) -> Any:
    """The part with points of its own at each half, tilted axes and given lengths.

    Args:
        part: the joint or force element.
        element: what it consists of.
        axes: field to tilted direction.
        lengths: field to length [m].
    """
    fields: dict[str, Any] = dict(axes)
    for half in element.halves:
        names = [f"{n}@{half.body}" for n in point_names(half.value)]
        if names:
            fields[half.field] = PointRef(*names) if len(names) == 1 else Toward(*names)
    inner = getattr(part, "replaced_joint", None)
    if inner is not None:
        return changed(part, replaced=changed(inner, **fields), **lengths)
    return changed(part, **fields, **lengths)


def tilt_axes(direction: Any) -> np.ndarray:
    """Axes (n, 3) about which a direction tilts, perpendicular to it: two, or z in the plane.

    Of the global axes the one least along the direction comes first, made perpendicular.
    """
    if not is_concrete(direction):
        raise ValueError("an axis is traced; split a mechanism of known numbers")
    d = np.asarray(direction, float)
    if d.shape == (2,):
        return np.array([[0.0, 0.0, 1.0]])
    d = d / np.linalg.norm(d)
    first = np.eye(3)[np.argmin(np.abs(d))]
    first = first - (first @ d) * d
    first = first / np.linalg.norm(first)
    second = np.cross(d, first)
    return np.stack([first, second * np.sign(second[np.argmax(np.abs(second))])]) + 0.0
