"""Kernels found on disk from their function, without a graph.

The machine code is on disk under a digest of its LLVM IR (`disk`). Beside it is an entry under a
digest of the function itself, that names it. So a function that another process has compiled needs
no graph, no arranging and no code. The digest covers all that these depend on: the jaxpr's content,
the source of the compiler, the versions of what it uses, and the processor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jaxmbd.lanes.targets import cpu, disk


def _compiler() -> bytes:
    """A digest of the source of the compiler; empty if it cannot be read."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    parts = [hashlib.sha256(file.read_bytes()).digest() for file in files]
    return hashlib.sha256(b"".join(parts)).digest() if parts else b""


COMPILER = _compiler()  # of the source that is imported, which may change on disk later


def recalled(name: Any, make: Callable[[], cpu.Compiled]) -> cpu.Compiled:
    """The kernel of a function, from disk or newly made.

    Args:
        name: what determines the kernel; its `repr` must be the same in all processes.
        make: compiles it.
    """
    if not COMPILER:
        return make()
    text = f"{name!r} {version('jax')} {version('jaxlib')} {cpu.host()}"
    key = "function_" + hashlib.sha256(text.encode() + COMPILER).hexdigest()[:32]
    entry = disk.read(key)
    if entry is not None:
        target, flops = entry.decode().split()
        known = cpu.stored(target, int(flops))
        if known is not None:
            return known
    new = make()
    disk.write(key, f"{new.name} {new.flops}".encode())
    return new
