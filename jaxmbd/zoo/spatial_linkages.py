"""Spatial linkages: RSSR, RSRRP, the slider-crank of the IFToMM library."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jax import Array
from jax import numpy as jnp

from jaxmbd.model import (
    Body,
    JointTorque,
    Mechanism,
    PerpendicularAxes,
    Prismatic,
    Revolute,
    Spherical,
    Units,
    Universal,
    number,
    register_law,
    soften,
)
from jaxmbd.zoo.drawing import bar, downward, functions_for, middle, rod_inertia, unit_vector

_X, _Y, _Z = np.eye(3)
# The RSSR of Hanzaki, Saha and Rao (2009).
_LENGTHS = (0.050, 0.110, 0.100)
_PIVOT = (-0.130, -0.020, -0.02036)
_TILT = math.pi / 6
_MASSES = (0.045, 0.091, 0.084)
# The table's inertias are about the links' origins: m (l/2)² is subtracted across the link.
_INERTIAS = ((7.5e-7, 97.75e-7), (1.53e-6, 95.725e-6), (1.4e-6, 71e-6))
_CLEAR = (0.0, 0.0, 0.0)


def _crank_axes(tilt: Any) -> tuple[Any, Any, Any]:
    """The crank's axes at ψ = 0 (the columns of the table's B10): x, y and its joint's axis z."""
    xp = functions_for(tilt)
    c, s = xp.cos(tilt), xp.sin(tilt)
    return number((1.0, 0.0, 0.0)), number((0.0, c, s)), number((0.0, -s, c))


def _crank_end(psi: Any, length: Any, pivot: Any, tilt: Any) -> Any:
    """The point A (…, 3) [m] of the crank's end at the crank angle ψ (…) [rad]."""
    xp = functions_for(psi)
    x, y, _ = _crank_axes(tilt)
    return pivot + length * (xp.cos(psi)[..., None] * x + xp.sin(psi)[..., None] * y)


def rssr_theta(psi: Any, lengths: Any = _LENGTHS, pivot: Any = _PIVOT, tilt: Any = _TILT) -> Any:
    """Rocker angle θ [rad] of the RSSR in closed form, on the branch of `rssr` as drawn.

    With A(ψ) and B(θ) the ends of crank and rocker, the coupler requires ``|A(ψ) − B(θ)| = l2``, or
    ``A_x cos θ + A_y sin θ = C`` with ``C = (A·A + l3² − l2²) / (2 l3)``. The root that belongs to
    the table is ``θ = arg(A_x, A_y) − arccos(C / |(A_x, A_y)|)``.

    Continuous over the whole turn, since A stays on the side of negative x: θ(0) = 122.102°, and
    θ keeps within [105.061°, 165.127°]. It is NaN where the loop cannot close.

    Args:
        psi: crank angle ψ [rad], of any shape.
        lengths: of crank, coupler and rocker, (3,) [m].
        pivot: point of the crank's joint, (3,) [m].
        tilt: the crank's axis is (0, −sin tilt, cos tilt) [rad].

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> print(f"{np.degrees(mbd.zoo.rssr_theta(0.0)):.3f}")
        122.102
    """
    psi, pivot, tilt = number(psi), number(pivot), number(tilt)
    crank, coupler, rocker = lengths
    a = _crank_end(psi, crank, pivot, tilt)
    xp = functions_for(a, coupler, rocker)
    x, y = a[..., 0], a[..., 1]
    c = (xp.sum(a * a, axis=-1) + rocker**2 - coupler**2) / (2.0 * rocker)
    return xp.arctan2(-y, -x) + np.pi - xp.arccos(c / xp.sqrt(x * x + y * y))


def _rssr_points(lengths: Any, pivot: Any, tilt: Any) -> dict[str, Any]:
    """Hardpoints at ψ = 0."""
    pivot, tilt = number(pivot), number(tilt)
    theta = rssr_theta(0.0, lengths, pivot, tilt)
    xp = functions_for(theta)
    rocker = lengths[2]
    return {
        "crank_pivot": pivot,
        "A": _crank_end(np.zeros(()), lengths[0], pivot, tilt),
        "B": number((rocker * xp.cos(theta), rocker * xp.sin(theta), 0.0)),
        "rocker_pivot": np.zeros(3),
    }


def _links(points: dict[str, Any], masses: Any, inertias: Any) -> dict[str, Body]:
    ends = {
        "crank": ("crank_pivot", "A"),
        "coupler": ("A", "B"),
        "rocker": ("rocker_pivot", "B"),
    }
    bodies = {}
    for (name, (start, end)), mass, (axial, across) in zip(
        ends.items(), masses, inertias, strict=True
    ):
        p, q = points[start], points[end]
        inertia = rod_inertia(unit_vector(q - p), axial, across)
        bodies[name] = Body(mass, com=middle(p, q), inertia=inertia)
    return bodies


