"""Setting a car up: changes of adjusters by which camber, toe, height and loads are as wanted.

With F(x) the targets' columns at the changes x of the adjusters [m], J = ∂F/∂x exactly, and y the
wanted values, each step goes to ``x = J⁺ (J x − F + y)``, J⁺ the pseudoinverse of J with rows of
length one: Newton's method where there are as many adjusters as targets, and otherwise the solution
whose changes are least, ``min x·x`` with ``F(x) = y`` (up to the curvature of F, which the steps
converge through). A step that does not assemble, or that comes no nearer, is halved. How near is
counted in metres of adjusters, each target's miss over the length of its row of J.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.analysis import Status
from jaxmbd.kinematics import mechanism_length
from jaxmbd.lanes import host_jit
from jaxmbd.model import Mechanism
from jaxmbd.numerics import tolerances
from jaxmbd.observe import Configuration, Experiment, Output, called, status_text, stays_open
from jaxmbd.plumbing import refuse, text_table, unknown
from jaxmbd.suspension.adjusters import Adjuster, adjusted, adjusted_roles, adjuster
from jaxmbd.suspension.axle_characteristics import AXLE_CHARACTERISTICS
from jaxmbd.suspension.axle_table import axle_sweep
from jaxmbd.suspension.carried_load import missing_load
from jaxmbd.suspension.corner import Corner, find_corner
from jaxmbd.suspension.corner_sweep import kinematics_sweep, of_mechanism
from jaxmbd.suspension.kinematics_table import number
from jaxmbd.suspension.motions import held_joints
from jaxmbd.suspension.rig import corner_pair
from jaxmbd.suspension.wheel_characteristics import CHARACTERISTICS, characteristics
from jaxmbd.variables import shown

_STEPS = 60
_LONGEST, _SHORTEST = 0.1, 1e-5
"""Steps, in lengths of the mechanism; a shorter one is not halved further."""
_OF_LOADS = {"wheel_travel", "heave", "left_load", "right_load", "axle_load", "load_transfer"}
"""Targets that ride on the springs' loads."""
_WITHOUT_EFFECT = 1e-10
"""Change of a target by one length of the mechanism, over its unit, below which there is none."""


@dataclass(frozen=True)
class Setup:
    """Changes of adjusters that meet targets; printed as two tables.

    Attributes:
        changes: of each adjuster by its name [m].
        turns: the same in turns, where `per_turn` is known.
        before: columns of the targets, and of what is observed beside them, without changes [SI].
        after: the same with the changes.
        jacobian: derivatives of the targets by the adjusters there (targets, adjusters) [SI/m].
        targets: wanted values [SI].
        about: unit and text of each column.
        mech: the adjusted mechanism.
        corners: its roles, as they were given: one `Corner`, or two of an axle.
        per_turn: change of each adjuster by one turn [m], where known.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> corner = mbd.zoo.double_wishbone_kinematic()
        >>> found = suspension.solve_setup(corner, targets={"toe": 0.002}, by={"rod": "trackrod"})
        >>> round(1e3 * found.changes["rod"], 3), round(found.after["toe"], 12)
        (-0.331, 0.002)
    """

    changes: dict[str, float]
    turns: dict[str, float]
    before: dict[str, float]
    after: dict[str, float]
    jacobian: np.ndarray
    targets: dict[str, float]
    about: dict[str, Output] = field(repr=False)
    mech: Mechanism = field(repr=False)
    corners: Any = field(repr=False)
    per_turn: dict[str, float] = field(repr=False)

    def effect(self, target: str, adjuster: str) -> float:
        """Derivative of a target's column by an adjuster [SI/m].

        Raises:
            ValueError: there is no such target or adjuster.
        """
        problems = [
            *unknown("target", target, self.targets),
            *unknown("adjuster", adjuster, self.changes),
        ]
        if problems:
            raise ValueError("; ".join(problems))
        i, j = list(self.targets).index(target), list(self.changes).index(adjuster)
        return float(self.jacobian[i, j])

    def __str__(self) -> str:
        names = list(self.changes)
        head = ["adjuster", "mm", "turns", "mm per turn"]
        rows = [
            [
                n,
                f"{1e3 * self.changes[n]:+.3f}",
                *((f"{self.turns[n]:+.2f}", number(1e3 * self.per_turn[n])) if n in self.turns
                  else ("", "")),
            ]
            for n in names
        ]  # fmt: skip
        units = {n: shown(about.unit) for n, about in self.about.items()}
        below = []
        for n, x in self.after.items():
            unit, factor = units[n]
            values = [self.before[n], x, self.targets.get(n)]
            cells = ["" if y is None else number(factor * y) for y in values]
            slopes = [""] * len(names)
            if n in self.targets:
                i = list(self.targets).index(n)
                slopes = [number(1e-3 * factor * y) for y in self.jacobian[i]]
            below.append([n, *cells, *slopes, unit])
        titles = ["column", "before", "after", "wanted", *(f"per mm of {n}" for n in names), ""]
        left = {0}
        return "\n\n".join(
            (text_table(head, rows, left, rule=False), text_table(titles, below, rule=False))
        )


