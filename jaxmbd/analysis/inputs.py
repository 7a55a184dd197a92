"""Efforts that a caller applies to joints: values, functions of time, or state feedback."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import jax.numpy as jnp
from jax import Array

from jaxmbd.dynamics import Inputs
from jaxmbd.model import Mechanism

AnyInputs = Inputs | Callable[..., Inputs] | None
"""``{joint: value}``, or a function of t or of (t, q, v) that returns it."""


def parse_inputs(mech: Mechanism, inputs: Any) -> AnyInputs:
    """Values as arrays of the mechanism's type; a function is returned as it is.

    Raises:
        ValueError: a function takes neither t nor (t, q, v).
    """
    if inputs is None:
        return None
    if callable(inputs):
        takes_state(inputs)
        return cast(Callable[..., Inputs], inputs)
    return {name: jnp.asarray(x, mech.dtype) for name, x in inputs.items()}


def efforts_at(inputs: AnyInputs, t: Any, q: Array, v: Array) -> Inputs | None:
    """The efforts ``{joint: value}`` at a state."""
    if not callable(inputs):
        return inputs
    return inputs(t, q, v) if takes_state(inputs) else inputs(t)


def takes_state(inputs: Callable[..., Any]) -> bool:
    """Whether an input function takes (t, q, v); one that accepts both counts as a function of t.

    Raises:
        ValueError: it is neither.
    """
    signature = inspect.signature(inputs)
    for count in (1, 3):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == 3
    raise ValueError(f"inputs= is a function {signature}: give one of t, or of (t, q, v)")
