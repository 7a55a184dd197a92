"""Robots described in URDF as mechanisms."""

import mujoco
import numpy as np
import pytest
from import_cases.against_mujoco import tree_errors

import jaxmbd as mbd
from jaxmbd.io import load_urdf

ROBOT = """
<robot name="gripper">
  <link name="base">{inertial}
    <visual><geometry><mesh filename="package://nowhere/base.dae"/></geometry></visual></link>
  <link name="arm">{inertial}
    <collision><geometry><mesh filename="package://nowhere/arm.stl"/></geometry></collision></link>
  <link name="flange">{inertial}</link>
  <link name="left">{inertial}</link>
  <link name="right">{inertial}</link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/>
    <origin xyz="0.1 0 0.2" rpy="0.3 0.2 0.1"/><axis xyz="0 1 1"/>
    <limit lower="-1" upper="2" effort="9" velocity="2"/>
    <dynamics damping="0.4" friction="0.2"/></joint>
  <joint name="bolt" type="fixed"><parent link="arm"/><child link="flange"/>
    <origin xyz="0.3 0 0" rpy="0 0.5 0"/></joint>
  <joint name="left" type="prismatic"><parent link="flange"/><child link="left"/>
    <origin xyz="0.1 0.05 0"/><axis xyz="0 1 0"/><limit lower="0" upper="0.05" effort="1"
    velocity="1"/></joint>
  <joint name="right" type="continuous"><parent link="flange"/><child link="right"/>
    <origin xyz="0.1 -0.05 0"/><axis xyz="0 0 -1"/>
    <mimic joint="left" multiplier="-3" offset="0.01"/></joint>
</robot>
""".format(
    inertial='<inertial><origin xyz="0.05 0.02 0.01" rpy="0.1 0.2 0.3"/><mass value="1.3"/>'
    '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0.002" iyz="-0.003"/></inertial>'
)


@pytest.mark.parametrize("floating", [False, True])
def test_the_equations_of_motion_are_those_of_mujoco(floating):
    robot = load_urdf(ROBOT, floating=floating)
    spec = mujoco.MjSpec.from_string(ROBOT.replace("collision>", "visual>"))
    spec.compiler.fusestatic = False
    if floating:
        spec.worldbody.first_body().add_freejoint(name="root")
    errors = tree_errors(robot, spec.compile(), states=1)
    assert max(errors[n] for n in ("mass", "bias", "acceleration")) < 1e-11, errors
    assert robot.bodies["flange"] == "arm"
    assert robot.bodies["base"] == ("base" if floating else "ground")
    assert ("root" in robot.mechanism.joints) == floating


def test_mimic_joints_dampers_and_ranges():
    robot = load_urdf(ROBOT)
    (gear,) = robot.mechanism.couplings.values()
    assert (gear.joint_a, gear.joint_b) == ("left", "right")
    assert (float(gear.ratio), float(gear.offset)) == (-3.0, pytest.approx(0.01))
    drag = robot.mechanism.forces["hinge.drag"]
    assert (float(drag.viscous), float(drag.dry)) == (0.4, 0.2)
    assert robot.limits == {"hinge": (-1.0, 2.0), "left": (0.0, 0.05)}
    assert {x.what for x in robot.left_out} == {"joint limits", "missing files"}
    solved = mbd.assemble(robot.mechanism, {"left": 0.02})
    np.testing.assert_allclose(float(solved.q[-1]), 0.01 - 3 * 0.02, rtol=0, atol=1e-12)


def test_a_file_that_is_no_robot():
    with pytest.raises(ValueError, match="MuJoCo cannot read this text"):
        load_urdf("<robot><link/></robot")