def solve_setup(
    mech: Mechanism,
    corners: Corner | Sequence[Corner] | None = None,
    *,
    targets: Mapping[str, float],
    by: Mapping[str, Adjuster | str],
    observe: Sequence[str] = (),
    travel: float | None = 0.0,
    steer: float = 0.0,
    settle: bool | None = None,
) -> Setup:
    """Set a corner or an axle up: find the changes of adjusters that meet all targets together.

    Targets of a corner are columns of `CHARACTERISTICS`, those of an axle, which stands on its rig,
    of `AXLE_CHARACTERISTICS`: ``left_load`` and ``right_load`` are the wheel loads. With
    ``travel=None`` the wheel, or the road under both, comes to rest under springs and loads, and
    ``wheel_travel`` or ``heave`` is a target: the ride height sinks by what it rises.

    With more adjusters than targets their changes are the least in sum of squares.

    Args:
        mech: the corner, or the axle.
        corners: roles of a corner, or of the left and the right one of an axle; by default those of
            a corner of the zoo with its names.
        targets: column to its wanted value [SI].
        by: name to adjuster: `AdjustableLength`, `Shim`, or the name of a rod or spring.
        observe: further columns that are told before and after.
        travel: rise of the wheel centre from where it is drawn, of an axle of the road [m]; None
            lets it come to rest.
        steer: travel of the rack [m].
        settle: whether what is not held, as bushings are not, comes to rest; by default with
            ``travel=None``.

    Raises:
        ValueError: names or roles do not fit, there are fewer adjusters than targets, adjusters do
            not act on a target or act on several in the same way, or the targets are out of reach;
            the message has the nearest values.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> corner = mbd.zoo.double_wishbone_kinematic()
        >>> plate = suspension.Shim("upright", "upper_wishbone_outboard", (0.0, 1.0, 0.0))
        >>> rod = suspension.AdjustableLength("trackrod", per_turn=0.0015)
        >>> found = suspension.solve_setup(
        ...     corner, targets={"camber": np.deg2rad(-2.5), "toe": np.deg2rad(0.1)},
        ...     by={"camber plate": plate, "track rod": rod})
        >>> {name: round(1e3 * x, 3) for name, x in found.changes.items()}
        {'camber plate': 3.038, 'track rod': -1.095}
        >>> round(found.turns["track rod"], 3)
        -0.73
    """
    roles = find_corner(mech) if corners is None else corners
    adjusters = {name: adjuster(x) for name, x in by.items()}
    columns = tuple(dict.fromkeys([*targets, *observe]))
    _check(mech, roles, targets, adjusters, columns)
    all_of = tuple(adjusters.values())
    here = (
        adjusted_roles(roles, all_of)
        if isinstance(roles, Corner)
        else tuple(adjusted_roles(x, all_of) for x in corner_pair(roles))
    )
    drawn = adjusted(mech, dict.fromkeys(all_of, 0.0))
    resting = travel is None if settle is None else settle
    sweep = _experiment(drawn, here, columns, travel, steer, resting)
    problem = _Problem(mech, sweep, all_of, columns, len(targets))
    first = problem(np.zeros(len(all_of)))
    about = sweep.declare(drawn).outputs
    if first.status != Status.OK:
        raise ValueError(
            f"before anything is adjusted the position is not reached ({first.reason(about)}); "
            "give another travel= or steer=, or check the hardpoints"
        )
    names = list(targets), list(adjusters)
    wanted = np.array([float(x) for x in targets.values()])
    found = _Search(problem, names, wanted, about, float(mechanism_length(mech))).from_(first)
    changes = dict(zip(adjusters, found.x.tolist(), strict=True))
    pitch = {n: x.per_turn for n, x in adjusters.items() if x.per_turn is not None}
    return Setup(
        changes,
        {n: changes[n] / x for n, x in pitch.items()},
        dict(zip(columns, first.columns.tolist(), strict=True)),
        dict(zip(columns, found.columns.tolist(), strict=True)),
        found.slopes,
        dict(zip(targets, wanted.tolist(), strict=True)),
        {n: about[n] for n in columns},
        adjusted(mech, {what: changes[n] for n, what in adjusters.items()}),
        here,
        pitch,
    )


