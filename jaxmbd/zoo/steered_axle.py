"""MacPherson front suspension with rack steering: the left half, or both sides on one rack.

Topology: Hanzaki, Saha and Rao (2009), section 4.2 and figures 10 to 12: a rack, and on each side
a tie rod, a steering arm with its hub, a strut and a lower arm, with spring and shock absorber on
the strut. Their dimensions are not printed: the hardpoints, and the masses of arm, strut and
upright, are those of Project Chrono's MacPherson corner (`jaxmbd.zoo.macpherson`); all other
numbers are our own and plausible for a passenger car.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jax import numpy as jnp

from jaxmbd.model import (
    Body,
    Drive,
    Mechanism,
    PacejkaTyre,
    Prismatic,
    Reflection,
    Revolute,
    Spherical,
    SpringDamper,
    Universal,
    number,
    register_law,
)
from jaxmbd.zoo.drawing import (
    bar,
    downward,
    middle,
    moved,
    published,
    published_body,
    rod_inertia,
    unit_vector,
)

_POINTS = {
    "lower_arm_front": "arm_front",
    "lower_arm_rear": "arm_rear",
    "lower_arm_ball": "arm_ball",
    "strut_top": "strut_top",
    "strut_bottom": "strut_bottom",
    "tierod_inboard": "tie_inner",
    "tierod_outboard": "tie_outer",
    "wheel_centre": "wheel_centre",
}
_MIRROR = Reflection(1)
_WHEEL = 15.0, (0.4, 0.8, 0.4)  # mass, inertias about its centre
_TIE_ROD, _RACK = 0.6, 2.5  # masses


@register_law("rack_sine")
def rack_sine(t: Any, params: Any) -> Any:
    """A rack's travel ``amplitude · sin(2π t / period)`` [m].

    Example:
        >>> import jaxmbd as mbd
        >>> round(float(mbd.zoo.rack_sine(0.5, {"amplitude": 0.06, "period": 2.0})), 12)
        0.06
    """
    return params["amplitude"] * jnp.sin(2.0 * jnp.pi / params["period"] * t)


def _upright(data: Mapping[str, Any], centre: Any) -> Body:
    """Upright, hub and wheel as one body: masses and moments of both about the common centre."""
    parts = (
        (data["upright"]["mass"], number(data["upright"]["com"]), data["upright"]["moments"]),
        (_WHEEL[0] + data["spindle"]["mass"], number(centre), _WHEEL[1]),
    )
    mass = sum(m for m, _, _ in parts)
    com = sum(m * x for m, x, _ in parts) / mass
    inertia = 0.0
    for m, x, moments in parts:
        d = x - com
        inertia = inertia + np.diag(moments) + m * ((d @ d) * np.eye(3) - d[:, None] * d)
    return Body(mass, com=com, inertia=inertia)


def _left_bodies(p: Mapping[str, Any]) -> dict[str, Body]:
    data = published("macpherson")["bodies"]
    tie = p["tie_inner"], p["tie_outer"]
    span = tie[1] - tie[0]
    strut = unit_vector(p["strut_top"] - p["strut_bottom"])
    return {
        "arm": published_body(data["lca"]),
        "strut": Body(
            data["strut"]["mass"],
            com=middle(p["strut_bottom"], p["strut_top"]),
            inertia=rod_inertia(strut, 0.005, 0.01),
        ),
        "upright": _upright(data, p["wheel_centre"]),
        "tie_rod": bar(_TIE_ROD, (span @ span) ** 0.5, middle(*tie), unit_vector(span), 1e-4),
    }


def _bodies(side: str, left: Mapping[str, Any]) -> dict[str, Body]:
    """The bodies of one side, with its names: the right ones mirror the left ones."""
    bodies = _left_bodies(left)
    if side == "right":
        bodies = {
            n: Body(x.mass, com=_MIRROR.polar(x.com), inertia=_MIRROR.tensor(x.inertia))
            for n, x in bodies.items()
        }
    return {f"{side}_{n}": x for n, x in bodies.items()}


def _joints(side: str) -> dict[str, Any]:
    at = {n: f"{side}_{n}" for n in _POINTS.values()}
    arm, strut, upright, tie_rod = (f"{side}_{n}" for n in ("arm", "strut", "upright", "tie_rod"))
    hinge = at["arm_rear"], at["arm_front"]
    along = at["strut_bottom"], at["strut_top"]
    return {
        f"{side}_hinge": Revolute("ground", arm, at["arm_front"], hinge),
        f"{side}_mount": Spherical("ground", strut, at["strut_top"]),
        f"{side}_slide": Prismatic(strut, upright, at["strut_bottom"], along),
        f"{side}_arm_ball": Spherical(arm, upright, at["arm_ball"]),
        f"{side}_tie_inner": Universal("rack", tie_rod, at["tie_inner"], (0, 0, 1), (1, 0, 0)),
        f"{side}_tie_outer": Spherical(tie_rod, upright, at["tie_outer"]),
    }


def _strut_forces(side: str, spring_rate: Any, spring_preload: Any, damping: Any) -> dict[str, Any]:
    ends = dict(at_a=f"{side}_strut_top", at_b=f"{side}_strut_bottom")
    upright, preload = f"{side}_upright", -number(spring_preload)
    return {
        f"{side}_spring": SpringDamper(
            "ground", upright, **ends, stiffness=spring_rate, preload=preload
        ),
        f"{side}_shock": SpringDamper("ground", upright, **ends, damping=damping),
    }


def macpherson_steering(
    sides: Sequence[str] = ("left", "right"),
    points: Mapping[str, Any] | None = None,
    amplitude: Any = 0.06,
    period: Any = 2.0,
    speed: Any = 10.0,
    spring_rate: Any = 3e4,
    spring_preload: Any = 4200.0,
    damping: Any = 2.5e3,
    tyre_rate: Any = 2e5,
    tyre_damping: Any = 500.0,
    radius: Any = 0.33,
    ride_height: Any = 0.31,
    trail: Any = 0.04,
    rack_mass: Any = _RACK,
    gravity: Any = 9.81,
) -> Mechanism:
    """A MacPherson front axle on a chassis at rest, steered by a rack that follows a sine.

    Sources: the module docstring. x is forward, y left, z up. Joints of a side (the right one is
    the mirror image): `left_hinge` (lower arm), `left_mount` (ball at the strut's top),
    `left_slide` (upright along the strut), `left_arm_ball`, `left_tie_inner` (universal joint on
    the rack, so that the tie rod has no idle spin) and `left_tie_outer` (ball); `rack` slides along
    y. The two balls of an upright are cut, as in the paper, and no branch has more than four
    degrees of freedom. The upright includes the wheel, whose spin is neglected.

    Forces: `left_spring`, `left_shock` along the strut, and the tyre force `left_tyre`, a
    `PacejkaTyre` with its default coefficients that rolls freely on a road moving back at `speed`:
    the slip angle causes a lateral force and an aligning moment against steering. The drive `steer`
    moves the rack; its multiplier is the force on the rack [N] along +y.

    Args:
        sides: ("left",) for the left half, ("right",) for the right one, or both.
        points: left hardpoints (3,) [m] in place of Chrono's, by its names (``wheel_centre``, …);
            the right ones mirror them.
        amplitude: of the rack's travel [m]; None leaves the rack free, without a drive.
        period: of the rack's travel [s].
        speed: of the car [m/s].
        spring_rate: along the strut [N/m].
        spring_preload: compression force of the spring as drawn [N].
        damping: of the shock absorber [N·s/m].
        tyre_rate: [N/m].
        tyre_damping: [N·s/m].
        radius: of the tyre, unloaded [m].
        ride_height: of the wheel centre over the road as drawn [m].
        trail: pneumatic trail at no slip [m].
        rack_mass: [kg].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism: with one degree of freedom for each side, the wheel travel, and the rack.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.topology(mbd.zoo.macpherson_steering(sides=("left",))).cut
        ('left_arm_ball', 'left_tie_outer')
    """
    given = moved(published("macpherson")["points"], points)
    left = {new: given[old] for old, new in _POINTS.items()}
    named: dict[str, Any] = {"rack": left["tie_inner"] * np.array([1.0, 0.0, 1.0])}
    bodies = {"rack": Body(rack_mass, com=named["rack"], inertia=(0.05, 1e-3, 0.05))}
    joints: dict[str, Any] = {"rack": Prismatic("ground", "rack", "rack", (0.0, 1.0, 0.0))}
    forces: dict[str, Any] = {}
    tyre = dict(stiffness=tyre_rate, damping=tyre_damping, radius=radius, free_rolling=True)
    tyre |= dict(trail=(10.0, 1.2, trail), belt=(-number(speed), 0.0, 0.0))
    tyre["road"] = left["wheel_centre"][2] - ride_height
    for side in sides:
        if side not in ("left", "right"):
            raise ValueError(f"sides={tuple(sides)!r}: give 'left', 'right' or both")
        named |= {f"{side}_{n}": x if side == "left" else _MIRROR.polar(x) for n, x in left.items()}
        bodies |= _bodies(side, left)
        joints |= _joints(side)
        forces |= _strut_forces(side, spring_rate, spring_preload, damping)
        forces[f"{side}_tyre"] = PacejkaTyre(f"{side}_upright", f"{side}_wheel_centre", **tyre)
    sine = Drive("rack", rack_sine, {"amplitude": amplitude, "period": period})
    drives = {} if amplitude is None else {"steer": sine}
    return Mechanism(bodies, joints, forces, drives, named, downward(gravity, 2))
