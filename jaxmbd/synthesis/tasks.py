"""What a linkage is to do: trace points or a line, generate a function, guide a body, and more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis import JointCoordinate
from jaxmbd.graph import topology
from jaxmbd.kinematics import MotionState, motion_state, own_jacobian
from jaxmbd.model import Mechanism
from jaxmbd.numerics import pivoted_lu
from jaxmbd.observe import Observable, Snapshot
from jaxmbd.synthesis.following import input_key, input_problems


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

    in_metres: ClassVar[bool] = False
    """Whether its size is a length."""

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
        lost = np.flatnonzero(~np.all(np.isfinite(self.rows), axis=1))
        if len(lost):
            found.append(
                f"what is wanted at the positions {lost.tolist()} (from 0) is not finite; give "
                "numbers there, or leave these positions out"
            )
        if self.inputs is not None and not np.all(np.isfinite(self.inputs)):
            found.append("some inputs are not finite; give numbers")
        return found


def _body_problems(mech: Mechanism, body: str, point: Any) -> list[str]:
    found = []
    if body not in mech.bodies:
        found.append(f"there is no body {body!r}; bodies are {list(mech.structure.bodies)}")
    if isinstance(point, str) and point not in mech.points:
        found.append(f"there is no point {point!r}; points are {sorted(mech.points)}")
    return found


def _joint_problems(mech: Mechanism, output: Any) -> list[str]:
    name = output[0] if isinstance(output, tuple) else output
    if name in mech.joints:
        return []
    return [f"there is no joint {name!r}; joints are {list(mech.joints)}"]


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

    in_metres = True

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
        return super().problems(mech) + _joint_problems(mech, self.output)


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

    in_metres = True

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


def dwell(
    input: Any, output: Any, *, over: float, stroke: float, at: float, stations: int = 7
) -> FunctionGeneration:
    """The task that an output rests while the input moves on, and has moved away later.

    Args:
        input: the driving joint, or ``(joint, i)``.
        output: the joint that is to rest, or ``(joint, i)``.
        over: travel of the input, from the drawing, over which the output rests [rad, m].
        stroke: how far the output has moved away at `at` [rad, m]: without it, an output that
            hardly moves at all would do.
        at: the input there [rad, m], beyond `over`.
        stations: at how many positions it rests.

    Raises:
        ValueError: `at` lies within the dwell, or there are fewer than two stations.

    Example:
        >>> from jaxmbd.synthesis import dwell
        >>> dwell("A", "G", over=1.0, stroke=0.5, at=3.0, stations=3).rows[:, 0].tolist()
        [0.0, 0.0, 0.0, 0.5]
    """
    if not at / over > 1.0 or stations < 2:
        raise ValueError(
            f"at={at!r} must lie beyond over={over!r}, in its direction, and stations={stations!r} "
            "be two at least"
        )
    inputs = np.append(np.linspace(0.0, over, stations), at)
    values = np.append(np.zeros(stations), stroke)
    return FunctionGeneration(input, inputs, output=output, values=values)


@dataclass(frozen=True, eq=False)
class StraightLine(Task):
    """A point of a body is to move along a straight line, given or free.

    A line is free where its ends are named points that vary: points on the ground, of which the
    first says where it begins and the other only where it leads.

    Attributes:
        body, point: the point and the body that carries it.
        start, end: of the line, coordinates (2,) or (3,) [m] or names of points.
        length: travel along the line [m]; by default to its end, if that is given as coordinates.
        stations: number n of positions, evenly along the line.
        steady: with prescribed inputs, whether the travel along the line counts at every position,
            so that the point has the inputs' speed; else at the first and the last only. With free
            timing it is found without cost.

    Example:
        >>> from jaxmbd.synthesis import StraightLine
        >>> line = StraightLine("A", body="coupler", point="P", start=(0, 1), end=(2, 1.0))
        >>> line.rows[:3, 0].tolist(), line.travel
        ([0.0, 0.125, 0.25], 2.0)
    """

    body: str = ""
    point: Any = ""
    start: Any = ""
    end: Any = ""
    length: float | None = None
    stations: int = 9
    steady: bool = True

    in_metres = True

    @property
    def travel(self) -> float:
        """Along the line [m]."""
        if self.length is not None:
            return float(self.length)
        if isinstance(self.start, str) or isinstance(self.end, str):
            raise ValueError("a line between named points may shrink to nothing; give length=")
        return float(np.linalg.norm(np.subtract(self.end, self.start)))

    @property
    def size(self) -> float:
        """A typical error of a linkage that does not do the task at all [m]."""
        return self.travel * spread(self.rows[:, :1])

    @property
    def rows(self) -> np.ndarray:
        """Share of the travel, and whether it counts, (n, 2)."""
        count = self.stations if self.inputs is None else len(self.inputs)
        share = np.linspace(0.0, 1.0, count)
        if self.inputs is not None:
            share = np.asarray(self.inputs) / self.inputs[-1]
        counts = np.full(count, self.steady or self.inputs is None)
        counts[[0, -1]] = True
        return np.stack([share, counts.astype(float)], axis=1)

    def error(self, m: MotionState, row: Array) -> Array:
        """How far a configuration is from what is wanted, (m,) [m]."""
        start, end = (m.mech.point(x) for x in (self.start, self.end))
        along = (end - start) / jnp.sqrt((end - start) @ (end - start))
        off = m.position(self.body, self.point) - start - row[0] * self.travel * along
        off = off - (1.0 - row[1]) * (off @ along) * along
        return off[:2] if m.mech.structure.planar else off

    def problems(self, mech: Mechanism) -> list[str]:
        """What does not fit the mechanism, or itself."""
        found = super().problems(mech) + _body_problems(mech, self.body, self.point)
        for end in (self.start, self.end):
            found += _body_problems(mech, self.body, end)[-1:] if isinstance(end, str) else []
        return list(dict.fromkeys(found))


@dataclass(frozen=True, eq=False)
class VelocityGeneration(Task):
    """A point, or a joint, is to have velocities at the positions, per unit of the input's rate.

    Attributes:
        body, point: the point and the body that carries it, or
        output: a joint, or ``(joint, i)``.
        velocities: of the point (n, 2) or (n, 3) [m/rad, or m/m], or of the joint (n,).

    Example:
        >>> from jaxmbd.synthesis import VelocityGeneration
        >>> VelocityGeneration("A", [0, 0.1], output="D", velocities=[0.5, 0.6]).rows.tolist()
        [[0.5], [0.6]]
    """

    body: str = ""
    point: Any = ""
    output: Any = None
    velocities: Any = ()

    @property
    def rows(self) -> np.ndarray:
        """What is wanted at each position, (n, m)."""
        rows = np.asarray(self.velocities, np.float64)
        return _points(rows) if self.output is None else rows.reshape(-1, 1)

    @property
    def size(self) -> float:
        """A typical velocity."""
        return float(np.sqrt(np.mean(np.sum(self.rows**2, axis=1)))) or 1.0

    def error(self, m: MotionState, row: Array) -> Array:
        """How far a configuration is from what is wanted, (m,)."""
        v = input_speeds(m, input_key(m.mech, self.input))
        moving = motion_state(m.mech, m.q, v)
        if self.output is None:
            return moving.point(self.body, self.point)[1][: row.shape[0]] - row
        name, index = self.output if isinstance(self.output, tuple) else (self.output, 0)
        return moving.joint(name)[1][index] - row

    def problems(self, mech: Mechanism) -> list[str]:
        """What does not fit the mechanism, or itself."""
        found = super().problems(mech)
        if self.output is None:
            return found + _body_problems(mech, self.body, self.point)
        return found + _joint_problems(mech, self.output)


def input_speeds(m: MotionState, key: JointCoordinate) -> Array:
    """Speeds v (nv,) at unit rate of the input: the least squares of J v = 0 where loops are open.

    The columns of J of the other speeds, K, and of the input, k: ``Kᵀ K x = −Kᵀ k``, of square K
    ``K x = −k``.
    """
    top, jacobian = topology(m.mech), own_jacobian(m)
    place = top.layout[key.joint].v
    assert place is not None
    held = place.start + (key.index or 0)
    others = [i for i in range(top.nv) if i != held]
    columns, column = jacobian[:, np.array(others, int)], jacobian[:, held]
    if columns.shape[0] != columns.shape[1]:
        column = columns.T @ column
        square = columns.T @ columns
        # Idle spins and redundant rows: the least motion, to a part in 1e13.
        columns = square + 1e-13 * jnp.trace(square) * jnp.eye(len(others), dtype=m.q.dtype)
    v = jnp.zeros(top.nv, m.q.dtype).at[held].set(1.0)
    return v.at[np.array(others, int)].set(pivoted_lu(columns).solve(-column)) if others else v


def at_rest(m: MotionState, key: JointCoordinate, u: Array) -> Snapshot:
    """A configuration at rest, its input held at u [rad, m]."""
    return Snapshot(m.mech, m.q, keys=(key,), values=[u], moving=False)


@dataclass(frozen=True, eq=False)
class ObservableGeneration(Task):
    """An observable is to have values at the positions, at rest: a length, an angle, a force.

    Attributes:
        observable: of `jaxmbd.observe`; forces are those of the balance at rest, with the input
            held (`HoldingEffort` of the input is what holds it).
        values: (n,) in SI units.
        unit: a typical error, by default the spread of the values.

    Example:
        >>> from jaxmbd.observe import Position
        >>> from jaxmbd.synthesis import ObservableGeneration
        >>> height = Position("coupler", "P", "y")
        >>> ObservableGeneration("A", [0, 0.1], observable=height, values=[1, 2.0]).size
        0.5
    """

    observable: Observable | None = None
    values: Any = ()
    unit: float | None = None

    @property
    def rows(self) -> np.ndarray:
        """What is wanted at each position, (n, 1)."""
        return np.asarray(self.values, np.float64)[:, None]

    @property
    def size(self) -> float:
        """A typical error of a linkage that does not do the task at all."""
        return super().size if self.unit is None else float(self.unit)

    def error(self, m: MotionState, row: Array) -> Array:
        """How far a configuration is from what is wanted, (1,)."""
        assert self.observable is not None
        key = input_key(m.mech, self.input)
        held = m.coordinates(key.joint)[key.index or 0]
        return self.observable.value(at_rest(m, key, held))[None] - row

    def problems(self, mech: Mechanism) -> list[str]:
        """What does not fit the mechanism, or itself."""
        found = super().problems(mech)
        if self.observable is None:
            return [*found, "there is no observable; give observable="]
        if self.observable.about(mech).dims:
            found.append(f"{self.observable} is a vector; give one component")
        return found + self.observable.problems(mech)


@dataclass(frozen=True, eq=False)
class Mixed(Task):
    """Several tasks of one linkage, with one input: their errors in units of their sizes, weighed.

    Tasks with prescribed inputs may have positions of their own, all from the drawing; those with
    free timing have the same number of positions.

    Attributes:
        tasks: with the same input.
        weights: of their squared errors; by default one each.

    Raises:
        ValueError: inputs, timing or positions differ, or there is not one weight for each task.

    Example:
        >>> from jaxmbd.synthesis import FunctionGeneration, Mixed, PathGeneration
        >>> path = PathGeneration("A", [0, 0.2], body="coupler", point="P", targets=[[0, 1]] * 2)
        >>> turn = FunctionGeneration("A", [0, 0.1], output="D", values=[0, 0.3])
        >>> Mixed(tasks=(path, turn), weights=(1.0, 4.0)).inputs.tolist()
        [0.0, 0.1, 0.2]
    """

    input: Any = None
    tasks: Sequence[Task] = ()
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ValueError("there is no task; give tasks=(…)")
        first, timed = self.tasks[0], [task.inputs is not None for task in self.tasks]
        weights = [1.0] * len(self.tasks) if self.weights is None else list(self.weights)
        problems = []
        if len(weights) != len(self.tasks) or min(weights) <= 0.0:
            problems.append(f"weights={self.weights!r}; give a positive one for each task")
        if any(task.input != first.input for task in self.tasks):
            problems.append(f"inputs differ: {[task.input for task in self.tasks]}")
        if len(set(timed)) > 1:
            problems.append("some tasks have inputs= and some free timing; give all or none")
        elif not timed[0] and len({(len(t.rows), t.direction) for t in self.tasks}) > 1:
            problems.append(
                f"with free timing the tasks' positions are the same, but they have "
                f"{[len(t.rows) for t in self.tasks]}, in directions "
                f"{[t.direction for t in self.tasks]}"
            )
        if problems:
            raise ValueError("the tasks do not go together:\n" + "\n".join(problems))
        joined = None
        if timed[0]:
            joined = np.unique(np.concatenate([np.round(t.inputs, 12) for t in self.tasks]))
            joined = joined if joined[-1] > 0.0 else joined[::-1]
        found = {"weights": tuple(weights), "input": first.input, "inputs": joined}
        for name, value in (found | {"direction": first.direction}).items():
            object.__setattr__(self, name, value)

    @property
    def size(self) -> float:
        """One: errors are in units of each task's size."""
        return 1.0

    @property
    def rows(self) -> np.ndarray:
        """Of each task its rows and whether they count, (n, Σ (m + 1))."""
        parts = []
        for task in self.tasks:
            mine = np.concatenate([task.rows, np.ones((len(task.rows), 1))], axis=1)
            if self.inputs is not None:
                rows = np.zeros((len(self.inputs), mine.shape[1]))
                places = [np.argmin(np.abs(self.inputs - u)) for u in task.inputs]
                rows[places] = mine
                mine = rows
            parts.append(mine)
        return np.concatenate(parts, axis=1)

    def error(self, m: MotionState, row: Array) -> Array:
        """How far a configuration is from what is wanted, in units of the sizes (m,)."""
        parts, at = [], 0
        assert self.weights is not None
        for task, weight in zip(self.tasks, self.weights, strict=True):
            end = at + task.rows.shape[1]
            error = np.sqrt(weight) / task.size * task.error(m, row[at:end])
            parts.append(jnp.where(row[end] > 0.0, error, 0.0))
            at = end + 1
        return jnp.concatenate(parts)

    def problems(self, mech: Mechanism) -> list[str]:
        """What does not fit the mechanism, or itself."""
        return [text for task in self.tasks for text in task.problems(mech)]
