"""What the explorer's page shows, without the page: curves, gradients, history, exports."""

import csv

import numpy as np
import pytest
from repository import ROOT

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.design import Between, Unknowns, Within
from jaxmbd.observe import Configuration, Coordinate, Motion, Position, Reaction, Sweep
from jaxmbd.suspension import kinematics
from jaxmbd.viz import Exploration
from jaxmbd.viz.explorer.experiments import held_text, undriven, usual_experiment
from jaxmbd.viz.explorer.exploration import ranges
from jaxmbd.viz.explorer.live_curves import GOALS, LiveCurves, gradient

INBOARD = "points/tierod_inboard/z"


@pytest.fixture(scope="module")
def live():
    return Exploration.of(
        mbd.zoo.multi_link(), vary=["points/tierod_*", "points/lateral_ball"]
    ).live


@pytest.fixture
def bump(live):
    return Exploration(live)


def test_curves_are_those_of_the_kinematics_table(bump):
    bump.set(INBOARD, -0.110)
    moved = mbd.set_variables(mbd.zoo.multi_link(), {INBOARD: -0.110})
    table = kinematics(moved, travel=bump.live.x, observe=list(bump.live.about), gradients=())
    for name, curve in zip(bump.live.about, bump.response.curves, strict=True):
        np.testing.assert_allclose(curve, table[name], rtol=1e-12, atol=1e-12)
    assert bump.response.trouble == "" and bump.response.reached.all()


def test_slopes_agree_with_differences(bump):
    bump.x += 0.1
    h = 1e-4
    for k in range(0, len(bump.x), 4):
        step = h * np.eye(len(bump.x))[k]
        up, down = (bump.live(bump.x + s).curves for s in (step, -step))
        np.testing.assert_allclose(
            bump.slopes[..., k], (up - down) / (2.0 * h), rtol=2e-6, atol=1e-8
        )


@pytest.mark.parametrize("goal", GOALS)
def test_gradients_of_goals_agree_with_differences(goal):
    rng = np.random.default_rng(1)
    x, y, other = np.linspace(-1.0, 2.0, 7), rng.normal(size=7), rng.normal(size=7)
    y[5] = np.nan  # does not close there
    slopes = rng.normal(size=(7, 3))
    _, found = gradient(GOALS[goal], x, y, slopes, other)
    for k in range(3):
        up, down = (
            gradient(GOALS[goal], x, y + h * slopes[:, k], slopes, other)[0] for h in (1e-6, -1e-6)
        )
        assert found[k] == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-9)


def test_a_flat_curve_cannot_become_flatter():
    value, slope = gradient(GOALS["flatter"], np.arange(3.0), np.ones(3), np.ones((3, 2)))
    assert value == 0.0 and not slope.any()


def test_arrows_point_where_the_curve_improves(bump):
    """A millimetre along all arrows takes off what their lengths promise."""
    before, _ = bump.improvement()
    arrows = bump.arrows()
    assert set(arrows) == {"tierod_inboard", "tierod_outboard", "lateral_ball"}
    square = sum(float(way @ way) for way in arrows.values())
    step = 1e-5 / np.sqrt(square)
    values = {
        f"points/{name}/{axis}": bump.mechanism().points[name][i] + step * way[i]
        for name, way in arrows.items()
        for i, axis in enumerate("xyz")
    }
    for path, value in values.items():
        bump.set(path, value)
    after, _ = bump.improvement()
    assert before - after == pytest.approx(step * square, rel=1e-3)


def test_following_the_arrows_flattens_bump_steer(bump):
    start = bump.improvement()[0]
    for _ in range(8):
        before = bump.improvement()[0]
        if not bump.improve([INBOARD, "points/tierod_outboard/z"]):
            break
        assert bump.improvement()[0] < before
    assert bump.improvement()[0] < 0.2 * start
    assert {x.path for x in bump.changes()} <= {INBOARD, "points/tierod_outboard/z"}


