"""How a topology diagram is drawn, in inches, with y downwards from zero to minus its height.

Each body and each cut joint is a card; the tree's cards are drawn downwards from its root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxmbd.analysis import Redundancy
from jaxmbd.graph import Topology, loops, topology
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.viz.figures import BAND, GREY, LINE, WORST

_LETTERS = {
    "Revolute": "R",
    "Prismatic": "P",
    "Helical": "H",
    "Cylindrical": "C",
    "Universal": "U",
    "Spherical": "S",
    "Planar": "E",
    "Free": "6",
    "Fixed": "0",
    "Rod": "L",
}
"""Of joint types, as usual in the theory of mechanisms (E: ebene, plane)."""


class Card(NamedTuple):
    """A body with the tree joint above it, or a cut joint.

    Attributes:
        title: name of the body, or of the cut joint.
        type: name of the joint's type.
        lines: what else is written.
        loops: numbers of the loops that the joint is in, from 1.
        rows: of a cut joint, for each row whether it is redundant; of a body None.
        other: of a cut joint the body that it is connected to, beside the one that it is below.
        idle: whether the body spins idly.
    """

    title: str
    type: str
    lines: tuple[str, ...]
    loops: tuple[int, ...]
    rows: tuple[bool, ...] | None = None
    other: str | None = None
    idle: bool = False


def letter(kind: str) -> str:
    """One or two letters for a joint type."""
    return _LETTERS.get(kind, kind[:2])


def cards(
    mech: Mechanism, found: Redundancy | None = None
) -> tuple[dict[str, Card], dict[str, list[str]]]:
    """The cards by key, and the keys below each key; ``"ground"`` is the root and has no card.

    Args:
        mech: the mechanism.
        found: redundant rows and idle spins to mark, if any.
    """
    top = topology(mech)
    kinds = {e.name: e.kind.__name__.removesuffix("InPlane") for e in mech.structure.joints}
    numbers: dict[str, tuple[int, ...]] = {}
    for k, loop in enumerate(loops(mech), 1):
        for joint in (*loop.joints, loop.cut):
            numbers[joint] = (*numbers.get(joint, ()), k)
    redundant = set(found.mobility.redundant) if found else set()
    idle = found.idle if found else {}
    all_cards: dict[str, Card] = {}
    below: dict[str, list[str]] = {}
    for i, (body, joint) in enumerate(zip(top.bodies, top.tree, strict=True)):
        below.setdefault(GROUND if top.parent[i] < 0 else top.bodies[top.parent[i]], []).append(
            body
        )
        lines = (f"{joint}  {_slice('q', top.layout[joint].q)}", *_held(mech, top, joint))
        lines += ("spins idly",) if body in idle else ()
        all_cards[body] = Card(body, kinds[joint], lines, numbers.get(joint, ()), idle=body in idle)
    for edge in mech.structure.joints:
        if edge.name not in top.cut:
            continue
        near, far = sorted((edge.a, edge.b), key=lambda body: -_depth(top, body))
        rows = top.layout[edge.name].rows
        assert rows is not None
        marks = tuple(name in redundant for name in top.row_names[rows])
        below.setdefault(near, []).append(_key(edge.name))
        all_cards[_key(edge.name)] = Card(
            edge.name,
            kinds[edge.name],
            (_slice("rows", rows),),
            numbers[edge.name],
            marks,
            far,
        )
    return all_cards, below


def links(cards: Mapping[str, Card]) -> list[tuple[str, str]]:
    """The cut joints between two bodies: the card's key, and the other body."""
    return [(key, card.other) for key, card in cards.items() if card.other not in (None, GROUND)]  # type: ignore[misc]


def _key(cut: str) -> str:
    return f"cut joint {cut}"  # a body may have the same name


def _depth(top: Topology, body: str) -> int:
    depth, i = 0, top.index(body)
    while i >= 0:
        depth, i = depth + 1, top.parent[i]
    return depth


def _slice(name: str, place: slice | None) -> str:
    if place is None or place.stop == place.start:
        return "no coordinates"
    last = place.stop - 1
    return (
        f"{name}[{place.start}]" if last == place.start else f"{name}[{place.start}:{place.stop}]"
    )


def _held(mech: Mechanism, top: Topology, joint: str) -> tuple[str, ...]:
    """The drives and couplings of a joint's coordinates, with their rows."""
    names = [f"drive {n}" for n, j, _ in mech.structure.drives if j == joint]
    for name, terms in mech.structure.couplings:
        if any(j == joint for j, _ in terms):
            names.append(f"coupling {name}")
    return tuple(f"{n}  {_slice('row', top.layout[n.split(' ', 1)[1]].rows)}" for n in names)


