"""Warnings of descriptions that are valid and yet look wrong, each with the number.

Millimetres where metres belong, a decimal point in the wrong place, a sign that was forgotten: a
mechanism of such numbers assembles, moves and gives wrong answers. Only numbers that are known are
looked at, traced ones never. `name_pairs` finds what is left and right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from jaxmbd.model.description import Description
from jaxmbd.model.gear_doubts import gear_doubts
from jaxmbd.model.numbers import ComRef, PointRef, is_concrete
from jaxmbd.plumbing import warn_user

LARGEST, SMALLEST = 100.0, 1e-3
"""Sizes [m] of the largest body between which a drawing may be in metres: a crane's jib is shorter,
a watch's wheel larger."""
FAR = 10.0
"""Distance of a point from all others, over the size of their drawing."""
WIDE = 30.0
"""A body's radius of gyration over the size of the largest body."""
STRETCHED = 5.0
"""A spring's free length over its drawn one."""

Parts = Mapping[str, Any]
Point = tuple[float, ...]


def warn_of_implausible(given: Description, earlier: Description | None = None) -> None:
    """One warning for each thing that looks wrong and was not so in the `earlier` description.

    Joints and forces have points by name.
    """
    if not all(is_concrete(x) for x in given.points.values()):
        return
    found = implausible(given)
    if found and earlier is not None and all(is_concrete(x) for x in earlier.points.values()):
        known = implausible(earlier)
        found = [text for text in found if text not in known]
    for text in found:
        warn_user(text)


def implausible(given: Description) -> list[str]:
    """What looks wrong, in words; all points are known."""
    bodies, joints = given.bodies, given.joints
    x = {name: tuple(np.asarray(p, float).ravel().tolist()) for name, p in given.points.items()}
    size, largest = _largest_body(bodies, joints, x)
    found = list(_size_problems(size, largest))
    found += _wide_inertias(bodies, size)
    found += _far_point(x)
    found += _swapped_pairs(x)
    found += _rod_across(joints, x)
    found += _crossing_rods(joints, x)
    for name, element in given.forces.items():
        found += [f"force '{name}': {text}; it is used as given" for text in _odd(element, x, size)]
    return [*found, *gear_doubts(given)]


def _largest_body(bodies: Parts, joints: Parts, x: dict[str, Point]) -> tuple[float, str]:
    """Size of the largest moving body, between its joints' points and its centre of mass."""
    own: dict[str, list[Point]] = {name: [] for name in bodies}
    for joint in joints.values():
        for body, ref in joint.attachments:
            if body in own and isinstance(ref, PointRef):
                own[body].append(x[ref.name])
    for name, body in bodies.items():
        if isinstance(body.com, PointRef):
            own[name].append(x[body.com.name])
        elif not isinstance(body.com, ComRef) and is_concrete(body.com):
            own[name].append(tuple(np.asarray(body.com, float).tolist()))
    sizes = [(extent(of), name) for name, of in own.items()]
    return max(sizes, default=(0.0, ""))


def extent(points: list[Point]) -> float:
    """Diagonal of the box around some points."""
    return math.hypot(*(max(c) - min(c) for c in zip(*points, strict=False)))


def _size_problems(size: float, body: str) -> Iterator[str]:
    if size > LARGEST:
        yield (
            f"body '{body}' is {size:.4g} m long as drawn: are the points in millimetres? "
            "jaxmbd computes in metres"
        )
    elif 0.0 < size < SMALLEST:
        yield (
            f"the largest body, '{body}', is {size:.4g} m long as drawn: are its points in metres?"
        )


def _wide_inertias(bodies: Parts, size: float) -> Iterator[str]:
    """Inertias of bodies much wider than the drawing, as those in kg mm² are."""
    for name, body in bodies.items():
        if not (is_concrete(body.mass) and is_concrete(body.inertia)) or not size > 0.0:
            continue
        most, mass = float(np.max(body.inertia)), float(body.mass)
        if most > mass * (WIDE * size) * (WIDE * size) > 0.0:
            yield (
                f"body '{name}': an inertia of {most:.4g} kg m² is that of {mass:.4g} "
                f"kg at a radius of {math.sqrt(most / mass):.4g} m, but the largest body is "
                f"{size:.4g} m long: is it in other units?"
            )