def test_improving_stops_at_limits(bump):
    bump.choose("toe", "rising more")
    for _ in range(60):
        if not bump.improve([INBOARD], step=1.0):
            break
    assert abs(bump.x[bump.index(INBOARD)]) == pytest.approx(1.0)
    assert not bump.improve([INBOARD])


def test_history(bump):
    for z in (-0.115, -0.114):
        bump.set(INBOARD, z)
    bump.set(INBOARD, -0.113, remember=False)  # a slider that is being dragged
    values = []
    while bump.undo():
        values.append(bump.numbers[bump.index(INBOARD)])
    np.testing.assert_allclose(values, [-0.115, -0.116])
    assert bump.redo() and bump.redo() and not bump.redo()
    assert bump.numbers[bump.index(INBOARD)] == pytest.approx(-0.113)
    bump.reset()
    assert bump.changes() == [] and bump.undo()
    bump.set(INBOARD, -0.116)
    assert not bump.redo()  # another way was taken


def test_numbers_stay_within_their_limits(bump):
    bump.set(INBOARD, 1.0)
    assert bump.numbers[bump.index(INBOARD)] == pytest.approx(-0.116 + 0.03)


def test_a_kept_variant_is_a_goal(bump):
    bump.set(INBOARD, -0.110)
    kept = bump.keep()
    bump.choose(goal="like the kept variant")
    assert bump.improvement()[0] == 0.0
    bump.reset()
    assert bump.improvement()[0] > 1e-4
    np.testing.assert_array_equal(bump.variants[0].curves, kept.curves)


def test_kept_variants_are_restored(bump):
    bump.set(INBOARD, -0.110)
    kept = bump.keep("stiff")
    bump.reset()
    bump.restore("stiff")
    np.testing.assert_array_equal(bump.x, kept.x)
    np.testing.assert_array_equal(bump.response.curves, kept.curves)
    assert bump.undo() and bump.changes() == []
    with pytest.raises(ValueError, match="no 'stif' was kept; did you mean 'stiff'"):
        bump.restore("stif")


def test_exported_designs_are_loaded_again(bump, tmp_path):
    bump.set(INBOARD, -0.1125)
    model, table = bump.export(tmp_path / "flat.json")
    assert mbd.load(model).points["tierod_inboard"][2] == pytest.approx(-0.1125)
    with open(table, newline="", encoding="utf-8") as file:
        [row] = csv.DictReader(file)
    assert row["number"] == INBOARD and row["unit"] == "m"
    assert float(row["after"]) - float(row["before"]) == pytest.approx(0.0035)
    assert float(row["change"]) == pytest.approx(0.0035)
    assert "3.5" in bump.table()


def test_misspelt_names_are_met_by_those_that_were_meant(bump):
    with pytest.raises(ValueError, match="did you mean 'points/tierod_inboard/z'"):
        bump.set("points/tierod_inbord/z", 0.0)
    with pytest.raises(ValueError, match="did you mean 'camber'"):
        bump.choose("cambre")
    with pytest.raises(ValueError, match="no variable fits"):
        Exploration.of(mbd.zoo.multi_link(), vary="points/nothing*")


def test_what_does_not_close_is_told_and_leaves_a_gap():
    """A crank that is longer than the rest can follow: the loops open on the way."""
    mech = mbd.zoo.rssr()
    sweep = Sweep({"crank": np.linspace(-1.0, 1.0, 21)}, {"rocker": Coordinate("rocker")})
    fits = Exploration.of(mech, sweep, {"points/*": Between(-9.0, 9.0, scale=1.0)})
    assert fits.response.trouble == ""
    name = next(n for n in fits.names if n.startswith("points/") and n.endswith("/x"))
    start, k = fits.numbers.copy(), 0
    while fits.response.reached.all() and k < 12:
        fits.set(name, start[fits.index(name)] + 0.5 * (k := k + 1))
    assert 2 < fits.response.reached.sum() < 21
    assert "stays open by" in fits.response.trouble and "crank" in fits.response.trouble
    open_ = ~fits.response.reached
    assert np.isnan(fits.response.curves[0, open_]).all()
    assert np.isfinite(fits.improvement()[0]) and np.isfinite(fits.improvement()[1]).all()


