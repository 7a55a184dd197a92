"""Diagrams of a mechanism's topology, and of what is redundant in it.

They are drawn in inches, with y from zero at the top to minus the height. Each body and each cut
joint is a card.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxmbd.analysis import Redundancy, redundancy
from jaxmbd.graph import Topology, loops, topology
from jaxmbd.io import Imported
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.plumbing import optional
from jaxmbd.viz.curves import BAND, DPI, GREY, LINE, WORST, own_figure

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

_SENTENCES = 40
_REMEDY = (
    "What a loop holds within itself cannot be found from equilibrium: it comes from errors of the "
    "parts in that direction, which jam the loop or bend its links. Choose for one of its joints a "
    "type that gives way there, or soften it."
)
_IDLE = (
    "The angle of an idle spin is not unique, and nothing depends on it unless a load twists the "
    "body."
)


def topology_figure(mech: Mechanism | Imported, path: str | os.PathLike[str] | None = None) -> Any:
    """A diagram of bodies, joints, cut joints, coordinates and loops.

    The spanning tree grows downwards from the ground. A body's card has the type of the joint above
    it as a letter, the joint's name and its coordinates in q, and numbered dots for the loops that
    the joint is part of. Cut joints are dashed cards with one square for each constraint row; they
    hang below one of their bodies and a dashed line in their loop's colour leads to the other.

    Args:
        mech: the mechanism, or an imported model.
        path: file to write, if any; its extension sets the format.

    Returns:
        the matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import viz
        >>> figure = viz.topology_figure(mbd.zoo.rssr())
        >>> figure.axes[0].texts[0].get_text()
        '3 bodies, 6 coordinates, 5 speeds, 3 constraint rows, 1 independent loop'
    """
    mech = mech.mechanism if isinstance(mech, Imported) else mech
    top = topology(mech)
    title = (
        f"{_count(len(top.bodies), 'body', 'bodies')}, "
        f"{_count(top.nq, 'coordinate')}, {_count(top.nv, 'speed')}, "
        f"{_count(top.nc, 'constraint row')}, {_count(len(top.cut), 'independent loop')}"
    )
    return _figure(mech, title, None, (), path)


def redundancy_figure(
    mech: Mechanism | Imported, q: Any = None, path: str | os.PathLike[str] | None = None
) -> Any:
    """The topology with its redundant rows, their loops and idle spins marked and explained.

    Args:
        mech: the mechanism, or an imported model.
        q: configuration (nq,), by default as drawn; `assemble` gives a closed one.
        path: file to write, if any; its extension sets the format.

    Returns:
        the matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import viz
        >>> figure = viz.redundancy_figure(mbd.zoo.bricard())
        >>> figure.axes[0].texts[0].get_text()
        "1 degree of freedom, 0 by Kutzbach's count: 4 of 5 rows independent, 1 redundant"
    """
    mech = mech.mechanism if isinstance(mech, Imported) else mech
    found = redundancy(mech, q)
    free = found.mobility
    title = (
        f"{_count(free.dof, 'degree')} of freedom, {free.kutzbach} by Kutzbach's count: "
        f"{free.rank} of {_count(topology(mech).nc, 'row')} independent, "
        f"{len(found.rows)} redundant"
    )
    return _figure(mech, title, found, _sentences(found), path)


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _sentences(found: Redundancy) -> list[str]:
    rows = [str(row) for row in found.rows]
    if len(rows) > _SENTENCES:
        rows = [*rows[:_SENTENCES], f"and {len(rows) - _SENTENCES} more: print(redundancy(mech))"]
    idle = [
        f"{body} spins by {', '.join(speeds)} while all else rests"
        for body, speeds in found.idle.items()
    ]
    remedy = [_REMEDY] if rows else ["no row is redundant"]
    return [*rows, *remedy, *idle, *([_IDLE] if idle else [])]


_LINE = 0.19
"""Height of a line of text below a diagram [in]."""


def _figure(
    mech: Mechanism,
    title: str,
    found: Redundancy | None,
    sentences: Sequence[str],
    path: str | os.PathLike[str] | None,
) -> Any:
    drawing = Drawing(mech, found, title)
    width, below = drawing.width, drawing.height
    columns = int((width - 0.5) / 0.064)
    lines = [x for s in sentences for x in textwrap.wrap(s, columns, subsequent_indent="    ")]
    height = below + _LINE * len(lines) + (0.15 if lines else 0.0)
    figure = own_figure(width, height)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, width), ylim=(-height, 0.0))
    ax.axis("off")
    drawing.draw(ax)
    for k, line in enumerate(lines):
        ax.text(0.25, -below - _LINE * (k + 0.5), line, fontsize=8.5, va="center", color="#333a41")
    if path is not None:
        figure.savefig(path, dpi=DPI)
    return figure


class Card(NamedTuple):
    """A body with the tree joint above it, or a cut joint.

    Attributes:
        title: name of the body, or of the cut joint.
        type: name of the joint's type.
        lines: further text.
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

    @property
    def letter(self) -> str:
        """One or two letters for the joint's type."""
        return _LETTERS.get(self.type, self.type[:2])


