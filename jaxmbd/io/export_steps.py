"""Joint types as chains of hinges, slides, balls and free bodies, which robot formats have.

A tree joint that is declared from a to b moves b by ``S₁(q₁) S₂(q₂) …``, each a turn or a travel
about axes given at the reference configuration q = 0. Where the tree runs from b to a, a moves by
``S₂⁻¹ S₁⁻¹``: the same axes reversed, the last first, with the same coordinates.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from jaxmbd.model.joints import Joint

StepKind = Literal["hinge", "slide", "ball", "free"]
_KINDS: dict[str, StepKind] = {"turn": "hinge", "travel": "slide", "ball": "ball", "free": "free"}


class Step(NamedTuple):
    """One elementary joint of a file.

    Attributes:
        kind: a hinge and a slide have one coordinate, ``factor · q[index]``; a ball has the
            quaternion ``q[index : index + 4]``, a free body also the displacement that follows.
        name: its name in the file.
        joint: the mechanism's joint.
        index: first of that joint's coordinates.
        factor: of the coordinate.
        axis: (3,), global axes at the reference configuration; zero for balls and free bodies.
        at: (3,) [m], in the same axes.
        axes: (3, 3), the axes in which the quaternion of a ball turns, columns, global.
        inverse: whether the ball turns the other way round.
    """

    kind: StepKind
    name: str
    joint: str
    index: int
    factor: float
    axis: np.ndarray
    at: np.ndarray
    axes: np.ndarray
    inverse: bool = False


def steps_of(
    joint: Joint, name: str, axes: np.ndarray, at: np.ndarray, *, reverse: bool
) -> tuple[Step, ...]:
    """The elementary joints from parent to child.

    Args:
        joint: with directions as components.
        name: its name.
        axes: orientation (3, 3) of its body a at the reference configuration.
        at: the joint point (3,) [m] there.
        reverse: whether its body a is the child.

    Raises:
        ValueError: the joint does not consist of such steps.
    """
    try:
        parts = joint.elementary()
    except TypeError as error:
        raise ValueError(f"joint '{name}' has no equal in formats of robots: {error}") from None
    sign = -1.0 if reverse else 1.0
    found = [
        Step(
            _KINDS[part.kind],
            name + part.suffix,
            name,
            part.index,
            float(part.factor),
            sign * axes @ np.asarray(part.axis, float),
            at,
            axes,
            reverse,
        )
        for part in parts
    ]
    # Turn and travel of a screw commute; its turn, which has the coordinate, stays first.
    screw = len({part.index for part in parts}) < len(parts)
    return tuple(found[::-1] if reverse and not screw else found)
