"""Characteristics of corners against differences, mirror images, closed forms and statics."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.observe import HoldingEffort, Sweep
from jaxmbd.suspension import (
    CHARACTERISTICS,
    Corner,
    available,
    contact_point,
    corner_state,
    kinematics,
    kinematics_sweep,
    zoo_corner,
)
from jaxmbd.suspension.motions import wheel_key

pytestmark = pytest.mark.filterwarnings("ignore:.*triangle inequality")
KINEMATIC = mbd.zoo.double_wishbone_kinematic()
ROLES = zoo_corner("double_wishbone_kinematic")
H = 1e-3
STENCIL = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / (12.0 * H)  # of fourth order
PLACES = H * np.arange(-2, 3)


def with_gradients(corner):
    return [n for n in available(corner) if not CHARACTERISTICS[n].second]


def assert_derivatives(table, names, scale):
    """Exact derivatives at the middle of the stencil against differences of the values."""
    for name in names:
        exact = table[f"{name}_gradient"][2]
        estimate = STENCIL @ table[name]
        size = max(np.abs(exact).max(), np.abs(table[name]).max() / scale)
        assert np.abs(exact - estimate).max() < 1e-6 * max(size, 1e-9), name


def test_derivatives_along_travel():
    """All characteristics of a corner whose steering axis is the virtual one alone."""
    corner, mech = zoo_corner("multi_link"), mbd.zoo.multi_link()
    names = with_gradients(corner)
    table = kinematics(mech, corner, travel=0.03 + PLACES, observe=names, gradients=names)
    assert_derivatives(table, names, 0.1)


@pytest.mark.slow
def test_derivatives_of_a_strut():
    corner, mech = zoo_corner("macpherson_kinematic"), mbd.zoo.macpherson_kinematic()
    names = ["roll_centre_height_arms", "mechanical_trail", "kingpin_inclination"]
    places = dict(travel=0.03 + PLACES, steer=0.02)
    table = kinematics(mech, corner, observe=names, gradients=names, **places)
    assert_derivatives(table, names, 0.1)


def test_derivatives_along_steering():
    names = ["toe", "camber", "scrub_radius", "roll_centre_height", "contact", "steer_angle"]
    places = dict(travel=0.02, steer=0.03 + PLACES)
    table = kinematics(KINEMATIC, ROLES, observe=[*names, "steer_gain"], gradients=names, **places)
    assert_derivatives(table, names, 0.1)
    gain = STENCIL @ table["steer_angle"]
    assert table["steer_gain"][2] == pytest.approx(gain, rel=1e-6)


def test_a_right_corner_is_a_left_one_mirrored():
    """All signs: with mirrored hardpoints all but angles about the vertical stay the same."""
    places = dict(travel=(-0.04, 0.05), observe=available(ROLES), gradients=[])
    left = kinematics(KINEMATIC, ROLES, steer=0.02, **places)
    flip = np.array([1.0, -1.0, 1.0])
    points = {n: flip * np.asarray(x) for n, x in KINEMATIC.points.items()}
    mech = mbd.zoo.double_wishbone_kinematic(points=points)
    right = kinematics(mech, replace(ROLES, side="right"), steer=-0.02, **places)
    for name in available(ROLES):
        sign = 1.0
        if name in ("steer_angle", "instant_axis_pitch"):
            sign = -1.0
        if name in ("contact", "instant_axis_point"):
            sign = flip
        if name == "instant_axis_direction":
            sign = -flip * np.sign(right[name][0, 2] * -left[name][0, 2])
        assert np.allclose(right[name], sign * left[name], rtol=1e-9, atol=1e-12), name


def test_the_contact_is_the_lowest_point_of_the_wheel():
    spin = np.array([0.3, 0.8, -0.25])
    spin = spin / np.linalg.norm(spin)
    c = np.asarray(contact_point(np.array([1.0, 2.0, 3.0]), spin, 0.3)) - [1.0, 2.0, 3.0]
    a = np.cross(spin, [0.0, 0.0, 1.0])
    a, turns = a / np.linalg.norm(a), np.linspace(0.0, 2.0 * np.pi, 100_001)[:, None]
    circle = 0.3 * (np.cos(turns) * a + np.sin(turns) * np.cross(spin, a))
    assert abs(c @ spin) < 1e-15 and abs(np.linalg.norm(c) - 0.3) < 1e-15
    assert c[2] == pytest.approx(circle[:, 2].min(), abs=1e-9)


def planar_wishbones():
    """Hinges along x, so that all moves in the plane yz like a four-bar."""
    return {
        "lower_wishbone_inboard_front": (0.2, 0.35, 0.18),
        "lower_wishbone_inboard_rear": (-0.2, 0.35, 0.18),
        "lower_wishbone_outboard": (0.0, 0.75, 0.15),
        "upper_wishbone_inboard_front": (0.2, 0.45, 0.42),
        "upper_wishbone_inboard_rear": (-0.2, 0.45, 0.42),
        "upper_wishbone_outboard": (0.0, 0.72, 0.46),
        "trackrod_inboard": (0.1, 0.35, 0.18),
        "trackrod_outboard": (0.1, 0.75, 0.15),
        "axle_inboard": (0.0, 0.7, 0.3),
        "axle_outboard": (0.0, 0.8, 0.3),
    }


def test_front_view_of_a_planar_linkage():
    """The instant centre is where the arms' lines meet, the roll centre seen through it."""
    p = planar_wishbones()
    table = kinematics(
        mbd.zoo.double_wishbone_kinematic(points=p),
        replace(ROLES, tyre_radius=0.3),
        travel=[0.0],
        observe=[
            "front_centre_y",
            "front_centre_z",
            "front_swing_arm",
            "roll_centre_height",
            "roll_centre_height_arms",
        ],
        gradients=["camber", "toe", "half_track"],
    ).at(0.0)

    def line(arm):
        a, b = np.array(p[f"{arm}_inboard_front"])[1:], np.array(p[f"{arm}_outboard"])[1:]
        normal = np.array([a[1] - b[1], b[0] - a[0]])
        return normal, normal @ a

    (m, a), (n, b) = line("lower_wishbone"), line("upper_wishbone")
    centre = np.linalg.solve(np.stack([m, n]), [a, b])
    height = 0.8 / (0.8 - centre[0]) * centre[1]
    assert table["front_centre_y"] == pytest.approx(centre[0], rel=1e-12)
    assert table["front_centre_z"] == pytest.approx(centre[1], rel=1e-12)
    assert table["front_swing_arm"] == pytest.approx(0.8 - centre[0], rel=1e-12)
    assert table["roll_centre_height"] == pytest.approx(height, rel=1e-12)
    assert table["roll_centre_height_arms"] == pytest.approx(height, rel=1e-12)
    # The top goes inwards by one radian per metre over the swing arm's length.
    assert table["camber_gradient"] == pytest.approx(-1.0 / (0.8 - centre[0]), rel=1e-12)
    assert table["half_track_gradient"] == pytest.approx(height / 0.8, rel=1e-12)
    assert abs(table["toe_gradient"]) < 1e-12


