"""Set-up by adjusters, against a solver of lengths in NumPy and closed forms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.suspension import AdjustableLength, Shim, solve_setup

CORNER = mbd.zoo.double_wishbone_kinematic()
ROLES = suspension.zoo_corner("double_wishbone_kinematic")
BY = {
    "plate": Shim("upright", "upper_wishbone_outboard", (0.0, 1.0, 0.1), per_turn=0.0005),
    "rod": AdjustableLength("trackrod", per_turn=0.0015),
    "front": Shim("ground", "lower_wishbone_inboard_front", (0.0, 1.0, 0.0)),
    "end": Shim("rack", "trackrod_inboard", ("axle_inboard", "axle_outboard"), parts=("trackrod",)),
}
TARGETS = {"camber": np.deg2rad(-2.6), "toe": np.deg2rad(0.15), "caster": np.deg2rad(5.2)}
TRAVEL, RACK = 0.012, 0.004


def columns(x):
    """Camber, toe and caster by lengths alone: plate, rod, front, end are changed by x [m]."""
    p = {n: np.array(CORNER.points[n]) for n in CORNER.structure.points}
    plate, rod, front, end = x
    on_upright = p | {
        "upper_wishbone_outboard": p["upper_wishbone_outboard"]
        + plate * np.array([0.0, 1.0, 0.1]) / np.hypot(1.0, 0.1)
    }
    spin = p["axle_outboard"] - p["axle_inboard"]
    spin = spin / np.linalg.norm(spin)
    hinge = {
        "lower": [
            p["lower_wishbone_inboard_front"] + [0.0, front, 0.0],
            p["lower_wishbone_inboard_rear"],
        ],
        "upper": [p["upper_wishbone_inboard_front"], p["upper_wishbone_inboard_rear"]],
    }
    drawn = {
        arm: [p[f"{arm}_wishbone_{n}"] for n in ("inboard_front", "inboard_rear", "outboard")]
        for arm in ("lower", "upper")
    }
    inboard = p["trackrod_inboard"] + end * spin + [0.0, RACK, 0.0]
    length = np.linalg.norm(p["trackrod_inboard"] - p["trackrod_outboard"]) + rod
    centre = p["axle_outboard"]

    def residual(u):
        turn = Rotation.from_rotvec(u[3:]).as_matrix()

        def at(name):
            return centre + u[:3] + turn @ (on_upright[name] - centre)

        found = [u[2] - TRAVEL, np.linalg.norm(at("trackrod_outboard") - inboard) - length]
        for arm, (f, r) in hinge.items():
            # The arm's ball keeps its distances along the hinge and from it, the front point fixed.
            f0, r0, ball0 = drawn[arm]
            axis, axis0 = (f - r) / np.linalg.norm(f - r), (f0 - r0) / np.linalg.norm(f0 - r0)
            ball = at(f"{arm}_wishbone_outboard")
            found.append((ball - f) @ axis - (ball0 - f0) @ axis0)
            found.append(np.linalg.norm(ball - f) - np.linalg.norm(ball0 - f0))
        return np.array(found)

    u, h = np.zeros(6), 1e-6
    for _ in range(9):
        slopes = [(residual(u + h * e) - residual(u - h * e)) / (2 * h) for e in np.eye(6)]
        u = u - np.linalg.solve(np.transpose(slopes), residual(u))
    assert np.max(np.abs(residual(u))) < 1e-14
    turn = Rotation.from_rotvec(u[3:]).as_matrix()
    s = turn @ spin
    k = turn @ (on_upright["upper_wishbone_outboard"] - on_upright["lower_wishbone_outboard"])
    return np.array([np.arctan2(-s[2], s[1]), np.arctan2(s[0], s[1]), np.arctan2(-k[0], k[2])])


@pytest.fixture(scope="module")
def found() -> suspension.Setup:
    return solve_setup(
        CORNER, ROLES, targets=TARGETS, by=BY, observe=["scrub_radius"], travel=TRAVEL, steer=RACK
    )


def test_targets_are_met_by_a_solver_of_lengths(found):
    x = np.array(list(found.changes.values()))
    assert np.min(np.abs(x)) > 1e-5
    np.testing.assert_allclose(columns(x), list(TARGETS.values()), rtol=0, atol=1e-11)
    before = [found.before[n] for n in TARGETS]
    np.testing.assert_allclose(columns(np.zeros(4)), before, rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        [found.after[n] for n in TARGETS], list(TARGETS.values()), atol=1e-13
    )


def test_the_effects_are_differences_of_that_solver(found):
    x, h, weights = np.array(list(found.changes.values())), 1e-4, np.array([1, -8, 0, 8, -1]) / 12
    steps = h * np.arange(-2, 3)
    slopes = [weights @ [columns(x + k * e) for k in steps] / h for e in np.eye(4)]
    np.testing.assert_allclose(found.jacobian.T, slopes, rtol=0, atol=1e-8)
    assert found.effect("toe", "rod") == found.jacobian[1, 1]


def test_the_changes_are_the_least(found):
    """At the least x·x with F(x) = y the changes are a combination of the rows of J."""
    x, rows = np.array(list(found.changes.values())), found.jacobian.T
    rest = x - rows @ np.linalg.lstsq(rows, x, rcond=None)[0]
    assert np.max(np.abs(rest)) < 1e-12


def test_the_adjusted_corner_is_one_for_every_table(found):
    table = suspension.kinematics(
        found.mech, found.corners, travel=[0.0, TRAVEL], steer=RACK, gradients=(),
        observe=[*TARGETS, "scrub_radius", "half_track_change"],
    )  # fmt: skip
    for name, y in found.after.items():
        assert abs(table[name][1] - y) < 1e-12, name
    for name in CORNER.structure.points:
        assert np.array_equal(found.mech.points[name], CORNER.points[name])
    assert abs(found.turns["rod"] - found.changes["rod"] / 0.0015) < 1e-12
    assert set(found.turns) == {"plate", "rod"}
    text = str(found)
    assert f"{1e3 * found.changes['front']:+.3f}" in text and "per mm of rod" in text
    assert found.corners.kingpin[1] == "upper_wishbone_outboard on upright"


LENGTH, RISE, RATE, FREE, LOAD = 0.4, 0.3, 3e5, 0.35, 2500.0


def arm():
    """A level trailing arm about y; its spring stands under the middle, its foot on the ground."""
    points = {
        "front": (LENGTH, 0.4, RISE), "rear": (LENGTH, 0.6, RISE), "wheel": (0.0, 0.8, RISE),
        "seat": (0.5 * LENGTH, 0.5, RISE), "top": (0.5 * LENGTH, 0.5, RISE + FREE),
    }  # fmt: skip
    return mbd.Mechanism(
        {"upright": mbd.Body(10.0, com="wheel")},
        {"hinge": mbd.Revolute("ground", "upright", at="front", axis=("front", "rear"))},
        {"spring": mbd.SpringDamper("ground", "upright", "top", "seat", RATE, free_length=FREE)},
        points=points,
        gravity=(0.0, 0.0, 0.0),
    )


def roles(side="left", prefix=""):
    return suspension.Corner(
        f"{prefix}upright", f"{prefix}wheel", 0.3, side=side, spring=f"{prefix}spring", axle="rear"
    )


def force_at(rise, free):
    """Vertical force on the wheel's centre that holds it `rise` above the drawing."""
    angle = np.arcsin(rise / LENGTH)
    foot = np.array([LENGTH - 0.5 * LENGTH * np.cos(angle), 0.5 * rise])
    top = np.array([0.5 * LENGTH, FREE])
    along = foot - top
    length = np.linalg.norm(along)
    turned = 0.5 * LENGTH * np.array([np.sin(angle), np.cos(angle)])  # of the foot, per radian
    return RATE * (length - free) * (along / length @ turned) / (LENGTH * np.cos(angle))


