"""The batch compiler: one function of one sample becomes SIMD and GPU kernels over many.

It knows nothing of mechanics. A function's way leads through its rooms, and a room imports only
those before it:

- `ir`: the graph of scalar nodes; the table of operations, by which they are folded and shared.
- `elementary`: sine, exponential and the like as LLVM IR text.
- `trace`: from a jaxpr to its graph, small arrays as scalars; a rule for each JAX primitive.
- `reverse`: derivatives in reverse mode, on the graph.
- `codegen`: the graph as LLVM IR, several samples in each vector register.
- `targets`: machine code for the host and for GPUs, which XLA calls.

Above them stand `kernel` (a function with its graph and code, found by its `content` and kept while
`recent`), `primitive` (its place in JAX), `nested` (a call inside another), and what users call:
`batch`, `report`, `guard` and `flag`.
"""

from jaxmbd.lanes import nested
from jaxmbd.lanes.batch import jit, vmap
from jaxmbd.lanes.flag import flagged
from jaxmbd.lanes.guard import guarded
from jaxmbd.lanes.ir.nodes import Unsupported
from jaxmbd.lanes.report import Explanation, explain

__all__ = ["Explanation", "Unsupported", "explain", "flagged", "guarded", "jit", "nested", "vmap"]
