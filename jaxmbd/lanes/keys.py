"""Random keys among the arguments and results of a compiled function.

A kernel's arguments are arrays of numbers; a typed key of `jax.random` is none. It is passed as its
words, and made a key again inside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax

from jaxmbd.lanes.trace.jaxprs import is_key


@jax.tree_util.register_pytree_node_class
class Words:
    """An array of keys as its words of 32 bits, with one more axis, and the keys' kind."""

    def __init__(self, data: Any, kind: Any):
        self.data, self.kind = data, kind

    def tree_flatten(self) -> tuple[tuple[Any], Any]:
        """The words; the kind is static."""
        return (self.data,), self.kind

    @classmethod
    def tree_unflatten(cls, kind: Any, children: tuple[Any]) -> Words:
        """From what `tree_flatten` returns."""
        return cls(*children, kind)


def has_keys(leaves: Iterable[Any]) -> bool:
    """Whether some are arrays of typed keys."""
    return any(map(is_key, leaves))


def plain(tree: Any) -> Any:
    """A tree with words in place of keys."""

    def word(x: Any) -> Any:
        return Words(jax.random.key_data(x), jax.random.key_impl(x)) if is_key(x) else x

    return jax.tree_util.tree_map(word, tree)


def with_keys(tree: Any) -> Any:
    """A tree with keys again, the reverse of `plain`."""

    def key(x: Any) -> Any:
        return jax.random.wrap_key_data(x.data, impl=x.kind) if isinstance(x, Words) else x

    return jax.tree_util.tree_map(key, tree, is_leaf=lambda x: isinstance(x, Words))