def test_parallel_arms_have_the_roll_centre_on_the_ground():
    """Horizontal parallel arms: the instant centre is at infinity, by both definitions."""
    p = planar_wishbones() | {"lower_wishbone_outboard": (0.0, 0.75, 0.18)}
    p |= {"upper_wishbone_outboard": (0.0, 0.72, 0.42), "trackrod_outboard": (0.1, 0.75, 0.18)}
    mech = mbd.zoo.double_wishbone_kinematic(points=p)
    names = ["roll_centre_height", "roll_centre_height_arms"]
    table = kinematics(mech, ROLES, travel=[0.0], observe=names, gradients=[])
    assert abs(table[names[0]][0]) < 1e-12 and abs(table[names[1]][0]) < 1e-12


HINGE = (-0.45, 0.2)
CENTRE, RADIUS = (0.0, 0.7, 0.3), 0.31


def swing_arm(pivot, axle):
    """A leading or trailing arm: its hinge along y is the instant axis."""
    x, z = pivot
    mech = mbd.Mechanism(
        bodies={"arm": mbd.Body(10.0, com=(0.5 * x, 0.7, 0.25), inertia=(0.1, 0.1, 0.1))},
        joints={"hinge": mbd.Revolute("ground", "arm", at=(x, 0.4, z), axis=(0.0, 1.0, 0.0))},
    )
    return mech, Corner(
        "arm", CENTRE, RADIUS, axle=axle, wheelbase=2.6, cg_height=0.5, brake_share=0.65
    )


