"""What a distribution is: the scatter of one number, or of each number of an array.

Those of `scipy.stats` are accepted as they are.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.core import Tracer
from scipy.special import ndtr

#: Names under which descriptions have the distributions.
DISTRIBUTIONS: dict[str, type[Distribution]] = {}

# The smallest and the largest number that count as inside the open interval (0, 1).
_LEAST, _MOST = 2.0**-54, 1.0 - 2.0**-53


def inside_unit(u: np.ndarray) -> np.ndarray:
    """`u` with the ends 0 and 1 moved to the nearest number inside."""
    return np.clip(u, _LEAST, _MOST)


def functions_for(u: Any) -> tuple[Any, Any]:
    """NumPy and `scipy.special`, or for JAX's arrays, traced or not, its functions of these names.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling.scatter import functions_for
        >>> functions_for(np.zeros(2))[0].__name__
        'numpy'
    """
    return (jnp, jax.scipy.special) if isinstance(u, jax.Array) else (np, scipy.special)


class Distribution(ABC):
    """The scatter of an input; each number of an array independently, unless said otherwise.

    Samples come from the quantile function, so that every design serves every distribution.
    Parameters may be arrays that broadcast to the input's shape, one for each number. Those in the
    unit of the input may be texts ("0.5 mm") until `in_units` has made numbers of them.

    Subclasses are frozen data classes. Their constructors raise `ValueError` with all that is wrong
    with their parameters; `problems` tells what is wrong for one nominal value.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import Distribution, Uniform
        >>> scatter = Uniform(0.5)
        >>> scatter.quantile(np.array([0.25, 0.75]), nominal=np.array(2.0))
        array([1.75, 2.25])
    """

    kind: ClassVar[str] = ""
    #: Parameters in the unit of the input.
    dimensional: ClassVar[tuple[str, ...]] = ()
    #: Those of them that are fractions of the nominal value if `relative` is set.
    scales: ClassVar[tuple[str, ...]] = ()
    relative: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.kind:
            DISTRIBUTIONS[cls.kind] = cls

    def __post_init__(self) -> None:
        for name, value in self.parameters().items():
            object.__setattr__(self, name, _frozen(value, f"{type(self).__name__}: {name}"))
        if not self.pending() and (faults := self.faults()):
            raise ValueError(f"{self}: {'; '.join(faults)}")

    @abstractmethod
    def quantile(self, u: np.ndarray, nominal: np.ndarray) -> np.ndarray:
        """Values ``(n, *shape)`` of an input whose nominal value has that shape.

        Of JAX's arrays, traced or not, too, except for those of `scipy.stats`.

        Args:
            u: probabilities in (0, 1), shape ``(n, *unit_shape(shape))``.
            nominal: the nominal value.
        """

    def from_normal(self, z: np.ndarray, nominal: np.ndarray) -> np.ndarray:
        """Values for standard normal numbers instead of probabilities: `quantile(Φ(z))`."""
        return self.quantile(inside_unit(ndtr(z)), nominal)

    @abstractmethod
    def faults(self) -> list[str]:
        """What is wrong with the parameters, whatever the nominal value."""

    def problems(self, nominal: np.ndarray) -> list[str]:
        """What is wrong with this distribution about that nominal value."""
        if texts := self.pending():
            return [f"{', '.join(map(repr, texts))}: texts, and no unit to convert them to"]
        return self._misfits(nominal)

    def std(self, nominal: np.ndarray) -> np.ndarray:
        """Standard deviation of each number, in the shape of the nominal value."""
        u = (np.arange(4096) + 0.5) / 4096.0
        shape = self.unit_shape(nominal.shape)
        return self.quantile(
            np.broadcast_to(u.reshape(-1, *[1] * len(shape)), (4096, *shape)), nominal
        ).std(axis=0)

    def unit_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the probabilities that one sample of an input of this shape takes."""
        return shape

    def steps(self) -> np.ndarray | None:
        """Cumulative probabilities of the distinct values; None if there is a continuum."""
        return None

    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def pending(self) -> list[str]:
        """Parameters that are still texts."""
        return [x for x in self.parameters().values() if isinstance(x, str)]

    def in_units(self, convert: Callable[[str], float]) -> Self:
        """The same with `convert` applied to the texts among the parameters in the input's unit."""
        kept = self.scales if self.relative else ()
        texts = {n: x for n, x in self.parameters().items() if isinstance(x, str)}
        if wrong := [n for n in texts if n not in self.dimensional or n in kept]:
            raise ValueError(f"{self}: {', '.join(wrong)} must be a number without unit")
        new = {n: convert(x) for n, x in texts.items()}
        return replace(self, **new) if new else self  # type: ignore[type-var]

    def describe(self) -> dict[str, Any]:
        """JSON values that determine the distribution; `distribution` makes it of them again."""
        given = {
            f.name: _listed(x)
            for f in fields(self)  # type: ignore[arg-type]
            if (x := getattr(self, f.name)) != f.default
        }
        return {"distribution": self.kind, **given}

    def _misfits(self, nominal: np.ndarray) -> list[str]:
        found = []
        for name, value in self.parameters().items():
            if isinstance(value, bool) or value is None or name not in self.dimensional:
                continue
            if not broadcasts(np.shape(value), nominal.shape):
                found.append(f"{name} has shape {np.shape(value)}, the input {nominal.shape}")
        if self.relative and not np.any(nominal):
            found.append("a fraction of a nominal value of 0 is no scatter")
        return found

    def _scale(self, value: Any, nominal: np.ndarray) -> np.ndarray:
        """A parameter as a width in the unit of the input."""
        return abs(nominal) * np.asarray(value) if self.relative else np.asarray(value)


