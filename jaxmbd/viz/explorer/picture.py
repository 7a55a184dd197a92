"""The explorer's picture: the mechanism at a place of the axis, with its hardpoints and arrows.

Hardpoints are balls to click, and arrows show which way a curve improves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from jaxmbd.graph import neutral
from jaxmbd.kinematics import poses
from jaxmbd.model import GROUND, Mechanism, PointRef, in_space
from jaxmbd.viz.explorer.exploration import Exploration
from jaxmbd.viz.scene import Placement, Scene
from jaxmbd.viz.viser_scene import ViserScene, set_stage

ARROW = (232, 89, 12)
BALL = (255, 212, 59)
_SMALL = 0.04
_LONGEST = 0.16


def point_bodies(mech: Mechanism) -> dict[str, str]:
    """Named points to the bodies that they are drawn on; the ground's where no part says more.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz.explorer.picture import point_bodies
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


_BALL, _AWAY = 1.25, 1.4
"""Radius of a hardpoint's ball by that of a ball joint; distance of the camera by the usual one."""


class Picture:
    """A design in the scene of a viser server.

    Args:
        server: a `viser.ViserServer`.
        design: what is explored.
        scene: of a mechanism, what is drawn of it.
        clicked: called with the name of a hardpoint.

    Attributes:
        view: the mechanism in the picture.
        note: text above it that says that it does not close.
    """

    def __init__(
        self,
        server: Any,
        design: Exploration,
        scene: Callable[..., Scene],
        clicked: Callable[[str], None],
    ):
        self._design, self._scene = design, scene
        mech = design.observed()
        first = scene(mech)
        set_stage(server, first)
        camera = server.initial_camera  # from farther away, because panels take room
        camera.position = first.centre + _AWAY * (np.asarray(camera.position) - first.centre)
        self._glyph, self._x = first.glyph, design.x
        self.view, self._space = ViserScene(server.scene, first), _in_space(mech)
        self.note = server.scene.add_label(
            "/note",
            "closes nowhere: shown as drawn",
            position=first.centre + 0.35 * first.size * first.up,
            anchor="bottom-center",
            visible=False,
        )
        moved = {x.rpartition("/")[0].partition("/")[2] for x in design.names}
        bodies = {name: body for name, body in point_bodies(mech).items() if name in moved}
        self._points = Hardpoints(server.scene, bodies, first.size, _BALL * first.glyph, clicked)

    def update(self, place: int) -> None:
        """Show the design at hand at a place of the axis, or pale, as drawn, if it does not close.

        Raises:
            ValueError: it is no mechanism, for example because two points of a link coincide.
        """
        self._redraw()
        mech = self.view.scene.mech
        q = self._design.response.q[place]
        self.view.pale = self.note.visible = not np.all(np.isfinite(q))
        q = np.asarray(neutral(mech)) if self.view.pale else q
        where = _poses(mech, q)
        self.view.place(where)
        drawn = {name: np.asarray(self._space.point(name)) for name in self._points.names}
        placed = self.view.scene.solid_placement
        self._points.place(drawn, lambda body: placed(body, where), self._design.arrows())

    def _redraw(self) -> None:
        """Draw the mechanism anew if its numbers have changed."""
        if np.array_equal(self._x, self._design.x):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of implausible numbers, at every move
            mech = self._design.observed()
            self.view.redraw(self._scene(mech, glyph=self._glyph))
        self._x, self._space = self._design.x, _in_space(mech)


def _in_space(mech: Mechanism) -> Mechanism:
    return in_space(mech) if mech.structure.planar else mech


@jax.jit
def _poses(mech: Mechanism, q: Any) -> Any:
    return poses(mech, q)
