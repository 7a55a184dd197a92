"""The numbers of a mechanism by path: the leaves of its pytree, and implied numbers; read and set.

A path is the way to a leaf: the kind of part, the part's name, the field, and inside a law or a
drive's parameters the way to the number. Names may hold slashes and dots: paths are looked up, not
taken apart.

Components have names: ``z`` of a point, ``xy`` of an inertia, ``1`` of a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import tree_flatten_with_path

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
from jaxmbd.variables.units import field_units, in_si

Places = tuple[tuple[int, ...], ...]
"""The indices of a component: one, or two where a symmetric matrix has it on both sides."""

_AXES = "xyz"
_TWIST = ("rx", "ry", "rz", "x", "y", "z")


def component_names(shape: tuple[int, ...], *, vector: bool, symmetric: bool) -> dict[str, Places]:
    """Names of the components of an array, in row-major order, with their indices.

    Args:
        shape: of the array; one number has no components.
        vector: whether components of (2,) and (3,) are along x, y, z.
        symmetric: whether a square matrix is symmetric: its components have two places.

    Example:
        >>> from jaxmbd.variables.leaves import component_names
        >>> component_names((2, 2), vector=False, symmetric=True)
        {'0/0': ((0, 0),), '0/1': ((0, 1), (1, 0)), '1/1': ((1, 1),)}
    """
    if shape in ((2,), (3,)) and vector:
        return {_AXES[i]: ((i,),) for i in range(shape[0])}
    if shape == (6,) and vector:
        return {name: ((i,),) for i, name in enumerate(_TWIST)}
    if symmetric and len(shape) == 2 and shape[0] == shape[1]:
        n = shape[0]
        pairs = [(i, j) for i in range(n) for j in range(i, n)]
        names = [_AXES[i] + _AXES[j] if n == 3 else f"{i}/{j}" for i, j in pairs]
        return {
            name: ((i, j),) if i == j else ((i, j), (j, i))
            for name, (i, j) in zip(names, pairs, strict=True)
        }
    every = product(*(range(n) for n in shape)) if shape else ()
    return {"/".join(map(str, index)): (index,) for index in every}


def with_components(whole: Any, changes: list[tuple[Places, Any]]) -> np.ndarray | Array:
    """An array with some components replaced; the others stay the constants that they are."""
    entries = {index: whole[index] for index in np.ndindex(*whole.shape)}
    for places, value in changes:
        entries |= dict.fromkeys(places, value)
    concrete = all(isinstance(x, (np.ndarray, np.generic)) for x in entries.values())
    xp = np if concrete else jnp
    return xp.stack([xp.asarray(x, whole.dtype) for x in entries.values()]).reshape(whole.shape)


KINDS = ("points", "bodies", "joints", "forces", "drives", "couplings")


class Number(NamedTuple):
    """One number, vector or matrix of a mechanism.

    Attributes:
        path: its path.
        keys: kind of part, name, field and further steps, as text.
        index: its place among the leaves of the mechanism; None for an implied number.
        value: its value; of an implied number what its field stands for while it is None.
        units: of its components, one for all or one for each.
        components: name to indices.
    """

    path: str
    keys: tuple[str, ...]
    index: int | None
    value: Any
    units: tuple[str, ...]
    components: dict[str, Places]

    @property
    def unit(self) -> str:
        """One unit, or those of the components one after the other."""
        several = list(dict.fromkeys(self.units))
        return several[0] if len(several) == 1 else "; ".join(u or "1" for u in several)


def order_of(mech: Mechanism) -> dict[str, tuple[str, ...]]:
    """Kind of part to names, in the order of declaration."""
    s = mech.structure
    return {
        "points": s.points,
        "bodies": s.bodies,
        "joints": tuple(e.name for e in s.joints),
        "forces": s.forces,
        "drives": tuple(d[0] for d in s.drives),
        "couplings": tuple(c[0] for c in s.couplings),
    }


def numbers_of(mech: Mechanism, *, implied: bool = False) -> list[Number]:
    """All numbers in the order of declaration, points first and gravity last.

    Args:
        mech: the mechanism.
        implied: whether fields that are None are listed, with the numbers that they stand for.

    Raises:
        ValueError: it is a batch of mechanisms.
    """
    if jnp.ndim(mech.gravity) != 1:
        raise ValueError(
            f"this is a batch of {len(mech.gravity)} mechanisms; take variables of one inside "
            "jax.vmap or jaxmbd.lanes.vmap"
        )
    joints = {e.name: e.kind for e in mech.structure.joints}
    found: dict[tuple[str, str], list[Number]] = {}
    for i, (keys, value) in enumerate(tree_flatten_with_path(mech)[0]):
        steps = tuple(_step(k) for k in keys)
        if jnp.issubdtype(jnp.result_type(value), jnp.floating):
            found.setdefault((steps[0], steps[1] if len(steps) > 1 else ""), []).append(
                _number(mech, joints, steps, i, value)
            )
    for kind in ("joints", "forces") if implied else ():
        for name in order_of(mech)[kind]:
            found.setdefault((kind, name), []).extend(_implied(mech, joints, kind, name))
    order = [(kind, name) for kind, names in order_of(mech).items() for name in names]
    return [x for place in [*order, ("gravity", "")] for x in found.get(place, [])]


def _step(key: Any) -> str:
    return str(next(getattr(key, n) for n in ("name", "key", "idx") if hasattr(key, n)))


def _number(
    mech: Mechanism, joints: dict[str, Any], keys: tuple[str, ...], index: int | None, value: Any
) -> Number:
    kind, *rest = keys
    shape = jnp.shape(value)
    field = rest[1] if len(rest) > 1 else ""
    if kind in ("points", "gravity"):
        units = ("m",) if kind == "points" else ("m/s²",)
        vector = True
    else:
        element = getattr(mech, kind)[rest[0]]
        part, own = _holder(element, rest[1:])
        owner = None if part is element else element
        turns = field == "laws" and keys[3] in _TWIST[:3]
        units = field_units(part, own, shape, joints, owner, turns)
        vector = shape == (6,) or is_vector(element, field)
    symmetric = field in ("inertia", "stiffness", "damping")
    components = component_names(shape, vector=vector, symmetric=symmetric)
    return Number("/".join(keys), keys, index, value, units, components)


def is_vector(element: Any, field: str) -> bool:
    """Whether a field's components are along x, y and z."""
    named = (*getattr(element, "vectors", ()), *getattr(element, "directions", ()), "com")
    return field in named or field in getattr(element, "points", {})


