"""Goals: what is minimised and what is bounded, as functions of what a design does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.errors import ConcretizationTypeError, TracerArrayConversionError

from jaxmbd.design.scatter import Statistic, Tail
from jaxmbd.plumbing import hint

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
