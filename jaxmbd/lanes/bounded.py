"""While loops with a bound on their iterations, which have derivatives in both modes.

A loop of at most n iterations is a scan of √n segments of √n iterations (deeper for large n). Each
sample that has finished keeps its state; segments and iterations that no sample of the batch needs
are skipped, in reverse mode too, and `jax.checkpoint` keeps only the states at the start of each
segment. In a kernel (see `trace.rules.scan`) these scans end early, and their adjoints begin with
the last iteration that some sample took.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend import core
from jax.interpreters import batching, mlir

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.trace.arrays import Value
from jaxmbd.lanes.trace.interpreter import rule
from jaxmbd.lanes.trace.jaxprs import BOUNDED, GOING
from jaxmbd.lanes.trace.rules.scan import SEGMENTED

State = tuple[Array, Array, Any]
"""Whether the sample goes on, the number of iterations so far, and the value."""
Step = Callable[[State], State]


def bounded_while(
    cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, most: int
) -> Any:
    """`jax.lax.while_loop` that ends after `most` iterations, with derivatives in both modes.

    Under `jax.vmap` and `lanes.vmap` each sample goes on as long as its own condition holds; one
    that has finished keeps its value and passes derivatives on unchanged, whatever `body` would do
    to it. The time is that of the iterations which the slowest sample (in a kernel: of a vector)
    takes, not of `most`, in the reverse sweep too, which needs memory for 2√most states (from 4097
    on 3∛most, and so on).

    The caller sees from the result whether the bound ended the loop: the condition still holds.

    Args:
        cond: of a value: whether to go on, a boolean without axes.
        body: of a value: the next one, of the same structure, shapes and types.
        init: the first value, a pytree of arrays of any shapes.
        most: largest number of iterations, a Python integer.

    Returns:
        the value for which `cond` first fails, or that after `most` iterations.

    Raises:
        ValueError: `most` is negative, or 2³¹ or more.
        TypeError: `most` is no integer, `cond` gives no boolean without axes, or `body` changes
            structure, shapes or types.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> def root(x):  # by Newton's method
        ...     def off(y):
        ...         return jnp.abs(y * y - x) > 1e-14 * x
        ...     return lanes.bounded_while(off, lambda y: 0.5 * (y + x / y), x, 100)
        >>> value, slope = jax.value_and_grad(root)(4.0)
        >>> round(value.item(), 12), round(slope.item(), 12)
        (2.0, 0.25)
    """

    def call(value: Any) -> Any:
        return body(value)

    call.__name__ = GOING  # the names by which the tracer recognises iterations
    once = jax.jit(call)  # traced once, though it is called twice
    init = _checked(cond, once, init, most)
    if most < 2:
        return jax.lax.cond(cond(init), body, lambda x: x, init) if most else init

    def iteration(state: State) -> State:
        going, done, value = state
        value = jax.lax.cond(going, once, lambda x: x, value)
        done = done + 1
        return going & cond(value) & (done < most), done, value

    # Only an iteration is checkpointed: of a checkpointed scan in a scan JAX 0.9.2 loses tangents
    # in `jax.linearize`.
    run = jax.checkpoint(iteration, prevent_cse=False)
    for length in _lengths(most):
        run = _repeated(run, length)
    return run((jnp.asarray(cond(init)), jnp.asarray(0, jnp.int32), init))[2]


def _lengths(most: int) -> list[int]:
    """The lengths of nested scans of at least `most` iterations in all, none of them long."""
    depth = next(k for k in count() if SEGMENTED**k >= most)
    return [next(n for n in count(1) if n**depth >= most)] * depth


def _checked(cond: Any, body: Any, init: Any, most: Any) -> Any:
    """The first value as arrays, of the types that the body gives; plain numbers take these on."""
    if isinstance(most, bool) or not isinstance(most, int):
        raise TypeError(f"bounded_while: most={most!r}; give an integer")
    if not 0 <= most < 2**31:
        raise ValueError(f"bounded_while: most={most}; give at least 0 and less than 2**31")
    init = jax.tree_util.tree_map(jnp.asarray, init)
    found, after = jax.eval_shape(cond, init), jax.eval_shape(body, init)
    if getattr(found, "shape", None) != () or found.dtype != jnp.bool_:
        raise TypeError(f"bounded_while: cond gives {found}; it must give a boolean without axes")
    old, new = (jax.tree_util.tree_structure(x) for x in (init, after))
    if old != new:
        raise TypeError(f"bounded_while: body gives {new}, where the first value is {old}")

    def typed(path: Any, x: Array, y: Any) -> Array:
        if x.weak_type:
            x = jnp.asarray(x, jnp.result_type(x, y.dtype))
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise TypeError(
                f"bounded_while: body changes {jax.tree_util.keystr(path) or 'the value'} from "
                f"{x.dtype}{list(x.shape)} to {y.dtype}{list(y.shape)}"
            )
        return x

    return jax.tree_util.tree_map_with_path(typed, init, after)


def _repeated(step: Step, times: int) -> Step:
    """A step done several times, or as often as some sample goes on."""

    def call(state: State) -> State:
        return step(state)

    call.__name__ = BOUNDED
    needed = jax.jit(call)

    def once(state: State, _: None) -> tuple[State, None]:
        return jax.lax.cond(some_p.bind(state[0]), needed, lambda s: s, state), None

    return lambda state: jax.lax.scan(once, state, None, times)[0]


some_p = core.Primitive("lanes_some")
"""Whether a condition holds in some sample of the batch: one value for all of them."""
some_p.def_impl(lambda x: x)
some_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(some_p, mlir.lower_fun(lambda x: x, multiple_results=False))


def _batch(args: Any, dims: Any) -> Any:
    return some_p.bind(jax.lax.reduce_or(args[0], (dims[0],))), None


batching.primitive_batchers[some_p] = _batch


@rule("lanes_some")
def _some(g: Graph, eqn: Any, x: Value) -> Value:
    """The sample's own condition: a kernel branches for all samples of a vector."""
    return x
