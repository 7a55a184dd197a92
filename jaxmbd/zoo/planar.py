"""Planar linkages drawn in space: four-bar, slider-crank, a row of four-bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.model import Body, Mechanism, Prismatic, Revolute
from jaxmbd.zoo.drawing import bar_in_plane, downward, downward_in_plane, rod_inertia

_X, _Y, _Z = np.eye(3)


def _bar(mass: Any, length: Any, com: Any, direction: Any, slenderness: float = 0.0) -> Body:
    """A bar with m l²/12 across and ``slenderness·m`` about its axis [kg m²]."""
    inertia = rod_inertia(direction, slenderness * mass, mass * length**2 / 12.0)
    return Body(mass, com=com, inertia=inertia)


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
            "crank": _bar(m_crank, crank, (0.0, 0.0, crank / 2), _Z, 1e-4),
            "coupler": _bar(m_coupler, coupler, (coupler / 2, 0.0, crank), _X, 1e-4),
            "rocker": _bar(m_rocker, rocker, (ground, 0.0, rocker / 2), _Z, 1e-4),
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
            "crank": _bar(m_crank, crank, (crank / 2, 0.0, 0.0), _X, 1e-4),
            "rod": _bar(m_rod, rod, (crank + rod_com, 0.0, 0.0), _X, 1e-4),
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

    def bar(com: tuple[Any, ...], direction: Any) -> Body:
        return bar_in_plane(mass, length, com) if planar else _bar(mass, length, com, direction)

    axis = None if planar else _Z
    for i in range(n + 1):
        points[f"A_{i}"] = at(i * length, 0.0)
        points[f"B_{i}"] = at(i * length, length)
        bodies[f"crank_{i}"] = bar(at(i * length, length / 2), _Y)
        joints[f"ground_{i}"] = Revolute("ground", f"crank_{i}", at=f"A_{i}", axis=axis)
    for i in range(1, n + 1):
        name = f"coupler_{i}"
        bodies[name] = bar(at((i - 0.5) * length, length), _X)
        joints[f"left_{i}"] = Revolute(f"crank_{i - 1}", name, at=f"B_{i - 1}", axis=axis)
        joints[f"right_{i}"] = Revolute(name, f"crank_{i}", at=f"B_{i}", axis=axis)
    down = downward_in_plane(gravity) if planar else downward(gravity, 1)
    return Mechanism(bodies, joints, points=points, gravity=down)
