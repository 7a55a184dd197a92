"""Reachable travel, and maps over two motions, against closed forms, a curve in NumPy and rows."""

import numpy as np
import pytest
from scipy.optimize import brentq

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.suspension import KinematicsMap, Reach, kinematics_map, reach

CORNER = mbd.zoo.double_wishbone_kinematic()
ROLES = suspension.zoo_corner("double_wishbone_kinematic")
TRAVEL, RACK = np.linspace(-0.04, 0.05, 4), np.linspace(-0.03, 0.02, 3)
PLACES = {"observe": ["toe", "caster", "contact"], "gradients": ["toe"]}


def test_a_swing_arm_reaches_as_far_as_it_is_long():
    points = {"front": (0.4, 0.4, 0.35), "rear": (0.4, 0.6, 0.35), "wheel": (0.0, 0.8, 0.3)}
    arm = mbd.Mechanism(
        {"upright": mbd.Body(10.0, com="wheel")},
        {"hinge": mbd.Revolute("ground", "upright", at="front", axis=("front", "rear"))},
        points=points,
    )
    roles = suspension.Corner("upright", "wheel", 0.3, axle="rear")
    found = reach(arm, roles, accuracy=1e-8)
    assert isinstance(found, Reach) and found.limited_by == ((), ())
    length = np.hypot(0.4, 0.05)
    np.testing.assert_allclose([found.low, found.high], [0.05 - length, 0.05 + length], atol=2e-8)


LINKS = (
    *(("lower_wishbone_inboard_front", "lower_wishbone_outboard"),),
    *(("lower_wishbone_inboard_rear", "lower_wishbone_outboard"),),
    *(("upper_wishbone_inboard_front", "upper_wishbone_outboard"),),
    *(("upper_wishbone_inboard_rear", "upper_wishbone_outboard"),),
    *(("trackrod_inboard", "trackrod_outboard"),),
)


def highest(sign):
    """The wheel centre's rise at the end of its curve, followed by its length, in NumPy.

    The upright is a rotation R and a place m; five links keep their lengths, and the step along
    the curve is across their gradients.
    """
    p = {n: np.array(CORNER.points[n]) for n in CORNER.structure.points}
    centre = p["axle_outboard"]

    def equations(r, m):
        miss, rows = [], []
        for a, b in LINKS:
            arm = r @ (p[b] - centre)
            d = m + arm - p[a]
            miss.append(d @ d - (p[b] - p[a]) @ (p[b] - p[a]))
            rows.append(np.concatenate([np.cross(arm, d), d]))
        return np.array(miss), 2.0 * np.array(rows)

    def turned(r, w):
        k = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.linalg.solve(np.eye(3) - 0.5 * k, (np.eye(3) + 0.5 * k) @ r)

    def step(state, ds):
        """The place on the curve a distance ds on, and its tangent."""
        r, m, along = state
        start, moved = along, np.zeros(6)
        r, m = turned(r, ds * along[:3]), m + ds * along[3:]
        for _ in range(6):
            miss, rows = equations(r, m)
            moved = np.linalg.solve(np.vstack([rows, start]), np.append(-miss, 0.0))
            r, m = turned(r, moved[:3]), m + moved[3:]
        tangent = np.linalg.svd(equations(r, m)[1])[2][-1]
        return r, m, tangent * np.sign(tangent @ start)

    first = np.linalg.svd(equations(np.eye(3), centre)[1])[2][-1]
    state, ds = (np.eye(3), centre, first * sign * np.sign(first[5])), 0.01
    while np.sign(step(state, ds)[2][5]) == sign:
        state = step(state, ds)
    end = brentq(lambda s: step(state, s)[2][5], 0.0, ds, xtol=1e-12)
    return step(state, end)[1][2] - centre[2]


@pytest.mark.slow
def test_a_double_wishbone_reaches_to_where_its_curve_turns():
    found = reach(CORNER, ROLES)
    ends = [highest(-1.0), highest(1.0)]
    assert found.accuracy < 1e-6
    np.testing.assert_allclose([found.low, found.high], ends, atol=found.accuracy)
    assert set(found.limited_by[0]) == {"upper_ball", "trackrod"}


def test_beyond_its_reach_a_table_says_how_far_it_goes():
    text = r"reaches from -270\.4 mm \(.*trackrod.*\) to \+451\.1 mm"
    with pytest.raises(ValueError, match=text):
        suspension.kinematics(CORNER, ROLES, travel=[0.0, 0.5], observe=["toe"], gradients=())
    with pytest.raises(ValueError, match=r"values are in m: 30 mm is 0\.03"):
        suspension.kinematics(CORNER, ROLES, travel=[-60.0, 60.0])
    with pytest.raises(ValueError, match="no motion 'bump'"):
        reach(CORNER, ROLES, of="bump")
    with pytest.raises(ValueError, match="moved and held"):
        reach(CORNER, ROLES, of="steer", steer=0.0)


