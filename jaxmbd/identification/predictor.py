"""Predictions of measured series with their derivatives, of many samples in one kernel.

Unknown may be numbers of the model, those that experiments hold, offsets and gains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbd.analysis import PointCoordinate, PointTravel
from jaxmbd.design import Evaluation, Unknowns
from jaxmbd.identification.measured import Record
from jaxmbd.model import Mechanism, Sampled, coordinate_units
from jaxmbd.observe import Configuration, Experiment, Motion, Sweep
from jaxmbd.variables import Parametrization, Variable, Variables, mechanism_of


class ModelOf(NamedTuple):
    """A model as a function of values by path, others than its own ignored."""

    model: Any  # a `Mechanism` or a `Parametrization`
    foreign: frozenset[str]  # paths that are no numbers of the model

    def __call__(self, values: Mapping[str, Any]) -> Mechanism:
        """The mechanism of values by path."""
        own = {path: x for path, x in values.items() if path not in self.foreign}
        return mechanism_of(self.model, own)


def nominal_mechanism(model: Any) -> Mechanism:
    """The mechanism of a model as it is given."""
    if not isinstance(model, (Mechanism, Parametrization)):
        raise ValueError(f"the model must be a Mechanism or a Parametrization: {model!r}")
    mech = mechanism_of(model)
    if mech.dtype != np.float64:
        raise ValueError(
            "identification is computed in double precision, and this mechanism has float32 "
            "numbers: give it float64 ones, with jax.config.update('jax_enable_x64', True) before "
            "anything else"
        )
    return mech


def unknowns_of(model: Any, vary: Mapping[str, Any], known: list[Record]) -> Unknowns:
    """The unknowns as one vector.

    Beside the model's numbers there are, for `vary`, the `held_values` of the experiments (after
    the measurement's name and a slash, where it has one), and for each channel ``offset/CHANNEL``
    and ``gain/CHANNEL``: what is measured is ``gain · output + offset``.
    """
    mech = nominal_mechanism(model)
    extra: dict[str, Variable] = {}
    for record in known:
        for path, x in held_values(record.experiment, mech).items():
            extra[_held_path(record, path)] = x._replace(path=_held_path(record, path))
        for channel in record.channels:
            name, unit = channel.name, channel.about.unit
            for path, value, its in ((f"offset/{name}", 0.0, unit), (f"gain/{name}", 1.0, "")):
                extra[path] = Variable(path, np.asarray(value), its, f"{path[:4]} of {name}")
    own = dict(model.variables) if isinstance(model, Parametrization) else {}
    base = model.mechanism if isinstance(model, Parametrization) else model
    table = Variables([*own.values(), *(x for p, x in extra.items() if p not in own)])
    function = ModelOf(model, frozenset(extra.keys() - own.keys()))
    return Unknowns.of(Parametrization(function, table, base), vary)


def _held_path(record: Record, path: str) -> str:
    """The path of a held value among several measurements."""
    return f"{record.name}/{path}" if record.name else path


_TEXTS = {
    "start": ("where {} starts", 0),
    "speeds": ("speed of {} at the start", 1),
    "inputs": ("effort on {}", 2),
    "known": ("where {} is held", 0),
}
"""Path's first part to text and index into the units of a coordinate, its speed and its effort."""


def held_values(experiment: Any, mech: Mechanism) -> dict[str, Variable]:
    """The single numbers that an experiment holds, by path.

    Of a `Motion` these are ``start/JOINT``, ``speeds/JOINT`` and ``inputs/JOINT``, of a
    `Configuration` or `Sweep` ``known/JOINT``; ``JOINT/i`` where one coordinate of a joint is held,
    and ``BODY/POINT/z`` for a `PointCoordinate`, ``BODY/POINT/dz`` for a `PointTravel`.
    """
    found = {}
    for kind, held in _held(experiment).items():
        text, which = _TEXTS[kind]
        for key, value in held.items():
            if not isinstance(value, (tuple, Sampled)):
                path = f"{kind}/{_name(key)}"
                found[path] = Variable(path, value, _units(mech, key)[which], text.format(key))
    return found


def with_held(experiment: Any, values: Mapping[str, Any]) -> Any:
    """The experiment with some of these numbers replaced, which may be traced."""
    new = {
        kind: {key: values.get(f"{kind}/{_name(key)}", x) for key, x in held.items()}
        for kind, held in _held(experiment).items()
    }
    if not isinstance(experiment, Motion):
        return replace(experiment, known=new["known"]) if new else experiment
    inputs = new.get("inputs", experiment.inputs)
    start = replace(experiment.start, known=new["start"])
    return replace(experiment, start=start, speeds=new["speeds"], inputs=inputs)


