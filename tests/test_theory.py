"""The theory pages: their code runs and prints what they say, and the files they name exist."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import types

import pytest
from repository import ROOT

PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))
PAGES += [ROOT / "docs" / name for name in ("comparisons.md", "limits.md")]
SLOW = "assembly closure formulations lanes recursions simulation statics".split()
"""Pages whose code takes seconds."""
FILES = [
    "/" + p.relative_to(ROOT).as_posix()
    for folder in ("jaxmbd", "tests", "benchmarks", "examples")
    for p in (ROOT / folder).rglob("*.*")
]
TESTS = "\n".join(p.read_text("utf-8") for p in (ROOT / "tests").rglob("test_*.py"))


def blocks(page):
    """The Python code of a page that is not run when the documentation is built."""
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_what_a_page_names_exists(page):
    text = page.read_text("utf-8")
    named = re.findall(r"`([\w/]+\.(?:py|json))`", text)
    lost = [name for name in named if not any(file.endswith("/" + name) for file in FILES)]
    lost += [name for name in re.findall(r"`(test_\w+)`", text) if f"def {name}(" not in TESTS]
    assert not lost


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem in SLOW))
        for p in PAGES
        if blocks(p)
    ],
)
def test_what_a_page_prints(page):
    code = "\n".join(blocks(page))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, str(page), "exec"), {"__name__": "page"})
    assert said.getvalue().splitlines() == re.findall(r"^#> (.*)$", code, re.MULTILINE)


def test_the_comparisons_are_made_from_the_committed_results(monkeypatch):
    """Their cells run as in the build of the documentation; each ends with a table or a text."""
    shown = types.ModuleType("IPython.display")
    shown.__dict__["Markdown"] = str
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    monkeypatch.setattr(sys, "path", list(sys.path))
    text = (ROOT / "docs" / "comparisons.md").read_text("utf-8")
    cells = re.findall(r"```{code-cell}[^\n]*\n(?::tags:[^\n]*\n)?(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    made = []
    for cell in cells:
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            made.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    assert len(made) == len(cells) - 1
    for text in made:
        assert "nan" not in text and len(text) > 80
        widths = [line.count("|") for line in text.splitlines() if line.startswith("|")]
        assert len(set(widths)) <= 1
