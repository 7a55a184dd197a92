"""Compilation for the host: from LLVM IR to machine code in memory, called as an FFI target."""

from __future__ import annotations

import ctypes
import hashlib
import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import llvmlite.binding as llvm

from jaxmbd.lanes.codegen.loops import STOP_WORD
from jaxmbd.lanes.ir.nodes import Unsupported
from jaxmbd.lanes.targets import cpu_driver, disk, stopping

_LOCK = threading.RLock()
# Machine code is never freed: XLA cannot unregister a target, and its programs hold the address
# without telling when the last of them is deleted. Equal code is one target.
_ENGINES: list[Any] = []
_TARGETS: dict[str, Compiled] = {}

effort = 1
"""LLVM's effort at generating machine code, 0 to 3. All that 2 adds is another scheduling, after
register allocation, which takes up to a third of the time and is of no use to processors that
reorder instructions themselves. 0 takes half of the time, for code that is up to twice as long: a
rollout then takes about a tenth longer, its gradient four tenths."""


@dataclass(frozen=True)
class Compiled:
    """A kernel that XLA can call.

    Attributes:
        name: name of its FFI target.
        cached: whether its machine code came from the disk cache.
        flops: floating operations of one sample, while loops counted once.
    """

    name: str
    cached: bool
    flops: int


def machine() -> Any:
    """LLVM's target machine for this host."""
    return _machine(effort)


@cache
def _machine(effort: int) -> Any:
    return _new_machine(effort)


def _new_machine(effort: int) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    words = _features() + (",-prefer-256-bit" if vector_bits() == 512 else "")
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=words, opt=effort)


@cache
def vector_bits() -> int:
    """Bits of the host's widest vectors: 512 (AVX-512), 256 (AVX) or 128 (SSE2, NEON)."""
    features = _features().split(",")
    if "+avx512f" in features and "+avx512dq" in features:
        return 512
    return 256 if "+avx" in features else 128


@cache
def _features() -> str:
    """What the processor can do, as LLVM writes it; nothing, where LLVM cannot find it out."""
    try:
        return llvm.get_host_cpu_features().flatten()
    except RuntimeError:
        return ""


@cache
def vector_registers() -> int:
    """Number of the host's vector registers: 32 for AVX-512 and ARM, else 16."""
    arm = llvm.get_default_triple().startswith(("aarch64", "arm64"))
    return 32 if arm or vector_bits() == 512 else 16


def target(ir: str, table: list[int], flops: int) -> Compiled:
    """The FFI target of a kernel, compiled if it is new."""
    text = ir + cpu_driver.handler(table)
    name = f"lanes_{hashlib.sha256((text + host()).encode()).hexdigest()[:32]}"
    found = _target(name, flops, lambda: _load(name, text, "handler"))
    assert found
    return found


def stored(name: str, flops: int) -> Compiled | None:
    """The FFI target of a kernel that was compiled before; None if its code is gone."""
    return _target(name, flops, lambda: _read(name, "handler"))


def _target(name: str, flops: int, load: Callable[[], tuple[int, bool] | None]) -> Compiled | None:
    with _LOCK:
        if name not in _TARGETS:
            found = load()
            if found is None:
                return None
            address, cached = found
            jax.ffi.register_ffi_target(name, capsule(address), platform="cpu")
            _TARGETS[name] = Compiled(name, cached, flops)
        return _TARGETS[name]


def host() -> str:
    """The processor, the versions of the compiler and its effort, as text."""
    return f"{_processor()} {effort}"


@cache
def _processor() -> str:
    import llvmlite

    name = llvm.get_host_cpu_name()
    return f"{name} {llvmlite.__version__} {llvm.llvm_version_info} {_features()}"


def function(ir: str, name: str) -> int:
    """The address of a function of a module, to be called by `ctypes`."""
    with _LOCK:
        key = hashlib.sha256((ir + host()).encode()).hexdigest()[:32]
        return _load(key, ir, name)[0]


def _load(key: str, ir: str, name: str) -> tuple[int, bool]:
    found = _read(key, name)
    if found:
        return found
    code = compile_object(ir)
    engine = _link(code)
    disk.write(key, code)
    return _address(engine, name), False


def _read(key: str, name: str) -> tuple[int, bool] | None:
    """The address of a function whose object file is on disk, if it is there and links."""
    _drive()
    code = disk.read(key)
    if code is None:
        return None
    with suppress(Unsupported):  # the cached object does not link
        return _address(_link(code), name), True
    return None


def _address(engine: Any, name: str) -> int:
    _ENGINES.append(engine)
    return engine.get_function_address(name)


def compile_object(ir: str) -> bytes:
    """The object file of a module, after light optimisation."""
    module = llvm.parse_assembly(ir)
    module.verify()
    optimise(module, machine())
    return machine().emit_object(module)


def optimise(module: Any, target_machine: Any) -> None:
    """Inline elementary functions and remove dead code; the graph is already optimised."""
    builder = llvm.create_pass_builder(
        target_machine, llvm.create_pipeline_tuning_options(speed_level=1)
    )
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_dead_code_elimination_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)


def _link(code: bytes) -> Any:
    """An MCJIT engine with the code of an object file.

    Raises:
        Unsupported: the code cannot be linked in this process.
    """
    try:
        # The engine takes ownership of its target machine.
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_machine(effort))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
    except RuntimeError as error:
        raise Unsupported(f"for this host: LLVM cannot link the code ({error})") from None
    return engine


@cache
def _drive() -> None:
    """Compile the driver once per process, and register its symbols for linking.

    Raises:
        Unsupported: there is none for this system.
    """
    _check_system()
    engine = _link(compile_object(cpu_driver.module(abi_minor())))
    _ENGINES.append(engine)
    for name in ("lanes_drive", STOP_WORD):
        llvm.add_symbol(name, engine.get_function_address(name))
    stopping.found(engine.get_function_address(STOP_WORD))


def _check_system() -> None:
    # Where a function is missing that the driver calls, LLVM would end the process.
    if not sys.platform.startswith(("linux", "darwin")):
        raise Unsupported(
            f"for this system ({sys.platform}): kernels need Linux or macOS, of which they use "
            "aligned_alloc and sched_yield; elsewhere XLA computes the same, more slowly"
        )


def abi_minor() -> int:
    """The minor version of XLA's FFI that this jaxlib was built with."""
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    try:
        found = re.search(r"#define XLA_FFI_API_MINOR (\d+)", header.read_text())
    except OSError:
        found = None
    return int(found.group(1)) if found else 1


def capsule(address: int) -> Any:
    """An address as a capsule for `jax.ffi.register_ffi_target`."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(address, None, None)
