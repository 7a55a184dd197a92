"""Relay steering by a pitman arm and an idler, against NumPy's rotations and lengths."""

import numpy as np
import pytest
from scipy.optimize import root
from scipy.spatial.transform import Rotation

import jaxmbd as mbd
from jaxmbd import suspension

POINTS = suspension.example_hardpoints("double_wishbone", steering_by="relay")
POINTS["idler_pivot"] = POINTS["idler_pivot"] + (0.02, 0.03, 0.01)
POINTS["idler_axis"] = POINTS["idler_axis"] + (0.03, 0.0, 0.0)
POINTS["tierod_inboard"] = POINTS["tierod_inboard"] + (0.02, 0.0, -0.015)
CORNER = suspension.double_wishbone_corner(POINTS, steering_by="relay")
CAR, ROLES = suspension.template_axle(*CORNER)
ANGLES = np.deg2rad([-25.0, 0.0, 12.0])
FLIP = np.array([1.0, -1.0, 1.0])
LINKS = [(f"{arm}_{end}", f"{arm}_ball") for arm in ("upper_arm", "lower_arm")
         for end in ("front", "rear")]  # fmt: skip


def turned(axis, angle):
    return Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()


def relay(angle):
    """A function of points of the relay rod, at a pitman angle."""
    p = POINTS
    axis = p["pitman_axis"] - p["pitman_pivot"]
    arm = turned(axis, angle)
    ball = p["pitman_pivot"] + arm @ (p["pitman_ball"] - p["pitman_pivot"])
    tilt = np.cross(axis, p["idler_ball"] - p["pitman_ball"])

    def pose(x):
        return arm @ turned(axis, x[0]) @ turned(tilt, x[1])

    def gap(x):
        idler = turned(p["idler_axis"] - p["idler_pivot"], x[2])
        there = p["idler_pivot"] + idler @ (p["idler_ball"] - p["idler_pivot"])
        return ball + pose(x) @ (p["idler_ball"] - p["pitman_ball"]) - there

    x = root(gap, [-angle, 0.0, angle], tol=1e-14).x
    assert np.max(np.abs(gap(x))) < 1e-13
    return lambda point: ball + pose(x) @ (point - p["pitman_ball"])


def steer_angle(side, angle):
    """Of a wheel whose centre keeps its height."""
    flip, moved = (FLIP if side < 0 else np.ones(3)), relay(angle)
    p = {n: flip * x for n, x in POINTS.items()}
    ends = [(p[a], p[a], p[b]) for a, b in LINKS]
    ends.append((p["tierod_inboard"], moved(p["tierod_inboard"]), p["tierod_outboard"]))
    centre = p["wheel_centre"]

    def place(x):
        turn = Rotation.from_rotvec(x[3:]).as_matrix()
        return turn, lambda point: centre + x[:3] + turn @ (point - centre)

    def gap(x):
        _, at = place(x)
        rods = [np.linalg.norm(at(c) - b) - np.linalg.norm(c - a) for a, b, c in ends]
        return [*rods, x[2]]

    x = root(gap, np.zeros(6), tol=1e-14).x
    assert np.max(np.abs(gap(x))) < 1e-13
    s = place(x)[0] @ (centre - p["axle_inboard"])
    return np.arctan2(-side * s[0], side * s[1])


def test_both_wheels_steer_as_rotations_and_lengths_say():
    table = suspension.steering(CAR, *ROLES, steer=ANGLES.tolist())
    assert (table.axis, table.unit) == ("steer", "rad")
    for name, side in (("left", 1.0), ("right", -1.0)):
        expected = [steer_angle(side, x) for x in ANGLES]
        np.testing.assert_allclose(table[name], expected, rtol=0, atol=1e-10)
    assert abs(abs(table["left"][0]) - abs(table["right"][0])) > 1e-3


def test_one_degree_of_freedom_beside_the_travels():
    found = mbd.mobility(CAR)
    assert found.dof == 3 and not found.redundant
    assert {"pitman", "idler", "relay"} < set(CAR.bodies)


def test_units_are_those_of_an_angle():
    mech, roles = CORNER
    gain = suspension.Characteristic(roles, "steer_gain")
    assert gain.about(mech).unit == "rad/rad"
    slope = suspension.Characteristic(roles, "toe", "steer")
    assert slope.about(mech).unit == "rad/rad"
    effort = suspension.AxleCharacteristic(ROLES, "steering_effort")
    assert effort.about(CAR).unit == "N m"
    along = suspension.AxleCharacteristic(ROLES, "steering_effort", (("pitman", 1.0),))
    assert along.about(CAR).unit == "N m/rad"


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="roles of both wheels"):
        suspension.steering(*CORNER)
    with pytest.raises(ValueError, match="along the pitman arm's axis"):
        along = dict(POINTS, pitman_axis=POINTS["pitman_pivot"] + (0.0, 0.1, 0.0))
        along["idler_ball"] = POINTS["pitman_ball"] - (0.0, 0.6, 0.0)
        suspension.double_wishbone_corner(along, steering_by="relay")
    with pytest.raises(ValueError, match="idler_axis"):
        few = {n: x for n, x in POINTS.items() if n != "idler_axis"}
        suspension.double_wishbone_corner(few, steering_by="relay")
    with pytest.raises(ValueError, match="'relay'"):
        suspension.double_wishbone_corner(POINTS, steering_by="box")
