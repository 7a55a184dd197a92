"""`synthesize`: a linkage for a task, from many starts in step; `finish`: to a KKT point.

`defects` of a linkage that reaches all positions on paper: order, branch, circuit, Grashof.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd import lanes
from jaxmbd.analysis import closure_margin, is_angle
from jaxmbd.design import AtLeast, Between, Bounded, Optimum, minimize
from jaxmbd.graph import topology
from jaxmbd.kinematics import mechanism_length, motion_state
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.following import Course, Followed, course, follow, input_key
from jaxmbd.synthesis.problem import Problem
from jaxmbd.synthesis.search import (
    courses,
    follow_stations,
    least_index,
    random_starts,
    search_simultaneously,
    walk_all,
)
from jaxmbd.synthesis.tasks import Task

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
    branch = bool(np.any(np.sign(index[closed]) != np.sign(index[0])))
    if not order and np.all(closed):
        least = _least(_course(mech, task.input, given[-1]))
        # Beyond a point of change a stride may come to the branch whose index has the same sign.
        branch = branch or least == 0.0
    rotation, turned = None, np.nan
    if turns:
        full = _course(mech, task.input, _TURN * np.sign(steps.sum() or 1.0))
        first = np.asarray(_places(mech, found.closest[0]))
        back = float(np.max(np.abs(_places(mech, full.last) - first)))
        rotation = bool(not full.closed or not back < 1e-6)
        turned = np.nan if rotation else _least(full)
    return Defects(
        order=order,
        circuit=bool(not np.all(closed)),
        branch=branch,
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


@jax.jit
def _places(mech: Mechanism, q: Array) -> Array:
    """Where both halves of all joints are (2 n, 3), over the mechanism's length.

    Two configurations with the same are the same, but for spins that nothing shows.
    """
    m = motion_state(mech, q)
    edges = [mech.joint(edge.name) for edge in mech.structure.joints]
    halves = [((e.a, e.point_a), (e.b, e.point_b)) for e in edges]
    places = [m.position(*half) for pair in halves for half in pair]
    return jnp.stack(places) / mechanism_length(mech)


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


_CLOSED = 1e-4
"""Largest error of closure, in units of the task's size, that the finish is left to remove."""
_REACHED = 0.01
_NONE = 1e-5
_SAME = 1e-9
_DESIGN, _STEPS = "design", "steps"


@dataclass(frozen=True)
class Synthesis:
    """What `synthesize` found; printed as a report.

    Attributes:
        mechanism: the linkage, drawn at the first position.
        values: name to number in SI units.
        inputs: the input at each position, from the first (n,) [rad, m].
        error: squared errors at the positions, summed [m², rad²]; with another `Problem.power`
            than 2, as many squares of their power mean.
        kkt: residual of the Karush-Kuhn-Tucker conditions, relative to the gradient at the start
            from which the search came.
        defects: of order, branch, circuit and rotation, found by following the linkage.
        errors: what each start ended with, as `error`; NaN where it ended with no linkage that
            closes, keeps its conditions and is without defect (s,).
        candidates: unknowns that each start ended with (s, nz).
        seconds: wall time of the search from all starts, and of the finish.
        optimum: of the finish.

    Example:
        >>> from dataclasses import fields
        >>> from jaxmbd.synthesis import Synthesis
        >>> [field.name for field in fields(Synthesis)][:3]
        ['mechanism', 'values', 'inputs']
    """

    mechanism: Any
    values: dict[str, float]
    inputs: np.ndarray
    error: float
    kkt: float
    defects: Defects
    errors: np.ndarray
    candidates: np.ndarray
    seconds: tuple[float, float]
    optimum: Optimum
    problem: Problem = field(repr=False)

    @property
    def root_mean_square(self) -> float:
        """Of the errors at the positions [m, rad]; with another `Problem.power`, that mean."""
        return float(np.sqrt(self.error / self.problem.positions))

    @property
    def working(self) -> float:
        """Share of the starts that ended with a linkage without defect."""
        return float(np.mean(np.isfinite(self.errors)))

    def reached(self, error: float | None = None) -> float:
        """Share of the starts that ended within 1 % of an error; by default of the best one.

        Less than 1e-5 of the task's size (root mean square) counts as no error.
        """
        none = self.problem.positions * (_NONE * self.problem.task.size) ** 2
        goal = (self.error if error is None else error) * (1.0 + _REACHED) + none
        return float(np.mean(np.nan_to_num(self.errors, nan=np.inf) <= goal))

    def __str__(self) -> str:
        at = ", ".join(f"{x:.5g}" for x in self.inputs)
        power = self.problem.power
        mean = "root mean square" if power == 2.0 else f"mean of power {power:g}"
        rows = [f"  {name} = {x:.8g}" for name, x in self.values.items()]
        best = f"{100 * self.reached():.0f} % with the best"
        if not self.reached():
            best = "none with the best, to which the drawing of a start led by itself"
        return "\n".join(
            [
                f"synthesis: error {self.root_mean_square:.4g} ({mean} of "
                f"{self.problem.positions} positions), KKT residual {self.kkt:.1e}",
                str(self.defects),
                f"{len(self.errors)} starts in {self.seconds[0]:.1f} s: "
                f"{100 * self.working:.0f} % end with a linkage without defect, "
                f"{best}; finished in {self.seconds[1]:.1f} s",
                f"inputs: {at}",
                *rows,
            ]
        )


