"""The explorer's picture: the mechanism at a place of the axis, with its hardpoints and arrows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxmbd.graph import neutral
from jaxmbd.kinematics import poses
from jaxmbd.model import in_space
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.viz.explorer.exploration import Exploration
from jaxmbd.viz.explorer.improvement_arrows import Hardpoints, point_bodies
from jaxmbd.viz.scene import Scene
from jaxmbd.viz.viser_scene import ViserScene, set_stage

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
