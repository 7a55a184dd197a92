"""Defects of a linkage that reaches all positions on paper: order, branch, circuit, Grashof."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.analysis import is_angle
from jaxmbd.graph import topology
from jaxmbd.kinematics import motion_state
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.following import Course, Followed, course, follow, input_key
from jaxmbd.synthesis.problem import Task

_STRIDE = np.deg2rad(2.0)
_TURN = 2.0 * np.pi
_SLACK = 1e-6
"""By how much a transmission index may fall short of what was asked for, up to rounding."""


class Defects(NamedTuple):
    """What is wrong with a linkage, found by following it along its input in steps of 2°.

    Attributes:
        order: the positions do not follow each other in one direction of the input.
        circuit: some position cannot be reached from the first by moving the input, without taking
            the linkage apart.
        branch: a dead centre lies between the positions (the transmission index changes sign, or
            vanishes).
        rotation: the input cannot turn fully; of a planar four-bar, the Grashof condition does not
            hold, or its input is not the link that can turn. None where the input does not turn.
        transmission: least magnitude of the transmission index between first and last position.
        turn_transmission: the same over the full turn; NaN where it cannot turn.
        error: largest error at a position [m, rad].
        weak: the transmission index falls below what was asked for, or the input cannot turn fully
            although that was asked for.

    Example:
        >>> from jaxmbd.synthesis import PathGeneration, defects, massless_four_bar
        >>> task = PathGeneration("A", [0, 0.1], body="coupler", point="P", targets=[[1.5, 3]] * 2)
        >>> found = defects(massless_four_bar(), task)
        >>> found.order, found.circuit, found.branch
        (False, False, False)
    """

    order: bool
    circuit: bool
    branch: bool
    rotation: bool | None
    transmission: float
    turn_transmission: float
    error: float
    weak: bool = False

    @property
    def sound(self) -> bool:
        """Whether it does its task: no defect of order, circuit, branch or transmission."""
        return not (self.order or self.circuit or self.branch or self.weak)

    def __str__(self) -> str:
        kinds = {"order": self.order, "circuit": self.circuit, "branch": self.branch}
        names = [name for name, found in (kinds | {"transmission": self.weak}).items() if found]
        said = "defects of " + ", ".join(names) if names else "no defect of order, circuit, branch"
        if self.rotation is not None:
            said += "; the input cannot turn fully" if self.rotation else "; the input turns fully"
        said += f"; transmission index at least {self.transmission:.3f}"
        if np.isfinite(self.turn_transmission):
            said += f" between the positions, {self.turn_transmission:.3f} over the full turn"
        return said


def defects(
    mech: Mechanism,
    task: Task,
    inputs: Any = None,
    *,
    least_transmission: float = 0.0,
    full_turn: bool = False,
) -> Defects:
    """Find a linkage's defects.

    Args:
        mech: the linkage, drawn at the first position.
        task: what it is to do.
        inputs: the input at each position, from the first (n,) [rad, m]; by default the task's.
        least_transmission: what the transmission index must not fall below.
        full_turn: whether the input must turn fully, and the index is asked for all the way round.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.synthesis import PathGeneration, defects, massless_four_bar
        >>> task = PathGeneration("A", [0, 0.1], body="coupler", point="P", targets=[[1.5, 3]] * 2)
        >>> defects(massless_four_bar(), task).sound
        True
    """
    given = task.inputs if inputs is None else np.asarray(inputs, np.float64)
    if given is None:
        raise ValueError("the task leaves the timing free; give inputs=, as they were found")
    key = input_key(mech, task.input)
    turns = is_angle(topology(mech), key)
    steps = np.diff(given)
    dense, places = _dense(given, _STRIDE if turns else np.ptp(given) / 100.0)
    found, errors = _followed(mech, task, dense, places)
    closed = np.asarray(found.closed)
    index = np.asarray(found.index)
    least = float(np.min(np.abs(index[closed]), initial=np.inf))
    order = bool(np.any(steps <= 0.0) and np.any(steps >= 0.0)) or _beyond(given, turns)
    if not order and np.all(closed):
        least = _least(_course(mech, task.input, given[-1]))
    rotation, turned = None, np.nan
    if turns:
        full = _course(mech, task.input, _TURN * np.sign(steps.sum() or 1.0))
        back = np.max(np.abs(_cyclic(full.last - found.closest[0], mech)))
        rotation = bool(not full.closed or not back < 1e-6)
        turned = np.nan if rotation else _least(full)
    return Defects(
        order=order,
        circuit=bool(not np.all(closed)),
        branch=bool(np.any(np.sign(index[closed]) != np.sign(index[0]))),
        rotation=rotation,
        transmission=least,
        turn_transmission=turned,
        error=float(np.max(np.linalg.norm(np.asarray(errors), axis=1))),
        weak=not (turned if full_turn else least) >= least_transmission - _SLACK,
    )


def _least(found: Course) -> float:
    """Least magnitude of the index: none where its sign changes."""
    return max(0.0, float(np.min(found.least)))


def _beyond(inputs: np.ndarray, turns: bool) -> bool:
    """Whether an angle goes past where it began."""
    return bool(turns and np.ptp(inputs) > _TURN * (1.0 + 1e-9))


def _dense(inputs: np.ndarray, stride: float) -> tuple[np.ndarray, np.ndarray]:
    """Inputs that pass through the given ones in strides, a fixed number for each, and where."""
    longest = np.max(np.abs(np.diff(inputs)), initial=0.0)
    parts = max(1, int(np.ceil(longest / max(stride, 1e-12))))
    share = np.arange(1, parts + 1) / parts
    between = inputs[:-1, None] + np.diff(inputs)[:, None] * share
    return np.append(inputs[:1], between.ravel()), np.arange(len(inputs)) * parts


def _cyclic(change: Any, mech: Mechanism) -> np.ndarray:
    """A change of coordinates, without whole turns of angles."""
    kinds = topology(mech).speed_kinds
    change = np.asarray(change)
    if len(kinds) != len(change):  # with balls: quaternions
        return np.minimum(np.abs(change), np.abs(np.abs(change) - 2.0 * np.pi))
    turns = 2.0 * np.pi * np.round(change / (2.0 * np.pi))
    return np.where([k == "angle" for k in kinds], change - turns, change)


@partial(jax.jit, static_argnums=1)
def _followed(mech: Mechanism, task: Task, dense: Array, places: Array) -> tuple[Followed, Array]:
    """A linkage along its input, and its errors at the positions, which have these places."""

    def run(mech: Mechanism, dense: Array, places: Array) -> tuple[Followed, Array]:
        found = follow(mech, task.input, dense)
        q = found.closest[places]
        errors = [task.error(motion_state(mech, q[i]), row) for i, row in enumerate(task.rows)]
        return found, jnp.stack(errors)

    return lanes.jit(run)(mech, dense, places)


@partial(jax.jit, static_argnums=1)
def _course(mech: Mechanism, joint: Any, reach: Array) -> Course:
    return lanes.jit(lambda mech, reach: course(mech, joint, reach))(mech, reach)