def _holder(element: Any, steps: list[str]) -> tuple[Any, str]:
    """The innermost part with fields on the way to a number, and the field there."""
    part, field, inner = element, steps[0], element
    for step in steps:
        if isinstance(inner, dict):
            inner = inner.get(step)
        elif isinstance(inner, (list, tuple)):
            inner = inner[int(step)] if step.isdigit() else getattr(inner, step)
        else:
            part, field = inner, step
            inner = getattr(inner, step, None)
    return part, field


def _implied(mech: Mechanism, joints: dict[str, Any], kind: str, name: str) -> Iterator[Number]:
    """Numbers that are not given but stand for something, as a rod's length for its drawn one."""
    element = getattr(mech, kind)[name]
    empty = [f.name for f in fields(element) if getattr(element, f.name) is None]
    if not empty:
        return
    for field, value in element.implied(partial(drawn_point, mech)).items():
        if field in empty:
            value = np.asarray(value) if is_concrete(value) else value
            yield _number(mech, joints, (kind, name, field), None, value)


def drawn_point(mech: Mechanism, ref: Any) -> Any:
    """`Mechanism.point`, as a NumPy array if it is known: what follows then compiles nothing."""
    x = mech.point(ref)
    return np.asarray(x) if is_concrete(x) else x


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
        units = self.number.units
        if self.component is None or len(units) == 1:
            return self.number.unit
        return units[list(self.number.components).index(self.component)]


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
    own = {x.index: new[k] for k, x in wholes.items() if x.index is not None}
    leaves, tree = jax.tree_util.tree_flatten(mech)
    result = jax.tree_util.tree_unflatten(tree, [own.get(i, x) for i, x in enumerate(leaves)])
    for keys, x in wholes.items():
        if x.index is None:  # its field was None
            kind, name, field = keys
            part = changed(getattr(result, kind)[name], **{field: new[keys]})
            result = changed(result, **{kind: {**getattr(result, kind), name: part}})
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
