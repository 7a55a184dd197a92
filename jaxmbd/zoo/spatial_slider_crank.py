"""The spatial slider-crank of the IFToMM library."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.model import Body, Mechanism, Prismatic, Revolute, Spherical, Universal, number
from jaxmbd.zoo.drawing import downward, functions_for, middle, rod_inertia, unit_vector

_X = np.array([1.0, 0.0, 0.0])


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
