"""What GPU kernels consist of and execute: by NVIDIA's assembler, and by interpreting PTX."""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import jax
import llvmlite.binding as llvm
import numpy as np
from gpu_emulation import Machine, run
from gpu_programs import mechanism
from throughput_cases.work import FORWARD, GRADIENT, ROLLOUT

from jaxmbd.lanes.ir.nodes import SLOT
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import ptx

CASES = ("rssr", "chain8", "multi_link", "macpherson", "double_wishbone")
STEPS = {FORWARD: 1, ROLLOUT: 20, GRADIENT: 20}
DTYPES = ("float64", "float32")
ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
GRADIENT_ARCHITECTURES = ("sm_90",)  # in single precision; each takes the assembler up to a minute
SAMPLES = 4  # whose executed instructions are counted
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")


def architectures(work: str, dtype: str) -> tuple[str, ...]:
    """Those that a kind of kernel is assembled for."""
    few = work == GRADIENT and dtype == "float32"
    return GRADIENT_ARCHITECTURES if few else ARCHITECTURES


def kernel(name: str, work: str, dtype: str) -> tuple[Kernel, list[np.ndarray]]:
    """The kernel of a kind of work, and its arguments for a few samples."""
    return mechanism(name, work, dtype, SAMPLES, steps=STEPS[work])


def facts(k: Kernel) -> tuple[str, dict[str, Any]]:
    """A kernel's LLVM IR, and its operations and memory for a sample."""
    emitter = k.emitter(1, gpu=True)
    ir = emitter.module()
    return ir, dict(
        flops=emitter.flops,
        argument_bytes=_bytes(k.in_avals),
        result_bytes=_bytes(k.out_avals),
        scratch_bytes=SLOT * emitter.scratch_slots,
    )


def _bytes(avals: list[Any]) -> int:
    return sum(a.size * a.dtype.itemsize for a in avals)


def executed(k: Kernel, args: list[np.ndarray]) -> dict[str, float]:
    """Instructions and bytes of a sample, the mean of all, as the PTX of sm_90 has them.

    Local memory is what the PTX itself addresses; what the assembler spills comes on top.
    """
    machine = Machine()
    run(k, args, machine)
    counts = asdict(machine.counts)
    del counts["launches"], counts["threads"]
    return {key: number / SAMPLES for key, number in counts.items()}


def assembled(text: str, arch: str) -> dict[str, Any]:
    """Registers, stack, spills and size of a kernel [bytes], or why the assembler refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text)
        command = [_tool(), f"-arch={arch}", "-v", "-o", str(target), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return dict(refused=(done.stdout + done.stderr).strip().splitlines()[0][:200])
        code = target.read_bytes()
    report = (done.stdout + done.stderr).split("Function properties for kernel\n")[1]
    stack, used = _STACK.search(report), _USED.search(report)
    assert stack is not None and used is not None, report
    return dict(
        registers=int(used[1]),
        stack=int(stack[1]),
        spill_stores=int(stack[2]),
        spill_loads=int(stack[3]),
        code=section_size(code, ".text.kernel"),
    )


def section_size(elf: bytes, name: str) -> int:
    """Bytes of a section of a 64-bit ELF file."""
    at, size, count, names = struct.unpack_from("<Q10xHHH", elf, 40)
    headers = [struct.unpack_from("<IIQQQQ", elf, at + k * size) for k in range(count)]
    texts = headers[names][4]
    for header in headers:
        start = texts + header[0]
        if elf[start : elf.index(b"\0", start)] == name.encode():
            return header[5]
    raise ValueError(f"the file has no section {name}")


def _tool() -> str:
    found = ptx.assembler()
    if found is None:
        raise FileNotFoundError("ptxas was not found: pip install nvidia-cuda-nvcc")
    return found


@cache
def versions() -> dict[str, str | None]:
    """Of what makes the code: JAX traces, LLVM writes PTX, ptxas (None without it) assembles."""
    llvm_version = ".".join(map(str, llvm.llvm_version_info))
    return dict(jax=jax.__version__, llvm=llvm_version, ptxas=_assembler_version())


def _assembler_version() -> str | None:
    if ptx.assembler() is None:
        return None
    done = subprocess.run([_tool(), "--version"], capture_output=True, text=True, check=True)
    release = re.search(r"V(\d+\.\d+\.\d+)", done.stdout)
    assert release is not None, done.stdout
    return release[1]
