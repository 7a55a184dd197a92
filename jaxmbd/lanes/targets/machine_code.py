"""From LLVM IR to an object file, by several threads at once.

llvmlite lets one thread at a time into LLVM. LLVM itself needs no lock as long as threads share
neither contexts nor target machines, so the generation of machine code, which takes nearly all of
the time, is called past llvmlite's.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from llvmlite.binding import ffi


def emit(target_machine: Any, module: Any) -> bytes:
    """The object file of a module, as by llvmlite's `emit_object`.

    Args:
        target_machine: an LLVM target machine that no other thread uses meanwhile.
        module: a module in a context that no other thread uses meanwhile.
    """
    generate = _generate()
    if generate is None:
        return target_machine.emit_object(module)
    with ffi.OutputString() as error:
        memory = generate(target_machine, module, 1, error)
        if not memory:
            raise RuntimeError(str(error))
    try:
        start = ffi.lib.LLVMPY_GetBufferStart(memory)
        return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(memory))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


@cache
def _generate() -> Any:
    """The function behind `emit_object`, without the lock; None if it is not as expected."""
    try:
        locked = ffi.lib.LLVMPY_TargetMachineEmitToMemory
        function = ctypes.CDLL(ffi.lib._name).LLVMPY_TargetMachineEmitToMemory
        function.argtypes, function.restype = locked.argtypes, locked.restype
        return function if len(function.argtypes) == 4 else None
    except (AttributeError, OSError, TypeError):
        return None
