"""`jaxmbd reach`, `setup`, `optimum`, `soften`, `compliance` and `loads`: the numbers of Python."""

import csv
import json

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.cli import main

LOAD = 4000.0


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def corner():
    points = suspension.example_hardpoints("double_wishbone")
    return suspension.double_wishbone_corner(points, wheel_load=LOAD)


@pytest.fixture
def model(corner, tmp_path):
    suspension.save_with_roles(corner[0], tmp_path / "corner.json", corner[1])
    return str(tmp_path / "corner.json")


def table(path):
    head, *rows = csv.reader(path.read_text("utf-8").splitlines())
    return head, rows


@pytest.mark.slow
def test_reach_is_that_of_python(corner, model, tmp_path, capsys):
    out = tmp_path / "reach.csv"
    words = ["reach", model, "--of", "steer", "--held", "travel=10 mm", "--out", str(out)]
    assert main(words) == 0
    found = suspension.reach(*corner, of="steer", travel=0.01)
    assert str(found) in capsys.readouterr().out
    _, [row] = table(out)
    assert row[0] == "steer" and float(row[1]) == pytest.approx(1e3 * found.low, rel=1e-12)
    assert main(words) == 1
    assert (
        f"{out} exists; give another name, or replace with --overwrite" in capsys.readouterr().err
    )


def test_a_reach_of_what_does_not_exist_is_told(model, capsys):
    assert main(["reach", model, "--held", "trvel=10 mm"]) == 1
    assert "did you mean 'travel'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_setup_is_written_and_stands_as_wanted(corner, model, tmp_path):
    out, changes = tmp_path / "set.json", tmp_path / "set.csv"
    shim = "upright:upper_arm_ball:y"
    words = ["--target", "camber=-2.5 deg", "toe=0.1 deg", "--by", "tierod=1.5 mm", shim]
    assert main(["setup", model, *words, "--out", str(out), "--table", str(changes)]) == 0
    mech, (roles,) = suspension.load_with_roles(out)
    here = suspension.kinematics(mech, roles, travel=[0.0], observe=["camber", "toe"], gradients=())
    np.testing.assert_allclose(
        np.degrees([here["camber"][0], here["toe"][0]]), [-2.5, 0.1], atol=1e-9
    )
    rows = {row[1]: row for row in table(changes)[1]}
    assert float(rows["tierod"][6]) == pytest.approx(float(rows["tierod"][4]) / 1.5)
    assert list(rows) == ["tierod", shim, "camber", "toe"]


def test_setups_that_do_not_fit_are_told(model, capsys):
    for words, text in (
        (["--target", "toe", "--by", "tierod"], "write COLUMN=VALUE"),
        (["--target", "to=1 deg", "--by", "tierod"], "did you mean 'toe'"),
        (["--target", "toe=1 deg", "--by", "upright:ball"], "BODY:POINT:y"),
        (["--target", "toe=1 mm", "--by", "tierod"], "--target toe"),
        (["--target", "toe=0", "--by", "tierod", "--travel", "10"], "'10' has no unit"),
        (["--target", "toe=0.1", "--by", "tierod"], "'0.1' has no unit"),
    ):
        assert main(["setup", model, *words]) == 1, words
        assert text in capsys.readouterr().err, words


