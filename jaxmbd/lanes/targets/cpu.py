"""Compilation for the host: from LLVM IR to machine code in memory, called as an FFI target."""

from __future__ import annotations

import hashlib
import itertools
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
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
_LIBRARIES: list[Any] = []
_SYMBOLS: dict[str, int] = {}  # addresses of what kernels call
_numbers = itertools.count()
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
    """LLVM's target machine for this host; llvmlite lets one thread at a time use it."""
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


def target(ir: str, handler: str, flops: int) -> Compiled:
    """The FFI target of a kernel and its handler, compiled if it is new.

    Args:
        ir: the kernel's module.
        handler: its handler.
        flops: of one sample.
    """
    text = ir + handler
    found = _target(name_of(text), text, flops)
    assert found
    return found


def name_of(text: str) -> str:
    """The name of the FFI target of a module with a handler."""
    return f"lanes_{_key(text)}"


def adopt(name: str, code: bytes, ir: str, flops: int) -> None:
    """Make the kernel of another process an FFI target here, under the name that it has there.

    Args:
        name: of the target.
        code: the object file; if empty, the module is compiled for this processor.
        ir: the module.
        flops: of one sample.

    Raises:
        Unsupported: the code cannot be linked in this process.
    """
    with _LOCK:
        if name not in _TARGETS:
            _drive()
            if code:
                _register(name, link(code, ["handler"])[0], True, flops)
            else:
                found = _built(_key(ir), ir, ["handler"])
                assert found
                _register(name, found[0][0], found[1], flops)


def recalled(name: Any, make: Callable[[], Compiled]) -> Compiled:
    """The kernel of a function, from disk or newly made.

    Beside the machine code is an entry under a digest of the function, the compiler's source and
    the processor, that names it. So a function that another process has compiled needs no graph, no
    arranging and no code.

    Args:
        name: what determines the kernel; its `repr` must be the same in all processes.
        make: compiles it.
    """
    if not COMPILER:
        return make()
    text = f"{name!r} {version('jax')} {version('jaxlib')} {host()}"
    key = "function_" + hashlib.sha256(text.encode() + COMPILER).hexdigest()[:32]
    entry = disk.read(key)
    if entry is not None:
        known, flops = entry.decode().split()
        found = _target(known, None, int(flops))
        if found is not None:
            return found
    new = make()
    disk.write(key, f"{new.name} {new.flops}".encode())
    return new


def _compiler() -> bytes:
    """A digest of the source of the compiler; empty if it cannot be read."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    parts = [hashlib.sha256(file.read_bytes()).digest() for file in files]
    return hashlib.sha256(b"".join(parts)).digest() if parts else b""


COMPILER = _compiler()  # of the source that is imported, which may change on disk later


def _target(name: str, ir: str | None, flops: int) -> Compiled | None:
    """The FFI target of a name; None if there is no module and its code is not on disk."""
    with _LOCK:
        if name not in _TARGETS:
            _drive()
            found = _built(name, ir, ["handler"])
            if found is None:
                return None
            (address,), cached = found
            _register(name, address, cached, flops)
        return _TARGETS[name]


def _register(name: str, address: int, cached: bool, flops: int) -> None:
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="cpu")
    _TARGETS[name] = Compiled(name, cached, flops)


def host() -> str:
    """The processor, the versions of the compiler and its effort, as text."""
    return f"{_processor()} {effort}"


def processor() -> dict[str, str]:
    """What determines where machine code of this host runs, for `runs`."""
    return {"triple": llvm.get_default_triple(), "features": _features()}


def runs(made_for: dict[str, str]) -> bool:
    """Whether this host runs the machine code of another, which has its `processor`."""

    def has(features: str) -> set[str]:
        return {x for x in features.split(",") if x.startswith("+")}

    here = processor()
    same = here["triple"] == made_for["triple"]
    return same and has(made_for["features"]) <= has(here["features"])


def protocol() -> str:
    """A digest of how the driver calls kernels: processes may share them if it is the same."""
    text = cpu_driver.module(0) + cpu_driver.handler(cpu_driver.table(0, 0, 0, 0, 0, 0))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _processor() -> str:
    import llvmlite

    name = llvm.get_host_cpu_name()
    return f"{name} {llvmlite.__version__} {llvm.llvm_version_info} {_features()}"


def function(ir: str, name: str) -> int:
    """The address of a function of a module, to be called by `ctypes`."""
    with _LOCK:
        _drive()
        found = _built(_key(ir), ir, [name])
        assert found
        return found[0][0]


def _key(ir: str) -> str:
    return hashlib.sha256((ir + host()).encode()).hexdigest()[:32]


def _built(
    key: str, ir: str | None, names: Sequence[str], symbols: Mapping[str, int] = _SYMBOLS
) -> tuple[list[int], bool] | None:
    """Addresses of functions of a module, and whether its object file was on disk.

    None if there is no module, and its object file is not on disk or does not link.
    """
    code = disk.read(key)
    if code is not None:
        with suppress(Unsupported):
            return link(code, names, symbols), True
    if ir is None:
        return None
    code = compile_object(ir)
    found = link(code, names, symbols)
    disk.write(key, code)
    return found, False


def object_file(ir: str) -> bytes:
    """The object file of a module, from disk or newly compiled."""
    code = disk.read(_key(ir))
    if code is None:
        code = compile_object(ir)
        disk.write(_key(ir), code)
    return code


def compile_object(ir: str) -> bytes:
    """The object file of a module, after light optimisation."""
    with llvm.create_context() as context, llvm.parse_assembly(ir, context) as module:
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


def link(code: bytes, names: Sequence[str], symbols: Mapping[str, int] = _SYMBOLS) -> list[int]:
    """Addresses of functions of an object file, whose code then lives as long as the process.

    Args:
        code: the object file.
        names: of the functions.
        symbols: addresses of what they call, besides what is in the process.

    Raises:
        Unsupported: the code cannot be linked in this process.
    """
    library = llvm.JITLibraryBuilder().add_current_process().add_object_img(code)
    for word, address in symbols.items():
        library.import_symbol(word, address)
    for name in names:
        library.export_symbol(name)
    try:
        found = library.link(_linker(), f"lanes_{next(_numbers)}")
    except RuntimeError as error:
        raise Unsupported(f"for this host: LLVM cannot link the code ({error})") from None
    _LIBRARIES.append(found)
    return [found[name] for name in names]


@cache
def _linker() -> Any:
    """The linker of all code: one of its own for each kernel would take tens of kB."""
    return llvm.create_lljit_compiler(_new_machine(effort), use_jit_link=True, suppress_errors=True)


@cache
def _drive() -> None:
    """Load the driver once per process, and register its symbols for linking.

    Raises:
        Unsupported: there is none for this system.
    """
    _check_system()
    ir, names = cpu_driver.module(abi_minor()), ("lanes_drive", STOP_WORD)
    found = _built(_key(ir), ir, names, {})
    assert found
    _SYMBOLS.update(zip(names, found[0], strict=True))
    stopping.found(_SYMBOLS[STOP_WORD])


def _check_system() -> None:
    # Else LLVM would say no more than that it cannot link the driver.
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
