"""Warnings of hardpoints and numbers that can be drawn and that yet look wrong.

Of a template, or of the roles of a corner that was made by hand, whose points stand for those of a
template. Each names the hardpoint and the cure. What a design may be on purpose passes: track rods
ahead or behind, negative scrub radii, leading arms in front. Traced numbers are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from jaxmbd.model import Mechanism, is_concrete
from jaxmbd.observe import is_rod, model_point
from jaxmbd.plumbing import warn_user
from jaxmbd.suspension.corner import Corner

_CAR = 0.33
"""Tyre radius [m] of the cars that the sizes below are of; forces go with its cube."""
_SOFTEST, _STIFFEST = 1e3, 1e8
"""Rates of springs that are believed [N/m]."""
_LIGHTEST, _HEAVIEST = 50.0, 2e5
"""Wheel loads that are believed [N]."""
_OFF = 0.1
"""Distance that is no accident of drawing, in radii of the tyre."""
_FORWARD = np.deg2rad(4.0)
"""Angle by which a steering axis of a front wheel may lean forward."""
_LEANING = np.deg2rad(45.0)
"""Angle by which a wheel's axis may be off the y axis."""
_AXES = (
    'x is forward here: if the table\'s x points rearwards, give axes = ["-x", "-y", "z"] in '
    "the mapping of read_hardpoints, and mirrored = true where that makes it the right side"
)
ARMS = ("upper_arm", "lower_arm")
LINKS = ("tierod", "upper_front_link", "upper_rear_link", "lower_front_link", "lower_rear_link")

Points = Mapping[str, np.ndarray]


def warn_of_doubts(points: Mapping[str, Any], numbers: Any) -> None:
    """One warning for each thing that looks wrong.

    Args:
        points: of the template, the left side (3,) [m].
        numbers: its `TemplateNumbers`.
    """
    if not is_concrete(numbers.tyre_radius):
        return
    drawn = {n: np.asarray(x, float) for n, x in points.items() if is_concrete(x)}
    for text in doubts(drawn, numbers):
        warn_user(text)


def doubts(x: Points, numbers: Any) -> list[str]:
    """What looks wrong, in words."""
    radius = float(numbers.tyre_radius)
    return [*_of_numbers(numbers, radius), *_of_points(x, radius, numbers.axle == "rear", LINKS)]


def warn_of_corner(mech: Mechanism, corner: Corner) -> None:
    """One warning for each thing that looks wrong with a corner's points."""
    for text in corner_doubts(mech, corner):
        warn_user(text)


def corner_doubts(mech: Mechanism, corner: Corner) -> list[str]:
    """What looks wrong with the points of a corner's roles; nothing of those that are traced."""
    if corner.name_problems(mech):
        return []  # they are told as errors
    places = _role_places(mech, corner)
    mirror = np.array([1.0, corner.sign, 1.0])
    refs = {name: mech.point(ref) for name, (_, ref) in places.items()}
    drawn = {n: mirror * np.asarray(x, float) for n, x in refs.items() if is_concrete(x)}
    if corner.spindle is not None and len(corner.spindle) == 3 and "wheel_centre" in drawn:
        drawn["axle_inboard"] = drawn["wheel_centre"] - mirror * np.asarray(corner.spindle)
    said = {"axle_inboard": "the spindle"} | {name: label for name, (label, _) in places.items()}
    names = re.compile("'?\\b(" + "|".join(map(re.escape, said)) + ")\\b'?")
    links = [n.removesuffix("_outboard") for n in places if n.endswith("_outboard")]
    found = _of_points(drawn, corner.tyre_radius, corner.axle == "rear", links)
    return [names.sub(lambda match: said[match[1]], text) for text in found]


