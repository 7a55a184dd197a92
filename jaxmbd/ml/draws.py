"""Random numbers of an environment: which key is whose, and draws of distributions by keys.

A lane has a key of its own, an episode one made of the lane's and its number, and every random
number in it one made of that and its name. So what is drawn depends on neither the size of a batch
nor on what else is random.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.sampling import Distribution


def lane_keys(seed: int, count: int, first: int = 0) -> Array:
    """The keys (count,) of lanes; lane k has the same one whatever `count` is.

    Args:
        seed: of all lanes.
        count: number of lanes.
        first: number of the first one, where a batch is part of a larger one.

    Example:
        >>> from jaxmbd import ml
        >>> bool((ml.lane_keys(7, 4)[2:] == ml.lane_keys(7, 2, first=2)).all())
        True
    """
    return jax.vmap(jax.random.fold_in, (None, 0))(
        jax.random.key(seed), jnp.arange(first, first + count)
    )


def named(key: Array, name: Any) -> Array:
    """The key of a random number by its name."""
    return jax.random.fold_in(key, zlib.crc32(str(name).encode()))


def draw(distribution: Distribution, key: Array, nominal: Any) -> Array:
    """A sample of a number or an array about its nominal value, which may be traced."""
    nominal = jnp.asarray(nominal)
    u: Any = jax.random.uniform(key, distribution.unit_shape(nominal.shape), nominal.dtype)
    u = u + 0.5 * jnp.finfo(u.dtype).eps  # from [0, 1) into the open interval
    return jnp.asarray(distribution.quantile(u, nominal), nominal.dtype)


def drawn(given: Mapping[Any, Any], key: Array, kind: str, nominal: Mapping[Any, Any]) -> dict:
    """Values of what is given by numbers, as they are, and by distributions, drawn.

    Args:
        given: number or distribution by name.
        key: of the episode.
        kind: of what they are numbers, the first part of their keys' names.
        nominal: nominal values of those with a distribution; 0 where there is none.
    """
    return {
        name: draw(x, named(key, f"{kind}/{name}"), nominal.get(name, 0.0))
        if isinstance(x, Distribution)
        else x
        for name, x in given.items()
    }
