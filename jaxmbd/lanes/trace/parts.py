"""A function in parts: what lanes can compile, and what it cannot.

Of a function with callbacks into Python, kernels are what precedes and what follows these
(`told`). Of a function with other operations that lanes does not know, the kernel is all that
does not depend on them, and JAX compiles the rest (`parted`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.extend import core

from jaxmbd.lanes.ir.nodes import DTYPES, Unsupported
from jaxmbd.lanes.trace.content import Key, calls
from jaxmbd.lanes.trace.interpreter import check
from jaxmbd.lanes.trace.jaxprs import CALLBACKS


class Part(NamedTuple):
    """A part of a function.

    Attributes:
        key: the part.
        inputs, outputs: the function's variables that it takes and makes.
        kernel: whether lanes compiles it.
    """

    key: Key
    inputs: list[Any]
    outputs: list[Any]
    kernel: bool

    def each(self, flags: Sequence[bool]) -> list[bool]:
        """Which outputs differ between samples, if those inputs do."""
        found = dict(zip(self.inputs, flags, strict=True))
        for eqn in self.key.closed.eqns:
            differs = any(found.get(v, False) for v in _variables(eqn.invars))
            found.update(dict.fromkeys(eqn.outvars, differs))
        return [found[v] for v in self.outputs]


class Parts(NamedTuple):
    """A function in parts, in the order in which they run.

    Attributes:
        arguments: its variables.
        parts: what takes these and what parts before have made.
        results: its variables or literals.
        constants: values of variables that are neither arguments nor made by parts.
    """

    arguments: list[Any]
    parts: list[Part]
    results: list[Any]
    constants: dict[Any, Any]


def told(closed: Any) -> Parts | None:
    """A function that calls Python at its top, outside loops and branches: kernels and callbacks.

    None for any other, and for one that passes typed random keys between its parts.
    """
    if not _tells(closed.jaxpr):
        return None
    names, constants = {}, dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    eqns = list(_opened(closed.jaxpr, names, constants))
    pieces: list[tuple[list[Any], bool]] = []
    while eqns:
        now, tellers, eqns = _first(eqns)
        pieces += [(now, True), (tellers, False)]
    found = _joined(
        closed.jaxpr, [_renamed(v, names) for v in closed.jaxpr.outvars], pieces, constants
    )
    made = [v for part in found.parts for v in part.outputs]
    return found if all(isinstance(v.aval.dtype, np.dtype) for v in made) else None


def parted(closed: Any) -> Parts | None:
    """A function of which lanes can compile some; None if no lanes call is in that."""
    jaxpr = closed.jaxpr
    lost: set[Any] = set()
    first, rest = [], []
    for eqn in jaxpr.eqns:
        if lost.intersection(_variables(eqn.invars)) or not _compilable(eqn, jaxpr):
            lost.update(eqn.outvars)
            rest.append(eqn)
        else:
            first.append(eqn)
    if not rest or not any(calls(core.Jaxpr([], [], [], first, jaxpr.effects, _info(jaxpr)))):
        return None
    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    return _joined(jaxpr, jaxpr.outvars, [(first, True), (rest, False)], constants)


def _joined(jaxpr: Any, results: Any, pieces: Any, constants: dict[Any, Any]) -> Parts:
    """The parts of pieces, which are equations and whether lanes compiles them."""
    read, parts = set(_variables(results)), []
    for eqns, kernel in reversed(pieces):
        made = [v for eqn in eqns for v in eqn.outvars if v in read]
        if made or any(eqn.effects for eqn in eqns):
            key, inputs = _part(eqns, made, constants, _info(jaxpr))
            read.update(inputs)
            parts.append(Part(key, inputs, made, kernel))
    return Parts(list(jaxpr.invars), parts[::-1], list(results), constants)


def _part(
    eqns: Sequence[Any], outputs: Sequence[Any], constants: dict[Any, Any], info: Any
) -> tuple[Key, list[Any]]:
    """Equations as a function, and what it takes."""
    made = {v for eqn in eqns for v in eqn.outvars}
    read = dict.fromkeys(v for eqn in eqns for v in _variables(eqn.invars) if v not in made)
    held, inputs = ([v for v in read if (v in constants) is x] for x in (True, False))
    effects = frozenset().union(*(eqn.effects for eqn in eqns))
    jaxpr = core.Jaxpr(held, inputs, outputs, eqns, effects, info)
    return Key(core.ClosedJaxpr(jaxpr, [constants[v] for v in held])), inputs


def _info(jaxpr: Any) -> Any:
    return jaxpr.debug_info._replace(arg_names=None, result_paths=None)


def _first(eqns: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """All that need not wait for a callback, the callbacks that can be made then, and the rest.

    Callbacks keep their order.
    """
    now, tellers, rest = [], [], []
    late: set[Any] = set()
    waiting = False
    for eqn in eqns:
        tells = eqn.primitive.name in CALLBACKS
        if late.intersection(_variables(eqn.invars)) or (tells and waiting):
            rest.append(eqn)
            waiting = waiting or tells
        elif tells:
            tellers.append(eqn)
        else:
            now.append(eqn)
            continue
        late.update(eqn.outvars)
    return now, tellers, rest


def _tells(jaxpr: Any) -> bool:
    return any(e.primitive.name in CALLBACKS or _body(e) is not None for e in jaxpr.eqns)


def _body(eqn: Any) -> Any:
    """The closed jaxpr of a call that has callbacks at its top."""
    body = eqn.params.get("jaxpr") if eqn.primitive.name in ("jit", "pjit") else None
    return body if body is not None and _tells(body.jaxpr) else None


def _opened(jaxpr: Any, names: dict[Any, Any], constants: dict[Any, Any]) -> Iterator[Any]:
    """Equations, those of calls with callbacks among them; notes the new names of variables."""
    for eqn in jaxpr.eqns:
        given, body = [_renamed(v, names) for v in eqn.invars], _body(eqn)
        if body is None:
            made = [copy.copy(v) for v in eqn.outvars]  # a function may be called several times
            yield eqn.replace(invars=given, outvars=made)
        else:
            inner = dict(zip(body.jaxpr.invars, given, strict=True))
            constants.update(zip(body.jaxpr.constvars, body.consts, strict=True))
            yield from _opened(body.jaxpr, inner, constants)
            made = [_renamed(v, inner) for v in body.jaxpr.outvars]
        names.update(zip(eqn.outvars, made, strict=True))


def _renamed(v: Any, names: dict[Any, Any]) -> Any:
    return v if isinstance(v, core.Literal) else names.get(v, v)


def _variables(some: Iterable[Any]) -> list[Any]:
    return [v for v in some if not isinstance(v, core.Literal)]


def _compilable(eqn: Any, around: Any) -> bool:
    if any(str(v.aval.dtype) not in DTYPES for v in eqn.outvars):
        return False
    try:
        check(core.Jaxpr([], [], [], [eqn], around.effects, around.debug_info))
    except Unsupported:
        return False
    return True
