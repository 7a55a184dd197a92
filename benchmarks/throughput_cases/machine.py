"""The machine, the versions and the commit of a measurement."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("jax", "jaxlib", "numpy", "llvmlite", "pin", "mujoco", "exudyn", "example-robot-data")


def machine() -> dict[str, Any]:
    """Processor, cores that this process may use, memory [GB]."""
    model = platform.processor() or platform.machine()
    flags: set[str] = set()
    for line in _lines("/proc/cpuinfo"):
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            model = value.strip()
        if key.strip() == "flags":
            flags = set(value.split())
    width = next((n for n in ("avx512f", "avx2", "sse2") if n in flags), "")
    return {
        "processor": model,
        "vector_unit": width,
        "cores": cores(),
        "memory_gb": round(_memory("MemTotal") / 1e9, 1),
        "platform": platform.platform(),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> float:
    """Bytes; infinite if unknown."""
    return _memory("MemAvailable") or float("inf")


def versions() -> dict[str, str]:
    """Of Python and the packages; those not installed are left out."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The checkout's commit, with a mark if the package or the benchmarks have changes."""
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git(
            "status", "--porcelain", "--", "jaxmbd", "benchmarks/*.py", "benchmarks/*/*.py"
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + (" with changes" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _memory(key: str) -> float:
    for line in _lines("/proc/meminfo"):
        if line.startswith(key + ":"):
            return 1024.0 * float(line.split()[1])
    return 0.0


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
