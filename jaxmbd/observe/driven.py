"""Driven motions: coordinates prescribed in time, and the forces that this takes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd.analysis import (
    DrivenCourse,
    JointCoordinate,
    Key,
    driven_course,
    efforts_at,
    parse_drivers,
    parse_inputs,
    parse_known,
)
from jaxmbd.graph import Topology, topology
from jaxmbd.model import Mechanism, Sampled
from jaxmbd.observe.experiment import Axis, Curves, Experiment, Failure, named_observables
from jaxmbd.observe.snapshot import Snapshot


def constant_speed(speed: float, start: float = 0.0) -> tuple[Any, tuple[float, float]]:
    """A coordinate that changes at constant speed, as `known` of `Driven` takes it.

    Args:
        speed: rad/s or m/s.
        start: the coordinate at t = 0 [rad, m], from the drawn configuration.

    Example:
        >>> from jaxmbd.observe import constant_speed
        >>> function, numbers = constant_speed(10.0)
        >>> function(0.5, numbers)
        5.0
    """
    return _at_constant_speed, (float(start), float(speed))


def _at_constant_speed(t: Any, numbers: tuple[float, float]) -> Any:
    start, speed = numbers
    return start + speed * t


@dataclass(frozen=True)
class Driven(Experiment):
    """A motion that is prescribed, over a turn or a cycle, with the forces that it takes.

    Positions, speeds and accelerations follow from the driven coordinates alone, efforts and
    reactions from the equations of motion, links without mass among them (`simulate_driven`). As
    many coordinates are driven as there are degrees of freedom; what stays free fails with the
    status SINGULAR. The driving efforts act in all reactions; `HoldingEffort` of a driven
    coordinate (of an actuated joint, where there are such) is its torque or force, `DrivingPower`
    its power.

    Attributes:
        known: driven coordinate to its course, with the keys of `assemble`: a function of t, a pair
            (function, params) for ``function(t, params)``, such as `constant_speed`, a `Sampled`,
            or a number, which holds it [rad, m]. The mechanism's own drives are followed too, and
            are enough where they leave nothing free.
        t: times (n,) [s], at which all is observed.
        observe: name to observable or reduced observable.
        inputs: further efforts on joints, as of `simulate_driven`.
        actuated: joints whose efforts produce the motion, instead of efforts along the driven
            coordinates.
        dim: name of the axis.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.observe import Driven, HoldingEffort, Reaction, constant_speed
        >>> turn = Driven(
        ...     {"O": constant_speed(4.0 * np.pi)},
        ...     np.linspace(0.0, 0.5, 73),
        ...     {"torque": HoldingEffort("O"), "pin": Reaction("A", axis="norm").peak()},
        ... )
        >>> turn(mbd.zoo.slider_crank())["torque"].shape
        (73,)
    """

    known: Mapping[Any, Any]
    t: Any
    observe: Mapping[str, Any] = field(default_factory=dict)
    inputs: Any = None
    actuated: Any = None
    dim: str = "t"

    moving: ClassVar[bool] = True

    __hash__ = Experiment.__hash__

    def __post_init__(self) -> None:
        times = np.asarray(self.t, float)
        if times.ndim != 1 or len(times) < 2 or not np.all(np.diff(times) > 0.0):
            raise ValueError("Driven: t needs two or more times in ascending order, as (n,)")
        chosen = (self.actuated,) if isinstance(self.actuated, str) else self.actuated
        object.__setattr__(self, "t", tuple(times.tolist()))
        object.__setattr__(self, "known", {k: _plain(x) for k, x in (self.known or {}).items()})
        object.__setattr__(self, "observe", named_observables(self.observe))
        object.__setattr__(self, "actuated", None if chosen is None else tuple(chosen))

    @property
    def axis(self) -> str:
        return self.dim

    def axis_values(self, mech: Mechanism) -> Axis:
        return Axis(self.t, "s", "time")

    def kept(self) -> np.ndarray:
        return np.arange(len(self.t))

    def split(self) -> tuple[Any, Any]:
        params = {key: x[1] for key, x in self.known.items() if _has_params(x)}
        numbers = {"t": self.t, "params": [*params.values()]}
        blank = jax.tree_util.tree_map(lambda x: np.zeros(np.shape(x)).tolist(), [*params.values()])
        return self.with_numbers({"t": tuple(range(len(self.t))), "params": blank}), numbers

    def with_numbers(self, numbers: Any) -> Any:
        other, params = copy.copy(self), iter(numbers["params"])
        known = {k: (x[0], next(params)) if _has_params(x) else x for k, x in self.known.items()}
        object.__setattr__(other, "t", numbers["t"])
        object.__setattr__(other, "known", known)
        return other

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        drivers = parse_drivers(mech, self.known)
        return parse_known(mech, {d.key: d(jnp.asarray(self.t[0])) for d in drivers})[0]

    def own_problems(self, mech: Mechanism) -> list[str]:
        try:
            parse_drivers(mech, self.known)
            parse_inputs(mech, self.inputs)
        except ValueError as error:
            return [str(error)]
        if self.known or mech.structure.drives:
            return []
        return ["known is empty, and the mechanism has no drives; name what is driven"]

    def curves(self, mech: Mechanism, *, states: bool) -> Curves:
        every, times = self.observed(), jnp.asarray(self.t, mech.dtype)
        inputs: Any = parse_inputs(mech, self.inputs)
        course = driven_course(mech, self.known, times, self.inputs, self.actuated)
        run = course.motion

        def outputs(_: None, row: Any) -> tuple[None, list[Array]]:
            t, q, v, *rest = row
            given = efforts_at(inputs, t, q, v)
            at = _instant(mech, course, self.actuated, given, t, q, v, *rest)
            return None, [what.value(at) for what in every]

        rows = (run.t, run.q, run.v, run.vdot, run.lam, run.effort, run.tau)
        found = lax.scan(outputs, None, rows)[1]
        observed = dict(zip(every, found, strict=True))
        failure = Failure(course.status, course.opening, course.failed_at)
        return Curves(times, run.q, run.v, observed, self.judged(failure, times, observed))


def _has_params(x: Any) -> bool:
    """Whether a course is a pair (function, params)."""
    return isinstance(x, tuple) and len(x) == 2 and callable(x[0])


def _plain(x: Any) -> Any:
    """A number or a list of them as such; functions, pairs and samples as they are."""
    if callable(x) or isinstance(x, (str, tuple, Tracer, Sampled)):
        return x
    x = np.asarray(x, float)
    return float(x) if x.ndim == 0 else tuple(x.tolist())


def _instant(
    mech: Mechanism,
    course: DrivenCourse,
    actuated: tuple[Any, ...] | None,
    inputs: Any,
    t: Array,
    q: Array,
    v: Array,
    vdot: Array,
    lam: Array,
    effort: Array,
    tau: Array,
) -> Snapshot:
    """What observables see: efforts on joints as inputs, forces on points as held coordinates."""
    inputs, driving, held = dict(inputs or {}), {}, {}
    efforts: dict[str, Array] = {}
    if not course.keys:
        top = topology(mech)
        efforts = {name: tau[top.layout[name].v] for name in top.tree}
    for key, x in zip(course.keys, effort[: len(course.keys)], strict=True):
        if isinstance(key, JointCoordinate):
            driving[key] = x
            none = jnp.zeros(mech.joint(key.joint).nv, q.dtype)
            efforts[key.joint] = efforts.get(key.joint, none).at[key.index or 0].add(x)
        else:
            held[key] = x
    for name, x in efforts.items():
        inputs[name] = inputs.get(name, 0.0) + x
    return Snapshot(
        mech,
        q,
        v,
        t,
        inputs=inputs,
        keys=tuple(held),
        values=[jnp.zeros((), q.dtype)] * len(held),
        vdot=vdot,
        multipliers=jnp.concatenate([lam, *(x[None] for x in held.values())]),
        driving=driving,
        actuating={} if actuated is None else _actuating(topology(mech), actuated, tau),
    )


def _actuating(top: Topology, actuated: tuple[Any, ...], tau: Array) -> dict[Key, Array]:
    """Efforts by the coordinates of actuated joints; a ball has none."""
    found: dict[Key, Array] = {}
    for entry in actuated:
        name, index = entry if isinstance(entry, tuple) else (entry, None)
        q, v = top.layout[name].q, top.layout[name].v
        if q is not None and v is not None and q.stop - q.start == v.stop - v.start:
            for i in range(v.stop - v.start) if index is None else (index,):
                found[JointCoordinate(name, i)] = tau[v.start + i]
    return found
