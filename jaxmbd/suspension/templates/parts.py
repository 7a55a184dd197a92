"""What templates are made of: arms, links, steering, springs, rockers, bars, by their hardpoints.

A part names its hardpoints; its joints and forces refer to them by name, so that a mechanism's
hardpoints are leaves that may be moved. The end on the chassis, or towards it, is ``_inboard`` or
``_top``, the end towards the wheel ``_outboard`` or ``_bottom``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbd.model import (
    Body,
    Mechanism,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    SpringDamper,
    Universal,
    is_concrete,
    number,
    renamed,
)
from jaxmbd.plumbing import meant, refuse

Y = (0.0, 1.0, 0.0)
GROUND = "ground"
SPRING = ("spring_top", "spring_bottom")
_MASSES = {"upright": 30.0, "arm": 30.0, "axle": 60.0, "rack": 3.0}
_STEEP, _LARGE = 0.5, 2.0
"""Static angles [rad] and radii [m] that are taken for another unit."""
_SPINDLE = 0.1
"""Distance of a derived `axle_inboard` from the wheel centre [m]; it does not matter."""


@dataclass(frozen=True)
class TemplateNumbers:
    """Numbers that all templates take, as keyword arguments, with what stands for those not given.

    Masses do not matter for kinematics. Those not given are our own: 30 kg for what carries a
    wheel, with the wheel, 60 kg for a rigid axle, 3 kg for a rack, and none for all else. The mass
    of a body is in equal points at its hardpoints, that of a wheel carrier at the wheel centre,
    that of a rigid axle at both.

    Attributes:
        tyre_radius: from the wheel centre to the ground [m].
        camber: static camber [rad], positive: top leans outward; without `axle_inboard` only.
        toe: static toe [rad], positive: toe-in; likewise.
        spring_rate: [N/m].
        spring_preload: compression of the spring as drawn [N].
        wheel_load: of the road on each wheel [N]; None: the corner carries no car. The spring is
            preloaded so that it carries this load as drawn, with the weights of the bodies, and the
            load acts on the wheel centre (`jaxmbd.suspension.preloaded`). The load under a wheel is
            an axle's share of the car's weight by two, its unsprung part included.
        damping: of the damper [N·s/m].
        masses: [kg], by the names of bodies.
        gravity: [m/s²] along −z.
        wheelbase, cg_height: of the car [m], for anti-dive and its like.
        axle: "front" or "rear".
        brakes, drive, brake_share, drive_share: as of `Corner`.

    Example:
        >>> from jaxmbd.suspension import TemplateNumbers
        >>> TemplateNumbers(spring_rate=25e3).tyre_radius
        0.33
    """

    tyre_radius: Any = 0.33
    camber: Any = 0.0
    toe: Any = 0.0
    spring_rate: Any = 30e3
    spring_preload: Any = 0.0
    wheel_load: Any = None
    damping: Any = 2e3
    masses: Mapping[str, Any] = field(default_factory=dict)
    gravity: Any = 9.81
    wheelbase: Any = 2.7
    cg_height: Any = 0.5
    axle: str = "front"
    brakes: str = "outboard"
    drive: str = "inboard"
    brake_share: float | None = None
    drive_share: float = 1.0

    @staticmethod
    def of(template: str, given: Mapping[str, Any]) -> TemplateNumbers:
        """The numbers of a call; a ValueError with all names that are unknown or out of range."""
        names = [f.name for f in dataclasses.fields(TemplateNumbers)]
        wrong = [f"it has no argument {n!r}{meant(n, names)}" for n in given if n not in names]
        refuse(f"template {template!r}", wrong)
        found = TemplateNumbers(**given)
        least = {"tyre_radius": "positive", "spring_rate": "", "damping": ""}
        for name, kind in least.items():
            x = getattr(found, name)
            if is_concrete(x) and not (x > 0.0 if kind else x >= 0.0):
                wrong.append(f"{name}={x!r}; give a {kind or 'non-negative'} number")
        load = found.wheel_load
        if load is not None and is_concrete(load) and not load > 0.0:
            wrong.append(f"wheel_load={load!r}; give a positive number [N], or None")
        if load is not None and "spring_preload" in given:
            wrong.append("wheel_load= sets the spring's preload; leave spring_preload= out")
        for name in ("camber", "toe"):
            x = getattr(found, name)
            if is_concrete(x) and not abs(x) < _STEEP:
                wrong.append(f"{name}={x!r} is in rad; one degree is 0.01745")
        if is_concrete(found.tyre_radius) and found.tyre_radius > _LARGE:
            wrong.append(f"tyre_radius={found.tyre_radius!r} is in m; 330 mm is 0.33")
        refuse(f"template {template!r}", wrong)
        return found

    def roles(self) -> dict[str, Any]:
        """Arguments of `Corner` among them."""
        names = ("tyre_radius", "wheelbase", "cg_height", "axle", "brakes", "drive")
        return {n: getattr(self, n) for n in (*names, "brake_share", "drive_share")}


class Parts(NamedTuple):
    """A piece of a template.

    Attributes:
        points: names of its hardpoints.
        apart: of these, two that must not coincide, or a line by two and a third point off it.
        bodies: names to the points over which their masses are spread.
        joints: by name; a function of the points makes one whose axes depend on them.
        forces: by name.
        optional: whether it is left out where none of its points is given.
        problems: function of its points to what else is wrong with them.
    """

    points: tuple[str, ...]
    apart: tuple[tuple[str, ...], ...] = ()
    bodies: Mapping[str, tuple[str, ...]] = {}
    joints: Mapping[str, Any] = {}
    forces: Mapping[str, Any] = {}
    optional: bool = False
    problems: Callable[[Mapping[str, np.ndarray]], list[str]] | None = None


def wheel(body: str) -> list[Parts]:
    """The wheel's centre on its carrier, and a point of its axis."""
    centre = Parts(("wheel_centre",), bodies={body: ("wheel_centre",)})
    axis = "axle_inboard", "wheel_centre"
    return [centre, Parts(("axle_inboard",), (axis,), optional=True)]


