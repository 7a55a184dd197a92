"""Parametrisations: functions of a few values to a mechanism, with a table of the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxmbd.model import Mechanism, number
from jaxmbd.variables.table import Variable, Variables, variables


@dataclass(frozen=True)
class Parametrization:
    """A function of named values to a mechanism, and what the values are.

    `mirrored` and `jaxmbd.tolerances` return such, and any function of one's own makes one. Where
    a study takes a `Mechanism`, whose inputs are its `variables`, it takes a parametrisation too,
    and its inputs are these. Both are pure functions that may be traced.

    Attributes:
        function: of a dictionary, name to value, to a `Mechanism`; to be stored with a study it
            must be importable (defined in a module, not a lambda).
        variables: its arguments: name, nominal value, unit, text.
        mechanism: a mechanism whose variables by path it takes too, if any.

    Example:
        >>> import jaxmbd as mbd
        >>> def car(track, rate):
        ...     return mbd.zoo.multi_link({"wheel_centre": (0.0, 0.5 * track, 0.0)}, rate)
        >>> corner = mbd.Parametrization.of(car, track=(1.7, "m"), rate=(1.2e5, "N/m"))
        >>> corner.variables.nominal["track"], corner({"track": 1.8}).points["wheel_centre"]
        (array(1.7), array([0. , 0.9, 0. ]))
    """

    function: Callable[[Mapping[str, Any]], Mechanism]
    variables: Variables
    mechanism: Mechanism | None = None

    def find(self, pattern: str) -> Variables:
        """Variables that fit a name or pattern: its own, or else the mechanism's.

        Raises:
            ValueError: there is none.
        """
        try:
            return self.variables.select(pattern)
        except ValueError:
            if found := self.variables.components(pattern):
                return found
            if self.mechanism is None or "/" not in pattern:
                raise
            kinds = {path.partition("/")[0] for path in self.variables}
            if pattern.partition("/")[0] in kinds:
                raise
        return variables(self.mechanism, pattern)

    def __call__(self, values: Mapping[str, Any]) -> Mechanism:
        """The mechanism of some values by name; the others are nominal."""
        return self.function(values)

    @classmethod
    def of(cls, function: Callable[..., Mechanism], **arguments: Any) -> Parametrization:
        """A parametrisation by a function's keyword arguments.

        Args:
            function: of keyword arguments to a `Mechanism`.
            **arguments: name to nominal value, or to (nominal value, unit) or (…, text).
        """
        given = {n: x if _described(x) else (x,) for n, x in arguments.items()}
        table = Variables(Variable(n, number(x[0]), *x[1:]) for n, x in given.items())
        return cls(_Keywords(function, table.nominal), table)


def _described(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) in (2, 3) and isinstance(x[1], str)


@dataclass(frozen=True)
class _Keywords:
    """A function of a dictionary that calls another by keywords, nominal where not given."""

    function: Callable[..., Mechanism]
    nominal: Mapping[str, Any]

    def __call__(self, values: Mapping[str, Any]) -> Mechanism:
        if unknown := sorted(values.keys() - self.nominal.keys()):
            raise ValueError(f"there is no {unknown} among the arguments {list(self.nominal)}")
        return self.function(**{**self.nominal, **values})
