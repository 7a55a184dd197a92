"""Results of other people's software, through the same runner that takes new files."""

from __future__ import annotations

import json

import accuracy as runner
import pytest
from accuracy_table import README, RESULTS, filled
from repository import REFERENCES

QUICK = {
    "closedloop_fourbar_pin",
    "dw_generic_quarter",
    "iftomm_A01_simple_pendulum",
    "kin_macpherson",
    "robot_ur5",
}


def files():
    for path in sorted(REFERENCES.glob("*.json")):
        marks = () if path.stem in QUICK else (pytest.mark.slow,)
        yield pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.filterwarnings("ignore:.*triangle inequality")
@pytest.mark.parametrize("path", list(files()))
def test_agrees(path):
    rows = runner.check_file(path)
    compared = [r for r in rows if r.verdict == "ok"]
    assert compared, "nothing was compared"
    assert not [r for r in rows if not r.ok]
    assert all(r.error <= r.allowed for r in compared)


def test_a_wrong_file_is_caught(tmp_path):
    """A mass changed by a thousandth must not pass."""
    text = (REFERENCES / "robot_ur5.json").read_text()
    assert '"mass": 3.7' in text
    wrong = tmp_path / "wrong.json"
    wrong.write_text(text.replace('"mass": 3.7', '"mass": 3.7037', 1))
    assert runner.main([str(wrong)]) == 1


def test_the_readme_shows_the_committed_results():
    text = README.read_text()
    assert filled(text, json.loads(RESULTS.read_text())) == text


def test_an_unknown_file_is_reported(tmp_path):
    path = tmp_path / "strange.json"
    path.write_text('{"what": 1}')
    (row,) = runner.check_file(path)
    assert row.verdict == "UNSUPPORTED" and not row.ok