def _check(
    mech: Mechanism,
    roles: Any,
    targets: Mapping[str, float],
    adjusters: Mapping[str, Adjuster],
    columns: Sequence[str],
) -> None:
    """Raise a ValueError with what does not fit."""
    known = CHARACTERISTICS if isinstance(roles, Corner) else AXLE_CHARACTERISTICS
    found = [text for n in columns for text in unknown("column", n, known)]
    found += [
        f"{n!r} has three components; name one number"
        for n in columns
        if getattr(known.get(n), "vector", False)
    ]
    found += [
        f"target {n!r} is {x!r}; give a number" for n, x in targets.items() if not np.isfinite(x)
    ]
    found += [f"{n!r}: {text}" for n, x in adjusters.items() for text in x.problems(mech)]
    if len(set(adjusters.values())) < len(adjusters):
        found.append("two adjusters are the same; leave one out")
    if not targets:
        found.append("targets= is empty; name a column and its wanted value")
    if len(adjusters) < len(targets):
        found.append(
            f"{len(targets)} targets ({', '.join(targets)}) need as many adjusters, and by= has "
            f"{len(adjusters)}; add adjusters, or leave targets out (observe= tells them)"
        )
    refuse("solve_setup", found)


def _experiment(
    mech: Mechanism,
    roles: Any,
    columns: tuple[str, ...],
    travel: float | None,
    steer: float,
    settle: bool,
) -> Experiment:
    """The one position at which columns are seen."""
    if not isinstance(roles, Corner):
        sweep = axle_sweep(
            roles, roll=[0.0], heave=travel, steer=steer, observe=columns, settle=settle
        )
        sweep.check(mech)
        return sweep
    if travel is not None:
        options: Any = dict(observe=columns, gradients=(), settle=settle)
        sweep = kinematics_sweep(roles, travel=[travel], steer=steer, **options)
        return of_mechanism(sweep, mech)
    roles.check(mech)
    known = held_joints(mech, roles)
    if roles.slides(mech):
        known |= {roles.steering: steer}
    elif steer:
        raise ValueError("steer= moves a rack, Corner(steering=); this corner has none")
    if not settle:
        raise ValueError("travel=None lets the wheel come to rest: settle=True")
    rest = Configuration(known, characteristics(roles, columns), settle=True)
    rest.check(mech)
    return rest


