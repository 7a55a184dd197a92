"""Names in messages, warnings at the user's line, imports of what may be missing."""

import sys
import warnings

import pytest

from jaxmbd.plumbing import closest, import_aside, listed, meant, near, optional, require, warn_user

KNOWN = ("crank", "coupler", "rocker", "ground")


def test_similar_names():
    assert closest("cranc", KNOWN) == "crank"
    assert closest("wheel", KNOWN) is None
    assert meant("rockr", KNOWN) == " (did you mean 'rocker'?)"
    assert meant("wheel", KNOWN) == ""
    assert near("rocker", (*KNOWN, "rocket")) == ["rocker", "rocket"]


def test_the_first_of_many():
    assert listed(["a", "b"]) == "a, b"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert listed(["a", "b", "c"], most=1, between="; ") == "a and 2 more"


def test_a_warning_is_at_the_line_of_the_user():
    names = {"__name__": "jaxmbd.inner", "warn": warn_user}
    exec("def inner(): warn('careful')", names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names["inner"]()
    assert [(w.filename, str(w.message)) for w in caught] == [(__file__, "careful")]


def test_packages_of_extras():
    assert optional("json", "io", "reading").loads("1") == 1
    require("json", "io", "reading")
    for check in (optional, require):
        with pytest.raises(ImportError, match=r"drawing needs no_such_package.*jaxmbd\[viz\]"):
            check("no_such_package", "viz", "drawing")


def test_imports_aside_are_waited_for():
    sys.modules.pop("this_is_missing", None)
    import_aside("this_is_missing", "colorsys")
    import colorsys

    assert colorsys.rgb_to_hsv(1.0, 1.0, 1.0) == (0.0, 0.0, 1.0)
