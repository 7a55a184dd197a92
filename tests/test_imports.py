"""What is imported, and when: names on use, and nothing that a program does not need."""

import ast
import subprocess
import sys

import pytest
from repository import ROOT

import jaxmbd as mbd

PACKAGES = [
    path
    for path in sorted((ROOT / "jaxmbd").rglob("__init__.py"))
    if "on_use(" in path.read_text("utf-8")
]

HEAVY = "scipy.stats scipy.optimize viser mujoco diffrax optimistix optax SALib altair"
"""Packages of other people that few programs need."""
UNUSUAL = "design suspension synthesis identification report viz.explorer viz.scene formulations"
"""Packages of jaxmbd that the demonstration does not need."""

DEMONSTRATION = """
import tempfile, jax
jax.config.update("jax_enable_x64", True)
from jaxmbd.campaign import Input, corner_study, spread_table, status_line
from jaxmbd.viz import corner_figure, curve_fan
corner_study(8)
x = Input(jaxmbd.sampling.Normal(1.0), nominal=0.0)
study = jaxmbd.Study(lambda s: {"y": s["x"] ** 2}, {"x": x}, samples=8)
with tempfile.TemporaryDirectory() as folder:
    results = study.run(folder + "/study.zarr", progress=False)
    spread_table(results), status_line(results)
"""


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_type_checkers_see_the_names_that_are_imported_on_use(path):
    tree = ast.parse(path.read_text("utf-8"))
    package = ".".join(path.parent.relative_to(ROOT).parts)
    (block,) = [x for x in tree.body if isinstance(x, ast.If)]
    shown = {
        (node.module.removeprefix(f"{package}."), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if node.module != package  # a module of the package, which is found by its name
    }
    (call,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "on_use"
    ]
    places = ast.literal_eval(call.args[1])
    assert shown == {(module, name) for module, names in places.items() for name in names.split()}


def test_names_on_use_are_listed_and_found():
    assert set(mbd.__all__) <= set(dir(mbd))
    assert callable(mbd.variables), "the function, not the package of that name"
    assert mbd.io.load is mbd.load
    with pytest.raises(AttributeError, match="module 'jaxmbd' has no attribute 'mechanism'"):
        mbd.mechanism  # noqa: B018
    with pytest.raises(ImportError):
        from jaxmbd import mechanism  # noqa: F401  # pyright: ignore


def test_a_name_that_is_none_is_no_attribute():
    for name in ("no.such", "", "io.load", "a b"):
        with pytest.raises(AttributeError, match="has no attribute"):
            getattr(mbd, name)


def printed(program):
    run = [sys.executable, "-c", program]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


def test_the_package_can_be_reloaded():
    program = "import importlib, jaxmbd\n"
    for name in ("topology", "variables"):
        program += f"jaxmbd.{name}; importlib.reload(jaxmbd); print(jaxmbd.variables)\n"
    assert [x.split()[:2] for x in printed(program).splitlines()] == [
        ["<function", "variables"]
    ] * 2


def test_names_are_used_first_in_several_threads_at_once():
    program = """
import threading, jaxmbd
names = ["simulate", "variables", "Study", "zoo", "viz", "assemble", "load", "minimize"]
start, found = threading.Barrier(len(names)), []
def use(name):
    start.wait()
    found.append(getattr(jaxmbd, name))
threads = [threading.Thread(target=use, args=(name,)) for name in names]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(found))
"""
    assert printed(program) == "8"


LAZY = f"{HEAVY} scipy pandas xarray zarr pint matplotlib"
STEPS = [
    ("pass", "jax numpy equinox llvmlite"),
    ("from jaxmbd.cli import main; main([])", "jax numpy importlib.metadata"),
    ("jaxmbd.Mechanism", f"{LAZY} jaxmbd.analysis"),
    ("jaxmbd.forward_dynamics", LAZY),
    (DEMONSTRATION, f"{HEAVY} pint " + " ".join(f"jaxmbd.{name}" for name in UNUSUAL.split())),
    ("jaxmbd.minimize, jaxmbd.synthesis.Problem", "scipy.stats"),
]
"""Programs, each of which needs more than those before it, and what is then not imported yet."""


def test_a_program_imports_only_what_it_needs():
    told = "print('found:', *set(sys.modules) & set({}.split()))"
    steps = [f"{program}\n{told.format(repr(unneeded))}" for program, unneeded in STEPS]
    said = printed("\n".join(["import sys, jaxmbd", *steps])).splitlines()
    found = [line.strip() for line in said if line.startswith("found:")]
    assert found == ["found:"] * len(STEPS)
