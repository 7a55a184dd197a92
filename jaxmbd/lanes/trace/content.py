"""A digest of a jaxpr's content, equal for jaxprs with the same equations and constants.

Variables are numbered in order, constants are hashed by their bytes. Derivative rules are Python
functions and compare by identity, as do other parameters that cannot be hashed by content.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Any

import jax
import numpy as np
from jax.core import AbstractValue, ShapedArray
from jax.extend import core
from jax.sharding import AbstractMesh, NamedSharding

from jaxmbd.lanes.trace.jaxprs import (
    CALLBACKS,
    as_numbers,
    evaluated,
    expanded,
    is_generator,
    is_guarded,
    manual_axes,
    rule_jaxpr,
    scan_counts,
)

_RULED = {
    "custom_jvp_call": ("call_jaxpr",),
    "custom_vjp_call": ("call_jaxpr",),
    "custom_vjp_call_jaxpr": ("fun_jaxpr",),
}
"""Primitives with derivative rules, and their parameters that determine the value."""
_OF_VALUE = _RULED | {
    "jit": ("jaxpr", "name"),
    "pjit": ("jaxpr", "name"),
    "scan": ("jaxpr", "length", "reverse"),
    "call_hi_primitive": (),
}
"""These, and primitives whose other parameters only say how and where to run; a scan's counts of
operands and what composed operations are composed of are added."""
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))


MANY = 100
"""Most derivative rules of a function that are told apart by their content."""


class Content:
    """The content of a closed jaxpr, hashable.

    Attributes:
        value: digest of everything that its value depends on.
        rules: further objects that its derivatives depend on, compared by identity, in order.
        lasting: whether `value` is the same in other processes: nothing in it is an identity.
        calls: the equations with derivative rules; None if there are other rules.
    """

    __slots__ = ("_of_rules", "calls", "lasting", "rules", "value")

    def __init__(self, closed: Any):
        walk = _Walk()
        walk.closed(closed)
        self.value = walk.digest()
        self.lasting = walk.lasting
        self.rules = tuple(walk.rules)
        self.calls = None if walk.others else tuple(walk.calls)
        self._of_rules: Any = ...

    def of_rules(self) -> bytes | None:
        """A digest of all derivative rules by their own content; None if that does not last.

        Rules in rules count too. A rule of `lanes.guarded` is this package's, and says nothing.
        """
        if self._of_rules is ...:
            try:
                self._of_rules = self._digest_of_rules()
            except Exception:  # a rule that cannot be traced, and may not be needed
                self._of_rules = None
        return self._of_rules

    def _digest_of_rules(self) -> bytes | None:
        if self.calls is None:
            return None
        words, calls = [], list(self.calls)
        for eqn in calls:  # grows on the way
            if len(calls) > MANY:  # perhaps a family of rules without an end
                return None
            if eqn.primitive.name == "custom_jvp_call" and is_guarded(eqn):
                continue
            found = Content(rule_jaxpr(eqn))
            if not found.lasting or found.calls is None:
                return None
            if found.value not in words:  # else a rule that calls its own function, for example
                calls.extend(found.calls)
            words.append(found.value)
        return blake2b(b"".join(words), digest_size=20).digest()

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: Any) -> bool:
        return (
            isinstance(other, Content)
            and self.value == other.value
            and len(self.rules) == len(other.rules)
            and all(a is b for a, b in zip(self.rules, other.rules, strict=True))
        )


class Key:
    """A function, compared by content, as a dictionary key and a parameter of primitives.

    Derivatives and kernels made from it are stored in it, so they live as long as some JAX program
    or traced function refers to it. It is callable because JAX's caches hold weak references only
    to functions and jaxprs among parameters.
    """

    def __init__(self, closed: Any):
        self.closed = closed
        self._made: dict[Any, Any] = {}

    @cached_property
    def content(self) -> Content:
        """The jaxpr's content."""
        return Content(self.closed)

    def __call__(self, *args: Any) -> list[Any]:
        """The function itself."""
        return evaluated(self.closed, *args)

    def made(self, name: Any, make: Callable[[], Any]) -> Any:
        """An object made from it, made once per name."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def __hash__(self) -> int:
        return hash(self.content)

    def __eq__(self, other: Any) -> bool:
        return self is other or (isinstance(other, Key) and self.content == other.content)

    def __repr__(self) -> str:
        return f"<function {self.content.value.hex()}>"


class _Walk:
    """A walk over a jaxpr that collects the words to hash, and the rules."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.rules: list[Any] = []
        self.seen: dict[int, int] = {}
        self.types: dict[int, str] = {}
        self.texts: dict[Any, str] = {}
        self.kept: list[Any] = []
        self.lasting = True
        self.calls: list[Any] = []
        self.others = False

    def digest(self) -> bytes:
        return blake2b("\x1f".join(self.words).encode(), digest_size=20).digest()

    def closed(self, closed: Any) -> None:
        for c in closed.consts:
            self.value(c)
        self.jaxpr(closed.jaxpr)

    def jaxpr(self, jaxpr: Any) -> None:
        new = id(jaxpr) not in self.seen
        self.words.append(f"jaxpr {self.seen.setdefault(id(jaxpr), len(self.seen))}")
        if not new:
            return
        numbers: dict[Any, str] = {}
        for v in (*jaxpr.constvars, *jaxpr.invars):
            self.define(numbers, v)
        for eqn in jaxpr.eqns:
            self.words.append(eqn.primitive.name)
            self.words.extend([self.atom(numbers, v) for v in eqn.invars])
            self.params(eqn)
            for v in eqn.outvars:
                self.define(numbers, v)
        self.words.extend([self.atom(numbers, v) for v in jaxpr.outvars])

    def define(self, numbers: dict[Any, str], v: Any) -> None:
        numbers[v] = str(len(numbers))
        self.words.append(self.type(v.aval))

    def atom(self, numbers: dict[Any, str], v: Any) -> str:
        if isinstance(v, core.Literal):
            return f"{self.type(v.aval)} {np.asarray(v.val).tobytes().hex()}"
        return numbers[v]

    def type(self, aval: Any) -> str:
        known = self.types.get(id(aval))
        if known is None:
            array = isinstance(aval, ShapedArray)
            place = (aval.shape, aval.dtype, aval.weak_type, manual_axes(aval)) if array else aval
            known = self.types[id(aval)] = self.texts.setdefault(place, str(place))
            self.kept.append(aval)  # so that its id is not reused
        return known

    def params(self, eqn: Any) -> None:
        chosen, before = _OF_VALUE.get(eqn.primitive.name), len(self.rules)
        for name in sorted(eqn.params):
            x = eqn.params[name]
            if chosen is None or name in chosen:
                self.words.append(name)
                self.value(x)
            elif eqn.primitive.name in _RULED and type(x) not in _PLAIN:
                self.rules.append(x)
        if eqn.primitive.name in _RULED and len(self.rules) > before:
            self.calls.append(eqn)
        if eqn.primitive.name == "scan":
            self.words.append(repr(scan_counts(eqn.params)))
        if eqn.primitive.name == "call_hi_primitive":
            self.closed(expanded(eqn))
        if _differentiates(eqn) and len(self.rules) > before:
            self.derivative(eqn, before)

    def derivative(self, eqn: Any, before: int) -> None:
        """The rules that the value of an equation depends on."""
        keys = [x for x in eqn.params.values() if isinstance(x, Key)]
        found = [x.content.of_rules() for x in keys]
        for digest in found:
            self.words.append("" if digest is None else digest.hex())
        if not keys or None in found:
            self.words.extend(f"rule {id(x)}" for x in self.rules[before:])
            self.lasting = False

    def value(self, x: Any) -> None:
        """A parameter or a constant."""
        kind = type(x)
        if kind in _PLAIN:
            self.words.append(repr(x))
        elif is_generator(x):
            self.words.append(f"generator {x.name}")
        elif isinstance(x, tuple | list):
            self.words.append(f"{kind.__name__} {len(x)}")
            for y in x:
                self.value(y)
        elif isinstance(x, core.ClosedJaxpr):
            self.closed(x)
        elif isinstance(x, core.Jaxpr):
            self.jaxpr(x)
        elif isinstance(x, Key):  # a lanes call inside
            self.words.append(x.content.value.hex())
            self.rules.extend(x.content.rules)
            self.lasting = self.lasting and x.content.lasting
            self.calls.extend(x.content.calls or ())
            self.others = self.others or x.content.calls is None
        elif isinstance(x, jax.Array | np.ndarray | np.generic):
            array = np.ascontiguousarray(as_numbers(x))
            data = blake2b(array.tobytes(), digest_size=20).hexdigest()
            self.words.append(f"array {array.dtype} {array.shape} {data}")
        elif isinstance(x, Mapping):
            self.words.append(f"map {len(x)}")
            for key in sorted(x, key=str):
                self.words.append(str(key))
                self.value(x[key])
        elif isinstance(x, enum.Enum | np.dtype | type):
            self.words.append(repr(x))
        elif isinstance(x, AbstractValue):
            self.words.append(self.type(x))
        elif isinstance(x, NamedSharding) and isinstance(x.mesh, AbstractMesh):  # names no devices
            self.words.append(repr(x))
        else:  # by identity; kept alive so that its id is not reused
            self.words.append(f"object {id(x)}")
            self.rules.append(x)
            self.lasting, self.others = False, True


