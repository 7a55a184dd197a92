"""Compilers set for programs that are small, compiled once and run once, as those of the tests are.

Eager JAX compiles a program for each operation and shape; what is done for each of them adds up to
most of the suite's time and memory. To be called before JAX compiles anything.
"""

import os
from importlib import metadata

# Level 0 is faster, but without fusion emitters its gradient of a four-bar's margin is wrong.
FLAGS = (
    "--xla_backend_optimization_level=1"
    " --xla_cpu_use_fusion_emitters=false"
    " --xla_cpu_parallel_codegen_split_count=1"
)
SHARE = 500
"""Programs lowered in one MLIR context."""


def prepare() -> None:
    """Set XLA's flags, and let programs share MLIR contexts.

    Unknown flags abort, and the contexts are made by a private function, so both are done only for
    the releases on which they were tried.
    """
    if metadata.version("jaxlib").startswith("0.9."):
        os.environ.setdefault("XLA_FLAGS", FLAGS)
        _share_contexts()


def _share_contexts() -> None:
    """One MLIR context for many programs.

    JAX makes one for each (2 ms) and keeps it as long as the program (1.1 MiB). A program that is
    compiled while another is being lowered gets its own: a module that is copied in the context of
    another would be put into it.
    """
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    make, made, last = mlir.make_ir_context, 0, None

    def shared():
        nonlocal made, last
        if ir.Context.current is not None:
            return make()
        if made % SHARE == 0:
            last = make()
        made += 1
        return last

    mlir.make_ir_context = shared
