"""Printed statics of a corner: any axes and side, any subset of values, and no wrong one passes."""

from __future__ import annotations

import json

import accuracy as runner
from repository import REFERENCES

FILE = REFERENCES / "kc_lotus_4x4v23.json"


def checked(tmp_path, change):
    data = json.loads(FILE.read_text())
    change(data)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(data))
    return runner.check_file(path)


def test_axes_and_side_do_not_matter(tmp_path):
    """The same corner on the right, x forward, with some of its values."""

    def mirror(data):
        data["units"] = data["units"].replace("x rearward", "x forward")
        data["hardpoints"] = {n: [-x, -y, z] for n, (x, y, z) in data["hardpoints"].items()}
        data["printed"] = {n: data["printed"][n] for n in ("castor", "hub_trail", "RCH")}

    rows = checked(tmp_path, mirror)
    assert len(rows) == 7 and all(r.ok for r in rows)
    # The text of a row has our value with four decimals.
    as_drawn = {r.quantity.replace("-0.0000", "+0.0000") for r in runner.check_file(FILE)}
    assert {r.quantity.replace("-0.0000", "+0.0000") for r in rows} <= as_drawn


def test_a_hardpoint_out_of_place_is_caught(tmp_path):
    """By one millimetre, each in a value that depends on it."""
    caught = {"upper_ball": "castor", "lower_front": "RCH", "trackrod_inner": "RCH"}
    for point, value in caught.items():

        def move(data, point=point):
            data["hardpoints"][point][2] += 1.0

        rows = checked(tmp_path, move)
        assert any(r.verdict == "FAIL" and r.quantity.startswith(f"{value}:") for r in rows), point


def test_what_is_not_known_is_said(tmp_path):
    rows = checked(tmp_path, lambda data: data["printed"].update(bounce_centre=1.0))
    assert [r.quantity for r in rows if r.verdict == "UNSUPPORTED"] == [
        "bounce_centre = 1.0: no value of this name is known"
    ]
    (row,) = checked(tmp_path, lambda data: data["hardpoints"].pop("upper_ball"))
    assert row.verdict == "UNSUPPORTED" and "upper_ball" in row.quantity
    (row,) = checked(tmp_path, lambda data: data.pop("rolling_radius"))
    assert row.verdict == "FAIL" and "rolling_radius" in row.quantity
