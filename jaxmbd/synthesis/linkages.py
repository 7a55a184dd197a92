"""Linkages to begin a synthesis with: bodies without mass, all numbers are hardpoints."""

from __future__ import annotations

from typing import Any

from jaxmbd.model import Body, Mechanism, Revolute, Rod

_FOUR_BAR = {"A": (0.0, 0.0), "B": (0.0, 1.0), "C": (3.0, 2.0), "D": (3.0, 0.0), "P": (1.5, 3.0)}
_RSSR = {
    "crank_pivot": (0.0, 0.0, 0.0),
    "A": (1.0, 0.0, 0.0),
    "B": (2.0, 2.0, 2.0),
    "rocker_pivot": (2.0, 3.0, 0.5),
}


def _massless(at: str, planar: bool, markers: tuple[str, ...] = ()) -> Body:
    return Body(0.0, com=at, inertia=0.0 if planar else (0.0, 0.0, 0.0), markers=markers)


def massless_four_bar(points: dict[str, Any] | None = None) -> Mechanism:
    """A planar four-bar with a coupler point: kinematics only, links without mass.

    Bodies `crank` (from `A` on the ground to `B`), `coupler` (`B`, `C`, and the point `P`) and
    `rocker` (`C` to `D` on the ground); the joints have the names of their points, `C` is cut.

    Args:
        points: hardpoints by name, (2,) [m], instead of those of the default drawing.

    Example:
        >>> from jaxmbd.synthesis import massless_four_bar
        >>> massless_four_bar({"P": (1.0, 2.0)}).points["P"]
        array([1., 2.])
    """
    joints = {
        "A": Revolute("ground", "crank", at="A"),
        "B": Revolute("crank", "coupler", at="B"),
        "D": Revolute("ground", "rocker", at="D"),
        "C": Revolute("coupler", "rocker", at="C"),
    }
    return Mechanism(
        bodies={
            "crank": _massless("B", True),
            "coupler": _massless("C", True, markers=("P",)),
            "rocker": _massless("D", True),
        },
        joints=joints,
        points={**_FOUR_BAR, **(points or {})},
        gravity=(0.0, 0.0),
        cut=["C"],
    )


def massless_rssr(
    points: dict[str, Any] | None = None,
    crank_axis: Any = (0.0, 0.0, 1.0),
    rocker_axis: Any = (1.0, 0.0, 0.0),
) -> Mechanism:
    """A spatial four-bar RSSR: kinematics only, links without mass.

    Bodies `crank` (turning about `crank_axis` at `crank_pivot`, with the ball `A`), `coupler` and
    `rocker` (from the ball `B`, turning about `rocker_axis` at `rocker_pivot`). The coupler is a
    rod, so that no spin is idle.

    Args:
        points: hardpoints by name, (3,) [m], instead of those of the default drawing.
        crank_axis: direction (3,).
        rocker_axis: direction (3,).

    Example:
        >>> from jaxmbd.synthesis import massless_rssr
        >>> massless_rssr().structure.bodies
        ('crank', 'rocker')
    """
    return Mechanism(
        bodies={"crank": _massless("A", False), "rocker": _massless("B", False)},
        joints={
            "crank": Revolute("ground", "crank", at="crank_pivot", axis=crank_axis),
            "rocker": Revolute("ground", "rocker", at="rocker_pivot", axis=rocker_axis),
            "coupler": Rod("crank", "rocker", at_a="A", at_b="B"),
        },
        points={**_RSSR, **(points or {})},
        gravity=(0.0, 0.0, 0.0),
    )
