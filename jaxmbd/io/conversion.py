"""What conversions of models give, and what all of them need.

An import gives the mechanism, its states and what is drawn on its bodies, an export the mechanism
as it was written; both tell what they left out. Names that differ are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np

from jaxmbd.analysis import mobility
from jaxmbd.graph import topology
from jaxmbd.io.coordinates import FileCoordinates
from jaxmbd.model import ForceElement, JointLimit, Mechanism
from jaxmbd.plumbing import listed, text_table

T = TypeVar("T")


class LeftOut(NamedTuple):
    """Something of a model that the mechanism does not have.

    Example:
        >>> from jaxmbd.io import LeftOut
        >>> LeftOut("contact shapes", ("geom0",), "bodies pass through each other").what
        'contact shapes'
    """

    what: str
    names: tuple[str, ...]
    consequence: str


class LeftOutTable(tuple[LeftOut, ...]):
    """All that a conversion left out, of which there is some; printed as a table.

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.io.load_mjcf('''<mujoco><worldbody><body name="arm">
        ...   <joint name="hinge" axis="0 1 0"/><geom size="0.02" pos="0.5 0 0"/>
        ... </body></worldbody></mujoco>''')
        >>> print(model.left_out)
        nothing is left out
    """

    def __new__(cls, rows: Iterable[LeftOut] = ()) -> Self:
        """The rows that have names."""
        return super().__new__(cls, (row for row in rows if row.names))

    def __str__(self) -> str:
        if not self:
            return "nothing is left out"
        rows = [(f"{len(x.names)} {x.what}", listed(x.names), x.consequence) for x in self]
        return text_table(("left out", "names", "what that means"), rows, range(3), rule=False)

    __repr__ = __str__

    def refuse(self, strict: bool, text: str) -> None:
        """Raise a ValueError if something is left out and `strict`."""
        if strict and self:
            raise ValueError(f"strict=True, and {text}:\n{self}")


class LeftOutNotes:
    """Collects what is left out, by what it is and what that means."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, what: str, consequence: str, name: str) -> None:
        """Note one thing."""
        self._names.setdefault((what, consequence), []).append(name)

    def rows(self) -> list[LeftOut]:
        """One row of the table for each kind of thing."""
        return [LeftOut(what, tuple(names), text) for (what, text), names in self._names.items()]


class UniqueNames:
    """A register of names: each is given once."""

    def __init__(self, taken: Iterable[str] = ()):
        self._taken = set(taken)

    def unique(self, wanted: str, kind: str) -> str:
        """The name that is wanted, with ``.kind`` behind it as often as it is already taken."""
        while wanted in self._taken:
            wanted += f".{kind}"
        self._taken.add(wanted)
        return wanted

    def renamed(self, parts: Mapping[str, T], kind: str) -> dict[str, T]:
        """The parts by names that differ from all that are taken."""
        return {self.unique(name, kind): part for name, part in parts.items()}


def joined(first: Mapping[str, T], second: Mapping[str, T]) -> dict[str, T]:
    """Both in one.

    Raises:
        ValueError: a name is in both.
    """
    if both := first.keys() & second.keys():
        raise ValueError(f"two parts have the same name: {', '.join(sorted(both))}")
    return {**first, **second}


def stops(limits: Mapping[str, tuple[float, float]], stiffness: float) -> dict[str, ForceElement]:
    """A stop at each end of each joint's range that is finite [rad or m; N·m/rad or N/m]."""
    return {
        f"{name}.stop": JointLimit(
            name, *(x if np.isfinite(x) else None for x in ends), stiffness=stiffness
        )
        for name, ends in limits.items()
    }


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


@dataclass(frozen=True)
class Exported:
    """A mechanism as a file of another format has it.

    Attributes:
        mechanism: the mechanism in space, cut where the file's equalities close its loops. If the
            format cannot close a loop at the joint that `topology` cuts, this one is cut elsewhere
            and has other coordinates: the same motion is found by `assemble`.
        joints: its joints by name, each with the joints that the file has for it.
        coordinates: ``mechanism``'s q and v to the file's positions and speeds (for MJCF: qpos and
            qvel), and back.
        left_out: what the file does not have of the mechanism; `print` shows a table.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = mbd.io.save_mjcf(mbd.zoo.macpherson(), f"{folder}/corner.xml")
        >>> written.joints["univ_strut"]
        ('univ_strut.a', 'univ_strut.b')
        >>> written.coordinates.qpos(mbd.neutral(written.mechanism)).shape
        (6,)
    """

    mechanism: Mechanism = field(repr=False)
    joints: Mapping[str, tuple[str, ...]]
    coordinates: FileCoordinates = field(repr=False)
    left_out: LeftOutTable

    def __repr__(self) -> str:
        count = sum(len(names) for names in self.joints.values())
        bodies = len(self.mechanism.structure.bodies)
        return f"exported: {bodies} bodies, {count} joints\n{self.left_out}"

    __str__ = __repr__
