"""Every public name has an example, and every example runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import warnings

import pytest
from documentation import public_packages

import jaxmbd as mbd

PACKAGES = public_packages()
MODULES = [
    m.name
    for m in pkgutil.walk_packages(mbd.__path__, "jaxmbd.")
    if not m.name.endswith("__main__")
]


def needs_pytorch(name):
    if name.startswith("jaxmbd.torch"):
        pytest.importorskip("torch")


SLOW = (
    "design.counterweights",
    "report.write",
    "suspension.compliance_matrix",
    "suspension.load_table",
    "synthesis.synthesis",
    "viz.curves",
    "viz.design_report",
    "viz.moving_picture",
)
"""Modules whose examples take seconds."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, id=n, marks=[pytest.mark.slow] * (n.removeprefix("jaxmbd.") in SLOW))
        for n in MODULES
    ],
)
def test_examples_run(name):
    needs_pytorch(name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*triangle inequality.*")
        result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_has_an_example(name):
    """A function or class in `__all__`; data have a text after their assignment instead."""
    needs_pytorch(name)
    package = importlib.import_module(name)
    public = {n: getattr(package, n) for n in package.__all__}
    callables = {n: x for n, x in public.items() if callable(x) and not inspect.ismodule(x)}
    assert not [n for n, x in callables.items() if ">>>" not in (x.__doc__ or "")]


def test_the_documentation_has_all_packages():
    """Those directly below `jaxmbd`, and further ones; commands have a page of their own."""
    below = [m.name for m in pkgutil.iter_modules(mbd.__path__, "jaxmbd.") if m.ispkg]
    assert set(below) - set(PACKAGES) == {"jaxmbd.cli", "jaxmbd.numerics", "jaxmbd.plumbing"}
