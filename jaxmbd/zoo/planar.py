"""Planar linkages, and pendulums: in the plane xy unless it says otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.model import Body, ComRef, Mechanism, Prismatic, Revolute, number
from jaxmbd.zoo.drawing import (
    bar,
    bar_in_plane,
    downward,
    functions_for,
    middle,
)

_X, _Y, _Z = np.eye(3)


def simple_pendulum(length: Any = 1.0, mass: Any = 1.0, gravity: Any = 9.81) -> Mechanism:
    """A point mass on a massless rod in the plane xy, drawn horizontal at (−length, 0, 0).

    Source: problem A01, "simple pendulum", of the IFToMM library of computational benchmark
    problems (Universidade da Coruña, mbsbenchmark). From rest as drawn its period is 2.36784 s.
    The joint `hinge` turns the body `bob` about +z.

    Args:
        length: of the rod [m].
        mass: [kg].
        gravity: [m/s²] along −y, or a vector (3,).

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.simple_pendulum().structure.joints[0].name
        'hinge'
    """
    return Mechanism(
        bodies={"bob": Body(mass, com=(-length, 0.0, 0.0))},
        joints={"hinge": Revolute("ground", "bob", at="pivot", axis=_Z)},
        points={"pivot": (0.0, 0.0, 0.0)},
        gravity=downward(gravity, 1),
    )


def double_pendulum(
    lengths: Any = (1.0, 1.0), masses: Any = (1.0, 1.0), gravity: Any = 9.81
) -> Mechanism:
    """Two point masses on massless rods in the plane xy, drawn hanging down at rest.

    Source: the textbook example; unit lengths and masses are ours. With absolute angles
    φ1 = q1, φ2 = q1 + q2 from the downward vertical its equations are
    ``(m1+m2) l1 φ̈1 + m2 l2 (φ̈2 cos(φ1−φ2) + φ̇2² sin(φ1−φ2)) + (m1+m2) g sin φ1 = 0`` and
    ``l2 φ̈2 + l1 (φ̈1 cos(φ1−φ2) − φ̇1² sin(φ1−φ2)) + g sin φ2 = 0``.
    The joints `hinge_1` (ground, `bob_1`) and `hinge_2` (`bob_1`, `bob_2`) turn about +z.

    Args:
        lengths: of the upper and the lower rod, (2,) [m].
        masses: of the upper and the lower bob, (2,) [kg].
        gravity: [m/s²] along −y, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.double_pendulum().structure.bodies
        ('bob_1', 'bob_2')
    """
    (upper, lower), (mass_1, mass_2) = lengths, masses
    return Mechanism(
        bodies={
            "bob_1": Body(mass_1, com=(0.0, -upper, 0.0)),
            "bob_2": Body(mass_2, com=(0.0, -upper - lower, 0.0)),
        },
        joints={
            "hinge_1": Revolute("ground", "bob_1", at="pivot", axis=_Z),
            "hinge_2": Revolute("bob_1", "bob_2", at=ComRef("bob_1"), axis=_Z),
        },
        points={"pivot": (0.0, 0.0, 0.0)},
        gravity=downward(gravity, 1),
    )


def four_bar(
    crank: Any = 0.3,
    coupler: Any = 0.8,
    rocker: Any = 0.6,
    ground: Any = 0.7,
    masses: Any = (0.9, 2.4, 1.8),
    gravity: Any = 9.81,
) -> Mechanism:
    """A four-bar linkage in the plane xz, drawn open: crank and rocker vertical, coupler level.

    Source: the four-bar of jaxmbd's comparison with Pinocchio, made of bars of 3 kg/m. Its
    joints turn about +y: `A` (ground, crank), `B` (crank, coupler), `D` (ground, rocker) and
    `C` (coupler, rocker), which closes the loop: its two halves are drawn apart, at
    (coupler, 0, crank) on the coupler and (ground, 0, rocker) on the rocker, and `assemble`
    brings them together. The multiplier of `C` is the force on the rocker.

    Args:
        crank: its length [m].
        coupler: its length [m].
        rocker: its length [m].
        ground: distance of `A` and `D` [m].
        masses: of crank, coupler and rocker, (3,) [kg]; each has the inertia m l²/12 about its
            centre, and m·1e-4 m² about its axis.
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> [joint.name for joint in mbd.zoo.four_bar().structure.joints]
        ['A', 'B', 'D', 'C']
    """
    m_crank, m_coupler, m_rocker = masses
    return Mechanism(
        bodies={
            "crank": bar(m_crank, crank, (0.0, 0.0, crank / 2), _Z, 1e-4),
            "coupler": bar(m_coupler, coupler, (coupler / 2, 0.0, crank), _X, 1e-4),
            "rocker": bar(m_rocker, rocker, (ground, 0.0, rocker / 2), _Z, 1e-4),
        },
        joints={
            "A": Revolute("ground", "crank", at="A", axis=_Y),
            "B": Revolute("crank", "coupler", at="B", axis=_Y),
            "D": Revolute("ground", "rocker", at="D", axis=_Y),
            "C": Revolute("coupler", "rocker", at="C_coupler", at_b="C_rocker", axis=_Y),
        },
        points={
            "A": (0.0, 0.0, 0.0),
            "B": (0.0, 0.0, crank),
            "D": (ground, 0.0, 0.0),
            "C_coupler": (coupler, 0.0, crank),
            "C_rocker": (ground, 0.0, rocker),
        },
        gravity=downward(gravity, 2),
    )


def slider_crank(
    crank: Any = 0.2,
    rod: Any = 0.5,
    rod_com: Any = 0.3,
    masses: Any = (1.0, 1.5, 1.0),
    gravity: Any = 9.81,
) -> Mechanism:
    """A slider-crank in the plane xy, drawn stretched along +x.

    Source: section 3.4 of the lecture text "Multibody kinematics and dynamics": crank of 200 mm,
    rod of 500 mm whose centre of mass lies 300 mm from the crank and 200 mm from the slider,
    driven with the crank's angle 5.76 − 1.2 t [rad]. Its figure is turned by 180° here, so that
    the crank points along +x at angle zero. The text gives no masses: these are ours, with the
    inertia m l²/12 about the centre of mass and m·1e-4 m² about the axis. The joints keep its
    letters: `O` (ground, crank), `B` (crank, rod), `A` (rod, slider) turn about +z, `T` (ground,
    slider) slides along +x. The drawn configuration is a dead centre.

    Args:
        crank: its length [m].
        rod: its length [m].
        rod_com: distance of the rod's centre of mass from `B` [m].
        masses: of crank, rod and slider, (3,) [kg].
        gravity: [m/s²] along −y, or a vector (3,).

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.slider_crank().structure.bodies
        ('crank', 'rod', 'slider')
    """
    m_crank, m_rod, m_slider = masses
    return Mechanism(
        bodies={
            "crank": bar(m_crank, crank, (crank / 2, 0.0, 0.0), _X, 1e-4),
            "rod": bar(m_rod, rod, (crank + rod_com, 0.0, 0.0), _X, 1e-4),
            "slider": Body(m_slider, com="A", inertia=1e-4 * m_slider * np.ones(3)),
        },
        joints={
            "O": Revolute("ground", "crank", at="O", axis=_Z),
            "B": Revolute("crank", "rod", at="B", axis=_Z),
            "A": Revolute("rod", "slider", at="A", axis=_Z),
            "T": Prismatic("ground", "slider", at="A", axis=_X),
        },
        points={
            "O": (0.0, 0.0, 0.0),
            "B": (crank, 0.0, 0.0),
            "A": (crank + rod, 0.0, 0.0),
        },
        gravity=downward(gravity, 1),
    )


def n_four_bar(
    n: int = 2,
    length: Any = 1.0,
    mass: Any = 1.0,
    gravity: Any = 9.81,
    planar: bool = False,
) -> Mechanism:
    """`n` four-bars in a row: n + 1 upright cranks, joined by n horizontal couplers.

    Source: problem A02, "N-four-bar mechanism", of the IFToMM library of computational benchmark
    problems (Universidade da Coruña, mbsbenchmark); there N = 40, gravity acts along −y and B_0
    starts at 1 m/s along +x. The links are slender rods with m l²/12 about their centres. The
    plane is xy; the cranks `crank_0` … `crank_n` stand on the points `A_i` = (i, 0, 0) and end in
    `B_i` = (i, 1, 0); `coupler_i` spans `B_{i-1}`, `B_i`. All joints turn about +z: `ground_i`
    (ground, crank_i), `left_i` (crank_{i-1}, coupler_i), `right_i` (coupler_i, crank_i). With
    horizontal cranks the mechanism is singular; drawn in space it is redundantly constrained too.

    Args:
        n: how many loops (static).
        length: of each link, and the distance of the pivots [m].
        mass: of each link [kg].
        gravity: [m/s²] along −y, or a vector (3,) ((2,) where planar).
        planar: whether it is drawn in the plane, with two coordinates (static).

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> len(mbd.zoo.n_four_bar(40).bodies)
        81
    """
    bodies, joints, points = {}, {}, {}

    def at(x: Any, y: Any) -> tuple[Any, ...]:
        return (x, y) if planar else (x, y, 0.0)

    def link(com: tuple[Any, ...], direction: Any) -> Body:
        return bar_in_plane(mass, length, com) if planar else bar(mass, length, com, direction)

    axis = None if planar else _Z
    for i in range(n + 1):
        points[f"A_{i}"] = at(i * length, 0.0)
        points[f"B_{i}"] = at(i * length, length)
        bodies[f"crank_{i}"] = link(at(i * length, length / 2), _Y)
        joints[f"ground_{i}"] = Revolute("ground", f"crank_{i}", at=f"A_{i}", axis=axis)
    for i in range(1, n + 1):
        name = f"coupler_{i}"
        bodies[name] = link(at((i - 0.5) * length, length), _X)
        joints[f"left_{i}"] = Revolute(f"crank_{i - 1}", name, at=f"B_{i - 1}", axis=axis)
        joints[f"right_{i}"] = Revolute(name, f"crank_{i}", at=f"B_{i}", axis=axis)
    down = downward(gravity, 1, 2 if planar else 3)
    return Mechanism(bodies, joints, points=points, gravity=down)


def five_bar_angles(
    tip: Any, proximal: Any = 0.25, distal: Any = 0.35, pivots: Any = 0.2
) -> tuple[Any, Any]:
    """Angles [rad] of the two proximal links from +x for a position of the tip, elbows outward.

    With D the distance of the tip from a pivot and γ the angle of that line, the law of cosines is
    ``γ ± arccos((l1² + D² − l2²) / (2 l1 D))``: plus on the left, minus on the right.

    Args:
        tip: (…, 2) [m].
        proximal: length of the links at the pivots [m].
        distal: length of the links at the tip [m].
        pivots: their distance [m].

    Example:
        >>> import jaxmbd as mbd
        >>> left, right = mbd.zoo.five_bar_angles((0.1, 0.45))
        >>> round(float(left + right), 6)
        3.141593
    """
    tip = number(tip)
    xp = functions_for(tip, proximal, distal, pivots)
    angles = []
    for x, side in ((0.0, 1.0), (pivots, -1.0)):
        dx, dy = tip[..., 0] - x, tip[..., 1]
        reach = xp.sqrt(dx * dx + dy * dy)
        cosine = (proximal**2 + reach**2 - distal**2) / (2.0 * proximal * reach)
        angles.append(xp.arctan2(dy, dx) + side * xp.arccos(cosine))
    return angles[0], angles[1]


def five_bar(
    proximal: Any = 0.25,
    distal: Any = 0.35,
    pivots: Any = 0.2,
    height: Any = 0.45,
    masses: Any = (0.6, 0.5),
    gravity: Any = 9.81,
) -> Mechanism:
    """A five-bar linkage, drawn symmetric with its elbows outward, planar.

    Source: the textbook parallel robot of two degrees of freedom (five revolute joints in a loop);
    the numbers are ours. The pivots are `A` = (0, 0) and `E` = (pivots, 0), the elbows `B` and
    `D`, the tip `C`, drawn at (pivots/2, height). Joints, named as their points: `A` (ground,
    `left_proximal`), `B`, `C` (`left_distal`, `right_distal`), `D`, `E` (ground,
    `right_proximal`). See `five_bar_angles` for its inverse kinematics.

    Args:
        proximal: length of the links at the pivots [m].
        distal: length of the links at the tip [m].
        pivots: their distance [m].
        height: of the tip as drawn [m].
        masses: of each proximal and each distal link, slender bars, (2,) [kg].
        gravity: [m/s²] along −y, or a vector (2,).

    Returns:
        The mechanism, of two degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.mobility(mbd.zoo.five_bar()).dof
        2
    """
    tip = number((pivots / 2, height))
    xp = functions_for(tip, proximal, distal)
    points = {"A": np.zeros(2), "C": tip, "E": number((pivots, 0.0))}
    for name, start, angle in zip(
        "BD", "AE", five_bar_angles(tip, proximal, distal, pivots), strict=True
    ):
        points[name] = points[start] + proximal * xp.stack([xp.cos(angle), xp.sin(angle)])
    m_proximal, m_distal = masses
    links = {
        "left_proximal": ("A", "B", m_proximal, proximal),
        "left_distal": ("B", "C", m_distal, distal),
        "right_distal": ("C", "D", m_distal, distal),
        "right_proximal": ("D", "E", m_proximal, proximal),
    }
    return Mechanism(
        bodies={
            name: bar_in_plane(mass, length, middle(points[p], points[q]))
            for name, (p, q, mass, length) in links.items()
        },
        joints={
            "A": Revolute("ground", "left_proximal", at="A"),
            "B": Revolute("left_proximal", "left_distal", at="B"),
            "C": Revolute("left_distal", "right_distal", at="C"),
            "D": Revolute("right_proximal", "right_distal", at="D"),
            "E": Revolute("ground", "right_proximal", at="E"),
        },
        points={name: points[name] for name in "ABCDE"},
        gravity=downward(gravity, 1, 2),
    )


def quick_return(
    crank: Any = 0.2,
    pivots: Any = 0.4,
    arm: Any = 0.8,
    link: Any = 0.5,
    masses: Any = (1.0, 0.3, 3.0, 1.5, 5.0),
    gravity: Any = 9.81,
) -> Mechanism:
    """A quick-return mechanism, drawn with the crank upright, planar.

    Source: figure 3.2 of the lecture text "Multibody kinematics and dynamics" (a crank whose block
    slides along an arm that moves a ram); it gives no dimensions: these are ours. The arm turns
    about `O`, the origin; the crank about `C`, `pivots` above it. If the crank is shorter than that
    the arm oscillates (crank and slotted lever) between ``±asin(crank/pivots)`` about the vertical;
    if it is longer the arm rotates fully (Whitworth's mechanism). With the crank's angle α from +x
    the arm's is ``ψ = atan2(pivots + crank sin α, crank cos α)``, and the ram is at
    ``x = arm cos ψ + √(link² − arm² (1 − sin ψ)²)``.

    Joints: `C` (ground, crank), `P` (crank, block), `slot` (arm, block: slides along the arm), `O`
    (ground, arm), `E` (arm, link), `F` (link, ram), `guide` (ground, ram: slides along +x).

    Args:
        crank: its length [m].
        pivots: distance of the two pivots [m].
        arm: its length [m].
        link: its length [m].
        masses: of crank, block, arm, link and ram, (5,) [kg]; crank, arm and link are slender
            bars, the block has m·1e-4 m².
        gravity: [m/s²] along −y, or a vector (2,).

    Returns:
        The mechanism, of one degree of freedom, with no redundant row.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.mobility(mbd.zoo.quick_return()).kutzbach
        1
    """
    m_crank, m_block, m_arm, m_link, m_ram = masses
    top = pivots + crank
    return Mechanism(
        bodies={
            "crank": bar_in_plane(m_crank, crank, (0.0, pivots + crank / 2)),
            "block": Body(m_block, com="P", inertia=1e-4 * m_block),
            "arm": bar_in_plane(m_arm, arm, (0.0, arm / 2)),
            "link": bar_in_plane(m_link, link, (link / 2, arm)),
            "ram": Body(m_ram, com="F"),
        },
        joints={
            "C": Revolute("ground", "crank", at="C"),
            "P": Revolute("crank", "block", at="P"),
            "slot": Prismatic("arm", "block", at="P", axis=("O", "C")),
            "O": Revolute("ground", "arm", at="O"),
            "E": Revolute("arm", "link", at="E"),
            "F": Revolute("link", "ram", at="F"),
            "guide": Prismatic("ground", "ram", at="F", axis=(1.0, 0.0)),
        },
        points={
            "O": (0.0, 0.0),
            "C": (0.0, pivots),
            "P": (0.0, top),
            "E": (0.0, arm),
            "F": (link, arm),
        },
        gravity=downward(gravity, 1, 2),
    )


def double_parallel_crank(
    crank: Any = 0.5,
    pivots: Any = (0.0, 0.6, 1.0),
    masses: Any = (1.0, 1.5, 2.0, 4.0),
    platform_inertia: Any = 0.3,
    gravity: Any = 9.81,
) -> Mechanism:
    """A platform on three equal parallel cranks, drawn upright, planar.

    Source: the parallelogram with one crank too many, the textbook example of redundant
    constraints (Wojtyra, "Joint reaction forces in multibody systems with redundant constraints",
    Multibody System Dynamics, 2005, in space); the numbers are ours. Kutzbach's formula gives 0,
    yet the platform can translate along a circle, because one row is redundant. With φ the cranks'
    angle from the vertical, positive to the left, the equation of motion is exactly
    ``(Σ m_i/3 + m_p) l² φ̈ = (Σ m_i/2 + m_p) g l sin φ``. It is singular with level cranks.

    Joints: `A_i` (ground, `crank_i`) at the pivots, `B_i` (`crank_i`, platform).

    Args:
        crank: length of each [m].
        pivots: x of the pivots, (3,) [m].
        masses: of the three cranks (slender bars) and the platform, (4,) [kg].
        platform_inertia: about its centre of mass, which is drawn above the middle of the outer
            pivots [kg m²]; it never turns.
        gravity: [m/s²] along −y, or a vector (2,).

    Returns:
        The mechanism, of one degree of freedom and one redundant row.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.mobility(mbd.zoo.double_parallel_crank())
        >>> found.kutzbach, found.dof, len(found.redundant)
        (0, 1, 1)
    """
    *cranks, m_platform = masses
    names = range(1, len(cranks) + 1)
    bodies = {
        f"crank_{i}": bar_in_plane(m, crank, (x, crank / 2))
        for i, m, x in zip(names, cranks, pivots, strict=True)
    }
    middle = (pivots[0] + pivots[-1]) / 2
    bodies["platform"] = Body(m_platform, com=(middle, crank), inertia=platform_inertia)
    joints = {f"A_{i}": Revolute("ground", f"crank_{i}", at=f"A_{i}") for i in names}
    joints |= {f"B_{i}": Revolute(f"crank_{i}", "platform", at=f"B_{i}") for i in names}
    points = {f"A_{i}": (x, 0.0) for i, x in zip(names, pivots, strict=True)}
    points |= {f"B_{i}": (x, crank) for i, x in zip(names, pivots, strict=True)}
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 1, 2))