def cards(
    mech: Mechanism, found: Redundancy | None = None
) -> tuple[dict[str, Card], dict[str, list[str]]]:
    """The cards by key, and the keys below each key; ``"ground"`` is the root and has no card.

    Redundant rows and idle spins are marked where they are `found`.
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
    depth = {GROUND: 0}
    for i, (body, joint) in enumerate(zip(top.bodies, top.tree, strict=True)):
        parent = GROUND if top.parent[i] < 0 else top.bodies[top.parent[i]]
        below.setdefault(parent, []).append(body)
        depth[body] = depth[parent] + 1
        lines = (f"{joint}  {_slice('q', top.layout[joint].q)}", *_prescribed(mech, top, joint))
        lines += ("spins idly",) if body in idle else ()
        all_cards[body] = Card(body, kinds[joint], lines, numbers.get(joint, ()), idle=body in idle)
    for edge in mech.structure.joints:
        if edge.name not in top.cut:
            continue
        near, far = sorted((edge.a, edge.b), key=lambda body: -depth[body])
        rows = top.layout[edge.name].rows
        assert rows is not None
        marks = tuple(name in redundant for name in top.row_names[rows])
        key = f"cut joint {edge.name}"  # a body may have the same name
        below.setdefault(near, []).append(key)
        text, own = (_slice("rows", rows),), numbers[edge.name]
        all_cards[key] = Card(edge.name, kinds[edge.name], text, own, marks, far)
    return all_cards, below


def _slice(name: str, place: slice | None) -> str:
    if place is None or place.stop == place.start:
        return "no coordinates"
    end = "" if place.stop == place.start + 1 else f":{place.stop}"
    return f"{name}[{place.start}{end}]"


def _prescribed(mech: Mechanism, top: Topology, joint: str) -> list[str]:
    """The drives and couplings of a joint's coordinates, with their rows."""
    drives = [("drive", n) for n, j, _ in mech.structure.drives if j == joint]
    couplings = [
        ("coupling", name)
        for name, terms in mech.structure.couplings
        if any(j == joint for j, _ in terms)
    ]
    return [f"{what} {n}  {_slice('row', top.layout[n].rows)}" for what, n in drives + couplings]


class Box(NamedTuple):
    """Where a node is drawn: its centre, its depth below the root, and the width of its box."""

    x: float
    depth: int
    width: float


_SWEEPS, _GAP = 8, 0.25


def tree_layout(
    children: Mapping[str, Sequence[str]],
    root: str,
    widths: Mapping[str, float],
    links: Sequence[tuple[str, str]] = (),
) -> dict[str, Box]:
    """Place the nodes of a tree: parents above the middle of their children, no boxes overlap.

    Neighbouring siblings change places where that brings the ends of `links` nearer to each other.
    """
    order = {node: list(below) for node, below in children.items()}

    def stretch(boxes: Mapping[str, Box]) -> float:
        return sum((boxes[a].x - boxes[b].x) ** 2 for a, b in links)

    best = _subtree(order, root, widths, 0)
    for _ in range(_SWEEPS if links else 0):
        before = stretch(best)
        for below in order.values():
            for k in range(len(below) - 1):
                below[k], below[k + 1] = below[k + 1], below[k]
                trial = _subtree(order, root, widths, 0)
                if stretch(trial) < stretch(best) - 1e-9:
                    best = trial
                else:
                    below[k], below[k + 1] = below[k + 1], below[k]
        if stretch(best) == before:
            break
    left = min(b.x - b.width / 2 for b in best.values())
    return {node: b._replace(x=b.x - left) for node, b in best.items()}


def _subtree(
    children: Mapping[str, Sequence[str]], node: str, widths: Mapping[str, float], depth: int
) -> dict[str, Box]:
    """A subtree with its root at x = 0: those below it side by side, as near as they may be."""
    boxes: dict[str, Box] = {}
    ends: dict[int, float] = {}  # of the row of each depth
    below = children.get(node, ())
    for child in below:
        own = _subtree(children, child, widths, depth + 1)
        step = max(
            (ends[b.depth] + _GAP - b.x + b.width / 2 for b in own.values() if b.depth in ends),
            default=0.0,
        )
        for name, box in own.items():
            boxes[name] = box._replace(x=box.x + step)
            end = boxes[name].x + box.width / 2
            ends[box.depth] = max(ends.get(box.depth, end), end)
    middle = (boxes[below[0]].x + boxes[below[-1]].x) / 2 if below else 0.0
    own = {node: Box(0.0, depth, widths[node])}
    return own | {name: box._replace(x=box.x - middle) for name, box in boxes.items()}


