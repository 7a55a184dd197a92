"""Carries of a loop that are one: equal at the start and after every iteration.

That is assumed of all carries that start equal, and tested by replacing them in the nodes of the
body; those that come out different are told apart, until the assumption holds. Carries that stay a
constant need no place in the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbd.lanes.ir.nodes import Body, Buffer, Builder, Kind, Node, Write
from jaxmbd.lanes.ir.table import OPERATIONS


class Carries:
    """Classes of equal carries, at first those that start equal.

    Attributes:
        classes: the members of each class that needs a place in the loop, by number.
        fixed: the value of each carry that is assumed to stay a constant.
    """

    def __init__(self, inits: Sequence[Node], alike: Sequence[bool] | None = None):
        groups: dict[Any, list[int]] = {}
        self.fixed: dict[int, Node] = {}
        for k, n in enumerate(inits):
            if alike is None or not alike[k]:
                groups[k] = [k]
            elif n.constant:
                self.fixed[k] = n
            else:
                groups.setdefault(n, []).append(k)
        self.classes = list(groups.values())

    @property
    def separate(self) -> bool:
        """Whether each carry is a class of its own."""
        return not self.fixed and all(len(members) == 1 for members in self.classes)

    def chosen(self, carries: Sequence[Any]) -> list[Any]:
        """The first carry of each class."""
        return [carries[members[0]] for members in self.classes]

    def spread(self, chosen: Sequence[Node]) -> list[Node]:
        """All carries from one of each class."""
        found = dict(self.fixed)
        for n, members in zip(chosen, self.classes, strict=True):
            found.update(dict.fromkeys(members, n))
        return [found[k] for k in range(len(found))]

    def body(self, trace: Body) -> Body:
        """The trace of a loop's body with one carry of each class."""

        def traced(index: Node, some: list[Node]) -> tuple[list[Node], list[Write]]:
            outs, writes = trace(index, self.spread(some))
            return self.chosen(outs), writes

        return traced

    def hold(self, outs: Sequence[Node]) -> bool:
        """Whether the carries of each class come out equal; if not, split the classes."""
        groups: dict[Any, list[int]] = {}
        for number, members in enumerate(self.classes):
            for k in members:
                groups.setdefault((number, outs[k]), []).append(k)
        changed = [k for k, n in self.fixed.items() if outs[k] is not n]
        for k in changed:
            groups.setdefault((self.fixed.pop(k), outs[k]), []).append(k)
        held = not changed and len(groups) == len(self.classes)
        self.classes = list(groups.values())
        return held

    def settle(self, g: Builder, params: Sequence[Node], outs: Sequence[Node]) -> None:
        """Split the classes until they hold, given the body with a place for each carry."""
        while not self.separate:
            equal = self.spread(self.chosen(params))
            known = {p: n for p, n in zip(params, equal, strict=True) if p is not n}
            if self.hold(_replaced(g, outs, known)):
                return


def _replaced(g: Builder, outs: Sequence[Node], known: dict[Node, Node]) -> list[Node]:
    """Nodes of a region after a replacement of some that they depend on.

    What a loop or a derivative rule computes is left as it is.
    """
    region, known = next(iter(known)).region, dict(known)
    loads: dict[tuple[Buffer, int, Node], Node] = {}
    stack = [(n, False) for n in outs]
    while stack:
        n, ready = stack.pop()
        if n in known:
            continue
        kind = OPERATIONS[n.op].kind
        held = n.op == "load" and (n.data[0].final or n.data[0].kind in ("const", "input"))
        if n.region is not region or not (
            held or kind is Kind.VALUE and n.data is None or n.op == "stop"
        ):
            known[n] = n
        elif not ready:
            stack.append((n, True))
            stack.extend((a, False) for a in n.args)
        else:
            args = [known[a] for a in n.args]
            if held:
                buffer, offset = n.data  # pyright: ignore[reportGeneralTypeIssues]
                known[n] = loads.setdefault((buffer, offset, args[0]), n)
            else:
                same = all(a is b for a, b in zip(args, n.args, strict=True))
                known[n] = n if same else g.op(n.op, *args, dtype=n.dtype)
    return [known[n] for n in outs]
