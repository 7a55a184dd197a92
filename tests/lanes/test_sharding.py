"""Several devices: types under `shard_map`, gradients, and batches that stay sharded."""

import os
import subprocess
import sys

import pytest
from repository import ROOT

CHECKS = (
    "grad of shard_map", "grad inside shard_map", "mechanisms", "long sums", "jit keeps shards",
    "nothing is gathered", "mechanisms are not gathered", "parts of a mesh", "uneven shards",
    "explicit shards", "single mechanisms on the host",
)  # fmt: skip


@pytest.fixture(scope="module")
def passed():
    """The names of the checks that `several_devices.py` reports as passed, and its last output."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH")) if p)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(ROOT / "tests" / "lanes" / "several_devices.py")],
        env=os.environ | {"XLA_FLAGS": flags.strip(), "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    lines = [line.removeprefix("ok ") for line in run.stdout.splitlines()]
    return lines, run.stderr[-2000:]


@pytest.mark.parametrize("check", CHECKS)
def test_on_several_devices(passed, check):
    lines, errors = passed
    assert check in lines, errors
