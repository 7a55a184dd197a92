"""What an import gives: the mechanism, its states, and what is drawn on its bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxmbd.analysis import mobility
from jaxmbd.graph import topology
from jaxmbd.io.conversion import LeftOutTable
from jaxmbd.io.coordinates import FileCoordinates
from jaxmbd.model import Mechanism

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


class State(NamedTuple):
    """A state that a model names: a keyframe.

    Attributes:
        q: coordinates (nq,), as the model gives them: they need not close its loops.
        v: speeds (nv,).
        inputs: controls of the actuators by name.
        t: time [s].

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.io.load_mjcf('''<mujoco><worldbody><body name="arm">
        ...   <joint name="hinge" axis="0 1 0"/><geom size="0.02" pos="0.5 0 0"/>
        ... </body></worldbody></mujoco>''')
        >>> model.states["reference"].q
        array([0.])
    """

    q: np.ndarray
    v: np.ndarray
    inputs: dict[str, float]
    t: float


@dataclass(frozen=True)
class Imported:
    """A model of others as a mechanism.

    Attributes:
        mechanism: drawn where the model is at its reference configuration.
        states: keyframes by name, and "reference", the drawn configuration.
        actuators: the model's actuators by name, each with the name of its force element among
            ``mechanism.forces``, which `inputs=` takes.
        bodies: the model's bodies by name, each with the mechanism's body that it is part of.
        sites: the model's sites by name, each with that body; the points have the sites' names.
        limits: ranges (lower, upper) of coordinates by joint [rad or m].
        shapes: what is drawn on the bodies, by name; read when it is first asked for.
        left_out: what the mechanism does not have of the model; `print` shows a table.
        coordinates: the model's qpos and qvel to q and v, and back.

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.io.load_mjcf('''<mujoco><worldbody><body name="arm">
        ...   <joint name="hinge" axis="0 1 0"/><geom size="0.02" pos="0.5 0 0"/>
        ... </body></worldbody></mujoco>''')
        >>> model.bodies, model.limits
        ({'world': 'ground', 'arm': 'arm'}, {})
    """

    mechanism: Mechanism
    states: Mapping[str, State]
    actuators: Mapping[str, str]
    bodies: Mapping[str, str]
    sites: Mapping[str, str]
    limits: Mapping[str, tuple[float, float]]
    shapes: Mapping[str, Shape] = field(repr=False)
    left_out: LeftOutTable
    coordinates: FileCoordinates = field(repr=False)

    @cached_property
    def contradiction(self) -> float:
        """What redundant rows of its loops contradict each other by, as drawn (`mobility`) [m].

        The digits of a file leave a part in 1e7 of the mechanism's length; `assemble` closes the
        loops in the sense of least squares up to its ``contradiction=``.
        """
        return mobility(self.mechanism).contradiction if topology(self.mechanism).nc else 0.0

    def __repr__(self) -> str:
        s = self.mechanism.structure
        counts: dict[str, Any] = {
            "bodies": len(s.bodies),
            "joints": len(s.joints),
            "actuators": len(self.actuators),
            "states": len(self.states),
            "sites": len(self.sites),
        }
        head = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
        if self.contradiction:
            head += f"; redundant rows contradict each other by {self.contradiction:.2g} m"
        return f"imported: {head}\n{self.left_out}"

    __str__ = __repr__
