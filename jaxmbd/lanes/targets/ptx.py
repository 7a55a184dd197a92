"""From a kernel's LLVM IR to PTX, and to machine code if NVIDIA's assembler is available."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from jaxmbd.lanes.ir.nodes import WARP
from jaxmbd.lanes.targets import cpu, disk

TRIPLE = "nvptx64-nvidia-cuda"
KNOWN = (70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 120)
"""Compute capabilities, times ten; a GPU runs the code of the highest one up to its own."""
DEFAULT = "sm_90"
OLDEST = "sm_75"
"""The target of PTX for GPUs that are not known: CUDA 13 supports none that is older."""
WIDE = "+ptx81"
"""LLVM's name of PTX 8.1 (CUDA 12.1). From it on a kernel has 32764 bytes for its arguments and
results, 8 each; before it 4352. LLVM takes the oldest version that knows the target, which is newer
than 8.1 from sm_100 on."""
BOUNDS = f'attributes #0 = {{ "nvvm.maxntid"="{WARP}" "nvvm.minctasm"="1" }}'
"""A kernel's launch bounds; with one block per multiprocessor ptxas may use all registers."""
_WHEELS = ("cu13/bin", "cuda_nvcc/bin", "cu12/bin")
_ROOTS = ("/usr/local/cuda/bin", "/opt/cuda/bin")


def architecture(capability: tuple[int, int]) -> str:
    """The target for a GPU of a compute capability (major, minor).

    Raises:
        ValueError: the GPU is older than the oldest supported one.

    Example:
        >>> from jaxmbd.lanes.targets import ptx
        >>> ptx.architecture((9, 0)), ptx.architecture((12, 1))
        ('sm_90', 'sm_120')
    """
    number = 10 * capability[0] + capability[1]
    known = [k for k in KNOWN if k <= number]
    if not known:
        raise ValueError(
            f"compute capability {capability[0]}.{capability[1]} is too old: lanes needs "
            f"{KNOWN[0] // 10}.{KNOWN[0] % 10} or newer"
        )
    return f"sm_{known[-1]}"


@cache
def _machine(arch: str) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    return target.create_target_machine(cpu=arch, features=_features(arch), opt=2)


def _features(arch: str) -> str:
    """The PTX version, where LLVM's choice for the target has too little room for arguments."""
    return WIDE if int(arch.removeprefix("sm_")) < 100 else ""


def generate(ir: str, arch: str = DEFAULT) -> str:
    """The PTX of a module with a GPU kernel (`Emitter` with ``gpu=True``).

    Args:
        ir: the module.
        arch: its target, like "sm_90".
    """
    ir = "\n".join((_head(arch), ir, BOUNDS))
    key = _key(ir, arch, _features(arch), str(llvm.llvm_version_info), "ptx")
    kept = disk.read(key)
    if kept is not None:
        return kept.decode()
    module = llvm.parse_assembly(ir)
    module.verify()
    cpu.optimise(module, _machine(arch))
    text = _machine(arch).emit_assembly(module)
    disk.write(key, text.encode())
    return text


def _head(arch: str) -> str:
    layout = _machine(arch).target_data
    return f'target datalayout = "{layout}"\ntarget triple = "{TRIPLE}"'


def _key(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


# Assembling


@cache
def assembler() -> str | None:
    """The path of ptxas: from PATH, NVIDIA's Python wheels, or a toolkit; None if not found."""
    found = shutil.which("ptxas")
    if found:
        return found
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    places = [Path(root) / wheel for root in roots for wheel in _WHEELS]
    for place in (*places, *map(Path, _ROOTS)):
        if (place / "ptxas").is_file():
            return str(place / "ptxas")
    return None


def assemble(text: str, arch: str = DEFAULT) -> bytes:
    """The machine code (cubin) of PTX; cached on disk.

    Raises:
        FileNotFoundError: there is no ptxas.
        RuntimeError: ptxas rejected the text.
    """
    tool = assembler()
    if tool is None:
        raise FileNotFoundError("ptxas was not found; the driver can assemble PTX instead")
    key = _key(text, arch, _version(tool), "cubin alone")
    kept = disk.read(key)
    if kept is not None:
        return kept
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text)
        command = [tool, f"-arch={arch}", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"ptxas rejected a kernel: {done.stderr.strip()[:500]}")
        code = target.read_bytes()
    disk.write(key, code)
    return code


@cache
def _version(tool: str) -> str:
    done = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False)
    return done.stdout
