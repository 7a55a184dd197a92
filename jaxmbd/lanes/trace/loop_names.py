"""Names of the arguments of loop conditions, which JAX's derivative of a loop needs.

Partial evaluation (a VJP) leaves the condition of a while loop without names, and JAX 0.9 cannot
differentiate such a loop again: ``unsupported operand type(s) for +: 'NoneType' and 'tuple'``.
"""

from __future__ import annotations

from typing import Any

from jax.extend import core


def with_loop_names(closed: Any) -> Any:
    """A closed jaxpr in which the conditions of all while loops have names for their arguments."""
    jaxpr = _named(closed.jaxpr)
    return closed if jaxpr is closed.jaxpr else closed.replace(jaxpr=jaxpr)


def _named(jaxpr: Any) -> Any:
    eqns = [_equation(eqn) for eqn in jaxpr.eqns]
    same = all(a is b for a, b in zip(eqns, jaxpr.eqns, strict=True))
    return jaxpr if same else jaxpr.replace(eqns=eqns)


def _equation(eqn: Any) -> Any:
    params = {name: _parameter(value) for name, value in eqn.params.items()}
    if eqn.primitive.name == "while":
        params["cond_jaxpr"] = _condition(params["cond_jaxpr"])
    if all(params[name] is eqn.params[name] for name in params):
        return eqn
    return eqn.replace(params=params)


def _parameter(value: Any) -> Any:
    if isinstance(value, core.ClosedJaxpr):
        return with_loop_names(value)
    if isinstance(value, core.Jaxpr):
        return _named(value)
    if isinstance(value, tuple) and any(isinstance(x, core.ClosedJaxpr) for x in value):
        parts = tuple(map(_parameter, value))
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    return value


def _condition(closed: Any) -> Any:
    info = closed.jaxpr.debug_info
    if info is None or info.arg_names is not None:
        return closed
    info = info._replace(arg_names=("",) * len(closed.jaxpr.invars))
    return closed.replace(jaxpr=closed.jaxpr.replace(debug_info=info))