def _far_point(x: dict[str, Point]) -> Iterator[str]:
    """A point much farther from all others than these are from each other."""
    if len(x) < 4:
        return
    names = list(x)
    axes = range(len(next(iter(x.values()))))
    ends = {f(names, key=lambda n, k=k: x[n][k]) for k in axes for f in (min, max)}
    for name in sorted(ends):
        others = [p for n, p in x.items() if n != name]
        around, near = extent(others), min(math.dist(x[name], p) for p in others)
        if near > FAR * around > 0.0:
            yield (
                f"point '{name}' is {near:.4g} m away from all others, which lie within "
                f"{around:.4g} m: is a digit or a unit wrong in {_text(x[name])}?"
            )


_WORDS = {"left": "right", "l": "r", "lh": "rh", "fl": "fr", "rl": "rr", "lf": "rf", "lr": "rr"}
_OTHER: dict[str, tuple[str, ...]] = {}
for _left, _right in _WORDS.items():
    _OTHER[_left] = (*_OTHER.get(_left, ()), _right)
    _OTHER[_right] = (*_OTHER.get(_right, ()), _left)


def name_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs (left, right) of names that differ in one word for the side.

    Words are separated by anything but letters and digits: ``left_arm`` and ``right_arm``,
    ``arm.L`` and ``arm.R``, ``FL hub`` and ``FR hub``.

    Example:
        >>> from jaxmbd.model import name_pairs
        >>> name_pairs(["arm_R", "left hub", "arm_L", "right hub", "rack"])
        [('left hub', 'right hub'), ('arm_L', 'arm_R')]
    """
    names = list(names)
    known = set(names)
    return [(n, other) for n in names for other in _right_of(n) if other in known]


def _right_of(name: str) -> list[str]:
    """What a left name may be called on the right."""
    words = re.split(r"([^A-Za-z0-9]+)", name)
    found = []
    for i, word in enumerate(words):
        for other in _OTHER.get(word.lower(), ()):
            if word.lower() in _WORDS and other in _WORDS.values():
                found.append("".join([*words[:i], _cased(other, word), *words[i + 1 :]]))
    return found


def _cased(word: str, like: str) -> str:
    if like.isupper():
        return word.upper()
    return word.capitalize() if like[:1].isupper() else word


def _swapped_pairs(x: dict[str, Point]) -> Iterator[str]:
    """Pairs of a left and a right point that lie the other way round than all other pairs."""
    pairs = [(a, b) for a, b in name_pairs(x) if x[a] != x[b]]
    if len(pairs) < 3:
        return
    apart = [[p - q for p, q in zip(x[a], x[b], strict=False)] for a, b in pairs]
    axis = max(range(len(apart[0])), key=lambda k: sum(abs(d[k]) for d in apart))
    if any(abs(d[axis]) < 0.9 * math.hypot(*d) for d in apart):
        return  # left and right of something else than one plane, as the arms of a delta robot
    sides = [d[axis] > 0.0 for d in apart]
    usual = 2 * sum(sides) > len(sides)
    odd = [pair for pair, side in zip(pairs, sides, strict=False) if side != usual]
    if 3 * len(odd) <= len(pairs):
        for a, b in odd:
            yield (
                f"points '{a}' and '{b}' have {'xyz'[axis]} = {x[a][axis]:.4g} m and "
                f"{x[b][axis]:.4g} m, the other way round than the other {len(pairs) - len(odd)} "
                "pairs of left and right: are they swapped?"
            )


def _rod_across(joints: Parts, x: dict[str, Point]) -> Iterator[str]:
    """In a drawing of one side of the car (y is lateral), a rod that ends on the other side."""
    odd = {side: [n for n, p in x.items() if side * p[1] < 0.0] for side in (1.0, -1.0)}
    for name, ends in _rods(joints):
        for side, names in odd.items():
            if len(names) != 1 or names[0] not in ends or len(x) < 6:
                continue
            others = [side * p[1] for n, p in x.items() if n != names[0]]
            least, most, there = min(others), max(others), -side * x[names[0]][1]
            if 0.1 * most <= least <= 2.0 * there <= 2.0 * most:
                yield (
                    f"rod '{name}' ends at '{names[0]}' with y = {x[names[0]][1]:.4g} m, and all "
                    f"other points have y {'>' if side > 0 else '<'} 0: is the sign wrong?"
                )


def _rods(joints: Parts) -> list[tuple[str, tuple[str, str]]]:
    """Rods, with the points at their ends."""
    found = []
    for name, joint in joints.items():
        ends = joint.points.get("at_a"), joint.points.get("at_b")
        if joint.ball and all(isinstance(r, PointRef) for r in ends):
            found.append((name, (ends[0].name, ends[1].name)))
    return found


def _crossing_rods(joints: Parts, x: dict[str, Point]) -> Iterator[str]:
    """Rods from one body to the left and the right upright, or the like, that cross each other."""
    rods = []
    for name, ends in _rods(joints):
        bodies = joints[name].a, joints[name].b
        rods += [(name, bodies, x[ends[0]], x[ends[1]])]
        rods += [(name, bodies[::-1], x[ends[1]], x[ends[0]])]
    for i, (name, (inner, outer), a, b) in enumerate(rods):
        for other, (same, apart), c, d in rods[i + 1 :]:
            if inner == same and len({inner, outer, apart}) == 3 and _cross(a, b, c, d):
                yield (
                    f"rods '{name}' and '{other}' from '{inner}' to '{outer}' and '{apart}' are "
                    f"mirror images that cross each other at y = {0.5 * (b[1] + d[1]):.4g} m: are "
                    "left and right swapped at one of their ends?"
                )


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the lines a b and c d mirror each other in a plane normal to y and both cross it."""
    length, middle = math.dist(a, b), 0.5 * (b[1] + d[1])
    mirrored = [2.0 * middle - p if k == 1 else p for q in (c, d) for k, p in enumerate(q)]
    same = math.dist((*a, *b), mirrored) <= 1e-3 * length
    away = a[1] - middle, b[1] - middle
    return same and away[0] * away[1] < 0.0 and min(map(abs, away)) > 0.1 * length


