"""Numbers to curves and to their derivatives: two kernels, compiled once for a whole session.

All numbers that may move are one argument x, so that no slider needs a program of its own. The
curves are one kernel of one sample; the derivatives are one forward derivative whose directions,
one for each number, are rows of a batch. With the derivative of every curve at every place, any
scalar of the curves has its gradient by the chain rule, without compiling anything for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.analysis import Status
from jaxmbd.design import Unknowns
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.observe import Experiment, Output
from jaxmbd.observe.observable import Observable
from jaxmbd.observe.reductions import Reduced
from jaxmbd.suspension.display import number, shown


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

    Raises:
        ValueError: the experiment does not fit the model, or has no axis.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.design import Unknowns, Within
        >>> from jaxmbd.observe import Coordinate, Sweep
        >>> from jaxmbd.viz.explorer.live_curves import LiveCurves
        >>> mech = mbd.zoo.four_bar()
        >>> unknowns = Unknowns.of(mech, {"points/*": Within("1 mm")})
        >>> live = LiveCurves(unknowns, Sweep({"A": [0.0, 0.1]}, {"rocker": Coordinate("D")}))
        >>> live(np.zeros(len(unknowns))).curves.shape, live.slopes(np.zeros(15)).shape
        ((1, 2), (1, 2, 15))
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
        self._places = experiment.declare(nominal).outputs["open_joint"].flags
        self._compiled = jax.jit(lanes.jit(self._course))
        self._columns = jax.jit(lanes.vmap(self._column, in_axes=(None, 0)))

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

    def _course(self, x: Any) -> tuple[Array, Array, Any]:
        """Curves (m, n), coordinates (n, nq), and how it ended."""
        course = self.experiment.curves(self.unknowns.model(x), states=True)
        rows = [course.observed[_observable(w)] for w in self.experiment.observe.values()]
        rows = [y[None] if y.ndim == 1 else y.T for y in rows]
        curves = jnp.concatenate([y.astype(x.dtype) for y in rows])
        return curves[:, self._kept], course.q[self._kept], course.failure

    def _column(self, x: Array, direction: Array) -> Array:
        """Derivative (m, n) of the curves in one direction."""
        return jax.jvp(lambda y: self._course(y)[0], (x,), (direction,))[1]

    def __call__(self, x: np.ndarray) -> Response:
        """The curves of numbers x (k,)."""
        curves, q, failure = lanes.finished(self._compiled(np.asarray(x, np.float64)))
        curves, q = np.array(curves, np.float64), np.array(q, np.float64)
        curves[:, ~np.all(np.isfinite(q), axis=1)] = np.nan
        status = Status(int(failure.status))
        return Response(curves, q, status, self._trouble(status, failure))

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """Derivatives (m, n, k) of the curves by x; NaN where the design does not close."""
        x = np.asarray(x, np.float64)
        found = lanes.finished(self._columns(x, np.eye(len(x))))
        return np.moveaxis(np.asarray(found, np.float64), 0, -1)

    def _trouble(self, status: Status, failure: Any) -> str:
        if status == Status.OK:
            return ""
        where = f" at {self.axis} {_shown(float(failure.at), self.unit)}"
        place, distance = int(failure.opening.place), float(failure.opening.distance)
        if status == Status.NOT_ASSEMBLED and 0 <= place < len(self._places):
            open_ = f"{self._places[place]} stays open by {distance:.2g} (m or rad)"
            return f"does not close{where}: {open_}"
        return f"{status.name.lower().replace('_', ' ')}{where}"


def _observable(what: Observable | Reduced) -> Observable:
    return what.observable if isinstance(what, Reduced) else what


def _shown(x: float, unit: str) -> str:
    name, factor = shown(unit)
    return f"{number(factor * x)} {name}".rstrip()