def test_ride_height_by_the_spring_seat_is_that_of_statics():
    loaded = arm().replace(forces={"load": mbd.PointForce("upright", "wheel", (0.0, 0.0, LOAD))})
    found = solve_setup(
        loaded, roles(), targets={"wheel_travel": -0.02}, by={"seat": "spring"}, travel=None
    )
    assert abs(force_at(-0.02, FREE + found.changes["seat"]) - LOAD) < 1e-9 * LOAD
    assert abs(force_at(found.before["wheel_travel"], FREE) - LOAD) < 1e-9 * LOAD


@pytest.mark.slow
def test_corner_weights_of_an_axle_by_both_seats():
    car = suspension.axle(arm())
    pair = suspension.axle_corners(car, roles())
    wanted = {"left_load": 2600.0, "right_load": 2400.0}
    seats = {side: AdjustableLength(f"{side}_spring", per_turn=0.002) for side in ("left", "right")}
    found = solve_setup(car, pair, targets=wanted, by=seats, travel=0.01)
    for side in ("left", "right"):
        exact = force_at(0.01, FREE + found.changes[side])
        assert abs(exact - wanted[f"{side}_load"]) < 1e-9 * LOAD
    assert abs(found.jacobian[0, 1]) < 1e-9 * abs(found.jacobian[0, 0])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"targets": {"camber": 0.0, "toe": 0.0}, "by": {"a": "trackrod"}}, "as many adjusters"),
        ({"targets": {"toe": 0.0}, "by": {"a": "trackrods"}}, "did you mean 'trackrod'"),
        ({"targets": {"toes": 0.0}, "by": {"a": "trackrod"}}, "did you mean 'toe'"),
        ({"targets": {"contact": 0.0}, "by": {"a": "trackrod"}}, "three components"),
        ({"targets": {}, "by": {"a": "trackrod"}}, "targets= is empty"),
        ({"targets": {"toe": np.nan}, "by": {"a": "trackrod"}}, "give a number"),
        ({"targets": {"toe": 0.0}, "by": {"a": "points/axle_outboard/y"}}, "name the part"),
        ({"targets": {"toe": 0.0}, "by": {"a": Shim("upright", "rack", (0, 1, 0))}}, "no joint or"),
        ({"targets": {"toe": 0.0}, "by": {"a": Shim("rack", "trackrod_inboard", (0, 0, 0))}},
         "no direction"),
        ({"targets": {"toe": 0.0}, "by": {"a": Shim("rack", "trackrod_inboard", (0, 1, 0),
          parts="trackrods")}}, "did you mean 'trackrod'"),
        ({"targets": {"toe": 0.0}, "by": {"a": AdjustableLength("trackrod", -0.1)}}, "per_turn"),
        ({"targets": {"toe": 0.0}, "by": {"a": "trackrod", "b": "trackrod"}}, "are the same"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(options, text):
    with pytest.raises(ValueError, match=text):
        solve_setup(CORNER, ROLES, **options)


def test_what_cannot_be_met_is_named():
    both = {"rod": "trackrod", "end": BY["end"]}
    with pytest.raises(ValueError, match="rod, end.* do not act on wheel_travel"):
        solve_setup(CORNER, ROLES, targets={"toe": 0.0, "wheel_travel": 0.0}, by=both)


@pytest.mark.slow
def test_targets_that_move_together_or_are_out_of_reach_are_named():
    both = {"rod": "trackrod", "end": BY["end"]}
    with pytest.raises(ValueError, match=r"out of reach.*instead of 85.*does not assemble"):
        solve_setup(CORNER, ROLES, targets={"toe": np.deg2rad(85.0)}, by={"rod": "trackrod"})
    with pytest.raises(ValueError, match="move toe and steer_angle together"):
        solve_setup(CORNER, ROLES, targets={"toe": 0.0, "steer_angle": 0.0}, by=both)


def test_the_roles_follow_and_the_drawing_stays():
    shim = BY["plate"]
    moved = suspension.adjusted(CORNER, {shim: 0.001})
    name = "upper_wishbone_outboard on upright"
    gap = np.asarray(moved.points[name]) - CORNER.points["upper_wishbone_outboard"]
    np.testing.assert_allclose(gap, 0.001 * np.array([0, 1, 0.1]) / np.hypot(1, 0.1), atol=1e-18)
    same = suspension.adjusted_roles(ROLES, [shim])
    assert (same.kingpin[1], same.upper_arm[2], same.lower_arm) == (name, name, ROLES.lower_arm)
