"""Places of the boxes of a tree that is drawn downwards from its root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

_SWEEPS = 8


class Box(NamedTuple):
    """Where a node is drawn: its centre, its depth below the root, and the width of its box."""

    x: float
    depth: int
    width: float


def tree_layout(
    children: Mapping[str, Sequence[str]],
    root: str,
    widths: Mapping[str, float],
    links: Sequence[tuple[str, str]] = (),
    gap: float = 0.25,
) -> dict[str, Box]:
    """Place the nodes of a tree: parents above the middle of their children, no boxes overlap.

    Siblings keep their order, except where exchanging neighbours brings the ends of `links` nearer
    to each other.

    Args:
        children: of each node that has any.
        root: name of the root.
        widths: of each node's box.
        links: pairs of nodes that are connected beside the tree.
        gap: least distance of boxes.
    """
    order = {node: list(below) for node, below in children.items()}
    best = _placed(order, root, widths, gap)
    for _ in range(_SWEEPS if links else 0):
        before = _stretch(best, links)
        for below in order.values():
            for k in range(len(below) - 1):
                below[k : k + 2] = below[k + 1], below[k]
                trial = _placed(order, root, widths, gap)
                if _stretch(trial, links) < _stretch(best, links) - 1e-9:
                    best = trial
                else:
                    below[k : k + 2] = below[k + 1], below[k]
        if _stretch(best, links) == before:
            break
    return best


def _stretch(boxes: Mapping[str, Box], links: Sequence[tuple[str, str]]) -> float:
    return sum((boxes[a].x - boxes[b].x) ** 2 for a, b in links)


def _placed(
    children: Mapping[str, Sequence[str]], root: str, widths: Mapping[str, float], gap: float
) -> dict[str, Box]:
    """Subtrees side by side, each as near to the one on its left as their outlines allow."""
    boxes: dict[str, Box] = {}

    def place(node: str, depth: int) -> dict[int, tuple[float, float]]:
        """Place a subtree around x = 0; returns its outline: leftmost and rightmost by depth."""
        outline: dict[int, tuple[float, float]] = {}
        tops = []
        for child in children.get(node, ()):
            own = place(child, depth + 1)
            step = max(
                (outline[d][1] + gap - left for d, (left, _) in own.items() if d in outline),
                default=0.0,
            )
            _shift(boxes, children, child, step)
            for d, (left, right) in own.items():
                low, high = outline.get(d, (left + step, right + step))
                outline[d] = min(low, left + step), max(high, right + step)
            tops.append(boxes[child].x)
        x = (tops[0] + tops[-1]) / 2 if tops else 0.0
        boxes[node] = Box(x, depth, widths[node])
        outline[depth] = x - widths[node] / 2, x + widths[node] / 2
        return outline

    place(root, 0)
    left = min(b.x - b.width / 2 for b in boxes.values())
    return {node: b._replace(x=b.x - left) for node, b in boxes.items()}


def _shift(
    boxes: dict[str, Box], children: Mapping[str, Sequence[str]], node: str, step: float
) -> None:
    boxes[node] = boxes[node]._replace(x=boxes[node].x + step)
    for child in children.get(node, ()):
        _shift(boxes, children, child, step)
