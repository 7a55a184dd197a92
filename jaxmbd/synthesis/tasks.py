"""What a linkage is to do: trace points, generate a function, guide a body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.kinematics import MotionState
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.transmission_index import input_problems


def spread(rows: np.ndarray) -> float:
    """Root mean square distance of rows (n, m) from their mean."""
    return float(np.sqrt(np.mean(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1))))


@dataclass(frozen=True, eq=False)
class Task:
    """Base of the tasks. The mechanism is drawn at the first of the n positions.

    Attributes:
        input: the joint that drives, or ``(joint, i)``.
        inputs: its coordinate at each position, from the first, (n,) [rad, m]; None: free timing,
            then it only has to grow from position to position (fall, with `direction` −1).
        direction: in which direction a free input moves.

    Example:
        >>> from jaxmbd.synthesis import PathGeneration, Task
        >>> issubclass(PathGeneration, Task)
        True
    """

    input: Any
    inputs: Any = None
    direction: int = 1

    def __post_init__(self) -> None:
        if self.inputs is not None:
            inputs = np.asarray(self.inputs, np.float64)
            object.__setattr__(self, "inputs", inputs - inputs[0])
        if self.direction not in (1, -1):
            raise ValueError(f"direction={self.direction!r}; give 1 or -1")

    @property
    def rows(self) -> np.ndarray:
        """What is wanted at each position, (n, m)."""
        raise TypeError(f"{type(self).__name__} defines no task")

    @property
    def size(self) -> float:
        """A typical error of a linkage that does not do the task at all [m, rad]."""
        return spread(self.rows) or 1.0

    def error(self, m: MotionState, row: Array) -> Array:
        """How far a configuration is from what is wanted, (m,) [m, rad]."""
        raise TypeError(f"{type(self).__name__} defines no error")

    def problems(self, mech: Mechanism) -> list[str]:
        """What does not fit the mechanism, or itself."""
        found = input_problems(mech, self.input)
        if self.inputs is not None and np.shape(self.inputs) != (len(self.rows),):
            found.append(f"{len(self.rows)} positions, but inputs of shape {self.inputs.shape}")
        return found


def _body_problems(mech: Mechanism, body: str, point: Any) -> list[str]:
    found = []
    if body not in mech.bodies:
        found.append(f"there is no body {body!r}; bodies are {list(mech.structure.bodies)}")
    if isinstance(point, str) and point not in mech.points:
        found.append(f"there is no point {point!r}; points are {sorted(mech.points)}")
    return found


def _points(targets: Any) -> np.ndarray:
    rows = np.asarray(targets, np.float64)
    if rows.ndim != 2 or rows.shape[1] not in (2, 3):
        raise ValueError(f"targets have shape {rows.shape}; give (n, 2) or (n, 3)")
    return rows


@dataclass(frozen=True, eq=False)
class PathGeneration(Task):
    """A point of a body is to pass through points in the given order.

    Attributes:
        body, point: the point and the body that carries it.
        targets: (n, 2) in the plane xy or (n, 3) [m].

    Example:
        >>> from jaxmbd.synthesis import PathGeneration
        >>> PathGeneration("crank", body="coupler", point="P", targets=[[0, 1], [0, 2.0]]).size
        0.5
    """

    body: str = ""
    point: Any = ""
    targets: Any = ()

    @property
    def rows(self) -> np.ndarray:
        """What is wanted at each position, (n, m)."""
        return _points(self.targets)

    def error(self, m: MotionState, row: Array) -> Array:
        """How far a configuration is from what is wanted, (m,) [m, rad]."""
        return m.position(self.body, self.point)[: row.shape[0]] - row

    def problems(self, mech: Mechanism) -> list[str]:
        """What does not fit the mechanism, or itself."""
        return super().problems(mech) + _body_problems(mech, self.body, self.point)


@dataclass(frozen=True, eq=False)
class FunctionGeneration(Task):
    """A joint's coordinate is to be a function of the input's.

    Attributes:
        output: the joint, or ``(joint, i)``.
        values: its coordinate at each position, from the first, (n,) [rad, m].

    Example:
        >>> from jaxmbd.synthesis import FunctionGeneration
        >>> FunctionGeneration("crank", [0, 0.1], output="rocker", values=[1, 1.5]).rows.tolist()
        [[0.0], [0.5]]
    """

    output: Any = ""
    values: Any = ()

    @property
    def rows(self) -> np.ndarray:
        """What is wanted at each position, (n, m)."""
        values = np.asarray(self.values, np.float64)
        return (values - values[0])[:, None]

    def error(self, m: MotionState, row: Array) -> Array:
        """How far a configuration is from what is wanted, (m,) [m, rad]."""
        name, index = self.output if isinstance(self.output, tuple) else (self.output, 0)
        return m.coordinates(name)[index] - row

    def problems(self, mech: Mechanism) -> list[str]:
        """What does not fit the mechanism, or itself."""
        name = self.output[0] if isinstance(self.output, tuple) else self.output
        found = super().problems(mech)
        if name not in mech.joints:
            found.append(f"there is no joint {name!r}; joints are {list(mech.joints)}")
        return found


@dataclass(frozen=True, eq=False)
class MotionGeneration(Task):
    """A body is to pass through poses: positions of a point, and rotations.

    Attributes:
        body, point: the body, and a point that it carries.
        targets: positions of the point, (n, 2) or (n, 3) [m].
        rotations: turned from the first pose, (n,) [rad] about z or matrices (n, 3, 3).
        arm: the distance at which an error in rotation counts as one in position [m]; by default
            the spread of the positions.

    Example:
        >>> from jaxmbd.synthesis import MotionGeneration
        >>> poses = {"targets": [[0, 1], [0, 3.0]], "rotations": [0.0, 0.1]}
        >>> MotionGeneration("crank", body="coupler", point="P", **poses).rows.shape
        (2, 4)
    """

    body: str = ""
    point: Any = ""
    targets: Any = ()
    rotations: Any = ()
    arm: float | None = None

    @property
    def reach(self) -> float:
        """`arm`, or the spread of the positions [m]."""
        return (spread(_points(self.targets)) or 1.0) if self.arm is None else float(self.arm)

    @property
    def rows(self) -> np.ndarray:
        """What is wanted at each position, (n, m)."""
        turned = np.asarray(self.rotations, np.float64)
        if turned.ndim == 1:
            turned = turned - turned[0]
            columns = np.stack([np.cos(turned), np.sin(turned)], axis=1)
        else:
            columns = (turned @ turned[0].T).reshape(len(turned), 9)
        return np.concatenate([_points(self.targets), columns], axis=1)

    def error(self, m: MotionState, row: Array) -> Array:
        """How far a configuration is from what is wanted, (m,) [m, rad]."""
        flat = np.asarray(self.rotations).ndim == 1
        size = _points(self.targets).shape[1]
        place = m.position(self.body, self.point)[:size] - row[:size]
        rotation = m.rotation(self.body)
        # The distance of two rotations by φ is 2 sin(φ/2), in either form.
        turned = rotation[:2, 0] if flat else rotation.reshape(9) / np.sqrt(2.0)
        wanted = row[size:] if flat else row[size:] / np.sqrt(2.0)
        return jnp.concatenate([place, self.reach * (turned - wanted)])

    def problems(self, mech: Mechanism) -> list[str]:
        """What does not fit the mechanism, or itself."""
        found = super().problems(mech) + _body_problems(mech, self.body, self.point)
        if len(np.asarray(self.rotations)) != len(_points(self.targets)):
            found.append("there must be as many rotations as targets")
        return found
