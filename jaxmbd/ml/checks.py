"""What the functions that an environment is made of return, by tracing them before any step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd.analysis import parse_known
from jaxmbd.graph import neutral, topology
from jaxmbd.observe import Observable, Snapshot

_CURES = {
    "numbers": "give real numbers, in an array of any shape",
    "number": "give one real number, of shape (): of an array its sum, or x[0]",
    "truth": "give one truth value, of shape (), as of at.q[0] > 1.0; jnp.any of an array",
}


def reading(what: Any, at: Snapshot) -> Any:
    """What a sensor reads: an observable, or a function of (t, q, v)."""
    return what.value(at) if isinstance(what, Observable) else what(at.t, at.q, at.v)


def check_functions(env: Any) -> tuple[dict[str, int], list[str]]:
    """How many numbers each sensor reads, and what is wrong with what functions return.

    What a function raises goes on, with a note which function it was and how it is called.

    Args:
        env: the `Environment` so far, with its mechanism, functions, names and limits of actions.
    """
    sizes, problems = {}, []
    for name, what in env.observe.items():
        calls = f"observe: {name!r}", "f(t, q, v)", "numbers"
        sizes[name], found = _looked_at(env, *calls, lambda at, _, what=what: reading(what, at))
        problems += found
    reward, over = env.reward, env.terminate
    calls = "reward=", "reward(before, action, after)", "number"
    problems += _looked_at(env, *calls, lambda at, action: reward(at, action, at))[1]
    if over is not None:
        problems += _looked_at(env, "terminate=", "f(after)", "truth", lambda at, _: over(at))[1]
    for name, given in (("start", env.start), ("speeds", env.speeds)):
        if callable(given):
            problems += _begin_problems(env, name, given)
    return sizes, problems


def _looked_at(
    env: Any, name: str, call: str, kind: str, fn: Callable[[Snapshot, Any], Any]
) -> tuple[int, list[str]]:
    """How many numbers a function returns, and what is wrong with them."""

    def look(q: Any, v: Any, t: Any, action: Any) -> tuple[int, list[str]]:
        inputs = dict(zip(env.names, action, strict=True))
        size, wrong = _form(kind, fn(Snapshot(env.mechanism, q, v, t, inputs=inputs), action))
        return size, [f"{name} returns {text}; {_CURES[kind]}" for text in wrong]

    mech = env.mechanism
    q, v = neutral(mech), np.zeros(topology(mech).nv)
    states = [jax.ShapeDtypeStruct(np.shape(x), mech.dtype) for x in (q, v, 0.0, env.low)]
    return _traced(name, call, look, *states)


def _traced(name: str, call: str, fn: Callable[..., Any], *args: Any) -> Any:
    """What a function returns, which need be no arrays, for arguments of these shapes."""
    found: list[Any] = []
    try:
        jax.eval_shape(lambda *args: found.append(fn(*args)), *args)
    except Exception as error:
        error.add_note(f"raised by {name} of an environment, which is traced as {call}")
        if isinstance(error, jax.errors.JAXTypeError):
            error.add_note("there numbers have no values: take jnp.where for an if, jnp for math")
        raise
    return found[0]


def _form(kind: str, x: Any) -> tuple[int, list[str]]:
    """The size of a result, and what it is, if it is not of its kind."""
    if x is None:
        return 0, ["nothing"]
    try:
        x = jnp.asarray(x)
    except (TypeError, ValueError):
        return 0, [f"a {type(x).__name__}"]
    fits = x.dtype == bool if kind == "truth" else not jnp.iscomplexobj(x)
    single = kind == "numbers" or x.shape == ()
    return x.size, [] if fits and single else [f"{x.dtype} of shape {x.shape}"]


def _begin_problems(env: Any, name: str, given: Callable[..., Any]) -> list[str]:
    """What is wrong with coordinates or speeds that a function returns."""

    def look(key: Any) -> list[str]:
        try:
            parse_known(env.mechanism, given(env.mechanism, key), name == "speeds")
        except ValueError as error:
            return [str(error)]
        return []

    key = jax.eval_shape(lambda: jax.random.key(0))
    found = _traced(f"{name}=", f"{name}(mechanism, key)", look, key)
    return [f"{name}= returns what cannot be: {text}" for text in found]
