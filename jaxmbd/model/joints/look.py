"""Looks: what a joint's picture is made of, without its geometry."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Form = Literal[
    "ball",
    "bar",
    "block",
    "cross",
    "cube",
    "curve",
    "foot",
    "housing",
    "nut",
    "pin",
    "rail",
    "rod",
    "roller",
    "screw",
    "shaft",
    "sheet",
    "sleeve",
]


class Look(NamedTuple):
    """A part of a joint's picture, at the joint point of one of its bodies.

    Attributes:
        form: what it is; a "rod" reaches from a's point to b's.
        on: the body that it moves with.
        axis: direction (3,) as drawn that it is about, along or normal to; None for a form that
            has none.
        detail: the radius of a "roller" [m], the points (n, 3) [m] of a "curve" from a's point.
    """

    form: Form
    on: Literal["a", "b"]
    axis: Any = None
    detail: Any = None
