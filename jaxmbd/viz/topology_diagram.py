"""Diagrams of a mechanism's topology, and of what is redundant in it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import Any

from jaxmbd.analysis import Redundancy, redundancy
from jaxmbd.graph import topology
from jaxmbd.io import Imported
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import optional
from jaxmbd.viz.figures import DPI, own_figure
from jaxmbd.viz.topology_drawing import Drawing

_LINE = 0.19
"""Height of a line of text below a diagram [in]."""
_SENTENCES = 40
_CURE = (
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
    hang below one of their bodies and a dashed line leads to the other, or to the ground.

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
    said = (
        f"{_count(len(top.bodies), 'body', 'bodies')}, "
        f"{_count(top.nq, 'coordinate')}, {_count(top.nv, 'speed')}, "
        f"{_count(top.nc, 'constraint row')}, {_count(len(top.cut), 'independent loop')}"
    )
    return _figure(mech, said, None, (), path)


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
    said = (
        f"{_count(free.dof, 'degree')} of freedom, {free.kutzbach} by Kutzbach's count: "
        f"{free.rank} of {_count(topology(mech).nc, 'row')} independent, "
        f"{len(found.rows)} redundant"
    )
    return _figure(mech, said, found, _sentences(found), path)


def _sentences(found: Redundancy) -> list[str]:
    rows = [str(row) for row in found.rows]
    if len(rows) > _SENTENCES:
        rows = [*rows[:_SENTENCES], f"and {len(rows) - _SENTENCES} more: print(redundancy(mech))"]
    idle = [
        f"{body} spins by {', '.join(speeds)} while all else rests"
        for body, speeds in found.idle.items()
    ]
    return [
        *rows,
        *([_CURE] if rows else ["no row is redundant"]),
        *idle,
        *([_IDLE] if idle else []),
    ]


def _figure(
    mech: Mechanism,
    title: str,
    found: Redundancy | None,
    sentences: Sequence[str],
    path: str | os.PathLike[str] | None,
) -> Any:
    optional("matplotlib", "viz", "a figure")
    drawing = Drawing(mech, found, title)
    width = drawing.width
    wrapped = [line for s in sentences for line in _wrapped(s, width)]
    notes = _LINE * len(wrapped) + (0.15 if wrapped else 0.0)
    height = drawing.height + notes
    figure = own_figure(width, height)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, width), ylim=(-height, 0.0))
    ax.axis("off")
    drawing.draw(ax)
    for k, line in enumerate(wrapped):
        y = -drawing.height - _LINE * (k + 0.5)
        ax.text(0.25, y, line, fontsize=8.5, va="center", color="#333a41")
    if path is not None:
        figure.savefig(path, dpi=DPI)
    return figure


def _wrapped(sentence: str, width: float) -> list[str]:
    return textwrap.wrap(sentence, int((width - 0.5) / 0.064), subsequent_indent="    ")


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"
