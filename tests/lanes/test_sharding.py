"""Several devices: types under `shard_map`, gradients, and batches that stay sharded."""

import os
import subprocess
import sys

import pytest
from repository import ROOT

FEW = {
    "gradients_under_shard_map": ("grad of shard_map", "grad inside shard_map"),
    "batches_stay_sharded": ("jit keeps shards",),
    "nothing_is_gathered": ("nothing is gathered",),
}
REST = {
    "mechanisms_under_shard_map": ("mechanisms",),
    "long_sums_under_shard_map": ("long sums",),
    "mechanisms_are_not_gathered": ("mechanisms are not gathered",),
    "parts_of_a_mesh": ("parts of a mesh",),
    "uneven_shards": ("uneven shards",),
    "explicit_shards_stay": ("explicit shards",),
    "single_mechanisms_run_on_the_host": ("single mechanisms on the host",),
}


@pytest.mark.parametrize("checks", [FEW, pytest.param(REST, marks=pytest.mark.slow)])
def test_on_several_devices(checks):
    """Functions of `several_devices.py`, in a process that has several, each with its reports."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH")) if p)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(ROOT / "tests/lanes/several_devices.py"), *checks],
        env=os.environ | {"XLA_FLAGS": flags.strip(), "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    lines = [line.removeprefix("ok ") for line in run.stdout.splitlines()]
    wanted = {name for names in checks.values() for name in names}
    assert wanted <= set(lines), run.stderr[-2000:]
