"""The double parallel crank: a platform on three parallel cranks, one of them redundant."""

from __future__ import annotations

from typing import Any

from jaxmbd.model import Body, Mechanism, Revolute
from jaxmbd.zoo.drawing import bar_in_plane, downward_in_plane


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
    return Mechanism(bodies, joints, points=points, gravity=downward_in_plane(gravity))