@pytest.mark.parametrize("axle", ["front", "rear"])
@pytest.mark.parametrize("acts", ["outboard", "inboard"])
def test_side_view_of_a_swing_arm(axle, acts):
    """Support angles to the hinge: a leading arm in front, a trailing one at the rear."""
    ahead = 1.0 if axle == "front" else -1.0
    x, z = ahead * HINGE[0], HINGE[1]
    mech, corner = swing_arm((x, z), axle)
    corner = replace(corner, brakes=acts, drive=acts)
    table = kinematics(mech, corner, travel=[0.0]).at(0.0)
    ground, length, ratio = CENTRE[2] - RADIUS, 0.45, 2.6 / 0.5
    rise = z - (ground if acts == "outboard" else CENTRE[2])
    assert table["side_centre_x"] == pytest.approx(-x, rel=1e-12)
    assert table["side_centre_z"] == pytest.approx(z - ground, rel=1e-12)
    assert table["side_swing_arm"] == pytest.approx(length, rel=1e-12)
    braking = "anti_dive" if axle == "front" else "anti_lift_braking"
    driving = "anti_lift_driving" if axle == "front" else "anti_squat"
    # The contact moves towards the other axle's end where the hinge is higher: this supports.
    assert table[braking] == pytest.approx(0.65 * ratio * rise / length, rel=1e-12)
    assert table[driving] == pytest.approx(ratio * rise / length, rel=1e-12)
    other = {"anti_dive", "anti_lift_braking", "anti_lift_driving", "anti_squat"}
    assert not (other - {braking, driving}) & table.keys()


def test_support_is_the_work_of_a_force_at_the_contact():
    """The effort that holds the wheel's height against a braking force, by statics."""
    corner = replace(ROLES, brakes="outboard", brake_share=1.0)
    state = corner_state(KINEMATIC, corner, mbd.neutral(KINEMATIC))
    contact = np.asarray(contact_point(state.centre, state.spin, corner.tyre_radius))
    force = mbd.PointForce("upright", at=contact, force=(-1000.0, 0.0, 0.0))
    mech = KINEMATIC.replace(forces={"brake": force}, gravity=np.zeros(3))
    key = wheel_key(corner)
    held = Sweep({key: [0.0]}, {"effort": HoldingEffort(key)}, known={"rack": 0.0})(mech)
    rise = state.travel[5] + np.cross(state.travel[:3], contact - state.centre)[2]
    support = float(held["effort"][0]) / (1000.0 * float(rise))  # u_x / u_z
    dive = kinematics(mech, corner, travel=[0.0], observe=["anti_dive"])["anti_dive"][0]
    assert dive == pytest.approx(support * corner.wheelbase / corner.cg_height, rel=1e-9)


def test_wheel_force_and_rate_are_those_of_statics():
    """The effort that holds the wheel against its spring alone, and its slope along the travel."""
    mech = mbd.zoo.double_wishbone(wheel_load=0.0, gravity=0.0)
    corner, travel = zoo_corner("double_wishbone"), 0.02 + PLACES
    key = wheel_key(corner)
    effort = Sweep({key: travel}, {"effort": HoldingEffort(key)})(mech)["effort"]
    table = kinematics(mech, corner, travel=travel, observe=["wheel_force", "wheel_rate"])
    assert np.allclose(table["wheel_force"], effort, rtol=1e-9)
    assert table["wheel_rate"][2] == pytest.approx(STENCIL @ np.asarray(effort), rel=1e-6)
    ratio = kinematics(mech, corner, travel=travel, observe=["motion_ratio", "spring_length"])
    assert ratio["motion_ratio"][2] == pytest.approx(-STENCIL @ ratio["spring_length"], rel=1e-6)


