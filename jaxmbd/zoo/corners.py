"""Published suspension corners with masses, springs and dampers: the left one, on a fixed chassis.

Source: Project Chrono (BSD-3), projectchrono/chrono at commit
7689fbc02d12c5419fa6acad8791100fd89979dd, ``data/vehicle/generic/suspension/*.json``; axes of
joints and bodies from its suspension templates. SI units, x forward, y left, z up. The track rod
is a massless `Rod`, the tyre is replaced by a vertical force at the wheel's centre, the inertia of
the drive shaft is left out. Each corner has two degrees of freedom, the wheel's travel and its
spin; as drawn it is not in static equilibrium.

`points` is a dictionary of the hardpoints that differ from the published ones. All are `points` of
the mechanism: the axis of an arm's hinge runs through its two inboard points (``…_front``,
``…_rear``) and follows them. Centres of mass and inertias stay as published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbd.model import (
    Body,
    Cylindrical,
    Mechanism,
    PointForce,
    Revolute,
    Rod,
    Spherical,
    SpringDamper,
    Universal,
)
from jaxmbd.zoo.drawing import (
    downward,
    middle,
    moved,
    published,
    turned_inertia,
)

_Y = (0.0, 1.0, 0.0)
_STRUT = ("strut_bottom", "strut_top")
_GLOBAL = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def _body(data: Mapping[str, Any], com: Any = None) -> Body:
    inertia = turned_inertia(data["moments"], data.get("axes", _GLOBAL))
    return Body(data["mass"], com=data["com"] if com is None else com, inertia=inertia)


def _hinge(body: str, arm: str) -> Revolute:
    """An arm's hinge through its two inboard points."""
    return Revolute("ground", body, at=f"{arm}_front", axis=(f"{arm}_rear", f"{arm}_front"))


def _wheel_and_track_rod() -> dict[str, Any]:
    return {
        "tierod": Rod("ground", "upright", at_a="tierod_inboard", at_b="tierod_outboard"),
        "rev_spindle": Revolute("upright", "spindle", at="wheel_centre", axis=_Y),
    }


def _forces(
    spring: SpringDamper, shock: SpringDamper, wheel_load: Any
) -> dict[str, SpringDamper | PointForce]:
    load = PointForce("spindle", at="wheel_centre", force=(0.0, 0.0, wheel_load))
    return {"spring": spring, "shock": shock, "wheel_load": load}


def double_wishbone(
    points: Mapping[str, Any] | None = None,
    spring_rate: Any = 369149.0,
    free_length: Any = 0.339,
    damping: Any = 22459.0,
    wheel_load: Any = 8000.0,
    gravity: Any = 9.81,
) -> Mechanism:
    """A double-wishbone corner: upper arm `uca`, lower arm `lca`, `upright`, `spindle`.

    Source: Project Chrono, ``DoubleWishbone.json`` (the module's text names the commit). Joints:
    `rev_uca`, `rev_lca` (hinges on the chassis), `sph_uca`, `sph_lca` (balls on the upright),
    `tierod`, `rev_spindle`; forces: `spring` and `shock` between chassis and lower arm,
    `wheel_load`. The published inertias of both arms break the triangle inequality, of which
    building it warns.

    Args:
        points: hardpoints (3,) [m] in place of the published ones, by name.
        spring_rate: [N/m].
        free_length: of the spring [m].
        damping: of the shock absorber [N·s/m].
        wheel_load: vertical force on the wheel's centre [N].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.double_wishbone(points={"wheel_centre": (0, 1.1, 0)}).points["wheel_centre"]
        array([0. , 1.1, 0. ])
    """
    data = published("double_wishbone")
    p, bodies = moved(data["points"], points), data["bodies"]
    ends = dict(at_a="spring_top", at_b="spring_bottom")
    shock_ends = dict(at_a="shock_top", at_b="shock_bottom")
    return Mechanism(
        bodies={name: _body(body) for name, body in bodies.items()},
        joints={
            "rev_uca": _hinge("uca", "upper_arm"),
            "rev_lca": _hinge("lca", "lower_arm"),
            "sph_uca": Spherical("uca", "upright", at="upper_arm_ball"),
            "sph_lca": Spherical("lca", "upright", at="lower_arm_ball"),
            **_wheel_and_track_rod(),
        },
        forces=_forces(
            SpringDamper("ground", "lca", **ends, stiffness=spring_rate, free_length=free_length),
            SpringDamper("ground", "lca", **shock_ends, damping=damping),
            wheel_load,
        ),
        points=p,
        gravity=downward(gravity, 2),
    )


