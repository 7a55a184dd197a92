"""The numbers of a mechanism with their addresses: the leaves of its pytree, and implied numbers.

A path is the way to a leaf: the kind of part, the part's name, the field, and inside a law or a
drive's parameters the way to the number. Names may hold slashes and dots: paths are looked up, not
taken apart.

Components have names: ``z`` of a point, ``xy`` of an inertia, ``1`` of a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import tree_flatten_with_path

from jaxmbd.model import Mechanism, is_concrete
from jaxmbd.variables.units import field_units

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

    def component_unit(self, name: str) -> str:
        """The unit of one component."""
        if len(self.units) == 1:
            return self.units[0]
        return self.units[list(self.components).index(name)]


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
        units = field_units(part, own, shape, joints, None if part is element else element)
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


def replaced_leaves(mech: Mechanism, values: dict[int, Any]) -> Mechanism:
    """The mechanism with some of its leaves replaced."""
    leaves, tree = jax.tree_util.tree_flatten(mech)
    return jax.tree_util.tree_unflatten(tree, [values.get(i, x) for i, x in enumerate(leaves)])