def arm(name: str) -> Parts:
    """An A-arm on a hinge through its front and rear points, with a ball on the upright."""
    points = f"{name}_front", f"{name}_rear", f"{name}_ball"
    front, rear, ball = points
    return Parts(
        points,
        (points,),
        {name: points},
        {
            name: Revolute(GROUND, name, at=front, axis=(rear, front)),
            ball: Spherical(name, "upright", at=ball),
        },
    )


def link(name: str, a: str = GROUND, b: str = "upright") -> Parts:
    """A massless link with ball ends."""
    ends = f"{name}_inboard", f"{name}_outboard"
    return Parts(ends, (ends,), joints={name: Rod(a, b, *ends)})


def spring_link(name: str) -> Parts:
    """A link that carries a spring: a body on a universal joint, which keeps it from spinning."""
    ends = f"{name}_inboard", f"{name}_outboard"

    def hung(p: Mapping[str, Any]) -> Universal:
        x, y, z = p[ends[1]] - p[ends[0]]
        xp: Any = np if is_concrete(x) else jnp
        if xp is np and np.hypot(x, y) < 1e-3 * abs(z):
            raise ValueError(f"{name!r} is vertical; a link with a spring lies across or along")
        across = xp.stack([y, -x, 0.0 * x])
        return Universal(GROUND, name, ends[0], across, xp.stack([x * z, y * z, -(x * x + y * y)]))

    joints = {name: hung, f"{name}_ball": Spherical(name, "upright", at=ends[1])}
    return Parts(ends, (ends,), {name: ends}, joints)


STEERING = {"rack": "rack", "relay": "pitman", "fixed": "tierod"}
"""Kinds of steering with the joint that steers."""
STEERING_BODIES = ("rack", "pitman", "idler", "relay")
"""What both wheels of an axle have in common of it."""


