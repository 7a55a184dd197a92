"""Numbers to curves and to their derivatives: two kernels, compiled once for a whole session.

All numbers that may move are one argument x, so that no slider needs a program of its own. The
curves are one kernel of one sample; the derivatives are one forward derivative whose directions,
one for each number, are rows of a batch. With the derivative of every curve at every place, any
scalar of the curves has its gradient by the chain rule, without compiling anything for it.

A `Goal` is what a better curve is: a scalar of it that is to be small, with its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.analysis import Status
from jaxmbd.design import Unknowns
from jaxmbd.model import Mechanism
from jaxmbd.observe import REASONS, Experiment, Observable, Output, Reduced, status_text, stays_open
from jaxmbd.suspension import RIG, AxleSweep, CornerSweep, number
from jaxmbd.variables import shown
from jaxmbd.viz.plane_view import normal_of_motion

_ZERO = 1e-9
"""Greatest part of a vector that is nothing."""


class Response(NamedTuple):
    """What a design does.

    Attributes:
        curves: (m, n) outputs over the axis in SI units; NaN where the design does not close.
        q: coordinates (n, nq) at the places of the axis; NaN likewise.
        status: the first `Status` that is not OK.
        trouble: what failed and where, in words; empty if nothing did.
    """

    curves: np.ndarray
    q: np.ndarray
    status: Status
    trouble: str

    @property
    def reached(self) -> np.ndarray:
        """(n,) whether the design closes at each place of the axis."""
        return np.all(np.isfinite(self.q), axis=1) & np.all(np.isfinite(self.curves), axis=0)


class Held(NamedTuple):
    """What a suspension's experiment holds, and may hold elsewhere.

    Attributes:
        name: "heave", "roll", "left", "right" or "steer".
        joint: that is held; of an axle one of its rig's, or its steering.
        unit: SI unit.
        value: where the experiment holds it.
        far: how far it may go to either side.
    """

    name: str
    joint: str
    unit: str
    value: float
    far: float


_FAR = {"heave": 0.06, "left": 0.06, "right": 0.06, "roll": 0.06, "steer": 0.04}
_PITMAN = 0.5


def held_places(experiment: Experiment, mech: Mechanism) -> tuple[Held, ...]:
    """What of the rig and the steering an experiment of a corner or an axle holds."""
    found: list[Held] = []
    if isinstance(experiment, AxleSweep):
        for name, joint in RIG.items():
            if joint in experiment.known:
                unit = "rad" if name == "roll" else "m"
                found.append(Held(name, joint, unit, experiment.known[joint], _FAR[name]))
        corner, steer = experiment.corners[0], experiment.steer
        one = len({c.steering for c in experiment.corners}) == 1
    elif isinstance(experiment, CornerSweep) and experiment.corner is not None:
        corner, one = experiment.corner, True
        steer = experiment.known.get(corner.steering, 0.0)
    else:
        return ()
    if one and corner.slides(mech) and corner.steering not in experiment.over:
        turns = corner.turns(mech)
        far = _PITMAN if turns else _FAR["steer"]
        found.append(Held("steer", str(corner.steering), "rad" if turns else "m", steer, far))
    return tuple(found)


def held_at(experiment: Experiment, held: tuple[Held, ...], values: Any) -> Experiment:
    """The experiment with what it holds at these values, which may be traced."""
    given = {x.joint: value for x, value in zip(held, values, strict=True)}
    if isinstance(experiment, AxleSweep):
        steering = {x.joint for x in held if x.name == "steer"}
        steer = next((given[n] for n in steering), experiment.steer)
        rig = {n: x for n, x in given.items() if n not in steering}
        return replace(experiment, known=dict(experiment.known) | rig, steer=steer)
    if isinstance(experiment, CornerSweep) and given:
        return replace(experiment, known=dict(experiment.known) | given)
    return experiment


class LiveCurves:
    """An experiment's curves as a function of numbers of a model, with derivatives.

    A sweep finds each configuration from the last, the first from the drawn one, which the moved
    points move as well; so a design's curves do not depend on those that were looked at before.

    Args:
        unknowns: which numbers move; x (k,) is zero where they are as given, ±1 at their limits.
        experiment: whose observables are drawn over its axis.

    Attributes:
        about: name of each curve to its `Output`; vectors have one curve for each component.
        x: the axis (n,) in SI units.
        axis: its name.
        unit: its SI unit.
        held: what of a suspension is held, and may be held elsewhere.

    Raises:
        ValueError: the experiment does not fit the model, or has no axis.
    """

    def __init__(self, unknowns: Unknowns, experiment: Experiment):
        self.unknowns, self.experiment = unknowns, experiment
        nominal = unknowns.model(np.zeros(len(unknowns)))
        if not experiment.has_axis:
            raise ValueError(
                f"explore: {type(experiment).__name__} has no axis to draw curves over; give a "
                "Sweep or a Motion"
            )
        experiment.check(nominal)
        self._kept = experiment.kept()
        axis = experiment.axis_values(nominal)
        self.axis, self.unit = experiment.axis, axis.unit
        self.x = np.asarray(axis.values, np.float64)
        self.about = self._described(nominal)
        self.held = held_places(experiment, nominal)
        self._outputs = experiment.declare(nominal).outputs
        self._compiled = jax.jit(lanes.jit(self._course))
        self._columns = jax.jit(lanes.vmap(self._column, in_axes=(None, None, 0)))
        self._rows = self._telling(nominal)
        self.about = {n: x for k, (n, x) in enumerate(self.about.items()) if k in self._rows}

    @property
    def places(self) -> np.ndarray:
        """Where the experiment holds what is held (h,) [SI]."""
        return np.array([x.value for x in self.held], np.float64)

    def pictured(self, mech: Mechanism) -> Mechanism:
        """The mechanism whose coordinates are the response's: an axle on its rig."""
        one = self.experiment
        return one.on(mech)[1] if isinstance(one, AxleSweep) else mech

    def _described(self, mech: Mechanism) -> dict[str, Output]:
        found: dict[str, Output] = {}
        for name, what in self.experiment.observe.items():
            about = _observable(what).about(mech)
            if "axis" in about.dims:
                parts = {f"{name}/{a}": about._replace(text=f"{a} of {about.text}") for a in "xyz"}
                found |= {n: x._replace(dims=()) for n, x in parts.items()}
            else:
                found[name] = about
        return found

    def _telling(self, nominal: Mechanism) -> list[int]:
        """Rows of the curves that are shown: not the components that are zero by the plane.

        Of a mechanism that moves in a plane along two axes these are a position's or a force's
        along the normal, a moment's or an angular velocity's in the plane, where they are zero at
        every place.
        """
        names, normal = list(self.about), normal_of_motion(nominal)
        vectors = [n[:-2] for n in names if n.endswith("/x") and n not in self.experiment.observe]
        if not vectors or normal is None or np.max(np.abs(normal)) < 1.0 - _ZERO:
            return list(range(len(names)))
        start = np.zeros(len(self.unknowns)), self._placed(None)
        greatest = np.max(np.abs(lanes.finished(self._compiled(*start))[0]), axis=1)
        across, zero = "xyz"[int(np.argmax(np.abs(normal)))], set()
        for vector in vectors:
            turns = any(part in self.about[f"{vector}/x"].unit for part in ("rad", "N m"))
            rows = {a: names.index(f"{vector}/{a}") for a in "xyz"}
            largest = max(greatest[k] for k in rows.values())
            still = [k for a, k in rows.items() if (a == across) != turns]
            zero |= {k for k in still if greatest[k] <= _ZERO * largest}
        return [k for k in range(len(names)) if k not in zero]

    def _course(self, x: Any, places: Any) -> tuple[Array, Array, Any]:
        """Curves (m, n), coordinates (n, nq), and how it ended."""
        experiment = held_at(self.experiment, self.held, places)
        course = experiment.curves(self.unknowns.model(x), states=True)
        rows = [course.observed[_observable(w)] for w in self.experiment.observe.values()]
        rows = [y[None] if y.ndim == 1 else y.T for y in rows]
        curves = jnp.concatenate([y.astype(x.dtype) for y in rows])
        return curves[:, self._kept], course.q[self._kept], course.failure

    def _column(self, x: Array, places: Array, direction: Array) -> Array:
        """Derivative (m, n) of the curves in one direction."""
        return jax.jvp(lambda y: self._course(y, places)[0], (x,), (direction,))[1]

    def _placed(self, places: Any) -> np.ndarray:
        return self.places if places is None else np.asarray(places, np.float64)

    def __call__(self, x: np.ndarray, places: np.ndarray | None = None) -> Response:
        """The curves of numbers x (k,), with what is held at `places` (h,) [SI]."""
        given = np.asarray(x, np.float64), self._placed(places)
        curves, q, failure = lanes.finished(self._compiled(*given))
        curves, q = np.array(curves, np.float64), np.array(q, np.float64)
        curves[:, ~np.all(np.isfinite(q), axis=1)] = np.nan
        status = Status(int(failure.status))
        return Response(curves[self._rows], q, status, self._trouble(status, failure))

    def slopes(self, x: np.ndarray, places: np.ndarray | None = None) -> np.ndarray:
        """Derivatives (m, n, k) of the curves by x; NaN where the design does not close."""
        x = np.asarray(x, np.float64)
        found = lanes.finished(self._columns(x, self._placed(places), np.eye(len(x))))
        return np.moveaxis(np.asarray(found, np.float64), 0, -1)[self._rows]

    def _trouble(self, status: Status, failure: Any) -> str:
        if status == Status.OK:
            return ""
        where = f" at {self.axis} {_shown(float(failure.at), self.unit)}"
        open_ = stays_open(self._outputs, dict(zip(REASONS, failure.opening, strict=False)))
        if status == Status.NOT_ASSEMBLED and open_:
            return f"does not close{where}: {open_}"
        return f"{status_text(status)}{where}"


