"""What a release says of itself in several places is the same everywhere."""

import re
import runpy
import tomllib

import pytest
from packaging.specifiers import SpecifierSet
from repository import ROOT

import jaxmbd as mbd

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert mbd.__version__ == PROJECT["version"]
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == PROJECT["version"]
    assert re.search(r"^## \[(.+?)\]", changes, re.M)[1] == PROJECT["version"]
    assert re.search(r"^license: (.+)$", citation, re.M)[1] == PROJECT["license"]


def test_supported_pythons_are_listed_from_the_oldest_on_without_gaps():
    listed = [re.fullmatch(r".* :: 3\.(\d+)", x) for x in PROJECT["classifiers"]]
    minors = [int(m[1]) for m in listed if m]
    oldest = int(re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])[1])
    assert minors == list(range(oldest, minors[-1] + 1))


def test_jax_and_jaxlib_have_the_same_bounds():
    bounds = {re.match(r"jax(lib)?(?=[<>!=])", x): x for x in PROJECT["dependencies"]}
    texts = [x[m.end() :] for m, x in bounds.items() if m]
    assert len(texts) == 2 and texts[0] == texts[1]


def test_the_release_check_tries_each_minor_release_of_jax():
    script = runpy.run_path(str(ROOT / ".ci" / "release"))
    (bounds,) = (re.sub(r"^jax\b", "", x) for x in PROJECT["dependencies"] if re.match(r"jax\b", x))
    allowed = SpecifierSet(bounds)
    minors = [n for n in range(100) if any(f"0.{n}.{k}" in allowed for k in range(100))]
    oldest, *between, _ = (f"0.{n}" for n in minors)
    assert script["jax_between"]() == between
    assert script["oldest_jax"]()[0].startswith(f"jax=={oldest}.")


def test_templates_for_issues_are_valid_forms():
    yaml = pytest.importorskip("yaml")
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    if not folder.exists():
        pytest.skip("not in a released archive")
    for path in folder.glob("*_*.yml"):
        form = yaml.safe_load(path.read_text("utf-8"))
        assert form.keys() >= {"name", "description", "body"}
        ids = [part["id"] for part in form["body"]]
        assert len(set(ids)) == len(ids)
        assert all(part["attributes"]["label"] for part in form["body"])