def rssr(
    lengths: Any = _LENGTHS,
    pivot: Any = _PIVOT,
    tilt: Any = _TILT,
    masses: Any = _MASSES,
    inertias: Any = _INERTIAS,
    gravity: Any = _CLEAR,
    hold_spin: bool = False,
) -> Mechanism:
    """The RSSR linkage, drawn assembled at ψ = 0.

    Source: Hanzaki, Saha and Rao, "An improved dynamic modeling of a multibody system with
    spherical joints", Multibody System Dynamics (2009), table 1, which neglects gravity. The frame
    lies at the rocker's joint, z along its axis, x along the common perpendicular of the two
    revolute axes. The table's inertias are about the links' origins and are given here about their
    centres of mass, at half length.
    Joints: `crank` (revolute, its coordinate is ψ), `A` (ball between crank and coupler), `B`
    (ball between coupler and rocker), `rocker` (revolute about z). The rocker's coordinate q is
    zero as drawn, at θ(0) = 122.102° (see `rssr_theta`), so θ = 122.102° + q. The coupler's spin
    about the line AB is idle. The paper turns ψ from 0 to 2π in 0.6 s.

    Args:
        lengths: of crank, coupler and rocker, (3,) [m].
        pivot: point of the crank's joint, (3,) [m]; the rocker's is the origin.
        tilt: the crank's axis is (0, −sin tilt, cos tilt) [rad].
        masses: of crank, coupler and rocker, (3,) [kg].
        inertias: of the same links about the centre of mass: about the link's axis and across it,
            (3, 2) [kg m²]; they do not depend on `lengths`.
        gravity: a vector (3,) [m/s²], or a number along −z.
        hold_spin: add the paper's φ5, `spin`: an axis across the coupler, along Z × AB as drawn,
            stays perpendicular to Z. This determines the coupler's spin.

    Returns:
        The mechanism, of one degree of freedom plus, without `hold_spin`, the coupler's idle spin.

    Example:
        >>> import jaxmbd as mbd
        >>> [joint.name for joint in mbd.zoo.rssr().structure.joints]
        ['crank', 'A', 'B', 'rocker']
    """
    points = _rssr_points(lengths, pivot, tilt)
    axis = _crank_axes(number(tilt))[2]
    joints: dict[str, Any] = {
        "crank": Revolute("ground", "crank", at="crank_pivot", axis=axis),
        "A": Spherical("crank", "coupler", at="A"),
        "B": Spherical("coupler", "rocker", at="B"),
        "rocker": Revolute("ground", "rocker", at="rocker_pivot", axis=_Z),
    }
    if hold_spin:
        line = points["B"] - points["A"]
        across = functions_for(line).cross(_Z, line)
        joints["spin"] = PerpendicularAxes("ground", "coupler", axis_a=_Z, axis_b=across)
    return Mechanism(
        bodies=_links(points, masses, inertias),
        joints=joints,
        points=points,
        gravity=downward(gravity, 2),
    )


def rssr_revolutes(
    lengths: Any = _LENGTHS,
    pivot: Any = _PIVOT,
    tilt: Any = _TILT,
    masses: Any = _MASSES,
    inertias: Any = _INERTIAS,
    gravity: Any = _CLEAR,
) -> Mechanism:
    """The RSSR with each ball joint replaced by three revolute joints.

    Source: the substitution that Hanzaki, Saha and Rao (2009) compare with: three intersecting
    orthogonal revolute joints with massless links between. Here `A` becomes `A1`, `A2`, `A3`
    with the links `A12`, `A23`, and `B` becomes `B1`, `B2`, `B3` with `B12`, `B23`. `A3` and `B1`
    lie along the coupler, so that its idle spin is their common rotation; `A1` and `B3` are
    perpendicular to the coupler and as close as possible to the axes of crank and rocker; the
    middle joints complete the right-handed triads as drawn. With the table's numbers the first and
    last axes of a triad are at least 55° apart over the turn: no gimbal lock.

    Args:
        lengths: of crank, coupler and rocker, (3,) [m].
        pivot: point of the crank's joint, (3,) [m]; the rocker's is the origin.
        tilt: the crank's axis is (0, −sin tilt, cos tilt) [rad].
        masses: of crank, coupler and rocker, (3,) [kg].
        inertias: about the centres of mass, about and across the links, (3, 2) [kg m²].
        gravity: a vector (3,) [m/s²], or a number along −z.

    Returns:
        The mechanism, equivalent to `rssr` with the same arguments.

    Example:
        >>> import jaxmbd as mbd
        >>> len(mbd.zoo.rssr_revolutes().joints)
        8
    """
    points = _rssr_points(lengths, pivot, tilt)
    axis = _crank_axes(number(tilt))[2]
    u = unit_vector(points["B"] - points["A"])
    first, last = (unit_vector(e - (e @ u) * u) for e in (axis, _Z))
    cross = functions_for(u, axis).cross
    massless = {
        name: Body(0.0, com=name[0], inertia=np.zeros((3, 3)))
        for name in ("A12", "A23", "B12", "B23")
    }
    return Mechanism(
        bodies={**_links(points, masses, inertias), **massless},
        joints={
            "crank": Revolute("ground", "crank", at="crank_pivot", axis=axis),
            "A1": Revolute("crank", "A12", at="A", axis=first),
            "A2": Revolute("A12", "A23", at="A", axis=cross(u, first)),
            "A3": Revolute("A23", "coupler", at="A", axis=u),
            "B1": Revolute("coupler", "B12", at="B", axis=u),
            "B2": Revolute("B12", "B23", at="B", axis=cross(last, u)),
            "B3": Revolute("B23", "rocker", at="B", axis=last),
            "rocker": Revolute("ground", "rocker", at="rocker_pivot", axis=_Z),
        },
        points=points,
        gravity=downward(gravity, 2),
    )


