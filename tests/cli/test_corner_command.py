"""`jaxmbd corner`: from a table of hardpoints to a model with its roles."""

import json

import numpy as np
import pytest

from jaxmbd import suspension
from jaxmbd.cli import main


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def test_templates_tell_of_themselves(capsys):
    assert main(["corner"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in suspension.TEMPLATES)
    assert main(["corner", "twist_beam"]) == 0
    out = capsys.readouterr().out
    assert "beam_centre" in out and "spring_rate: [N/m]" in out


def test_a_table_becomes_a_corner_and_an_axle(tmp_path, capsys):
    table, model, car = (str(tmp_path / n) for n in ("points.csv", "corner.json", "axle.json"))
    kind = ["--set", "spring_by=pushrod"]
    assert main(["corner", "double_wishbone", *kind, "--example", table]) == 0
    numbers = [*kind, "spring_rate=40 N/mm", "masses/upright=25 kg", "tyre_radius=320 mm"]
    assert main(["corner", "double_wishbone", table, *numbers, "--out", model]) == 0
    capsys.readouterr()
    mech, (roles,) = suspension.load_with_roles(model)
    assert (float(mech.forces["spring"].stiffness), roles.tyre_radius) == (4e4, 0.32)
    assert float(mech.bodies["upright"].mass) == 25.0
    points = suspension.example_hardpoints("double_wishbone", spring_by="pushrod")
    for name, x in points.items():
        np.testing.assert_allclose(mech.points[name], x, rtol=0, atol=1e-12)
    words = [*kind, "anti_roll_bar=15 N m/deg", "--axle", "--out", car, "--json"]
    assert main(["corner", "double_wishbone", table, *words]) == 0
    assert json.loads(capsys.readouterr().out)["wheels"] == 2
    bar = suspension.load_with_roles(car)[0].forces["anti_roll_bar"]
    assert float(bar.stiffness) == pytest.approx(np.degrees(15.0))


def test_errors_name_the_cure(tmp_path, capsys):
    table, out = str(tmp_path / "points.csv"), str(tmp_path / "corner.json")
    assert main(["corner", "five_link", "--example", table]) == 0
    make = ["corner", "five_link", table, "--out", out]
    for words, text in (
        (["corner", "five_lnk"], "did you mean 'five_link'"),
        (["corner", "five_link", table], "--out corner.json"),
        (["corner", "five_link", "--example", table], "--overwrite"),
        (["corner", "macpherson", table, "--out", out], "'strut_top'"),
        ([*make, "--set", "spring_rate=3 N"], "is in N/m"),
        ([*make, "--set", "spring_rat=3"], "did you mean 'spring_rate'"),
        ([*make, "--set", "masses=3"], "masses/upright"),
        ([*make, "--set", "anti_roll_bar=3"], "add --axle"),
    ):
        assert main(words) == 1, words
        assert text in capsys.readouterr().err, words