def test_the_virtual_axis_is_that_of_finite_steering():
    """Five links: the axis of the finite turn between two racks at one wheel height."""
    mech, corner, h = mbd.zoo.five_link_kinematic(), zoo_corner("five_link_kinematic"), 2e-5
    key = wheel_key(corner)
    ends = [mbd.assemble(mech, {key.coordinate: 0.316, "rack": r}).q for r in (-h, h)]
    (r1, _), (r2, _) = (mbd.poses(mech, q)["upright"] for q in ends)
    turn = np.asarray(r2 @ r1.T)
    axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    axis = axis * np.sign(axis[2])
    caster, inclination = np.arctan2(-axis[0], axis[2]), np.arctan2(-axis[1], axis[2])
    names = ["virtual_caster", "virtual_kingpin_inclination"]
    found = kinematics(mech, corner, travel=[0.0], observe=names, gradients=[])
    assert found[names[0]][0] == pytest.approx(caster, abs=1e-7)
    assert found[names[1]][0] == pytest.approx(inclination, abs=1e-7)


@pytest.mark.parametrize("held", ["spring", pytest.param("lower_ball", marks=pytest.mark.slow)])
def test_both_steering_axes_are_one_where_the_arms_stand_still(held):
    """The spring acts on the lower arm, so that its length holds both wishbones."""
    mech, corner = mbd.zoo.double_wishbone(), zoo_corner("double_wishbone")
    pairs = ["caster", "kingpin_inclination", "scrub_radius", "caster_offset_wheel"]
    observe = [*pairs, *(f"virtual_{n}" for n in pairs)]
    table = kinematics(
        mech,
        replace(corner, held_in_steering=held),
        travel=[-0.05, 0.04],
        observe=observe,
        gradients=[],
    )
    for name in pairs:
        assert np.allclose(table[f"virtual_{name}"], table[name], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_forward_and_reverse_derivatives_agree():
    """The sweep is a pure function of the mechanism."""
    sweep = kinematics_sweep(ROLES, travel=[0.03], observe=["toe"], gradients=[])
    base = jnp.asarray(KINEMATIC.points["trackrod_inboard"])

    def toe(point):
        corner = mbd.zoo.double_wishbone_kinematic(points={"trackrod_inboard": point})
        return sweep(corner)["toe"][0]

    slope = lanes.jit(jax.grad(toe))(base)
    columns = lanes.vmap(lambda x, d: jax.jvp(toe, (x,), (d,))[1], in_axes=(None, 0))
    assert np.allclose(slope, columns(base, jnp.eye(3)), rtol=1e-8, atol=1e-10)


def test_the_sweep_holds_the_rack_as_the_table_does():
    """Where nobody asks for it too: as when the rack is named and kept where it is drawn."""
    options = dict(observe=["toe"], gradients=[])
    found = kinematics_sweep(ROLES, travel=[-0.05, 0.05], **options)(KINEMATIC)["toe"]
    table = kinematics(KINEMATIC, ROLES, travel=[-0.05, 0.05], **options)["toe"]
    assert np.array_equal(found, table)
    named = kinematics_sweep(ROLES, travel=0.05, steer=[0.0], **options)(KINEMATIC)["toe"]
    assert float(found[1]) == pytest.approx(float(named[0]), rel=1e-9)


def test_the_sweep_holds_the_joints_of_hold():
    mech, corner = mbd.zoo.five_point(), zoo_corner("five_point")
    keys = kinematics_sweep(corner, travel=[0.0], observe=["toe"]).keys(mech)
    assert {k.joint for k in keys[1:]} == {"chassis"} and len(keys) == 1 + mech.joint("chassis").nv


def test_a_motion_that_does_not_exist_is_nan():
    """A rack that a drive holds: the wheel still travels, and is not steered."""
    mech = mbd.zoo.macpherson_steering(sides=("left",))
    state = corner_state(mech, zoo_corner("macpherson_steering"), mbd.neutral(mech))
    assert np.isfinite(state.travel).all() and np.isnan(state.steer).all()
