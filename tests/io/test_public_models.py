"""Public robots as mechanisms, against MuJoCo: arms, hands, grippers, legged and parallel robots.

The files and their licences are in tests/data/models; `benchmarks/imports.py` compares many more.
"""

from pathlib import Path

import mujoco
import numpy as np
import pytest
from import_cases.against_mujoco import loop_errors, model_of, tree_errors

import jaxmbd as mbd
from jaxmbd.io import load_mjcf

FOLDER = Path(__file__).parents[1] / "data" / "models"
QUICK = ("fish", "panda", "robotiq_2f85")
ROBOTS = [
    pytest.param(path.stem, marks=() if path.stem in QUICK else pytest.mark.slow)
    for path in sorted(FOLDER.glob("*.xml"))
]


def file(name):
    return FOLDER / f"{name}.xml"


@pytest.mark.parametrize("name", ROBOTS)
def test_the_equations_of_motion_are_those_of_mujoco(name):
    errors = tree_errors(load_mjcf(file(name)), model_of(file(name)), states=1)
    assert max(errors[n] for n in ("mass", "bias", "acceleration", "coordinates")) < 1e-9, errors


CLOSED = {"cassie": 12, "delta": 18, "manipulator": 1, "panda": 1, "robotiq_2f85": 7, "stewart": 18}


@pytest.mark.parametrize(
    "name", [p for p in ROBOTS if p.values[0] in CLOSED], ids=lambda name: str(name)
)
def test_closed_loops_against_mujocos_own_matrices(name):
    """Loops close to rounding, and accelerations solve dense equations of M, h, J and J̇v."""
    errors = loop_errors(load_mjcf(file(name)), model_of(file(name)))
    assert errors["rows"] == CLOSED[name]
    assert max(errors["closure"], errors["their closure"]) < 1e-12
    assert errors["acceleration"] < 1e-8


def test_what_a_gripper_has():
    """A servo that pulls on two joints, springs with a reference, loops, and what is left out."""
    gripper = load_mjcf(file("robotiq_2f85"))
    mech = gripper.mechanism
    motor = mech.forces[gripper.actuators["fingers_actuator"]]
    assert motor.joint == ("right_driver_joint", "left_driver_joint")
    np.testing.assert_allclose(motor.gear, [0.5, 0.5])
    spring = mech.forces["left_spring_link_joint.spring"]
    assert (float(spring.stiffness), float(spring.free_angle)) == (0.05, 2.62)
    assert set(mbd.topology(mech).cut) <= set(mech.joints) and len(mech.couplings) == 1
    told = {x.what: len(x.names) for x in gripper.left_out}
    assert told == {"missing files": 8, "inertias": 3, "joint limits": 8, "contact shapes": 4}
    closed = mbd.assemble(mech, {"right_driver_joint": 0.4})
    place = mbd.topology(mech).layout
    assert float(closed.q[place["left_driver_joint"].q][0]) == pytest.approx(0.4)


def test_a_keyframe_that_stands():
    """Cassie's is assembled, with its loops away from their dead centre."""
    cassie = load_mjcf(file("cassie"))
    standing = cassie.states["standing"].q
    assert np.abs(mbd.constraint_residual(cassie.mechanism, standing)).max() < 1e-12
    found = mbd.mobility(cassie.mechanism, standing)
    model = mujoco.MjModel.from_xml_path(str(file("cassie")))
    # Each of two rods turns idly about its two balls; a planar loop has one row too many.
    assert found.dof == model.nv - 12 + 2