def _role_places(mech: Mechanism, corner: Corner) -> dict[str, tuple[str, Any]]:
    """What stands for a template's points: how it is called, and a reference to it."""
    roles: dict[str, Any] = {"wheel_centre": corner.wheel_centre}
    for arm in ARMS:
        ends = zip(("front", "rear", "ball"), getattr(corner, arm) or (), strict=False)
        roles |= {f"{arm}_{end}": place for end, place in ends}
    if corner.kingpin is not None:
        low, high = corner.kingpin
        on_upright = corner.placed("upright", high)[0] == corner.upright
        roles.setdefault("lower_arm_ball", low)
        roles.setdefault("upper_arm_ball" if on_upright else "strut_top", high)
    if corner.spindle is not None and len(corner.spindle) == 2:
        roles["axle_inboard"] = corner.spindle[0]
    found = {n: model_point(corner.placed("upright", place)[1]) for n, place in roles.items()}
    for edge in mech.structure.joints:
        if is_rod(edge.kind) and corner.upright in (edge.a, edge.b):
            joint: Any = mech.joints[edge.name]
            ends = (joint.at_a, joint.at_b)[:: -1 if edge.a == corner.upright else 1]
            found |= {f"{edge.name}_{end}": x for end, x in zip(_ENDS, ends, strict=True)}
    return {n: (_label(n, ref), ref) for n, ref in found.items()}


_ENDS = ("inboard", "outboard")


def _label(role: str, ref: Any) -> str:
    """How a point is named to who made the corner."""
    name = ref if isinstance(ref, str) else getattr(ref, "name", None)
    return f"the {role.replace('_', ' ')} point" if name is None else repr(name)


def _of_points(x: Points, radius: float, rear: bool, links: Sequence[str]) -> list[str]:
    near = _OFF * radius
    found = chain(
        _of_wheel(x, near, links), _of_direction(x, near, rear), _swapped_ends(x, near, links)
    )
    return list(found)


def doubtful_rate(name: str, rate: Any, radius: float) -> Iterator[str]:
    """A spring's rate [N/m] in another unit."""
    if rate is None or not is_concrete(rate) or not rate > 0.0:
        return
    size = (radius / _CAR) ** 2
    if rate < _SOFTEST * size:
        yield (
            f"{name}={float(rate):g} is in N/m, and no wheel stands on so soft a spring: was N/mm "
            f"given? {float(rate):g} N/mm is {name}={1e3 * float(rate):g}"
        )
    elif rate > _STIFFEST * size:
        yield f"{name}={float(rate):g} is in N/m, and no spring is so stiff: 60 N/mm is 60e3"


def _of_numbers(n: Any, radius: float) -> Iterator[str]:
    yield from doubtful_rate("spring_rate", n.spring_rate, radius)
    load, size = n.wheel_load, (radius / _CAR) ** 3
    if load is not None and is_concrete(load):
        if not _LIGHTEST * size < load < _HEAVIEST * size:
            yield f"wheel_load={float(load):g} is in N on one wheel: 400 kg are 3924, 4 kN are 4e3"
    for name, most in (("wheelbase", 45.0), ("cg_height", 10.0)):
        value = getattr(n, name)
        if is_concrete(value) and value > most * radius:
            yield f"{name}={float(value):g} is in m, {value / radius:.0f} radii of the tyre"


def _of_wheel(x: Points, near: float, links: Sequence[str]) -> Iterator[str]:
    """The wheel inside of what carries it, and an axis that is none of a wheel."""
    if "wheel_centre" not in x:
        return
    centre = x["wheel_centre"]
    ends = [f"{n}_ball" for n in ARMS] + [f"{n}_outboard" for n in links]
    ends = [n for n in ends if n in x]
    if len(ends) > 1 and all(x[n][1] > centre[1] + near for n in ends):
        yield (
            f"'wheel_centre' is at y = {centre[1]:.4g} m, inside of all that carries the wheel "
            f"({', '.join(f'{n} {x[n][1]:.4g}' for n in ends)}): give the middle of the tyre"
        )
    if "axle_inboard" in x:
        axis = centre - x["axle_inboard"]
        lean = float(np.arctan2(np.hypot(axis[0], axis[2]), axis[1]))
        if 0.0 < axis[1] and lean > _LEANING:
            yield (
                f"'axle_inboard' and 'wheel_centre': the wheel's axis leans {np.degrees(lean):.0f} "
                "degrees off the y axis; correct one of them"
            )


