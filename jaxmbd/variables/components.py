"""Names of components: ``z`` of a point, ``xy`` of an inertia, ``1`` of a list."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

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
        >>> from jaxmbd.variables.components import component_names
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
