"""The package's architecture: who may import whom, and how long files may be."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent / "jaxmbd"
FILES = sorted(ROOT.rglob("*.py"))

# A package imports from jaxmbd only itself and those before it here. lanes comes first: it knows
# nothing of mechanics. jaxmbd itself, which re-exports from all of them, and jaxmbd/__main__.py
# share the last place with cli.
LAYERS = (
    "plumbing lanes numerics spatial model graph kinematics dynamics formulations analysis observe "
    "zoo io variables tolerances sampling statistics design suspension synthesis cams "
    "identification campaign torch report viz ml cli"
).split()
LAST = ("", "__main__")
RANK = {name: rank for rank, name in enumerate(LAYERS)} | dict.fromkeys(LAST, len(LAYERS) - 1)

# The rooms of lanes, in order; what stands beside them comes last.
ROOMS = "ir elementary trace reverse codegen targets".split()

# Packages that their one function hides: the functions that go with `variables` are in jaxmbd.
HIDDEN = {"": "variables"}

LONGEST = 600  # lines of a file


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a file."""
    return tuple(ast.walk(tree))


def module_of(path: Path) -> list[str]:
    """jaxmbd/model/body.py -> [jaxmbd, model, body]; a package's __init__ keeps that name."""
    return [ROOT.name, *path.relative_to(ROOT).with_suffix("").parts]


def layer_of(module: list[str]) -> str:
    """The package under jaxmbd that a dotted name lies in; "" for jaxmbd itself."""
    return module[1] if len(module) > 1 and module[1] != "__init__" else ""


def imported(tree: ast.AST, module: list[str]) -> list[tuple[int, list[str], str]]:
    """(line, module, name) of every import from jaxmbd in the tree, inside functions too.

    The name is empty where a whole module is imported.
    """
    found = []
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name.split("."), "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module[: -node.level] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            for alias in node.names:
                whole = tuple([*base, alias.name]) in MODULES
                module_, name = ([*base, alias.name], "") if whole else (base, alias.name)
                found.append((node.lineno, module_, name))
    return [x for x in found if x[1][0] == ROOT.name]


def dotted(path: Path) -> tuple[str, ...]:
    """The name by which a file is imported."""
    name = module_of(path)
    return tuple(name[:-1] if name[-1] == "__init__" else name)


MODULES = {dotted(path): path for path in FILES}
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def imported_layers(tree: ast.AST, module: list[str]) -> list[tuple[int, str]]:
    """(line, layer) of every import from jaxmbd in the tree."""
    found = []
    for line, base, name in imported(tree, module):
        if base == [ROOT.name] and name in RANK:  # a package that has no files yet
            base = [*base, name]
        found.append((line, layer_of(base)))
    return found


def forbidden_imports(tree: ast.AST, module: list[str]) -> list[str]:
    own = layer_of(module)
    return [
        f"line {line}: {own or ROOT.name} imports {layer or ROOT.name}"
        for line, layer in imported_layers(tree, module)
        if layer != own and RANK.get(layer, len(LAYERS)) > RANK[own]
    ]


def test_finds_the_package():
    assert FILES, f"no Python files under {ROOT}"


def test_no_file_is_longer_than_a_concept():
    lines = {f: f.read_text(encoding="utf-8").count("\n") for f in FILES}
    long = {str(f.relative_to(ROOT.parent)): n for f, n in lines.items() if n > LONGEST}
    assert not long, f"longer than {LONGEST} lines, so perhaps more than one concept: {long}"


def test_every_top_level_name_has_a_layer():
    unknown = {layer_of(module_of(path)) for path in FILES} - RANK.keys()
    assert not unknown, f"{sorted(unknown)} have no place among the layers: {' '.join(LAYERS)}"


def test_packages_import_only_those_above_them():
    problems = [
        f"{path.relative_to(ROOT.parent)}, {problem}"
        for path in FILES
        if layer_of(module_of(path)) in RANK
        for problem in forbidden_imports(TREES[path], module_of(path))
    ]
    assert not problems, "\n".join(["imports against the order of the layers:", *problems])


def room_of(module: Sequence[str]) -> int:
    """Place of a file of lanes in the order of rooms."""
    room = module[2] if len(module) > 2 else ""
    return ROOMS.index(room) if room in ROOMS else len(ROOMS)