def steering(kind: str) -> Parts:
    """A track rod on a rack that moves along y, on a relay rod, or on the chassis."""
    if kind not in STEERING:
        raise ValueError(
            f"steering_by={kind!r}; give 'rack', 'relay': a pitman arm, an idler and a relay rod, "
            "or 'fixed': a track rod on the chassis"
        )
    if kind == "fixed":
        return link("tierod")
    if kind == "relay":
        return _relay()
    rack = Prismatic(GROUND, "rack", at="tierod_inboard", axis=Y)
    rod = link("tierod", "rack")
    return rod._replace(bodies={"rack": ("tierod_inboard",)}, joints={"rack": rack, **rod.joints})


def _relay() -> Parts:
    """A relay rod between a pitman arm and an idler, which the track rod is on.

    On the arm it turns about the arm's axis and tilts; about its own line it cannot turn.
    """
    rod = link("tierod", "relay")
    hinges = {
        n: Revolute(GROUND, n, at=f"{n}_pivot", axis=(f"{n}_pivot", f"{n}_axis"))
        for n in ("pitman", "idler")
    }

    def hung(p: Mapping[str, Any]) -> Universal:
        axis, line = p["pitman_axis"] - p["pitman_pivot"], p["idler_ball"] - p["pitman_ball"]
        xp: Any = np if is_concrete(axis) and is_concrete(line) else jnp
        across = xp.cross(axis, line)
        if xp is np and np.dot(across, across) < 1e-6 * np.dot(axis, axis) * np.dot(line, line):
            raise ValueError("the relay rod is drawn along the pitman arm's axis; correct one")
        return Universal("pitman", "relay", "pitman_ball", ("pitman_pivot", "pitman_axis"), across)

    ball = Spherical("idler", "relay", at="idler_ball")
    arms = [tuple(f"{n}_{x}" for x in ("pivot", "axis", "ball")) for n in hinges]
    balls = "pitman_ball", "idler_ball"
    return Parts(
        (*rod.points, *arms[0], *arms[1]),
        (*rod.apart, *arms, balls),
        {"pitman": balls[:1], "idler": balls[1:], "relay": balls},
        {**hinges, "relay": hung, "idler_ball": ball, **rod.joints},
    )


def spring(
    body: str, n: TemplateNumbers, given: Iterable[str], ends: tuple[str, str] = SPRING
) -> list[Parts]:
    """A spring and a damper from the chassis to a body; the damper may have ends of its own."""
    shock = "shock_top", "shock_bottom"
    apart = bool(set(shock) & set(given))
    about: dict[str, Any] = dict(stiffness=n.spring_rate, preload=-number(n.spring_preload))
    if not apart:
        about["damping"] = n.damping
    damper = SpringDamper(GROUND, body, *shock, damping=n.damping)
    return [
        Parts(ends, (ends,), forces={"spring": SpringDamper(GROUND, body, *ends, **about)}),
        Parts(shock, (shock,), forces={"shock": damper}, optional=True),
    ]


def rocker(rod: str, body: str, n: TemplateNumbers) -> list[Parts]:
    """A pushrod or pullrod from a body to a rocker, which works a spring with its damper."""
    own = link(rod, "rocker", body)
    hinge = "rocker_pivot_front", "rocker_pivot_rear"
    ends = "spring_chassis", "spring_rocker"
    about = dict(stiffness=n.spring_rate, preload=-number(n.spring_preload), damping=n.damping)
    return [
        Parts(
            (*own.points, *hinge, *ends),
            (own.points, (*hinge, own.points[0]), ends, (*hinge, ends[1])),
            {"rocker": (*hinge, own.points[0], ends[1])},
            {
                "rocker": Revolute(GROUND, "rocker", at=hinge[0], axis=hinge[::-1]),
                rod: own.joints[rod],
            },
            {"spring": SpringDamper(GROUND, "rocker", *ends, **about)},
        ),
        Parts(("heave_spring",), optional=True),
    ]


