"""Mechanisms written as URDF: the tree comes back, and loops and forces are told."""

import numpy as np
import pytest
from random_mechanisms import random_mechanism
from written_models import round_trip

import jaxmbd as mbd
from jaxmbd.io import load_urdf, save_urdf
from jaxmbd.io.export.urdf import roll_pitch_yaw


def check(mech, path, seed=0):
    trip = round_trip(mech, save_urdf, load_urdf, path, seed=seed)
    errors = {name: x for name, x in trip.errors.items() if name != "closure"}
    assert max(errors.values()) < 1e-12, errors
    assert trip.read.left_out == ()
    return trip


def test_balls_screws_and_free_bodies(tmp_path):
    """A ball as three hinges, a free body, a screw as a mimic joint, several joints in a row."""
    trip = check(random_mechanism(5), tmp_path / "robot.urdf", seed=5)
    told = {row.what for row in trip.written.left_out}
    assert told == {
        "cut joints",
        "gravity",
        "springs between points and between joints",
        "actuators and constant loads",
    }
    assert [len(names) for names in trip.written.joints.values()] == [3, 1, 2, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_random_trees_come_back(seed, tmp_path):
    check(random_mechanism(seed), tmp_path / "robot.urdf", seed)


def test_attributes_and_gears(tmp_path):
    mech = mbd.Mechanism(
        {"a": mbd.Body(1.0, (0.5, 0, 0), 0.1), "b": mbd.Body(0.0, (1.0, 0, 0))},
        {
            "hinge": mbd.Revolute("ground", "a", (0, 0, 0), (0, 1, 0)),
            "slide": mbd.Prismatic("a", "b", (1, 0, 0), (1, 0, 0)),
        },
        {
            "drag": mbd.JointDrag("hinge", dry=0.2, viscous=0.3),
            "stop": mbd.JointLimit("hinge", -0.5, 0.6, stiffness=1e3),
            "spring": mbd.TorsionSpring("slide", 10.0, damping=0.4),
            "rotor": mbd.Armature("hinge", 0.1),
        },
        couplings={"rack": mbd.RackAndPinion("hinge", "slide", radius=0.05, offset=0.01)},
    )
    trip = round_trip(mech, save_urdf, load_urdf, tmp_path / "robot.urdf")
    told = {row.what: row.names for row in trip.written.left_out}
    assert told == {
        "armatures": ("rotor",),
        "springs of joints": ("spring",),
        "stiffnesses of joint limits": ("stop",),
    }
    again = trip.read.mechanism
    assert trip.read.limits == {"hinge": (-0.5, 0.6)}
    drag = again.forces["hinge.drag"]
    assert (float(drag.dry), float(drag.viscous)) == (0.2, 0.3)
    assert float(again.forces["slide.drag"].viscous) == 0.4
    gear = next(iter(again.couplings.values()))
    assert (float(gear.ratio), float(gear.offset)) == (0.05, 0.01)
    assert trip.errors["closure"] < 1e-12
    with pytest.raises(ValueError, match="springs of joints"):
        save_urdf(mech, tmp_path / "robot.urdf", strict=True)


@pytest.mark.parametrize("pitch", [0.3, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 2.0])
def test_angles_where_two_of_them_turn_about_one_axis(pitch):
    def about(axis, angle):
        c, s = np.cos(angle), np.sin(angle)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        r = np.eye(3)
        r[[i, i, j, j], [i, j, i, j]] = c, -s, s, c
        return r

    def rotation(angles):
        return about(2, angles[2]) @ about(1, angles[1]) @ about(0, angles[0])

    wanted = rotation((0.4, pitch, -1.1))
    np.testing.assert_allclose(rotation(roll_pitch_yaw(wanted)), wanted, rtol=0, atol=1e-15)


def test_repeated_names_are_refused(tmp_path):
    solid = mbd.Body(1.0, (0.5, 0, 0), np.eye(3))
    joint = mbd.Revolute("ground", "world", (0, 0, 0), (0, 1, 0))
    with pytest.raises(ValueError, match="several links would be called world"):
        save_urdf(mbd.Mechanism({"world": solid}, {"A": joint}), tmp_path / "model.urdf")
    assert not (tmp_path / "model.urdf").exists()
