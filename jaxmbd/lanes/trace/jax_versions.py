"""What JAX says in other words since version 0.11: types, scans, traces, rules, and the like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.core
import jax.extend.core
from jax._src.interpreters import ad  # no public API for the linearization of a primitive


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


def trace_state() -> Any:
    """The function that JAX traces now, if any; equal as long as it is the same."""
    found = getattr(jax.extend.core, "get_opaque_trace_state", None)
    return jax.core.get_opaque_trace_state() if found is None else found()


def register_linearization(primitive: Any, rule: Callable[..., Any]) -> None:
    """Let JAX linearize a primitive by a rule, where it knows such rules; else it uses the JVP.

    Args:
        primitive: one with several results.
        rule: (which arguments have a tangent, arguments, parameters) → results, which of them have
            a tangent, and the map from all tangents to theirs; missing ones are symbolic zeros.
    """
    rules = getattr(ad, "primitive_linearizations", None)
    if rules is None:
        return
    kept = ((),) if jax.__version_info__ < (0, 11) else ((), None)  # residuals

    def linearize(_: bool, moving: Any, *args: Any, **params: Any) -> Any:
        out, moved, linear = rule(moving, args, params)
        return out, moved, *kept, lambda *given: linear(*given[len(kept) :])

    rules[primitive] = linearize