def past_faces(tree: ast.AST, module: list[str]) -> list[str]:
    """Imports from inside other packages. What belongs to no package, such as jaxmbd, may do it."""
    if layer_of(module) in LAST:
        return []
    froms = [n for n in nodes(tree) if isinstance(n, ast.ImportFrom) and not n.level]
    wholes = [n for n in nodes(tree) if isinstance(n, ast.Import)]
    names = [(n.lineno, n.module or "") for n in froms]
    names += [(n.lineno, alias.name) for n in wholes for alias in n.names]
    inside = [(line, name, name.split(".")) for line, name in names]
    return [
        f"line {line}: {name}"
        for line, name, parts in inside
        if parts[0] == ROOT.name and len(parts) > 2 and parts[1] != layer_of(module)
    ]


def test_packages_are_imported_through_their_faces():
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path, tree in TREES.items()
        if (lines := past_faces(tree, module_of(path)))
    }
    assert not found, f"give the names to the packages' __init__.py: {found}"


def test_the_check_for_faces():
    def found(source: str) -> int:
        return len(past_faces(ast.parse(source), [ROOT.name, "dynamics", "x"]))

    assert found("from jaxmbd.model.body import Body") == 1
    assert found("def f():\n    import jaxmbd.model.body") == 1
    assert found("from jaxmbd.model import Body\nfrom jaxmbd.dynamics.kkt import solve_kkt") == 0


def test_rooms_of_lanes_import_only_those_before_them():
    problems = [
        f"{path.relative_to(ROOT)}:{line}: imports {'.'.join(base)}"
        for path, tree in TREES.items()
        if layer_of(module_of(path)) == "lanes"
        for line, base, _ in imported(tree, module_of(path))
        if room_of(base) > room_of(module_of(path))
    ]
    assert not problems, "\n".join([f"against the order of rooms ({' '.join(ROOMS)}):", *problems])


def test_no_circles_of_files():
    """Imports inside functions and for type checking count."""
    edges = {
        path: {MODULES[tuple(base)] for _, base, _ in imported(tree, module_of(path))} - {path}
        for path, tree in TREES.items()
    }
    circle = find_circle(edges)
    assert not circle, "a circle: " + " -> ".join(str(p.relative_to(ROOT)) for p in circle)


def find_circle(edges: Mapping[Any, Iterable[Any]]) -> list[Any]:
    """Some circle of a directed graph, its first node last too; empty if there is none."""
    done: set[Any] = set()

    def walk(node: Any, way: list[Any]) -> list[Any]:
        if node in way:
            return [*way[way.index(node) :], node]
        if node in done:
            return []
        for other in edges[node]:
            if found := walk(other, [*way, node]):
                return found
        done.add(node)
        return []

    return next((found for node in edges if (found := walk(node, []))), [])


def test_the_check_for_circles():
    assert not find_circle({1: [2, 3], 2: [3], 3: []})
    assert find_circle({1: [2], 2: [3], 3: [2]}) == [2, 3, 2]


def private_imports(tree: ast.AST, module: list[str]) -> list[str]:
    """Underscore names of other files, imported or as attributes of modules."""
    found = [
        f"line {line}: {'.'.join(base)}.{name}"
        for line, base, name in imported(tree, module)
        if name.startswith("_")
    ]
    modules = {
        alias.asname or alias.name
        for node in nodes(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOT.name)
        for alias in node.names
        if (*(node.module or "").split("."), alias.name) in MODULES
    }
    return found + [
        f"line {node.lineno}: {node.value.id}.{node.attr}"
        for node in nodes(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
    ]


def test_the_check_for_private_names():
    def found(source: str) -> int:
        return len(private_imports(ast.parse(source), [ROOT.name, "dynamics", "x"]))

    assert found("from jaxmbd.model.body import _check") == 1
    assert found("def f():\n    from jaxmbd.dynamics import kkt\n    kkt._solve()") == 1
    assert found("from jaxmbd.dynamics import kkt\nkkt.solve(x._y, kkt.__doc__)") == 0


def test_no_file_imports_what_another_keeps_to_itself():
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path, tree in TREES.items()
        if (names := private_imports(tree, module_of(path)))
    }
    assert not found, f"give them names without underscore: {found}"


