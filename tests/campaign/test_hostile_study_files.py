"""Study files that nobody means: what is wrong is a ValueError that names file and table."""

import copy
import random
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxmbd.campaign.study_file import load_study, read_study

GOOD = tomllib.loads("""
title = "t"
samples = 100
design = "monte_carlo"
mechanism = { zoo = "rssr", set = { "points/B/z" = "1 mm" } }
correlation = [["points/B/x", "points/A/x", 0.5]]
[inputs]
"points/B" = { distribution = "normal", sigma = "0.1 mm" }
"points/A/x" = { distribution = "uniform", half_width = 0.1, relative = true }
[experiment]
type = "Sweep"
over = { crank = { from = "0 deg", to = "10 deg", count = 3 } }
[experiment.observe]
rocker = { type = "Coordinate", joint = "rocker" }
range = { type = "Coordinate", joint = "rocker", reduce = "span" }
""")


def nested():
    x = 1
    for _ in range(3000):
        x = [x]
    return x


ODD = [None, True, -1, 10**400, 1e308, np.nan, "", "x", "a" * 5000, [], {}, [[]], [None], [1, 2],
       {"type": []}, {"distribution": []}, {"from": "x", "to": "y", "count": 3}, {"zoo": []},
       {"file": []}, {"file": "a" * 5000}, {"design": []}, "1 furlong",
       "nan mm", nested()]  # fmt: skip


def places(x, place=()):
    yield place
    items = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
    for k, y in items:
        yield from places(y, (*place, k))


def replaced(x, place, value) -> Any:
    if not place:
        return value
    x = copy.copy(x)
    x[place[0]] = replaced(x[place[0]], place[1:], value)
    return x


@pytest.mark.filterwarnings("ignore")
def test_odd_values_anywhere():
    """Read, or refused by a ValueError that names the study: nothing else."""
    assert read_study(GOOD, Path()).samples == 100
    rng, refused = random.Random(0), 0
    every = [place for place in places(GOOD) if place]
    for _ in range(150):
        try:
            read_study(replaced(GOOD, rng.choice(every), rng.choice(ODD)), Path(), source="S")
        except ValueError as error:
            assert str(error).startswith("S")
            refused += 1
    assert refused > 100


def test_the_table_is_named():
    for place, value, match in (
        (("mechanism", "set"), 1, "mechanism has a value that does not fit"),
        (("inputs", "points/B", "distribution"), [None], "inputs has a value that does not fit"),
        (("experiment", "observe"), nested(), r"experiment\[0\] nests lists or objects more than"),
        (("experiment", "observe", "range", "joint"), "rockr", "range: .*did you mean 'rocker'"),
    ):
        with pytest.raises(ValueError, match=f"(?s)this study.*{match}"):
            read_study(replaced(GOOD, place, value), Path())


def test_files_beyond_reason(tmp_path):
    path = tmp_path / "s.toml"
    for text, match in (
        ("a =\n", "is no TOML"),
        ("\na = " + "[" * 5000, "line 2: nests lists or objects"),
        ("a = 1" + "0" * 5000, "is no TOML: Exceeds the limit"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"s.toml.*{match}"):
            load_study(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"s.toml is no text in UTF-8: .*save it as such"):
        load_study(path)
    with pytest.raises(ValueError, match=r"\(5000 characters\) is the name of no file"):
        load_study("a" * 5000)
