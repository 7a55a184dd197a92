"""Read and set numbers of a mechanism by path, traced or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd.model import (
    ComRef,
    Mechanism,
    PointRef,
    Toward,
    changed,
    declared,
    is_concrete,
    number,
    warn_of_implausible,
)
from jaxmbd.plumbing import near
from jaxmbd.variables.leaves import (
    KINDS,
    Number,
    numbers_of,
    order_of,
    replaced_leaves,
    with_components,
)
from jaxmbd.variables.units import in_si


class Address(NamedTuple):
    """Where a path leads: a number, and one of its components or None for all of it."""

    number: Number
    component: str | None

    @property
    def value(self) -> Any:
        """What is there."""
        whole = self.number.value
        if self.component is None:
            return whole
        return whole[self.number.components[self.component][0]]

    @property
    def unit(self) -> str:
        """Its unit, those of components one after the other."""
        if self.component is None:
            return self.number.unit
        return self.number.component_unit(self.component)


def addresses(mech: Mechanism, paths: Iterable[str]) -> dict[str, Address]:
    """Where paths lead.

    Raises:
        ValueError: lists the paths that lead nowhere, each with near misses or the reason.
    """
    paths = list(paths)
    found = _looked_up(numbers_of(mech), paths)
    if any(not places for places in found.values()):
        found = _looked_up(numbers_of(mech, implied=True), paths)
    problems = [_unknown(mech, path) for path, places in found.items() if not places]
    problems += [
        f"{path!r} is the path of {len(places)} numbers, because of a name with a slash; rename it"
        for path, places in found.items()
        if len(places) > 1
    ]
    if problems:
        raise ValueError("; ".join(problems))
    return {path: places[0] for path, places in found.items()}


def _looked_up(numbers: list[Number], paths: list[str]) -> dict[str, list[Address]]:
    known: dict[str, list[Number]] = {}
    for x in numbers:
        known.setdefault(x.path, []).append(x)
    found: dict[str, list[Address]] = {}
    for path in paths:
        places = [Address(x, None) for x in known.get(path, ())]
        for i in (i for i, letter in enumerate(path) if letter == "/"):
            component = path[i + 1 :]
            places += [
                Address(x, component) for x in known.get(path[:i], ()) if component in x.components
            ]
        found[path] = places
    return found


def get_variables(mech: Mechanism, paths: Iterable[str]) -> dict[str, Any]:
    """Numbers of a mechanism by path.

    Args:
        mech: the mechanism; its numbers may be traced.
        paths: see `variables`.

    Returns:
        path to number or array, in SI units.

    Raises:
        ValueError: lists unknown paths with near misses.

    Example:
        >>> import jaxmbd as mbd
        >>> mech = mbd.zoo.multi_link()
        >>> get = mbd.get_variables(mech, ["forces/spring/stiffness", "points/tierod_inboard/z"])
        >>> {path: float(x) for path, x in get.items()}
        {'forces/spring/stiffness': 120000.0, 'points/tierod_inboard/z': -0.116}
    """
    return {path: place.value for path, place in addresses(mech, paths).items()}


def set_variables(mech: Mechanism, values: Mapping[str, Any]) -> Mechanism:
    """The mechanism with some of its numbers set, by path.

    It is a pure function: under `jax.jit`, `jax.grad`, `jax.vmap` and `jaxmbd.lanes.vmap` the
    values may be traced. Known values are validated as where a mechanism is built.

    Args:
        mech: the mechanism.
        values: path to number, array, or text with a unit such as ``"20 N/mm"``; see `variables`
            for the paths. A rod's or spring's length that is not given can be set too: it no longer
            follows the drawing then.

    Raises:
        ValueError: unknown paths, with near misses; a number of wrong shape or unit; the mechanism
            that results is invalid.

    Example:
        >>> import jaxmbd as mbd
        >>> mech = mbd.zoo.multi_link()
        >>> stiff = mbd.set_variables(
        ...     mech, {"points/tierod_inboard/z": "-80 mm", "forces/spring/stiffness": 1.5e5}
        ... )
        >>> stiff.points["tierod_inboard"]
        array([-0.257,  0.32 , -0.08 ])
    """
    places = addresses(mech, values)
    wholes: dict[tuple[str, ...], Number] = {}
    changes: dict[tuple[str, ...], list[tuple[Address, Any]]] = {}
    for path, place in places.items():
        keys = place.number.keys
        wholes[keys] = place.number
        value = _value(path, values[path], place, mech.gravity.dtype)
        changes.setdefault(keys, []).append((place, value))
    new = {keys: _changed(wholes[keys], given) for keys, given in changes.items()}
    leaves = {x.index: new[k] for k, x in wholes.items() if x.index is not None}
    result = replaced_leaves(mech, leaves)
    for keys, x in wholes.items():
        if x.index is None:
            result = _with_field(result, keys, new[keys])
    if all(is_concrete(x) for x in jax.tree_util.tree_leaves((new, mech))):
        result = result.replace()  # which validates
        warn_of_implausible(declared(result), declared(mech))
    return result


def _value(path: str, value: Any, place: Address, dtype: Any) -> Any:
    """The value as an array of the variable's shape."""
    if isinstance(value, str):
        value = in_si(value, place.unit, path)
    x = number(value)
    shape = () if place.component is not None else jnp.shape(place.number.value)
    if not hasattr(x, "shape") or x.shape != shape:
        given = f"shape {x.shape}" if hasattr(x, "shape") else repr(value)
        kind = f"an array of shape {shape}" if shape else "one number"
        raise ValueError(f"{path!r} is {kind}, but {given} was given")
    return x.astype(dtype)


