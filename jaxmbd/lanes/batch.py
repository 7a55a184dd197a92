"""`lanes.vmap` and `lanes.jit`: like `jax.vmap` and `jax.jit`, compiled to one kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend import core
from jax.sharding import NamedSharding, PartitionSpec

from jaxmbd.lanes import primitive
from jaxmbd.lanes.context import on_host, tracing
from jaxmbd.lanes.kernel import kernel
from jaxmbd.lanes.keys import Words, has_keys, plain, with_keys
from jaxmbd.lanes.trace.content import Key
from jaxmbd.lanes.trace.jaxprs import with_manual_axes

TRACES = 64
"""Most traces cached per mapped function, for different types and constants; oldest dropped."""


class Traced(NamedTuple):
    """A traced function.

    Attributes:
        key: the function of flat arguments.
        consts: traced arrays that it closes over, its first arguments.
        tree: that of its results.
        avals: types of its results.
        lasting: whether it may be used for other calls.
        keyed: whether typed keys are among the results.
    """

    key: Key
    consts: list[Any]
    tree: Any
    avals: list[Any]
    lasting: bool
    keyed: bool

    def results(self, leaves: Sequence[Any]) -> Any:
        """The tree of its results."""
        tree = jax.tree_util.tree_unflatten(self.tree, leaves)
        return with_keys(tree) if self.keyed else tree


def vmap(
    fn: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    static: Sequence[int] = (),
    strict: bool = False,
    threads: int | None = None,
) -> Callable[..., Any]:
    """Map a function over a batch, like `jax.vmap`, by one compiled kernel.

    The function's scalar operations are compiled to vector instructions over several samples, which
    run on all cores. Arrays that the function closes over become constants of the kernel (a new
    value needs a new kernel); arguments do not. Loops are not unrolled. Derivatives are kernels as
    well.

    Args:
        fn: a function of pytrees of arrays, on one sample.
        in_axes: as for `jax.vmap`: an axis, None for an argument that all samples share, or a tree
            of these.
        out_axes: where the batch axis goes in the results.
        static: positions of arguments whose concrete leaves without a batch axis become constants.
        strict: raise if the function cannot be compiled, instead of a warning and `jax.vmap`.
        threads: number of cores to use at most; by default all.

    Raises:
        ValueError: batch sizes differ, or nothing has a batch axis.
        Unsupported: with `strict`; names the operation that cannot be compiled and the user's line.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> lanes.vmap(lambda x: jnp.sin(x) @ x)(jnp.zeros((5, 3))).shape
        (5,)
    """
    traced: dict[Any, Any] = {}
    options = primitive.Options(threads or 0, strict)

    @wraps(fn)
    def batched(*args: Any) -> Any:
        args, leaves, tree = _flat(args)
        axes = _spread(in_axes, args)
        leaves = _arrays(leaves)
        size = _size(leaves, axes)
        baked = _baked(args, axes, static, leaves)
        moved = [
            x if a is None else x if a == 0 else jnp.moveaxis(jnp.asarray(x), a, 0)
            for x, a in zip(leaves, axes, strict=True)
        ]
        flags = tuple(a is not None for a in axes)
        avals = _sample_types(moved, flags)
        varies = primitive.varying_axes(leaves)
        place = (tree, flags, avals, varies, _names(baked))
        known = _known(traced, place, lambda: _trace(fn, tree, avals, baked, varies))
        key, consts, out_tree, out_avals, *_ = known
        given = [x for k, x in enumerate(moved) if k not in baked]
        given_flags = [b for k, b in enumerate(flags) if k not in baked]
        given_flags = [False] * len(consts) + given_flags
        out = primitive.call(key, [*consts, *given], given_flags, size, options)
        to = _spread(out_axes, jax.tree_util.tree_unflatten(out_tree, out_avals))
        if None in to:
            _check_shared(to, kernel(key, given_flags).shared)
        out = [
            y if a == 0 else y[0] if a is None else jnp.moveaxis(y, 0, a)
            for y, a in zip(out, to, strict=True)
        ]
        return known.results(out)

    return batched


def jit(fn: Callable[..., Any], *, strict: bool = False, threads: int | None = None) -> Any:
    """Compile a function of one sample, like `jax.jit`; `jax.vmap` of it is one kernel too.

    So a library function for one sample, wrapped by this, is compiled as by `lanes.vmap` wherever a
    caller applies `jax.vmap` to it. A call of numbers that are not traced runs on the host, even if
    JAX's default device is a GPU, unless the caller has said where (`context.on_host`).

    Args:
        fn: a function of pytrees of arrays, on one sample.
        strict: raise if it cannot be compiled, instead of a warning and plain JAX.
        threads: number of cores to use at most; by default all.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> f = lanes.jit(lambda x: jnp.sin(x) @ x)
        >>> f(jnp.zeros(3)).item(), jax.vmap(f)(jnp.zeros((5, 3))).shape
        (0.0, (5,))
    """
    traced: dict[Any, Any] = {}
    options = primitive.Options(threads or 0, strict)

    @wraps(fn)
    def compiled(*args: Any) -> Any:
        _, leaves, tree = _flat(args)
        with on_host(leaves):
            return called(_arrays(leaves), tree)

    def called(leaves: list[Any], tree: Any) -> Any:
        avals = _sample_types(leaves, [False] * len(leaves))
        varies = primitive.varying_axes(leaves)
        place = (tree, avals, varies)
        known = _known(traced, place, lambda: _trace(fn, tree, avals, {}, varies))
        flags = [False] * (len(known.consts) + len(leaves))
        out = primitive.call(known.key, [*known.consts, *leaves], flags, 1, options)
        return known.results([jnp.squeeze(y, 0) for y in out])

    return compiled


def _flat(args: Any) -> tuple[Any, list[Any], Any]:
    """Arguments without typed keys, their leaves and their tree."""
    leaves, tree = jax.tree_util.tree_flatten(args)
    if has_keys(leaves):
        args = plain(args)
        leaves, tree = jax.tree_util.tree_flatten(args)
    return args, leaves, tree


def _arrays(leaves: Sequence[Any]) -> list[Any]:
    """Arguments as arrays; warns if JAX will convert float64 to float32."""
    arrays = [x if hasattr(x, "dtype") else jnp.asarray(x) for x in leaves]
    double = jnp.result_type(float) == np.float64
    if not double and any(x.dtype == np.float64 != jax.typeof(x).dtype for x in arrays):
        warnings.warn(
            "lanes: an argument is float64, but JAX runs in 32 bits and cuts it to float32. Switch "
            "on double precision before anything else, jax.config.update('jax_enable_x64', True), "
            "or give float32 arrays",
            stacklevel=3,  # the caller of the function that `vmap` or `jit` returned
        )
    return arrays


def _known(traced: dict[Any, Traced], place: Any, trace: Callable[[], Traced]) -> Traced:
    """The cached trace of a place, or a new one."""
    known = traced.get(place)
    if known is None:
        known = trace()
        if known.lasting:
            traced[place] = known
            if len(traced) > TRACES:
                del traced[next(iter(traced))]
    return known


def _sample_types(leaves: Sequence[Any], batched: Sequence[bool]) -> tuple[Any, ...]:
    """The types of one sample's arguments; Python numbers stay weakly typed."""
    types = [jax.typeof(x) for x in leaves]
    shapes = (t.shape[1:] if b else t.shape for t, b in zip(types, batched, strict=True))
    kinds = [(s, t.dtype, t.weak_type) for s, t in zip(shapes, types, strict=True)]
    made = {x: jax.ShapeDtypeStruct(*x[:2], weak_type=x[2]) for x in set(kinds)}  # few, of many
    return tuple(made[x] for x in kinds)