@register_law("ramped_drive")
class RampedDrive(eqx.Module):
    """A drive that ramps up to its peak, and a resistance that balances it at one speed.

    Torque ``peak · min(t/start, 1) − peak · v/speed`` on a joint with speed v.

    Attributes:
        peak: torque of the drive from `start` on [N·m].
        start: time at which the peak is reached [s].
        speed: at which the resistance equals the peak [rad/s].

    Example:
        >>> import jaxmbd as mbd
        >>> drive = mbd.zoo.RampedDrive(peak=10.0, start=5.0, speed=9.0)
        >>> float(drive(2.5, None, 0.0)), float(drive(5.0, None, 9.0))
        (5.0, 0.0)
    """

    peak: Any = eqx.field(converter=number)
    start: Any = eqx.field(converter=number)
    speed: Any = eqx.field(converter=number)

    units: ClassVar[Units] = {"peak": "effort", "start": "s", "speed": "coordinate/s"}

    def __call__(self, t: Any, q: Any, v: Any) -> Array:
        """Torque on the joint [N·m] at time `t` [s] and speed `v` [rad/s]."""
        return self.peak * (jnp.minimum(t / self.start, 1.0) - v / self.speed)


def _rsrrp_points(crank: Any, coupler: Any, post: Any, beta: Any) -> dict[str, Any]:
    """Hardpoints with the crank upright and the coupler in the plane yz."""
    xp = functions_for(crank, coupler, post, beta)
    height = crank - coupler * xp.sin(beta)
    travel = -coupler * xp.cos(beta)
    return {
        "A": np.zeros(3),
        "S": number((0.0, crank, 0.0)),
        "R": number((0.0, height, travel)),
        "P": number((0.0, height - post, travel)),
    }


