"""The demonstration: agrees with single calls, flags what fails, writes what it says."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.campaign import (
    CornerStudy,
    Normal,
    Uniform,
    corner,
    draw,
    evaluate,
    load_results,
    run_corner,
    spread,
    spread_table,
    status_line,
)
from jaxmbd.campaign.suspension_corner import hardpoint_names, nominal_inputs

STUDY = CornerStudy(travel=(-0.05, 0.0, 0.05), duration=0.02)
UNREACHABLE, BROKEN = 2, 4

pytestmark = pytest.mark.filterwarnings("error:lanes cannot compile")


@pytest.fixture(scope="module")
def inputs():
    scatter = {"hardpoints": Normal(1e-3), "spring_rate": Uniform(0.05), "damping": Uniform(0.1)}
    inputs = draw(nominal_inputs(), scatter, 6, seed=3)
    # Both ends of the track rod drawn 60 mm apart: the wheel cannot move 50 mm up and down.
    names = hardpoint_names()
    outboard = inputs["hardpoints"][UNREACHABLE, names.index("tierod_outboard")]
    inputs["hardpoints"][UNREACHABLE, names.index("tierod_inboard")] = outboard - [0, 0.015, 0]
    inputs["hardpoints"][BROKEN, names.index("lateral_ball"), 1] = np.nan
    return inputs


@pytest.fixture(scope="module")
def results(inputs):
    return run_corner(study=STUDY, inputs=inputs, chunks=2)


def test_failed_samples_are_flagged_and_nan(results):
    status = results["status"]
    assert mbd.Status(int(status[UNREACHABLE])) == mbd.Status.NOT_ASSEMBLED
    assert status[BROKEN] != mbd.Status.OK
    assert results.ok.sum() == 4
    outputs = [n for n, v in results.variables.items() if v.role == "output" and n != "status"]
    for name in outputs:
        finite = np.isfinite(results[name]).reshape(6, -1)
        assert np.array_equal(finite.all(axis=1), results.ok), name
        assert np.array_equal(finite.any(axis=1), results.ok), name


def test_failed_samples_leave_their_neighbours_alone(inputs, results):
    rows = np.where(results.ok, np.arange(6), 0)
    alone = run_corner(study=STUDY, inputs={n: x[rows] for n, x in inputs.items()}, chunks=2)
    assert alone.ok.all()
    for name in ("toe", "camber_bump", "wheel_travel", "speed_peak"):
        together = results[name][results.ok]
        np.testing.assert_allclose(alone[name][results.ok], together, rtol=1e-9, atol=1e-14)


def test_agrees_with_single_calls(inputs, results):
    i = 5
    mech = corner({name: x[i] for name, x in inputs.items()})
    drawn = mech.point("wheel_centre")
    height = mbd.PointCoordinate("upright", "wheel_centre", "z")
    for k, travel in enumerate(STUDY.travel):
        q = mbd.assemble(mech, known={height: drawn[2] + travel}).q
        spindle = mbd.poses(mech, q)["upright"].rotation @ np.array([0.0, 1.0, 0.0])
        centre = mbd.point_position(mech, q, "upright", "wheel_centre")
        expected = {
            "toe": mbd.zoo.toe_angle(spindle),
            "camber": mbd.zoo.camber_angle(spindle),
            "track_change": centre[1] - drawn[1],
        }
        for name, x in expected.items():
            assert results[name][i, k] == pytest.approx(float(x), abs=1e-11), name
    run = mbd.simulate(
        mech, mbd.assemble(mech).q, np.zeros(9), t1=STUDY.duration, dt=STUDY.dt, save_every=2
    )
    centres = jax.vmap(lambda q: mbd.point_position(mech, q, "upright", "wheel_centre"))(run.q)
    np.testing.assert_allclose(results["t"], run.t, atol=1e-12)
    np.testing.assert_allclose(results["wheel_travel"][i], centres[:, 2] - drawn[2], atol=1e-10)
    assert results["travel_end"][i] == results["wheel_travel"][i, -1]
    assert results["toe_range"][i] == pytest.approx(np.ptp(results["toe"][i]))


def test_the_published_corner_is_the_nominal_one(results):
    assert results.nominal["toe"][1] == pytest.approx(0.0, abs=1e-12)
    assert np.degrees(results.nominal["camber_bump"]) < np.degrees(results.nominal["camber"][1])
    assert results.nominal["status"] == mbd.Status.OK


def test_results_file_describes_itself(results, tmp_path):
    path = results.save(tmp_path / "deep" / "corner.npz")
    again = load_results(path)
    assert again.title == results.title and again.settings["dt"] == STUDY.dt
    assert again.variables.keys() == results.variables.keys()
    for name, variable in results.variables.items():
        assert again.variables[name][1:] == variable[1:]
        np.testing.assert_array_equal(again[name], variable.values)
        assert len(variable.dims) == variable.values.ndim
        sizes = [6 if d == "sample" else len(results[d]) for d in variable.dims]
        assert list(variable.values.shape) == sizes, name
    np.testing.assert_array_equal(again.nominal["toe"], results.nominal["toe"])
    assert [p.name for p in path.parent.iterdir()] == ["corner.npz"]
    other = tmp_path / "other.npz"
    np.savez(other, x=1)
    with pytest.raises(ValueError, match="not a results file"):
        load_results(other)


def test_table_counts_only_what_succeeded(results):
    table, line = spread_table(results), status_line(results)
    assert "nan" not in table
    assert "4 of 6 samples ok" in line
    assert f"sample {UNREACHABLE}" in line and "not assembled" in line
    s = spread(results["toe_range"], results.ok, float(results.nominal["toe_range"]))
    good = results["toe_range"][results.ok]
    assert (s.mean, s.low, s.high) == pytest.approx((good.mean(), good.min(), good.max()))
    assert results["toe_range"][s.sample] == s.worst


def test_nothing_succeeded():
    s = spread(np.full(3, np.nan), np.zeros(3, bool), 1.0)
    assert s.sample == -1 and np.isnan(s.mean)


def test_figure(results, tmp_path):
    pytest.importorskip("matplotlib")
    from jaxmbd.viz import corner_figure

    corner_figure(results, tmp_path / "corner.png")
    assert (tmp_path / "corner.png").stat().st_size > 20_000


def test_draw_is_reproducible_and_as_asked():
    nominal = {"x": np.array([1.0, -2.0]), "y": 3.0}
    scatter = {"x": Normal(0.1), "y": Uniform(0.05)}
    one, two, other = (draw(nominal, scatter, 4000, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one["x"], two["x"])
    assert not np.array_equal(one["x"], other["x"])
    np.testing.assert_allclose(one["x"].std(axis=0), 0.1, rtol=0.1)
    np.testing.assert_allclose(one["x"].mean(axis=0), nominal["x"], atol=0.01)
    assert 2.85 <= one["y"].min() < 2.86 and 3.14 < one["y"].max() <= 3.15
    with pytest.raises(ValueError, match="no_such"):
        draw(nominal, {"no_such": Normal(1.0)}, 3, seed=0)


@pytest.mark.parametrize(("count", "chunks"), [(1, 8), (7, 3), (8, 8), (10, 1)])
def test_chunks_cover_every_sample_once(count, chunks):
    x = np.arange(float(count))
    found = evaluate(lambda s: {"y": 2.0 * s["x"]}, {"x": x}, chunks=chunks)
    np.testing.assert_array_equal(found["y"], 2.0 * x)


def test_missing_extra_is_named(monkeypatch):
    from jaxmbd.campaign import progress_bar

    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxmbd\[campaign\]'"):
        progress_bar("x")


def test_commands(tmp_path, capsys):
    from jaxmbd.cli import main
    from jaxmbd.io import save

    path = tmp_path / "rssr.json"
    save(mbd.zoo.rssr(), path)
    run = [sys.executable, "-m", "jaxmbd", "info", path]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "crank" in done.stdout and "idle: the spin of coupler" in done.stdout
    assert main(["info", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("jaxmbd ")
