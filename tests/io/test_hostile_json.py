"""Mechanisms in JSON that nobody means: what is wrong is a ValueError that names the place."""

import copy
import json
import random
from typing import Any

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.io import from_dict, gt_velocities, load, read_gt_mech, to_dict

GT = {
    "gravity": [0, 0, -9.81],
    "bodies": [{"name": "bob", "mass": 1, "com0": [1, 0, 0], "inertia": [1, 1, 1]}],
    "joints": [
        {"name": "ball", "type": "spherical", "A": "ground", "B": "bob", "point": [0, 0, 0]}
    ],
    "springs": [{"A": "ground", "B": "bob", "pA": [0, 0, 1], "pB": [1, 0, 0], "k": 1.0}],
    "forces": [{"B": "bob", "point": [1, 0, 0], "F": [0, 0, 1]}],
    "torques": [{"B": "bob", "T": [0, 0, 1]}],
}


def nested(kind):
    x = 1
    for _ in range(3000):
        x = {kind: [x]} if kind == "tuple" else {"dict": {"a": x}} if kind == "dict" else [x]
    return x


ODD = [None, True, -1, 10**400, 1e308, np.nan, np.inf, "", "x", "a" * 5000, "\udcff", [], {}, [[]],
       [None], ["a", "b"], [1, 2], [10**400, 0, 0], [np.nan] * 3, {"law": []}, {"law": {}},
       {"type": []}, {"com_of": "x"}, {"com_of": []}, {"tuple": 1}, {"dict": []}, [{"name": []}],
       nested("list"), nested("tuple"), nested("dict")]  # fmt: skip


def places(x, place=()):
    """Every place in nested lists and objects."""
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


@pytest.mark.parametrize("name", ["rssr", "macpherson_steering", "gt", "gt_velocities"])
@pytest.mark.filterwarnings("ignore")
def test_odd_values_anywhere(name):
    """Read, or refused by a ValueError: nothing else."""
    read = {"gt": read_gt_mech, "gt_velocities": gt_velocities}.get(name, from_dict)
    good = GT if name.startswith("gt") else to_dict(getattr(mbd.zoo, name)())
    rng = random.Random(0)
    every = [place for place in places(good) if place]
    refused = 0
    for _ in range(400):
        try:
            read(replaced(good, rng.choice(every), rng.choice(ODD)))
        except ValueError as error:
            assert not isinstance(error, UnicodeError)
            refused += 1
    assert refused > (0 if name == "gt_velocities" else 300)


@pytest.mark.parametrize("read", [load, read_gt_mech, gt_velocities])
def test_files_beyond_reason(tmp_path, read):
    path = tmp_path / "m.json"
    digits = "1" + "0" * 400
    for text, match in (
        (f'{{"bodies":\n{"[" * 100_000}{"]" * 100_000}}}', "line 2: nests lists .* more than 64"),
        (f'{{"a":\n\n{digits}}}', r"line 3: the integer '1000.*'… \(401 characters\) is larger"),
        (f'{{"a":\n\n{digits * 20}}}', r"line 3: the integer '1000"),
        ('{"a": 1', "is not JSON: .*line 1 column"),
        ("", "is not JSON"),
        ('{"mechanism": 3}', "mechanism"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"(?s)m.json.*{match}"):
            read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"m.json is no text in UTF-8: .*position 0"):
        read(path)
    with pytest.raises(ValueError, match=r"\(5000 characters\) is the name of no file: .*too long"):
        read("a" * 5000)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.json")


def test_the_place_is_named(tmp_path):
    good = to_dict(mbd.zoo.rssr())
    for place, value, match in (
        (("bodies", 0, "mass"), 10**400, "body 'crank': mass holds an integer larger than any"),
        (("bodies", 1, "com"), {"com_of": "rocker"}, "body 'coupler': com is an object; give 3"),
        (("joints", 1, "at"), {"com_of": "cronk"}, "joint 'A': at is the COM of 'cronk', which"),
        (("points", 0), nested("list"), r"points\[0\] nests lists or objects more than 64 deep"),
    ):
        with pytest.raises(ValueError, match=match):
            from_dict(replaced(good, place, value))
    for place, value, match in (
        (("bodies", 0, "mass"), 10**400, "body 'bob': .*too large"),
        (("springs", 0, "k"), 10**400, "spring 'spring_0': .*too large"),
        (("joints", 0, "B"), ["bob"], r"joints\[0\]: 'B' is \['bob'\]; give a text"),
        (("gravity",), {}, "gravity: "),
    ):
        with pytest.raises(ValueError, match=match):
            read_gt_mech(replaced(GT, place, value))
    path = tmp_path / "m.json"
    path.write_text(json.dumps(good), encoding="utf-8-sig")  # as editors of Windows save it
    assert load(path).structure == mbd.zoo.rssr().structure
