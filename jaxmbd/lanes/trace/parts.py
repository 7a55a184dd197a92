"""A function in two parts: what lanes can compile, and what depends on what it cannot."""

from __future__ import annotations

from typing import Any

from jax.extend import core

from jaxmbd.lanes.ir.nodes import DTYPES, Unsupported
from jaxmbd.lanes.trace.content import calls
from jaxmbd.lanes.trace.interpreter import check


def parted(closed: Any) -> tuple[Any, Any] | None:
    """The closed jaxprs of both parts; None if the first would contain no lanes call.

    The first takes the function's arguments; the second these and the first's results.
    """
    jaxpr = closed.jaxpr
    lost: set[Any] = set()
    first, rest = [], []
    for eqn in jaxpr.eqns:
        given = [v for v in eqn.invars if not isinstance(v, core.Literal)]
        if lost.intersection(given) or not _compilable(eqn, jaxpr):
            lost.update(eqn.outvars)
            rest.append(eqn)
        else:
            first.append(eqn)
    info = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    if not rest or not any(calls(core.Jaxpr([], [], [], first, jaxpr.effects, info))):
        return None
    made = {v for eqn in first for v in eqn.outvars}
    read = [*(v for eqn in rest for v in eqn.invars), *jaxpr.outvars]
    found = list(dict.fromkeys(v for v in read if not isinstance(v, core.Literal) and v in made))

    def part(inputs: Any, outputs: Any, eqns: Any) -> Any:
        new = core.Jaxpr(jaxpr.constvars, inputs, outputs, eqns, jaxpr.effects, info)
        return core.ClosedJaxpr(new, closed.consts)

    return part(jaxpr.invars, found, first), part([*jaxpr.invars, *found], jaxpr.outvars, rest)


def _compilable(eqn: Any, around: Any) -> bool:
    if any(str(v.aval.dtype) not in DTYPES for v in eqn.outvars):
        return False
    try:
        check(core.Jaxpr([], [], [], [eqn], around.effects, around.debug_info))
    except Unsupported:
        return False
    return True