def synthesize(
    problem: Problem, *, starts: int = 256, seed: int = 0, steps: int = 30, finishes: int = 8
) -> Synthesis:
    """Find a linkage for a task.

    Random drawings within the limits are improved together, drawing and configurations as unknowns
    (`search_simultaneously`). Every result is then followed from its drawing along its input: one
    that does not close everywhere, comes to other points than in the search (another circuit or
    branch), or does not keep its conditions, is put aside. The best, and the best of the drawings
    that the search began with, are finished with closed loops by `jaxmbd.minimize`, to a point that
    satisfies the Karush-Kuhn-Tucker conditions: where open loops have led the search astray, as for
    paths that no such linkage can come near, the drawings themselves lead further.

    Args:
        problem: the linkage, its task and its conditions.
        starts: how many.
        seed: of the starts; the same seed gives the same result.
        steps: of the search, for each of its weights.
        finishes: how many of the best of either are finished, at most.

    Raises:
        ValueError: no linkage without defect was found.

    Example:
        A four-bar whose coupler point passes through four points (see `examples`):

        >>> from jaxmbd.design import Within
        >>> from jaxmbd.synthesis import PathGeneration, Problem, massless_four_bar, synthesize
        >>> path = [[1.0, 3.0], [1.4, 3.1], [1.8, 3.1], [2.2, 3.0]]
        >>> task = PathGeneration("A", body="coupler", point="P", targets=path)
        >>> problem = Problem(massless_four_bar(), task, {"points/*": Within(2.0)})
        >>> found = synthesize(problem, starts=4)
        >>> found.root_mean_square < 1e-6, found.defects.sound
        (True, True)
    """
    began = time.monotonic()
    first = random_starts(problem, starts, seed=seed)
    found = search_simultaneously(problem, first, steps=steps)
    walked = walk_all(problem, found.z)
    good = (found.closure < _CLOSED) & (found.margin > -_CLOSED) & (np.asarray(walked.open) == 0)
    same = np.abs(walked.error - found.error) <= 1e-2 * found.error + _CLOSED**2
    good &= same & (least_index(walked) >= problem.least_transmission - _CLOSED)
    unit = problem.task.size**2
    near = np.where(good, walked.error * unit, np.nan)  # the finish mends the rest of the course
    whole = courses(problem, found.z)
    kept = np.min(whole.least, axis=1) >= problem.least_transmission - _CLOSED
    errors = np.where(whole.closed & kept, near, np.nan)
    searched = time.monotonic() - began
    begun = [k for k in range(starts) if first.walked.open[k] == 0][:finishes]
    if not good.any() and not begun:
        raise ValueError(
            f"none of {starts} starts ended with a linkage without defect: "
            f"{int(np.sum(found.closure < _CLOSED))} close, {int(np.sum(walked.open == 0))} can be "
            "followed through all positions. Give wider limits, more starts, conditions that can "
            f"be met, or a least_transmission below {problem.least_transmission:g}"
        )
    began = time.monotonic()
    ends = _distinct(found.z, near, finishes)
    pool = np.concatenate([found.z[ends], first.z[begun]])
    k, end, found_defects = _finished(problem, pool)
    origin = first.z[[*ends, *begun][k]]
    z = np.array(list(end.values.values()))
    return Synthesis(
        mechanism=problem.mechanism(z),
        values=problem.values(z),
        inputs=_inputs(problem, z),
        error=end.objective * unit,
        kkt=end.kkt * _gradient_ratio(end, pool[k], origin),
        defects=found_defects,
        errors=errors,
        candidates=found.z,
        seconds=(searched, time.monotonic() - began),
        optimum=end,
        problem=problem,
    )


def _finished(problem: Problem, z: np.ndarray) -> tuple[int, Optimum, Defects]:
    """The best of some designs (b, nz), once finished, that has no defect; and which it was."""
    end = finish(problem, z)
    ends = np.where(np.isfinite(end.objectives), end.objectives, np.inf)
    # Of those that differ by rounding only, the first: it comes from the search, well converged.
    tied = ends <= np.min(ends) * (1.0 + _SAME) + _SAME**2
    for i in np.lexsort([np.where(tied, -np.inf, ends)]):
        if not np.isfinite(ends[i]):
            break
        at = end.designs[i]
        found = defects(
            problem.mechanism(at),
            problem.task,
            _inputs(problem, at),
            least_transmission=problem.least_transmission,
            full_turn=problem.full_turn,
        )
        if found.sound:
            if i != np.argmin(ends):  # the optimum of all is that of another design
                end = finish(problem, z[[i]])
            return int(i), end, found
    raise ValueError(
        "no linkage keeps its conditions and is without defect once its loops are closed; loosen "
        "the conditions, or ask for more starts or finishes"
    )


def _inputs(problem: Problem, z: np.ndarray) -> np.ndarray:
    return np.asarray(problem.inputs(jnp.asarray(z)))[: problem.positions]


