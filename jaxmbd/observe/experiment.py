"""Experiments: what is done with a mechanism, and what is observed on the way.

An experiment is a function from a `Mechanism` to named arrays, for one sample. It can be traced,
mapped over a batch by `lanes.vmap`, differentiated and pickled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.analysis import Key, Opening, Status, opening, parse_known, places
from jaxmbd.lanes import compiled, host_jit
from jaxmbd.model import Mechanism, Sampled
from jaxmbd.observe.observable import OVER_ALL, Observable, Output, Reduced, described
from jaxmbd.plumbing import outline, refuse

REASONS: tuple[str, ...] = ("open_joint", "open_distance", "failed_at")
"""Outputs that explain a failure."""


def status_text(status: Any) -> str:
    """A `Status` number in words, such as "not assembled"."""
    known = {int(s): s.name.lower().replace("_", " ") for s in Status}
    return known.get(int(status), f"with status {int(status)}")


def stays_open(outputs: Mapping[str, Output], found: Mapping[str, Any]) -> str:
    """Which joint of a failed sample stays open and how far; empty where it has no such one.

    Args:
        outputs: what is declared of them, by name.
        found: the sample's values of `REASONS`.
    """
    names = outputs[REASONS[0]].flags if REASONS[0] in outputs else ()
    place = int(found[REASONS[0]]) if names else -1
    if not 0 <= place < len(names):
        return ""
    return f"joint '{names[place]}' stays open by {float(found[REASONS[1]]):.3g} m or rad"


class Axis(NamedTuple):
    """The coordinate of a dimension.

    Attributes:
        values: (n,) numbers or texts.
        unit: SI unit.
        text: what it is.

    Example:
        >>> from jaxmbd.observe import Axis
        >>> Axis((-0.06, 0.0, 0.06), "m", "wheel travel").unit
        'm'
    """

    values: Any
    unit: str = ""
    text: str = ""


XYZ = Axis(("x", "y", "z"), "", "component, world axes")
"""The coordinate of the dimension ``"axis"`` of vectors."""


class Declaration(NamedTuple):
    """What an experiment yields for a mechanism: `outputs` and the `coords` of their dimensions.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Sweep, Toe
        >>> height = mbd.PointTravel("upright", "wheel_centre", "z")
        >>> bump = Sweep({height: [0.0, 0.05]}, {"toe": Toe("upright")})
        >>> bump.declare(mbd.zoo.multi_link()).outputs["toe"].unit
        'rad'
    """

    outputs: dict[str, Output]
    coords: dict[str, Axis]


class Failure(NamedTuple):
    """How an experiment ended.

    Attributes:
        status: the first `Status` that is not OK.
        opening: what stayed open.
        at: the value of the experiment's axis where it failed; NaN if it did not.
    """

    status: Array
    opening: Opening
    at: Array


class Curves(NamedTuple):
    """An experiment's whole course.

    Attributes:
        x: values of the axis (n,), as travels or times.
        q, v: coordinates (n, nq) and speeds (n, nv).
        observed: observable to its curve (n, …).
        failure: how it ended.
    """

    x: Array
    q: Array
    v: Array
    observed: dict[Observable, Array]
    failure: Failure


class Trajectory(NamedTuple):
    """An experiment's course for one mechanism, to look at.

    Attributes:
        axis: name of the axis.
        x: its values (n,).
        q, v: coordinates (n, nq) and speeds (n, nv); NaN where they failed.
        curves: each output's observable over the whole axis, by the output's name.
        status: a `Status` number.
        held_keys: at rest, what is held; None in motion.
        experiment: that it is the course of.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Coordinate, Sweep
        >>> turn = Sweep({"crank": [0.0, 0.1, 0.2]}, {"rocker": Coordinate("rocker")})
        >>> course = turn.trajectory(mbd.zoo.rssr())
        >>> course.axis, course.curves["rocker"].shape
        ('crank', (3,))
    """

    axis: str
    x: np.ndarray
    q: np.ndarray
    v: np.ndarray
    curves: dict[str, np.ndarray]
    status: int
    held_keys: tuple[Key, ...] | None = None
    experiment: Experiment | None = None

    __str__ = outline


def named_observables(observe: Any) -> dict[str, Any]:
    """The field `observe` of an experiment.

    Raises:
        ValueError: it is no dictionary.
    """
    if not isinstance(observe, Mapping):
        raise ValueError(f"observe= is {observe!r}; name what is observed: {{'a name': …}}")
    return dict(observe)


class Experiment:
    """Base of all experiments: frozen dataclasses with the field `observe`.

    Their results are the outputs named in `observe`, NaN where the sample fails, with `status` (a
    `Status` number) and why it failed: `open_joint` (index into the flags of its declaration, −1 if
    none), `open_distance` [m or rad] and `failed_at`, the value of the axis.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Coordinate, Experiment, Configuration
        >>> drawn = Configuration({}, {"crank": Coordinate("crank")})
        >>> isinstance(drawn, Experiment), float(drawn(mbd.zoo.rssr())["crank"])
        (True, 0.0)
    """

    observe: Mapping[str, Any]

    has_axis: ClassVar[bool] = True
    """Whether observables that are not reduced are curves."""

    moving: ClassVar[bool] = False
    """Whether the mechanism moves by its dynamics, instead of being at rest in each place."""

    @property
    def axis(self) -> str:
        """Name of the dimension of the curves."""
        raise TypeError(f"{type(self).__name__} has no axis")

    def axis_values(self, mech: Mechanism) -> Axis:
        """The axis of the curves that are kept."""
        raise TypeError(f"{type(self).__name__} has no axis")

    def kept(self) -> np.ndarray:
        """Indices of the kept points of curves."""
        raise TypeError(f"{type(self).__name__} keeps nothing")

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        """The held coordinates."""
        return ()

    def curves(self, mech: Mechanism, *, states: bool) -> Curves:
        """The whole course; where `states` is false, q and v may be left out."""
        raise TypeError(f"{type(self).__name__} defines no course")

    def own_problems(self, mech: Mechanism) -> list[str]:
        """Mistakes that are not in `observe`."""
        return []

    def warn(self, mech: Mechanism) -> None:
        """Warn of what is hardly meant, though it can be computed; by default of nothing."""

    def __call__(self, mech: Mechanism) -> dict[str, Array]:
        """All outputs for one mechanism; failures are data, also outside `jit`. Calls `warn`."""
        self.warn(mech)
        return called(self, mech)

    def computed(self, mech: Mechanism) -> dict[str, Array]:
        """The same while tracing."""
        course = self.curves(mech, states=False)
        status, opened, at = course.failure
        ok = status == Status.OK
        kept, found = self.kept(), {}
        for name, what in self.observe.items():
            if isinstance(what, Reduced):
                x = what.value(course.x, course.observed[what.observable])
            else:
                x = course.observed[what]
                x = x if len(kept) == x.shape[0] else x[kept]
                x = x if self.has_axis else x[0]
            found[name] = jnp.where(ok, x, jnp.nan)
        found["status"] = status.astype(jnp.int32)
        return found | dict(zip(REASONS, (*opened, at), strict=True))

    def observed(self) -> tuple[Observable, ...]:
        """All that is evaluated along the way, each once."""
        every = (w.observable if isinstance(w, Reduced) else w for w in self.observe.values())
        return tuple(dict.fromkeys(every))

    def judged(
        self,
        failure: Failure,
        x: Array,
        observed: Mapping[Observable, Array],
        undetermined: Any = False,
    ) -> Failure:
        """The failure of a course, which what is observed fails too where it is not a number.

        Of an observable that is `partial` only those fail that are reduced over all the curve.

        Args:
            failure: how the course itself ended.
            x: values of the axis (n,).
            observed: curves (n, …).
            undetermined: (n,), whether balance does not determine the reactions: SINGULAR, not
                NON_FINITE.
        """
        reduced = [w for w in self.observe.values() if isinstance(w, Reduced)]
        whole = {w.observable for w in reduced if w.how in OVER_ALL}
        missing = jnp.zeros(x.shape, bool)
        for what, y in observed.items():
            if not what.partial or what in whole:
                missing = missing | jnp.any(jnp.isnan(jnp.reshape(y, (x.shape[0], -1))), axis=1)
        first = jnp.argmax(missing)
        undetermined = jnp.broadcast_to(jnp.asarray(undetermined), x.shape)
        kind = jnp.where(undetermined[first], Status.SINGULAR, Status.NON_FINITE)
        fails = (failure.status == Status.OK) & jnp.any(missing)
        status = jnp.where(fails, kind, failure.status).astype(jnp.int32)
        return Failure(status, failure.opening, jnp.where(fails, x[first], failure.at))

    def declare(self, mech: Mechanism) -> Declaration:
        """Outputs and coordinates, as they are for a mechanism of this topology."""
        axis = self.axis_values(mech)
        outputs = {}
        for name, what in self.observe.items():
            if isinstance(what, Reduced):
                outputs[name] = what.about(mech, self.axis, axis.unit)
            else:
                about = what.about(mech)
                along = (self.axis,) if self.has_axis else ()
                outputs[name] = about._replace(dims=(*along, *about.dims))
        coords = {self.axis: axis} if any(self.axis in o.dims for o in outputs.values()) else {}
        if any("axis" in o.dims for o in outputs.values()):
            coords["axis"] = XYZ
        kinds = tuple(map(status_text, Status))
        outputs["status"] = Output("", "outcome, 0 where all went well", (), "status", kinds)
        where = f"{self.axis} at which the sample failed" if self.has_axis else "0 if it failed"
        reasons = (
            Output("", "what stayed open", (), "reason", places(mech, self.keys(mech))),
            Output("", "how far it is open, in m or rad", (), "reason"),
            Output(axis.unit, where, (), "reason"),
        )
        return Declaration(outputs | dict(zip(REASONS, reasons, strict=True)), coords)

    def problems(self, mech: Mechanism) -> list[str]:
        """All mistakes of the experiment for this mechanism, each with its remedy."""
        found = list(self.own_problems(mech))
        if not self.observe:
            found.append("observe is empty; name at least one output")
        for name, what in self.observe.items():
            if name in ("status", *REASONS):
                found.append(f"every experiment has an output {name!r} of its own; choose another")
            if not isinstance(what, (Observable, Reduced)):
                found.append(f"{name!r}: {what!r} is no observable of jaxmbd.observe")
                continue
            found += [f"{name!r}: {text}" for text in what.problems(mech)]
        return found or self._places_problems(mech)

    def _places_problems(self, mech: Mechanism) -> list[str]:
        """Reductions at places that the axis does not reach, or that it passes twice."""
        if not self.has_axis:
            return []
        x = self.axis_values(mech).values
        reduced = {n: w for n, w in self.observe.items() if isinstance(w, Reduced)}
        return [f"{n!r}: {t}" for n, w in reduced.items() for t in w.place_problems(self.axis, x)]

    def check(self, mech: Mechanism) -> None:
        """Raise a ValueError with all problems."""
        refuse(type(self).__name__, self.problems(mech))

    def trajectory(self, mech: Mechanism) -> Trajectory:
        """The whole course for one mechanism, with states and all points of the curves.

        Raises:
            ValueError: mistakes of the experiment for this mechanism, all of them; that it observes
                nothing is none.
        """
        found = self.problems(mech) if self.observe else self.own_problems(mech)
        refuse(type(self).__name__, found)
        course = _compiled("course", *self.split(), mech)
        x, q, v, observed, status = jax.tree_util.tree_map(np.asarray, course)
        every = self.observed()
        curves = {
            name: observed[every.index(w.observable if isinstance(w, Reduced) else w)]
            for name, w in self.observe.items()
        }
        held = None if self.moving else self.keys(mech)
        return Trajectory(self.axis, x, q, v, curves, int(status), held, self)

    def course(self, mech: Mechanism) -> Any:
        """What `trajectory` shows, while tracing."""
        course = self.curves(mech, states=True)
        observed = [course.observed[what] for what in self.observed()]
        return course.x, course.q, course.v, observed, course.failure.status

    def split(self) -> tuple[Any, Any]:
        """Its structure, an experiment too, and the numbers that compiled functions take as data.

        Experiments of one structure share a program. `with_numbers` puts numbers back.
        """
        return self, ()

    def with_numbers(self, numbers: Any) -> Any:
        """An experiment of this structure with other numbers, which may be traced."""
        return self

    def describe(self) -> dict[str, Any]:
        """JSON values that determine it."""
        return described(self)

    def __hash__(self) -> int:
        return hash(str(self.describe()))


def called(experiment: Any, mech: Mechanism) -> dict[str, Array]:
    """The outputs of an experiment, compiled where nothing is traced yet.

    Raises:
        ValueError: the experiment does not fit the mechanism, which is asked where it cannot run.
    """
    if _is_traced(mech):
        return experiment.computed(mech)
    structure, numbers = experiment.split()
    if _is_traced(numbers):
        return experiment.computed(mech)
    try:
        return _compiled("computed", structure, numbers, mech)
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError):
        experiment.check(mech)  # which names what is wrong
        raise


def _is_traced(x: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree_util.tree_leaves(x))


@host_jit
def _compiled(method: str, experiment: Any, numbers: Any, mech: Mechanism) -> Any:
    def run(numbers: Any, mech: Mechanism) -> Any:
        return getattr(experiment.with_numbers(numbers), method)(mech)

    return compiled("auto", run, numbers, mech)


def frozen_values(known: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """Held coordinates with numbers or tuples of numbers; traced ones and samples as they are."""

    def plain(x: Any) -> Any:
        if isinstance(x, (Tracer, Sampled)):
            return x
        x = np.asarray(x, float)
        return float(x) if x.ndim == 0 else tuple(x.tolist())

    return {key: plain(value) for key, value in (known or {}).items()}


def split_fields(experiment: Any, *fields: str) -> tuple[Any, list[list[Any]]]:
    """An experiment with zeros for the values of some dictionaries of numbers, and the values."""
    values = [
        [x if isinstance(x, Tracer) else np.asarray(x) for x in getattr(experiment, name).values()]
        for name in fields
    ]
    blank = [[np.zeros(np.shape(x)).tolist() for x in some] for some in values]
    return with_fields(experiment, fields, blank), values


def with_fields(experiment: Any, fields: Sequence[str], values: Sequence[Sequence[Any]]) -> Any:
    """An experiment with other values in some of its dictionaries."""
    pairs = zip(fields, values, strict=True)
    return replace(
        experiment, **{n: dict(zip(getattr(experiment, n), x, strict=True)) for n, x in pairs}
    )


def known_problems(mech: Mechanism, known: Mapping[Any, Any]) -> list[str]:
    """What `assemble` would refuse."""
    try:
        parse_known(mech, known)
    except ValueError as error:
        return [str(error)]
    return []


def settled_failure(
    mech: Mechanism,
    keys: tuple[Key, ...],
    values: list[Array],
    status: Array,
    closest: Array,
    at: Any,
) -> Failure:
    """A failure with what stayed open at the closest configuration, if it did not assemble."""
    opened = opening(keys, mech, values, 0.0, closest)
    open_ = status == Status.NOT_ASSEMBLED
    place = jnp.where(open_, opened.place, -1)
    distance = jnp.where(open_, opened.distance, jnp.nan)
    at = jnp.where(status == Status.OK, jnp.nan, jnp.asarray(at, distance.dtype))
    return Failure(status, Opening(place, distance), at)


class Together:
    """Several experiments as one: a sample fails with the first of them that fails.

    Args:
        experiments: a list, whose outputs must have different names; or name to experiment, with
            which the outputs and axes are prefixed (``"bump/toe"`` over ``"bump.travel"``).

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Coordinate, Configuration, Together
        >>> at = lambda x: Configuration({"crank": x}, {"rocker": Coordinate("rocker")})
        >>> both = Together({"near": at(0.1), "far": at(1.0)})
        >>> "near/rocker" in both.declare(mbd.zoo.rssr()).outputs
        True
    """

    def __init__(self, experiments: Mapping[str, Experiment] | list[Experiment] | Any):
        if isinstance(experiments, Mapping):
            self.experiments = dict(experiments)
        else:
            self.experiments = {str(i): x for i, x in enumerate(experiments)}
        self.named = isinstance(experiments, Mapping)

    def _renamed(self, experiment: str, name: str) -> str:
        return f"{experiment}/{name}" if self.named else name

    def _axis(self, experiment: str, name: str) -> str:
        return f"{experiment}.{name}" if self.named else name

    def __call__(self, mech: Mechanism) -> dict[str, Array]:
        """All outputs, NaN where any experiment fails; warns of what the experiments warn of."""
        self.warn(mech)
        return called(self, mech)

    def computed(self, mech: Mechanism) -> dict[str, Array]:
        """The same while tracing."""
        found: dict[str, Array] = {}
        status = jnp.zeros((), jnp.int32)
        reasons: list[Any] = [jnp.full((), -1, jnp.int32), *[jnp.full((), jnp.nan, mech.dtype)] * 2]
        shift = 0
        for key, experiment in self.experiments.items():
            outputs = experiment(mech)
            first = (status == Status.OK) & (outputs["status"] != Status.OK)
            place = outputs[REASONS[0]]
            now = [jnp.where(place < 0, place, place + shift), *(outputs[n] for n in REASONS[1:])]
            reasons = [jnp.where(first, x, y) for x, y in zip(now, reasons, strict=True)]
            status = jnp.where(first, outputs["status"], status)
            shift += len(experiment.declare(mech).outputs[REASONS[0]].flags)
            hidden = ("status", *REASONS)
            found |= {self._renamed(key, n): x for n, x in outputs.items() if n not in hidden}
        found = {n: jnp.where(status == Status.OK, x, jnp.nan) for n, x in found.items()}
        return {**found, "status": status, **dict(zip(REASONS, reasons, strict=True))}

    def warn(self, mech: Mechanism) -> None:
        """What the experiments warn of."""
        for experiment in self.experiments.values():
            experiment.warn(mech)

    def declare(self, mech: Mechanism) -> Declaration:
        """Outputs and coordinates of all experiments."""
        outputs: dict[str, Output] = {}
        coords: dict[str, Axis] = {}
        flags: list[str] = []
        units: set[str] = set()
        for key, experiment in self.experiments.items():
            its, axes = experiment.declare(mech)
            units.add(its[REASONS[2]].unit)
            names = {n: n if n == "axis" else self._axis(key, n) for n in axes}
            coords |= {names[n]: axis for n, axis in axes.items()}
            for name, about in its.items():
                if name == REASONS[0]:
                    prefix = f"{key}: " if self.named else ""
                    flags += [prefix + text for text in about.flags]
                whole = name == "status" or name in REASONS
                dims = tuple(names[d] for d in about.dims)
                outputs[name if whole else self._renamed(key, name)] = about._replace(dims=dims)
        for name in ("status", *REASONS):
            outputs[name] = outputs.pop(name)  # last
        outputs[REASONS[0]] = outputs[REASONS[0]]._replace(flags=tuple(flags))
        if len(units) > 1:
            where = "value of the axis at which the sample failed"
            outputs[REASONS[2]] = outputs[REASONS[2]]._replace(unit="", text=where)
        return Declaration(outputs, coords)

    def problems(self, mech: Mechanism) -> list[str]:
        """Mistakes of all experiments, and outputs or axes of one name."""
        found: list[str] = []
        outputs: set[str] = set()
        axes: dict[str, Any] = {}
        for key, experiment in self.experiments.items():
            found += [f"experiment {key}: {text}" for text in experiment.problems(mech)]
            for name in experiment.observe:
                if (name := self._renamed(key, name)) in outputs:
                    found.append(
                        f"two experiments have an output {name!r}; rename one, or give the "
                        "experiments names in a dictionary"
                    )
                outputs.add(name)
        if found:
            return found
        for key, experiment in self.experiments.items():
            axis, name = experiment.axis_values(mech), self._axis(key, experiment.axis)
            if axes.setdefault(name, axis.values) != axis.values:
                found.append(f"two experiments have an axis {name!r}; give one of them dim=")
        return found

    def check(self, mech: Mechanism) -> None:
        """Raise a ValueError with all problems."""
        refuse("experiments", self.problems(mech))

    def trajectory(self, mech: Mechanism) -> dict[str, Trajectory]:
        """The whole course of each experiment."""
        return {key: x.trajectory(mech) for key, x in self.experiments.items()}

    def split(self) -> tuple[Any, Any]:
        """As that of an `Experiment`."""
        parts = {key: x.split() for key, x in self.experiments.items()}
        return self._of({key: x for key, (x, _) in parts.items()}), [x for _, x in parts.values()]

    def with_numbers(self, numbers: Any) -> Any:
        """As that of an `Experiment`."""
        pairs = zip(self.experiments.items(), numbers, strict=True)
        return self._of({key: x.with_numbers(n) for (key, x), n in pairs})

    def _of(self, experiments: dict[str, Any]) -> Together:
        return Together(experiments if self.named else list(experiments.values()))

    def describe(self) -> dict[str, Any]:
        """JSON values that determine it."""
        parts = {key: x.describe() for key, x in self.experiments.items()}
        return {"type": "Together", "named": self.named, "experiments": parts}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Together) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(str(self.describe()))
