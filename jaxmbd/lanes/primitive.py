"""The JAX primitive of a lanes call, with its rules of lowering and batching.

`tangent` has those of differentiation.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import ShapedArray
from jax.extend import core
from jax.interpreters import batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from jaxmbd.lanes.collecting import collected
from jaxmbd.lanes.context import jit_enabled
from jaxmbd.lanes.ir.nodes import Unsupported, warn_once
from jaxmbd.lanes.kernel import MANY, Kernel, kernel
from jaxmbd.lanes.targets import cpu, lowering
from jaxmbd.lanes.trace.content import Key
from jaxmbd.lanes.trace.jaxprs import manual_axes, with_manual_axes
from jaxmbd.lanes.trace.parts import Parts, parted, told

try:
    from jax.errors import InconclusiveDimensionOperation  # pyright: ignore[reportAttributeAccessIssue]
except ImportError:  # before JAX 0.11
    from jax.core import InconclusiveDimensionOperation

call_p = core.Primitive("lanes")
call_p.multiple_results = True

EAGER = 64
"""Size of the cache of compiled calls made outside `jax.jit` (least recently used evicted)."""

# Parameters: `key` (the single-sample function), `batched` (which of its arguments have a leading
# batch axis), `size` (of the batch), `options`, `pullback` (see `Kernel`).


class Options(NamedTuple):
    """How a call is compiled.

    Attributes:
        threads: most cores to use; 0 for all.
        strict: raise if the call cannot be compiled, instead of falling back to `jax.vmap`.
    """

    threads: int = 0
    strict: bool = False


def call(
    key: Key, args: Sequence[Any], batched: Sequence[bool], size: int, options: Options
) -> list[Array]:
    """Run a single-sample function over a batch."""
    found = key.made("told", lambda: told(key.closed))
    if found is not None:
        return _in_parts(found, args, batched, size, options)
    return call_p.bind(
        *varying(args), key=key, batched=tuple(batched), size=size, options=options, pullback=None
    )


def varying_axes(args: Sequence[Any]) -> frozenset[Any]:
    """The manual mesh axes (of `jax.shard_map`) that any argument varies along."""
    if jax.sharding.get_abstract_mesh().empty:
        return frozenset()
    return frozenset().union(*(manual_axes(jax.typeof(x)) for x in args))


def varying(args: Sequence[Any]) -> list[Any]:
    """Arguments cast to vary along the same manual mesh axes, as JAX does for its operations."""
    axes = varying_axes(args)
    return (
        [
            jax.lax.pcast(
                x, tuple(axes - manual_axes(jax.typeof(x))), to="varying"
            )  # identity for no axes
            for x in args
        ]
        if axes
        else list(args)
    )


def result_types(
    samples: Sequence[Any], size: int, given: Sequence[Any], batched: Sequence[bool]
) -> list[Any]:
    """The types of results, with the arguments' varying axes and sharding of the batch."""
    kinds = {(a.shape, a.dtype, a.weak_type) for a in samples}  # few, where results are many
    made = {x: ShapedArray((size, *x[0]), x[1], weak_type=x[2]) for x in kinds}
    outs = [made[a.shape, a.dtype, a.weak_type] for a in samples]
    placed = [(a, b) for a, b in zip(given, batched, strict=True) if not a.sharding.mesh.empty]
    if not placed:
        return outs
    split = [a.sharding.spec[0] for a, b in placed if b and a.sharding.spec[0] is not None]
    axes = frozenset().union(*(manual_axes(a) for a in given))
    mesh = placed[0][0].sharding.mesh

    def sharding(aval: Any) -> NamedSharding:
        others = [None] * len(aval.shape)
        return NamedSharding(mesh, PartitionSpec(split[0] if split else None, *others))

    return [
        with_manual_axes(out, axes, sharding=sharding(a))
        for out, a in zip(outs, samples, strict=True)
    ]


def plain(key: Key, batched: Sequence[bool], pullback: Any) -> Any:
    """The call by `jax.vmap`, where there is no kernel."""
    fn = single(key, pullback)
    extra = (True,) * (pullback[1].count(True) if pullback else 0)
    axes = [0 if b else None for b in (*batched, *extra)]
    if not any(b for b in (*batched, *extra)):
        return lambda *args: [y[None] for y in fn(*args)]
    return jax.vmap(lambda *args: fn(*args), in_axes=tuple(axes))