def test_links_that_mujoco_refuses():
    """A link without mass, one whose inertia no rigid body has, and a negative one."""
    bare = ROBOT.replace('<mass value="1.3"/>', '<mass value="0"/>', 1)
    bare = bare.replace('ixx="0.02" iyy="0.03" izz="0.04"', 'ixx="0" iyy="0" izz="0"', 1)
    odd = bare.replace('izz="0.04"', 'izz="0.4"').replace('ixy="0.001"', 'ixy="0"')
    odd = odd.replace('ixz="0.002" iyz="-0.003"', 'ixz="0" iyz="0"')
    with pytest.warns(UserWarning, match="triangle inequality"):
        robot = load_urdf(odd, floating=True)
    assert {x.what for x in robot.left_out} == {"joint limits", "missing files"}
    arm = robot.mechanism.bodies
    assert float(arm["base"].mass) == 0.0 and not np.any(arm["base"].inertia)
    assert np.linalg.eigvalsh(arm["left"].inertia)[-1] == pytest.approx(0.4)
    worse = odd.replace('ixx="0.02"', 'ixx="-0.02"', 1)
    with pytest.warns(UserWarning, match="triangle inequality"):
        left = load_urdf(worse).left_out
    assert ("negative inertias", ("arm",)) in {(x.what, x.names) for x in left}


FIVE_BAR = """
<robot name="five-bar">
  <link name="base"/>
  <link name="left">{0}</link><link name="right">{0}</link>
  <link name="left_end">{0}</link><link name="right_end">{0}</link>
  <link name="left_tip"/><link name="right_tip"/>
  <joint name="q1" type="continuous"><parent link="base"/><child link="left"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="q2" type="continuous"><parent link="base"/><child link="right"/>
    <origin xyz="0.2 0 0"/><axis xyz="0 1 0"/></joint>
  <joint name="p1" type="continuous"><parent link="left"/><child link="left_end"/>
    <origin xyz="-0.1 0 0.3"/><axis xyz="0 1 0"/></joint>
  <joint name="p2" type="continuous"><parent link="right"/><child link="right_end"/>
    <origin xyz="0.1 0 0.3"/><axis xyz="0 1 0"/></joint>
  <joint name="t1" type="fixed"><parent link="left_end"/><child link="left_tip"/>
    <origin xyz="0.2 0 0.25"/></joint>
  <joint name="t2" type="fixed"><parent link="right_end"/><child link="right_tip"/>
    <origin xyz="-0.19 0 0.25"/></joint>
</robot>
""".format(
    '<inertial><origin xyz="0 0 0.1"/><mass value="0.5"/>'
    '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def test_loops_close_pairs_of_frames_or_are_joints():
    """Two frames that are drawn a centimetre apart, and the same by a joint of one's own."""
    pair = load_urdf(FIVE_BAR, loops={"tip": ("left_tip", "right_tip")}).mechanism
    ball = mbd.Spherical("left_tip", "right_end", (0.1, 0, 0.55), at_b=(0.11, 0, 0.55))
    own = load_urdf(FIVE_BAR, loops={"tip": ball}).mechanism
    assert mbd.topology(pair).cut == mbd.topology(own).cut == ("tip",)
    assert (pair.joints["tip"].a, pair.joints["tip"].b) == ("left_end", "right_end")
    solved = mbd.assemble(pair, {"q1": 0.1, "q2": -0.2})
    np.testing.assert_allclose(mbd.constraint_residual(own, solved.q), 0, atol=1e-12)
    tips = [
        mbd.point_position(pair, solved.q, body, at)
        for body, at in (("left_end", (0.1, 0, 0.55)), ("right_end", (0.11, 0, 0.55)))
    ]
    np.testing.assert_allclose(tips[0], tips[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (("left_tip", "rigth_tip"), "there is no link 'rigth_tip'.*right_tip"),
        (("left_tip", "left_end"), "parts of one rigid body, left_end"),
        (("left_tip",), "give two links, or a joint"),
        (mbd.Spherical("left_tip", "nobody", (0, 0, 0)), "there is no link 'nobody'"),
    ],
)
def test_loops_that_are_none(ends, message):
    with pytest.raises(ValueError, match=message):
        load_urdf(FIVE_BAR, loops={"tip": ends})
