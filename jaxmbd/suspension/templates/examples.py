"""Hardpoints with which every template runs as it stands.

Published ones: of the double wishbone and the five-link suspension-explorer-core's, of the strut
Project Chrono's, as in `jaxmbd.zoo` (`jaxmbd.zoo.corners` names the sources); of the semi-trailing
arm and the rigid axle Project Chrono's ``SemiTrailingArm.json`` (commit
0b19f60e41634b078f974dfbe2ba6f745594fe0c) and ``SolidAxle.json`` (commit
04feadbf7d98c7ec49337fb5b826b98da799f223). Our own and of no source: springs and rockers of the
double wishbone, all anti-roll bars and relay linkages, the upper link of three, Panhard rod and
Watt's linkage, the trailing arm and the twist beam.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from jaxmbd import zoo
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import unknown
from jaxmbd.suspension.templates.registry import TEMPLATES

_WISHBONES = {
    "lower_wishbone_inboard_front": "lower_arm_front",
    "lower_wishbone_inboard_rear": "lower_arm_rear",
    "lower_wishbone_outboard": "lower_arm_ball",
    "upper_wishbone_inboard_front": "upper_arm_front",
    "upper_wishbone_inboard_rear": "upper_arm_rear",
    "upper_wishbone_outboard": "upper_arm_ball",
}
_WHEEL = {
    "trackrod_inboard": "tierod_inboard",
    "trackrod_outboard": "tierod_outboard",
    "axle_outboard": "wheel_centre",
    "strut_top": "spring_top",
    "strut_bottom": "spring_bottom",
}
_SPRINGS: dict[Any, dict[str, tuple[float, float, float]]] = {
    None: {},
    "lower_arm": {"spring_top": (0.0, 500.0, 620.0), "spring_bottom": (0.0, 720.0, 215.0)},
    "upper_arm": {"spring_top": (-25.0, 480.0, 800.0), "spring_bottom": (-25.0, 620.0, 510.0)},
    "upright": {"spring_top": (0.0, 560.0, 700.0), "spring_bottom": (0.0, 830.0, 300.0)},
    "pushrod": {
        "pushrod_outboard": (0.0, 840.0, 220.0),
        "pushrod_inboard": (0.0, 470.0, 600.0),
        "rocker_pivot_front": (40.0, 390.0, 540.0),
        "rocker_pivot_rear": (-40.0, 390.0, 540.0),
        "spring_rocker": (0.0, 420.0, 630.0),
        "spring_chassis": (0.0, 130.0, 635.0),
        "heave_spring": (0.0, 350.0, 610.0),
    },
    "pullrod": {
        "pullrod_outboard": (-25.0, 720.0, 495.0),
        "pullrod_inboard": (-25.0, 400.0, 160.0),
        "rocker_pivot_front": (15.0, 335.0, 222.0),
        "rocker_pivot_rear": (-65.0, 335.0, 222.0),
        "spring_rocker": (-25.0, 370.0, 300.0),
        "spring_chassis": (-25.0, 60.0, 310.0),
        "heave_spring": (-25.0, 310.0, 290.0),
    },
}
_BARS = {
    "double_wishbone": ((-200.0, 350.0, 250.0), (-40.0, 700.0, 260.0), (-40.0, 700.0, 203.0)),
    "macpherson": ((-300.0, 400.0, -120.0), (-90.0, 760.0, -100.0), (-60.0, 780.0, 200.0)),
    "five_link": ((-300.0, 400.0, 260.0), (-80.0, 700.0, 260.0), (-20.0, 760.0, 420.0)),
    "trailing_arm": ((330.0, 400.0, 280.0), (150.0, 600.0, 290.0), (150.0, 600.0, 330.0)),
    "semi_trailing_arm": ((430.0, 600.0, 80.0), (250.0, 750.0, 90.0), (250.0, 800.0, 10.0)),
    "rigid_axle": ((300.0, 400.0, 80.0), (40.0, 480.0, 90.0), (20.0, 480.0, -20.0)),
    "twist_beam": ((330.0, 400.0, 280.0), (150.0, 600.0, 290.0), (150.0, 600.0, 330.0)),
}
_TRAILING = {
    "arm_pivot": (430.0, 600.0, 350.0),
    "wheel_centre": (0.0, 740.0, 310.0),
    "spring_top": (30.0, 560.0, 560.0),
    "spring_bottom": (60.0, 560.0, 290.0),
}
_RIGID = {
    "lower_link_inboard": (450.0, 350.0, -45.0),
    "lower_link_outboard": (10.0, 600.0, -75.0),
    "wheel_centre": (0.0, 910.0, 0.0),
    "spring_top": (-80.0, 560.0, 300.0),
    "spring_bottom": (-65.0, 575.0, -25.0),
}
_UPPER = {
    "three": {
        "upper_link_inboard": (355.0, 0.0, 150.0),
        "upper_link_outboard": (-55.0, 0.0, 150.0),
    },
    "four": {
        "upper_link_inboard": (355.0, 500.0, 150.0),
        "upper_link_outboard": (-55.0, 475.0, 150.0),
    },
    "splayed": {
        "upper_link_inboard": (355.0, 500.0, 150.0),
        "upper_link_outboard": (-55.0, 100.0, 150.0),
    },
}
_LATERAL: dict[Any, dict[str, tuple[float, float, float]]] = {
    None: {},
    "panhard": {
        "panhard_inboard": (-120.0, 420.0, 30.0),
        "panhard_outboard": (-120.0, -420.0, 10.0),
    },
    "watts": {
        "watts_pivot": (-120.0, 0.0, 0.0),
        "watts_left_inboard": (-120.0, 450.0, 60.0),
        "watts_left_outboard": (-120.0, 0.0, 60.0),
        "watts_right_inboard": (-120.0, -450.0, -60.0),
        "watts_right_outboard": (-120.0, 0.0, -60.0),
    },
}
_SEMI_TRAILING = {
    "arm_outer": (500.0, 900.0, 0.0),
    "arm_inner": (420.0, 600.0, -50.0),
    "wheel_centre": (0.0, 1100.0, 0.0),
    "spring_top": (300.0, 800.0, 400.0),
    "spring_bottom": (300.0, 800.0, 0.0),
    "shock_top": (300.0, 800.0, 500.0),
    "shock_bottom": (300.0, 800.0, 0.0),
}


def example_hardpoints(template: str, **options: Any) -> dict[str, np.ndarray]:
    """Hardpoints (3,) [m] with which a template runs, with those of an anti-roll bar.

    The module's text says which are published and which are our own.

    Args:
        template: a name of `TEMPLATES`.
        **options: arguments of the template that decide which hardpoints it has: `spring_by`,
            `steering_by`, `links`, `lateral`; others do not matter.

    Raises:
        ValueError: there is no such template, or option of it.

    Example:
        >>> from jaxmbd import suspension
        >>> suspension.example_hardpoints("twist_beam")["beam_centre"].tolist()
        [0.22, 0.0, 0.33]
    """
    if problems := unknown("template", template, TEMPLATES):
        raise ValueError(problems[0])
    parameters = inspect.signature(TEMPLATES[template]).parameters
    chosen = {n: options.get(n, p.default) for n, p in parameters.items()}
    points = _drawn(template, chosen)
    names = ("bar_axis", "droplink_inboard", "droplink_outboard")
    bar = dict(zip(names, _BARS[template], strict=True))
    if chosen.get("spring_by", "") is None:
        points = {n: x for n, x in points.items() if n.split("_")[0] not in ("spring", "shock")}
    if chosen.get("steering_by") == "relay":
        points |= _relay(points["tierod_inboard"])
    return points | {n: np.array(x) / 1000.0 for n, x in bar.items()}


def _relay(end: np.ndarray) -> dict[str, np.ndarray]:
    """A relay rod through the ends of both track rods, its arms upright and ahead of it."""
    found = {}
    for name, side in (("pitman", 1.0), ("idler", -1.0)):
        ball = end * (1.0, side, 1.0) + (0.0, side * 0.05, 0.0)
        pivot = ball + (0.15, side * 0.02, 0.0)
        places = {"pivot": pivot, "axis": pivot + (0.0, 0.0, 0.1), "ball": ball}
        found |= {f"{name}_{n}": x for n, x in places.items()}
    return found


def _drawn(template: str, chosen: dict[str, Any]) -> dict[str, np.ndarray]:
    if template == "macpherson":
        return _named(zoo.macpherson(), {})
    if template == "five_link":
        return _named(zoo.five_link_kinematic(), _WHEEL)
    if template == "double_wishbone":
        own = _named(zoo.double_wishbone_kinematic(), _WISHBONES | _WHEEL)
        return own | _metres(_choice(_SPRINGS, chosen, "spring_by"))
    if template == "rigid_axle":
        lateral = _choice(_LATERAL, chosen, "lateral")
        upper = _choice(_UPPER, chosen, "links")
        if chosen["links"] == "four" and chosen["lateral"] is None:
            upper = _UPPER["splayed"]
        return _metres(_RIGID | upper | lateral)
    if template == "twist_beam":
        return _metres(_TRAILING | {"beam_centre": (220.0, 0.0, 330.0)})
    return _metres(_TRAILING if template == "trailing_arm" else _SEMI_TRAILING)


def _choice(known: dict[Any, Any], chosen: dict[str, Any], option: str) -> dict[str, Any]:
    if problems := unknown(f"choice {option}=", chosen[option], known):
        raise ValueError(problems[0])
    return known[chosen[option]]


def _named(mech: Mechanism, names: dict[str, str]) -> dict[str, np.ndarray]:
    """The hardpoints of a mechanism, without those of literal coordinates, by our names."""
    drawn = {n: mech.points[n] for n in mech.structure.points if "." not in n}
    return {names.get(n, n): np.array(x) for n, x in drawn.items()}


def _metres(points: dict[str, tuple[float, float, float]]) -> dict[str, np.ndarray]:
    return {n: np.array(x) / 1000.0 for n, x in points.items()}