def rsrrp(
    crank: Any = 0.15,
    coupler: Any = 0.5,
    post: Any = 0.1,
    beta: Any = math.pi / 3,
    masses: Any = (0.6, 1.0, 0.3, 0.8),
    torque: Any = 10.0,
    start: Any = 5.0,
    speed: Any = 9.0,
    gravity: Any = 9.81,
    soft: str | None = None,
    stiffness: Any = 1e6,
    damping: Any = 1e3,
) -> Mechanism:
    """The RSRRP linkage, drawn assembled with the crank upright: an equilibrium under gravity.

    Source: Urbaś, "Mathematical description of a flexible connection of links and its applications
    in modeling the joints of spatial linkage mechanisms" (2016), figures 5 to 7, after Haug (1989),
    from which β = 60°, the drive's 10 N·m at 5 s, the 9 rad/s and the arrangement are taken. The
    frame is the paper's: z along the axes of crank and guide, y upward. The lengths and masses,
    only in its figures, are ours: rods with m l²/12 across and m·1e-4 m² about their axes, blocks
    with m·2e-4 m² for rocker and slider. So is the resistance, ``torque · ψ̇/speed``. Joints: `A`
    turns the crank about z (its coordinate is ψ), ball `S` joins crank and coupler, `R` joins the
    coupler's other end and the rocker about an axis that is x as drawn, `B` turns the rocker in the
    slider about z at the same point, and `P` guides the slider along z.

    Args:
        crank: its length [m].
        coupler: its length [m]; for a full turn longer than the crank plus the depth of `R` below
            `A`.
        post: height of `R` over the guide [m].
        beta: angle of the coupler and the guide as drawn [rad].
        masses: of crank, coupler, rocker and slider, (4,) [kg].
        torque: of the drive from `start` on [N·m].
        start: time at which the torque is reached [s].
        speed: of the crank at which the resistance balances the drive [rad/s].
        gravity: [m/s²] along −y, or a vector (3,).
        soft: None for rigid joints (the cut-joint technique), or the name of the joint that
            springs and dampers replace: the paper's are "S" and "R".
        stiffness: of that joint, a number or (2,) [N·m/rad; N/m], see `soften`.
        damping: of that joint, a number or (2,) [N·m·s/rad; N·s/m].

    Returns:
        The mechanism, of one degree of freedom if all its joints are rigid.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.topology(mbd.zoo.rsrrp()).cut, mbd.topology(mbd.zoo.rsrrp(soft="R")).nv
        (('S',), 6)
    """
    points = _rsrrp_points(crank, coupler, post, beta)
    m_crank, m_coupler, m_rocker, m_slider = masses
    along = unit_vector(points["S"] - points["R"])
    block = 2e-4 * np.ones(3)
    mech = Mechanism(
        bodies={
            "crank": bar(m_crank, crank, middle(points["A"], points["S"]), _Y, 1e-4),
            "coupler": bar(m_coupler, coupler, middle(points["S"], points["R"]), along, 1e-4),
            "rocker": Body(m_rocker, com="R", inertia=m_rocker * block),
            "slider": Body(m_slider, com="P", inertia=m_slider * block),
        },
        joints={
            "A": Revolute("ground", "crank", at="A", axis=_Z),
            "S": Spherical("crank", "coupler", at="S"),
            "R": Revolute("coupler", "rocker", at="R", axis=(1.0, 0.0, 0.0)),
            "B": Revolute("slider", "rocker", at="R", axis=_Z),
            "P": Prismatic("ground", "slider", at="P", axis=_Z),
        },
        forces={"drive": JointTorque("A", law=RampedDrive(torque, start, speed))},
        points=points,
        gravity=downward(gravity, 1),
    )
    return mech if soft is None else soften(mech, soft, stiffness, damping)


def spatial_slider_crank(
    pivot: Any = (0.0, 0.1, 0.12),
    crank: Any = 0.08,
    rod: Any = 0.3,
    masses: Any = (0.12, 0.5, 2.0),
    gravity: Any = 9.81,
) -> Mechanism:
    """A slider-crank in space, drawn with the crank upright.

    Source: "Spatial rigid slider-crank mechanism" of the IFToMM library of computational benchmark
    problems (Masoudi et al.), with the numbers that Exudyn's copy of it gives; started at 6 rad/s.
    The crank turns about x through `pivot`, its end B goes round in a plane x = const, the slider
    C runs along the x axis: ``C_x = B_x + √(rod² − B_y² − B_z²)``. Joints: `crank` (ground,
    crank), `B` (crank, rod: a ball), `C` (slider, rod: a universal joint, one axis along the
    slide, the other across the rod), `slide` (ground, slider).

    Args:
        pivot: of the crank, (3,) [m].
        crank: its length [m].
        rod: its length [m].
        masses: of crank, rod and slider, (3,) [kg]; the inertias are the source's, times the
            masses' ratio to its own.
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.spatial_slider_crank().points["C"].round(6).tolist()
        [0.2, 0.0, 0.0]
    """
    pivot = number(pivot)
    m_crank, m_rod, m_slider = masses
    b = pivot + crank * np.array([0.0, 0.0, 1.0])
    xp = functions_for(b, rod)
    c = number((b[0] + xp.sqrt(rod**2 - b[1] ** 2 - b[2] ** 2), 0.0, 0.0))
    along = unit_vector(c - b)
    across = xp.cross(_X, along)
    return Mechanism(
        bodies={
            "crank": Body(m_crank, middle(pivot, b), m_crank / 0.12 * np.array([1e-4, 1e-4, 1e-5])),
            "rod": Body(m_rod, middle(b, c), m_rod / 0.5 * rod_inertia(along, 4e-4, 4e-3)),
            "slider": Body(m_slider, "C", m_slider / 2.0 * np.full(3, 1e-4)),
        },
        joints={
            "crank": Revolute("ground", "crank", at="pivot", axis=_X),
            "B": Spherical("crank", "rod", at="B"),
            "C": Universal("slider", "rod", at="C", axis_a=_X, axis_b=across),
            "slide": Prismatic("ground", "slider", at="C", axis=_X),
        },
        points={"pivot": pivot, "B": b, "C": c},
        gravity=downward(gravity, 2),
    )
