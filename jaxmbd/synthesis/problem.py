"""A synthesis problem: a linkage, what may vary in it, what it is to do and what it must keep.

Its tasks are to trace points, to generate a function, to guide a body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import closing_rows
from jaxmbd.design import Unknowns
from jaxmbd.kinematics import MotionState, motion_state
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.following import input_key, input_problems, transmission
from jaxmbd.variables import mechanism_of


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


_TURN = 2.0 * np.pi


@dataclass(frozen=True, eq=False)
class Problem:
    """A linkage to be found.

    The mechanism is drawn at the first position; what varies is what `minimize` may vary, best
    the hardpoints. Its unknowns are the numbers that vary, then, with free timing, the steps of
    the input from each position to the next: they are positive, so that the order is kept.

    Attributes:
        model: a `Mechanism` or `Parametrization`.
        task: what it is to do.
        vary: path or pattern to `Within`, `Between` or `MovedTogether`.
        lengths: pairs of points to (least, greatest) drawn distance [m].
        conditions: function of the mechanism to an array (k,) that must not be negative.
        least_transmission: the transmission index must not fall below it, from the first position
            to the last, or over the whole turn, with one sign: no dead centre, no change of branch.
        least_margin: the least distance to a dead centre [m] (`jaxmbd.closure_margin`), kept in the
            finish, at the positions and `turn_stations`; None: only the transmission index is.
        full_turn: whether the input must be able to turn fully (the Grashof condition of a
            four-bar).
        turn_stations: at how many angles of the full turn the search, which begins with open loops,
            keeps its conditions; the finish keeps them everywhere.
        least_step: least step of a free input [rad, m].
        span: greatest travel of a free input [rad, m].

    Example:
        >>> from jaxmbd.design import Within
        >>> from jaxmbd.synthesis import PathGeneration, Problem, massless_four_bar
        >>> path = [[1.0, 3.0], [1.4, 3.1], [1.8, 3.1]]
        >>> task = PathGeneration("A", body="coupler", point="P", targets=path)
        >>> Problem(massless_four_bar(), task, {"points/*": Within(2.0)}).full_turn
        False
    """

    model: Any
    task: Task
    vary: Mapping[str, Any]
    lengths: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    conditions: Callable[[Mechanism], Array] | None = None
    least_transmission: float = 0.05
    least_margin: float | None = None
    full_turn: bool = False
    turn_stations: int = 12
    least_step: float = np.deg2rad(1.0)
    span: float = _TURN

    def __post_init__(self) -> None:
        problems = self.task.problems(self.nominal)
        points = [name for pair in self.lengths for name in pair]
        problems += [
            f"lengths: there is no point {name!r}; points are {sorted(self.nominal.points)}"
            for name in dict.fromkeys(points)
            if name not in self.nominal.points
        ]
        if problems:
            raise ValueError("the synthesis is not posed:\n" + "\n".join(problems))

    @cached_property
    def unknowns(self) -> Unknowns:
        """The numbers that vary."""
        return Unknowns.of(self.model, self.vary)

    @cached_property
    def nominal(self) -> Mechanism:
        """The mechanism as it is given."""
        return mechanism_of(self.model)

    @property
    def positions(self) -> int:
        """Number n of wanted positions."""
        return len(self.task.rows)

    @property
    def timed(self) -> bool:
        """Whether the input is prescribed."""
        return self.task.inputs is not None

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of the unknowns, scaled numbers first."""
        low, high = self.unknowns.limits
        if self.timed:
            return low, high
        steps = np.ones(self.positions - 1)
        return np.append(low, self.least_step * steps), np.append(high, self.span * steps)

    @property
    def extra(self) -> np.ndarray:
        """Input at the further positions where it must close, (k,)."""
        if not self.full_turn:
            return np.zeros(0)
        return _TURN * np.arange(1, self.turn_stations + 1) / (self.turn_stations + 1)

    def inputs(self, z: Array) -> Array:
        """Input at all stations (n + k,) of the unknowns z: at the positions, then the others."""
        if self.timed:
            return jnp.asarray(np.append(self.task.inputs, self.extra))
        steps = jnp.cumsum(z[len(self.unknowns) :])
        ahead = jnp.concatenate([jnp.zeros(1, steps.dtype), self.task.direction * steps])
        return jnp.concatenate([ahead, jnp.asarray(self.extra)])

    def reach(self, z: Array) -> Array:
        """How far the input moves where the transmission index counts [rad, m]."""
        return jnp.asarray(_TURN) if self.full_turn else self.inputs(z)[self.positions - 1]

    def mechanism(self, z: Any) -> Mechanism:
        """The mechanism of the unknowns."""
        return self.unknowns.model(z[: len(self.unknowns)])

    def values(self, z: Any) -> dict[str, float]:
        """Name to number in SI units, of the numbers that vary."""
        numbers = self.unknowns.numbers(np.asarray(z)[: len(self.unknowns)])
        return dict(zip(self.unknowns.names, numbers.tolist(), strict=True))

    def station(self, mech: Mechanism, u: Array, q: Array, row: Array) -> Array:
        """One position, with the input at u and coordinates q that need not close (m + nc + 2,).

        The error from what is wanted (m,), errors of closure and of the held input (nc + 1,), in
        units of the task's size, and the transmission index.
        """
        m = motion_state(mech, q)
        closure, _ = closing_rows(m, (input_key(mech, self.task.input),), [u])
        error = self.task.error(m, row) / self.task.size
        return jnp.concatenate([error, closure / self.length, self.index(m)[None]])

    def squared_error(self, mech: Mechanism, q: Array) -> Array:
        """Squared errors at the positions, of coordinates (n, nq), summed."""

        def miss(total: Array, at: Any) -> Any:
            error = self.task.error(motion_state(mech, at[0]), at[1]) / self.task.size
            return total + error @ error, None

        rows = jnp.asarray(self.task.rows, mech.dtype)
        return lax.scan(miss, jnp.zeros((), mech.dtype), (q, rows))[0]

    def index(self, m: MotionState) -> Array:
        """Transmission index."""
        key = input_key(m.mech, self.task.input)
        return transmission(m, key.joint, key.index or 0)

    @cached_property
    def length(self) -> float:
        """Unit of closure errors [m]: the task's size if it is a length, else the linkage's."""
        if self.task.rows.shape[1] > 1:
            return self.task.size
        return spread(np.stack([np.asarray(x) for x in self.nominal.points.values()]))

    def margins(self, z: Array) -> Array:
        """What must not be negative, of the drawing and the timing alone (k,)."""
        mech = self.mechanism(z)
        found = []
        for (a, b), (least, greatest) in self.lengths.items():
            between = mech.point(a) - mech.point(b)
            distance = jnp.sqrt(between @ between + 1e-300)
            found += [(distance - least) / self.length, (greatest - distance) / self.length]
        if not self.timed:
            found.append(1.0 - jnp.sum(z[len(self.unknowns) :]) / self.span)
        parts = [jnp.stack(found)] if found else []
        if self.conditions is not None:
            parts.append(jnp.atleast_1d(self.conditions(mech)) / self.length)
        return jnp.concatenate([*parts, jnp.zeros(0, z.dtype)])