def single(key: Key, pullback: Any) -> Any:
    """The single-sample function of a call, as a JAX function of flat arguments."""
    whole = key.made("parts", lambda: _by_parts(key))
    if pullback is None:
        return whole
    wanted, given = pullback
    count = len(key.closed.in_avals)

    def back(*args: Any) -> list[Array]:
        primals, cotangents = args[:count], iter(args[count:])

        def of_wanted(*chosen: Any) -> Any:
            it = iter(chosen)
            out = whole(*[next(it) if w else x for x, w in zip(primals, wanted, strict=True)])
            return [y for y, g in zip(out, given, strict=True) if g]

        _, pull = jax.vjp(of_wanted, *[x for x, w in zip(primals, wanted, strict=True) if w])
        return list(pull(list(cotangents)))

    return back


def _by_parts(key: Key) -> Callable[..., Any]:
    """A function that lanes cannot compile: one kernel of what it can, and the rest by JAX.

    Only what follows, as the singular values of a matrix, is left to JAX; else the lanes calls in
    the function would be kernels of their own, and their derivatives further ones with the same
    values.
    """
    found = parted(key.closed)
    if found is None:
        return key

    def function(*args: Any) -> list[Any]:
        out = _in_parts(found, args, [False] * len(args), 1, Options())
        return [jnp.squeeze(x, 0) for x in out]

    return function


def _in_parts(
    found: Parts, args: Sequence[Any], batched: Sequence[bool], size: int, options: Options
) -> list[Array]:
    """What a call computes, part by part; what is the same in all samples is computed once."""
    values = {v: (x, False) for v, x in found.constants.items()}
    values |= zip(found.arguments, zip(args, batched, strict=True), strict=True)
    for part in found.parts:
        given, flags = [values[v][0] for v in part.inputs], [values[v][1] for v in part.inputs]
        shared = not any(flags)
        if part.kernel:
            out = call(part.key, given, flags, 1 if shared else size, options)
            each = part.each(flags)
            out = [x if b else x[0] for x, b in zip(out, each, strict=True)]
        else:
            axes = [0 if b else None for b in flags]
            out = (part.key if shared else jax.vmap(part.key, axes))(*given)
            each = [not shared] * len(out)
        values |= zip(part.outputs, zip(out, each, strict=True), strict=True)

    def result(v: Any) -> Any:
        aval: Any = v.aval
        x, each = (v.val, False) if isinstance(v, core.Literal) else values[v]
        x = jnp.asarray(x, aval.dtype)
        return x if each else jnp.broadcast_to(x, (size, *x.shape))

    return [result(v) for v in found.results]


# Values


@call_p.def_impl
def _impl(*args: Any, **params: Any) -> Any:
    """A call outside `jax.jit`: a kernel is one operation, like JAX's own."""
    with jit_enabled():
        return _jitted(tuple(sorted(params.items(), key=lambda item: item[0])))(*args)


@lru_cache(EAGER)
def _jitted(params: Any) -> Any:
    return jax.jit(lambda *args: call_p.bind(*args, **dict(params)))


@call_p.def_abstract_eval
def _abstract(*avals: Any, key: Key, batched: Any, size: int, pullback: Any, **_: Any) -> Any:
    k = kernel(key, batched, pullback)
    return result_types(k.out_avals, size, avals, k.in_batched)


