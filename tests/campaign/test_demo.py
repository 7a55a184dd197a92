"""The demonstration's study: agrees with single calls and a hand calculation, flags what fails."""

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.campaign import corner_study, spread_table, status_line
from jaxmbd.campaign.suspension_corner import corner_experiment
from jaxmbd.sampling import Given

TRAVEL, DURATION = (-0.05, 0.0, 0.05), 0.02
ROD, FAR, LONG = 0, 1, 2
DELTA = 1e-3

pytestmark = pytest.mark.filterwarnings("error:lanes cannot compile")


def given(count=6):
    """Offsets of six cars as built: a rod far too short, a ball far away, a rod 1 mm too long."""
    rng = np.random.default_rng(3)
    study = corner_study(1)
    table = {
        name: x.nominal + 3e-4 * rng.standard_normal((count, *x.nominal.shape))
        for name, x in study.inputs.items()
        if name.startswith(("offsets/", "lengths/", "tilts/"))
    }
    table |= {n: np.full(count, study.nominal[n]) for n in study.inputs if n not in table}
    table["lengths/tierod"][ROD] = -0.5
    table["offsets/lateral_ball@upright"][FAR, 1] = 1e30
    for name in table:
        if not name.startswith("forces/"):
            table[name][LONG] = 0.0
    table["lengths/tierod"][LONG] = DELTA
    return table


@pytest.fixture(scope="module")
def study():
    experiment = corner_experiment(TRAVEL, DURATION)
    return corner_study(None, design=Given(given()), experiment=experiment)


@pytest.fixture(scope="module")
def results(study, tmp_path_factory):
    return study.run(tmp_path_factory.mktemp("demo") / "corner.zarr", progress=False).load()


def test_failed_samples_are_flagged_and_nan(results):
    ok = np.asarray(results.status) == mbd.Status.OK
    assert list(ok) == [False, False, True, True, True, True]
    assert results.status[ROD] == mbd.Status.NOT_ASSEMBLED
    for name, x in results.data_vars.items():
        if x.attrs["role"] == "output":
            finite = np.isfinite(np.asarray(x)).reshape(6, -1)
            assert np.array_equal(finite.all(axis=1), ok), name
            assert np.array_equal(finite.any(axis=1), ok), name
    names = results.open_joint.attrs["flag_meanings"].split()
    assert "tierod" in names[int(results.open_joint[ROD])] and results.open_distance[ROD] > 0.1


def test_a_longer_track_rod_turns_the_wheel_as_a_hand_calculation_says(results):
    """Six equations for the upright's small motion [θ; u] about the wheel centre, from the drawing.

    The upper arm's ball moves about the arm's hinge, along one direction only; the lateral and the
    trailing link and the track rod keep their lengths, the last one but for δ; the wheel keeps its
    height. A point at r moves by ``u + θ × r``.
    """
    p = {name: np.asarray(x) for name, x in mbd.zoo.multi_link().points.items()}

    def along(point, direction):
        return np.concatenate([np.cross(p[point] - p["wheel_centre"], direction), direction])

    def link(inboard, outboard):
        line = p[outboard] - p[inboard]
        return along(outboard, line / np.linalg.norm(line))

    hinge = p["upper_arm_front"] - p["upper_arm_rear"]
    moves = np.cross(hinge, p["upper_arm_ball"] - p["upper_arm_rear"])
    fixed = np.linalg.svd(moves[None])[2][1:]
    rows = [
        *(along("upper_arm_ball", d) for d in fixed),
        link("lateral_inboard", "lateral_ball"),
        link("trailing_inboard", "trailing_ball"),
        link("tierod_inboard", "tierod_outboard"),
        along("wheel_centre", np.array([0.0, 0.0, 1.0])),
    ]
    motion = np.linalg.solve(np.array(rows), [0.0, 0.0, 0.0, 0.0, DELTA, 0.0])
    toe_in = -motion[2]
    assert 0.2 < np.degrees(toe_in) < 1.0
    assert float(results.toe_rest[LONG]) == pytest.approx(toe_in, rel=0.02)


def test_agrees_with_single_calls(study, results):
    i = 5
    mech = study.model.mechanism(study.nominal | {n: x[i] for n, x in study.draw().items()})
    drawn = mech.point("wheel_centre")
    height = mbd.PointCoordinate("upright", "wheel_centre", "z")
    for k, travel in enumerate(TRAVEL):
        q = mbd.assemble(mech, known={height: drawn[2] + travel}).q
        spindle = mbd.poses(mech, q)["upright"].rotation @ mech.joint("rev_spindle").unit_axis()
        centre = mbd.point_position(mech, q, "upright", "wheel_centre")
        expected = {
            "toe": mbd.zoo.toe_angle(spindle),
            "camber": mbd.zoo.camber_angle(spindle),
            "track_change": centre[1] - drawn[1],
        }
        for name, x in expected.items():
            assert float(results[name][i, k]) == pytest.approx(float(x), abs=1e-11), name
    nv = mbd.topology(mech).nv
    run = mbd.simulate(mech, mbd.assemble(mech).q, np.zeros(nv), t1=DURATION, dt=1e-3, save_every=2)
    centres = jax.vmap(lambda q: mbd.point_position(mech, q, "upright", "wheel_centre"))(run.q)
    np.testing.assert_allclose(results.t, run.t, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        results.wheel_travel[i], centres[:, 2] - drawn[2], rtol=0, atol=1e-10
    )
    assert results.travel_end[i] == results.wheel_travel[i, -1]


def test_design_scatter_keeps_toe_at_rest_and_build_scatter_does_not(results, tmp_path):
    shared = corner_study(
        6, scatter="design", sigma=1e-3, experiment=corner_experiment(TRAVEL, DURATION)
    )
    fitted = shared.run(tmp_path / "design.zarr", progress=False)
    assert float(np.abs(fitted.toe_rest).max()) < 1e-12
    assert float(np.nanstd(results.toe_rest)) > 1e-3
    assert float(fitted.toe_bump.std()) > 1e-5


def test_the_table_counts_only_what_succeeded(results):
    table, line = spread_table(results), status_line(results)
    assert "nan" not in table
    assert any(row.startswith("toe_rest ") for row in table.splitlines())
    assert line.startswith("4 of 6 samples ok") and "2 not assembled (sample 0, 1)" in line
    assert "stays open" in line


def test_figure(results, tmp_path):
    pytest.importorskip("matplotlib")
    from jaxmbd.viz import corner_figure

    corner_figure(results, tmp_path / "corner.png")
    assert (tmp_path / "corner.png").stat().st_size > 20_000
