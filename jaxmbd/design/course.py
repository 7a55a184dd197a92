"""What an optimiser did from one start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxmbd.design.problem import Point

Ask = Callable[[Any], Any]
"""Asks a question, as `Answers` has them, and waits for the answer."""


class Course(NamedTuple):
    """What an optimiser did from one start.

    Attributes:
        best: the best design: feasible and of least objective, or else of least violation.
        history: (objective, violation) of its iterations.
        evaluations: designs evaluated.
        message: why it stopped.
        start: the first design that works; None if none did.
    """

    best: Point
    history: list[tuple[float, float]]
    evaluations: int
    message: str
    start: Point | None
