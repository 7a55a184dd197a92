"""Every public name has an example, and every example runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import warnings

import pytest

import jaxmbd as mbd

MODULES = [
    m.name
    for m in pkgutil.walk_packages(mbd.__path__, "jaxmbd.")
    if not m.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*triangle inequality.*")
        result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_public_name_has_an_example():
    public = [n for n in mbd.__all__ if not inspect.ismodule(getattr(mbd, n))]
    without = [n for n in public if ">>>" not in (getattr(mbd, n).__doc__ or "")]
    without += [
        f"zoo.{n}" for n in mbd.zoo.__all__ if ">>>" not in (getattr(mbd.zoo, n).__doc__ or "")
    ]
    assert not without