def digest_of(x: np.ndarray) -> dict[str, Any]:
    """What stands for an array in descriptions: its shape, and a digest of its numbers."""
    digest = hashlib.blake2b(np.ascontiguousarray(x).tobytes(), digest_size=16).hexdigest()
    return {"shape": list(x.shape), "blake2b": digest}


def check_scale(name: str, value: Any) -> list[str]:
    """Problems of a standard deviation or a width: it must be finite and not negative."""
    x = np.asarray(value, np.float64)
    if not np.all(np.isfinite(x)):
        return [f"{name} must be finite, is {_shown(x)}"]
    return [f"{name} must not be negative, is {_shown(x)}"] if np.any(x < 0.0) else []


def check_finite(**values: Any) -> list[str]:
    """Problems of parameters that may be missing but must otherwise be finite."""
    return [
        f"{name} must be finite, is {_shown(x)}"
        for name, x in values.items()
        if x is not None and not np.all(np.isfinite(x))
    ]


def check_order(**values: Any) -> list[str]:
    """Problems of parameters, some of which may be missing, that must increase as given."""
    given = [(name, np.asarray(x)) for name, x in values.items() if x is not None]
    return [
        f"{a} must be less than {b}; they are {_shown(x)} and {_shown(y)}"
        for (a, x), (b, y) in zip(given, given[1:], strict=False)
        if not np.all(x < y)
    ]


def _shown(x: np.ndarray) -> str:
    return f"{x:g}" if x.ndim == 0 else str(x.tolist())


