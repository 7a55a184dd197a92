"""The batch compiler: one function of one sample becomes SIMD and GPU kernels over many.

It traces a function to its jaxpr, unrolls small arrays to scalars, folds and shares them
(`graph`, `fold`, `rules`), differentiates them (`adjoint`), writes them as LLVM IR (`emit`),
several samples in each vector register, and calls the machine code from inside `jax.jit`. It knows
nothing of mechanics.
"""

from jaxmbd.lanes.batch import jit, vmap
from jaxmbd.lanes.explain import Explanation, explain
from jaxmbd.lanes.guard import guarded
from jaxmbd.lanes.nodes import Unsupported

__all__ = ["Explanation", "Unsupported", "explain", "guarded", "jit", "vmap"]
