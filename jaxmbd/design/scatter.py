"""The scatter that a robust design lives with: the same samples about every design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbd import sampling
from jaxmbd.design.unknowns import Unknowns
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.variables import Parametrization, get_variables, in_si, set_variables, variables


@dataclass(frozen=True)
class Scatter:
    """Deviations of a model's numbers, drawn once and added to every design.

    A deviation is the draw about the model's own value minus that value; of distributions that are
    `relative` it is the ratio of both, by which the design's value is multiplied.

    Attributes:
        inputs: path or pattern to a distribution of `jaxmbd.sampling`, as in a study.
        samples: how many.
        seed: of the random numbers.
        design: which samples; `sampling.Sobol` by default.
        correlation: as in a study.

    Example:
        >>> from jaxmbd.design import Scatter
        >>> from jaxmbd.sampling import Normal
        >>> Scatter({"points/*": Normal(3e-4)}, samples=32).samples
        32
    """

    inputs: Mapping[str, Any]
    samples: int = 64
    seed: int = 0
    design: Any = None
    correlation: Any = None

    def drawn(self, model: Any, seed: int | None = None) -> dict[str, np.ndarray]:
        """Path to deviations or factors (samples, …).

        Raises:
            ValueError: unknown paths, or distributions that do not fit.
        """
        sampler = self._sampler(model, self.seed if seed is None else seed)
        draws, found = sampler.draw(0, sampler.count), {}
        for path, x in draws.items():
            nominal = sampler.nominal[path]
            found[path] = x / nominal if _multiplied(sampler, path) else x - nominal
        return found

    def factors(self, model: Any) -> frozenset[str]:
        """The paths whose draws are factors."""
        sampler = self._sampler(model, self.seed)
        return frozenset(path for path in sampler.scatter if _multiplied(sampler, path))

    def _sampler(self, model: Any, seed: int) -> sampling.Sampler:
        find = partial(variables, model) if isinstance(model, Mechanism) else model.find
        inputs: dict[str, Any] = {}
        for pattern, given in self.inputs.items():
            for path, variable in find(pattern).items():
                law = sampling.as_distribution(given)
                law = law.in_units(lambda text, x=variable: in_si(text, x.unit, x.path))
                inputs[path] = (variable.value, law)
        design = sampling.Sobol() if self.design is None else self.design
        sampler = sampling.Sampler(
            inputs, design, count=self.samples, seed=seed, correlation=self.correlation
        )
        if found := sampler.problems():
            raise ValueError("scatter:\n" + "\n".join(f"  - {x}" for x in found))
        return sampler


def _multiplied(sampler: sampling.Sampler, path: str) -> bool:
    """Whether the draws of a path are factors: a fraction of zero could not be one."""
    return bool(sampler.scatter[path].relative) and bool(np.all(sampler.nominal[path] != 0.0))


def deviated(
    unknowns: Unknowns, x: Any, deviations: Mapping[str, Any], factors: frozenset[str]
) -> Any:
    """The model of a vector x (n,) with one sample of deviations."""
    if not deviations:
        return unknowns.model(x)

    def with_deviations(now: Mapping[str, Any]) -> dict[str, Any]:
        return {
            path: now[path] * d if path in factors else now[path] + d
            for path, d in deviations.items()
        }

    if isinstance(unknowns.base, Mechanism):
        mech = unknowns.model(x)
        return set_variables(mech, with_deviations(get_variables(mech, deviations)))
    assert isinstance(unknowns.base, Parametrization)
    values = unknowns.values(x)
    for path in deviations:
        for part in [name for name in values if name.startswith(f"{path}/")]:
            _join(values, path, part, unknowns.base)
    nominal = {p: values[p] if p in values else unknowns.base.find(p)[p].value for p in deviations}
    return unknowns.base({**values, **with_deviations(nominal)})


def _join(values: dict[str, Any], path: str, part: str, base: Parametrization) -> None:
    """Put a component's value into the vector that it belongs to."""
    whole = base.find(path)[path]
    place = whole.components.index(part[len(path) + 1 :])
    vector = jnp.asarray(values.get(path, whole.value))
    values[path] = vector.at[place].set(values.pop(part))