def _frozen(value: Any, name: str) -> Any:
    """Numbers as float, arrays as nested tuples, so that they compare, hash and pickle."""
    if value is None or isinstance(value, (bool, str)):
        return value
    try:
        return _tuples(np.asarray(value, np.float64).tolist())
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number or an array of numbers, is {value!r}") from error


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _listed(value: Any) -> Any:
    return list(map(_listed, value)) if isinstance(value, tuple) else value


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array of one shape broadcasts to another shape."""
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


@dataclass(frozen=True)
class Scaled(Distribution):
    """Another distribution, with all distances from the nominal value multiplied.

    Attributes:
        base: the other distribution.
        factor: less than one for a tighter scatter.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import Scaled, Uniform
        >>> Scaled(Uniform(1.0), 0.5).quantile(np.array([0.0, 1.0]), np.array(3.0))
        array([2.5, 3.5])
    """

    base: Any
    factor: Any

    kind = ""

    def __post_init__(self) -> None:
        if faults := self.faults():
            raise ValueError(f"Scaled: {'; '.join(faults)}")

    def quantile(self, u, nominal):
        return nominal + self.factor * (self.base.quantile(u, nominal) - nominal)

    def from_normal(self, z, nominal):
        return nominal + self.factor * (self.base.from_normal(z, nominal) - nominal)

    def std(self, nominal):
        return self.factor * self.base.std(nominal)

    def unit_shape(self, shape):
        return self.base.unit_shape(shape)

    def steps(self):
        return self.base.steps()

    def faults(self):
        return check_scale("factor", self.factor)

    def problems(self, nominal):
        return self.base.problems(nominal)

    def describe(self):
        return {
            "distribution": "scaled",
            "factor": float(self.factor),
            "base": self.base.describe(),
        }


@dataclass(frozen=True, eq=False)
class FromSciPy(Distribution):
    """A distribution of `scipy.stats`, of the value itself, whatever the nominal value is.

    Attributes:
        base: a frozen distribution, ``scipy.stats.weibull_min(2.0, scale=0.1)``, a
            ``scipy.stats.rv_histogram``, or one of the newer kind, ``scipy.stats.Normal(mu=1.0)``.

    Example:
        >>> import numpy as np, scipy.stats
        >>> from jaxmbd.sampling import as_distribution
        >>> as_distribution(scipy.stats.expon(scale=2.0)).std(np.array(2.0))
        array(2.)
    """

    base: Any

    def __post_init__(self) -> None:
        if faults := self.faults():
            raise ValueError(f"scipy distribution: {'; '.join(faults)}")

    def __repr__(self) -> str:
        about = self.describe()
        return f"FromSciPy({', '.join(f'{k}={about[k]!r}' for k in about if k != 'distribution')})"

    def quantile(self, u, nominal):
        if isinstance(u, Tracer):
            raise TypeError(
                f"{self} is SciPy's, which JAX cannot trace; take one of jaxmbd.sampling, such as "
                "Empirical(values, interpolate=True) of many of its values"
            )
        inverse = getattr(self.base, "ppf", None) or self.base.icdf
        return np.asarray(inverse(u), np.float64)

    def std(self, nominal):
        std = getattr(self.base, "std", None) or self.base.standard_deviation
        return np.array(np.broadcast_to(std(), nominal.shape), np.float64)

    def steps(self):
        # Discrete ones have a probability mass; an infinite tail ends where it is negligible.
        mass = getattr(self.base, "pmf", None)
        if mass is None or np.size(self.base.std()) != 1:
            return None
        low, high = self.base.ppf(1e-12), self.base.ppf(1.0 - 1e-12)
        if high - low > 10_000:
            return None
        steps = self.base.cdf(np.arange(low, high + 1.0))
        steps[-1] = 1.0
        return steps[np.append(np.diff(steps) > 0.0, True)]

    def faults(self):
        if not (hasattr(self.base, "ppf") or hasattr(self.base, "icdf")):
            return [f"{self.base!r} has neither ppf nor icdf"]
        inverse = getattr(self.base, "ppf", None) or self.base.icdf
        if not np.all(np.isfinite(inverse(np.array(0.5)))):
            return ["its median is not a finite number: are its parameters allowed ones?"]
        return []

    def _misfits(self, nominal):
        # Two numbers of rows, of which parameters' own sizes may match one by chance.
        for wanted in ((2, *nominal.shape), (3, *nominal.shape)):
            try:
                shape = np.shape(self.quantile(np.full(wanted, 0.5), nominal))
            except ValueError:
                shape = None
            if shape != wanted:
                return [f"its shape does not fit {nominal.shape}"]
        return []

    def describe(self):
        base = self.base
        family = getattr(base, "dist", base)
        named = {"distribution": f"scipy.{_family(family)}"}
        if family is not base:  # frozen
            parameters = {n: _plain(x) for n, x in sorted(base.kwds.items())}
            found = {**named, "arguments": [_plain(x) for x in base.args], **parameters}
            return found | _histogram(family)
        if hasattr(base, "_histogram"):
            return named | _histogram(base)
        with np.printoptions(threshold=2**31, floatmode="unique"):
            return {**named, "text": repr(base)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FromSciPy) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(str(self.describe()))


def as_distribution(given: Any) -> Distribution:
    """The distribution itself, or one of `scipy.stats` as one of ours.

    Raises:
        TypeError: it is neither.

    Example:
        >>> import scipy.stats
        >>> from jaxmbd.sampling import as_distribution
        >>> type(as_distribution(scipy.stats.norm(0.0, 0.1))).__name__
        'FromSciPy'
    """
    if isinstance(given, Distribution):
        return given
    # A family such as stats.norm has ppf too, but no parameters.
    known = ("dist", "_histogram", "icdf")
    if not isinstance(given, type) and any(hasattr(given, name) for name in known):
        return FromSciPy(given)
    raise TypeError(
        f"{given!r} is no distribution: use Normal, Uniform, … or a frozen scipy.stats one"
    )


def scipy_distribution(family: str, parameters: Mapping[str, Any]) -> FromSciPy:
    """A distribution of `scipy.stats` by the name of its family, with its parameters by name."""
    from scipy import stats

    made = getattr(stats, family, None)
    if not isinstance(made, (stats.rv_continuous, stats.rv_discrete)):
        raise ValueError(f"scipy.stats has no distribution {family!r}")
    rest = dict(parameters)
    try:
        return FromSciPy(made(*rest.pop("arguments", ()), **rest))
    except TypeError as error:
        raise ValueError(f"scipy.stats.{family}: {error}") from error


def _histogram(family: Any) -> dict[str, str]:
    """A digest of the table of an `rv_histogram`; nothing for others."""
    content = [np.asarray(part).tobytes() for part in getattr(family, "_histogram", ())]
    if not content:
        return {}
    return {"blake2b": hashlib.blake2b(b"".join(content)).hexdigest()[:32]}


def _family(family: Any) -> str:
    cls = type(family)
    name = getattr(family, "name", None) or cls.__qualname__
    return name if cls.__module__.startswith("scipy.") else f"{cls.__module__}.{cls.__qualname__}"


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist()