@pytest.mark.slow
def test_beyond_its_reach_steering_says_how_far_it_goes():
    with pytest.raises(ValueError, match=r"steer reaches from -101\.6 mm"):
        suspension.steering(CORNER, ROLES, steer=[0.0, 0.5])


@pytest.mark.slow
def test_a_small_corner_gets_the_travel_that_it_has():
    small = CORNER.replace(points={n: 0.1 * np.asarray(x) for n, x in CORNER.points.items()})
    roles = suspension.Corner("upright", "axle_outboard", 0.03136, steering="rack")
    with pytest.warns(UserWarning, match=r"table is over -26\.5 to \+44\.2 mm"):
        table = suspension.kinematics(small, roles, observe=["toe"], gradients=())
    assert np.all(np.isfinite(table["toe"])) and len(table.x) == 13
    found, large = reach(small, roles), reach(CORNER, ROLES)
    np.testing.assert_allclose(table.x[0], 0.98 * found.low, rtol=1e-12)
    assert abs(found.low - 0.1 * large.low) <= found.accuracy + 0.1 * large.accuracy


@pytest.fixture(scope="module")
def found():
    return kinematics_map(CORNER, ROLES, travel=TRAVEL, steer=RACK, **PLACES)


def test_a_map_is_the_tables_of_its_rows_and_columns(found):
    assert isinstance(found, KinematicsMap) and found["contact"].shape == (4, 3, 3)
    for i, x in enumerate(TRAVEL[:2]):
        row = suspension.kinematics(CORNER, ROLES, travel=float(x), steer=RACK, **PLACES)
        for name in ("toe", "caster", "contact"):
            np.testing.assert_allclose(found[name][i], row[name], rtol=0, atol=1e-13)
        slopes = found["toe_steer_gradient"][i]
        np.testing.assert_allclose(slopes, row["toe_gradient"], rtol=0, atol=1e-12)
    column = suspension.kinematics(CORNER, ROLES, travel=TRAVEL, steer=float(RACK[2]), **PLACES)
    np.testing.assert_allclose(found["toe"][:, 2], column["toe"], rtol=0, atol=1e-13)
    slopes = found["toe_travel_gradient"][:, 2]
    np.testing.assert_allclose(slopes, column["toe_gradient"], rtol=0, atol=1e-12)


def test_a_map_is_written_and_printed(found, tmp_path):
    found.to_csv(tmp_path / "map.csv")
    rows = np.genfromtxt(tmp_path / "map.csv", delimiter=",", names=True)
    np.testing.assert_allclose(rows["toe_deg"].reshape(4, 3), np.rad2deg(found["toe"]), atol=1e-12)
    np.testing.assert_allclose(rows["travel_mm"].reshape(4, 3)[:, 0], 1e3 * TRAVEL, atol=1e-12)
    np.testing.assert_allclose(rows["contact_z_mm"].reshape(4, 3), 1e3 * found["contact"][..., 2])
    data = found.to_xarray()
    assert data["toe"].sel(travel=TRAVEL[1], steer=RACK[2]).item() == found["toe"][1, 2]
    assert data["contact"].dims == ("travel", "steer", "axis") and data["toe"].units == "rad"
    assert "travel [mm]" in str(found) and f"{np.rad2deg(found['toe'][0, 0]):.4g}" in str(found)
    with pytest.raises(ValueError, match="no column of numbers 'contact'"):
        found.table("contact")


@pytest.mark.slow
def test_a_map_of_an_axle_is_its_tables():
    car = suspension.axle(CORNER, shared=["rack"])
    pair, names = suspension.axle_corners(car, ROLES), ["left_toe", "track"]
    whole = kinematics_map(car, pair, roll=[-0.02, 0.03], steer=RACK, heave=0.01, observe=names)
    row = suspension.axle_kinematics(car, pair, roll=0.03, steer=RACK, heave=0.01, observe=names)
    for name in names:
        np.testing.assert_allclose(whole[name][1], row[name], rtol=0, atol=1e-13)


def test_what_is_no_map_is_named():
    with pytest.raises(ValueError, match=r"two motions of travel, steer; found travel"):
        kinematics_map(CORNER, ROLES, travel=[0.0, 0.1], roll=0.0)


@pytest.mark.slow
def test_a_place_of_a_map_that_is_out_of_reach_is_named():
    with pytest.raises(ValueError, match=r"travel alone is out of reach.*-270\.4 mm"):
        kinematics_map(CORNER, ROLES, travel=[0.0, -0.3], steer=[0.0, 0.01], observe=["toe"])
    with pytest.raises(ValueError, match=r"steer \+300\.0 mm is not.*there steer reaches from -"):
        kinematics_map(CORNER, ROLES, travel=[0.0, -0.1], steer=[0.0, 0.3], observe=["toe"])
