"""What an import gives: the mechanism, its states, and what it could not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.io.mujoco_coordinates import MujocoCoordinates
from jaxmbd.model.mechanism import Mechanism


class LeftOut(NamedTuple):
    """Something of a model that the mechanism does not have."""

    what: str
    names: tuple[str, ...]
    consequence: str


class LeftOutTable(tuple[LeftOut, ...]):
    """All that an import left out; printed as a table."""

    def __str__(self) -> str:
        if not self:
            return "nothing is left out"
        rows = [(f"{len(x.names)} {x.what}", _listed(x.names), x.consequence) for x in self]
        rows = [("left out", "names", "what that means"), *rows]
        widths = [max(len(row[k]) for row in rows) for k in range(2)]
        lines = (f"{a:{widths[0]}s}  {b:{widths[1]}s}  {c}" for a, b, c in rows)
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__


def _listed(names: tuple[str, ...], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class State(NamedTuple):
    """A state that a model names: a keyframe.

    Attributes:
        q: coordinates (nq,), as the model gives them: they need not close its loops.
        v: speeds (nv,).
        inputs: controls of the actuators by name.
        t: time [s].
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
        actuators: the model's actuators by name, each with the name of its `Actuator` among
            ``mechanism.forces``, which `inputs=` takes.
        bodies: the model's bodies by name, each with the mechanism's body that it is part of.
        sites: the model's sites by name, each with that body; the points have the sites' names.
        limits: ranges (lower, upper) of coordinates by joint [rad or m].
        left_out: what the mechanism does not have of the model; `print` shows a table.
        coordinates: the model's qpos and qvel to q and v, and back.
    """

    mechanism: Mechanism
    states: Mapping[str, State]
    actuators: Mapping[str, str]
    bodies: Mapping[str, str]
    sites: Mapping[str, str]
    limits: Mapping[str, tuple[float, float]]
    left_out: LeftOutTable
    coordinates: MujocoCoordinates = field(repr=False)

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
        return f"imported: {head}\n{self.left_out}"

    __str__ = __repr__
