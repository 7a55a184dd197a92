"""The peak speed of one core: fused multiply-adds on registers, in a loop compiled by LLVM."""

from __future__ import annotations

import ctypes
import time

import llvmlite.binding as llvm

ACCUMULATORS = 12  # enough for two units of a latency of four to six cycles
LOOPS = 2_000_000


def peak_flops(dtype: str, wide: bool) -> float:
    """Floating-point operations per second of one core; a fused multiply-add counts as two.

    Args:
        dtype: "float64" or "float32".
        wide: whether registers have 512 bits, else 256.
    """
    width = (512 if wide else 256) // (64 if dtype == "float64" else 32)
    scalar = "double" if dtype == "float64" else "float"
    engine = _compiled(
        _source(f"<{width} x {scalar}>", f"v{width}f{64 if scalar == 'double' else 32}")
    )
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(
        engine.get_function_address("peak")
    )
    memory = (ctypes.c_double * 256)()
    place = (ctypes.addressof(memory) + 63) & ~63
    best = float("inf")
    for _ in range(10):
        start = time.perf_counter()
        run(LOOPS, place)
        best = min(best, time.perf_counter() - start)
    return 2.0 * ACCUMULATORS * width * LOOPS / best


def _source(kind: str, suffix: str) -> str:
    """x_i ← a x_i + b for every accumulator; all are stored, so that none is optimised away."""
    ids = range(ACCUMULATORS)
    phis = "\n".join(f"  %x{i} = phi {kind} [ %s{i}, %entry ], [ %y{i}, %loop ]" for i in ids)
    call = f"call {kind} @llvm.fma.{suffix}({kind} %a, {kind} %x{{0}}, {kind} %b)"
    steps = "\n".join(f"  %y{i} = {call.format(i)}" for i in ids)
    starts = "\n".join(
        f"  %e{i} = getelementptr {kind}, ptr %p, i64 {i + 2}\n  %s{i} = load {kind}, ptr %e{i}"
        for i in ids
    )
    stores = "\n".join(f"  store {kind} %y{i}, ptr %e{i}" for i in ids)
    return f"""
declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})
define void @peak(i64 %n, ptr %p) {{
entry:
  %a = load {kind}, ptr %p
  %q = getelementptr {kind}, ptr %p, i64 1
  %b = load {kind}, ptr %q
{starts}
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
{stores}
  ret void
}}
"""


def _compiled(source: str) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
    )
    module = llvm.parse_assembly(source)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
