"""The documentation: its code is Python, links lead somewhere, the build is clean."""

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from documentation import CELL, DOCS, cells, pages
from repository import ROOT


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_is_in_order(page):
    """Its cells are Python, its links to files exist, and it names no page that is not there."""
    text = page.read_text("utf-8")
    for cell in cells(page):
        ast.parse(cell)
    prose = re.sub(r"```.*?```", "", CELL.sub("", text), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:|#|inv:|project:)([^)#]+)[^)]*\)", prose):
        assert (page.parent / target).exists(), target


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 90


@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("myst_nb") and find_spec("torch")), reason="needs the extras docs and torch"
)
def test_the_documentation_builds_without_warnings(tmp_path):
    """As `make docs` builds it: every page runs, every public name has its entry."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", "-W", "-n", "--keep-going"]
        + [str(DOCS), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    assert (tmp_path / "index.html").exists()
