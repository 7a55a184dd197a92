"""Code that others could have put into a cache is not run; caches are made for their user alone."""

import os
import pickle
import subprocess
import sys
import warnings

import pytest
from repository import ROOT

from jaxmbd.campaign import parcel
from jaxmbd.campaign.store_files import work_folder
from jaxmbd.cli import common
from jaxmbd.lanes.targets import disk

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
OTHER = 12345
PROGRAM = """
import jax.numpy as jnp, numpy as np
from jaxmbd import lanes
from jaxmbd.lanes.targets import cpu
lanes.vmap(lambda x: x * 3.0, strict=True)(np.ones(9))
print("cached", sum(c.cached for c in cpu._TARGETS.values()), "of", len(cpu._TARGETS))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An entry in a cache that this user has made."""
    folder = tmp_path / "of" / "lanes"
    monkeypatch.setenv("JAXMBD_LANES_CACHE", str(folder))
    monkeypatch.setattr(disk, "_told", set())
    disk.write("a", b"code")
    assert disk.read("a") == b"code"
    return folder


@pytest.fixture
def give_away(monkeypatch):
    """Gives a file or folder to another user, as far as can be told here."""

    def give(path):
        if os.geteuid() == 0:
            os.chown(path, OTHER, -1, follow_symlinks=False)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: OTHER)

    return give


def refused(match):
    """The cache is off, with one warning, and says so at the first use alone."""
    with pytest.warns(UserWarning, match=match) as caught:
        assert disk.read("a") is None and disk.directory() is None
        disk.write("a", b"more")
        assert disk.read("a") is None
    assert len(caught) == 1
    assert "JAXMBD_LANES_CACHE" in str(caught[0].message)


def test_folders_are_made_for_their_user_alone(cache):
    assert [os.stat(x).st_mode & 0o777 for x in (cache, cache.parent)] == [0o700, 0o700]
    assert os.stat(cache / "a").st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_that_others_can_write(cache, mode):
    os.chmod(cache, mode)
    refused("can be written by others")


def test_a_folder_in_one_that_others_can_write(cache):
    os.chmod(cache.parent, 0o777)
    refused(f"{cache.parent} can be written by others")


def test_folders_like_tmp_are_no_danger(cache):
    os.chmod(cache.parent, 0o1777)
    assert disk.read("a") == b"code"


@pytest.mark.parametrize("which", ["folder", "parent"])
def test_a_folder_of_another_user(cache, give_away, which):
    give_away(cache if which == "folder" else cache.parent)
    refused("belongs to another user")


def test_a_folder_that_is_a_link(cache):
    """Also one to a folder of one's own: who made it chose which of them is used, and trimmed."""
    cache.rename(cache.with_name("real"))
    cache.symlink_to(cache.with_name("real"))
    refused("is a link")


def test_a_parent_that_is_a_link(cache, tmp_path, monkeypatch, give_away):
    """One's own may lead elsewhere, where the same is asked of what is there; no other's may."""
    (tmp_path / "short").symlink_to(cache.parent)
    monkeypatch.setenv("JAXMBD_LANES_CACHE", str(tmp_path / "short" / "lanes"))
    assert disk.read("a") == b"code"
    os.chmod(cache.parent, 0o777)
    refused(f"{cache.parent} can be written by others")
    os.chmod(cache.parent, 0o755)
    give_away(tmp_path / "short")
    refused("belongs to another user")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setenv("JAXMBD_LANES_CACHE", str(tmp_path / "loop" / "lanes"))
    assert disk.read("a") is None


@pytest.mark.parametrize("how", ["link", "mode", "owner"])
def test_an_entry_that_another_may_have_written_is_none(cache, give_away, how):
    if how == "link":
        (cache / "a").rename(cache / "b")
        (cache / "a").symlink_to("b")
    elif how == "mode":
        os.chmod(cache / "a", 0o666)
    else:
        give_away(cache / "a")
        os.chmod(cache, 0o700)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert disk.read("a") is None


@pytest.mark.slow
def test_machine_code_of_an_open_folder_is_not_run(tmp_path):
    cache = tmp_path / "lanes"
    env = os.environ | {"PYTHONPATH": str(ROOT), "JAXMBD_LANES_CACHE": str(cache)}

    def run():
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(command, env=env, capture_output=True, text=True)

    assert run().stdout == "cached 0 of 1\n"
    os.chmod(cache, 0o777)
    done = run()
    assert done.stdout == "cached 0 of 1\n", done.stderr
    assert done.stderr.count("can be written by others") == 1


def test_the_commands_keep_xla_programs_likewise(tmp_path, monkeypatch):
    import jax

    set_to = {}
    monkeypatch.setattr(disk, "_told", set())
    monkeypatch.setattr(disk, "user_caches", lambda: tmp_path)
    monkeypatch.setattr(jax.config, "update", lambda name, x: set_to.update({name: x}))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    common.set_up_jax()
    folder = tmp_path / "jaxmbd" / "jax"
    assert set_to["jax_compilation_cache_dir"] == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    set_to.clear()
    os.chmod(folder, 0o777)
    with pytest.warns(UserWarning, match="JAX_COMPILATION_CACHE_DIR"):
        common.set_up_jax()
    assert "jax_compilation_cache_dir" not in set_to


def test_where_files_have_no_owners(cache, monkeypatch):
    """Windows: what a user's folder of caches lets others do is the system's matter; no links."""
    os.chmod(cache, 0o777)
    monkeypatch.delattr(os, "geteuid")
    assert disk.read("a") == b"code"
    cache.rename(cache.with_name("real"))
    cache.symlink_to(cache.with_name("real"))
    refused("is a link")


def test_a_parcel_that_was_exchanged_is_not_unpickled(tmp_path):
    """Stores lie where workers of other machines write: a parcel is what its name says, or none."""
    store = tmp_path / "study.zarr"
    name = parcel.put_parcel(store, {"a": 1})
    (work_folder(store) / name).write_bytes(pickle.dumps({"a": 2}))
    with pytest.raises(ValueError, match="not what this run has written"):
        parcel.take_parcel(store, name)