def bar(body: str) -> Parts:
    """The half of an anti-roll bar: its arm, which turns about y, and a drop link to a body."""
    link_ = link("droplink", "bar_arm", body)

    def problems(x: Mapping[str, np.ndarray]) -> list[str]:
        lever = (x["droplink_inboard"] - x["bar_axis"])[[0, 2]]
        if np.linalg.norm(lever) > 1e-3 * np.linalg.norm(x["droplink_outboard"] - x["bar_axis"]):
            return []
        return [
            "'droplink_inboard' is on the bar's axis, which runs along y through 'bar_axis': the "
            "bar's arm has no length; correct one of them"
        ]

    return Parts(
        ("bar_axis", *link_.points),
        link_.apart,
        {"bar_arm": ("droplink_inboard",)},
        {"bar_arm": Revolute(GROUND, "bar_arm", at="bar_axis", axis=Y), **link_.joints},
        optional=True,
        problems=problems,
    )


def with_wheel_axis(p: Mapping[str, Any], n: TemplateNumbers) -> dict[str, Any]:
    """The points with `axle_inboard`, made from static camber and toe where it is not given.

    The axis outwards is along ``(tan toe, 1, −tan camber)``.
    """
    if "axle_inboard" in p:
        angles = {x: getattr(n, x) for x in ("camber", "toe")}
        if said := [x for x, y in angles.items() if not is_concrete(y) or y]:
            raise ValueError(
                f"{' and '.join(said)}: 'axle_inboard' says where the wheel's axis points; leave "
                "out one or the other"
            )
        return dict(p)
    xp: Any = np if is_concrete(n.camber) and is_concrete(n.toe) else jnp
    axis = xp.stack([xp.tan(n.toe), xp.ones_like(xp.tan(n.toe)), -xp.tan(n.camber)])
    return {**p, "axle_inboard": p["wheel_centre"] - _SPINDLE * axis}


def merged(parts: Sequence[Parts], p: Mapping[str, Any]) -> Parts:
    """One piece of those that are drawn, with its joints made."""
    drawn = [part for part in parts if set(part.points) <= set(p)]
    joints = {n: j(p) if callable(j) else j for part in drawn for n, j in part.joints.items()}
    return Parts(
        tuple(dict.fromkeys(name for part in drawn for name in part.points)),
        bodies={n: x for part in drawn for n, x in part.bodies.items()},
        joints=joints,
        forces={n: x for part in drawn for n, x in part.forces.items()},
    )


def sided(half: Parts, side: str, shared: Sequence[str] = ()) -> Parts:
    """A piece of one side, whose bodies, joints, forces and points have its name before theirs."""
    moved = {n: f"{side}_{n}" for n in (*half.bodies, *half.joints) if n not in shared}
    points = {n: f"{side}_{n}" for n in half.points}
    return Parts(
        tuple(points.values()),
        bodies={moved.get(n, n): tuple(points[x] for x in at) for n, at in half.bodies.items()},
        joints={moved.get(n, n): renamed(j, moved, points) for n, j in half.joints.items()},
        forces={f"{side}_{n}": renamed(f, moved, points) for n, f in half.forces.items()},
    )


def mechanism(
    template: str, parts: Sequence[Parts], p: Mapping[str, Any], n: TemplateNumbers
) -> Mechanism:
    """The mechanism of all that is drawn."""
    all_ = merged(parts, p)
    known = all_.bodies
    wrong = [f"masses: there is no body {b!r}{meant(b, known)}" for b in n.masses if b not in known]
    refuse(f"template {template!r}", wrong)
    usual = {b: _MASSES.get(b.removeprefix("left_").removeprefix("right_"), 0.0) for b in known}
    masses = usual | dict(n.masses)
    bodies = {b: _body(masses[b], at, p) for b, at in known.items()}
    gravity = n.gravity if np.ndim(n.gravity) else number(n.gravity) * np.array([0.0, 0.0, -1.0])
    return Mechanism(bodies, all_.joints, all_.forces, points=p, gravity=gravity)


def _body(mass: Any, at: Sequence[str], p: Mapping[str, Any]) -> Body:
    """A mass in equal points; without any its place is a name, so that it follows the hardpoint."""
    if len(at) == 1 or (is_concrete(mass) and not mass):
        return Body(mass, com=at[0])
    x = [p[name] for name in at]
    com = sum(x) / len(x)
    tensors = [(y - com) @ (y - com) * np.eye(3) - (y - com)[:, None] * (y - com) for y in x]
    return Body(mass, com=com, inertia=number(mass) * sum(tensors) / len(x))
