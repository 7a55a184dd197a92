"""Compare jaxmbd with reference results from the literature and from other software.

    python benchmarks/accuracy.py FILE.json ...

The kind of a file is detected from its content; `benchmarks/accuracy_cases` has a module for each
kind. Settings (the step) are derived from the file alone. Prints the largest errors; exits with 1
if one exceeds the accuracy that the file states (1e-6 relative if it states none), or if a file, or
a part of it, is not supported.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import _script
from accuracy_cases import KINDS
from accuracy_cases.report import Row, failed, table, unsupported


def check_file(path: Path) -> list[Row]:
    """All comparisons of one file; a file that cannot be read or built gives one failed row."""
    try:
        path = description_of(path)
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            return [unsupported(path.stem, "the file does not hold one object")]
        kind = next((k for k in KINDS if k.detect(data)), None)
        if kind is None:
            return [unsupported(path.stem, "the content is of no known kind")]
        return kind.check(data, path.parent)
    except json.JSONDecodeError as error:
        return [failed(path.stem, f"the file is not JSON: {error}")]
    except (ValueError, OSError) as error:  # the message says what is wrong with the file
        return [failed(path.stem, " ".join(str(error).split()))]
    except Exception as error:  # one bad file must not hide the others
        traceback.print_exc()
        return [failed(path.stem, f"{type(error).__name__}: {error}".splitlines()[0])]


def description_of(path: Path) -> Path:
    """The JSON file that a series belongs to; a JSON file is returned as it is."""
    if path.suffix != ".csv":
        return path
    for candidate in sorted(path.parent.glob("*.json")):
        data: Any = json.loads(candidate.read_text(encoding="utf-8"))
        named = data.get("series") if isinstance(data, dict) else None
        if path.name in (named if isinstance(named, list) else [named]):
            return candidate
    raise ValueError(f"no JSON file beside {path.name} names it as its series")


def versions() -> dict[str, str]:
    names = ("jax", "numpy", "jaxmbd")
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "a checkout"
    return found | {"python": sys.version.split()[0], "platform": sys.platform}


def main(arguments: list[str] | None = None) -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    options = parser.parse_args(arguments)
    _script.start()
    files, results = options.files, {}
    warnings.filterwarnings("ignore", message=".*triangle inequality.*")
    bad: list[str] = []
    for path in files:
        start = time.perf_counter()
        rows = check_file(path)
        results[path.stem] = [asdict(row) for row in rows]
        print(f"\n{path} ({time.perf_counter() - start:.0f} s)\n{table(rows)}", flush=True)
        if not rows or not all(r.ok for r in rows):
            bad.append(path.name)
    _script.write(options.json, {"versions": versions(), "files": results})
    print(
        f"\n{len(files) - len(bad)} of {len(files)} files agree"
        + (f"; not: {', '.join(bad)}" if bad else "")
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
