"""Derivatives of a lanes call: its tangent map, a second primitive, linear in the tangents.

With f the function of a call, the tangent map ``J ẋ`` is a kernel of f's JVP and its transpose
``Jᵀ ȳ``, the pullback, one of f's VJP, which reverses the graph. The pullback is a call too, so
it has a tangent map. Forward, that is a kernel of the JVP of JAX's own VJP. Its transpose needs no
reverse of a reverse: ``⟨w, Jᵀ ȳ⟩ = ⟨ȳ, J w⟩`` as a function of x and ȳ, whose gradient with respect
to ȳ is the tangent ``J w``, and with respect to x the pullback of ``x ↦ J(x) w``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core
from jax.interpreters import ad, batching, mlir

from jaxmbd.lanes.context import collector_paused
from jaxmbd.lanes.kernel import kernel
from jaxmbd.lanes.primitive import call_p, joined, result_types, single, varying
from jaxmbd.lanes.trace.content import Key
from jaxmbd.lanes.trace.jaxprs import evaluated, named

tangent_p = core.Primitive("lanes_tangent")
tangent_p.multiple_results = True

# Parameters: those of the call, with a flag in `batched` for each of its arguments, cotangents of a
# pullback included; `moving` (which arguments have a tangent).


def _floating(aval: Any) -> bool:
    return jnp.issubdtype(aval.dtype, jnp.floating)


def _zero(x: Any) -> Any:
    """The symbolic zero tangent of a value."""
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def without_pullback(key: Key, pullback: Any) -> Key:
    """The call's function with its pullback traced explicitly, to be differentiated again."""
    if pullback is None:
        return key
    return key.made(("again", pullback), lambda: _traced(key, pullback))


@collector_paused()
def _traced(key: Key, pullback: Any) -> Key:
    avals = [*key.closed.in_avals]
    avals += [a for a, g in zip(key.closed.out_avals, pullback[1], strict=True) if g]
    return Key(jax.make_jaxpr(single(key, pullback))(*avals))


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    out = call_p.bind(*primals, **params)
    moving = tuple(
        not isinstance(t, ad.Zero) and _floating(jax.typeof(p))
        for p, t in zip(primals, tangents, strict=True)
    )
    if not any(moving):
        return out, [_zero(y) for y in out]
    dots = [ad.instantiate_zeros(t) for t, m in zip(tangents, moving, strict=True) if m]
    k = kernel(params["key"], params["batched"], params["pullback"])
    floats = tangent_p.bind(
        *varying([*primals, *dots]), **dict(params, batched=k.in_batched), moving=moving
    )
    given = iter(floats)
    return out, [next(given) if _floating(y) else _zero(y) for y in out]


ad.primitive_jvps[call_p] = _jvp


def tangent_key(key: Key, moving: tuple[bool, ...]) -> Key:
    """(primals, tangents of those in `moving`) → tangents of the floating-point results."""
    return key.made(("tangent", moving), lambda: _tangent_key(key, moving))


@collector_paused()
def _tangent_key(key: Key, moving: tuple[bool, ...]) -> Key:
    closed = named(key.closed)
    avals = closed.in_avals

    def push(primals: Any, dots: Any) -> Any:
        def of_moving(*chosen: Any) -> Any:
            it = iter(chosen)
            given = [next(it) if m else x for x, m in zip(primals, moving, strict=True)]
            out = evaluated(closed, *given)
            return [y for y in out if _floating(y)]

        chosen = [x for x, m in zip(primals, moving, strict=True) if m]
        return jax.jvp(of_moving, tuple(chosen), tuple(dots))[1]

    dots = [a for a, m in zip(avals, moving, strict=True) if m]
    return Key(jax.make_jaxpr(push)(list(avals), dots))


def tangent_flags(batched: Sequence[bool], moving: Sequence[bool]) -> tuple[bool, ...]:
    """Which arguments of the tangent map have a batch axis."""
    return (*batched, *[b for b, m in zip(batched, moving, strict=True) if m])


def _tangent(*args: Any, moving: Any, **params: Any) -> Any:
    key = tangent_key(without_pullback(params["key"], params["pullback"]), moving)
    flags = tangent_flags(params["batched"], moving)
    return call_p.bind(*varying(args), **dict(params, key=key, batched=flags, pullback=None))


@tangent_p.def_impl
def _tangent_impl(*args: Any, **params: Any) -> Any:
    return _tangent(*args, **params)


