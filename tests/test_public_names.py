"""What the package shows of itself: its names, its types, the extras that its messages promise."""

import pkgutil
import re
import sys
import tomllib
from collections import defaultdict
from importlib import import_module
from importlib.util import find_spec

from repository import ROOT

import jaxmbd as mbd

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_public_name_is_listed_once_and_there():
    assert len(set(mbd.__all__)) == len(mbd.__all__)
    assert not [name for name in mbd.__all__ if not hasattr(mbd, name)]


def test_types_are_for_users_too():
    assert (ROOT / "jaxmbd" / "py.typed").exists()


def test_extras_are_those_that_the_code_asks_for():
    sources = [path.read_text("utf-8") for path in (ROOT / "jaxmbd").rglob("*.py")]
    asked = {x for s in sources for x in re.findall(r'optional\("\w+", "(\w+)"', s)}
    # of the machine, and of those who work on jaxmbd
    tools = {"cuda", "test", "test-torch", "bench", "dev", "docs"}
    assert asked == PROJECT["optional-dependencies"].keys() - tools


def packages():
    """jaxmbd and all packages in it whose extras are installed."""
    inner = [m.name for m in pkgutil.walk_packages(mbd.__path__, "jaxmbd.") if m.ispkg]
    if not find_spec("torch"):
        inner.remove("jaxmbd.torch")
    return [mbd, *(sys.modules.get(name) or import_module(name) for name in inner)]


def test_every_public_name_is_in_some_test():
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    words = set(re.findall(r"\w+", tests))
    top = [p for p in packages() if p.__name__.count(".") < 2]
    public = {name for package in top for name in getattr(package, "__all__", ())}
    assert sorted(public - words) == []


def test_one_name_is_one_thing():
    """A name that several packages export is the same object in all of them."""
    found = defaultdict(dict)
    for package in packages():
        for name in getattr(package, "__all__", ()):
            found[name][id(getattr(package, name))] = package.__name__
    twice = {name: list(things.values()) for name, things in found.items() if len(things) > 1}
    assert not twice
