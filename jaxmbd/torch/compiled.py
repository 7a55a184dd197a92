"""Wrapped functions within `torch.compile` and `torch.export`: one operator for all of them.

PyTorch cannot trace JAX, so a graph holds the operator ``jaxmbd::call`` of tensors and of the name
of a `Kernel`: what to run, with types of results that `jax.eval_shape` finds while tracing. Names
are weak: a kernel lives as long as the function that was wrapped. Derivatives and batches are those
of `jaxmbd.torch.function`, which PyTorch traces down to calls of the operator.
"""

from __future__ import annotations

import itertools
import uuid
import warnings
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import torch._dynamo
from jax import tree_util
from torch.utils import _pytree as pytree

from jaxmbd.torch.programs import CALLS, Calls, Program, computed
from jaxmbd.torch.tensors import torch

Types = tuple[tuple[tuple[int | str, ...], str], ...]
_PROCESS = uuid.uuid4().hex[:8]  # caches on disk must not meet names of another process
_numbers = itertools.count(1)


class Kernel:
    """A program at certain types of tensors, and with its arguments that are no tensors.

    `types` are shapes and names of dtypes; a size with a name may be any. Of the `results`, a size
    is a number, or a pair: that of a tensor along an axis.

    Raises:
        RuntimeError: a result is a random key, or its size is no number and no named size.
    """

    def __init__(self, program: Program, others: tuple[Any, ...], types: Types):
        self.program, self.others = program, others
        self.name = f"{program.label} {next(_numbers)} {_PROCESS}"
        places = {
            n: (k, axis)
            for k, (shape, _) in enumerate(types)
            for axis, n in enumerate(shape)
            if isinstance(n, str)
        }
        symbols = dict(zip(places, jax.export.symbolic_shape(",".join(places)), strict=True))
        given = tuple(
            jax.ShapeDtypeStruct([symbols[n] if isinstance(n, str) else n for n in shape], dtype)
            for shape, dtype in types
        )
        results, self.tree = tree_util.tree_flatten(program.run.eval_shape(given, others))
        place_of = {symbol: places[n] for n, symbol in symbols.items()}
        self.results = [
            (tuple(place_of.get(n, n) for n in x.shape), _type_of(x.dtype)) for x in results
        ]
        if not all(isinstance(n, int | tuple) for shape, _ in self.results for n in shape):
            raise RuntimeError(f"sizes of results follow those of tensors: {results}")


def _type_of(dtype: Any) -> torch.dtype:
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        raise RuntimeError("a result is a random key of JAX, which graphs of PyTorch cannot hold")
    return getattr(torch, dtype.name)


_KERNELS: WeakValueDictionary[str, Kernel] = WeakValueDictionary()


def _kernel(name: str) -> Kernel:
    if name not in _KERNELS:
        raise RuntimeError(
            f"no function has the name {name!r}: graphs of PyTorch run in the process that traced "
            "them, as long as the function which jaxmbd.torch.wrap made is kept"
        )
    return _KERNELS[name]


@torch.library.custom_op("jaxmbd::call", mutates_args=())
def call(tensors: list[torch.Tensor], name: str) -> list[torch.Tensor]:
    """Results of the kernel of this name."""
    kernel = _kernel(name)
    return list(computed(kernel.program, kernel.others, tensors)[0])


@call.register_fake
def _(tensors: list[torch.Tensor], name: str) -> list[torch.Tensor]:
    def size(n: Any) -> Any:
        return tensors[n[0]].shape[n[1]] if isinstance(n, tuple) else n

    results = _kernel(name).results
    return [torch.empty([size(n) for n in shape], dtype=dtype) for shape, dtype in results]


def placed(program: Program, others: Any, tensors: Sequence[torch.Tensor]) -> tuple[Any, Any]:
    """Results of the operator in the graph that is being traced, and their tree.

    Sizes that PyTorch leaves open stay so where JAX can trace the function with an open size; else
    the graph is for one size. Numbers become constants.
    """
    others = tuple(_number(x) for x in others)
    try:
        kernel = _kept(program, others, _types(tensors, open_sizes=True))
    except Exception:  # of many kinds, as the function is the user's
        kernel = _kept(program, others, _types(tensors, open_sizes=False))
    return tuple(call(list(tensors), kernel.name)), kernel.tree


def _types(tensors: Sequence[torch.Tensor], open_sizes: bool) -> Types:
    """Types of tensors, where sizes that PyTorch leaves open have names, equal ones the same."""
    names: dict[str, str] = {}

    def size(n: Any) -> int | str:
        if isinstance(n, torch.SymInt) and open_sizes:
            return names.setdefault(str(n), f"n{len(names)}")
        return int(n)

    return tuple((tuple(map(size, x.shape)), str(x.dtype).removeprefix("torch.")) for x in tensors)


def _kept(program: Program, others: tuple[Any, ...], types: Types) -> Kernel:
    key = tuple((type(x), repr(x)) for x in others), types
    if key not in program.kernels:
        kernel = program.kernels[key] = Kernel(program, others, types)
        _KERNELS[kernel.name] = kernel
    return program.kernels[key]


def _number(x: Any) -> Any:
    """A Python number, which a symbol of PyTorch stands for."""
    kinds = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
    return kinds[type(x)](x) if type(x) in kinds else x


def _run(call: Calls, arguments: Any) -> Any:
    return call(arguments)


untraced: Any = torch._dynamo.disable(_run)  # what a wrapped function returns, but not how


@torch._dynamo.nonstrict_trace
def in_graph(name: str, args: Any, keywords: Any) -> Any:
    """Results of a wrapped function; PyTorch traces this call, but not how it was reached.

    Where it breaks its graph it calls this once more, to compute. It hides errors: a warning tells.
    """
    if not torch.compiler.is_compiling():
        return untraced(CALLS[name], (args, keywords))
    try:
        out = untraced(CALLS[name], (args, keywords))
        kinds = {type(x) for x in pytree.tree_leaves(out) if not isinstance(x, torch.Tensor)}
        if kinds:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise RuntimeError(f"a graph of PyTorch cannot hold such results: {names}")
    except Exception as error:
        warnings.warn(f"torch.compile breaks its graph at {name!r}: {error}", stacklevel=2)
        raise
    return out
