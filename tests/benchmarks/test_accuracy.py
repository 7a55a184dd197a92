"""Results of other people's software, through the same runner that takes new files."""

from __future__ import annotations

import json
import re

import accuracy as runner
import pytest
from repository import REFERENCES

QUICK = {
    "closedloop_fourbar_pin",
    "iftomm_A01_simple_pendulum",
    "kc_lotus_4x4v23",
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


def test_an_unknown_file_is_reported(tmp_path):
    path = tmp_path / "strange.json"
    path.write_text('{"what": 1}')
    (row,) = runner.check_file(path)
    assert row.verdict == "UNSUPPORTED" and not row.ok


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1, 2]", "does not hold one object"),
        ("{", "not JSON: .* line 1"),
        ('{"bodies": {"a": 1}, "joints": []}', "bodies is not a list of objects"),
        ('{"bodies": [{"mass": 1}], "joints": []}', "'body_0' has no 'inertia', only"),
    ],
)
def test_a_file_of_the_wrong_form_is_one_plain_line(text, says, tmp_path, capsys):
    path = tmp_path / "wrong.json"
    path.write_text(text)
    (row,) = runner.check_file(path)
    assert not row.ok and re.search(says, row.quantity)
    assert not any(capsys.readouterr())


def test_a_series_that_outputs_does_not_describe_is_one_plain_line(tmp_path, capsys):
    bob = {"name": "bob", "mass": 1.0, "com0": [1, 0, 0], "inertia": [1, 1, 1]}
    hinge = {"type": "revolute", "A": "ground", "B": "bob", "point": [0, 0, 0], "axis": [0, 1, 0]}
    data = {"format": "gt-mech-1", "bodies": [bob], "joints": [hinge], "series": "far.csv"}
    (tmp_path / "far.csv").write_text("t,bob_x,height\n0,1,2\n0.01,2,3\n")
    for name, series, says in (
        ("file", "far.csv", "far.csv has nothing to compare: outputs describes none of t, bob_x"),
        ("list", ["far.csv"], "series is not the name of one file"),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({**data, "series": series}))
        first, last = runner.check_file(path)
        assert first.ok and not last.ok and says in last.quantity
    assert not any(capsys.readouterr())
