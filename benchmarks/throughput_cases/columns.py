"""The two ways of batching that are compared, and the batch compiler's report on its program."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import jax

try:
    from jaxmbd import lanes

    _VMAP: Any = lanes.vmap
except (ImportError, AttributeError):  # the package without its batch compiler
    lanes: Any = None
    _VMAP = None

VMAP, LANES, ONE_CORE = "jax.vmap", "lanes", "lanes, 1 core"
PINOCCHIO, MUJOCO, EXUDYN = "Pinocchio", "MuJoCo", "Exudyn"
PINOCCHIO_ONE = "Pinocchio, one design"  # which stays in the cache


def batchers() -> dict[str, Callable[..., Any]]:
    """Transformations of a function of one sample to one of a batch, by column."""
    found: dict[str, Callable[..., Any]] = {VMAP: jax.vmap}
    if _VMAP is not None:
        known = inspect.signature(_VMAP).parameters
        # a failure to compile is an error here, without a fallback to jax.vmap
        found[LANES] = partial(_VMAP, strict=True) if "strict" in known else _VMAP
        if "threads" in known:
            found[ONE_CORE] = partial(found[LANES], threads=1)
    return found


def keep_nothing() -> None:
    """Use no compiled program of an earlier run, in this process and those that it starts."""
    os.environ["JAXMBD_LANES_CACHE"] = ""
    os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
    jax.config.update("jax_compilation_cache_dir", None)


def have_lanes() -> bool:
    """Whether the batch compiler can be imported."""
    return _VMAP is not None


def explained_flops(function: Callable[..., Any], arguments: Any) -> float | None:
    """Floating-point operations of one sample in the compiled program, if reported.

    Args:
        function: of one sample.
        arguments: of a batch.
    """
    if _VMAP is None or not hasattr(lanes, "explain"):
        return None
    one = jax.tree_util.tree_map(lambda x: x[0], arguments)
    try:
        return float(lanes.explain(function, *one).flops)
    except Exception as error:  # a benchmark goes on without it
        print(f"    lanes.explain failed: {type(error).__name__}: {error}"[:200], flush=True)
        return None