def _differentiates(eqn: Any) -> bool:
    """Whether the value of an equation depends on the derivative rules of the function it calls."""
    if eqn.primitive.name == "lanes":
        return eqn.params["pullback"] is not None
    return eqn.primitive.name == "lanes_tangent"


def digest(closed: Any) -> str | None:
    """A digest of a traced program by its content.

    It does not depend on how the program is spread over devices, if all that it computes is in
    calls of `lanes.vmap`.

    Args:
        closed: ``jax.jit(fn).trace(…).jaxpr`` or ``jax.make_jaxpr(fn)(…)``.

    Returns:
        40 hexadecimal digits; None if the program contains objects that are known by identity only.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> double = jax.make_jaxpr(lanes.vmap(lambda x: 2.0 * x))(jnp.zeros(3))
        >>> again = jax.make_jaxpr(lanes.vmap(lambda y: 2.0 * y))(jnp.ones(5))
        >>> lanes.digest(double) == lanes.digest(again)
        True
    """
    if _calls_python(closed.jaxpr):
        return None
    contents = [key.content for key in calls(closed.jaxpr)] or [Content(closed)]
    if not all(content.lasting for content in contents):
        return None
    return blake2b(b"".join(c.value for c in contents), digest_size=20).hexdigest()


def _calls_python(jaxpr: Any) -> bool:
    """Whether there are callbacks, which are known by identity, beside lanes calls."""
    return any(
        eqn.primitive.name in CALLBACKS
        or (eqn.primitive.name != "lanes" and any(map(_calls_python, inner_jaxprs(eqn))))
        for eqn in jaxpr.eqns
    )


def inner_jaxprs(eqn: Any) -> Iterator[Any]:
    """The jaxprs among an equation's parameters."""
    for x in eqn.params.values():
        for y in x if isinstance(x, tuple | list) else (x,):
            if isinstance(y, Key):
                yield y.closed.jaxpr
            elif isinstance(y, core.ClosedJaxpr):
                yield y.jaxpr
            elif isinstance(y, core.Jaxpr):
                yield y


def calls(jaxpr: Any) -> Iterator[Key]:
    """The functions of all lanes calls of a jaxpr, in order."""
    for eqn in jaxpr.eqns:
        for name in sorted(eqn.params):
            x = eqn.params[name]
            if isinstance(x, Key):
                yield x
            elif isinstance(x, core.ClosedJaxpr):
                yield from calls(x.jaxpr)
            elif isinstance(x, core.Jaxpr):
                yield from calls(x)