_TITLE, _MARGIN, _LEVEL, _TEXT, _PAD, _CHANNEL = 0.75, 0.3, 0.46, 0.155, 0.11, 0.09
_SMALL, _NAME, _HEAD = 7.5, 9.0, 10.5  # sizes of text [pt]
_SQUARE, _DOT = 0.125, 0.15  # from one square or dot to the next [in]
_GREEN, _DIM = "#2f8f5b", "#b8c0c8"
_LOOPS = ("#e0a030", "#4c9f70", "#7a5195", "#2a9db0", "#a05a2c", "#c060a0", "#607d3b", "#54699e")
_DASHED = (0, (4, 2))


class Drawing:
    """A topology diagram.

    Attributes:
        width, height: of the whole with title and legend [in].
    """

    def __init__(self, mech: Mechanism, found: Redundancy | None, title: str):
        self._patches = optional("matplotlib.patches", "viz", "a figure")
        self._title = title
        self._cards, self._below = cards(mech, found)
        spoilt = {loop.cut for row in found.rows for loop in row.loops} if found else set()
        cut = [card for card in self._cards.values() if card.rows is not None]
        self._spoilt = {k for card in cut if card.title in spoilt for k in card.loops}
        self._links = [
            (key, card.other)
            for key, card in self._cards.items()
            if card.other is not None and card.other != GROUND
        ]
        widths = {key: _width(card) for key, card in self._cards.items()} | {GROUND: 0.9}
        self._boxes = tree_layout(self._below, GROUND, widths, self._links)
        self._lines = max(map(_lines, self._cards.values()), default=1)
        self._high = _TEXT * self._lines + 2 * _PAD
        self._legend = _legend(self._cards)
        across = max(b.x + b.width / 2 for b in self._boxes.values())
        texts = [_extent(title, _HEAD, bold=True), *(_extent(x, _SMALL) for x in self._legend)]
        self.width = max(across, *texts) + 2 * _MARGIN
        self._left = (self.width - across) / 2
        depth = max(b.depth for b in self._boxes.values())
        self._lowest = _TITLE + 0.2 + depth * (self._high + _LEVEL)
        below = _CHANNEL * len(self._links) + 0.22 * len(self._legend)
        self.height = self._lowest + below + 0.5

    def draw(self, ax: Any) -> None:
        """Draw on axes whose units are inches."""
        head = dict(fontsize=_HEAD, fontweight="bold", va="center", color=LINE)
        ax.text(_MARGIN, -0.32, self._title, **head)
        tops = [self._x(child) for child in self._below.get(GROUND, ())] or [self._x(GROUND)]
        left, top = min(tops) - 0.45, self._top(GROUND)
        _hatched(ax, left, max(tops) + 0.45, top, 0.1)
        ax.text(left, top + 0.2, "ground", va="center", fontsize=_NAME, color=GREY)
        for key, below in self._below.items():
            for child in below:
                self._branch(ax, key, child)
        for k, (key, other) in enumerate(self._links):
            self._link(ax, key, other, -self._lowest - 0.12 - _CHANNEL * k)
        for key, card in self._cards.items():
            self._card(ax, key, card)
        for k, line in enumerate(self._legend):
            y = -self.height + 0.22 * (len(self._legend) - k)
            ax.text(_MARGIN, y, line, fontsize=_SMALL, va="center", color=GREY)

    def _x(self, key: str) -> float:
        return self._left + self._boxes[key].x

    def _top(self, key: str) -> float:
        """Y of the upper edge of a card; of the ground its lower edge."""
        depth = self._boxes[key].depth
        return -_TITLE - 0.2 - (_LEVEL * depth + self._high * (depth - 1) if depth else 0.0)

    def _bottom(self, key: str) -> float:
        return self._top(key) - (self._high if key != GROUND else 0.0)

    def _branch(self, ax: Any, key: str, child: str) -> None:
        x, cut = self._x(child), self._cards[child].rows is not None
        start, upper = x if key == GROUND else self._x(key), self._bottom(key)
        ys = [upper, upper - 0.14, upper - 0.14, self._top(child)]
        style = dict(color=WORST, linestyle=_DASHED) if cut else dict(color=LINE)
        ax.plot([start, start, x, x], ys, linewidth=1.3, zorder=1, **style)

    def _link(self, ax: Any, key: str, other: str, y: float) -> None:
        """The line behind all cards from a cut joint's dot to that of its other body."""
        [number] = self._cards[key].loops
        start, end = self._dot(key, number), self._dot(other, number)
        ys = [self._bottom(key), y, y, self._bottom(other)]
        style = dict(color=self._of_loop(number), linewidth=1.3, linestyle=_DASHED)
        ax.plot([start, start, end, end], ys, zorder=0, **style)

    def _dot(self, key: str, number: int) -> float:
        """X of a loop's dot on a card, or of the card's middle."""
        own = self._cards[key].loops
        at = own.index(number) - (len(own) - 1) / 2 if number in own else 0.0
        return self._x(key) + _DOT * at

    def _of_loop(self, number: int) -> str:
        dim = self._spoilt and number not in self._spoilt
        return _DIM if dim else _LOOPS[(number - 1) % len(_LOOPS)]

    def _card(self, ax: Any, key: str, card: Card) -> None:
        box, x, y = self._boxes[key], self._x(key), self._top(key)
        colour = _GREEN if card.idle else LINE if card.rows is None else WORST
        involved = not self._spoilt or bool(self._spoilt.intersection(card.loops)) or card.idle
        patch = self._patches.FancyBboxPatch(
            (x - box.width / 2 + 0.04, y - self._high + 0.04),
            box.width - 0.08,
            self._high - 0.08,
            boxstyle="round,pad=0.04,rounding_size=0.06",
            facecolor="white",
            edgecolor=colour if involved else _DIM,
            linewidth=1.6 if involved else 1.0,
            linestyle="-" if card.rows is None else _DASHED,
            zorder=2,
        )
        ax.add_patch(patch)
        _badge(ax, x, y, card.letter, colour, 8 if len(card.letter) == 1 else 6.5, pad=0.5)
        line = y - _PAD - 0.11 - _TEXT * (self._lines - _lines(card)) / 2
        centred = dict(ha="center", va="center", zorder=3)
        name = dict(fontsize=_NAME, fontweight="bold", color="#20272e" if involved else GREY)
        ax.text(x, line, card.title, **name, **centred)
        for text in card.lines:
            line -= _TEXT
            colour = _GREEN if text == "spins idly" else GREY
            ax.text(x, line, text, fontsize=_SMALL, color=colour, **centred)
        for k, redundant in enumerate(card.rows or ()):
            at = x + _SQUARE * (k - (len(card.rows or ()) - 1) / 2), line - _TEXT
            look = dict(color=WORST, mfc="none") if redundant else dict(color=BAND)
            ax.plot(*at, "s", markersize=5, zorder=3, **look)
            ax.plot(*at, "x" if redundant else "", markersize=5, color=WORST, zorder=3)
        for number in card.loops:
            at = self._dot(key, number), self._bottom(key)
            _badge(ax, *at, str(number), self._of_loop(number), 6)
        if card.other == GROUND:
            low = self._bottom(key) - 0.13
            style = dict(color=WORST if involved else _DIM, linewidth=1.3, linestyle=_DASHED)
            ax.plot([x, x], [self._bottom(key), low], zorder=1, **style)
            _hatched(ax, x - 0.2, x + 0.2, low, -0.1)


