"""Comparisons that happen too rarely fail the run."""

from types import SimpleNamespace

import pytest
from comparisons import Comparisons


@pytest.mark.parametrize(
    ("happened", "of", "status"), [(1, 10, 1), (5, 10, 0), (0, 3, 0), (0, 40, 1)]
)
def test_a_rare_comparison_fails_the_run(happened, of, status):
    counts = Comparisons()
    for case in range(of):
        note = ("compared", ["reactions", case < happened, 0.3])
        for when in ("setup", "call", "teardown"):  # each phase's report carries all notes
            counts.pytest_runtest_logreport(SimpleNamespace(when=when, user_properties=[note]))
    session = SimpleNamespace(exitstatus=0)
    counts.pytest_sessionfinish(session)
    assert session.exitstatus == status
    assert bool(counts.rare()) == bool(status)


def test_what_is_said_is_counted(compared, request):
    assert compared("counted", True, 0.0) and not compared("counted", False, 0.0)
    assert [x for _, (_, x, _) in request.node.user_properties] == [True, False]
    request.node.user_properties.clear()