RING = 0.13
"""Radius of the circle of a joint's letter [in]."""
SQUARE = 0.085
"""Side of a row's square [in]."""


def extent(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a text [in]."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(weight="bold" if bold else "normal")
    return TextPath((0, 0), text, size=size, prop=font).get_extents().width / 72.0


def hatched(ax: Any, left: float, right: float, y: float, *, up: bool) -> None:
    """The sign of the ground: a line at y, hatched on the other side."""
    from matplotlib.patches import Rectangle

    low = y if up else y - 0.1
    ax.add_patch(Rectangle((left, low), right - left, 0.1, hatch="//////", facecolor="none",
                           edgecolor=GREY, linewidth=0.0, zorder=1))  # fmt: skip
    ax.plot([left, right], [y, y], color=GREY, linewidth=1.5, zorder=1)


def ring(ax: Any, x: float, y: float, text: str, colour: str) -> None:
    """The letter of a joint type, in a circle."""
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), RING, facecolor=colour, edgecolor="white", lw=1.0, zorder=4))
    ax.text(x, y, text, color="white", fontsize=8 if len(text) == 1 else 6.5, fontweight="bold",
            ha="center", va="center_baseline", zorder=5)  # fmt: skip


def squares(ax: Any, x: float, y: float, rows: Sequence[bool]) -> None:
    """One square for each row, red and crossed if it is redundant."""
    from matplotlib.patches import Rectangle

    step = SQUARE + 0.04
    left = x - step * len(rows) / 2 + 0.02
    for k, redundant in enumerate(rows):
        at, colour = (left + step * k, y - SQUARE / 2), WORST if redundant else BAND
        face = "none" if redundant else colour
        look: dict[str, Any] = dict(facecolor=face, edgecolor=colour, lw=0.9, zorder=3)
        ax.add_patch(Rectangle(at, SQUARE, SQUARE, **look))
        if redundant:
            (u, v), s = at, SQUARE
            ax.plot([u, u + s], [v, v + s], color=colour, linewidth=0.9, zorder=3)
            ax.plot([u, u + s], [v + s, v], color=colour, linewidth=0.9, zorder=3)


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


_TITLE, _MARGIN, _LEVEL, _TEXT, _PAD = 0.75, 0.3, 0.46, 0.155, 0.11
_SMALL, _NAME, _HEAD = 7.5, 9.0, 10.5  # sizes of text [pt]
_IDLE, _DIM = "#2f8f5b", "#b8c0c8"
_LOOPS = ("#e0a030", "#4c9f70", "#7a5195", "#2a9db0", "#a05a2c", "#c060a0", "#607d3b", "#54699e")


