"""Tables of variables: all numbers of a mechanism, or the arguments of a function to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmbd.model import Mechanism, is_concrete, number, used_points
from jaxmbd.plumbing import hint, text_table
from jaxmbd.variables.leaves import Address, Number, numbers_of, order_of, set_variables


class Variable(NamedTuple):
    """A number, vector or matrix that can be set by its path.

    Attributes:
        path: for example ``"points/tierod_inboard"``.
        value: as it is now, in SI units.
        unit: its SI unit, empty for a pure number or where a user's type does not say; units of
            different components are separated by ``"; "``.
        text: what it is.
        components: names of its components, each of which has the path ``path/name``.
        implied: whether it is not given but follows from other numbers until it is set, as a
            rod's length from the drawing.

    Example:
        >>> import jaxmbd as mbd
        >>> table = mbd.variables(mbd.zoo.multi_link())
        >>> table["points/tierod_inboard"].unit, table["points/tierod_inboard"].components
        ('m', ('x', 'y', 'z'))
    """

    path: str
    value: Any
    unit: str = ""
    text: str = ""
    components: tuple[str, ...] = ()
    implied: bool = False


class Variables(Mapping[str, Variable]):
    """Variables by path; printed as a table.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.variables(mbd.zoo.simple_pendulum(), "*mass").nominal
        {'bodies/bob/mass': array(1.)}
    """

    def __init__(self, entries: Iterable[Variable]):
        self._entries = {x.path: x for x in entries}

    def __getitem__(self, path: str) -> Variable:
        return self._entries[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        rows = [(x.path, _text(x.value), x.unit, x.text) for x in self.values()]
        return text_table(("path", "value", "unit", "what"), rows, left=range(4))

    @property
    def nominal(self) -> dict[str, Any]:
        """Path to value: what `set_variables` takes."""
        return {path: x.value for path, x in self._entries.items()}

    @property
    def units(self) -> dict[str, str]:
        """Path to SI unit."""
        return {path: x.unit for path, x in self._entries.items()}

    def components(self, pattern: str) -> Variables:
        """The components of vectors whose path fits a pattern; none of other arrays."""
        return Variables(
            Variable(f"{path}/{name}", x.value[i], x.unit, f"{name} of the {x.text}")
            for path, x in self._entries.items()
            if np.ndim(x.value) == 1 and len(x.components) == len(x.value)
            for i, name in enumerate(x.components)
            if fnmatchcase(f"{path}/{name}", pattern)
        )

    def select(self, *patterns: str) -> Variables:
        """Those whose path fits one of the patterns (``*``, ``?``, ``[…]``), in this order.

        Raises:
            ValueError: a pattern fits none.
        """
        found = {p: [x for x in self._entries if fnmatchcase(x, p)] for p in patterns}
        if missing := [p for p, paths in found.items() if not paths]:
            raise ValueError(f"no variable fits {missing}; {hint(missing[0], self)}")
        wanted = {x for paths in found.values() for x in paths}
        return Variables(x for path, x in self._entries.items() if path in wanted)


def variables(
    mech: Mechanism, select: str | Iterable[str] | None = None, *, implied: bool = False
) -> Variables:
    """All numbers of a mechanism, or some of them, by path.

    Paths are ``points/NAME``, ``bodies/NAME/mass`` (``com``, ``inertia``), ``joints/NAME/FIELD``,
    ``forces/NAME/FIELD`` (``forces/NAME/law/FIELD`` for the parameters of a law),
    ``drives/NAME/params/…``, ``couplings/NAME/FIELD`` and ``gravity``; literal coordinates are
    points named ``NAME.at``. Components are ``/x``, ``/y``, ``/z``, of an inertia ``/xx`` to
    ``/xy``, of a bushing ``/rx`` to ``/z``, of lists ``/0`` and so on. A direction between two
    points and a centre of mass at a point are not listed: their points are.

    Args:
        mech: the mechanism; its numbers may be traced.
        select: a path or pattern with ``*`` and ``?``, or several; one that fits no variable
            selects components, as ``"points/*/z"``.
        implied: whether to list numbers that are not given too, such as the length of a rod
            that follows the drawing. They are always found by their full path.

    Returns:
        path to `Variable`, in the order of declaration.

    Raises:
        ValueError: a pattern fits nothing.

    Example:
        >>> import jaxmbd as mbd
        >>> print(mbd.variables(mbd.zoo.multi_link(), ["points/tie*", "forces/spring/*ss"]))
        path                     value                    unit  what
        -------------------------------------------------------------------------------
        points/tierod_inboard    (-0.257, 0.32, -0.116)   m     hardpoint of tierod
        points/tierod_outboard   (-0.144, 0.862, -0.056)  m     hardpoint of tierod
        forces/spring/stiffness  120000                   N/m   stiffness, SpringDamper
    """
    numbers = numbers_of(mech, implied=True)
    users = _users(mech)
    if select is None:
        return Variables(
            _variable(mech, x, users) for x in numbers if implied or x.index is not None
        )
    patterns = [select] if isinstance(select, str) else list(select)
    chosen: dict[str, Address] = {}
    missing = []
    for pattern in patterns:
        fit = _fitting(numbers, pattern, implied)
        chosen |= fit
        missing += [] if fit else [pattern]
    if missing:
        known = [x.path for x in numbers]
        raise ValueError(f"no variable fits {missing}; {hint(missing[0], known)}")
    order = {x.path: i for i, x in enumerate(numbers)}
    paths = sorted(chosen, key=lambda p: order[chosen[p].number.path])
    return Variables(_component(mech, path, chosen[path], users) for path in paths)


def _fitting(numbers: list[Number], pattern: str, implied: bool) -> dict[str, Address]:
    """The numbers that a pattern fits, or else the components."""
    whole = {
        x.path: Address(x, None)
        for x in numbers
        if x.path == pattern or (fnmatchcase(x.path, pattern) and (implied or x.index is not None))
    }
    if whole:
        return whole
    return {
        path: Address(x, c)
        for x in numbers
        for c in x.components
        if fnmatchcase(path := f"{x.path}/{c}", pattern)
    }


def _component(mech: Mechanism, path: str, place: Address, users: dict[str, list[str]]) -> Variable:
    whole = _variable(mech, place.number, users)
    if place.component is None:
        return whole
    text = f"{place.component} of the {whole.text}"
    return Variable(path, place.value, place.unit, text, (), whole.implied)


def _variable(mech: Mechanism, x: Number, users: dict[str, list[str]]) -> Variable:
    kind = x.keys[0]
    if kind == "gravity":
        text = "gravity"
    elif kind == "points":
        known = users.get(x.keys[1], [])
        text = f"hardpoint of {', '.join(known)}" if known else "point"
    else:
        part = type(getattr(mech, kind)[x.keys[1]]).__name__
        text = f"{' '.join(x.keys[2:])}, {part}"
    if x.index is None:
        text += ", if not set"
    return Variable(x.path, x.value, x.unit, text, tuple(x.components), x.index is None)


def _users(mech: Mechanism) -> dict[str, list[str]]:
    """Point to the names of the parts that refer to it."""
    found: dict[str, list[str]] = {}
    for kind, names in order_of(mech).items():
        for name in names if kind != "points" else ():
            for point in sorted(used_points(getattr(mech, kind)[name])):
                known = found.setdefault(point, [])
                known += [] if name in known else [name]
    return found


def _text(x: Any) -> str:
    if not is_concrete(x):
        return str(getattr(x, "aval", x) if isinstance(x, jax.Array) else x)
    x = np.asarray(x)
    if x.ndim == 0:
        return f"{x:.6g}"
    if x.size > 6:
        return f"{'×'.join(map(str, x.shape))} numbers, up to {np.abs(x).max():.3g}"
    return "(" + ", ".join(f"{y:.6g}" for y in x.ravel()) + ")"


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


def find_variables(model: Mechanism | Parametrization, pattern: str) -> Variables:
    """The variables of a model that fit a name or pattern.

    Raises:
        ValueError: there is none.
    """
    return variables(model, pattern) if isinstance(model, Mechanism) else model.find(pattern)


def mechanism_of(
    model: Mechanism | Parametrization, values: Mapping[str, Any] = MappingProxyType({})
) -> Mechanism:
    """The mechanism of a model at some values by name; the others are as the model has them."""
    if isinstance(model, Mechanism):
        return set_variables(model, values) if values else model
    return model(values)


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