@pytest.mark.slow
def test_an_optimum_finds_the_hardpoint_that_made_the_curve(corner, model, tmp_path, capsys):
    """The wanted curve is that of another track rod, with an empty cell."""
    mech, roles = corner
    moved = mech.points["tierod_inboard"] + np.array([0.0, 0.004, -0.006])
    other = mech.replace(points={"tierod_inboard": moved})
    travel = [-0.05, -0.02, 0.01, 0.05]
    toe = suspension.kinematics(other, roles, travel=travel, observe=["toe"], gradients=())["toe"]
    wanted, out, curves = (tmp_path / n for n in ("wanted.csv", "better.json", "curves.csv"))
    rows = [f"{1e3 * x},{np.degrees(y)}" for x, y in zip(travel, toe, strict=True)] + ["60,"]
    wanted.write_text("\n".join(["travel [mm],toe [deg]", *rows]))
    vary = ["--vary", "tierod_inboard/y=10 mm", "points/tierod_inboard/z=10 mm"]
    words = ["optimum", model, str(wanted), *vary, "--tolerance", "toe=0.01 deg"]
    assert main([*words, "--out", str(out), "--table", str(curves), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "optimal" and found["rms"]["toe"][1] < 1e-6 < found["rms"]["toe"][0]
    better = suspension.load_with_roles(out)[0]
    np.testing.assert_allclose(better.points["tierod_inboard"], moved, atol=1e-7)
    head, lines = table(curves)
    assert head[0] == "travel [mm]" and head[3] == "toe after [deg]" and len(lines) == 5
    assert lines[4][1] == "nan" and float(lines[0][3]) == pytest.approx(
        np.degrees(toe[0]), abs=1e-6
    )


def test_wanted_curves_that_do_not_fit_are_told(model, tmp_path, capsys):
    wanted = tmp_path / "wanted.csv"
    words = ["optimum", model, str(wanted), "--vary", "tierod_inboard/y=10 mm"]
    for text, what in (
        ("travel [mm],toes [deg]\n0,1\n", "did you mean 'toe'"),
        ("travel [mm],toe [mm]\n0,1\n", "toe"),
        ("travel [mm],toe [deg]\n0,x\n", "'x' is no number"),
        ("roll [deg],toe [deg]\n0,1\n", "motion 'roll'"),
    ):
        wanted.write_text(text)
        assert main(words) == 1 and what in capsys.readouterr().err, text


@pytest.mark.slow
def test_both_sides_of_an_axle_are_designed_as_one(corner, tmp_path):
    car, pair = suspension.template_axle(*corner)
    model, wanted, out = (tmp_path / n for n in ("axle.json", "wanted.csv", "better.json"))
    suspension.save_with_roles(car, model, *pair)
    wanted.write_text("roll [deg],axle_steer [deg]\n-1,-0.1\n1,0.1\n")
    vary = ["--vary", "left_tierod_inboard/z=20 mm"]
    assert main(["optimum", str(model), str(wanted), *vary, "--out", str(out)]) == 0
    mech, pair = suspension.load_with_roles(out)
    ends = [np.asarray(mech.points[f"{side}_tierod_inboard"]) for side in ("left", "right")]
    np.testing.assert_allclose(ends[0], ends[1] * [1.0, -1.0, 1.0], atol=1e-15)
    table = suspension.axle_kinematics(
        mech, pair, roll=np.deg2rad([-1.0, 1.0]), observe=["axle_steer"]
    )
    np.testing.assert_allclose(np.degrees(table["axle_steer"]), [-0.1, 0.1], atol=1e-9)


@pytest.mark.slow
def test_loads_are_those_of_a_table_of_cases(corner, model, tmp_path, capsys):
    cases, out = tmp_path / "cases.csv", tmp_path / "loads.csv"
    assert main(["loads", model, "--example", str(cases)]) == 0
    words = ["loads", model, str(cases), "--observe", "tierod", "spring", "--whole"]
    assert main([*words, "--out", str(out)]) == 0
    bare = corner[0].replace(forces={"wheel_load": None})
    found = suspension.load_cases(bare, corner[1], cases, observe=["tierod", "spring"])
    assert [float(row[1]) for row in table(out)[1]] == found["tierod"].tolist()
    capsys.readouterr()
    assert main(["loads", model]) == 1
    assert "--example cases.csv" in capsys.readouterr().err


@pytest.mark.slow
def test_bushings_and_their_elastic_table(corner, model, tmp_path, capsys):
    soft, out = tmp_path / "soft.json", tmp_path / "elastic.csv"
    rates = ["lower_arm=10 kN/mm, 3 kN m/deg", "upper_arm_ball=20 kN/mm"]
    assert main(["soften", model, *rates, "--wheel-load", "4 kN", "--out", str(soft)]) == 0
    mech, (roles,) = suspension.load_with_roles(soft)
    own = mbd.soften(corner[0], "lower_arm", (3e3 * 180.0 / np.pi, 1e7))
    own = mbd.soften(own, "upper_arm_ball", (0.0, 2e7))
    own = suspension.preloaded(own, corner[1], LOAD, settle=True)
    assert float(mech.forces["spring"].preload) == pytest.approx(
        float(own.forces["spring"].preload), rel=1e-9
    )
    assert main(["compliance", str(soft), "--out", str(out)]) == 0
    expected = suspension.compliance(own, corner[1], travel=0.0).coefficients()
    head, rows = table(out)
    column = head.index("lateral/single per kN")
    steer = next(row for row in rows if row[1] == "steer")
    size = np.degrees(1e3 * float(expected["lateral/single/steer"][0]))
    assert float(steer[column]) == pytest.approx(size, rel=1e-6)


def test_bushings_of_six_rates_take_a_joints_place(corner, model, tmp_path):
    out, six = tmp_path / "soft.json", "1 kN/mm, 8 kN/mm, 7 kN/mm, 1 N m/deg, 2 N m/deg, 3 N m/deg"
    ends = [f"lower_arm:lower_arm_{end}={six}" for end in ("front", "rear")]
    assert main(["soften", model, *ends, f"upper_arm_ball={six}", "--out", str(out)]) == 0
    mech, (roles,) = suspension.load_with_roles(out)
    degree = 180.0 / np.pi
    stiffness = [degree, 2.0 * degree, 3.0 * degree, 1e6, 8e6, 7e6]
    for name, at in (
        ("lower_arm_lower_arm_front", "lower_arm_front"),
        ("lower_arm_lower_arm_rear", "lower_arm_rear"),
        ("upper_arm_ball", "upper_arm_ball"),
    ):
        bushing = mech.forces[name]
        np.testing.assert_allclose(bushing.stiffness, stiffness, rtol=1e-12)
        assert bushing.at.name == at
        joint = corner[0].joints["lower_arm" if "arm_lower" in name else name]
        assert (bushing.a, bushing.b) == (joint.a, joint.b)
    assert "lower_arm" not in (*mech.joints, *mech.forces) and not roles.problems(mech)
    # Arm and upright are free but for a ball between them and the track rod.
    assert int(mbd.mobility(mech).dof) == 1 + 1 + 6 + 6 - 3 - 1


def test_rates_are_checked(model, tmp_path, capsys):
    for rates, text in (
        ("lower_am=1 kN/mm", "did you mean 'lower_arm'"),
        ("lower_arm=1 kN/mm", "add a rate in N m/deg"),
        ("lower_arm=1 kN", "give one rate in N/m"),
        ("lower_arm=1e6", "give one rate in N/m"),
        ("lower_arm:lower_am_front=1 kN/mm", "did you mean 'lower_arm_front'"),
        ("lower_arm:lower_arm_front=1 kN/mm", "a bushing has six rates"),
        ("tierod=" + "1 N/mm, " * 3 + "1 N m/deg, 1 N m/deg, 1 N m/deg", "it has two ends"),
        ("lower_arm", "write JOINT=RATES"),
    ):
        assert main(["soften", model, rates, "--out", str(tmp_path / "soft.json")]) == 1, rates
        assert text in capsys.readouterr().err, rates