def _distinct(z: np.ndarray, errors: np.ndarray, most: int) -> list[int]:
    """The best few that are not the same drawing."""
    chosen: list[int] = []
    for k in np.argsort(errors):
        if len(chosen) == most or not np.isfinite(errors[k]):
            break
        if all(np.max(np.abs(z[k] - z[j])) > 1e-3 for j in chosen):
            chosen.append(int(k))
    return chosen


def _gradient_ratio(end: Optimum, z: np.ndarray, start: np.ndarray) -> float:
    """Largest derivative of the objective at z over that at a start; 1 if that does not close."""
    points = map(end.problem.point, end.problem.evaluation.unknowns.vector([z, start]))
    here, there = (np.max(np.abs(end.problem.objective(x)[1])) for x in points)
    ratio = float(here / there)
    return ratio if np.isfinite(ratio) else 1.0


def finish(problem: Problem, z: Any, **options: Any) -> Optimum:
    """Minimise the squared errors of a linkage that is followed from its drawing, from designs z.

    The loops are closed by `assemble` at every position, each found from the one before, so that
    branch and circuit are those of the drawing. Constraints are those of the problem.

    Args:
        problem: the synthesis.
        z: unknowns (b, nz) of designs that work, or None: those that `minimize` chooses.
        **options: of `minimize`.

    Returns:
        `Optimum` over the unknowns "design" (scaled numbers, see `Problem.unknowns`) and, with free
        timing, "steps" [rad, m]; its objective is in units of the task's size squared.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.design import Within
        >>> from jaxmbd.synthesis import FunctionGeneration, Problem, finish, massless_four_bar
        >>> crank = np.linspace(0.0, 0.2, 3)
        >>> task = FunctionGeneration("A", crank, output="D", values=0.9 * crank)
        >>> found = finish(Problem(massless_four_bar(), task, {"points/C/*": Within(0.5)}), None)
        >>> found.status
        'optimal'
    """
    constraints: dict[str, Bounded] = {"transmission": AtLeast("transmission", 0.0)}
    if z is not None:
        options["starts"] = np.clip(np.atleast_2d(z), *problem.limits)
    if np.size(problem.margins(jnp.zeros(len(problem.limits[0])))):
        constraints["kept"] = AtLeast("kept", 0.0)
    if problem.within:
        constraints["within"] = AtLeast("within", 0.0)
    if problem.least_margin is not None:
        constraints["dead_centre"] = AtLeast("dead_centre", problem.least_margin)
    try:
        return minimize(
            "error",
            None,
            _ranges(problem),
            observe=lambda values: outputs_of(problem, _joined(values)),
            constraints=constraints,
            **options,
        )
    except ValueError as error:
        names = problem.unknowns.names
        text = re.sub(rf"\b{_DESIGN}/(\d+)", lambda found: names[int(found[1])], str(error))
        raise ValueError(text) from error


def _joined(values: Any) -> Array:
    """The unknowns z (nz,) of the values by name."""
    parts = [jnp.asarray(values[n]) for n in (_DESIGN, _STEPS) if n in values]
    return jnp.concatenate(parts)


def _ranges(problem: Problem) -> dict[str, Any]:
    low, high = problem.limits
    n = len(problem.unknowns)
    ranges: dict[str, Any] = {_DESIGN: Between(low[:n], high[:n], start=np.zeros(n), scale=1.0)}
    if not problem.timed:
        even = np.full(len(low) - n, problem.span / (len(low) - n + 1))
        ranges[_STEPS] = Between(low[n:], high[n:], start=even, scale=1.0)
    return ranges


def outputs_of(problem: Problem, z: Array) -> dict[str, Array]:
    """Squared error, and what must not be negative, of a linkage whose loops are closed."""
    mech = problem.mechanism(z)
    inputs = problem.inputs(z)
    found = follow(mech, problem.task.input, inputs[: problem.positions])
    whole = course(mech, problem.task.input, problem.reach(z))
    error = problem.power_mean(mech, found.q)
    closed = jnp.all(found.closed) & whole.closed
    kept = {"kept": problem.margins(z)}
    if problem.least_margin is not None or problem.within:
        q = follow_stations(problem, mech, z).closest
    if problem.least_margin is not None:
        kept["dead_centre"] = _margins(problem, mech, inputs, q)
    if problem.within:
        at: Array = lax.map(lambda x: problem.kept(motion_state(mech, x[0]), x[1]), (q, inputs))
        kept["within"] = jnp.where(closed, at.reshape(-1), jnp.nan)
    return kept | {
        "error": jnp.where(closed, error, jnp.nan),
        "transmission": jnp.where(closed, whole.least - problem.least_transmission, jnp.nan),
    }


def _margins(problem: Problem, mech: Mechanism, inputs: Array, q: Array) -> Array:
    """Distances to the nearest dead centres [m] at all stations (n + k,)."""

    def at(x: Any) -> Array:
        return closure_margin(mech, {problem.task.input: x[0]}, guess=lax.stop_gradient(x[1]))

    return lax.map(at, (inputs, q))