def _observable(what: Observable | Reduced) -> Observable:
    return what.observable if isinstance(what, Reduced) else what


def _shown(x: float, unit: str) -> str:
    name, factor = shown(unit)
    return f"{number(factor * x)} {name}".rstrip()


Measured = tuple[float, np.ndarray]
"""The scalar and its derivative by each value of the curve (n,)."""


class Goal(NamedTuple):
    """A scalar of a curve that is to be small; `name` says what the curve becomes if it falls.

    Attributes:
        measure: of the axis x (n,), the curve y (n,) and that of the kept variant (n,), all finite.
        compares: whether it needs a kept variant.
    """

    name: str
    text: str
    measure: Callable[[np.ndarray, np.ndarray, np.ndarray], Measured]
    compares: bool = False


def _rms(deviation: np.ndarray) -> Measured:
    size = float(np.sqrt(np.mean(deviation**2)))
    slope = deviation / (len(deviation) * size) if size > 0.0 else np.zeros_like(deviation)
    return size, slope


def _flat(x: np.ndarray, y: np.ndarray, other: np.ndarray) -> Measured:
    middle = int(np.argmin(np.abs(x)))
    size, slope = _rms(y - y[middle])
    slope[middle] -= slope.sum()
    return size, slope


def _alike(x: np.ndarray, y: np.ndarray, other: np.ndarray) -> Measured:
    return _rms(y - other)