def test_no_name_hides_a_module():
    """``package.name`` is a module or something of another name, not now one and now the other."""
    hidden = {}
    for path, tree in TREES.items():
        if path.name == "__init__.py":
            inside = {m[-1] for m in MODULES if m[:-1] == dotted(path)}
            names = {
                alias.asname or alias.name
                for node in nodes(tree)
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
                if (*(node.module or "").split("."), alias.name) not in MODULES
            }
            if both := inside & names:
                hidden[".".join(dotted(path)[1:])] = both
    known = {package: set(names.split()) for package, names in HIDDEN.items()}
    assert hidden == known, "rename the file, or take it off the list"


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
        ("model/body.py", "from ..graph import layout", False),
        ("model/__init__.py", "from .body import Body", True),
        ("model/__init__.py", "from ..graph import layout", False),
        ("model/joints/rod.py", "from ..body import Body", True),
        ("model/joints/rod.py", "from ...graph import layout", False),
        ("lanes/ir.py", "def f():\n    from jaxmbd.spatial import rotations", False),
        ("spatial/inertia.py", "import numpy, jax.numpy", True),
        ("spatial/inertia.py", "from jaxmbd.helpers import norm", False),
        ("cli.py", "import jaxmbd", True),
        ("cli.py", "from jaxmbd.zoo import rssr", True),
        ("zoo/planar.py", "import jaxmbd", False),
        ("__init__.py", "from .cli import main\nfrom .lanes import vmap", True),
        ("__main__.py", "from jaxmbd.cli import main", True),
    ],
)
def test_the_check_itself(file, source, allowed):
    assert (not forbidden_imports(ast.parse(source), module_of(ROOT / file))) == allowed


# Who may name joint types otherwise than to make a joint: the files that define them, and the
# formulations that stand beside the engine as oracles of it. The zoo chooses what it builds.
OWN_TYPES = ("model/joints", "formulations", "zoo")


def joint_types():
    """Names of all joint types, those in the plane and unlisted ones too."""
    import jaxmbd.formulations  # noqa: F401, whose joint types count too
    from jaxmbd.model.joints import Joint

    found, rest = set(), [Joint]
    while rest:
        subclasses = [c for c in rest.pop().__subclasses__() if c.__module__.startswith("jaxmbd.")]
        found |= {c.__name__ for c in subclasses}
        rest += subclasses
    return found


def matched_types(tree: ast.AST, names: set[str]) -> list[str]:
    """Where a joint type is used for anything but to make a joint, or is compared by its name.

    A class that is called, imported, exported or an annotation asks nothing; one in `isinstance`,
    in a comparison, a pattern, a table or a base class does.
    """
    free = set()
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            free.add(id(node.func))
        for field in ("annotation", "returns"):
            if getattr(node, field, None) is not None:
                free |= {id(x) for x in ast.walk(getattr(node, field))}
    found = [
        f"line {node.lineno}: {node.id}"
        for node in nodes(tree)
        if isinstance(node, ast.Name) and node.id in names and id(node) not in free
    ]
    for node in nodes(tree):
        parts = [node, *node.comparators] if isinstance(node, ast.Compare) else []
        for part in parts:
            texts = {x.value for x in ast.walk(part) if isinstance(x, ast.Constant)} & names
            found += [f"line {node.lineno}: {text!r}" for text in sorted(texts)]
    return sorted(set(found))


def test_nobody_asks_which_type_a_joint_is():
    """A new joint type is one new file: what others need to know of it, `Joint` answers."""
    names = joint_types()
    assert {"Revolute", "AxisJoint", "RevoluteInPlane", "EulerParameterBall"} <= names
    problems = [
        f"{path.relative_to(ROOT.parent)}, {problem}"
        for path in FILES
        if not path.relative_to(ROOT).as_posix().startswith(OWN_TYPES)
        for problem in matched_types(TREES[path], names)
    ]
    assert not problems, "\n".join(["give `Joint` an attribute or a method instead:", *problems])


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ("isinstance(j, Rod)", False),
        ("isinstance(j, (Rod, Free))", False),
        ("type(j) is Rod", False),
        ("type(j).__name__ in ('Rod', 'Free')", False),
        ("TABLE = {Rod: 1}", False),
        ("match j:\n    case Rod():\n        pass", False),
        ("j = Rod(a, b)", True),
        ("BUILD = {'rod': lambda a: Rod(a)}", True),
        ("def f(j: Rod | None) -> Rod: ...", True),
        ("from x import Rod\n__all__ = ['Rod']", True),
    ],
)
def test_the_check_of_types_itself(source, allowed):
    assert (not matched_types(ast.parse(source), {"Rod", "Free"})) == allowed
