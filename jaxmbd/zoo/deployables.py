"""Over-constrained linkages that fold and unfold: Bennett's, Sarrus's, a scissor lift.

Bricard's is in `jaxmbd.zoo.iftomm`, as a problem of that library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.model import Body, Mechanism, PointOnLine, Prismatic, Revolute, number
from jaxmbd.zoo.drawing import bar, bar_in_plane, downward, functions_for, middle, unit_vector


def bennett_angle(angle: Any, twists: Any = (0.6, 1.1)) -> Any:
    """The angle φ [rad] between the links at the second joint of Bennett's linkage.

    ``tan(θ/2) tan(φ/2) = sin((β + α)/2) / sin((β − α)/2)`` for the angle θ at the first and the
    twists α and β (G. T. Bennett, A new mechanism, Engineering 76, 1903).

    Args:
        angle: θ [rad], of any shape, between 0 and 2π.
        twists: α and β of the links [rad].

    Example:
        >>> import jaxmbd as mbd
        >>> print(f"{mbd.zoo.bennett_angle(1.5):.6f}")
        2.546255
    """
    alpha, beta = twists
    xp = functions_for(angle, alpha, beta)
    ratio = xp.sin((beta + alpha) / 2.0) / xp.sin((beta - alpha) / 2.0)
    return 2.0 * xp.arctan2(ratio * xp.cos(angle / 2.0), xp.sin(angle / 2.0))


def bennett(
    length: Any = 0.5,
    twists: Any = (0.6, 1.1),
    angle: Any = 1.5,
    mass: Any = 1.0,
    gravity: Any = 9.81,
) -> Mechanism:
    """Bennett's linkage: four links, four hinges whose axes are skew, one degree of freedom.

    Opposite links have the same length and twist, and both pairs ``a / sin α = b / sin β`` (G. T.
    Bennett, A new mechanism, Engineering 76, 1903; the numbers are ours). Kutzbach's formula gives
    −2. Joints `J0` (ground, link1), `J1` (link1, link2), `J2` (link2, link3), `J3` (link3, ground)
    at the points of the same names; links are slender bars between them. The ground is the fixed
    link from J3 to J0; J0 turns about +z, and gravity acts along −z.

    Args:
        length: a, of `link1` and `link3` [m].
        twists: α of `link1` and `link3`, β of `link2` and of the ground, different [rad].
        angle: θ at which it is drawn, between link1 and the ground produced at J0 [rad].
        mass: of each link [kg].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.mobility(mbd.zoo.bennett())
        >>> found.kutzbach, found.dof
        (-2, 1)
    """
    alpha, beta = twists
    xp = functions_for(length, alpha, beta, angle)
    other = length * xp.sin(beta) / xp.sin(alpha)
    second = bennett_angle(angle, twists)
    turns = (angle, second, 2.0 * np.pi - angle, 2.0 * np.pi - second)
    points, axes = [number((0.0, 0.0, 0.0))], [number((0.0, 0.0, 1.0))]
    along = number((1.0, 0.0, 0.0))
    for turn, a, twist in zip(turns, (length, other) * 2, (alpha, beta) * 2, strict=True):
        along = _turned(xp, along, axes[-1], turn)
        points.append(points[-1] + a * along)
        axes.append(_turned(xp, axes[-1], along, twist))
    names = ("ground", "link1", "link2", "link3", "ground")
    lengths = (length, other, length)
    return Mechanism(
        bodies={
            name: bar(mass, a, middle(p, q), unit_vector(q - p))
            for name, a, p, q in zip(names[1:4], lengths, points, points[1:], strict=False)
        },
        joints={
            f"J{i}": Revolute(names[i], names[i + 1], at=f"J{i}", axis=axes[i]) for i in range(4)
        },
        points={f"J{i}": points[i] for i in range(4)},
        gravity=downward(gravity, 2),
    )


def _turned(xp: Any, x: Any, axis: Any, angle: Any) -> Any:
    """A vector perpendicular to a unit axis, turned about it."""
    return xp.cos(angle) * x + xp.sin(angle) * xp.cross(axis, x)


def sarrus(
    length: Any = 0.3,
    side: Any = 0.2,
    angle: Any = 0.9,
    masses: Any = (0.5, 2.0),
    gravity: Any = 9.81,
) -> Mechanism:
    """Sarrus's linkage: a plate that moves straight, led by hinges alone, one degree of freedom.

    Two pairs of bars, each with three parallel hinges, fold in planes at right angles: P. F.
    Sarrus, Note sur la transformation des mouvements rectilignes alternatifs, 1853; the numbers
    are ours. Kutzbach's formula gives 0. The hinges of side x turn about y at `Ax` (ground), `Bx`
    (knee), `Cx` (plate), those of side y about −x at `Ay`, `By`, `Cy`; bodies `lower_x`, `upper_x`,
    `lower_y`, `upper_y`, `plate`. The plate is ``2 length sin(angle)`` above the ground.

    Args:
        length: of the bars [m].
        side: from the middle of the plate to its hinges [m].
        angle: of the lower bars above the horizontal as drawn [rad].
        masses: of each bar, and of the plate, (2,) [kg].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.mobility(mbd.zoo.sarrus())
        >>> found.kutzbach, found.dof
        (0, 1)
    """
    xp = functions_for(length, side, angle)
    rise, out = length * xp.sin(angle), length * xp.cos(angle)
    bar_mass, plate_mass = masses
    top = number((0.0, 0.0, 2.0 * rise))
    plate = Body(plate_mass, top, plate_mass * side**2 / 3.0 * np.array([1.0, 1.0, 2.0]))
    points, joints, bodies = {}, {}, {"plate": plate}
    for name, direction, axis in (("x", (1.0, 0.0), (0, 1, 0)), ("y", (0.0, 1.0), (-1, 0, 0))):
        x, y = direction
        a = number((side * x, side * y, 0.0))
        b = number(((side + out) * x, (side + out) * y, rise))
        c = number((side * x, side * y, 2.0 * rise))
        points |= {f"A{name}": a, f"B{name}": b, f"C{name}": c}
        lower, upper = f"lower_{name}", f"upper_{name}"
        bodies[lower] = bar(bar_mass, length, middle(a, b), unit_vector(b - a))
        bodies[upper] = bar(bar_mass, length, middle(b, c), unit_vector(c - b))
        joints[f"A{name}"] = Revolute("ground", lower, at=f"A{name}", axis=axis)
        joints[f"B{name}"] = Revolute(lower, upper, at=f"B{name}", axis=axis)
        joints[f"C{name}"] = Revolute(upper, "plate", at=f"C{name}", axis=axis)
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 2))


def scissors(
    stages: int = 3,
    length: Any = 1.0,
    angle: Any = 0.5,
    masses: Any = (2.0, 50.0),
    gravity: Any = 9.81,
) -> Mechanism:
    """A scissor lift, planar: crossed bars above each other carry a table, one degree of freedom.

    The table is ``stages · length · sin(angle)`` high, and held by a force ``load · stages /
    tan(angle)`` at the slider (by virtual work, bars without weight; the numbers are ours). Bodies:
    `rising1` from the pivot `P0` upward to the right, `falling1` from the slider at `Q0`, crossed
    at `M1`; their ends are `P1` (left) and `Q1` (right), the next stage's feet, and so on; `table`
    is hinged to the last left end and rolls on the last right end. The joint `foot` moves the
    `slider` on the ground along x.

    Args:
        stages: how many.
        length: of the bars [m].
        angle: of the bars above the horizontal as drawn [rad].
        masses: of each bar, and of the table, (2,) [kg].
        gravity: [m/s²] along −y, or a vector (2,).

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.mobility(mbd.zoo.scissors(2)).dof
        1
    """
    xp = functions_for(length, angle)
    width, height = length * xp.cos(angle), length * xp.sin(angle)
    bar_mass, load = masses
    points = {}
    for i in range(stages + 1):
        points |= {f"P{i}": number((0.0, i * height)), f"Q{i}": number((width, i * height))}
    table = middle(points[f"P{stages}"], points[f"Q{stages}"])
    bodies: dict[str, Any] = {"slider": Body(0.0, "Q0"), "table": Body(load, table)}
    joints: dict[str, Any] = {"foot": Prismatic("ground", "slider", at="Q0", axis=(1, 0))}
    left, right = "ground", "slider"
    for i in range(1, stages + 1):
        rising, falling = f"rising{i}", f"falling{i}"
        centre = middle(points[f"P{i - 1}"], points[f"Q{i}"])
        points[f"M{i}"] = centre
        for name in (rising, falling):
            bodies[name] = bar_in_plane(bar_mass, length, centre)
        joints[f"P{i - 1}"] = Revolute(left, rising, at=f"P{i - 1}")
        joints[f"Q{i - 1}"] = Revolute(right, falling, at=f"Q{i - 1}")
        joints[f"M{i}"] = Revolute(rising, falling, at=f"M{i}")
        left, right = falling, rising  # the falling bar ends left, and carries what rises there
    joints[f"P{stages}"] = Revolute(left, "table", at=f"P{stages}")
    joints[f"Q{stages}"] = PointOnLine("table", right, at=f"Q{stages}", axis=(1, 0))
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 1, 2))
