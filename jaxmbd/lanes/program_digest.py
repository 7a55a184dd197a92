"""A digest of what a traced program computes, the same in every process."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from jax.extend import core

from jaxmbd.lanes.trace.content import Content, Key


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
    calls = list(_calls(closed.jaxpr))
    contents = [key.content for key in calls] or [Content(closed)]
    if not all(content.lasting for content in contents):
        return None
    return blake2b(b"".join(c.value for c in contents), digest_size=20).hexdigest()


def _calls(jaxpr: Any) -> Iterator[Key]:
    """The functions of all lanes calls of a jaxpr, in order."""
    for eqn in jaxpr.eqns:
        for name in sorted(eqn.params):
            x = eqn.params[name]
            if isinstance(x, Key):
                yield x
            elif isinstance(x, core.ClosedJaxpr):
                yield from _calls(x.jaxpr)
            elif isinstance(x, core.Jaxpr):
                yield from _calls(x)
