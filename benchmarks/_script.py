"""Common parts of all benchmarks: import path, JAX settings, options and results.

Import it before `jaxmbd`: it puts `benchmarks` and the checkout on the path.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
MEASURED = HERE.parent / "docs" / "measured"  # pages with tables of committed results
sys.path += [str(HERE), str(HERE.parent)]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

BATCH = 4096  # mechanisms at once, wherever a speed is given for one size of batch


def start(*, cache: bool = True) -> None:
    """Double precision; with `cache`, a cache of compiled programs (not if compiling is timed)."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if cache and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(HERE.parent / ".cache" / "jax"))


def parser(text: str | None, *, plots: bool = False) -> argparse.ArgumentParser:
    """A parser with the first line of a docstring, with `--json` and on request `--plots`."""
    made = argparse.ArgumentParser(description=(text or "").split("\n")[0])
    made.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    if plots:
        made.add_argument("--plots", type=Path, metavar="FOLDER", help="write the figures there")
    return made


def with_table(page: str, begin: str, end: str, table: list[str]) -> str:
    """A page's text with what stands between two lines replaced."""
    if begin not in page:
        raise SystemExit(f"the page has no line {begin}")
    before, rest = page.split(begin)
    after = rest.split(end)[1] if end in rest else rest
    return before + begin + "\n" + "\n".join(table) + "\n" + end + after


def with_tables(page: str, tables: Mapping[str, list[str]]) -> str:
    """A page's text with its tables, which comments around them name, replaced."""
    for name, lines in tables.items():
        page = with_table(page, f"<!-- {name} table -->", f"<!-- end of {name} table -->", lines)
    return page


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]


def as_json(found: Any) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False)


def write(path: Path | None, found: Any) -> None:
    """Write the results as JSON, if a file is given."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_json(found) + "\n", encoding="utf-8")