def _linear(weights: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Measured]:
    """A weighted sum of the curve, whose derivative is the weights of the axis."""
    return lambda x, y, other: (float(weights(x) @ y), weights(x))


def _mean(x: np.ndarray) -> np.ndarray:
    return np.full_like(x, 1.0 / len(x))


def _inclination(x: np.ndarray) -> np.ndarray:
    """Weights of the slope of the straight line of least squares."""
    away = x - x.mean()
    square = float(away @ away)
    return away / square if square > 0.0 else np.zeros_like(x)


GOALS = {
    goal.name: goal
    for goal in (
        Goal("flatter", "RMS of its change from where the axis is zero", _flat),
        Goal("lower", "its mean", _linear(_mean)),
        Goal("higher", "minus its mean", _linear(lambda x: -_mean(x))),
        Goal(
            "rising more",
            "minus the slope of its straight line",
            _linear(lambda x: -_inclination(x)),
        ),
        Goal("falling more", "the slope of its straight line", _linear(_inclination)),
        Goal("like the kept variant", "RMS of its distance from that curve", _alike, True),
    )
}
"""All goals by name."""


def gradient(
    goal: Goal, x: np.ndarray, y: np.ndarray, slopes: np.ndarray, other: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """A goal's value and its gradient (k,) by the numbers of a design.

    Of a curve y (n,) over x (n,) with derivatives (n, k), and perhaps another curve to compare it
    with. Places with NaN are left out; the value is NaN if fewer than two are left, the gradient
    zero for numbers by which the curve has no derivative.
    """
    other = np.zeros_like(y) if other is None else other
    good = np.isfinite(y) & (np.isfinite(other) | (not goal.compares))
    if np.sum(good) < 2:
        return float("nan"), np.zeros(slopes.shape[1])
    value, slope = goal.measure(x[good], y[good], other[good])
    found = slope @ slopes[good]
    return value, np.where(np.isfinite(found), found, 0.0)
