"""Programs: the function that was wrapped, and those derived from it, each compiled once.

The first is the user's; `linear` and `mapped` are derivatives and batches of one before. `CALLS`
are wrapped functions by their names, with their arguments as one tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import jax
from jax import tree_util

from jaxmbd.lanes import finished
from jaxmbd.torch.tensors import array_of, tensor_of, torch

Index = tuple[int, ...]
Calls = Callable[[Any], Any]
CALLS: WeakValueDictionary[str, Calls] = WeakValueDictionary()  # of what is still wrapped


class Program:
    """A function, to be compiled as `run`, and those derived from it.

    All but the first, which is the user's, are of the arrays of tensors and of other JAX values.
    `kernels` are those of it that stand in graphs of PyTorch, see `jaxmbd.torch.compiled`.
    """

    def __init__(self, fn: Callable[..., Any], label: str):
        self.fn, self.label = fn, label
        self.run = jax.jit(fn)
        self.kernels: dict[Any, Any] = {}
        self._derived: dict[Any, Program] = {}

    def derived(self, rule: Callable[..., Any], *static: Any) -> Program:
        """The program by a rule below, made once."""
        if (rule, static) not in self._derived:
            label = f"{rule.__name__}({self.label})"
            self._derived[rule, static] = Program(partial(rule, self.fn, *static), label)
        return self._derived[rule, static]


def of_leaves(fn: Any, tree: Any, flags: tuple[bool, ...], tensors: Any, others: Any) -> Any:
    """A function of arguments of some tree, by its leaves; flags say which of them are tensors."""
    kinds = iter(others), iter(tensors)
    args, keywords = tree_util.tree_unflatten(tree, [next(kinds[k]) for k in flags])
    return fn(*args, **keywords)


def linear(fn: Any, forward: bool, asked: Index, given: Index, tensors: Any, others: Any) -> Any:
    """Tangents of the results `given` if `forward`, else cotangents of the inputs `asked`.

    The tensors are all inputs, then tangents of those `asked` or cotangents of those `given`.
    """
    count = len(asked if forward else given)
    inputs, directions = tensors[:-count], list(tensors[-count:])

    def part(*chosen: Any) -> list[Any]:
        new = dict(zip(asked, chosen, strict=True))
        full = [new.get(k, x) for k, x in enumerate(inputs)]
        leaves = tree_util.tree_leaves(fn(full, others))
        return [leaves[k] for k in given]

    chosen = [inputs[k] for k in asked]
    if forward:
        return jax.jvp(part, chosen, directions)[1]
    return jax.vjp(part, *chosen)[1](directions)


def mapped(fn: Any, axes: tuple[int | None, ...], tensors: Any, others: Any) -> Any:
    """The function over a batch, at one axis of each tensor or none; of results the first."""
    return jax.vmap(lambda x: fn(x, others), in_axes=(list(axes),))(list(tensors))


def computed(program: Program, others: Any, tensors: Sequence[torch.Tensor]) -> tuple[Any, Any]:
    """Results for concrete tensors, and their tree; they are there when it returns."""
    host = jax.default_backend() == "cpu"
    with nullcontext() if host else jax.default_device(jax.local_devices(backend="cpu")[0]):
        out = program.run(tuple(map(array_of, tensors)), others)
    leaves, tree = tree_util.tree_flatten(finished(out))
    return tuple(map(tensor_of, leaves)), tree
