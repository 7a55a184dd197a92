"""Several experiments with one mechanism, as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis import Status
from jaxmbd.model import Mechanism
from jaxmbd.observe.experiment import REASONS, Experiment, Trajectory, called
from jaxmbd.observe.outputs import Axis, Declaration, Output


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
        if found := self.problems(mech):
            raise ValueError("experiments:\n" + "\n".join(f"  - {p}" for p in found))

    def trajectory(self, mech: Mechanism) -> dict[str, Trajectory]:
        """The whole course of each experiment."""
        return {key: x.trajectory(mech) for key, x in self.experiments.items()}

    def describe(self) -> dict[str, Any]:
        """JSON values that determine it."""
        parts = {key: x.describe() for key, x in self.experiments.items()}
        return {"type": "Together", "named": self.named, "experiments": parts}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Together) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(str(self.describe()))