@pytest.mark.slow
def test_a_driven_corner_keeps_its_drives(tmp_path):
    """What is exported without changes is what was given; also where a sweep was given."""
    given = mbd.zoo.macpherson_steering()
    design = Exploration.of(given, vary="points/*tie_inner")
    model, _ = design.export(tmp_path / "given.json")
    read = mbd.load(model)
    assert read.structure == given.structure and read.structure.drives
    for name, x in given.points.items():
        np.testing.assert_allclose(read.points[name], x, rtol=0, atol=1e-15)
    again = Exploration.of(given, design.live.experiment, vary="points/*tie_inner")
    assert again.mechanism().structure.drives == given.structure.drives


@pytest.mark.parametrize("name", ["bar_1.5mm", "bar_1.5mm.json"])
def test_names_of_exported_designs_may_have_dots(bump, tmp_path, name):
    files = bump.export(tmp_path / name)
    assert [x.name for x in files] == ["bar_1.5mm.json", "bar_1.5mm_changes.csv"]


def test_no_step_loses_places_that_were_reached():
    """Where the rocker would be lowest the loop opens: what is left of the curve is no better."""
    sweep = Sweep({"crank": np.linspace(-1.0, 1.0, 21)}, {"rocker": Coordinate("rocker")})
    design = Exploration.of(mbd.zoo.rssr(), sweep, {"points/*": Between(-9.0, 9.0, scale=1.0)})
    steps = 0
    for goal in ("lower", "higher", "flatter"):
        design.reset()
        design.choose("rocker", goal)
        for _ in range(3):
            steps += design.improve(step=0.3)
            assert design.response.reached.all()
    assert steps