def multi_link(
    points: Mapping[str, Any] | None = None,
    spring_rate: Any = 120000.0,
    free_length: Any = 0.339,
    damping: Any = 12000.0,
    wheel_load: Any = 8000.0,
    gravity: Any = 9.81,
) -> Mechanism:
    """A multi-link corner: `upper_arm`, `lateral` and `trailing` links, `upright`, `spindle`.

    Source: Project Chrono, ``MultiLink.json`` (the module's text names the commit). Joints:
    `rev_ua` (hinge of the upper arm), `univ_lat`, `univ_tl` (universal joints of the two links on
    the chassis, declared from link to ground), `sph_ua`, `sph_lat`, `sph_tl` (balls on the
    upright), `tierod`, `rev_spindle`; forces: `spring` and `shock` between chassis and trailing
    link, `wheel_load`. The axes of the universal joints stay as published.

    Args:
        points: hardpoints (3,) [m] in place of the published ones, by name.
        spring_rate: [N/m].
        free_length: of the spring [m].
        damping: of the shock absorber [N·s/m].
        wheel_load: vertical force on the wheel's centre [N].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.multi_link().joints["univ_lat"].b
        'ground'
    """
    data = published("multi_link")
    p, axes = moved(data["points"], points), data["joint_axes"]
    ends = dict(at_a="spring_top", at_b="spring_bottom")
    shock_ends = dict(at_a="shock_top", at_b="shock_bottom")
    return Mechanism(
        bodies={name: _body(body) for name, body in data["bodies"].items()},
        joints={
            "rev_ua": _hinge("upper_arm", "upper_arm"),
            "sph_ua": Spherical("upper_arm", "upright", at="upper_arm_ball"),
            "univ_lat": Universal("lateral", "ground", "lateral_inboard", *axes["univ_lat"]),
            "sph_lat": Spherical("lateral", "upright", at="lateral_ball"),
            "univ_tl": Universal("trailing", "ground", "trailing_inboard", *axes["univ_tl"]),
            "sph_tl": Spherical("trailing", "upright", at="trailing_ball"),
            **_wheel_and_track_rod(),
        },
        forces=_forces(
            SpringDamper(
                "ground", "trailing", **ends, stiffness=spring_rate, free_length=free_length
            ),
            SpringDamper("ground", "trailing", **shock_ends, damping=damping),
            wheel_load,
        ),
        points=p,
        gravity=downward(gravity, 2),
    )


def macpherson(
    points: Mapping[str, Any] | None = None,
    spring_rate: Any = 369149.0,
    free_length: Any = 0.306,
    damping: Any = 22459.0,
    wheel_load: Any = 0.0,
    gravity: Any = 9.81,
) -> Mechanism:
    """A MacPherson corner: lower arm `lca`, `upright`, `strut`, `spindle`.

    Source: Project Chrono, ``MacPhersonStrut.json`` (the module's text names the commit). Joints:
    `rev_lca` (hinge of the arm), `sph_lca` (ball on the upright), `cyl_strut` (between upright and
    strut, along the line from `strut_bottom` to `strut_top`), `univ_strut` (on the chassis, at
    `strut_top`), `tierod`, `rev_spindle`; forces: `spring` and `shock` from `strut_top` on the
    chassis to `strut_bottom` on the upright, `wheel_load` (none as published). The strut's centre
    of mass lies midway between its ends; the universal joint's axes stay as published, and the
    direction of `cyl_strut` follows the two hardpoints through the argument `points`.

    Args:
        points: hardpoints (3,) [m] in place of the published ones, by name.
        spring_rate: [N/m].
        free_length: of the spring [m].
        damping: of the shock absorber [N·s/m].
        wheel_load: vertical force on the wheel's centre [N].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.macpherson().structure.bodies
        ('lca', 'upright', 'strut', 'spindle')
    """
    data = published("macpherson")
    p, axes = moved(data["points"], points), data["joint_axes"]
    top, bottom = p["strut_top"], p["strut_bottom"]
    ends = dict(at_a="strut_top", at_b="strut_bottom")
    coms = {"strut": middle(top, bottom)}
    return Mechanism(
        bodies={n: _body(body, coms.get(n)) for n, body in data["bodies"].items()},
        joints={
            "rev_lca": _hinge("lca", "lower_arm"),
            "sph_lca": Spherical("lca", "upright", at="lower_arm_ball"),
            "cyl_strut": Cylindrical("upright", "strut", "strut_bottom", _STRUT),
            "univ_strut": Universal("ground", "strut", "strut_top", *axes["univ_strut"]),
            **_wheel_and_track_rod(),
        },
        forces=_forces(
            SpringDamper(
                "ground", "upright", **ends, stiffness=spring_rate, free_length=free_length
            ),
            SpringDamper("ground", "upright", **ends, damping=damping),
            wheel_load,
        ),
        points=p,
        gravity=downward(gravity, 2),
    )
