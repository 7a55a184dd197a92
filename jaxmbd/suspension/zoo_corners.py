"""Roles of the parts of the zoo's corners."""

from __future__ import annotations

from dataclasses import replace

from jaxmbd.model import Mechanism, is_concrete
from jaxmbd.suspension.corner import Corner

_TOP = ("ground", "strut_top")
_AXLE = ("axle_inboard", "axle_outboard")


def _wishbone(name: str) -> tuple[str, str, str]:
    return (f"{name}_inboard_front", f"{name}_inboard_rear", f"{name}_outboard")


def _arm(name: str) -> tuple[str, str, str]:
    return (f"{name}_arm_front", f"{name}_arm_rear", f"{name}_arm_ball")


_KINEMATIC = Corner(
    "upright",
    "axle_outboard",
    0.3136,
    spindle=_AXLE,
    steering="rack",
    wheelbase=2.5,
    cg_height=0.45,
)
_CHRONO = Corner(
    "upright",
    "wheel_centre",
    0.33,
    steering="tierod",
    spring="spring",
    wheelbase=2.8,
    cg_height=0.6,
)
_CORNERS = {
    "double_wishbone_kinematic": replace(
        _KINEMATIC,
        kingpin=("lower_wishbone_outboard", "upper_wishbone_outboard"),
        upper_arm=_wishbone("upper_wishbone"),
        lower_arm=_wishbone("lower_wishbone"),
    ),
    "macpherson_kinematic": replace(
        _KINEMATIC,
        kingpin=("lower_wishbone_outboard", _TOP),
        lower_arm=_wishbone("lower_wishbone"),
        strut=("lower_wishbone_outboard", "strut_top"),
    ),
    "five_link_kinematic": replace(_KINEMATIC, tyre_radius=0.31595, wheelbase=2.7, cg_height=0.52),
    "double_wishbone": replace(
        _CHRONO,
        kingpin=("lower_arm_ball", "upper_arm_ball"),
        upper_arm=_arm("upper"),
        lower_arm=_arm("lower"),
    ),
    "macpherson": replace(
        _CHRONO,
        kingpin=("lower_arm_ball", _TOP),
        lower_arm=_arm("lower"),
        strut=("strut_bottom", "strut_top"),
    ),
    "multi_link": replace(_CHRONO, axle="rear", brake_share=0.4),
    "five_point": Corner(
        "knuckle",
        "axle_outboard",
        0.35,
        spindle=_AXLE,
        steering="steering_rod",
        spring="spring",
        chassis="chassis",
        hold=("chassis",),
        wheelbase=2.7,
        cg_height=0.52,
    ),
}


def _steering_axle(side: str) -> Corner:
    p = f"{side}_"
    return Corner(
        f"{p}upright",
        f"{p}wheel_centre",
        0.33,
        side=side,
        steering="rack",
        kingpin=(f"{p}arm_ball", ("ground", f"{p}strut_top")),
        lower_arm=(f"{p}arm_front", f"{p}arm_rear", f"{p}arm_ball"),
        strut=(f"{p}strut_bottom", f"{p}strut_top"),
        spring=f"{p}spring",
        wheelbase=2.7,
        cg_height=0.55,
    )


_CORNERS["macpherson_steering"] = _steering_axle("left")


def zoo_corner(name: str, side: str = "left") -> Corner:
    """The roles in a corner of the zoo.

    Tyre radius, wheelbase and height of the centre of mass of the three kinematic corners are those
    that their source publishes with the hardpoints; those of the others are our own.

    Args:
        name: of the function in `jaxmbd.zoo`.
        side: "right" for the right wheel of `macpherson_steering` (to be made with
            ``amplitude=None``, so that the rack is free).

    Raises:
        ValueError: the zoo has no corner of this name.

    Example:
        >>> from jaxmbd.suspension import zoo_corner
        >>> zoo_corner("macpherson").kingpin
        ('lower_arm_ball', ('ground', 'strut_top'))
    """
    if name not in _CORNERS:
        raise ValueError(f"zoo_corner({name!r}): the corners of the zoo are {list(_CORNERS)}")
    if side == "left":
        return _CORNERS[name]
    if name != "macpherson_steering":
        raise ValueError(f"zoo_corner: {name} is a left corner; it has no {side} wheel")
    return _steering_axle(side)


def find_corner(mech: Mechanism) -> Corner:
    """The roles in a mechanism whose parts and points are named as in a corner of the zoo.

    Its side is where the wheel centre is drawn, the left one while that is traced.

    Args:
        mech: a corner of the zoo, or one with the same names.

    Raises:
        ValueError: no corner of the zoo, or more than one, has these names.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import find_corner
        >>> find_corner(mbd.zoo.five_link_kinematic()).steering
        'rack'
    """
    found = [n for n, corner in _CORNERS.items() if not corner.name_problems(mech)]
    if not found:
        raise ValueError(
            "find_corner: no corner of the zoo has these names; name the roles by "
            f"suspension.Corner(...). Points are {list(mech.structure.points)}"
        )
    # A corner with fewer roles fits wherever one with more does.
    corner = max((_CORNERS[n] for n in found), key=lambda c: len(list(c.points())))
    y = mech.point(corner.wheel_centre)[1]
    return replace(corner, side="right") if is_concrete(y) and y < 0.0 else corner
