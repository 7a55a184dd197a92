"""`explain`: operations, flops, instructions, spills and compile time of a function's kernel."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm

from jaxmbd.lanes.context import collector_paused
from jaxmbd.lanes.ir.nodes import SLOT, Unsupported
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import cpu
from jaxmbd.lanes.trace.parts import told


@dataclass(frozen=True)
class Explanation:
    """A report on one kernel; `print` it.

    Attributes:
        equations: equations of the jaxpr, without those of inner jaxprs.
        asked: scalar operations requested while tracing, loop bodies counted once.
        operations: those left after folding, sharing and dead code elimination.
        flops: floating-point operations per sample, loops counted by iterations (an elementary
            function counts as 20).
        kinds: the most frequent of the operations left.
        width: samples in one vector.
        instructions, spills: machine instructions, and spills to the stack among them; None if
            unknown.
        scratch: bytes of scratch memory per sample.
        trace_seconds, compile_seconds: time for tracing, and for code generation and LLVM.
        unsupported: why the function falls back to XLA; None if it does not.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> report = lanes.explain(lambda x: jnp.sin(x) + 1.0, jnp.array(0.5))
        >>> sorted(report.kinds.items()), report.unsupported
        ([('add', 1), ('sin', 1)], None)
    """

    equations: int
    asked: int = 0
    operations: int = 0
    flops: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    width: int = 0
    instructions: int | None = None
    spills: int | None = None
    scratch: int = 0
    trace_seconds: float = 0.0
    compile_seconds: float = 0.0
    unsupported: str | None = None

    def __str__(self) -> str:
        if self.unsupported is not None:
            return f"{self.equations} equations; falls back to XLA: {self.unsupported}"
        kinds = ", ".join(f"{n} {op}" for op, n in self.kinds.items())
        code = "unknown" if self.instructions is None else f"{self.instructions}"
        spills = "unknown" if self.spills is None else f"{self.spills}"
        return "\n".join(
            [
                f"jaxpr          {self.equations} equations",
                f"traced         {self.asked} scalar operations",
                f"remaining      {self.operations} ({kinds})",
                f"flops          {self.flops} per sample",
                f"vector         {self.width} samples",
                f"instructions   {code}, {spills} of them spills to the stack",
                f"scratch        {self.scratch} bytes per sample",
                f"traced in      {self.trace_seconds:.2f} s",
                f"compiled in    {self.compile_seconds:.2f} s",
                "fallback       none",
            ]
        )


@collector_paused()
def explain(fn: Callable[..., Any], *args: Any) -> Explanation:
    """Report how lanes compiles a function of one sample.

    Of a function that calls Python at its top, by `jax.debug.print` for example, it is the first
    kernel that is reported on.

    Args:
        fn: the function, as it would be passed to `lanes.vmap`.
        *args: arguments of one sample, arrays or ``jax.ShapeDtypeStruct``.

    Returns:
        a report; ``print(lanes.explain(fn, x))`` shows it.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> lanes.explain(lambda x: jnp.zeros(3) @ x + 2.0 * x[0], jnp.ones(3)).flops
        1
    """
    leaves, tree = jax.tree_util.tree_flatten(args)
    start = time.perf_counter()

    def flat(*leaves: Any) -> list[Any]:
        out = fn(*jax.tree_util.tree_unflatten(tree, leaves))
        return [jnp.asarray(x) for x in jax.tree_util.tree_leaves(out)]

    flat.__wrapped__ = fn  # whose name and line its jaxpr then tells
    closed = jax.make_jaxpr(flat)(*leaves)
    parts = told(closed)
    if parts is not None:
        closed = next((part.key.closed for part in parts.parts if part.kernel), closed)
        leaves = closed.in_avals
    kernel = Kernel(closed, (True,) * len(leaves))
    try:
        graph = kernel.graph
    except Unsupported as error:
        return Explanation(len(closed.eqns), unsupported=str(error))
    traced = time.perf_counter()
    width = kernel.lanes()
    emitter = kernel.emitter(width)
    module = llvm.parse_assembly(emitter.module())
    cpu.optimise(module, cpu.machine())
    instructions, spills = _count(cpu.machine().emit_assembly(module))
    parts = (emitter, *emitter.parts)
    kinds = Counter(n.op for e in parts for n in e.live if n.op not in _NO_OPERATIONS)
    return Explanation(
        len(closed.eqns), graph.built, emitter.operations, emitter.flops,
        dict(kinds.most_common(8)), width, instructions, spills, emitter.scratch_slots * SLOT,
        traced - start, time.perf_counter() - traced,
    )  # fmt: skip


_NO_OPERATIONS = ("element", "call", "returned")


def _count(assembly: str) -> tuple[int, int | None]:
    """Number of instructions, and of stores to the stack (x86 only, else None)."""
    lines = [line.strip() for line in assembly.splitlines()]
    code = [x for x in lines if x and x[0] not in ".#/" and not x.endswith(":")]
    if not any("%rsp" in x for x in code):
        return len(code), None
    return len(code), sum(bool(re.match(r"v?mov\w+\s+%\w+, -?\d*\(%rsp\)", x)) for x in code)
