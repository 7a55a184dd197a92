"""Results of other people's software, through the same runner that takes new files."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data" / "groundtruth"
QUICK = {
    "closedloop_fourbar_pin",
    "dw_generic_quarter",
    "iftomm_A01_simple_pendulum",
    "kin_macpherson",
    "robot_ur5",
}


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("accuracy", ROOT / "benchmarks" / "accuracy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["accuracy"] = module
    spec.loader.exec_module(module)
    return module


def files():
    for path in sorted(DATA.glob("*.json")):
        marks = () if path.stem in QUICK else (pytest.mark.slow,)
        yield pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.filterwarnings("ignore:.*triangle inequality")
@pytest.mark.parametrize("path", list(files()))
def test_agrees(runner, path):
    rows = runner.check_file(path)
    compared = [r for r in rows if r.verdict == "ok"]
    assert compared, "nothing was compared"
    assert not [r for r in rows if not r.ok]
    assert all(r.error <= r.allowed for r in compared)


def test_a_wrong_file_is_caught(runner, tmp_path):
    """A mass changed by a thousandth must not pass."""
    text = (DATA / "robot_ur5.json").read_text()
    assert '"mass": 3.7' in text
    wrong = tmp_path / "wrong.json"
    wrong.write_text(text.replace('"mass": 3.7', '"mass": 3.7037', 1))
    assert runner.main([str(wrong)]) == 1


def test_the_readme_shows_the_committed_results():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from accuracy_table import README, RESULTS, filled

    text = README.read_text()
    assert filled(text, json.loads(RESULTS.read_text())) == text


def test_an_unknown_file_is_reported(runner, tmp_path):
    path = tmp_path / "strange.json"
    path.write_text('{"what": 1}')
    (row,) = runner.check_file(path)
    assert row.verdict == "UNSUPPORTED" and not row.ok
