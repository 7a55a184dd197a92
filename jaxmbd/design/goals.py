"""Goals: what is minimised and bounded, as functions of what a design does, and over which scatter.

A `Statistic` is what is taken of a quantity that scatters: its mean, deviation, a quantile. The
samples are the same for all designs that are compared (common random numbers), so that each of
these is a smooth function of the design, or piecewise smooth, with an exact derivative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.errors import ConcretizationTypeError, TracerArrayConversionError

from jaxmbd import sampling
from jaxmbd.design.unknowns import Unknowns
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import hint, refuse
from jaxmbd.variables import Parametrization, find_variables, get_variables, in_si, set_variables


class Statistic(ABC):
    """A number of the samples of a quantity.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Mean, Statistic
        >>> isinstance(Mean(), Statistic)
        True
    """

    @abstractmethod
    def of(self, samples: Array) -> Array:
        """Of samples (s, …), over the first axis."""


@dataclass(frozen=True)
class Mean(Statistic):
    """The expectation, plus `deviations` standard deviations.

    Attributes:
        deviations: k of ``mean + k · std``, a common robust objective; negative for a lower limit.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Mean
        >>> Mean(2.0).of(jnp.array([0.0, 1.0, 2.0])).item()
        3.0
    """

    deviations: float = 0.0

    def of(self, samples: Array) -> Array:
        mean = jnp.mean(samples, axis=0)
        return mean if self.deviations == 0.0 else mean + self.deviations * Deviation().of(samples)


@dataclass(frozen=True)
class Deviation(Statistic):
    """The standard deviation (divided by s − 1).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Deviation
        >>> Deviation().of(jnp.array([0.0, 1.0, 2.0])).item()
        1.0
    """

    def of(self, samples: Array) -> Array:
        square = Variance().of(samples)
        moves = square > 0.0  # the root has no derivative at zero
        return jnp.where(moves, jnp.sqrt(jnp.where(moves, square, 1.0)), 0.0)


@dataclass(frozen=True)
class Variance(Statistic):
    """The variance (divided by s − 1).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Variance
        >>> Variance().of(jnp.array([0.0, 2.0])).item()
        2.0
    """

    def of(self, samples: Array) -> Array:
        if samples.shape[0] < 2:
            raise ValueError("a variance needs two samples at least")
        return jnp.var(samples, axis=0, ddof=1)


@dataclass(frozen=True)
class Quantile(Statistic):
    """The value below which a share of the samples lies, between samples linearly interpolated.

    Its derivative is that of the samples next to it: exact, and constant between the designs at
    which samples change places.

    Attributes:
        share: between 0 and 1; 1 is the worst case of the samples.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Quantile
        >>> Quantile(0.75).of(jnp.array([3.0, 1.0, 2.0])).item()
        2.5
    """

    share: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise ValueError(f"Quantile: the share {self.share} must be between 0 and 1")

    def of(self, samples: Array) -> Array:
        return jnp.quantile(samples, self.share, axis=0)


@dataclass(frozen=True)
class Tail(Statistic):
    """The mean of the worst share of the samples (superquantile, conditional value at risk).

    Smoother than `Quantile`, as it depends on all samples beyond it.

    Attributes:
        share: of the samples, between 0 and 1.
        smallest: whether the smallest are the worst, as for a lower limit; `AtLeast` sets it.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Tail
        >>> Tail(0.5).of(jnp.array([3.0, 1.0, 2.0, 0.0])).item()
        2.5
    """

    share: float
    smallest: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ValueError(f"Tail: the share {self.share} must be above 0, at most 1")

    def of(self, samples: Array) -> Array:
        count = max(1, round(self.share * samples.shape[0]))
        order = jnp.sort(samples, axis=0)
        worst = order[:count] if self.smallest else order[samples.shape[0] - count :]
        return jnp.mean(worst, axis=0)


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
        inputs: dict[str, Any] = {}
        for pattern, given in self.inputs.items():
            for path, variable in find_variables(model, pattern).items():
                law = sampling.as_distribution(given)
                law = law.in_units(lambda text, x=variable: in_si(text, x.unit, x.path))
                inputs[path] = (variable.value, law)
        design = sampling.Sobol() if self.design is None else self.design
        sampler = sampling.Sampler(
            inputs, design, count=self.samples, seed=seed, correlation=self.correlation
        )
        refuse("scatter", sampler.problems())
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


What = str | Callable[[Any], Any]
"""The name of an output, or a function of the subject: a mechanism, or what is observed of it."""


@dataclass(frozen=True)
class Bounded:
    """A quantity between two values. `AtMost`, `AtLeast`, `Equals` and `InRange` make such.

    Attributes:
        what: the name of an output, or a function of the subject; arrays are bounded element by
            element.
        lower, upper: in SI units; equal for an equality, infinite where there is no bound.
        over: with scatter, what is taken of the samples; by default their mean, which half of them
            may exceed.

    Example:
        >>> from jaxmbd.design import AtMost, Bounded
        >>> isinstance(AtMost("track", 0.015), Bounded), AtMost("track", 0.015).upper
        (True, array(0.015))
    """

    what: What
    lower: Any
    upper: Any
    over: Statistic | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise ValueError(f"a bound is a number in SI units, not {given!r}")
            object.__setattr__(self, name, np.asarray(given, np.float64))
        if not np.all(self.lower <= self.upper):
            raise ValueError(f"a bound from {self.lower.tolist()} to {self.upper.tolist()}")


def AtMost(what: What, limit: Any, *, over: Statistic | None = None) -> Bounded:
    """A quantity that must not exceed a limit.

    Example:
        >>> from jaxmbd.design import AtMost
        >>> AtMost("track_range", 2e-3).upper
        array(0.002)
    """
    return Bounded(what, -np.inf, limit, over)


def AtLeast(what: What, limit: Any, *, over: Statistic | None = None) -> Bounded:
    """A quantity that must not fall below a limit.

    Example:
        >>> from jaxmbd.design import AtLeast
        >>> AtLeast(lambda mech: mech.point("tierod_inboard")[2], -0.12).lower
        array(-0.12)
    """
    if isinstance(over, Tail):
        over = Tail(over.share, smallest=True)
    return Bounded(what, limit, np.inf, over)


def Equals(what: What, value: Any, *, over: Statistic | None = None) -> Bounded:
    """A quantity that must have a value.

    Example:
        >>> from jaxmbd.design import Equals
        >>> Equals("toe_rest", 0.0).upper
        array(0.)
    """
    return Bounded(what, value, value, over)


def InRange(what: What, lower: Any, upper: Any, *, over: Statistic | None = None) -> Bounded:
    """A quantity that must lie between two limits.

    Example:
        >>> from jaxmbd.design import InRange
        >>> InRange("camber_slope", -0.6, -0.4).lower
        array(-0.6)
    """
    return Bounded(what, lower, upper, over)


class Outputs(dict[str, Any]):
    """Outputs by name; a name that there is not is met by those that there are."""

    def __missing__(self, name: str) -> Any:
        raise ValueError(f"there is no output {name!r}; {hint(name, self)}")


def _called(what: Callable[[Any], Any], subject: Any, name: str) -> Any:
    try:
        found = what(subject)
    except (TracerArrayConversionError, ConcretizationTypeError) as error:
        raise ValueError(
            f"{name}: its function must be JAX, to be differentiated: jax.numpy instead "
            "of numpy and math, jnp.where instead of if, no float()"
        ) from error
    except TypeError as error:
        if isinstance(subject, Mapping) or "subscriptable" not in str(error):
            raise
        raise ValueError(
            f"{name}: its function was given a {type(subject).__name__}; for outputs by name give "
            "observe="
        ) from error
    if found is None:
        raise ValueError(f"{name}: its function returned nothing")
    return found


def value_of(what: What, subject: Any, name: str) -> Array:
    """A goal's value of a subject.

    Raises:
        ValueError: names an output that there is not, or gives something that is no number.
    """
    if isinstance(what, str):
        if not isinstance(subject, Mapping):
            raise ValueError(
                f"{name}: {what!r} names an output, but nothing is observed; give observe=, or a "
                "function of the mechanism"
            )
        if what not in subject:
            Outputs(subject)[what]
        found = subject[what]
    elif callable(what):
        found = _called(what, subject, name)
    else:
        raise ValueError(f"{name}: {what!r} is neither the name of an output nor a function")
    try:
        value = jnp.asarray(found)
    except TypeError as error:
        raise ValueError(f"{name}: its function must return numbers, not {found!r}") from error
    if not jnp.issubdtype(value.dtype, jnp.floating):
        value = value.astype(jnp.result_type(float))
    return value