class _Point(NamedTuple):
    """Columns at some changes x of the adjusters, and derivatives of the targets by them."""

    x: np.ndarray
    columns: np.ndarray
    slopes: np.ndarray
    status: Status
    found: Mapping[str, Any]

    def reason(self, about: Mapping[str, Output]) -> str:
        """Why it was not reached."""
        open_ = stays_open(about, self.found)
        return ", ".join(x for x in (status_text(self.status), open_) if x)


class _Problem(NamedTuple):
    """The columns as a function of the changes of the adjusters."""

    mech: Mechanism
    sweep: Experiment
    adjusters: tuple[Adjuster, ...]
    columns: tuple[str, ...]
    targets: int

    def __call__(self, x: np.ndarray) -> _Point:
        """Columns and derivatives, by one kernel."""
        given = jnp.asarray(x, self.mech.dtype)
        values, slopes, status, reasons = _compiled(
            *self.sweep.split(), self.adjusters, self.columns, self.mech, given
        )
        reasons = {n: np.asarray(y)[0] for n, y in reasons.items()}
        return _Point(
            np.asarray(x, float),
            np.asarray(values[0], float),
            np.asarray(slopes, float).T[: self.targets],
            Status(int(status[0])),
            reasons,
        )


@host_jit
def _compiled(
    sweep: Experiment,
    numbers: Any,
    adjusters: tuple[Adjuster, ...],
    columns: tuple[str, ...],
    mech: Mechanism,
    x: Array,
) -> tuple[Array, Array, Array, dict[str, Array]]:
    """Values, derivatives along each component of x, status and reasons, each with an axis."""

    def column(numbers: Any, mech: Any, x: Array, direction: Array) -> Any:
        def outputs(x: Array) -> tuple[Array, Any]:
            changes = {what: x[i] for i, what in enumerate(adjusters)}
            found = called(sweep.with_numbers(numbers), adjusted(mech, changes))
            reasons = {n: found[n] for n in ("open_joint", "open_distance")}
            return jnp.stack([jnp.ravel(found[n])[0] for n in columns]), (found["status"], reasons)

        value, rate, (status, reasons) = jax.jvp(outputs, (x,), (direction,), has_aux=True)
        return value, rate, status, reasons

    along = jnp.eye(x.shape[0], dtype=x.dtype)
    return lanes.vmap(column, in_axes=(None, None, None, 0))(numbers, mech, x, along)


