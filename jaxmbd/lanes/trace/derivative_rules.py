"""Derivative rules of single equations as jaxprs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax.extend import core

GUARDED = "lanes_guarded"
"""Name of the inner jit call by which `lanes.guarded` is recognised."""


def is_guarded(eqn: Any) -> bool:
    """Whether a custom_jvp call is that of `lanes.guarded`."""
    inner = eqn.params["call_jaxpr"].eqns
    return bool(inner) and any(e.params.get("name") == GUARDED for e in inner)


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
        return lambda *args: [eqn.primitive.bind(*args, **p)]
    places = {v: k for k, v in enumerate(eqn.invars) if not isinstance(v, core.Literal)}
    info = body.jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr = core.Jaxpr([], list(places), eqn.outvars, [eqn], eqn.effects, info)
    whole = core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, []))
    return lambda *args: whole(*[args[k] for k in places.values()])


def floating(x: Any) -> bool:
    """Whether an array or a type is floating-point."""
    return np.issubdtype(x.dtype, np.floating)


def _no_tangent(x: Any) -> Any:
    return np.zeros(x.shape, jax.dtypes.float0)