def _of_direction(x: Points, near: float, rear: bool) -> Iterator[str]:
    """Front and rear points that lie the other way round, or all of x."""
    pairs = [(f"{n}_front", f"{n}_rear") for n in ARMS]
    pairs = [(a, b) for a, b in pairs if a in x and b in x]
    odd = [(a, b) for a, b in pairs if x[a][0] < x[b][0] - near]
    links = [tuple(f"{n}_{s}_link_{{}}" for s in ("front", "rear")) for n in ("upper", "lower")]
    behind = [
        x[a.format(end)][0] < x[b.format(end)][0] - near
        for a, b in links
        for end in ("inboard", "outboard")
        if a.format(end) in x and b.format(end) in x
    ]
    arms = [
        (pivot, end)
        for pivot, end in (
            ("arm_pivot", "wheel_centre"), ("arm_outer", "wheel_centre"),
            ("lower_link_inboard", "lower_link_outboard"),
        )
        if rear and pivot in x and end in x and x[pivot][0] < x[end][0] - near
    ]  # fmt: skip
    lean = _forward_lean(x)
    if odd and len(odd) == len(pairs):
        yield f"{_places(x, odd)}: each front point is behind its rear one. {_AXES}"
    elif len(behind) == 4 and all(behind):
        yield f"all front links are behind the rear ones. {_AXES}"
    elif arms:
        yield f"{_places(x, arms)}: the arm of a rear wheel runs rearwards to its pivot. {_AXES}"
    elif not rear and lean > _FORWARD:
        yield (
            f"from 'lower_arm_ball' up the steering axis leans forward by {np.degrees(lean):.1f} "
            f"degrees, a negative caster. {_AXES}"
        )
    elif odd:
        yield f"{_places(x, odd)}: the front point is behind the rear one: are they swapped?"


def _forward_lean(x: Points) -> float:
    """Angle by which a drawn steering axis leans forward [rad]."""
    top = next((n for n in ("upper_arm_ball", "strut_top") if n in x), None)
    if top is None or "lower_arm_ball" not in x:
        return 0.0
    up = x[top] - x["lower_arm_ball"]
    return float(np.arctan2(up[0], up[2])) if up[2] > 0.0 else 0.0


def _places(x: Points, pairs: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{a!r} x = {x[a][0]:.4g} m, {b!r} x = {x[b][0]:.4g} m" for a, b in pairs)


def _swapped_ends(x: Points, near: float, links: Sequence[str]) -> Iterator[str]:
    """Ends on the chassis where those on the wheel belong."""
    centre = x.get("wheel_centre")
    for n in ARMS:
        pivots, ball = [f"{n}_front", f"{n}_rear"], f"{n}_ball"
        if ball in x and all(p in x for p in pivots):
            if all(x[ball][1] < x[p][1] - near for p in pivots):
                yield (
                    f"{ball!r} is inside of {pivots[0]!r} and {pivots[1]!r}: the ball is the end "
                    "at the wheel; are they swapped?"
                )
    for n in links:
        a, b = f"{n}_inboard", f"{n}_outboard"
        if centre is not None and a in x and b in x:
            if np.linalg.norm(x[a] - centre) < np.linalg.norm(x[b] - centre) - near:
                yield (
                    f"{a!r} is nearer to the wheel centre than {b!r}: the outboard end is on the "
                    "wheel's side; are they swapped?"
                )
    for n in ("pushrod", "pullrod"):
        a, b = f"{n}_inboard", f"{n}_outboard"
        if a in x and b in x and x[b][1] < x[a][1] - near:
            yield f"{b!r} is inside of {a!r}, which is on the rocker; are they swapped?"
    for n in ("spring", "shock"):
        a, b = f"{n}_top", f"{n}_bottom"
        if a in x and b in x and x[a][2] < x[b][2] - near:
            yield f"{a!r}, on the chassis, is below {b!r}; are they swapped?"
