"""How the commands use JAX: double precision, a cache on disk, one device for each core."""

from __future__ import annotations

import os
from contextlib import suppress


def set_up_jax() -> None:
    """Double precision, compiled programs kept between runs, one device for each core."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        from jaxmbd.lanes import disk

        folder = disk.user_caches() / "jaxmbd" / "jax"
        with suppress(OSError):  # a home that cannot be written
            disk.make(folder)
        if disk.usable(folder, "JAX_COMPILATION_CACHE_DIR"):
            jax.config.update("jax_compilation_cache_dir", str(folder))
    if "JAX_NUM_CPU_DEVICES" not in os.environ and "XLA_FLAGS" not in os.environ:
        try:
            jax.config.update("jax_num_cpu_devices", min(cores(), 16))
        except RuntimeError:
            pass  # the process has used JAX before: its devices are settled


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
