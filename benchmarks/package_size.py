"""Compare the size and the structure of the package at some commits with the checkout.

    python benchmarks/package_size.py d23f71d [--json FILE]

Prints a table: one column a commit, the last of them the checkout's own files.
"""

from __future__ import annotations

import ast
import io
import statistics
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from _script import HERE, parser, write

PACKAGE = "jaxmbd"
ROOT = HERE.parent


def docstring_lines(tree: ast.Module) -> int:
    """Lines of all docstrings, those of attributes too."""
    texts = (
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.Expr)
        and isinstance(n.value, ast.Constant)
        and isinstance(n.value.value, str)
    )
    return sum((n.end_lineno or n.lineno) - n.lineno + 1 for n in texts)


def exported(tree: ast.Module) -> list[str]:
    """The names in ``__all__``."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            value = node.value  # type: ignore[attr-defined]
            return [str(x.value) for x in getattr(value, "elts", ()) if isinstance(x, ast.Constant)]
    return []


def past_faces(tree: ast.Module, package: str) -> int:
    """Imports from inside other packages than the file's own."""
    names = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    parts = [name.split(".") for name in names]
    return sum(p[0] == PACKAGE and len(p) > 2 and p[1] != package for p in parts)


def measured(root: Path) -> dict[str, Any]:
    """The figures of the package in a folder."""
    files = sorted((root / PACKAGE).rglob("*.py"))
    texts = {f: f.read_text("utf-8") for f in files}
    trees = {f: ast.parse(text) for f, text in texts.items()}
    lines = {f: text.count("\n") for f, text in texts.items()}
    inner = {f: f.relative_to(root / PACKAGE).parts for f in files}
    faces = [f for f in files if f.name == "__init__.py" and len(inner[f]) <= 2]
    table = root / "docs" / "architecture" / "private_interfaces.md"
    rows = table.read_text("utf-8").count("\n|") - 2 if table.exists() else None
    return {
        "lines": sum(lines.values()),
        "lines of docstrings": sum(map(docstring_lines, trees.values())),
        "empty lines": sum(text.count("\n\n") for text in texts.values()),
        "files": len(files),
        "median file": int(statistics.median(lines.values())),
        "longest file": max(lines.values()),
        "packages": len(faces) - 1,
        "public names": len({name for f in faces for name in exported(trees[f])}),
        "imports past faces": sum(
            past_faces(trees[f], inner[f][0]) for f in files if len(inner[f]) > 1
        ),
        "private interfaces, by the table": rows,
        "lines of tests": sum(
            f.read_text("utf-8").count("\n") for f in (root / "tests").rglob("*.py")
        ),
    }


def at_commit(name: str) -> dict[str, Any]:
    archive = subprocess.run(
        ["git", "archive", name, PACKAGE, "tests", "docs"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        return measured(Path(folder))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("commits", nargs="*", help="commits to compare with")
    given = options.parse_args()
    found = {name: at_commit(name) for name in given.commits} | {"checkout": measured(ROOT)}
    print(f"{'':34}" + "".join(f"{name:>12}" for name in found))
    for key in found["checkout"]:
        values = (x[key] for x in found.values())
        print(f"{key:34}" + "".join(f"{'' if v is None else v:>12}" for v in values))
    write(given.json, found)


if __name__ == "__main__":
    main()
