"""The five-bar linkage: a planar point moved by two cranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.model import Mechanism, Revolute, number
from jaxmbd.zoo.drawing import bar_in_plane, downward_in_plane, functions_for, middle


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
        gravity=downward_in_plane(gravity),
    )
