"""What may be unknown: numbers of the model, held values of experiments, offsets and gains.

Numbers that an experiment holds, as its initial state, which may be unknown too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.analysis import PointCoordinate, PointTravel
from jaxmbd.design import Unknowns
from jaxmbd.identification.measured import Record
from jaxmbd.model import Mechanism, coordinate_units
from jaxmbd.observe import Configuration, Motion, Sweep
from jaxmbd.variables import Parametrization, Variable, Variables, set_variables


class ModelOf(NamedTuple):
    """A model as a function of values by path, others than its own ignored.

    Attributes:
        model: a `Mechanism` or a `Parametrization`.
        foreign: paths that are no numbers of the model.
    """

    model: Any
    foreign: frozenset[str]

    def __call__(self, values: Mapping[str, Any]) -> Mechanism:
        """The mechanism of values by path."""
        own = {path: x for path, x in values.items() if path not in self.foreign}
        if isinstance(self.model, Mechanism):
            return set_variables(self.model, own) if own else self.model
        return self.model(own)


def nominal_mechanism(model: Any) -> Mechanism:
    """The mechanism of a model as it is given."""
    if not isinstance(model, (Mechanism, Parametrization)):
        raise ValueError(f"the model must be a Mechanism or a Parametrization: {model!r}")
    mech = model if isinstance(model, Mechanism) else model(model.variables.nominal)
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
            extra[held_path(record, path)] = x._replace(path=held_path(record, path))
        for channel in record.channels:
            name, unit = channel.name, channel.about.unit
            for path, value, its in ((f"offset/{name}", 0.0, unit), (f"gain/{name}", 1.0, "")):
                extra[path] = Variable(path, np.asarray(value), its, f"{path[:4]} of {name}")
    own = dict(model.variables) if isinstance(model, Parametrization) else {}
    base = model.mechanism if isinstance(model, Parametrization) else model
    table = Variables([*own.values(), *(x for p, x in extra.items() if p not in own)])
    function = ModelOf(model, frozenset(extra.keys() - own.keys()))
    return Unknowns.of(Parametrization(function, table, base), vary)


def held_path(record: Record, path: str) -> str:
    """The path of a held value among several measurements."""
    return f"{record.name}/{path}" if record.name else path


class Linear(NamedTuple):
    """Values by path that are affine in x: ``start + slope @ x``."""

    paths: tuple[str, ...]
    start: np.ndarray
    slope: np.ndarray

    @classmethod
    def of(cls, unknowns: Unknowns, paths: Mapping[str, float]) -> Linear:
        """Of some paths, with the values of those that do not vary."""
        names, n = tuple(paths), len(unknowns)

        def at(x: np.ndarray) -> np.ndarray:
            values = unknowns.values(x)
            return np.array([float(values.get(p, paths[p])) for p in names])

        start = at(np.zeros(n))
        slope = [at(e) - start for e in np.eye(n)]
        return cls(names, start, np.array(slope).T.reshape(len(names), n))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The values (…, paths) at x (…, n)."""
        return self.start + x @ self.slope.T

    def moved(self) -> np.ndarray:
        """Which of the n unknowns move any of them."""
        return np.any(self.slope != 0.0, axis=0)


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

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.identification.unknown_numbers import held_values
        >>> from jaxmbd.observe import Coordinate, Motion, Configuration
        >>> start = Configuration({"hinge": 0.2})
        >>> swing = Motion(1.0, 1e-3, {"angle": Coordinate("hinge")}, start, {"hinge": 0.0})
        >>> {p: x.unit for p, x in held_values(swing, mbd.zoo.simple_pendulum()).items()}
        {'start/hinge': 'rad', 'speeds/hinge': 'rad/s'}
    """
    found = {}
    for kind, held in _held(experiment).items():
        text, which = _TEXTS[kind]
        for key, value in held.items():
            if not isinstance(value, tuple):
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