class Drawing:
    """A topology diagram.

    Attributes:
        width, height: of the whole with title and legend [in].
    """

    def __init__(self, mech: Mechanism, found: Redundancy | None, title: str):
        self.title = title
        self.cards, below = cards(mech, found)
        self.found = found
        spoilt = {loop.cut for row in found.rows for loop in row.loops} if found else set()
        self.spoilt = {
            k
            for key, card in self.cards.items()
            if card.title in spoilt and card.rows is not None
            for k in card.loops
        }
        widths = {key: _width(card) for key, card in self.cards.items()} | {GROUND: 0.9}
        self.boxes = tree_layout(below, GROUND, widths, links(self.cards))
        self.below = below
        self.lines = max((_lines(card) for card in self.cards.values()), default=1)
        self.card_height = _TEXT * self.lines + 2 * _PAD
        self.legend = _legend(self.cards)
        depth = max(b.depth for b in self.boxes.values())
        across = max(b.x + b.width / 2 for b in self.boxes.values())
        said = [extent(title, _HEAD, bold=True), *(extent(x, _SMALL) for x in self.legend)]
        self.width = max(across, *said) + 2 * _MARGIN
        self.left = (self.width - across) / 2
        self.depth = depth
        self.channels = self._channels()
        lowest = _TITLE + 0.45 + depth * (self.card_height + _LEVEL)
        self.height = max(lowest, *self.channels.values(), 0.0) + 0.3 + self.legend_height

    @property
    def legend_height(self) -> float:
        """Of the lines that explain the signs [in]."""
        return 0.22 * len(self.legend) + 0.15

    def draw(self, ax: Any) -> None:
        """Draw on axes whose units are inches."""
        ax.text(
            _MARGIN, -0.32, self.title, fontsize=_HEAD, fontweight="bold", va="center", color=LINE
        )
        self._ground(ax)
        for key, below in self.below.items():
            for child in below:
                self._branch(ax, key, child)
        for key, card in self.cards.items():
            if card.other is not None:
                self._closing(ax, key, card)
        for key, card in self.cards.items():
            self._card(ax, key, card)
        self._explain(ax)

    def _x(self, key: str) -> float:
        return self.left + self.boxes[key].x

    def _top(self, key: str) -> float:
        """Y of the upper edge of a card; of the ground its lower edge."""
        depth = self.boxes[key].depth
        return -_TITLE - (
            0.2 if not depth else 0.2 + _LEVEL * depth + self.card_height * (depth - 1)
        )

    def _bottom(self, key: str) -> float:
        return self._top(key) - (self.card_height if key != GROUND else 0.0)

    def _colour(self, card: Card) -> str:
        return LINE if card.rows is None else WORST

    def _ground(self, ax: Any) -> None:
        xs = [self._x(child) for child in self.below.get(GROUND, ())] or [self._x(GROUND)]
        left, right = min(xs) - 0.45, max(xs) + 0.45
        hatched(ax, left, right, self._top(GROUND), up=True)
        ax.text(left, self._top(GROUND) + 0.2, "ground", va="center", fontsize=_NAME, color=GREY)

    def _branch(self, ax: Any, key: str, child: str) -> None:
        card, x = self.cards[child], self._x(child)
        start = x if key == GROUND else self._x(key)
        upper, lower = self._bottom(key), self._top(child)
        middle = upper - 0.14
        style: dict[str, Any] = dict(color=self._colour(card), linewidth=1.3, zorder=1)
        if card.rows is not None:
            style["linestyle"] = (0, (4, 2))
        ax.plot([start, start, x, x], [upper, middle, middle, lower], **style)

    def _closing(self, ax: Any, key: str, card: Card) -> None:
        """The line from a cut joint to its other body."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        dashed: dict[str, Any] = dict(linewidth=1.3, linestyle=(0, (4, 2)), zorder=1)
        colour = WORST if self._involved(card) else _DIM
        x, low = self._x(key), self._bottom(key)
        if card.other == GROUND:
            ax.plot([x, x], [low, low - 0.13], color=colour, **dashed)
            hatched(ax, x - 0.2, x + 0.2, low - 0.13, up=False)
            return
        assert card.other is not None
        if card.other in self.channels:
            y, (to, end) = -self.channels[card.other], self._aim(card.other)
            line = Path([(x, low), (x, y), (to, y), (to, end)])
            if end > self._bottom(card.other):
                line = Path([(x, low), (x, y), (to, y), (to, end), (self._x(card.other), end)])
        else:
            line = self._curve(key, card.other)
        ax.add_patch(PathPatch(line, fill=False, edgecolor=colour, **dashed))

    def _channels(self) -> dict[str, float]:
        """Depths below the cards [in] of lines to bodies that others are in the way of."""
        crowded = {o for key, o in links(self.cards) if self._between(key, o)}
        lowest = _TITLE + 0.2 + self.depth * (self.card_height + _LEVEL)
        return {body: lowest + 0.16 + 0.12 * k for k, body in enumerate(sorted(crowded))}

    def _between(self, key: str, other: str) -> bool:
        """Whether another card is between a cut joint's and the body, beside the former."""
        own, far = self.boxes[key], self.boxes[other].x
        return any(
            min(own.x, far) < box.x < max(own.x, far)
            for name, box in self.boxes.items()
            if box.depth == own.depth and name not in (key, other)
        )

    def _aim(self, body: str, key: str | None = None) -> tuple[float, float]:
        """Where a line from below meets a body: at its lower edge, else beside it.

        `key` is the cut joint's card from whose side the line comes, if not from below all cards.
        """
        box, last = self.boxes[body], self.boxes[key].depth if key else self.depth
        lower = [b for k, b in self.boxes.items() if box.depth < b.depth <= last and k != key]

        def clear(x: float) -> float:
            return min((abs(b.x - x) - b.width / 2 for b in lower), default=1.0)

        for step in range(11):  # from the middle outwards
            x = box.x + (-1) ** step * ((step + 1) // 2) / 12 * box.width
            if clear(x) > 0.05:
                return self.left + x, self._bottom(body)
        aside = box.width / 2 + 0.12
        x = max((box.x + aside, box.x - aside), key=clear)
        return self.left + x, self._bottom(body) + self.card_height / 2

    def _curve(self, key: str, other: str) -> Any:
        """From the side of a cut joint's card, into a body from below, or into its side."""
        from matplotlib.path import Path

        x, half = self._x(key), self.boxes[key].width / 2
        to, y = self._x(other), self._bottom(key) + self.card_height / 2
        side = 1.0 if to > x else -1.0
        start = (x + side * half, y)
        if other not in self.below and self.boxes[other].depth < self.boxes[key].depth:
            at, end = self._aim(other, key)
            if end > self._bottom(other):
                side = 1.0 if at > x else -1.0
                return Path([(x + side * half, y), (at, y), (at, end), (to, end)])
            points = [start, (at, y), (at, y), (at, end)]
        else:
            end_y = self._bottom(other) + self.card_height / 2
            end_x = to - side * self.boxes[other].width / 2
            reach = max(0.4, abs(end_x - start[0]) / 2)
            bends = [(start[0] + side * reach, y), (end_x - side * reach, end_y)]
            points = [start, *bends, (end_x, end_y)]
        return Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])

    def _involved(self, card: Card) -> bool:
        """Whether a card is to be noticed: where rows are redundant, those in their loops."""
        return not self.spoilt or bool(self.spoilt.intersection(card.loops)) or card.idle

    def _card(self, ax: Any, key: str, card: Card) -> None:
        from matplotlib.patches import FancyBboxPatch

        box, x, y = self.boxes[key], self._x(key), self._top(key)
        colour = _IDLE if card.idle else self._colour(card)
        involved = self._involved(card)
        patch = FancyBboxPatch(
            (x - box.width / 2 + 0.04, y - self.card_height + 0.04),
            box.width - 0.08,
            self.card_height - 0.08,
            boxstyle="round,pad=0.04,rounding_size=0.06",
            facecolor="white",
            edgecolor=colour if involved else _DIM,
            linewidth=1.6 if involved else 1.0,
            linestyle="-" if card.rows is None else (0, (4, 2)),
            zorder=2,
        )
        ax.add_patch(patch)
        ring(ax, x, y, letter(card.type), colour)
        line = y - _PAD - 0.11 - _TEXT * (self.lines - _lines(card)) / 2
        ax.text(x, line, card.title, fontsize=_NAME, fontweight="bold", ha="center", va="center",
                color="#20272e" if involved else GREY, zorder=3)  # fmt: skip
        for text in card.lines:
            line -= _TEXT
            ax.text(x, line, text, fontsize=_SMALL, ha="center", va="center", zorder=3,
                    color=_IDLE if text == "spins idly" else GREY)  # fmt: skip
        if card.rows:
            line -= _TEXT
            squares(ax, x, line, card.rows)
        self._dots(ax, x, y - self.card_height, card.loops)

    def _dots(self, ax: Any, x: float, y: float, numbers: Sequence[int]) -> None:
        """The numbers of the loops, on the lower edge of a card."""
        from matplotlib.patches import Circle

        start = x - 0.075 * (len(numbers) - 1)
        for k, number in enumerate(numbers):
            at = (start + 0.15 * k, y)
            dim = self.spoilt and number not in self.spoilt
            colour = _DIM if dim else _LOOPS[(number - 1) % len(_LOOPS)]
            ax.add_patch(Circle(at, 0.07, facecolor=colour, edgecolor="white", lw=0.6, zorder=4))
            ax.text(*at, str(number), fontsize=6, color="white", ha="center", va="center_baseline",
                    fontweight="bold", zorder=5)  # fmt: skip

    def _explain(self, ax: Any) -> None:
        y = -self.height + self.legend_height - 0.12
        for k, line in enumerate(self.legend):
            ax.text(_MARGIN, y - 0.22 * k, line, fontsize=_SMALL, va="center", color=GREY)


def _legend(cards: dict[str, Card]) -> list[str]:
    kinds = dict.fromkeys(card.type for card in cards.values())
    signs = "   ".join(f"{letter(kind)} {kind.lower()}" for kind in kinds)
    lines = [signs, "solid: tree joints with their coordinates in q"]
    if any(card.rows for card in cards.values()):
        lines[1] += (
            ";  dashed: cut joints, a square for each constraint row;  dots: numbers of loops"
        )
    if any(True in (card.rows or ()) for card in cards.values()):
        lines.append("red squares: redundant rows;  grey: not in a loop with redundant rows")
    return lines


def _lines(card: Card) -> int:
    return 1 + len(card.lines) + bool(card.rows)


def _width(card: Card) -> float:
    texts = [extent(card.title, _NAME, bold=True), *(extent(t, _SMALL) for t in card.lines)]
    rows = len(card.rows or ()) * (SQUARE + 0.04)
    return max(*texts, rows, 0.15 * len(card.loops), 0.6) + 2 * _PAD
