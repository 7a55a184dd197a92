"""Experiments: what is done with a mechanism, and what is observed on the way.

An experiment is a function from a `Mechanism` to named arrays, for one sample. It can be traced,
mapped over a batch by `lanes.vmap`, differentiated and pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.analysis import Key, Opening, Status, opening, parse_known, places
from jaxmbd.lanes import compiled, host_jit
from jaxmbd.model import Mechanism
from jaxmbd.observe.observable import Observable, described
from jaxmbd.observe.outputs import XYZ, Axis, Declaration, Output
from jaxmbd.observe.reductions import OVER_ALL, Reduced

REASONS: tuple[str, ...] = ("open_joint", "open_distance", "failed_at")
"""Outputs that explain a failure."""


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
        """All outputs for one mechanism; failures are data, also outside `jit`."""
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
        kinds = tuple(s.name.lower().replace("_", " ") for s in Status)
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
        if found := self.problems(mech):
            raise ValueError(f"{type(self).__name__}:\n" + "\n".join(f"  - {p}" for p in found))

    def trajectory(self, mech: Mechanism) -> Trajectory:
        """The whole course for one mechanism, with states and all points of the curves."""
        course = jax.tree_util.tree_map(np.asarray, _traversed(self, mech))
        x, q, v, observed, status = course
        every = self.observed()
        curves = {
            name: observed[every.index(w.observable if isinstance(w, Reduced) else w)]
            for name, w in self.observe.items()
        }
        held = None if self.moving else self.keys(mech)
        return Trajectory(self.axis, x, q, v, curves, int(status), held)

    def course(self, mech: Mechanism) -> Any:
        """What `trajectory` shows, while tracing."""
        course = self.curves(mech, states=True)
        observed = [course.observed[what] for what in self.observed()]
        return course.x, course.q, course.v, observed, course.failure.status

    def describe(self) -> dict[str, Any]:
        """JSON values that determine it."""
        return described(self)

    def __hash__(self) -> int:
        return hash(str(self.describe()))


def called(experiment: Any, mech: Mechanism) -> dict[str, Array]:
    """The outputs of an experiment, compiled where nothing is traced yet."""
    if any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves(mech)):
        return experiment.computed(mech)
    return _computed(experiment, mech)


@host_jit
def _computed(experiment: Any, mech: Mechanism) -> dict[str, Array]:
    return compiled("auto", experiment.computed, mech)


@host_jit
def _traversed(experiment: Experiment, mech: Mechanism) -> Any:
    return compiled("auto", experiment.course, mech)


def frozen_values(known: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """Held coordinates with numbers or tuples of numbers; traced values stay as they are."""
    return {key: plain_number(value) for key, value in (known or {}).items()}


def plain_number(x: Any) -> Any:
    """A number, or a tuple of numbers, or what is traced."""
    if isinstance(x, Tracer):
        return x
    x = np.asarray(x, float)
    return float(x) if x.ndim == 0 else tuple(x.tolist())


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
