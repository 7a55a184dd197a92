"""The synthesis problems: three classical paths of a four-bar, and a spatial function generator.

Sources of the points and limits: Cabrera, Simon and Prado, Mechanism and Machine Theory 37 (2002)
1165 (six points on a line; eighteen points, after Kunjur and Krishnamurty, 1997); Acharyya and
Mandal, Mechanism and Machine Theory 44 (2009) 1784 (the ellipse). Here the unknowns are the
hardpoints in the first position, and the conditions are those of the sources: the crank turns
fully (Grashof), the points come in their order; beside them, all points belong to one branch and
circuit, and the transmission angle is at least 3°.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbd.design import Between, Within
from jaxmbd.synthesis import (
    FunctionGeneration,
    PathGeneration,
    Problem,
    massless_four_bar,
    massless_rssr,
)

LINE = [(20.0, 20.0 + 5.0 * i) for i in range(6)]
EIGHTEEN = [
    (0.5, 1.1), (0.4, 1.1), (0.3, 1.1), (0.2, 1.0), (0.1, 0.9), (0.05, 0.75), (0.02, 0.6),
    (0.0, 0.5), (0.0, 0.4), (0.03, 0.3), (0.1, 0.25), (0.15, 0.2), (0.2, 0.3), (0.3, 0.4),
    (0.4, 0.5), (0.5, 0.7), (0.6, 0.9), (0.6, 1.0),
]  # fmt: skip
ELLIPSE = [
    (20.0, 10.0), (17.66, 15.142), (11.736, 17.878), (5.0, 16.928), (0.60307, 12.736),
    (0.60307, 7.2638), (5.0, 3.0718), (11.736, 2.1215), (17.66, 4.8577), (20.0, 10.0),
]  # fmt: skip
LINKS = (("A", "B"), ("B", "C"), ("C", "D"), ("A", "D"))


class Case(NamedTuple):
    """A problem, and what it is.

    Attributes:
        text: in words.
        problem: without arguments, the `Problem`.
        box, links: limits of coordinates and lengths of a path problem; else None.
    """

    text: str
    problem: Callable[[], Problem]
    box: float | None = None
    links: tuple[float, float] | None = None


def _path(
    text: str, targets: Any, box: float, links: tuple[float, float], step: float | None = None
) -> Case:
    """A four-bar with pivots within ±`box`; `step` [deg] of the crank a point, or free."""

    def problem() -> Problem:
        points = np.array(targets)
        middle = points.mean(axis=0)
        size = np.sqrt(np.mean(np.sum((points - middle) ** 2, axis=1)))
        begin = {"A": (-1, -1), "B": (-1, -0.3), "C": (1, 0.5), "D": (1, -1)}
        vary: dict[str, Any] = {
            f"points/{name}": Between([-box] * 2, [box] * 2, start=middle + size * np.array(at))
            for name, at in begin.items()
        }
        vary["points/P"] = Within(0.2 * size, start=points[0])
        inputs = None if step is None else np.deg2rad(step) * np.arange(len(points))
        task = PathGeneration("A", inputs, body="coupler", point="P", targets=points)
        lengths = dict.fromkeys(LINKS, links)
        return Problem(massless_four_bar(), task, vary, lengths=lengths, full_turn=True)

    return Case(text, problem, box, links)


def _logarithm() -> Problem:
    """φ = 60° log₂ x over ψ = 90° (x − 1), 1 ≤ x ≤ 2, at eleven positions."""
    x = np.linspace(1.0, 2.0, 11)
    task = FunctionGeneration(
        "crank",
        np.deg2rad(90.0) * (x - 1.0),
        output="rocker",
        values=np.deg2rad(60.0) * np.log2(x),
    )
    # Where the pivots stand along their axes changes nothing.
    names = ("A/x", "A/y", "B", "rocker_pivot/y", "rocker_pivot/z")
    return Problem(
        massless_rssr(),
        task,
        {f"points/{name}": Within(2.0) for name in names},
        lengths={("crank_pivot", "A"): (0.3, 3.0), ("A", "B"): (0.3, 5.0)},
        conditions=_rocker_length,
        least_transmission=np.sin(np.pi / 6),
    )


def _rocker_length(mech: Any) -> Any:
    """By how much the rocker, which turns about x, is longer than 0.3 and shorter than 3."""
    arm = (mech.point("B") - mech.point("rocker_pivot"))[1:]
    length = jnp.sqrt(arm @ arm)
    return jnp.stack([length - 0.3, 3.0 - length])


CASES = {
    "line": _path(
        "six points on a vertical line, free timing, links 5 to 60", LINE, 60.0, (5.0, 60.0)
    ),
    "eighteen": _path(
        "eighteen points, 20° of crank a point, links to 50", EIGHTEEN, 50.0, (0.01, 50.0), 20.0
    ),
    "ellipse": _path(
        "ten points of an ellipse, free timing, links 5 to 80", ELLIPSE, 80.0, (5.0, 80.0)
    ),
    "ellipse_40": _path(
        "the same, 40° of crank a point: one turn", ELLIPSE, 80.0, (5.0, 80.0), 40.0
    ),
    "ellipse_36": _path("the same, 36° of crank a point", ELLIPSE, 80.0, (5.0, 80.0), 36.0),
    "logarithm": Case(
        "RSSR: 60° log2(x) over 90° (x - 1), transmission angle at least 30°", _logarithm
    ),
}
