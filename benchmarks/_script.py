"""What every benchmark shares: where it imports from, how JAX is set, its options and results.

Importing it puts `benchmarks` and the checkout on the path, so it comes before `jaxmbd`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent)]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

BATCH = 4096  # mechanisms at once, wherever a speed is given for one size of batch


def start(*, cache: bool = True) -> None:
    """Double precision; with `cache`, compiled programs are kept (not where compiling is timed)."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if cache and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(HERE.parent / ".cache" / "jax"))


def parser(text: str | None, *, plots: bool = False) -> argparse.ArgumentParser:
    """A parser described by the first line of a docstring, with `--json` and perhaps `--plots`."""
    made = argparse.ArgumentParser(description=(text or "").split("\n")[0])
    made.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    if plots:
        made.add_argument("--plots", type=Path, metavar="FOLDER", help="write the figures there")
    return made


def as_json(found: Any) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False)


def write(path: Path | None, found: Any) -> None:
    """The results as JSON, where a file was asked for."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_json(found) + "\n", encoding="utf-8")
