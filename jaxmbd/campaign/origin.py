"""Where results come from: versions, commit, machine."""

from __future__ import annotations

import platform
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("jaxmbd", "jax", "jaxlib", "numpy", "zarr", "xarray")


def versions() -> dict[str, str]:
    """Versions of the packages that results depend on; "" where one is not installed."""
    return {name: _version(name) for name in PACKAGES}


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def provenance() -> dict[str, Any]:
    """Versions, commit, platform and machine: where results come from. No times."""
    return {
        "versions": versions(),
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "machine": platform.node(),
        "processor": _processor(),
        "devices": [f"{d.platform} {d.device_kind}" for d in jax.devices()[:1]],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")


def _commit() -> str:
    """The commit of a checkout, with "+" if files were changed; "" if this is none."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    asked = "status --porcelain=v2 --branch --no-ahead-behind -- jaxmbd".split()
    run = ["git", "-C", str(root), *asked]
    try:
        said = subprocess.run(run, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    changed = [line for line in said.splitlines() if not line.startswith("#")]
    commit = said.partition("# branch.oid ")[2].partition("\n")[0]
    return commit + ("+" if changed else "")