@tangent_p.def_abstract_eval
def _tangent_abstract(*avals: Any, key: Key, size: int, pullback: Any, **params: Any) -> Any:
    flags = tangent_flags(params["batched"], params["moving"])
    outs = kernel(key, params["batched"][: len(key.closed.in_avals)], pullback).out_avals
    return result_types([a for a in outs if _floating(a)], size, avals, flags)


mlir.register_lowering(tangent_p, mlir.lower_fun(_tangent, multiple_results=True))


def _tangent_transpose(cotangents: Any, *args: Any, moving: Any, **params: Any) -> Any:
    """Cotangents of the tangents; those of arguments without a batch axis are summed over it."""
    primals = args[: len(moving)]
    given = [not isinstance(c, ad.Zero) for c in cotangents]
    if not any(given):
        return [None] * len(args)
    seeds = [c for c, g in zip(cotangents, given, strict=True) if g]
    rule = _pull if params["pullback"] is None else _pull_again
    grads = rule(primals, seeds, given, moving, params)
    return [None] * len(primals) + grads


def _pull(primals: Any, seeds: Any, given: Sequence[bool], moving: Any, params: Any) -> Any:
    """The pullback kernel."""
    floats = iter(given)
    outs = params["key"].closed.out_avals
    flags = tuple(next(floats) if _floating(a) else False for a in outs)
    return _summed([*primals, *seeds], dict(params, pullback=(moving, flags)))


def _summed(args: Sequence[Any], params: Any) -> list[Any]:
    """A pullback, with the cotangents of arguments that all samples share summed over the batch."""
    cotangents = call_p.bind(*varying(args), **params)
    pairs = zip(params["batched"], params["pullback"][0], strict=False)
    batched = [b for b, wanted in pairs if wanted]
    return [
        x if b else jax.lax.reduce_sum(x, (0,)) for x, b in zip(cotangents, batched, strict=True)
    ]


def _pull_again(primals: Any, w: Any, given: Sequence[bool], moving: Any, params: Any) -> Any:
    """The transpose of a pullback's tangent map, from the cotangents w of some of its results."""
    key, (wanted, seeded) = params["key"], params["pullback"]
    count = len(wanted)
    some = iter(given)
    along = tangent_key(key, tuple(next(some) if x else False for x in wanted))
    batched = (*params["batched"][:count], *[True] * len(w))
    params = dict(params, key=along, batched=batched)
    grads: list[Any] = []
    if any(moving[:count]):
        floats = [s for s, a in zip(seeded, key.closed.out_avals, strict=True) if _floating(a)]
        flags = ((*moving[:count], *[False] * len(w)), tuple(floats))
        grads += _summed([*primals[:count], *w, *primals[count:]], dict(params, pullback=flags))
    if any(moving[count:]):
        args = varying([*primals[:count], *w])
        rates = iter(call_p.bind(*args, **dict(params, pullback=None)))
        every = [next(rates) if _floating(a) else None for a in key.closed.out_avals]
        chosen = [x for x, s in zip(every, seeded, strict=True) if s]
        grads += [x for x, m in zip(chosen, moving[count:], strict=True) if m]
    return grads


ad.primitive_transposes[tangent_p] = _tangent_transpose


def _tangent_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """Second derivatives: the JVP of the call that the tangent map stands for."""
    return jax.jvp(
        lambda *x: _tangent(*x, **params), primals,
        tuple(ad.instantiate_zeros(t) for t in tangents),
    )  # fmt: skip


ad.primitive_jvps[tangent_p] = _tangent_jvp


def _tangent_batch(args: Any, dims: Any, **params: Any) -> Any:
    count = len(params["batched"])
    flags = tangent_flags(params["batched"], params["moving"])
    size = params["size"]
    n = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    # A tangent and its primal are batched alike, so both are broadcast if either is mapped.
    spread = [d is not None for d in dims]
    where = [k for k, m in enumerate(params["moving"]) if m]
    for j, k in enumerate(where):
        spread[k] = spread[count + j] = spread[k] or spread[count + j]
    merged = []
    for x, d, b, s in zip(args, dims, flags, spread, strict=True):
        if s and d is None:
            x, d = jnp.broadcast_to(x, (n, *jnp.shape(x))), 0
        merged.append(joined(x, d, b, n, size) if s or b else x)
    batched = tuple(s or b for s, b in zip(spread[:count], params["batched"], strict=True))
    out = tangent_p.bind(*varying(merged), **dict(params, batched=batched, size=n * size))
    return [y.reshape(n, size, *y.shape[1:]) for y in out], [0] * len(out)


batching.primitive_batchers[tangent_p] = _tangent_batch