def _check_shared(axes: Sequence[int | None], shared: Sequence[bool]) -> None:
    if any(a is None and not same for a, same in zip(axes, shared, strict=True)):
        raise ValueError("lanes.vmap: out_axes is None for a result that varies with the batch")


def _trace(fn: Any, tree: Any, avals: Any, baked: dict[int, Any], axes: frozenset[Any]) -> Traced:
    """The single-sample jaxpr; traced arrays that `fn` closes over become leading arguments.

    The function is traced without the manual mesh `axes` that its arguments vary along, unless an
    array that it closes over varies along some.
    """
    shapes: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        it = iter(leaves)
        whole = [baked[k] if k in baked else next(it) for k in range(len(avals))]
        out = fn(*with_keys(jax.tree_util.tree_unflatten(tree, whole)))
        keyed = has_keys(jax.tree_util.tree_leaves(out))
        out_leaves, out_tree = jax.tree_util.tree_flatten(plain(out) if keyed else out)
        shapes.append((out_tree, keyed))
        return [jnp.asarray(x) for x in out_leaves]

    flat.__wrapped__ = fn  # whose name and line its jaxpr then tells

    def jaxpr(types: Sequence[Any]) -> Any:
        with tracing():
            return jax.make_jaxpr(flat)(*types)

    given = [a for k, a in enumerate(avals) if k not in baked]
    try:
        closed = jaxpr(given)
        typed = bool(primitive.varying_axes(closed.consts))
    except (TypeError, ValueError):
        if not axes:
            raise
        typed = True
    if typed:
        whole = NamedSharding(jax.sharding.get_abstract_mesh(), PartitionSpec())
        given = [with_manual_axes(a, axes, sharding=whole) for a in given]
        closed = jaxpr(given)
    outer = [k for k, c in enumerate(closed.consts) if isinstance(c, Tracer)]
    consts: list[Any] = []
    if outer:
        consts = [closed.consts[k] for k in outer]
        closed = _hoisted(closed, outer)
    out_tree, keyed = shapes[-1]
    return Traced(Key(closed), consts, out_tree, list(closed.out_avals), not outer, keyed)