def _cpu_rule(ctx: Any, k: Kernel, params: Any) -> Any:
    threads, size, kernels = params["options"].threads, params["size"], collected()
    if kernels is None:
        parts = lowering.devices(ctx.module_context.axis_context)
        code = k.compile_cpu(threads, size // parts)
        return lowering.host_call(code.name, k.in_batched, code.flops * size)
    if isinstance(size, int):
        name, flops = kernels.of_host(k, threads, size)
        return lowering.host_call(name, k.in_batched, flops * size)
    name, _ = kernels.of_host(k, threads, MANY)
    return lowering.host_call(name, k.in_batched, lowering.LONG)


def _check_fills(size: Any) -> None:
    """Raise an error if a batch is symbolic, and not known to fill any vector."""
    if isinstance(size, int):
        return
    fewest = cpu.vector_bits() // 32
    try:
        if size >= fewest:
            return
    except InconclusiveDimensionOperation:  # it may or may not be
        pass
    raise ValueError(
        f"the batch size {size} may be too small for vectors of the processor: say that it has "
        f"{fewest} samples or more, jax.export.symbolic_shape(..., constraints=['{size} >= "
        f"{fewest}'])"
    )


def _cuda_rule(_: Any, k: Kernel, __: Any) -> Any:
    kernels = collected()
    name = k.compile_cuda().name if kernels is None else kernels.of_gpu(k)
    return lowering.call(name, k.in_batched)


def _other_rule(ctx: Any, *_: Any) -> Any:
    asked = [p for p in ctx.platforms or ctx.module_context.platforms if p not in TARGETS]
    raise Unsupported(
        f"lanes has kernels for {' and '.join(TARGETS)} only, and none for {', '.join(asked)}"
    )


TARGETS = {"cpu": _cpu_rule, "cuda": _cuda_rule}
"""The rules of the platforms, by JAX's names, that there are kernels for."""


def _lower(compiled: Callable[[Any, Kernel, Any], Any], ctx: Any, *args: Any, **params: Any) -> Any:
    """Lower to a compiled kernel, or to `jax.vmap` if there is none."""
    k = kernel(params["key"], params["batched"], params["pullback"])
    kernels = collected()
    if kernels is not None:
        kernels.calls += 1
        _check_fills(params["size"])
    if params["size"] == 0 or not k.out_avals:
        return _lower_plain(ctx, *args, **params)
    try:
        if kernels is None and ctx.module_context.lowering_parameters.for_export:
            raise Unsupported(
                "jax.export cannot export kernels of lanes, which are machine code of this "
                "process; lanes.export can, to a file that has them"
            )
        rule = compiled(ctx, k, params)
    except Unsupported as error:
        reason = error
    except MemoryError:
        raise
    except Exception as error:
        reason = _defect(error)
    else:
        if kernels is None:
            ctx.module_context.add_keepalive(NOT_PORTABLE)
        return rule(ctx, *args)
    if params["options"].strict:
        raise reason
    warn_once(str(reason), "jax.vmap")
    return _lower_plain(ctx, *args, **params)


def _defect(error: Exception) -> Unsupported:
    """The report of an internal error of lanes."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(last.filename)}:{last.lineno}"
    where = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    found = Unsupported(
        f"lanes failed inside ({type(error).__name__}: {error}, at {place}){where}. This is a bug "
        "in lanes; please report it together with the function"
    )
    found.__cause__ = error
    return found


class NotPortable:
    """An object attached to programs with kernels to make pickling fail."""

    def __reduce__(self) -> Any:
        raise TypeError(
            "this program calls kernels of lanes, which are machine code of this process, and so "
            "cannot be serialized. Use lanes.export, whose file has the kernels, or jax.export, "
            "which compiles by XLA alone, as do backend='xla' and jax.vmap instead of lanes.vmap. "
            "Compiling again in another process is fast, as kernels are cached on disk"
        )


NOT_PORTABLE = NotPortable()


def _lower_plain(ctx: Any, *args: Any, **params: Any) -> Any:
    fn = plain(params["key"], params["batched"], params["pullback"])
    size = params["size"]
    # The function was traced with the manual axes of the single-sample types.
    samples = kernel(params["key"], params["batched"], params["pullback"]).in_avals
    avals = [
        with_manual_axes(a, manual_axes(s)) for a, s in zip(ctx.avals_in, samples, strict=True)
    ]
    ctx = ctx.replace(avals_in=avals)

    def spread(*xs: Any) -> list[Array]:
        if size == 0:
            return [jnp.zeros(a.shape, a.dtype) for a in ctx.avals_out]
        return list(fn(*xs))

    return mlir.lower_fun(spread, multiple_results=True)(ctx, *args)


# JAX keeps what a rule made for further equal calls of a program. A rule that it may not keep
# (`cacheable=False`) fails where a program is lowered for several platforms at once.
mlir.register_lowering(call_p, partial(_lower, _other_rule))
for _platform, _rule in TARGETS.items():
    mlir.register_lowering(call_p, partial(_lower, _rule), platform=_platform)


def _batch(args: Any, dims: Any, **params: Any) -> Any:
    """Batching: the new axis is merged with the call's own batch axis."""
    count = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    size = params["size"]
    k = kernel(params["key"], params["batched"], params["pullback"])
    given, flags = [], []
    for x, d, b in zip(args, dims, k.in_batched, strict=True):
        flags.append(d is not None or b)
        given.append(joined(x, d, b, count, size) if flags[-1] else x)
    new = dict(params, batched=tuple(flags[: len(params["batched"])]), size=count * size)
    out = call_p.bind(*varying(given), **new)
    return [y.reshape(count, size, *y.shape[1:]) for y in out], [0] * len(out)


def joined(x: Any, dim: int | None, batched: bool, count: int, size: int) -> Any:
    """An argument with the new batch (`count`) and the call's own (`size`) merged in one axis."""
    if dim is not None:
        x = jnp.moveaxis(x, dim, 0) if dim else x
        if size == 1:
            return jnp.squeeze(x, 1) if batched else x
        if not batched:
            x = jnp.broadcast_to(x[:, None], (count, size, *x.shape[1:]))
    else:
        x = jnp.broadcast_to(x, (count, *jnp.shape(x)))
    return x.reshape(count * size, *x.shape[2:])


batching.primitive_batchers[call_p] = _batch
