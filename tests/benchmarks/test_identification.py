"""The benchmark of identification: its judge, a small case, and its committed results."""

import json
from functools import cache

import identification
import pytest
from repository import ROOT


@cache
def small():
    """Thirty repetitions of the smallest case."""
    return identification.run(identification.cases()["mass on a spring, from its motion"], 30, 1)[0]


def test_what_is_not_identifiable_is_named_in_every_repetition():
    found = small()
    assert found["converged"] == 30 and found["named alike"] == 1.0
    assert found["not identifiable"] == [
        "only bodies/bob/mass / forces/spring/stiffness is determined; "
        "bodies/bob/mass · forces/spring/stiffness is not"
    ]
    assert found["what is determined within two standard errors"] > 0.8


@pytest.mark.parametrize(
    "change",
    [
        {"converged": 29},
        {"named alike": 0.9},
        {"what is determined within two standard errors": 0.8},
        {"truth within two standard errors": {"bodies/bob/mass": 1.0}},
    ],
)
def test_the_judge_sees_what_is_wrong(change):
    good = small() | {"what is determined within two standard errors": 0.95}
    assert identification.passed(good) and not identification.passed(good | change)


def test_the_committed_results_pass():
    path = ROOT / "benchmarks" / "results" / "identification.json"
    found = json.loads(path.read_text("utf-8"))["cases"]
    assert found.keys() == identification.cases().keys()
    for name, case in identification.cases().items():
        figures = found[name]
        assert figures["repetitions"] >= 400 and identification.passed(figures, case.band), name
