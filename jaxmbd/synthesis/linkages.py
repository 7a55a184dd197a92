"""Linkages to begin a synthesis with: bodies without mass, all numbers are hardpoints.

Any other mechanism may be given to `Problem` just as well, with masses and springs too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbd.model import (
    GROUND,
    Body,
    Gear,
    Mechanism,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)

_FOUR_BAR = {"A": (0.0, 0.0), "B": (0.0, 1.0), "C": (3.0, 2.0), "D": (3.0, 0.0), "P": (1.5, 3.0)}
_RSSR = {
    "crank_pivot": (0.0, 0.0, 0.0),
    "A": (1.0, 0.0, 0.0),
    "B": (2.0, 2.0, 2.0),
    "rocker_pivot": (2.0, 3.0, 0.5),
}
_RSSP = {"crank_pivot": (0.0, 0.0, 0.0), "A": (1.0, 0.0, 0.0), "B": (3.0, 0.5, 0.5)}
_SPHERICAL = {
    "O": (0.0, 0.0, 0.0), "A": (1.0, 0.0, 0.0), "B": (1.0, 0.0, 0.4), "C": (0.5, 0.7, 0.9),
    "D": (0.5, 1.0, 0.0), "P": (0.6, 0.2, 0.8),
}  # fmt: skip
_FIVE_SS = {
    "A1": (0.0, -0.5, -0.5), "B1": (2.0, 0.0, -0.5), "A2": (0.0, 0.5, -0.5), "B2": (2.0, 0.1, -0.5),
    "A3": (0.0, -0.4, 0.5), "B3": (2.0, 0.0, 0.4), "A4": (0.0, 0.5, 0.5), "B4": (2.0, 0.1, 0.4),
    "A5": (0.0, 0.9, -0.2), "B5": (2.0, 0.6, -0.2), "P": (2.2, 0.1, 0.0),
}  # fmt: skip

_FOUR = {"ground": "AD", "crank": "AB", "coupler": "BCP", "rocker": "CD"}
_SIX_BARS: dict[str, tuple[dict[str, str], dict[str, tuple[float, float]]]] = {
    "Watt I": (
        {**_FOUR, "coupler": "BCE", "rocker": "CDF", "link": "EGP", "guide": "FG"},
        {"E": (1.0, 3.0), "F": (4.0, 2.5), "G": (3.0, 4.0), "P": (2.0, 4.5)},
    ),
    "Watt II": (
        {"ground": "ADG", "crank": "AB", "coupler": "BC", "rocker": "CDE"}
        | {"link": "EFP", "output": "FG"},
        {"E": (4.0, 2.0), "F": (6.0, 2.5), "G": (6.0, 0.0), "P": (5.0, 3.0)},
    ),
    "Stephenson I": (
        {"ground": "AD", "crank": "ABE", "coupler": "BC", "rocker": "CDF"}
        | {"link": "EGP", "guide": "FG"},
        {"E": (-0.5, 0.8), "F": (4.0, 2.5), "G": (2.0, 4.0), "P": (1.0, 4.5)},
    ),
    "Stephenson II": (
        {"ground": "AG", "crank": "ABE", "coupler": "BC", "link": "EF"}
        | {"floating": "CFDP", "guide": "DG"},
        {"C": (2.5, 1.0), "D": (4.0, 2.0), "E": (0.6, 1.2), "F": (3.0, 2.5), "G": (4.0, 0.0)}
        | {"P": (3.5, 3.0)},
    ),
    "Stephenson III": (
        {"ground": "ADG", "crank": "AB", "coupler": "BCE", "rocker": "CD"}
        | {"link": "EFP", "output": "FG"},
        {"E": (1.5, 3.0), "F": (4.5, 3.0), "G": (5.0, 0.5), "P": (3.0, 4.0)},
    ),
}


def _massless(at: str, planar: bool, markers: tuple[str, ...] = ()) -> Body:
    return Body(0.0, com=at, inertia=0.0 if planar else (0.0, 0.0, 0.0), markers=markers)


def massless_linkage(
    links: Mapping[str, str], points: Mapping[str, Any], cut: Any = None
) -> Mechanism:
    """A planar linkage of pins: kinematics only, links without mass.

    Points that two links share are pins between them, named as the point; a point of one link is a
    marker, such as a coupler point.

    Args:
        links: name to the points that a link carries, of one letter each; one is `ground`.
        points: hardpoints by name, (2,) [m].
        cut: joints that are cut, as of `Mechanism`.

    Raises:
        ValueError: no link is `ground`, or a point belongs to three links: of two pins at one
            place each has a name.

    Example:
        >>> from jaxmbd.synthesis import massless_linkage
        >>> at = {"A": (0, 0), "B": (0, 1.0), "C": (3.0, 2.0), "D": (3.0, 0), "P": (1.5, 3.0)}
        >>> bars = {"ground": "AD", "crank": "AB", "coupler": "BCP", "rocker": "CD"}
        >>> list(massless_linkage(bars, at).joints)
        ['A', 'B', 'C', 'D']
    """
    owners: dict[str, list[str]] = {}
    for link, letters in links.items():
        for letter in letters:
            owners.setdefault(letter, []).append(link)
    problems = [] if GROUND in links else [f"no link is {GROUND!r}; links are {list(links)}"]
    problems += [
        f"point {letter!r} is on {', '.join(found)}: a pin has two links; name a pin for each pair"
        for letter, found in owners.items()
        if len(found) > 2
    ]
    if problems:
        raise ValueError("the linkage is not posed:\n" + "\n".join(problems))
    pins = {letter: found for letter, found in owners.items() if len(found) == 2}
    return Mechanism(
        bodies={
            link: _massless(
                letters[-1] if letters[-1] in pins else next(x for x in letters if x in pins),
                True,
                tuple(x for x in letters if x not in pins),
            )
            for link, letters in links.items()
            if link != GROUND
        },
        joints={letter: Revolute(*pins[letter], at=letter) for letter in sorted(pins)},
        points=dict(points),
        gravity=(0.0, 0.0),
        cut=cut,
    )


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


def massless_six_bar(kind: str, points: dict[str, Any] | None = None) -> Mechanism:
    """A planar six-bar with a point `P`: kinematics only, links without mass.

    Its input is the pin `A` of the `crank` on the ground. Links and their points:

    ================ ======== ========= ======= ========= ============== ============
    kind             `ground` `crank`   coupler rocker    dyad           with `P`
    ================ ======== ========= ======= ========= ============== ============
    "Watt I"         A D      A B       B C E   C D F     E G, F G       `link` E G
    "Watt II"        A D G    A B       B C     C D E     E F, F G       `link` E F
    "Stephenson I"   A D      A B E     B C     C D F     E G, F G       `link` E G
    "Stephenson II"  A G      A B E     B C     —         E F, D G       `floating` C F D
    "Stephenson III" A D G    A B       B C E   C D       E F, F G       `link` E F
    ================ ======== ========= ======= ========= ============== ============

    The last body on the ground beside the rocker is `output` (kinds Watt II, Stephenson III) or
    `guide`; the joints have the names of their points.

    Args:
        kind: one of these.
        points: hardpoints by name, (2,) [m], instead of those of the default drawing.

    Raises:
        ValueError: there is no such kind.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.synthesis import massless_six_bar
        >>> mbd.mobility(massless_six_bar("Stephenson III")).kutzbach
        1
    """
    if kind not in _SIX_BARS:
        raise ValueError(f"there is no six-bar {kind!r}; kinds are {list(_SIX_BARS)}")
    links, drawn = _SIX_BARS[kind]
    used = {letter for letters in links.values() for letter in letters}
    at = {name: x for name, x in (_FOUR_BAR | drawn).items() if name in used}
    return massless_linkage(links, {**at, **(points or {})})


def massless_slider_crank(points: dict[str, Any] | None = None) -> Mechanism:
    """A planar slider-crank with a coupler point: kinematics only, links without mass.

    Bodies `crank` (from `A` on the ground to `B`), `coupler` (`B`, `C`, and the point `P`) and
    `slider` (`C`), whose joint `slide` moves it along the line from `C` to the ground's point `D`.

    Args:
        points: hardpoints by name, (2,) [m], instead of those of the default drawing.

    Example:
        >>> from jaxmbd.synthesis import massless_slider_crank
        >>> list(massless_slider_crank().joints)
        ['A', 'B', 'slide', 'C']
    """
    drawn = {"A": (0.0, 0.0), "B": (0.0, 1.0), "C": (3.0, 0.5), "D": (5.0, 0.5), "P": (1.5, 2.0)}
    return Mechanism(
        bodies={
            "crank": _massless("B", True),
            "coupler": _massless("C", True, markers=("P",)),
            "slider": _massless("C", True),
        },
        joints={
            "A": Revolute("ground", "crank", at="A"),
            "B": Revolute("crank", "coupler", at="B"),
            "slide": Prismatic("ground", "slider", at="C", axis=("C", "D")),
            "C": Revolute("coupler", "slider", at="C"),
        },
        points={**drawn, **(points or {})},
        gravity=(0.0, 0.0),
        cut=["C"],
    )


def massless_inverted_slider_crank(points: dict[str, Any] | None = None) -> Mechanism:
    """A crank whose pin slides in a rocking arm: kinematics only, links without mass.

    Bodies `crank` (from `A` on the ground to `B`), `block` (at `B`) and `arm` (from `D` on the
    ground, with the point `P`), in which the block slides along the line through `B` and the arm's
    point `C` (joint `slide`). With `C` at `D` the slot points at the arm's pivot.

    Args:
        points: hardpoints by name, (2,) [m], instead of those of the default drawing.

    Example:
        >>> from jaxmbd.synthesis import massless_inverted_slider_crank
        >>> massless_inverted_slider_crank().structure.bodies
        ('crank', 'block', 'arm')
    """
    drawn = {"A": (0.0, 0.0), "B": (0.0, 1.0), "C": (3.0, 0.5), "D": (3.0, 0.0), "P": (1.5, 2.0)}
    return Mechanism(
        bodies={
            "crank": _massless("B", True),
            "block": _massless("B", True),
            "arm": _massless("D", True, markers=("P",)),
        },
        joints={
            "A": Revolute("ground", "crank", at="A"),
            "B": Revolute("crank", "block", at="B"),
            "D": Revolute("ground", "arm", at="D"),
            "slide": Prismatic("arm", "block", at="B", axis=("C", "B")),
        },
        points={**drawn, **(points or {})},
        gravity=(0.0, 0.0),
        cut=["B"],
    )


def massless_geared_five_bar(points: dict[str, Any] | None = None, ratio: Any = -1.0) -> Mechanism:
    """A five-bar whose two cranks are geared: kinematics only, links without mass.

    Bodies `crank` (from `A` on the ground to `B`), `coupler` (`B`, `C`, and the point `P`), `link`
    (`C`, `D`) and `follower` (`D` to `E` on the ground); the force `gear` turns the follower by
    `ratio` times the crank's angle.

    Args:
        points: hardpoints by name, (2,) [m], instead of those of the default drawing.
        ratio: of the follower's angle to the crank's; negative if they turn in opposite senses.

    Example:
        >>> from jaxmbd.synthesis import massless_geared_five_bar
        >>> float(massless_geared_five_bar(ratio=2.0).couplings["gear"].ratio)
        2.0
    """
    drawn = {"A": (0.0, 0.0), "B": (0.0, 0.5), "C": (1.5, 2.5), "D": (3.0, 0.5), "E": (3.0, 0.0)}
    return Mechanism(
        bodies={
            "crank": _massless("B", True),
            "coupler": _massless("C", True, markers=("P",)),
            "link": _massless("D", True),
            "follower": _massless("E", True),
        },
        joints={
            "A": Revolute("ground", "crank", at="A"),
            "B": Revolute("crank", "coupler", at="B"),
            "E": Revolute("ground", "follower", at="E"),
            "D": Revolute("follower", "link", at="D"),
            "C": Revolute("coupler", "link", at="C"),
        },
        couplings={"gear": Gear("A", "E", ratio=ratio)},
        points={**drawn, "P": (1.0, 3.5), **(points or {})},
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


def massless_rssp(
    points: dict[str, Any] | None = None,
    crank_axis: Any = (0.0, 0.0, 1.0),
    slider_axis: Any = (1.0, 0.0, 0.0),
) -> Mechanism:
    """A spatial slider-crank RSSP: kinematics only, links without mass.

    Bodies `crank` (turning about `crank_axis` at `crank_pivot`, with the ball `A`) and `slider`
    (with the ball `B`, moving along `slider_axis`, joint `slider`); the coupler is a rod.

    Args:
        points: hardpoints by name, (3,) [m], instead of those of the default drawing.
        crank_axis: direction (3,).
        slider_axis: direction (3,).

    Example:
        >>> from jaxmbd.synthesis import massless_rssp
        >>> list(massless_rssp().joints)
        ['crank', 'slider', 'coupler']
    """
    return Mechanism(
        bodies={"crank": _massless("A", False), "slider": _massless("B", False)},
        joints={
            "crank": Revolute("ground", "crank", at="crank_pivot", axis=crank_axis),
            "slider": Prismatic("ground", "slider", at="B", axis=slider_axis),
            "coupler": Rod("crank", "slider", at_a="A", at_b="B"),
        },
        points={**_RSSP, **(points or {})},
        gravity=(0.0, 0.0, 0.0),
    )


def massless_spherical_four_bar(points: dict[str, Any] | None = None) -> Mechanism:
    """A spherical four-bar, whose axes meet in `O`: kinematics only, links without mass.

    Bodies `crank` (turning about the axis through `A`, the input) and `coupler` (turning on the
    crank about the axis through `B`, with `C` and the point `P`); a rod, `rocker`, holds `C` at its
    distance from the ground's `D`. As `C` stays at its distance from `O`, this keeps the arc from
    the axis through `C` to that through `D`, as a rocker on these axes does, without its redundant
    rows. Where points stand on their axes changes nothing. For a function of the crank's angle use
    `massless_rssr` with axes that meet: there the rocker is a body.

    Args:
        points: hardpoints by name, (3,) [m], instead of those of the default drawing.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.synthesis import massless_spherical_four_bar
        >>> mbd.mobility(massless_spherical_four_bar()).kutzbach
        1
    """
    return Mechanism(
        bodies={
            "crank": _massless("B", False),
            "coupler": _massless("C", False, markers=("P",)),
        },
        joints={
            "A": Revolute("ground", "crank", at="O", axis=("O", "A")),
            "B": Revolute("crank", "coupler", at="O", axis=("O", "B")),
            "rocker": Rod("ground", "coupler", at_a="D", at_b="C"),
        },
        points={**_SPHERICAL, **(points or {})},
        gravity=(0.0, 0.0, 0.0),
    )


def massless_five_ss(
    points: dict[str, Any] | None = None,
    leg_axes: tuple[Any, Any] = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
) -> Mechanism:
    """A platform on five links with balls, 5-SS: kinematics only, links without mass.

    The body `platform`, with the point `P`, is held by links from the ground's `A1` … `A5` to its
    `B1` … `B5`. The first is the body `leg`, on a universal joint so that it does not spin: its
    first angle, about the first of `leg_axes`, is the input, ``("leg", 0)``. The others are rods.

    Args:
        points: hardpoints by name, (3,) [m], instead of those of the default drawing.
        leg_axes: axes of the universal joint at `A1`, fixed in the ground and in the leg (3,); not
            parallel, nor the second along the leg.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.synthesis import massless_five_ss
        >>> mbd.mobility(massless_five_ss()).kutzbach
        1
    """
    rods = {f"rod_{i}": Rod("ground", "platform", at_a=f"A{i}", at_b=f"B{i}") for i in range(2, 6)}
    return Mechanism(
        bodies={
            "leg": _massless("B1", False),
            "platform": _massless("P", False, markers=("P",)),
        },
        joints={
            "leg": Universal("ground", "leg", at="A1", axis_a=leg_axes[0], axis_b=leg_axes[1]),
            "ball": Spherical("leg", "platform", at="B1"),
            **rods,
        },
        points={**_FIVE_SS, **(points or {})},
        gravity=(0.0, 0.0, 0.0),
    )
