"""Jaxprs as lanes reads them: what versions of JAX name otherwise, marked calls, derivative rules.

Since version 0.11 JAX says in other words what types, scans, traces and rules are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.core
import jax.extend.core
import jax.extend.random
import jax.numpy as jnp
import numpy as np
from jax.extend import core


def manual_axes(aval: Any) -> frozenset[Any]:
    """The manual mesh axes, of `jax.shard_map`, along which a value of this type varies."""
    kind = getattr(aval, "manual_axis_type", None)
    return aval.vma if kind is None else kind.varying


def with_manual_axes(aval: Any, axes: frozenset[Any], **changes: Any) -> Any:
    """The type of a value that varies along these axes instead, with other `changes` if any."""
    kind = getattr(aval, "manual_axis_type", None)
    if kind is None:
        return aval.update(vma=axes, **changes)
    return aval.update(manual_axis_type=kind.update(varying=axes), **changes)


def scan_counts(params: Mapping[str, Any]) -> tuple[int, int]:
    """Numbers of constants and of carries among the operands of a scan."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts), len(carry)


def expanded(eqn: Any) -> Any:
    """The closed jaxpr of an operation that JAX composes of others and writes as one equation."""
    return _expanded(eqn.params["_prim"], *(v.aval for v in eqn.invars))


@lru_cache(64)
def _expanded(prim: Any, *avals: Any) -> Any:
    def flat(*args: Any) -> list[Any]:
        return jax.tree_util.tree_leaves(
            prim.expand(*jax.tree_util.tree_unflatten(prim.in_tree, args))
        )

    return jax.make_jaxpr(flat)(*avals)


def evaluated(closed: Any, *args: Any) -> list[Any]:
    """The results of a closed jaxpr, as arrays; JAX gives constant ones as plain numbers."""
    found = core.jaxpr_as_fun(closed)(*args)
    return [x if hasattr(x, "shape") else jnp.asarray(x) for x in found]


def named(closed: Any) -> Any:
    """The closed jaxpr, in which the arguments of conditions of while loops have names.

    Partial evaluation takes them away, and without them JAX before 0.11 fails to push tangents
    through such a loop.
    """
    if jax.__version_info__ >= (0, 11):
        return closed
    new: dict[int, Any] = {}

    def of(x: Any) -> Any:
        if isinstance(x, core.ClosedJaxpr):
            return x.replace(jaxpr=of(x.jaxpr)) if of(x.jaxpr) is not x.jaxpr else x
        if isinstance(x, core.Jaxpr):
            if id(x) not in new:
                eqns = list(map(equation, x.eqns))
                same = all(a is b for a, b in zip(eqns, x.eqns, strict=True))
                new[id(x)] = x if same else x.replace(eqns=eqns)
            return new[id(x)]
        if isinstance(x, tuple):
            parts = tuple(map(of, x))
            if all(a is b for a, b in zip(parts, x, strict=True)):
                return x
            return type(x)(*parts) if hasattr(x, "_fields") else parts
        return x

    def equation(eqn: Any) -> Any:
        changed = {k: y for k, x in eqn.params.items() if (y := of(x)) is not x}
        if eqn.primitive.name == "while":
            condition = changed.get("cond_jaxpr", eqn.params["cond_jaxpr"])
            info = condition.jaxpr.debug_info
            if info.arg_names is None:
                info = info._replace(arg_names=("",) * len(condition.jaxpr.invars))
                jaxpr = condition.jaxpr.replace(debug_info=info)
                changed["cond_jaxpr"] = condition.replace(jaxpr=jaxpr)
        return eqn.replace(params={**eqn.params, **changed}) if changed else eqn

    return of(closed)


def trace_state() -> Any:
    """The function that JAX traces now, if any; equal as long as it is the same."""
    found = getattr(jax.extend.core, "get_opaque_trace_state", None)
    return jax.core.get_opaque_trace_state() if found is None else found()


GUARDED = "lanes_guarded"
"""Name of the inner jit call by which `lanes.guarded` is recognised."""