def _held(experiment: Any) -> dict[str, Mapping[Any, Any]]:
    if isinstance(experiment, Motion):
        found = {"start": experiment.start.known, "speeds": experiment.speeds}
        if isinstance(experiment.inputs, Mapping):
            found["inputs"] = experiment.inputs
        return found
    return {"known": experiment.known} if isinstance(experiment, (Configuration, Sweep)) else {}


def _name(key: Any) -> str:
    if isinstance(key, PointTravel):
        return f"{key.body}/{key.point}/d{key.axis}"
    return key if isinstance(key, str) else "/".join(map(str, key))


def _units(mech: Mechanism, key: Any) -> tuple[str, str, str]:
    if isinstance(key, (PointCoordinate, PointTravel)):
        return "m", "m/s", "N"
    joint, index = key if isinstance(key, tuple) else (key, 0)
    return coordinate_units({joint: mech.joint(joint)}, joint, index)


class Prediction(NamedTuple):
    """What is predicted of all measurements, one after the other."""

    y: np.ndarray  # series (count, N), NaN where a measurement's model fails
    jacobian: np.ndarray  # ∂y/∂x (count, N, n) with respect to the scaled unknowns


class Predictor:
    """The predictions of all measurements, as a function of the scaled unknowns x (count, n).

    Measurements whose experiments differ only in the numbers they hold are cases of one kernel.

    Attributes:
        unknowns: what x stands for.
        mechanism: the model as it is given.
        records: the measurements.
        evaluations: one for each kind of measurement, and the places of these among the records.
    """

    def __init__(self, unknowns: Unknowns, mech: Mechanism, known: list[Record]):
        self.unknowns, self.mechanism, self.records = unknowns, mech, known
        kinds: list[tuple[Any, list[int]]] = []
        for i, record in enumerate(known):
            held = dict.fromkeys(held_values(record.experiment, mech), 0.0)
            blank = with_held(record.experiment, held)
            kind = blank, tuple(held), tuple(c.name for c in record.channels)
            alike = next((its for other, its in kinds if other == kind), None)
            if alike is None:
                kinds.append((kind, alike := []))
            alike.append(i)
        self.evaluations = [(self._evaluation(kind, its), its) for kind, its in kinds]

    def _evaluation(self, kind: Any, its: list[int]) -> Evaluation:
        """The channels ``gain · output + offset`` of measurements that are alike."""
        blank, held, names = kind
        n, rows = len(names), [self._numbers(self.records[i]) for i in its]

        def shown(values: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
            every = [jnp.stack([values.get(p, jnp.asarray(x)) for p, x in r.items()]) for r in rows]
            numbers = case["record"] @ jnp.stack(every)
            gain, offset, hold = numbers[:n], numbers[n : 2 * n], numbers[2 * n :]
            experiment = with_held(blank, dict(zip(held, hold, strict=True)))
            seen = experiment.computed if isinstance(experiment, Experiment) else experiment
            found = seen(self.unknowns.base(values))
            return {name: gain[i] * found[name] + offset[i] for i, name in enumerate(names)}

        cases = {"record": np.eye(len(its))}
        return Evaluation(self.unknowns.bare(), {name: name for name in names}, shown, cases=cases)

    def _numbers(self, record: Record) -> dict[str, float]:
        """Gains, offsets and held values of a measurement by path, as they are given."""
        channels = [c.name for c in record.channels]
        sensors = {f"gain/{c}": 1.0 for c in channels} | {f"offset/{c}": 0.0 for c in channels}
        held = held_values(record.experiment, self.mechanism)
        return sensors | {_held_path(record, path): float(x.value) for path, x in held.items()}

    def __call__(self, x: Any) -> Prediction:
        """The predictions of the unknowns x (count, n)."""
        x, parts = np.atleast_2d(np.asarray(x, np.float64)), {}
        for evaluation, its in self.evaluations:
            y, jacobian = evaluation.jacobians(x)
            both = np.concatenate([y[:, None], np.moveaxis(jacobian, 2, 1)], axis=1)
            parts |= dict(zip(its, np.split(both, len(its), axis=2), strict=True))
        found = [record.resampled(parts[i]) for i, record in enumerate(self.records)]
        whole = np.concatenate(found, axis=2)
        return Prediction(whole[:, 0], np.moveaxis(whole[:, 1:], 1, 2))
