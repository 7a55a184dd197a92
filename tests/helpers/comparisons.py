"""How often comparisons that depend on a case really happen, counted over all workers.

A test over many cases says with `compared` whether the comparison took place; a run in which it was
rarer than asked for fails.
"""

import pytest

ENOUGH = 8
"""Cases from which on a share says something: one file run alone may hold fewer."""


@pytest.fixture
def compared(request):
    """``compared(what, happened, least)`` gives `happened` back and counts it under `what`."""

    def count(what: str, happened: bool, least: float) -> bool:
        note = (what, bool(happened), float(least))
        request.node.user_properties.append(("compared", note))
        return bool(happened)

    return count


class Comparisons:
    """The counts, kept where the reports of all workers arrive."""

    def __init__(self):
        self.cases = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            for name, note in report.user_properties:
                if name == "compared":
                    what, happened, least = note
                    self.cases.setdefault((what, least), []).append(happened)

    def rare(self) -> list[str]:
        """What happened too rarely."""
        return [
            f"{what}: compared in {sum(found)} of {len(found)} cases, at least {least:.0%} wanted"
            for (what, least), found in sorted(self.cases.items())
            if len(found) >= ENOUGH and sum(found) < least * len(found)
        ]

    def pytest_sessionfinish(self, session):
        if self.rare() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        for (what, _), found in sorted(self.cases.items()):
            terminalreporter.write_line(f"{what}: compared in {sum(found)} of {len(found)} cases")
        for line in self.rare():
            terminalreporter.write_line(line, red=True)