def _odd(element: Any, x: dict[str, Point], size: float) -> Iterator[str]:
    """What is out of proportion in a force element."""
    for field in ("stiffness", "damping"):
        value = getattr(element, field, None)
        if value is not None and is_concrete(value) and np.ndim(value) < 2 and np.min(value) < 0.0:
            yield f"{field} is {np.min(value):.4g}, which is negative"
    if hasattr(element, "progression"):
        rates = element.stiffness, element.progression
        if all(is_concrete(k) and not np.any(k) for k in rates):
            yield "stiffness and progression are zero, so that it never pushes"
    ends = [element.points.get(n) for n in ("at_a", "at_b")]
    if not all(isinstance(r, PointRef) for r in ends):
        return
    drawn = math.dist(x[ends[0].name], x[ends[1].name])
    free = getattr(element, "free_length", None)
    if free is not None and is_concrete(free):
        if free < 0.0:
            yield f"free_length is {float(free):.4g} m, which is negative"
        elif free > STRETCHED * max(drawn, 0.2 * size):
            yield f"free_length is {float(free):.4g} m, and its ends are drawn {drawn:.4g} m apart"
    gap = getattr(element, "gap", None)
    if gap is not None and is_concrete(gap) and abs(gap) > max(drawn, size) > 0.0:
        yield f"gap is {float(gap):.4g} m, more than the {drawn:.4g} m between its ends as drawn"


def _text(point: Point) -> str:
    return "(" + ", ".join(f"{c:.6g}" for c in point) + ")"
