"""The batch compiler: one function of one sample becomes SIMD and GPU kernels over many.

It traces a function to its jaxpr and unrolls small arrays to scalars (`trace`), which are folded
and shared as the graph is built (`ir`), differentiates them (`reverse`), writes them as LLVM IR
(`codegen`), several samples in each vector register, and calls the machine code from inside
`jax.jit` (`targets`). It knows nothing of mechanics.
"""

from jaxmbd.lanes.batch import jit, vmap
from jaxmbd.lanes.explain import Explanation, explain
from jaxmbd.lanes.guard import guarded
from jaxmbd.lanes.ir.nodes import Unsupported

__all__ = ["Explanation", "Unsupported", "explain", "guarded", "jit", "vmap"]
