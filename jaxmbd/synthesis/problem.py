"""A synthesis problem: a linkage, what may vary in it, what it is to do and what it must keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import closing_rows, is_angle
from jaxmbd.design import Unknowns
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import MotionState, motion_state
from jaxmbd.model import Mechanism
from jaxmbd.observe import Observable
from jaxmbd.synthesis.following import input_key, transmission
from jaxmbd.synthesis.tasks import Task, at_rest, spread
from jaxmbd.variables import mechanism_of

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
        within: observables (`jaxmbd.observe`) to their least and greatest value in SI units, or
            None, at rest, at all positions and, with `full_turn`, at `turn_stations`: room for a
            point (`Position`), a force (`HoldingEffort` of the input, `Reaction`).
        least_transmission: the transmission index must not fall below it, from the first position
            to the last, or over the whole turn, with one sign: no dead centre, no change of branch.
            With several loops, or in space, it is a product of as many: a smaller one is usual.
        least_margin: the least distance to a dead centre [m] (`jaxmbd.closure_margin`), kept in the
            finish, at the positions and `turn_stations`; None: only the transmission index is.
        full_turn: whether the input must be able to turn fully (the Grashof condition of a
            four-bar).
        turn_stations: at how many angles of the full turn the search, which begins with open loops,
            keeps its conditions; the finish keeps them everywhere.
        least_step: least step of a free input [rad, m].
        span: greatest travel of a free input [rad, m].
        power: of the mean that the finish minimises, of the positions' errors: 2 for the root mean
            square; with 16 the largest error is nearly as small as it can be.

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
    within: Mapping[Observable, tuple[Any, Any]] = field(default_factory=dict)
    least_transmission: float = 0.05
    least_margin: float | None = None
    full_turn: bool = False
    turn_stations: int = 12
    least_step: float = np.deg2rad(1.0)
    span: float = _TURN
    power: float = 2.0

    def __post_init__(self) -> None:
        problems = self.task.problems(self.nominal)
        points = [name for pair in self.lengths for name in pair]
        problems += [
            f"lengths: there is no point {name!r}; points are {sorted(self.nominal.points)}"
            for name in dict.fromkeys(points)
            if name not in self.nominal.points
        ]
        problems += [
            f"lengths: of {pair}: {limits!r}; give the least and a greatest that is not below it"
            for pair, limits in self.lengths.items()
            if not limits[0] <= limits[1]
        ]
        if not 0.0 <= self.least_transmission < 1.0:
            problems.append(
                f"least_transmission={self.least_transmission!r}; give an index from 0 to below 1: "
                "the sine of a transmission angle of 30° is 0.5"
            )
        if not self.power >= 2.0:
            problems.append(f"power={self.power!r}; give 2 for least squares, or more")
        for observable in self.within:
            problems += [f"within: {text}" for text in observable.problems(self.nominal)]
            if not problems and observable.about(self.nominal).dims:
                problems.append(f"within: {observable} is a vector; give one component")
        if not problems and self.full_turn and not self._turns:
            problems.append(
                f"full_turn: the input {self.task.input!r} is a travel; leave full_turn out and "
                "give span= or inputs="
            )
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
    def _turns(self) -> bool:
        return is_angle(topology(self.nominal), input_key(self.nominal, self.task.input))

    @cached_property
    def errors(self) -> int:
        """Number m of errors at each position."""
        mech, row = self.nominal, jnp.asarray(self.task.rows[0])
        q = jnp.asarray(neutral(mech), mech.dtype)
        return jax.eval_shape(lambda: self.task.error(motion_state(mech, q), row)).shape[0]

    @cached_property
    def kept_bounds(self) -> list[tuple[Observable, float, float, float]]:
        """Observable, sign, bound and unit of all in `within`: sign · (value − bound) ≥ 0."""
        found = []
        for observable, (low, high) in self.within.items():
            bounds = [(1.0, low), (-1.0, high)]
            given = [(sign, float(x)) for sign, x in bounds if x is not None]
            long = observable.about(self.nominal).unit == "m"
            unit = self.length if long else max([abs(x) for _, x in given], default=1.0) or 1.0
            found += [(observable, sign, x, unit) for sign, x in given]
        return found

    def kept(self, m: MotionState, u: Array) -> Array:
        """What must not be negative of `within`, with the input held at u, in its units (k,)."""
        at = at_rest(m, input_key(m.mech, self.task.input), u)
        values = {what: what.value(at) for what in self.within}
        kept = [sign * (values[what] - x) / unit for what, sign, x, unit in self.kept_bounds]
        return jnp.stack(kept) if kept else jnp.zeros(0, m.q.dtype)

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
        """One position, with the input at u and coordinates q that need not close.

        The error from what is wanted (m,), errors of closure and of the held input (nc + 1,), in
        units of the task's size, the transmission index, and what `within` keeps (k,).
        """
        m = motion_state(mech, q)
        closure, _ = closing_rows(m, (input_key(mech, self.task.input),), [u])
        error = self.task.error(m, row) / self.task.size
        kept = self.kept(m, u)
        return jnp.concatenate([error, closure / self.length, self.index(m)[None], kept])

    def squared_error(self, mech: Mechanism, q: Array) -> Array:
        """Squared errors at the positions, of coordinates (n, nq), summed."""
        return self._summed(mech, q, 2.0)

    def power_mean(self, mech: Mechanism, q: Array) -> Array:
        """The same from the mean of the errors to the `power` p: ``n (Σ |e|ᵖ / n)^(2/p)``."""
        if self.power == 2.0:
            return self.squared_error(mech, q)
        mean = self._summed(mech, q, self.power) / self.positions
        return self.positions * (mean + 1e-300) ** (2.0 / self.power)

    def _summed(self, mech: Mechanism, q: Array, power: float) -> Array:
        def miss(total: Array, at: Any) -> Any:
            error = self.task.error(motion_state(mech, at[0]), at[1]) / self.task.size
            return total + (error @ error) ** (power / 2.0), None

        rows = jnp.asarray(self.task.rows, mech.dtype)
        return lax.scan(miss, jnp.zeros((), mech.dtype), (q, rows))[0]

    def index(self, m: MotionState) -> Array:
        """Transmission index."""
        key = input_key(m.mech, self.task.input)
        return transmission(m, key.joint, key.index or 0)

    @cached_property
    def length(self) -> float:
        """Unit of closure errors [m]: the task's size if it is a length, else the linkage's."""
        if self.task.in_metres:
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
