"""Pages of the documentation and the code in them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from repository import ROOT

DOCS = ROOT / "docs"
CELL = re.compile(r"```\{code-cell\} python\n((?::[^\n]*\n)*)(.*?)```", re.DOTALL)


def pages() -> list[Path]:
    """All pages that are written by hand."""
    return sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)


def cells(page: Path) -> list[str]:
    """The Python code of a page, cell by cell."""
    return [code for _, code in CELL.findall(page.read_text("utf-8"))]


def program(page: Path) -> str:
    """The cells of a page as one program; those that are to raise an error must do so."""
    parts = []
    for tags, code in CELL.findall(page.read_text("utf-8")):
        parts.append(_raising(code) if "raises-exception" in tags else code)
    return "\n".join(parts)


def _raising(code: str) -> str:
    body = "".join(f"    {line}\n" for line in code.splitlines())
    after = "except Exception as error:\n    print(error)\nelse:\n    raise SystemExit(1)\n"
    return f"try:\n{body}{after}"


def public_packages() -> tuple[str, ...]:
    """The packages whose public names have entries in the documentation."""
    spec = importlib.util.spec_from_file_location("packages", DOCS / "_ext/public_packages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PACKAGES
