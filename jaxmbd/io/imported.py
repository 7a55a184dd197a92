"""What an import gives: the mechanism, its states, and what it could not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.analysis import mobility
from jaxmbd.graph import topology
from jaxmbd.io.mujoco.coordinates import MujocoCoordinates
from jaxmbd.io.shape import Shape
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import listed


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
    """All that an import left out; printed as a table.

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.io.load_mjcf('''<mujoco><worldbody><body name="arm">
        ...   <joint name="hinge" axis="0 1 0"/><geom size="0.02" pos="0.5 0 0"/>
        ... </body></worldbody></mujoco>''')
        >>> print(model.left_out)
        nothing is left out
    """

    def __str__(self) -> str:
        if not self:
            return "nothing is left out"
        rows = [(f"{len(x.names)} {x.what}", listed(x.names), x.consequence) for x in self]
        rows = [("left out", "names", "what that means"), *rows]
        widths = [max(len(row[k]) for row in rows) for k in range(2)]
        lines = (f"{a:{widths[0]}s}  {b:{widths[1]}s}  {c}" for a, b, c in rows)
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__


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
    coordinates: MujocoCoordinates = field(repr=False)

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
