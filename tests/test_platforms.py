"""What differs on other systems, acted out here: no kernels and other locks on Windows."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from repository import ROOT

from jaxmbd.campaign import store_files
from jaxmbd.campaign.store_files import StoreError
from jaxmbd.lanes.targets import cpu, disk

ON_WINDOWS = """
import sys, warnings
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from jaxmbd import lanes
sys.platform = "win32"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = jax.jit(lanes.vmap(lambda x: jnp.sin(x) * x))(jnp.arange(5.0))
texts = [str(w.message) for w in caught]
assert any("(win32)" in t and "jax.vmap is used instead" in t for t in texts), texts
assert jnp.allclose(found, jnp.sin(jnp.arange(5.0)) * jnp.arange(5.0))
try:
    lanes.vmap(lambda x: x * x, strict=True)(jnp.arange(3.0))
except lanes.Unsupported as error:
    print(error)
"""


def test_where_there_are_no_kernels_xla_computes():
    env = os.environ | {"PYTHONPATH": str(ROOT), "JAXMBD_LANES_CACHE": ""}
    done = subprocess.run([sys.executable, "-c", ON_WINDOWS], env=env, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert b"kernels need Linux or macOS" in done.stdout


def test_a_processor_that_llvm_knows_nothing_of(monkeypatch):
    def unknown():
        raise RuntimeError("failed to get host cpu features")

    for name in ("vector_bits", "_features"):
        monkeypatch.setattr(cpu, name, getattr(cpu, name).__wrapped__)
    monkeypatch.setattr(cpu.llvm, "get_host_cpu_features", unknown)
    assert cpu.vector_bits() == 128


@pytest.mark.parametrize(
    ("system", "variable", "folder"),
    [
        ("win32", "LOCALAPPDATA", "given"),
        ("linux", "XDG_CACHE_HOME", "given"),
        ("linux", "", "home/.cache"),
        ("darwin", "", "home/Library/Caches"),
        ("win32", "", "home/AppData/Local"),
    ],
)
def test_caches_are_where_the_system_has_them(system, variable, folder, monkeypatch, tmp_path):
    monkeypatch.setattr(disk.sys, "platform", system)
    for name in ("LOCALAPPDATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "given"))
    assert disk.user_caches() == tmp_path / folder


def test_a_store_is_locked_on_windows_too(monkeypatch, tmp_path):
    """Windows locks bytes of open files, and says PermissionError where they are locked."""

    def locking(descriptor, mode, count):
        assert os.lseek(descriptor, 0, os.SEEK_CUR) > 10**6  # beyond what is written
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(store_files, "fcntl", None)
    monkeypatch.setattr(store_files, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    path = tmp_path / "study.zarr"
    with store_files.lock(path):
        assert store_files.holder(path)["pid"] == os.getpid()
        with pytest.raises(StoreError, match=f"process {os.getpid()} on"), store_files.lock(path):
            pass
    assert not store_files.lock_file(path).exists() and store_files.holder(path) == {}
    with store_files.lock(path) as token:
        assert store_files.holder(path)["token"] == token
