"""Hardpoints in the picture: balls to click, and arrows that show which way a curve improves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import GROUND, PointRef
from jaxmbd.viz.scene import Placement

ARROW = (232, 89, 12)
BALL = (255, 212, 59)
_SMALL = 0.04
_LONGEST = 0.16


def point_bodies(mech: Mechanism) -> dict[str, str]:
    """Named points to the bodies that they are drawn on; the ground's where no part says more.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz.explorer.improvement_arrows import point_bodies
        >>> found = point_bodies(mbd.zoo.multi_link())
        >>> found["tierod_inboard"], found["tierod_outboard"]
        ('ground', 'upright')
    """
    found: dict[str, str] = {}
    for joint in mech.joints.values():
        for body, ref in ((joint.a, joint.point_a), (joint.b, joint.point_b)):
            if isinstance(ref, PointRef):
                found.setdefault(ref.name, body)
    for force in mech.forces.values():
        for field, ref in force.points.items():
            body = getattr(force, "a" if field == "at_a" else "b", GROUND)
            if isinstance(ref, PointRef) and body in mech.bodies:
                found.setdefault(ref.name, body)
    for name, body in mech.bodies.items():
        if isinstance(body.com, PointRef):
            found.setdefault(body.com.name, name)
    return dict.fromkeys(mech.structure.points, GROUND) | found


class Hardpoints:
    """Balls on the points that can be moved, and the arrows at them.

    Args:
        scene: `viser.ViserServer.scene`.
        bodies: point to the body that it is drawn on.
        size: of the whole picture [m].
        radius: of a ball [m].
        clicked: called with the name of a point.
    """

    def __init__(
        self,
        scene: Any,
        bodies: Mapping[str, str],
        size: float,
        radius: float,
        clicked: Callable[[str], None],
    ):
        self._bodies, self._size = dict(bodies), size
        self._balls = {name: self._ball(scene, name, radius, clicked) for name in bodies}
        self._arrows = scene.add_arrows(
            "/improvement",
            np.zeros((1, 2, 3)),
            ARROW,
            shaft_radius=0.005 * size,
            head_radius=0.014 * size,
            head_length=0.035 * size,
            visible=False,
        )

    @property
    def names(self) -> list[str]:
        """The points that have balls."""
        return list(self._balls)

    def _ball(self, scene: Any, name: str, radius: float, clicked: Callable[[str], None]) -> Any:
        path = f"/points/{name.replace('/', '|')}"
        ball = scene.add_icosphere(
            path, radius, color=BALL, opacity=0.6, subdivisions=2, cast_shadow=False
        )
        ball.on_click(lambda _: clicked(name))
        return ball

    def place(
        self,
        drawn: Mapping[str, np.ndarray],
        at: Callable[[str], Placement],
        arrows: Mapping[str, np.ndarray],
    ) -> None:
        """Move balls and arrows.

        Args:
            drawn: point to where it is drawn (3,) [m].
            at: body to its placement, of drawn coordinates.
            arrows: point to the direction (3,) of its arrow, whose length is relative.
        """
        longest = max((float(np.linalg.norm(x)) for x in arrows.values()), default=0.0)
        shafts = []
        for name, ball in self._balls.items():
            put = at(self._bodies[name])
            position = put.rotation @ drawn[name] + put.position
            ball.position = position
            way = put.rotation @ arrows.get(name, np.zeros(3))
            if np.linalg.norm(way) > _SMALL * longest:
                shafts.append([position, position + _LONGEST * self._size / longest * way])
        self._arrows.visible = bool(shafts)
        if shafts:
            self._arrows.points = np.asarray(shafts, np.float32)
