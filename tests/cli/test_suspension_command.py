"""`jaxmbd kinematics`: corners and axles from files with their roles."""

import csv
import json
import re

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.cli import main
from jaxmbd.io import load_notes


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def renamed(tmp_path):
    """A corner whose names are not those of the zoo, with its roles in its file."""
    mech = mbd.zoo.multi_link()
    roles = suspension.zoo_corner("multi_link")
    path = tmp_path / "rear.json"
    suspension.save_with_roles(mech, path, roles)
    path.write_text(re.sub('"upright"(?!:)', '"hub carrier"', path.read_text("utf-8")), "utf-8")
    return path


def test_roles_are_in_the_file(renamed, capsys, tmp_path):
    mech, (roles,) = suspension.load_with_roles(renamed)
    assert roles.upright == "hub carrier"
    assert list(load_notes(renamed)) == ["corners"]
    out = tmp_path / "bump.csv"
    words = ["--travel", "-20 mm", "20 mm", "--places", "3", "--observe", "toe", "--out", str(out)]
    assert main(["kinematics", str(renamed), *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    table = suspension.kinematics(mech, roles, travel=[-0.02, 0.0, 0.02], observe=["toe"])
    np.testing.assert_allclose(found["columns"]["toe"], table["toe"], rtol=0, atol=1e-14)
    head, first, *_ = csv.reader(out.read_text("utf-8").splitlines())
    assert head[:2] == ["travel [mm]", "toe [deg]"]
    assert float(first[1]) == pytest.approx(np.degrees(table["toe"][0]))


@pytest.mark.slow
def test_an_axle_rolls(tmp_path, capsys):
    corner = mbd.zoo.double_wishbone_kinematic()
    car = suspension.axle(corner, shared=["rack"])
    pair = suspension.axle_corners(car, suspension.zoo_corner("double_wishbone_kinematic"))
    path, figure = tmp_path / "axle.json", tmp_path / "roll.svg"
    suspension.save_with_roles(car, path, *pair)
    words = ["--roll", "-1 deg", "1 deg", "--places", "3", "--observe", "track", "axle_steer"]
    assert main(["kinematics", str(path), *words, "--figure", str(figure)]) == 0
    assert "deg" in capsys.readouterr().out
    assert "roll [deg]" in figure.read_text("utf-8")


def test_errors_name_the_cure(renamed, tmp_path, capsys):
    bars = tmp_path / "bars.json"
    mbd.save(mbd.zoo.four_bar(), bars)
    for words, text in (
        ((str(bars),), "save_with_roles"),
        ((str(renamed), "--roll", "-1 deg", "1 deg"), "is of an axle"),
        ((str(renamed), "--places", "1"), "at least 2"),
    ):
        assert main(["kinematics", *words]) == 1
        assert text in capsys.readouterr().err
    wrong = renamed.read_text("utf-8").replace('"tyre_radius"', '"tire_radius"')
    renamed.write_text(wrong, "utf-8")
    assert main(["kinematics", str(renamed)]) == 1
    assert "did you mean 'tyre_radius'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_report_on_a_corner(tmp_path, capsys):
    file, out = tmp_path / "corner.json", tmp_path / "out.html"
    suspension.save_with_roles(mbd.zoo.multi_link(), file, suspension.zoo_corner("multi_link"))
    assert main(["report", str(file), "--out", str(out), "--travel", "-10 mm", "10 mm"]) == 0
    assert "What the hardpoints change" in out.read_text()
    assert f"wrote {out}" in capsys.readouterr().out


def test_a_report_needs_roles(tmp_path, capsys):
    mbd.save(mbd.zoo.rssr(), tmp_path / "rssr.json")
    assert main(["report", str(tmp_path / "rssr.json")]) != 0
    assert "does not say what its parts are" in capsys.readouterr().err
