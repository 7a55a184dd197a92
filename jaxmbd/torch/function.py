"""JAX functions as functions of PyTorch, with derivatives of every order and `torch.func`.

`wrap` makes a `torch.autograd.Function` of a `Program`. Its rules apply the same Function to
programs derived from it by `jax.vjp`, `jax.jvp` and `jax.vmap`, which have these rules in turn.
Every program is compiled once for each set of shapes, and kept. Within `torch.compile` the rules
are the same, and a call is an operator (`jaxmbd.torch.compiled`).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any
from weakref import proxy

import jax.numpy as jnp
import numpy as np
from jax import tree_util

from jaxmbd.torch.programs import CALLS, Index, Program, computed, linear, mapped, of_leaves
from jaxmbd.torch.tensors import is_recorded, problem_of, torch

_numbers = itertools.count(1)


class Call:
    """A program with its arguments that are no tensors; afterwards the tree of results.

    One that is traced by PyTorch, whose graphs may outlive all else, does not keep the program.
    """

    def __init__(self, program: Program, others: tuple[Any, ...]):
        self.program = proxy(program) if torch.compiler.is_compiling() else program
        self.others = others
        self.tree: Any = None


class Applied(torch.autograd.Function):
    """A call as a node of PyTorch's graph."""

    @staticmethod
    def forward(call: Call, *tensors: torch.Tensor) -> Any:
        """The results; those of concrete tensors are there when it returns."""
        if torch.compiler.is_compiling():
            from jaxmbd.torch.compiled import placed

            out, call.tree = placed(call.program, call.others, tensors)
            return out
        if is_recorded():
            raise RuntimeError(
                "PyTorch records operations here (torch.func.linearize, make_fx, torch.jit.trace), "
                "and results of JAX would become constants; torch.func.jvp and vmap work"
            )
        out, call.tree = computed(call.program, call.others, tensors)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the inputs, since derivatives compute values anew."""
        call, *tensors = inputs
        ctx.call, ctx.count = call, len(output)
        given = {k: y for k, y in enumerate(output) if isinstance(y, torch.Tensor)}
        ctx.floats = tuple(k for k, y in given.items() if y.is_floating_point())
        others = (y for k, y in given.items() if k not in ctx.floats)
        ctx.mark_non_differentiable(*others)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """Cotangents of those inputs that need them."""
        asked = tuple(k for k, need in enumerate(ctx.needs_input_grad[1:]) if need)
        given = tuple(k for k in ctx.floats if cotangents[k] is not None)
        found = _linear(ctx, False, asked, given, [cotangents[k] for k in given])
        return None, *_spread(found, asked, len(ctx.needs_input_grad) - 1)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        """Tangents of the results."""
        asked = tuple(k for k, x in enumerate(tangents) if x is not None)
        found = _linear(ctx, True, asked, ctx.floats, [tangents[k] for k in asked])
        return _spread(found, ctx.floats, ctx.count)

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: Call, *tensors: torch.Tensor) -> Any:
        """The results over a batch, and their axes."""
        inner = Call(call.program.derived(mapped, tuple(in_dims[1:])), call.others)
        out = Applied.apply(inner, *tensors)
        call.tree = inner.tree
        if not all(isinstance(y, torch.Tensor) for y in out):
            raise TypeError(
                "a result is a random key of JAX, which torch.func.vmap cannot map; wrap a "
                "function of the whole batch, wrap(jax.vmap(fn)), or return no key"
            )
        return out, (0,) * len(out)


def _linear(ctx: Any, forward: bool, asked: Index, given: Index, directions: list[Any]) -> Any:
    """The derivative of a call along directions; nothing if there is nothing to differentiate."""
    if not (asked and given):
        return [None] * len(given if forward else asked)
    program = ctx.call.program.derived(linear, forward, asked, given)
    return Applied.apply(Call(program, ctx.call.others), *ctx.saved_tensors, *directions)


def _spread(found: Sequence[Any], places: Index, count: int) -> tuple[Any, ...]:
    """So many values: those that were found at their places, else None."""
    at = dict(zip(places, found, strict=True))
    return tuple(at.get(k) for k in range(count))


def _called(root: Program, arguments: Any) -> Any:
    """The results of a wrapped function.

    Raises:
        TypeError: a tensor that JAX would not read, or would read another.
    """
    leaves, tree = tree_util.tree_flatten(arguments)
    flags = tuple(isinstance(x, torch.Tensor) for x in leaves)
    wide = jnp.result_type(float) == np.float64
    parts: tuple[list[Any], list[Any]] = [], []
    for k, (x, flag) in enumerate(zip(leaves, flags, strict=True)):
        if flag and (problem := problem_of(x, wide)):
            path = tree_util.tree_flatten_with_path(arguments)[0][k][0]
            raise TypeError(f"argument {tree_util.keystr(path[1:])} is {problem}")
        parts[flag].append(x)
    call = Call(root.derived(of_leaves, tree, flags), tuple(parts[0]))
    out = Applied.apply(call, *parts[1])
    return tree_util.tree_unflatten(call.tree, out)


def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A JAX function as a function of PyTorch tensors.

    Tensors of the CPU among the arguments become arrays, arrays among the results tensors; both in
    any pytrees. Derivatives of any order are JAX's, by ``backward``, `torch.autograd.grad` and
    `torch.func`; nothing is computed for tensors that need none. Arguments that are no tensors
    (numbers, arrays, mechanisms, random keys) are handed on, without gradients, and random keys
    among the results stay JAX's, so that an `EnvState` goes through. ``torch.compile`` takes a call
    into its graph where all is tensors in dictionaries, lists and (named) tuples, and constant
    numbers; else it breaks its graph there. Results have memory of their own, and tensors may be
    changed after a call.

    Args:
        fn: a pure function of pytrees of arrays, to a pytree of arrays. It is compiled by `jax.jit`
            for each set of shapes. For a batch let it call `lanes.vmap`, or apply
            `torch.func.vmap` to the wrapped function.

    Raises:
        ImportError: PyTorch is not installed.
        TypeError: `fn` is not callable. Calls raise it for tensors that are complex, sparse, on a
            GPU, or of 64 bits while JAX runs in 32.

    Example:
        >>> import jax, jax.numpy as jnp, torch
        >>> import jaxmbd as mbd
        >>> jax.config.update("jax_enable_x64", True)
        >>> f = mbd.torch.wrap(lambda x: {"squares": jnp.sum(x**2)})
        >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        >>> f(x)["squares"].backward()
        >>> x.grad
        tensor([2., 4.], dtype=torch.float64)
    """
    if not callable(fn):
        raise TypeError(f"jaxmbd.torch.wrap takes a function, not {type(fn).__name__}")
    name = f"{getattr(fn, '__qualname__', type(fn).__name__)} {next(_numbers)}"
    run = CALLS[name] = partial(_called, Program(fn, name))

    @wraps(fn)
    def wrapped(*args: Any, **keywords: Any) -> Any:
        if torch.compiler.is_compiling():
            from jaxmbd.torch.compiled import in_graph

            return in_graph(name, args, keywords)
        compiled = sys.modules.get("jaxmbd.torch.compiled")  # a graph may have broken here
        return compiled.untraced(run, (args, keywords)) if compiled else run((args, keywords))

    return wrapped
