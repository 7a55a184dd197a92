"""What may be unknown: numbers of the model, held values of experiments, offsets and gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.design import Unknowns
from jaxmbd.identification.held_values import held_values
from jaxmbd.identification.measured import Record
from jaxmbd.model.mechanism import Mechanism
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
