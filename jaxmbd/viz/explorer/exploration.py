"""A design that is explored: its numbers, their history, kept variants, curves; without a page."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.design import Between, MovedTogether, Unknowns, Within
from jaxmbd.io import Imported, save
from jaxmbd.kinematics import mechanism_length
from jaxmbd.model import Mechanism
from jaxmbd.observe import Experiment
from jaxmbd.plumbing import hint, text_table
from jaxmbd.suspension import number
from jaxmbd.variables import (
    Parametrization,
    Variable,
    find_variables,
    mechanism_of,
    shown,
    variables,
)
from jaxmbd.viz.explorer.experiments import undriven, usual_experiment
from jaxmbd.viz.explorer.live_curves import GOALS, LiveCurves, Response, gradient
from jaxmbd.viz.scene import round_number

Ranges = Mapping[str, Within | Between | MovedTogether]
Vary = str | Iterable[str] | Ranges | None

_SHARE = 0.5
"""How much of itself a number may lose or gain, if it is no length."""
_SAME = 1e-12
_HALVINGS = 10


def ranges(model: Mechanism | Parametrization, vary: Vary = None) -> Ranges:
    """Ranges of the numbers that may move (`Exploration.of` says which).

    Lengths, among them the coordinates of points, move by about a tenth of the mechanism's length
    to either side, other numbers by half of themselves.
    """
    if isinstance(vary, Mapping):
        return dict(vary)
    mech = mechanism_of(model)
    width = round_number(0.1 * float(mechanism_length(mech)), (1.0, 2.0, 3.0, 5.0, 10.0))
    if vary is not None:
        patterns = [vary] if isinstance(vary, str) else list(vary)
        table = [x for p in patterns for x in find_variables(model, p).values()]
        return {x.path: _range(x, width) for x in table}
    found = [x for x in _usual(model) if np.size(x.value) and np.any(np.isfinite(x.value))]
    return {x.path: _range(x, width) for x in found if x.unit == "m" or np.all(x.value)}


def _usual(model: Mechanism | Parametrization) -> list[Variable]:
    """All points, then what acts on the motion; of a parametrisation its arguments."""
    if isinstance(model, Parametrization):
        return list(model.variables.values())
    every = list(variables(model).values())
    kinds = [x for x in every if x.path.startswith("points/")]
    kinds += [x for x in every if x.path.startswith("forces/") and np.ndim(x.value) == 0]
    return kinds + [x for x in every if x.path.endswith("/mass")]


def _range(x: Variable, width: float) -> Within:
    if x.unit == "m":
        return Within(width)
    return Within(_SHARE, relative=True) if np.all(x.value) else Within(1.0)


class Variant(NamedTuple):
    """A design that was kept: its numbers x (k,) as `Unknowns` has them, its curves (m, n) [SI]."""

    name: str
    x: np.ndarray
    curves: np.ndarray


class Change(NamedTuple):
    """A number that is not as it was: its path, before and after in SI units, and that unit."""

    path: str
    before: float
    after: float
    unit: str


class Exploration:
    """A design that is changed step by step, with its curves and which way they improve.

    `jaxmbd.viz.explore` shows it as a page; from the prompt it works without one.

    Args:
        live: numbers to curves; see `of`.
        drives: of the mechanism that was given, where the curves are of it without them.

    Attributes:
        live: the same.
        x: the numbers at hand (k,), zero as given, ±1 at their limits.
        curve: name of the curve that is to become better.
        goal: which way, one of `GOALS`.
        variants: what was kept.
        places: where what of a suspension is held is held (h,) [SI], as `live.held` names it.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import Exploration
        >>> bump = Exploration.of(mbd.zoo.multi_link(), vary="points/tierod_*")
        >>> bump.set("points/tierod_inboard/z", -0.115)
        >>> [change.path for change in bump.changes()], bump.undo(), bump.changes()
        (['points/tierod_inboard/z'], True, [])
    """

    def __init__(self, live: LiveCurves, drives: Mapping[str, Any] | None = None):
        self.live = live
        self._drives = dict(drives or {})
        self.x, self.places = np.zeros(len(live.unknowns)), live.places
        self.curve = next(iter(live.about))
        self.goal = next(iter(GOALS))
        self.variants: list[Variant] = []
        self._past: list[np.ndarray] = []
        self._future: list[np.ndarray] = []
        self._cache: dict[str, tuple[np.ndarray, Any]] = {}

    @classmethod
    def of(
        cls,
        model: Mechanism | Parametrization | Imported,
        experiment: Experiment | None = None,
        vary: Vary = None,
    ) -> Exploration:
        """The exploration of a model, as it is given.

        A corner whose drives would hold what the experiment moves is observed without them; they
        are in what is exported.

        Args:
            model: a mechanism, a parametrisation of one, or an imported model.
            experiment: what is observed, over an axis; by default wheel travel of a corner with
                names of the zoo, or else the first joint that can be moved.
            vary: paths or patterns of the numbers that may move, or path to a range of
                `jaxmbd.design`; by default all points, masses and numbers of force elements.

        Raises:
            ValueError: a pattern fits nothing, or the experiment does not fit the model.
        """
        stops = model.limits if isinstance(model, Imported) else None
        if isinstance(model, Imported):
            model = model.mechanism
        drives: Mapping[str, Any] = {}
        if isinstance(model, Mechanism) and model.structure.drives:
            free = undriven(model)
            if experiment is None or (experiment.problems(model) and not experiment.problems(free)):
                drives = {} if free is model else model.drives
                model = free
        if experiment is None:
            experiment = usual_experiment(mechanism_of(model), stops=stops)
        return cls(LiveCurves(Unknowns.of(model, ranges(model, vary)), experiment), drives)

    @property
    def names(self) -> tuple[str, ...]:
        """Paths of the numbers that may move."""
        return self.live.unknowns.names

    def index(self, path: str) -> int:
        """The place of a number.

        Raises:
            ValueError: no number that may move has this path.
        """
        if path not in self.names:
            raise ValueError(f"{path!r} is no number that may move; {hint(path, self.names)}")
        return self.names.index(path)

    @property
    def numbers(self) -> np.ndarray:
        """The numbers at hand (k,) in SI units."""
        return self.live.unknowns.numbers(self.x)

    def set(self, path: str, value: float, *, remember: bool = True) -> None:
        """Set one number, in its SI unit, within its limits.

        Args:
            path: of the number.
            value: in its SI unit.
            remember: whether `undo` comes back to what was before; not while a slider is dragged.
        """
        k, x = self.index(path), self.x.copy()
        one = self.live.unknowns
        lower, upper = one.limits
        x[k] = np.clip((value - one.start[k]) / one.scale[k], lower[k], upper[k])
        self.move(x, remember=remember)

    def move(self, x: np.ndarray, *, remember: bool = True) -> None:
        """Go to other numbers x (k,), which are kept within their limits."""
        x = np.clip(x, *self.live.unknowns.limits)
        if np.max(np.abs(x - self.x), initial=0.0) <= _SAME:
            return
        if remember:
            self._past.append(self.x)
            self._future.clear()
        self.x = x

    def undo(self) -> bool:
        """Go back to the numbers before the last change; False if there are none."""
        return self._exchange(self._past, self._future)

    def redo(self) -> bool:
        """Take back an `undo`; False if there is none."""
        return self._exchange(self._future, self._past)

    def _exchange(self, source: list[np.ndarray], target: list[np.ndarray]) -> bool:
        if not source:
            return False
        target.append(self.x)
        self.x = source.pop()
        return True

    def reset(self) -> None:
        """All numbers as they were given."""
        self.move(np.zeros_like(self.x))

    def _cached(self, what: str, compute: Any) -> Any:
        known, at = self._cache.get(what), np.concatenate([self.x, self.places])
        if known is None or not np.array_equal(known[0], at):
            known = self._cache[what] = (at, compute(self.x, self.places))
        return known[1]

    @property
    def response(self) -> Response:
        """The curves and coordinates of the design at hand."""
        return self._cached("response", self.live)

    @property
    def slopes(self) -> np.ndarray:
        """Derivatives (m, n, k) of the curves by the numbers x."""
        return self._cached("slopes", self.live.slopes)

    @property
    def given(self) -> Response:
        """The curves of the design as it was given."""
        known = self._cache.get("given")
        if known is None or not np.array_equal(known[0], self.places):
            found = self.live(np.zeros_like(self.x), self.places)
            known = self._cache["given"] = (self.places, found)
        return known[1]

    def hold(self, name: str, value: float) -> None:
        """Hold a place of the rig or the steering elsewhere: all curves are then those there.

        Args:
            name: "heave", "roll", "left", "right" or "steer", of `live.held`.
            value: in its SI unit, within its limits.

        Raises:
            ValueError: it is not held.
        """
        names = [x.name for x in self.live.held]
        if name not in names:
            raise ValueError(f"{name!r} is not held; {hint(name, names)}")
        k = names.index(name)
        far = self.live.held[k].far
        self.places = self.places.copy()
        self.places[k] = np.clip(value, -far, far)
        self.variants = [
            v._replace(curves=self.live(v.x, self.places).curves) for v in self.variants
        ]

    def improvement(self) -> tuple[float, np.ndarray]:
        """The goal's value of the chosen curve and its gradient (k,) by x; it is to fall."""
        return self._measured(self.response, self.slopes)

    def _measured(
        self, response: Response, slopes: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The goal's value of a response, and its gradient if there are slopes."""
        row = list(self.live.about).index(self.curve)
        other = self.variants[-1].curves[row] if self.variants else self.given.curves[row]
        y = response.curves[row]
        by = np.zeros((len(y), 0)) if slopes is None else slopes[row]
        return gradient(GOALS[self.goal], self.live.x, y, by, other)

    def choose(self, curve: str | None = None, goal: str | None = None) -> None:
        """Choose the curve that is to become better, and which way.

        Raises:
            ValueError: there is no such curve or goal.
        """
        for name, known in ((curve, self.live.about), (goal, GOALS)):
            if name is not None and name not in known:
                raise ValueError(f"there is no {name!r}; {hint(name, known)}")
        self.curve, self.goal = curve or self.curve, goal or self.goal

    def improve(self, paths: Iterable[str] | None = None, step: float = 0.1) -> bool:
        """Go downhill along the gradient: the longest of some steps by which the goal falls.

        Steps after which some places are not reached any more do not count.

        Args:
            paths: of the numbers that move; by default all.
            step: the longest step, of the number that moves farthest, in halves of its range.

        Returns:
            whether there was such a step.
        """
        value, slope = self.improvement()
        reached = self.response.reached
        one = self.live.unknowns
        free = np.isin(self.names, list(self.names if paths is None else paths))
        lower, upper = one.limits
        free &= np.where(slope > 0.0, self.x > lower + _SAME, self.x < upper - _SAME)
        way = np.where(free, -slope, 0.0)
        largest = np.max(np.abs(way), initial=0.0)
        for shorter in 0.5 ** np.arange(_HALVINGS) if largest > 0.0 else ():
            x = np.clip(self.x + shorter * step * way / largest, lower, upper)
            found = self.live(x, self.places)
            if np.all(found.reached[reached]) and self._measured(found)[0] < value:
                self.move(x)
                return True
        return False

    def arrows(self) -> dict[str, np.ndarray]:
        """Point to the direction (3,) in which the chosen curve improves.

        Its length is how much the goal falls for each metre; points without effect are left out. In
        a planar mechanism the third component is zero.
        """
        slope = -self.improvement()[1] / self.live.unknowns.scale
        found: dict[str, np.ndarray] = {}
        for name, value in zip(self.names, slope, strict=True):
            kind, _, rest = name.partition("/")
            point, _, axis = rest.rpartition("/")
            if kind == "points" and axis in ("x", "y", "z") and value != 0.0:
                found.setdefault(point, np.zeros(3))["xyz".index(axis)] = value
        return found

    def keep(self, name: str = "") -> Variant:
        """Keep the design at hand for comparison."""
        name = name or f"variant {len(self.variants) + 1}"
        self.variants.append(Variant(name, self.x, self.response.curves))
        return self.variants[-1]

    def restore(self, name: str) -> None:
        """Go to the numbers of a kept variant; of several with this name, the latest.

        Raises:
            ValueError: no variant of this name was kept.
        """
        found = {v.name: v.x for v in self.variants}
        if name not in found:
            raise ValueError(f"no {name!r} was kept; {hint(name, found)}")
        self.move(found[name])

    def changes(self) -> list[Change]:
        """The numbers that are not as they were given."""
        one = self.live.unknowns
        moved = np.flatnonzero(np.abs(self.x) > _SAME)
        rows = zip(self.names, one.start, self.numbers, one.units, strict=True)
        every = [Change(n, float(a), float(b), u) for n, a, b, u in rows]
        return [every[k] for k in moved]

    def table(self) -> str:
        """The changes as a table, in millimetres, degrees, N/mm."""
        rows = []
        for path, before, after, si in self.changes():
            unit, factor = shown(si)
            values = (factor * before, factor * after, factor * (after - before))
            rows.append([path, *map(number, values), unit])
        return text_table(["number", "before", "after", "change", ""], rows, rule=False)

    def mechanism(self) -> Mechanism:
        """The mechanism at hand, with the drives of the one that was given.

        Raises:
            ValueError: it is none, for example because two points of a link coincide.
        """
        mech = self.observed()
        return mech.replace(drives=self._drives) if self._drives else mech

    def observed(self) -> Mechanism:
        """The mechanism at hand as the curves are of it, whose coordinates are `response.q`.

        Raises:
            ValueError: it is none.
        """
        return self.live.unknowns.model(self.x)

    def pictured(self) -> Mechanism:
        """The same, of an axle on its rig: its coordinates are `response.q`."""
        return self.live.pictured(self.observed())

    def export(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the mechanism as JSON, and its changes beside it as CSV.

        Args:
            path: of the JSON file, to which ``.json`` is added if it is not there; the table has
                the same name with ``_changes.csv``.

        Returns:
            the files.
        """
        path = Path(path)
        if path.suffix.lower() != ".json":
            path = path.with_name(f"{path.name}.json")
        save(self.mechanism(), path)
        table = path.with_name(f"{path.stem}_changes.csv")
        with open(table, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["number", "unit", "before", "after", "change"])
            for x in self.changes():
                numbers = (x.before, x.after, x.after - x.before)
                writer.writerow([x.path, x.unit, *(repr(float(y)) for y in numbers)])
        return [path, table]
