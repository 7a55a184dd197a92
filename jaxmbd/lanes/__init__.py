"""The batch compiler: a function of one sample becomes SIMD and GPU kernels over a batch.

It knows nothing of mechanics. The subpackages are the stages of compilation; each imports only
those listed before it:

- `ir`: the scalar graph and the table of operations, which says how to fold and share nodes.
- `elementary`: sine, exponential and the like as LLVM IR text.
- `trace`: from a jaxpr to the graph, small arrays as scalars; a rule for each JAX primitive; a
  digest of a jaxpr's `content`.
- `reverse`: reverse-mode differentiation on the graph.
- `codegen`: from the graph to LLVM IR, several samples in each vector register.
- `targets`: machine code for the host and for GPUs, called by XLA.

Beside them: `kernel` (a function with its graph and machine code), `primitive` (the JAX primitive),
`tangent` (its derivatives), `nested` (a lanes call inside another), and the public functions of
`batch`, `report`, `guard` and others. `backend` (which compiler runs a function) and `caching`
(functions that are traced once) are for the rest of the package.
"""

from jaxmbd.lanes import nested
from jaxmbd.lanes.backend import check_backend, compiled, given, host_jit, whole
from jaxmbd.lanes.batch import jit, vmap
from jaxmbd.lanes.bounded import bounded_while
from jaxmbd.lanes.caching import KeptValues, Recent, is_foreign, nothing, traced_once
from jaxmbd.lanes.context import is_inline, tracing
from jaxmbd.lanes.exported import Executable, export, load_exported
from jaxmbd.lanes.guard import flagged, guarded, rarely
from jaxmbd.lanes.ir.nodes import Unsupported
from jaxmbd.lanes.report import Explanation, explain
from jaxmbd.lanes.targets import disk, stopping
from jaxmbd.lanes.targets.disk import directory
from jaxmbd.lanes.targets.stopping import finished
from jaxmbd.lanes.trace.content import digest

__all__ = [
    "Executable",
    "Explanation",
    "Unsupported",
    "bounded_while",
    "digest",
    "explain",
    "export",
    "finished",
    "flagged",
    "guarded",
    "jit",
    "load_exported",
    "nested",
    "rarely",
    "vmap",
]
