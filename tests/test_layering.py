"""The package's architecture: who may import whom, and how long files and functions may be."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "jaxmbd"
FILES = sorted(ROOT.rglob("*.py"))

# A package imports from jaxmbd only itself and those before it here. lanes comes first: it knows
# nothing of mechanics. jaxmbd itself, which re-exports from all of them, and jaxmbd/__main__.py
# share the last place with cli.
LAYERS = (
    "lanes numerics spatial model topology kinematics dynamics formulations analysis zoo "
    "design campaign ml io viz cli"
).split()
LAST = ("", "__main__")
RANK = {name: rank for rank, name in enumerate(LAYERS)} | dict.fromkeys(LAST, len(LAYERS) - 1)

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 80


def module_of(path: Path) -> list[str]:
    """jaxmbd/model/body.py -> [jaxmbd, model, body]; a package's __init__ keeps that name."""
    return [ROOT.name, *path.relative_to(ROOT).with_suffix("").parts]


def layer_of(module: list[str]) -> str:
    """The package under jaxmbd that a dotted name lies in; "" for jaxmbd itself."""
    return module[1] if len(module) > 1 and module[1] != "__init__" else ""


def imported_layers(tree: ast.AST, module: list[str]) -> list[tuple[int, str]]:
    """(line, layer) of every import from jaxmbd in the tree, inside functions too."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module[: -node.level] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            names = [[*base, alias.name] for alias in node.names]
            if base == [ROOT.name]:  # `from jaxmbd import x`: a package, or a name it re-exports
                names = [name if name[1] in RANK else base for name in names]
        else:
            continue
        found += [(node.lineno, layer_of(name)) for name in names if name[0] == ROOT.name]
    return found


def forbidden_imports(source: str, module: list[str]) -> list[str]:
    own = layer_of(module)
    return [
        f"line {line}: {own or ROOT.name} imports {layer or ROOT.name}"
        for line, layer in imported_layers(ast.parse(source), module)
        if layer != own and RANK.get(layer, len(LAYERS)) > RANK[own]
    ]


def test_finds_the_package():
    assert FILES, f"no Python files under {ROOT}"


def test_every_top_level_name_has_a_layer():
    unknown = {layer_of(module_of(path)) for path in FILES} - RANK.keys()
    assert not unknown, f"{sorted(unknown)} have no place among the layers: {' '.join(LAYERS)}"


def test_packages_import_only_those_above_them():
    problems = [
        f"{path.relative_to(ROOT.parent)}, {problem}"
        for path in FILES
        if layer_of(module_of(path)) in RANK
        for problem in forbidden_imports(path.read_text(encoding="utf-8"), module_of(path))
    ]
    assert not problems, "\n".join(["imports against the order of the layers:", *problems])


def test_files_and_functions_are_short():
    problems = []
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT.parent)
        if (lines := len(source.splitlines())) > MAX_FILE_LINES:
            problems.append(f"{name}: {lines} lines, at most {MAX_FILE_LINES}")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    problems.append(
                        f"{name}:{node.lineno}: {node.name} has {lines} lines, "
                        f"at most {MAX_FUNCTION_LINES}"
                    )
    assert not problems, "\n".join(["too long:", *problems])


def test_tolerances_are_derived_in_one_place():
    """Nothing else asks for the rounding of a number type; lanes is a compiler of its own."""
    home = ROOT / "numerics" / "tolerances.py"
    others = [p for p in FILES if p != home and layer_of(module_of(p)) != "lanes"]
    found = [p.relative_to(ROOT) for p in others if "finfo" in p.read_text(encoding="utf-8")]
    assert not found, f"{found}: name the tolerance in {home.relative_to(ROOT)}"


@pytest.mark.parametrize(
    ("file", "source", "allowed"),
    [
        ("model/body.py", "from jaxmbd.spatial.rotations import rotate", True),
        ("model/body.py", "from jaxmbd.dynamics import kkt", False),
        ("model/body.py", "import jaxmbd.dynamics.kkt", False),
        ("model/body.py", "from jaxmbd import spatial", True),
        ("model/body.py", "from jaxmbd import dynamics", False),
        ("model/body.py", "from jaxmbd import Mechanism", False),
        ("model/body.py", "from . import mechanism", True),
        ("model/body.py", "from .. import spatial", True),
        ("model/body.py", "from ..topology import graph", False),
        ("model/__init__.py", "from .body import Body", True),
        ("model/__init__.py", "from ..topology import graph", False),
        ("model/joints/rod.py", "from ..body import Body", True),
        ("model/joints/rod.py", "from ...topology import graph", False),
        ("lanes/ir.py", "def f():\n    from jaxmbd.spatial import rotations", False),
        ("spatial/inertia.py", "import numpy, jax.numpy", True),
        ("spatial/inertia.py", "from jaxmbd.helpers import norm", False),
        ("cli.py", "import jaxmbd", True),
        ("cli.py", "from jaxmbd.zoo import rssr", True),
        ("zoo/rssr.py", "import jaxmbd", False),
        ("__init__.py", "from .cli import main\nfrom .lanes import vmap", True),
        ("__main__.py", "from jaxmbd.cli import main", True),
    ],
)
def test_the_check_itself(file, source, allowed):
    assert (not forbidden_imports(source, module_of(ROOT / file))) == allowed
