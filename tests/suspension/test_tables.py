"""Tables of kinematics, sensitivities and steering; roles and what is wrong with them; figures."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import jax
import numpy as np
import pytest
from repository import ROOT

import jaxmbd as mbd
from jaxmbd.observe import Output
from jaxmbd.suspension import (
    CHARACTERISTICS,
    GRADIENTS,
    Corner,
    CornerState,
    CornerSweep,
    Definition,
    Kinematics,
    Sensitivities,
    Steering,
    available,
    corner_state,
    find_corner,
    hardpoint_sensitivities,
    kinematics,
    kinematics_sweep,
    steering,
    steering_curves,
    texts,
    zoo_corner,
)
from jaxmbd.viz import kinematics_figure

pytestmark = pytest.mark.filterwarnings("ignore:.*triangle inequality")
MULTI_LINK, ROLES = mbd.zoo.multi_link(), zoo_corner("multi_link")
RACKED, RACK_ROLES = mbd.zoo.double_wishbone_kinematic(), zoo_corner("double_wishbone_kinematic")
TABLE = {
    "travel": [-0.05, 0.0, 0.05],
    "observe": ["toe", "camber", "motion_ratio", "roll_centre_height", "wheel_rate"],
    "gradients": ["toe"],
}
"""Of one structure, for all tests of `MULTI_LINK`."""


@pytest.fixture(scope="module")
def bump():
    return kinematics(MULTI_LINK, **TABLE)


def test_angles_are_those_of_the_observables(bump):
    known = {"toe": mbd.observe.Toe("upright"), "camber": mbd.observe.Camber("upright")}
    key = mbd.PointTravel("upright", "wheel_centre", "z")
    same = mbd.observe.Sweep({key: [-0.05, 0.0, 0.05]}, known)(MULTI_LINK)
    for name in known:
        assert np.allclose(bump[name], same[name], atol=1e-12)


def test_the_table_is_written_in_degrees_and_millimetres(bump, tmp_path):
    bump.to_csv(tmp_path / "bump.csv")
    rows = list(csv.reader((tmp_path / "bump.csv").read_text().splitlines()))
    assert rows[0][:3] == ["travel [mm]", "toe [deg]", "toe_gradient [deg/m]"]
    values = np.array(rows[1:], float)
    assert np.allclose(values[:, 0], [-50.0, 0.0, 50.0])
    assert np.allclose(values[:, 1], np.rad2deg(bump["toe"]), rtol=1e-12)
    text = str(bump)
    assert "-50" in text and "toe_gradient" in text and "positive: toe-in" in text
    assert "[rad]" not in text and "places are shown" not in text
    toe = next(x for x in text.splitlines() if x.startswith("toe "))
    assert toe.endswith("deg  positive: toe-in")


def test_a_table_says_what_it_leaves_out(bump):
    short = bump.table(columns="toe", places=2)
    assert "2 of 3 places are shown; .table(places=None)" in short and "camber" not in short
    with pytest.raises(ValueError, match="did you mean 'toe'"):
        bump.table(columns=["toee"])


PATHS = ("points/tierod_inboard/z", "points/lateral_ball/y", "forces/spring/stiffness")


@pytest.fixture(scope="module")
def moved():
    vary = ["points/tierod_inboard", *PATHS[1:]]
    return hardpoint_sensitivities(MULTI_LINK, vary=vary, **TABLE)


@pytest.mark.parametrize("path", PATHS)
def test_sensitivities_are_those_of_designs_apart(moved, path):
    """Against differences of whole tables of mechanisms drawn anew."""
    start = float(mbd.get_variables(MULTI_LINK, [path])[path])
    h = 1e-4 if "points" in path else 1e-3 * start
    tables = [
        kinematics(mbd.set_variables(MULTI_LINK, {path: start + k * h}), **TABLE)
        for k in (-2, -1, 1, 2)
    ]
    for name in moved.outputs:
        y = [t[name] for t in tables]
        estimate = (8.0 * (y[2] - y[1]) - (y[3] - y[0])) / (12.0 * h)
        exact = [moved.of(name, path, k) for k in range(3)]
        size = np.abs(moved.derivatives[:, moved.outputs.index(name)]).max()
        assert np.allclose(exact, estimate, rtol=1e-6, atol=1e-7 * size), name


def test_sensitivities_are_printed_per_millimetre(moved):
    assert moved.variables[:3] == tuple(f"points/tierod_inboard/{c}" for c in "xyz")
    path, effect = moved.ranked("toe_gradient")[0]
    assert effect == pytest.approx(1e-3 * np.rad2deg(moved.of("toe_gradient", path)))
    line = next(x for x in str(moved).splitlines() if x.startswith(path))
    assert f"{effect:.4g}" in line and line.endswith("per mm")
    assert "forces/spring/stiffness" in str(moved) and "per 1 %" in str(moved)


@pytest.mark.slow
def test_a_mirrored_axle_steers_as_a_whole_one():
    """One corner with its mirror image, and both corners on one rack."""
    left = zoo_corner("macpherson_steering")
    whole = mbd.zoo.macpherson_steering(amplitude=None)
    half = mbd.zoo.macpherson_steering(sides=("left",), amplitude=None)
    racks = [-0.05, 0.0, 0.02, 0.05]
    a = steering(half, left, steer=racks, travel=0.02)
    assert np.isinf(a["turning_circle"][1]) and np.isnan(a["ackermann_share"][1])
    assert np.isfinite(a["turning_circle"][2:]).all()
    b = steering(whole, left, zoo_corner("macpherson_steering", "right"), steer=racks, travel=0.02)
    for name, x in a.columns.items():
        assert np.allclose(x, b[name], rtol=1e-9, atol=1e-12, equal_nan=True), name


@pytest.mark.slow
def test_curves_of_steering_are_its_columns_also_traced():
    racks = [-0.04, 0.03]
    curves = jax.jit(lambda m: steering_curves(m, RACK_ROLES, steer=racks))(RACKED)
    assert curves.pop("status") == 0
    for name, x in steering(RACKED, RACK_ROLES, steer=racks).columns.items():
        np.testing.assert_allclose(curves[name], x, rtol=1e-9, atol=1e-12, err_msg=name)


def test_the_turning_circle_is_where_the_normals_meet():
    """By plane geometry of the two wheels, from their angles and contact points."""
    racks = [-0.04, 0.03]
    table = steering(RACKED, RACK_ROLES, steer=racks)
    assert isinstance(table, Steering)
    sweep = kinematics(
        RACKED,
        RACK_ROLES,
        travel=0.0,
        steer=[-0.04, -0.03, 0.03, 0.04],
        observe=["contact", "steer_angle"],
    )
    drawn = kinematics(RACKED, RACK_ROLES, travel=[0.0], observe=["contact"])["contact"][0]
    line = drawn[0] - RACK_ROLES.wheelbase
    for k, (mine, mirrored) in enumerate([(0, 3), (2, 1)]):
        wheels = [
            (sweep["steer_angle"][mine], sweep["contact"][mine][:2]),
            (-sweep["steer_angle"][mirrored], sweep["contact"][mirrored][:2] * [1.0, -1.0]),
        ]
        # The normal of a wheel is c + r (−sin δ, cos δ), positive r to the left.
        centres = [
            c + (c[0] - line) / np.sin(d) * np.array([-np.sin(d), np.cos(d)]) for d, c in wheels
        ]
        assert all(abs(x[0] - line) < 1e-9 for x in centres)
        turn_left = wheels[0][0] + wheels[1][0] > 0.0
        inner, outer = (0, 1) if turn_left else (1, 0)
        for name, centre in (("turning_circle", outer), ("turning_circle_inner", inner)):
            radius = np.linalg.norm(wheels[outer][1] - centres[centre])
            assert table[name][k] == pytest.approx(2.0 * radius, rel=1e-9)
        assert table["inner"][k] == pytest.approx(abs(wheels[inner][0]), rel=1e-12)
        cot = 1.0 / np.tan(table["inner"][k]) + 2.0 * drawn[1] / RACK_ROLES.wheelbase
        ideal = np.arctan(1.0 / cot)
        assert table["ackermann_error"][k] == pytest.approx(abs(wheels[outer][0]) - ideal)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (dict(upright="uprigth"), "did you mean 'upright'"),
        (dict(wheel_centre="wheel_center"), "wheel_centre"),
        (dict(spring="springg"), "spring: there is no force element"),
        (dict(steering="rev_ua"), r"name a rack \(Prismatic\), a pitman arm"),
        (dict(side="Left"), "give 'left' or 'right'"),
        (dict(tyre_radius=-0.3), "positive length"),
        (dict(kingpin=("a", "b", "c")), "3 points; give 2"),
        (dict(spindle=(0.0, -1.0, 0.0)), "points inwards"),
        (dict(spring=None, held_in_steering="spring"), "name the spring"),
    ],
)
def test_a_wrong_role_is_named_with_its_cure(change, says):
    with pytest.raises(ValueError, match=says):
        kinematics(MULTI_LINK, replace(ROLES, **change))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (dict(observe=["tow"]), "there is no characteristic 'tow'"),
        (dict(observe=["kingpin_inclination"]), "it needs kingpin= in the Corner"),
        (dict(observe=["anti_dive"]), "of a front axle"),
        (dict(observe=["toe"], gradients=["wheel_rate"]), "second derivatives"),
        (dict(travel=0.0, steer=[0.0, 0.01]), "cannot be moved by a value"),
        (dict(travel=[0.0], steer=[0.0]), "several values of either"),
    ],
)
def test_a_wrong_question_is_answered_with_a_cure(options, says):
    with pytest.raises(ValueError, match=says):
        kinematics(MULTI_LINK, ROLES, **options)


def test_a_place_outside_the_table_is_refused(bump):
    assert bump.at(0.05)["toe"] == bump["toe"][2]
    with pytest.raises(ValueError, match=r"outside the table, which goes from -50 to \+50 mm"):
        bump.at(0.06)


def test_one_name_a_steering_sweep_and_a_parametrisation_are_understood():
    options = dict(steer=[0.0, 0.01], observe="steer_angle")
    table = kinematics(RACKED, RACK_ROLES, **options)
    assert list(table.columns) == ["steer_angle"] and table.axis == "steer"
    model = mbd.Parametrization.of(lambda mass: RACKED, mass=1.0)
    again = kinematics(model, RACK_ROLES, travel=0.0, **options)
    assert np.array_equal(again["steer_angle"], table["steer_angle"])


def test_an_unknown_column_is_answered_with_the_names(moved):
    with pytest.raises(ValueError, match="did you mean 'toe_gradient'"):
        moved.ranked("toe_gradiant")
    with pytest.raises(ValueError, match="did you mean 'points/tierod_inboard/z'"):
        moved.of("toe", "points/tierod_inboard/zz")


def test_a_freedom_that_nobody_holds_is_named():
    with pytest.raises(ValueError, match=r"1 degree of freedom is not held: rack; name it in"):
        kinematics(RACKED, replace(RACK_ROLES, steering=None))
    carried = zoo_corner("five_point")
    with pytest.raises(ValueError, match="1 degree of freedom is not held: chassis;"):
        kinematics(mbd.zoo.five_point(), replace(carried, hold=()))
    loose = mbd.Mechanism(
        bodies={"upright": mbd.Body(10.0)}, joints={"free": mbd.Free("ground", "upright")}
    )
    with pytest.raises(ValueError, match="5 degrees of freedom are not held: free;"):
        kinematics(loose, Corner("upright", (0.0, 0.7, 0.3), 0.3), travel=[0.0])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (dict(side="right"), r"y = 0\.\d+ m, and y is positive to the left; give side='left'"),
        (dict(tyre_radius=313.6), "give metres"),
        (dict(spindle=RACK_ROLES.spindle[::-1]), r"points inwards .* give \(inner, outer\)"),
        (dict(kingpin=RACK_ROLES.kingpin[::-1]), r"give \(lower, upper\)"),
    ],
)
def test_roles_that_contradict_the_drawing_are_named(change, says):
    [problem] = replace(RACK_ROLES, **change).problems(RACKED)
    assert re.search(says, problem)


def test_a_mirrored_corner_of_the_zoo_is_a_right_one():
    right = find_corner(mbd.mirror(RACKED))
    assert right.side == "right" and not right.problems(mbd.mirror(RACKED))


def test_a_driven_rack_is_refused():
    mech = mbd.zoo.macpherson_steering()
    with pytest.raises(ValueError, match="remove the drive"):
        kinematics(mech, zoo_corner("macpherson_steering"))


def test_an_unknown_corner_asks_for_roles():
    with pytest.raises(ValueError, match="name the roles"):
        find_corner(mbd.zoo.rssr())
    with pytest.raises(ValueError, match="there is no point 'point'"):
        Corner("coupler", "point", 0.3).check(mbd.zoo.four_bar())


def test_travel_is_upwards_in_figures(bump, tmp_path):
    higher = kinematics(
        mbd.zoo.multi_link(points={"tierod_inboard": (-0.257, 0.32, -0.112)}), **TABLE
    )
    figure = kinematics_figure({"drawn": bump, "higher": higher}, path=tmp_path / "bump.png")
    assert (tmp_path / "bump.png").stat().st_size > 10_000
    first = figure.axes[0]
    assert first.get_xlabel() == "toe [deg]" and first.get_ylabel() == "wheel travel [mm]"
    lines = [x for x in first.get_lines() if len(x.get_xdata()) == 3]
    assert len(lines) == 2
    assert np.allclose(lines[0].get_ydata(), [-50.0, 0.0, 50.0])
    assert np.allclose(lines[1].get_xdata(), np.rad2deg(higher["toe"]))
    with pytest.raises(ValueError, match="columns"):
        kinematics_figure(bump, columns=["anti_dive"])


def test_a_front_axle_has_no_anti_squat_but_anti_dive():
    assert "anti_dive" in available(RACK_ROLES) and "anti_squat" not in available(RACK_ROLES)
    assert "anti_squat" in available(ROLES) and "anti_dive" not in available(ROLES)


def test_the_page_on_definitions_has_them_all():
    page = (ROOT / "docs" / "howto" / "suspension_kinematics.md").read_text("utf-8")
    own = {n: x for n, x in texts().items() if not n.startswith("virtual_")}
    missing = [n for n, text in own.items() if f"| `{n}` | {text} |" not in page]
    assert len(own) > 30 and not missing


TOE = {"toe": Output("rad", "toe [rad], positive: toe-in")}


def test_between_the_places_of_a_table_values_are_interpolated():
    table = Kinematics("travel", np.array([0.0, 0.02]), {"toe": np.array([0.1, 0.3])}, TOE, "title")
    assert table.at(0.005)["toe"] == pytest.approx(0.15)
    assert table.shown("toe")[0] == pytest.approx(np.rad2deg([0.1, 0.3]))
    assert str(table).splitlines()[0] == "title"


def test_sensitivities_are_ranked_by_what_a_step_of_each_does():
    """A millimetre, a degree, or one per cent."""
    found = Sensitivities(
        ("toe",), ("length", "angle", "rate"), np.zeros(1), np.zeros((1, 1)),
        np.array([[[2.0, 0.1, 1e-5]]]), TOE, ("m", "rad", "N/m"), np.array([0.5, 0.0, 2e4]),
    )  # fmt: skip
    effects = {"angle": 0.1 * np.pi / 180, "length": 2e-3, "rate": 1e-5 * 200.0}
    assert dict(found.ranked("toe")) == pytest.approx(
        {name: np.rad2deg(x) for name, x in effects.items()}
    )
    assert found.of("toe", "rate") == 1e-5 and found.ranked("toe")[-1][0] == "angle"


def test_the_drawn_corner_is_where_its_points_are():
    state = corner_state(RACKED, RACK_ROLES, mbd.neutral(RACKED))
    assert isinstance(state, CornerState)
    np.testing.assert_allclose(state.centre, RACKED.points["axle_outboard"], rtol=0, atol=1e-15)
    np.testing.assert_allclose(state.centre, state.drawn_centre, rtol=0, atol=1e-15)
    for side, point in zip(state.kingpin, ("lower", "upper"), strict=True):
        drawn = RACKED.points[f"{point}_wishbone_outboard"]
        np.testing.assert_allclose(side, drawn, rtol=0, atol=1e-15)
    assert state.travel[5] == pytest.approx(1.0, rel=1e-12)


def test_a_sweep_of_a_corner_holds_what_the_mechanism_has():
    sweep = kinematics_sweep(RACK_ROLES, travel=[0.0, 0.01], observe="toe")
    assert isinstance(sweep, CornerSweep)
    assert [getattr(key, "joint", "z") for key in sweep.keys(RACKED)] == ["z", "rack"]
    steered = kinematics_sweep(RACK_ROLES, steer=[0.0, 0.01], observe="toe")
    assert [getattr(key, "joint", "z") for key in steered.keys(RACKED)] == ["rack", "z"]


def test_slopes_are_those_of_gradients_that_are_observed():
    def slopes(**options):
        names = kinematics_sweep(RACK_ROLES, travel=[0.0, 0.01], **options).observe
        return {n.removesuffix("_gradient") for n in names if n.endswith("_gradient")}

    assert "toe" in GRADIENTS
    assert slopes() == set(GRADIENTS) & set(available(RACK_ROLES))
    assert slopes(observe=["toe", "contact"]) == {"toe"} and not slopes(gradients=())


def test_a_definition_says_what_a_corner_lacks():
    lift = CHARACTERISTICS["anti_squat"]
    assert isinstance(lift, Definition)
    assert "rear axle" in lift.missing(RACK_ROLES)[0] and not lift.missing(ROLES)
    assert "cg_height=" in lift.missing(replace(ROLES, cg_height=None))[0]
