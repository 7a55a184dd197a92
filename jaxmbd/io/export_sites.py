"""Named points on bodies, as sites of a robot format."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.io.export_tree import WrittenTree
from jaxmbd.model.numbers import GROUND, ComRef, PointRef


class Sites:
    """Sites by name, made where they are asked for.

    A hardpoint has its name on the first body that asks for it, ``point.body`` on others.
    """

    def __init__(self, tree: WrittenTree):
        self.tree = tree
        self.places: dict[str, tuple[str, np.ndarray]] = {}
        """Body and point (3,) [m] at the reference configuration, by the site's name."""
        self.axes: dict[str, np.ndarray] = {}
        """Orientation (3, 3) there of those that are turned, by name."""
        self._known: dict[tuple[str, str], str] = {}
        self._seen: set[str] = set()

    def name(self, body: str, ref: Any) -> str:
        """The site of a point of a body."""
        if isinstance(ref, ComRef):
            point = f"{ref.body}.com"
        else:
            assert isinstance(ref, PointRef)
            # A point of literal coordinates; an import makes those of its joints and forces anew.
            owner, mech = ref.name.removesuffix(".at"), self.tree.mech
            point = ref.name
            if owner != point and (owner in mech.joints or owner in mech.forces):
                point = owner if owner not in mech.points else f"{owner}.point"
            self._seen.add(ref.name)
        key = (body, point)
        if key not in self._known:
            self._known[key] = self.add(body, point, self.tree.place(body, ref))
        return self._known[key]

    def add(self, body: str, wanted: str, place: np.ndarray, axes: np.ndarray | None = None) -> str:
        """A site at a place (3,) [m] with axes (3, 3), without them global; the name it gets."""
        name = wanted if wanted not in self.places else f"{wanted}.{body}"
        while name in self.places:
            name += ".site"
        self.places[name] = (body, place)
        if axes is not None:
            self.axes[name] = axes
        return name

    def all_points(self) -> None:
        """Sites for all points: on the bodies that parts have them on, else on the ground."""
        mech = self.tree.mech
        halves: list[tuple[Any, Any]] = []
        for joint in mech.joints.values():
            halves += [(joint.b, joint.point_b), (joint.a, joint.point_a)]
        for force in mech.forces.values():
            for field, ref in force.points.items():
                halves.append((getattr(force, "a" if field == "at_a" else "b", None), ref))
        written = {body.name for body in self.tree.bodies}
        for body, ref in halves:
            if body in written and isinstance(ref, PointRef):
                self.name(body, ref)
        for point in mech.structure.points:
            if point not in self._seen:
                self.name(GROUND, PointRef(point))
