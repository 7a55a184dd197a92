"""What a model of others draws on its bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

ShapeKind = Literal["box", "sphere", "capsule", "cylinder", "ellipsoid", "plane", "mesh"]


@dataclass(frozen=True, eq=False)
class Shape:
    """A solid, a plane or a mesh that is drawn on a body; it has no mass and touches nothing.

    Attributes:
        body: name of the mechanism's body that it moves with, or "ground".
        kind: what it is; "capsule" and "cylinder" lie along their own z axis, a "plane" is normal
            to it.
        size: half lengths (3,) [m], zero where the kind needs fewer: "box" and "ellipsoid" along
            x, y and z; "sphere" its radius; "capsule" and "cylinder" the radius and half the
            length between the ends (without the caps); "plane" along x and y, zero where it is
            endless; "mesh" half the widths of its vertices.
        position: its origin (3,) [m], in global coordinates as drawn.
        rotation: orientation (3, 3) of its axes, in global coordinates as drawn.
        colour: red, green, blue and opacity, from 0 to 1.
        vertices: of a mesh, (n, 3) [m], along its own axes from its origin, as in its file; else
            None.
        faces: of a mesh, (m, 3) vertices of each triangle, counterclockwise from outside; else
            None.

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.io.load_mjcf('''<mujoco><worldbody><body name="arm" pos="0 0 1">
        ...   <joint/><geom name="rod" type="capsule" size="0.02" fromto="0 0 0 0.4 0 0"/>
        ... </body></worldbody></mujoco>''')
        >>> rod = model.shapes["rod"]
        >>> rod.body, rod.kind, rod.size.tolist(), rod.position.tolist()
        ('arm', 'capsule', [0.02, 0.2, 0.0], [0.2, 0.0, 1.0])
    """

    body: str
    kind: ShapeKind
    size: np.ndarray
    position: np.ndarray
    rotation: np.ndarray
    colour: tuple[float, float, float, float]
    vertices: np.ndarray | None = field(default=None, repr=False)
    faces: np.ndarray | None = field(default=None, repr=False)


class Shapes(Mapping[str, Shape]):
    """Shapes by name, made when they are first asked for: their files can be large."""

    def __init__(self, make: Callable[[], dict[str, Shape]]):
        self._make = make

    @cached_property
    def _made(self) -> dict[str, Shape]:
        return self._make()

    def __getitem__(self, name: str) -> Shape:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