def test_a_design_that_is_no_mechanism_cannot_be_exported(tmp_path):
    mech = mbd.zoo.four_bar()
    exploration = Exploration.of(
        mech,
        Sweep({"A": [0.0, 0.1]}, {"D": Coordinate("D")}),
        {"bodies/*/mass": Between(-5.0, 5.0)},
    )
    path = exploration.names[0]
    exploration.set(path, -1.0)
    with pytest.raises(ValueError, match="mass"):
        exploration.export(tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


def test_motions_have_curves_over_time():
    mech = mbd.zoo.simple_pendulum()
    motion = Motion(0.2, 1e-2, {"angle": Coordinate("hinge")})
    swing = Exploration.of(mech, motion, "bodies/bob/mass")
    assert swing.live.axis == "t" and swing.live.unit == "s"
    run = motion.trajectory(mech)
    np.testing.assert_allclose(swing.response.curves[0], run.curves["angle"], rtol=1e-12)


def test_vectors_have_one_curve_for_each_component():
    mech = mbd.zoo.rssr()
    point = next(iter(mech.structure.points))
    body = mech.structure.bodies[0]
    sweep = Sweep({"crank": [0.0, 0.1, 0.2]}, {"end": Position(body, point)})
    live = LiveCurves(Unknowns.of(mech, {"points/*": Within(0.01)}), sweep)
    assert list(live.about) == ["end/x", "end/y", "end/z"]
    found = live(np.zeros(len(live.unknowns))).curves
    np.testing.assert_allclose(found, sweep.trajectory(mech).curves["end"].T, rtol=1e-12)


@pytest.mark.slow
def test_components_that_are_zero_by_the_plane_have_no_curves():
    mech = mbd.zoo.four_bar()  # in the plane xz, gravity in it
    observed = {"end": Position("coupler", "B"), "moment": Reaction("A", "moment")}
    observed |= {"angle": Coordinate("B"), "still": Position("crank", "A")}
    sweep = Sweep({"A": [0.0, 0.1, 0.2]}, observed)
    live = LiveCurves(Unknowns.of(mech, {"points/B": Within(0.01)}), sweep)
    assert list(live.about) == ["end/x", "end/z", "moment/y", "angle", "still/x", "still/z"]
    found, course = live(np.zeros(len(live.unknowns))).curves, sweep.trajectory(mech).curves
    np.testing.assert_allclose(found[:2], course["end"][:, [0, 2]].T, rtol=1e-12)
    np.testing.assert_allclose(found[2], course["moment"][:, 1], atol=1e-12)  # of a free pin
    assert live.slopes(np.zeros(len(live.unknowns))).shape == (6, 3, len(live.unknowns))


def test_a_pose_has_no_curves():
    with pytest.raises(ValueError, match="Sweep or a Motion"):
        Exploration.of(
            mbd.zoo.rssr(), Configuration({"crank": 0.1}, {"rocker": Coordinate("rocker")})
        )


def test_usual_sweeps():
    corner = usual_experiment(mbd.zoo.double_wishbone_kinematic())
    assert corner.axis == "travel" and "camber" in corner.observe
    crank = usual_experiment(mbd.zoo.four_bar())
    values = np.asarray(next(iter(crank.over.values())))
    assert values[0] == pytest.approx(-np.pi) and values[-1] == pytest.approx(np.pi)


def test_what_nothing_holds_is_told():
    double = mbd.zoo.double_pendulum()
    text = held_text(double, Sweep({"hinge_1": [0.0, 0.1]}, {"second": Coordinate("hinge_2")}))
    assert text == "moves 'hinge_1'; holds nothing else; nothing holds 'hinge_2'"


def test_a_range_that_does_not_close_is_left_out():
    rocker = mbd.zoo.double_parallel_crank()
    sweep = usual_experiment(rocker)
    assert np.isfinite(sweep.trajectory(rocker).q).all()


def test_a_driven_rack_is_freed():
    steered = mbd.zoo.macpherson_steering()
    assert not undriven(steered).structure.drives
    driven = mbd.zoo.rssr()
    assert undriven(driven) is driven


def test_ranges():
    mech = mbd.zoo.multi_link()
    every = ranges(mech)
    assert every["points/wheel_centre"].width == 0.03
    assert every["forces/spring/stiffness"].relative
    assert all(x.width > 0.0 for x in every.values())
    assert ranges(mech, "forces/*/stiffness")["forces/spring/stiffness"].relative
    given = {"points/*": Within("1 mm")}
    assert ranges(mech, given) == given


def test_parametrisations_are_explored_by_their_arguments():
    made = mbd.Parametrization.of(mbd.zoo.four_bar, coupler=(0.8, "m"), rocker=(0.6, "m"))
    sweep = Sweep({"A": [0.0, 0.1, 0.2]}, {"D": Coordinate("D")})
    design = Exploration.of(made, sweep)
    assert design.names == ("coupler", "rocker")
    design.set("coupler", 0.81)
    same, found = mbd.zoo.four_bar(coupler=0.81, rocker=0.6), design.mechanism()
    np.testing.assert_allclose(
        found.points["C_coupler"], same.points["C_coupler"], rtol=0, atol=1e-15
    )
    assert design.improvement()[1].shape == (2,) and design.arrows() == {}


@pytest.mark.slow
def test_imported_joints_stay_within_their_stops():
    pytest.importorskip("mujoco")
    gripper = mbd.io.load_mjcf(ROOT / "tests/data/models/robotiq_2f85.xml")
    sweep = usual_experiment(gripper.mechanism, stops=gripper.limits)
    values = np.asarray(next(iter(sweep.over.values())))
    assert values[[0, -1]] == pytest.approx(gripper.limits[sweep.axis])
    assert np.isfinite(sweep.trajectory(gripper.mechanism).q).all()


def _pinned_axle():
    """A rigid axle that turns about a pin on a slider, and the roles of its wheels."""
    bodies = {
        "slider": mbd.Body(0.0, com=(0, 0, 0.3)),
        "axle": mbd.Body(80.0, com=(0, 0, 0.3), inertia=np.diag([12.0, 1.0, 12.0])),
    }
    joints = {
        "slide": mbd.Prismatic("ground", "slider", at="pin", axis=(0, 0, 1)),
        "pin": mbd.Revolute("slider", "axle", at="pin", axis=(1, 0, 0)),
    }
    points = {"left": (0.0, 0.7, 0.3), "right": (0.0, -0.7, 0.3), "pin": (0.0, 0.0, 0.21)}
    roles = [
        suspension.Corner("axle", side, 0.3, side=side, spindle=(0.0, sign, 0.0))
        for side, sign in (("left", 1.0), ("right", -1.0))
    ]
    return mbd.Mechanism(bodies, joints, points=points), roles


def test_an_axle_moves_on_its_rig():
    """Parallel travel; the roll is held where its slider says, in closed form of a rigid axle."""
    car, roles = _pinned_axle()
    sweep = usual_experiment(car, observe=["left_camber", "roll_centre_lateral"], corner=roles)
    design = Exploration.of(car, sweep, vary="points/pin")
    assert (design.live.axis, design.live.unit) == ("heave", "m")
    assert [x.name for x in design.live.held] == ["roll", "left", "right"]
    kept = design.keep()
    design.hold("roll", 0.05)
    camber, lateral = design.response.curves
    np.testing.assert_allclose(camber, 0.05, rtol=0, atol=1e-12)
    at = int(np.argmin(np.abs(design.live.x)))
    assert abs(lateral[at] - 0.21 * np.tan(0.05) / np.cos(0.05)) < 1e-12
    np.testing.assert_allclose(design.variants[0].curves, design.given.curves, rtol=0, atol=1e-12)
    assert not np.allclose(kept.curves, design.variants[0].curves)
    assert set(design.pictured().joints) > {*suspension.RIG.values(), "pin"}
    design.hold("roll", 1.0)
    assert design.places[0] == design.live.held[0].far
    with pytest.raises(ValueError, match="is not held"):
        design.hold("heave", 0.0)


@pytest.mark.slow
def test_what_of_a_suspension_is_held():
    """The rack of a corner and of an axle, against their tables."""
    corner, roles = mbd.zoo.double_wishbone_kinematic(), "double_wishbone_kinematic"
    roles = suspension.zoo_corner(roles)
    car = suspension.axle(corner, shared=["rack"])
    pair = suspension.axle_corners(car, roles)
    one = Exploration.of(corner, usual_experiment(corner, observe=["toe"], corner=roles),
                         vary="points/trackrod_*")  # fmt: skip
    assert [x.name for x in one.live.held] == ["steer"]
    one.hold("steer", 0.02)
    table = kinematics(corner, roles, travel=one.live.x, steer=0.02, observe=["toe"], gradients=())
    np.testing.assert_allclose(one.response.curves[0], table["toe"], rtol=0, atol=1e-12)
    both = Exploration.of(car, usual_experiment(car, "roll", observe=["track"], corner=pair),
                          vary="points/left_trackrod_*")  # fmt: skip
    for name, value in (("steer", 0.01), ("heave", 0.02)):
        both.hold(name, value)
    found = suspension.axle_kinematics(
        car, pair, roll=both.live.x, steer=0.01, heave=0.02, observe=["track"]
    )
    np.testing.assert_allclose(both.response.curves[0], found["track"], rtol=0, atol=1e-12)
    h = 1e-4
    slope = both.slopes[0][..., 0]
    x = both.x.copy()
    for sign in (1, -1):
        both.move(x + sign * h * np.eye(len(x))[0])
        slope = slope - sign * both.response.curves[0] / (2 * h)
    assert np.max(np.abs(slope)) < 1e-7
