"""Texts for people: what is said of a misspelt name, lists of problems, tables."""

import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from jaxmbd.plumbing import (
    hint,
    listed,
    meant,
    near,
    optional,
    outline,
    plain,
    refuse,
    text_table,
    unknown,
    warn_user,
)

NAMES = ["crank", "rocker", "coupler"]


def test_a_misspelt_name_is_met_by_those_that_there_are():
    assert unknown("body", "rocker", NAMES) == []
    assert unknown("body", "rokcer", iter(NAMES)) == [
        "there is no body 'rokcer'; did you mean 'rocker'?"
    ]
    assert hint("rocer", ["crank", "rocker", "rocker2"], most=2) == (
        "did you mean 'rocker' or 'rocker2'?"
    )
    assert hint("zzz", NAMES) == "there are crank, rocker, coupler"
    assert hint("zzz", [str(i) for i in range(10)]).endswith("6, 7 and 2 more")
    assert hint("zzz", []) == "there are none"


def test_of_many_names_the_first_are_listed():
    assert listed(NAMES) == "crank, rocker, coupler"
    assert listed(NAMES, most=1, between="; ") == "crank and 2 more"


def test_all_problems_are_in_one_error():
    refuse("vary", [])
    with pytest.raises(ValueError) as error:
        refuse("vary", ["one", "two"])
    assert str(error.value) == "vary:\n  - one\n  - two"


def test_columns_are_aligned_under_their_head():
    rows = [("k", "1200", "N/m"), ("mass", "2", "")]
    assert text_table(("name", "value", "unit"), rows).splitlines() == [
        "name  value  unit",
        "-----------------",
        "k      1200  N/m",
        "mass      2",
    ]
    plain = text_table(("name", "value", "unit"), rows, left=(), rule=False)
    assert plain.splitlines()[1] == "   k   1200   N/m"


def test_arrays_become_lists_that_json_can_hold():
    x = {1: np.array([1.0, np.nan]), "t": (np.int64(2), float("inf"), None, True, "a")}
    assert plain(x) == {"1": [1.0, "nan"], "t": [2, "inf", None, True, "a"]}
    assert plain(x, lambda x: None) == {"1": [1.0, None], "t": [2, None, None, True, "a"]}


def test_similar_names():
    known = ("crank", "coupler", "rocker", "ground")
    assert meant("rockr", known) == " (did you mean 'rocker'?)"
    assert meant("wheel", known) == ""
    assert near("rocker", (*known, "rocket")) == ["rocker", "rocket"]


def test_a_warning_is_at_the_line_of_the_user():
    names = {"__name__": "jaxmbd.inner", "warn": warn_user}
    exec("def inner(): warn('careful')", names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names["inner"]()
    assert [(w.filename, str(w.message)) for w in caught] == [(__file__, "careful")]


def test_packages_of_extras():
    assert optional("json", "io", "reading").loads("1") == 1
    with pytest.raises(ImportError, match=r"drawing needs no_such_package.*jaxmbd\[viz\]"):
        optional("no_such_package", "viz", "drawing")


class Result(NamedTuple):
    q: Any
    lost: Any
    steps: Any = 7
    events: Any = None
    outputs: Any = None

    __str__ = outline


def test_a_result_is_printed_by_its_sizes_and_ranges():
    result = Result(np.array([0.5, 1.0]), np.array([3.0, np.nan, -1.0]), outputs={"a": 1, "b": 2})
    assert [line.split() for line in str(result).splitlines()] == [
        ["Result:"],
        ["q", "(2,)", "0.5,", "1"],
        ["lost", "(3,)", "-1", "to", "3,", "1", "not", "finite"],
        ["steps", "7"],
        ["outputs", "a,", "b"],
    ]
    seen = []
    jax.jit(lambda q: (seen.append(str(result._replace(q=q))), q)[1])(np.ones(9))
    assert "q        (9,)  not known yet" in seen[0]
