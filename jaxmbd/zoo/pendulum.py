"""Pendulums of point masses on massless rods."""

from __future__ import annotations

from typing import Any

from jaxmbd.model import Body, ComRef, Mechanism, Revolute
from jaxmbd.zoo.drawing import downward

_Z = (0.0, 0.0, 1.0)


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