def _hoisted(closed: Any, outer: list[int]) -> Any:
    """A closed jaxpr whose constants at the indices `outer` become its first arguments."""
    jaxpr, chosen = closed.jaxpr, set(outer)
    first = [jaxpr.constvars[k] for k in outer]
    rest = [v for k, v in enumerate(jaxpr.constvars) if k not in chosen]
    kept = [c for k, c in enumerate(closed.consts) if k not in chosen]
    info = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    new = core.Jaxpr(rest, [*first, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns, jaxpr.effects, info)
    return core.ClosedJaxpr(new, kept)


def _spread(axes: Any, tree: Any) -> list[int | None]:
    """An axis for each leaf, from a tree of axes that is a prefix of the leaves' tree."""
    leaves: list[int | None] = []

    def add(axis: Any, part: Any) -> None:
        if axis is None or axis >= 0:
            leaves.extend([axis] * len(jax.tree_util.tree_leaves(part)))
            return
        for x in jax.tree_util.tree_leaves(part, is_leaf=lambda x: isinstance(x, Words)):
            leaves.append(axis - int(isinstance(x, Words)))  # the words' own axis is the last

    axes = tuple(axes) if isinstance(axes, list) else axes
    try:
        jax.tree_util.tree_map(add, axes, tree, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(
            f"lanes.vmap: in_axes or out_axes do not match the tree: {error}"
        ) from None
    return leaves


def _size(leaves: Sequence[Any], axes: Sequence[int | None]) -> int:
    sizes: dict[int, int] = {}
    for k, (x, a) in enumerate(zip(leaves, axes, strict=True)):
        if a is None:
            continue
        if not -np.ndim(x) <= a < np.ndim(x):
            raise ValueError(f"lanes.vmap: argument {k} has shape {np.shape(x)} and no axis {a}")
        sizes[k] = np.shape(x)[a]
    if not sizes:
        raise ValueError("lanes.vmap: no argument has a batch axis (all in_axes are None)")
    if len(set(sizes.values())) > 1:
        raise ValueError(
            "lanes.vmap: batch sizes differ: "
            + ", ".join(f"leaf {k} has {n}" for k, n in sizes.items())
        )
    return next(iter(sizes.values()))


def _baked(args: Any, axes: Any, static: Sequence[int], leaves: Sequence[Any]) -> dict[int, Any]:
    """Leaves that become constants of the kernel."""
    baked, k = {}, 0
    for position, arg in enumerate(args):
        for _ in jax.tree_util.tree_leaves(arg):
            if position in static and axes[k] is None and not isinstance(leaves[k], Tracer):
                x = leaves[k]
                baked[k] = x if jax.typeof(x).weak_type else np.asarray(x)
            k += 1
    return baked


def _names(baked: dict[int, Any]) -> Any:
    return tuple((k, np.asarray(x).tobytes()) for k, x in baked.items())