class _Search(NamedTuple):
    """The search for the changes; see the module's text."""

    problem: _Problem
    names: tuple[list[str], list[str]]
    wanted: np.ndarray
    about: Mapping[str, Output]
    length: float

    def from_(self, at: _Point) -> _Point:
        """The point at which the targets are met."""
        self._judge(at)
        exact = tolerances.rounding(self.problem.mech.dtype, 64) * self.length
        near = tolerances.closing(self.problem.mech.dtype) * self.length
        for _ in range(_STEPS):
            rows = np.linalg.norm(at.slopes, axis=1)
            miss = self._miss(at)
            left = np.max(np.abs(miss) / rows)
            unit = at.slopes / rows[:, None]
            step = np.linalg.pinv(unit) @ (unit @ at.x - miss / rows) - at.x
            if np.max(np.abs(step)) <= exact:
                return at
            trial, last = self._stepped(at, step, rows, max(left, exact))
            if trial is None:
                if left <= near:
                    return at
                raise ValueError(self._out_of_reach(at, last))
            at = trial
        if np.max(np.abs(self._miss(at)) / np.linalg.norm(at.slopes, axis=1)) <= near:
            return at
        raise ValueError(self._out_of_reach(at, at))

    def _miss(self, at: _Point) -> np.ndarray:
        return at.columns[: len(self.wanted)] - self.wanted

    def _stepped(
        self, at: _Point, step: np.ndarray, rows: np.ndarray, most: float
    ) -> tuple[_Point | None, _Point]:
        """A point nearer to the targets; None and one beyond them, if there is none."""
        size, worst = np.max(np.abs(step)), at
        share = min(1.0, _LONGEST * self.length / size)
        while share == 1.0 or share * size > _SHORTEST * self.length:
            trial = self.problem(at.x + share * step)
            fine = trial.status == Status.OK and np.all(np.isfinite(trial.slopes))
            if fine and np.max(np.abs(self._miss(trial)) / rows) <= most and self._regular(trial):
                return trial, trial
            worst = worst if worst.status != Status.OK else trial
            share *= 0.5
        return None, worst

    def _regular(self, at: _Point) -> bool:
        rows = np.linalg.norm(at.slopes, axis=1)
        return bool(np.all(rows > 0.0)) and self._dependent(at.slopes / rows[:, None]) is None

    def _dependent(self, unit: np.ndarray) -> np.ndarray | None:
        """The combination of rows that is nothing, if there is one."""
        u, sizes, _ = np.linalg.svd(unit)
        rank = tolerances.rank(self.problem.mech.dtype)
        return u[:, -1] if sizes[-1] <= rank * sizes[0] else None

    def _judge(self, at: _Point) -> None:
        """Raise a ValueError if the adjusters cannot meet targets at all."""
        targets, adjusters = self.names
        if not np.all(np.isfinite(at.slopes)):
            raise ValueError(
                "solve_setup: a target has no derivative by the adjusters where the car stands; "
                "it is in a singular position: give another travel= or steer="
            )
        sizes = np.array([self._size(n, at.columns[i]) for i, n in enumerate(targets)])
        effects = np.abs(at.slopes) * self.length / sizes[:, None] > _WITHOUT_EFFECT
        found = [
            f"the adjusters ({', '.join(adjusters)}) do not act on {targets[i]}; add one that does,"
            " or leave the target out"
            for i in np.flatnonzero(~effects.any(axis=1))
        ]
        found += [
            f"{adjusters[j]} acts on none of the targets ({', '.join(targets)}); leave it out"
            for j in np.flatnonzero(~effects.any(axis=0))
        ]
        if not found:
            rows = np.linalg.norm(at.slopes, axis=1)
            null = self._dependent(at.slopes / rows[:, None])
            if null is not None:
                some = [n for n, x in zip(targets, null, strict=True) if abs(x) > 1e-3]
                found.append(
                    f"the adjusters ({', '.join(adjusters)}) move {' and '.join(some)} together, "
                    "in a fixed proportion; add one that acts otherwise, or leave a target out"
                )
        refuse("solve_setup", found)

    def _size(self, name: str, value: float) -> float:
        """What a change of a column is compared with."""
        unit = self.about[name].unit
        known = {"rad": 1.0, "": 1.0, "m": self.length}
        target = self.wanted[self.names[0].index(name)]
        return known.get(unit, max(abs(value), abs(float(target)), np.finfo(float).tiny))

    def _out_of_reach(self, at: _Point, last: _Point) -> str:
        targets, adjusters = self.names
        nearest = []
        for n, x, y in zip(targets, at.columns, self.wanted, strict=False):
            unit, factor = shown(self.about[n].unit)
            nearest.append(f"{n} is {number(factor * x)} instead of {number(factor * y)} {unit}")
        turned = ", ".join(f"{n} {1e3 * x:+.3g} mm" for n, x in zip(adjusters, at.x, strict=True))
        how = "they have no further effect there"
        if last.status != Status.OK:
            how = f"beyond, the mechanism does not assemble ({last.reason(self.about)})"
        lost = missing_load(self.problem.mech) if _OF_LOADS & {*targets} else ""
        return (
            f"the targets are out of reach: at the nearest {'; '.join(nearest)} (with {turned}), "
            f"and {how}. Give targets within reach, or other adjusters{lost and '; ' + lost}"
        )