def _changed(whole: Number, given: list[tuple[Address, Any]]) -> Any:
    if len(given) == 1 and given[0][0].component is None:
        return given[0][1]
    names = [place.component for place, _ in given]
    if None in names:
        raise ValueError(f"{whole.path!r} is set twice: as a whole, and its component {names[1]!r}")
    places = [(whole.components[str(place.component)], x) for place, x in given]
    value = whole.value if is_concrete(whole.value) else jnp.asarray(whole.value)
    return with_components(np.asarray(value) if is_concrete(value) else value, places)


def _with_field(mech: Mechanism, keys: tuple[str, ...], value: Any) -> Mechanism:
    """The mechanism with a number in a field that was None."""
    kind, name, field = keys
    part = changed(getattr(mech, kind)[name], **{field: value})
    return changed(mech, **{kind: {**getattr(mech, kind), name: part}})


def _unknown(mech: Mechanism, path: str) -> str:
    """Why a path leads nowhere, with near misses."""
    if reason := _reference(mech, path):
        return reason
    numbers = numbers_of(mech, implied=True)
    known = [x.path for x in numbers]
    close = near(path, known)
    close += [x for x in known if x.endswith("/" + path.rpartition("/")[2]) and x not in close][:2]
    for x in numbers:
        if path.startswith(x.path + "/") and x.components:
            return f"there is no {path!r}: components of {x.path!r} are {list(x.components)}"
    hint = f"; did you mean {' or '.join(map(repr, close[:4]))}?" if close else ""
    return f"there is no variable {path!r}{hint}"


def _reference(mech: Mechanism, path: str) -> str:
    """What to say of a field that refers to points, or that is not given."""
    for kind in KINDS[1:]:
        for name in order_of(mech)[kind]:
            start = f"{kind}/{name}/"
            field = path[len(start) :].partition("/")[0]
            if not path.startswith(start) or not field:
                continue
            value = getattr(getattr(mech, kind)[name], field, ...)
            if isinstance(value, PointRef):
                return f"{path!r} is a point of its own: set 'points/{value.name}'"
            if isinstance(value, Toward):
                ends = f"'points/{value.start}' to 'points/{value.end}'"
                return f"{path!r} is the direction from {ends}: set these"
            if isinstance(value, ComRef):
                return f"{path!r} is a centre of mass: set 'bodies/{value.body}/com'"
            if value is None:
                return f"{path!r} is not given, so it cannot vary: give it where the part is made"
    return ""
