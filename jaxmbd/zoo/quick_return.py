"""The quick-return mechanism: crank, block, slotted arm, link and ram; drawn in the plane."""

from __future__ import annotations

from typing import Any

from jaxmbd.model import Body, Mechanism, Prismatic, Revolute
from jaxmbd.zoo.drawing import bar_in_plane, downward_in_plane


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
        gravity=downward_in_plane(gravity),
    )
