"""The spatial four-bar RSSR: two revolute joints, a coupler between two ball joints.

Hanzaki, Saha and Rao, "An improved dynamic modeling of a multibody system with spherical joints",
Multibody System Dynamics (2009), table 1. The frame lies at the rocker's joint, z along its axis,
x along the common perpendicular of the two revolute axes.

With A(ψ) and B(θ) the ends of crank and rocker, the coupler requires ``|A(ψ) − B(θ)| = l2``, or
``A_x cos θ + A_y sin θ = C`` with ``C = (A·A + l3² − l2²) / (2 l3)``. The root that belongs to the
table is ``θ = arg(A_x, A_y) − arccos(C / |(A_x, A_y)|)``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxmbd.model import Body, Mechanism, PerpendicularAxes, Revolute, Spherical, number
from jaxmbd.zoo.drawing import downward, functions_for, middle, rod_inertia, unit_vector

_Z = np.array([0.0, 0.0, 1.0])
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


def _drawn(lengths: Any, pivot: Any, tilt: Any) -> dict[str, Any]:
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

    Source: Hanzaki, Saha and Rao (2009), table 1, which neglects gravity. Its inertias are about
    the links' origins and are given here about their centres of mass, at half length.
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
    points = _drawn(lengths, pivot, tilt)
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
    points = _drawn(lengths, pivot, tilt)
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
