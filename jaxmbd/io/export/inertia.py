"""Inertias as MuJoCo accepts them: positive, and those of a body that can exist."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmbd.io.export.tree import WrittenBody, WrittenTree
from jaxmbd.io.imported import LeftOut

LEAST = 2e-15
"""Mass [kg] and moments of inertia [kg m²] in the place of zero; MuJoCo refuses less than 1e-15."""


class PrincipalInertia(NamedTuple):
    """Mass [kg], principal moments (3,) [kg m²] and their axes (3, 3), columns, global."""

    mass: float
    moments: np.ndarray
    axes: np.ndarray


def acceptable_inertias(
    tree: WrittenTree,
) -> tuple[dict[str, PrincipalInertia], list[LeftOut]]:
    """Inertias by body, and what had to be changed.

    Of a body that only turns about one direction, the moment about that is all that matters, and
    is taken about all axes.
    """
    out, massless, raised = {}, [], []
    for body in tree.bodies:
        inertia, changed = _of(tree, body)
        if changed:
            raised.append(body.name)
        if body.mass < LEAST and body.steps:
            massless.append(body.name)
            inertia = inertia._replace(mass=LEAST)
        out[body.name] = inertia
    rows = [
        LeftOut("massless bodies", tuple(massless), f"{LEAST:g} kg, which MuJoCo needs"),
        LeftOut(
            "inertias that no body can have",
            tuple(raised),
            "the smaller moments are raised until the largest is their sum",
        ),
    ]
    return out, [row for row in rows if row.names]


def _of(tree: WrittenTree, body: WrittenBody) -> tuple[PrincipalInertia, bool]:
    moments, axes = np.linalg.eigh(body.inertia)
    largest = float(moments[2])
    short = largest - moments[0] - moments[1]
    changed = False
    if short > -1e-15 * largest:
        about = _single_axis(tree, body)
        if about is not None:
            return PrincipalInertia(body.mass, np.full(3, max(about, LEAST)), np.eye(3)), False
        # By rounding alone: a flat body, of which MuJoCo's sum must not be less by any bit.
        changed = short > 1e-12 * largest
        moments = moments + max(short, 0.0) * np.array([0.5, 0.5, 0.0])
        moments[:2] *= 1.0 + 1e-15
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return PrincipalInertia(body.mass, np.maximum(moments, LEAST), axes), changed


def _single_axis(tree: WrittenTree, body: WrittenBody) -> float | None:
    """The moment of inertia about the only direction that a body turns about, or None."""
    carried, name = {b.name: b for b in tree.bodies}, body.name
    axes = []
    while name in carried:
        steps = carried[name].steps
        if any(s.kind in ("ball", "free") for s in steps):
            return None
        axes += [s.axis for s in steps if s.kind == "hinge"]
        name = carried[name].parent
    if not axes:
        return 0.0
    first = axes[0] / np.sqrt(axes[0] @ axes[0])
    if any(np.abs(np.cross(first, x)).max() > 1e-12 for x in axes):
        return None
    return float(first @ body.inertia @ first)
