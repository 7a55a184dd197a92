"""The numbers of a function's argument as one vector: of a mechanism by path, of any pytree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.kinematics import mechanism_length
from jaxmbd.model import Mechanism
from jaxmbd.variables import set_variables, variables


class Numbers(NamedTuple):
    """Numbers of an argument x of a function.

    Attributes:
        names: of each.
        start: their values (n,).
        scale: by how much each changes at most while differences are taken (n,).
        argument: the argument of a vector (n,); pure.
    """

    names: tuple[str, ...]
    start: np.ndarray
    scale: np.ndarray
    argument: Callable[[Any], Any]


def numbers_of_argument(x: Any, vary: str | Sequence[str] | None) -> Numbers:
    """The numbers of a mechanism that fit paths or patterns, or all floating numbers of a pytree.

    Raises:
        ValueError: `vary` is given for something else than a mechanism, or nothing is left.
    """
    if isinstance(x, Mechanism):
        return _of_mechanism(x, ["*"] if vary is None else vary)
    if vary is not None:
        raise ValueError("vary= names numbers of a Mechanism; another argument varies as a whole")
    return _of_pytree(x)


def _of_mechanism(mech: Mechanism, vary: str | Sequence[str]) -> Numbers:
    length = float(mechanism_length(mech))
    names: list[str] = []
    start: list[float] = []
    scale: list[float] = []
    for pattern in [vary] if isinstance(vary, str) else vary:
        for path, variable in variables(mech, pattern).items():
            parts = {path: variable}
            if variable.components:
                every = [f"{path}/{c}" for c in variable.components]
                parts = {p: variables(mech, p)[p] for p in every}
            values = [float(np.asarray(v.value)) for v in parts.values()]
            largest = max(map(abs, values))
            typical = length if variable.unit == "m" else 1.0
            for name, value in zip(parts, values, strict=True):
                if name not in names:
                    names.append(name)
                    start.append(value)
                    scale.append(largest if largest > 1e-3 * typical else typical)
    if not names:
        raise ValueError("vary names no number")

    def argument(vector: Any) -> Mechanism:
        return set_variables(mech, {name: vector[k] for k, name in enumerate(names)})

    return Numbers(tuple(names), np.array(start), np.array(scale), argument)


def _of_pytree(x: Any) -> Numbers:
    paths, tree = jax.tree_util.tree_flatten_with_path(x)
    leaves = [leaf if hasattr(leaf, "dtype") else np.asarray(leaf) for _, leaf in paths]
    moving = [k for k, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    if not moving:
        raise ValueError("the argument has no floating-point number to differentiate with")
    names: list[str] = []
    scale: list[np.ndarray] = []
    for k in moving:
        label = jax.tree_util.keystr(paths[k][0]) or "x"
        shape = np.shape(leaves[k])
        names += [f"{label}{list(i)}" if i else label for i in np.ndindex(*shape)]
        largest = float(np.max(np.abs(leaves[k]), initial=0.0))
        scale.append(np.full(int(np.prod(shape)), largest or 1.0))
    start = np.concatenate([np.ravel(np.asarray(leaves[k])) for k in moving])

    def argument(vector: Any) -> Any:
        new, at = list(leaves), 0
        for k in moving:
            shape = np.shape(leaves[k])
            size = int(np.prod(shape))
            new[k] = jnp.reshape(vector[at : at + size], shape).astype(leaves[k].dtype)
            at += size
        return jax.tree_util.tree_unflatten(tree, new)

    return Numbers(tuple(names), start, np.concatenate(scale), argument)


def weighed(result: Any) -> Array:
    """One number of a result: its floating-point numbers times fixed ones in general position."""
    leaves = [jnp.ravel(jnp.asarray(y)) for y in jax.tree_util.tree_leaves(result)]
    floats = [y for y in leaves if jnp.issubdtype(y.dtype, jnp.floating)]
    if not floats:
        raise ValueError("the function returns no floating-point number")
    whole = jnp.concatenate(floats)
    if whole.shape[0] == 1:
        return whole[0]
    weights = 1.0 + 0.5 * np.sin(1.0 + 2.3 * np.arange(whole.shape[0]))
    return jnp.sum(jnp.asarray(weights, whole.dtype) * whole)