def _hatched(ax: Any, left: float, right: float, y: float, height: float) -> None:
    """The sign of the ground: a line at y, hatched on one side."""
    ax.fill_between([left, right], y, y + height, hatch="//////", fc="none", ec=GREY, lw=0.0)
    ax.plot([left, right], [y, y], color=GREY, linewidth=1.5, zorder=1)


def _badge(
    ax: Any, x: float, y: float, text: str, colour: str, size: float, pad: float = 0.25
) -> None:
    """A short white text in a circle."""
    circle = dict(boxstyle=f"circle,pad={pad}", facecolor=colour, edgecolor="white")
    look = dict(color="white", fontsize=size, fontweight="bold", bbox=circle, zorder=5)
    ax.text(x, y, text, ha="center", va="center_baseline", **look)


def _legend(cards: Mapping[str, Card]) -> list[str]:
    kinds = {card.type: f"{card.letter} {card.type.lower()}" for card in cards.values()}
    lines = ["   ".join(kinds.values()), "solid: tree joints with their coordinates in q"]
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
    texts = [_extent(card.title, _NAME, bold=True), *(_extent(t, _SMALL) for t in card.lines)]
    signs = max(_SQUARE * len(card.rows or ()), _DOT * len(card.loops), 0.6)
    return max(*texts, signs) + 2 * _PAD


def _extent(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a text [in]."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(weight="bold" if bold else "normal")
    return TextPath((0, 0), text, size=size, prop=font).get_extents().width / 72.0
