"""What the package shows of itself: its names, its types, the extras that its messages promise."""

import re
import tomllib

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
    tools = {
        "cuda",
        "test",
        "bench",
        "dev",
        "docs",
    }  # of the machine, and of those who work on jaxmbd
    assert asked == PROJECT["optional-dependencies"].keys() - tools