def is_guarded(eqn: Any) -> bool:
    """Whether a custom_jvp call is that of `lanes.guarded`."""
    inner = eqn.params["call_jaxpr"].eqns
    return bool(inner) and any(e.params.get("name") == GUARDED for e in inner)


BOUNDED = "lanes_bounded"
"""Name of the inner jit call by which the iterations of `lanes.bounded_while` are recognised."""


GOING = "lanes_going"
"""Name of the inner jit call by which the body of `lanes.bounded_while` is recognised."""


def is_choice(eqn: Any, name: str) -> bool:
    """Whether an equation calls a function of that name or passes its operands on."""
    if eqn.primitive.name != "cond" or len(eqn.params["branches"]) != 2:
        return False
    return any(e.params.get("name") == name for e in eqn.params["branches"][1].eqns)


@lru_cache(64)
def rule_jaxpr(eqn: Any) -> Any:
    """The closed jaxpr of the derivative rule of one equation, traced once.

    For a custom_vjp call: (primals, cotangents of the results) → cotangents of the primals; for
    others, custom_jvp calls among them: (primals, their tangents) → tangents of the results. Only
    floating-point arrays have (co)tangents.
    """
    avals = [v.aval for v in eqn.invars]
    results = [v.aval.update(weak_type=False) for v in eqn.outvars]
    fn = _alone(eqn)

    def jvp(primals: Any, tangents: Any) -> Any:
        moving = iter(tangents)
        dots = [next(moving) if floating(x) else _no_tangent(x) for x in primals]
        _, out = jax.jvp(fn, primals, dots)
        return [t for t, r in zip(out, results, strict=True) if floating(r)]

    def vjp(primals: Any, cotangents: Any) -> Any:
        given = iter(cotangents)
        _, pull = jax.vjp(fn, *primals)
        back = pull([next(given) if floating(r) else _no_tangent(r) for r in results])
        return [c for c, x in zip(back, primals, strict=True) if floating(x)]

    if "custom_vjp" in eqn.primitive.name:
        return jax.make_jaxpr(vjp)(avals, [r for r in results if floating(r)])
    return jax.make_jaxpr(jvp)(avals, [a for a in avals if floating(a)])


def _alone(eqn: Any) -> Any:
    """A function that evaluates one equation."""
    p = eqn.params
    body = p.get("call_jaxpr", p.get("fun_jaxpr"))
    if body is None:
        return lambda *args: jax.tree_util.tree_leaves(eqn.primitive.bind(*args, **p))
    places = {v: k for k, v in enumerate(eqn.invars) if not isinstance(v, core.Literal)}
    info = body.jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr = core.Jaxpr([], list(places), eqn.outvars, [eqn], eqn.effects, info)
    whole = core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, []))
    return lambda *args: whole(*[args[k] for k in places.values()])


CALLBACKS = frozenset({"debug_callback", "debug_print", "io_callback", "pure_callback"})
"""Primitives that call Python. At the top of a function they are made between kernels (`parts`)."""

THREEFRY = jax.extend.random.threefry_prng_impl
"""The functions of JAX's default generator of random numbers."""


def is_generator(x: Any) -> bool:
    """Whether a parameter holds the functions of a generator of random numbers."""
    return isinstance(x, type(THREEFRY))


_NUMBER = np.dtype(float)


def is_key(x: Any) -> bool:
    """Whether an array is one of typed random keys."""
    dtype = getattr(x, "dtype", _NUMBER)
    return not isinstance(dtype, np.dtype) and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def as_numbers(array: Any) -> np.ndarray:
    """A constant array; of keys, their two words as one number of 64 bits (`rules.random`)."""
    if not is_key(array):
        return np.asarray(array)
    with jax.ensure_compile_time_eval():
        words = np.asarray(jax.random.key_data(array), np.uint64)
    first, second = np.moveaxis(words, -1, 0)
    return np.asarray((first << np.uint64(32)) | second)


def floating(x: Any) -> bool:
    """Whether an array or a type is floating-point."""
    return np.issubdtype(x.dtype, np.floating)


def _no_tangent(x: Any) -> Any:
    return np.zeros(x.shape, jax.dtypes.float0)
