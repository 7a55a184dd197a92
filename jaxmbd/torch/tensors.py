"""Tensors to arrays and back, in shared memory where that is sound.

*In*: JAX reads a tensor through a NumPy view. XLA copies only what it cannot use where it is: what
is not contiguous in row-major order or does not begin at a multiple of 64 bytes. Callers wait for
results, so that nobody reads a tensor after the call, when PyTorch may change it.

*Out*: a tensor takes over the memory of a result of `jax.jit` by DLPack. XLA gives every result
memory of its own, also if it equals an argument, a constant or another result.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd.plumbing import optional

if TYPE_CHECKING:
    import torch
else:
    torch = optional("torch", "torch", "jaxmbd.torch")

_CUT = {torch.int64: torch.int32, torch.float64: torch.float32}  # by JAX in 32 bits
_SHORT = {torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32}
_TYPES = {*_SHORT, torch.float16, *_CUT, *_CUT.values()}


def problem_of(x: torch.Tensor, wide: bool) -> str:
    """Why JAX, `wide` if in 64 bits, would not read a tensor or would read another; or nothing."""
    if x.device.type != "cpu":
        return (
            f"a tensor on the device {str(x.device)!r}: jaxmbd.torch takes tensors of the CPU. "
            "Give x.cpu(), through which gradients pass"
        )
    if x.layout != torch.strided:
        return f"a tensor of layout {x.layout}: give x.to_dense()"
    if x.dtype not in _TYPES:
        return f"{x.dtype}: jaxmbd.torch takes booleans, integers and real numbers of NumPy"
    if x.dtype in _CUT and not wide:
        return (
            f"{x.dtype}, but JAX runs in 32 bits and would cut it. Switch on double precision "
            "before anything else, jax.config.update('jax_enable_x64', True), or give "
            f"x.to({_CUT[x.dtype]})"
        )
    return ""


def is_recorded() -> bool:
    """Whether PyTorch records operations into a graph, which would not have those of JAX."""
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")  # slow to import
    tracing = torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    return tracing or bool(proxies and proxies.get_proxy_mode())


def array_of(x: torch.Tensor) -> np.ndarray:
    """A view of a tensor for the time of a call; a copy only where signs wait to be changed."""
    return x.numpy(force=True)


def tensor_of(x: jax.Array) -> torch.Tensor | jax.Array:
    """The tensor that takes over a result of a compiled function; random keys stay as they are.

    Raises:
        TypeError: it is complex: gradients of PyTorch are the conjugates of JAX's there.
    """
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return x
    if jnp.iscomplexobj(x):
        raise TypeError(f"a result of shape {x.shape} is {x.dtype}; return real and imaginary part")
    return torch.from_dlpack(x)
