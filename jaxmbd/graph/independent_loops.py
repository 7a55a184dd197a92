"""Independent loops: what each cut joint closes."""

from __future__ import annotations

from typing import NamedTuple

from jaxmbd.graph.layout import Topology, topology
from jaxmbd.model import GROUND, Mechanism


class Loop(NamedTuple):
    """The fundamental circuit of a cut joint: the way through the tree between its two bodies.

    Attributes:
        cut: name of the cut joint.
        bodies: from the joint's body b through the tree to its body a; ``"ground"`` among them if
            the way passes it.
        joints: the tree joints between these bodies, in the same order.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.graph import loops
        >>> loops(mbd.zoo.four_bar())[0].bodies
        ('rocker', 'ground', 'crank', 'coupler')
    """

    cut: str
    bodies: tuple[str, ...]
    joints: tuple[str, ...]

    def __str__(self) -> str:
        ways = zip(self.joints, self.bodies[1:], strict=True)
        return f"{self.bodies[0]} " + "".join(f"–{j}– {b} " for j, b in ways) + f"–{self.cut}–"


def loops(mech: Mechanism) -> tuple[Loop, ...]:
    """The independent loops, one for each cut joint, in the order of their rows.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.graph import loops
        >>> print(*loops(mbd.zoo.rssr()))
        rocker –rocker– ground –crank– crank –A– coupler –B–
    """
    top = topology(mech)
    ends = {e.name: (e.a, e.b) for e in mech.structure.joints}
    return tuple(_loop(top, cut, *ends[cut]) for cut in top.cut)


def _loop(top: Topology, cut: str, a: str, b: str) -> Loop:
    up, down = _to_ground(top, b), _to_ground(top, a)
    while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
        up, down = up[:-1], down[:-1]
    bodies = (*up, *down[-2::-1])
    between = (_joint(top, x, y) for x, y in zip(bodies, bodies[1:], strict=False))
    return Loop(cut, bodies, tuple(between))


def _to_ground(top: Topology, body: str) -> list[str]:
    """The body, its parent and so on."""
    way = [body]
    while way[-1] != GROUND:
        parent = top.parent[top.index(way[-1])]
        way.append(GROUND if parent < 0 else top.bodies[parent])
    return way


def _joint(top: Topology, x: str, y: str) -> str:
    """The tree joint between a body and its parent, given in either order."""
    i, j = top.index(x), top.index(y)
    return top.tree[i if i >= 0 and top.parent[i] == j else j]
