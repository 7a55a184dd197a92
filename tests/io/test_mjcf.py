"""Models of MuJoCo as mechanisms: the same equations of motion, and nothing dropped silently."""

import dataclasses

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from import_cases.against_mujoco import (
    at_state,
    loop_errors,
    random_state,
    simplified,
    tree_errors,
)

import jaxmbd as mbd
from jaxmbd.io import load_mjcf

TREE = """
<mujoco model="every joint and force">
  <compiler angle="radian"/>
  <option gravity="0.3 0.1 -9.7"/>
  <default>
    <geom contype="0" conaffinity="0" density="500"/>
    <default class="stiff"><joint stiffness="7" damping="0.2"/></default>
  </default>
  <worldbody>
    <body name="base" pos="0 0 0.4" euler="0.1 0 0.3">
      <geom type="box" size="0.1 0.1 0.1"/>
      <body name="left/arm" pos="0.1 0 0.1" euler="0.2 0.1 0" childclass="stiff">
        <joint name="shoulder" axis="0 1 0.2" armature="0.03" ref="0.4" springref="0.7"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0.1 0"/>
        <body name="plate" pos="0.2 0.1 0" gravcomp="0.5"><geom type="box" size="0.1 0.02 0.03"/>
          <site name="mark" pos="0.05 0.01 0.02"/></body>
        <body name="wrist" pos="0.2 0.1 0" euler="0 0.4 0">
          <joint name="x" type="slide" axis="1 0 0.1" ref="0.05" frictionloss="0.2"/>
          <joint name="turn" axis="0 0.1 1" pos="0.03 0 0"/>
          <joint name="tilt" axis="1 0 0" stiffness="0" damping="0.3"/>
          <geom type="ellipsoid" size="0.1 0.05 0.02" pos="0.1 0.02 0"/>
          <body name="knob" pos="0.2 0 0" euler="0.5 -0.3 0.2">
            <joint name="ball" type="ball" pos="0.01 0.02 0" armature="0.01" stiffness="0"/>
            <geom type="box" size="0.04 0.03 0.02" pos="0.05 0 0.01"/>
          </body>
        </body>
      </body>
    </body>
    <body name="raft" pos="0 -1 0.2" euler="0.3 0.2 0.1">
      <freejoint name="float"/>
      <geom type="box" size="0.1 0.2 0.05" pos="0.1 0 0"/>
      <body name="mast" pos="0 0 0.1" gravcomp="1">
        <joint name="mast" axis="0 1 0" range="-1 1" limited="true" actuatorfrcrange="-1 1"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0.1 0.4"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="shoulder" joint="shoulder" gear="20" ctrlrange="-0.2 0.2" armature="0.001"/>
    <position name="servo" joint="x" kp="40" kv="3" gear="-2" forcerange="-4 5"/>
    <velocity name="speed" joint="turn" kv="2" gear="3" damping="0.01"/>
    <general name="mixed" joint="tilt" gainprm="3" biastype="affine" biasprm="0.1 -2 -0.3"/>
    <general name="slow" joint="turn" dyntype="filter" dynprm="0.1" gainprm="2"/>
    <motor name="sail" joint="mast" gear="10"/>
    <motor name="push" site="mark" gear="1 2 -0.5 0.3 -0.2 0.1" ctrlrange="-1 1"/>
    <general name="twist" joint="ball" gear="0.3 -0.2 0.5" biastype="affine" biasprm="0.2 0 0"/>
    <motor name="counter" jointinparent="ball" gear="0.1 0.4 -0.2"/>
    <position name="cable" tendon="cable" kp="30" kv="2" gear="3" forcerange="-6 7"/>
  </actuator>
  <tendon><fixed name="cable"><joint joint="shoulder" coef="0.3"/><joint joint="x" coef="-2"/>
    <joint joint="tilt" coef="0.5"/></fixed>
    <fixed name="tie" stiffness="5" damping="0.7" springlength="0.3">
      <joint joint="mast" coef="-0.6"/><joint joint="shoulder" coef="1.2"/></fixed>
    <fixed name="own" stiffness="4" damping="0.2"><joint joint="x" coef="-2"/></fixed></tendon>
  <keyframe>
    <key name="home" time="2" qpos="0.5 0.1 0.2 0.3  2 0 0 0  0.1 -1 0.3 1 0 0 1  0.4"
         qvel="1 2 3 4 5 6 7 8 9 10 11 12 13 14" ctrl="0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1"/>
  </keyframe>
</mujoco>
"""

LOOPS = """
<mujoco model="loops">
  <compiler angle="radian"/>
  <default><geom contype="0" conaffinity="0" density="500"/><joint damping="0.1"/></default>
  <worldbody>
    <body name="crank" pos="0 0 0.5">
      <joint name="crank" axis="0 1 0" armature="0.02"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0"/>
      <body name="coupler" pos="0.2 0 0">
        <joint name="pin" axis="0 1 0"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0.3"/>
        <site name="end" pos="0.5 0 0.3"/>
      </body>
    </body>
    <body name="rocker" pos="0.7 0 0.3">
      <joint name="rocker" axis="0 1 0" springref="0.2" stiffness="3"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.5"/>
      <site name="top" pos="0 0 0.48"/>
    </body>
    <body name="cam" pos="0 1 0">
      <joint name="cam" axis="0 0 1" ref="0.3"/><geom type="box" size="0.1 0.05 0.03"/></body>
    <body name="follower" pos="0 1.5 0">
      <joint name="follow" type="slide" axis="1 0 0"/><geom type="box" size="0.1 0.05 0.03"/></body>
    <body name="wheel" pos="0 2 0">
      <joint name="wheel" axis="1 0 0"/><geom type="box" size="0.1 0.05 0.03"/></body>
    <body name="raft" pos="0 -1 0"><freejoint/>
      <geom type="box" size="0.1 0.2 0.05" pos="0.1 0 0"/>
      <body name="mast" pos="0 0 0.1"><joint name="ball" type="ball"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0.1 0.4"/></body>
    </body>
    <body name="first" pos="0 3 0"><joint name="one" axis="1 0 0" ref="0.2"/>
      <geom type="box" size="0.1 0.05 0.03" pos="0.1 0 0"/>
      <body name="second" pos="0.2 0 0"><joint name="two" axis="0 1 0"/>
        <geom type="box" size="0.1 0.05 0.03" pos="0.1 0 0"/>
        <body name="third" pos="0.2 0 0"><joint name="three" axis="0 1 0" ref="-0.1"/>
          <geom type="box" size="0.1 0.05 0.03" pos="0.1 0 0"/></body></body></body>
    <site name="shelf" pos="1 3 0" euler="0.4 0.2 0"/>
    <body name="lid" pos="1.1 3 0"><freejoint/><geom type="box" size="0.1 0.05 0.03"/>
      <site name="lid" pos="0 0.1 0" euler="0.1 0 0.5"/></body>
    <body name="boat" pos="0 -2 0"><freejoint/><geom type="box" size="0.1 0.2 0.05"/></body>
  </worldbody>
  <equality>
    <connect name="close" site1="end" site2="top"/>
    <connect name="rope" body1="mast" body2="boat" anchor="0 0 0.4"/>
    <joint name="lift" joint1="follow" joint2="cam" polycoef="0.05 0.5 0.3 0.1 0"/>
    <joint name="belt" joint1="wheel" joint2="cam" polycoef="0.1 -2 0 0 0"/>
    <weld name="tow" body1="raft" body2="boat"/>
    <weld name="bolt" site1="shelf" site2="lid"/>
    <tendon name="spread" tendon1="arms" tendon2="legs" polycoef="0.02 0.4 -0.6 0 0"/>
    <tendon name="level" tendon1="tie" polycoef="0.01 0 0 0 0"/>
  </equality>
  <tendon>
    <fixed name="arms"><joint joint="one" coef="1"/><joint joint="two" coef="-0.5"/></fixed>
    <fixed name="legs"><joint joint="two" coef="2"/><joint joint="three" coef="1"/></fixed>
    <fixed name="tie"><joint joint="three" coef="1"/><joint joint="wheel" coef="0.1"/></fixed>
  </tendon>
</mujoco>
"""


def model_of(text):
    return mujoco.MjModel.from_xml_string(text)


@pytest.fixture(scope="module")
def tree():
    return load_mjcf(TREE)


def test_the_equations_of_motion_are_those_of_mujoco(tree):
    """Mass matrix, bias with all forces, and accelerations at random states and controls."""
    errors = tree_errors(tree, model_of(TREE))
    for name in ("mass", "bias", "acceleration", "coordinates"):
        assert errors[name] < 1e-11, (name, errors)


def test_what_is_left_out_is_told(tree):
    told = {x.what: x.names for x in tree.left_out}
    assert told == {
        "joint limits": ("mast",),
        "activations of actuators": ("slow",),
    }
    assert tree.limits == {"mast": (-1.0, 1.0)}
    assert "1 joint limits" in str(tree) and "listed in .limits" in str(tree)
    with pytest.raises(ValueError, match="joint limits"):
        load_mjcf(TREE, strict=True)


def test_names(tree):
    """A slash separates the parts of a path; an actuator with a joint's name gets another."""
    assert tree.bodies["left.arm"] == tree.bodies["plate"] == "left.arm"
    assert tree.bodies["base"] == tree.bodies["world"] == "ground"
    assert tree.actuators["shoulder"] == "shoulder.motor" and tree.actuators["servo"] == "servo"
    rotor = mbd.variables(tree.mechanism)["forces/shoulder.rotor/inertia"]
    assert float(rotor.value) == pytest.approx(0.03 + 20**2 * 0.001)
    assert "wrist.x" in tree.mechanism.bodies and "wrist.turn" in tree.mechanism.bodies


def test_sites_move_with_their_bodies(tree):
    model = model_of(TREE)
    qpos, qvel, controls = random_state(model, np.random.default_rng(1))
    data = at_state(model, qpos, qvel, controls)
    found = mbd.point_position(tree.mechanism, tree.coordinates.q(qpos), tree.sites["mark"], "mark")
    np.testing.assert_allclose(found, data.site("mark").xpos, rtol=0, atol=1e-12)


def test_keyframes(tree):
    """A keyframe is the model's own, with quaternions of unit length."""
    model, home = model_of(TREE), tree.states["home"]
    qpos = model.key_qpos[0].copy()
    np.testing.assert_allclose(tree.coordinates.qpos(home.q), qpos, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        tree.coordinates.qvel(home.q, home.v), model.key_qvel[0], rtol=0, atol=1e-12
    )
    assert home.t == 2.0
    assert home.inputs == pytest.approx(
        dict(zip([tree.actuators[n] for n in ACTUATORS], np.arange(1, 11) / 10, strict=True))
    )
    drawn = tree.states["reference"].q
    np.testing.assert_allclose(drawn, mbd.neutral(tree.mechanism), rtol=0, atol=1e-15)


ACTUATORS = ("shoulder", "servo", "speed", "mixed", "slow", "sail")
ACTUATORS += ("push", "twist", "counter", "cable")


def test_friction_losses_and_stops():
    model = load_mjcf(TREE, limit_stiffness=300.0, velocity_scale=0.1)
    drag, stop = (model.mechanism.forces[n] for n in ("x.drag", "mast.stop"))
    assert (float(drag.dry), float(drag.velocity_scale)) == (0.2, 0.1)
    assert (float(stop.lower), float(stop.upper), float(stop.stiffness)) == (-1.0, 1.0, 300.0)
    assert "joint limits" not in {x.what for x in model.left_out}


def test_closed_loops_against_mujocos_own_matrices():
    """`connect` by sites that are apart as drawn, and by an anchor; a weld; two couplings."""
    loops = load_mjcf(LOOPS)
    assert loops.left_out == ()
    kinds = {n: type(c).__name__ for n, c in loops.mechanism.couplings.items()}
    coupled = dict.fromkeys(("lift", "spread", "level"), "Coupling")
    assert kinds == coupled | {"belt": "Gear"}
    cut = ("close", "rope", "tow", "bolt", "bolt.axis", "bolt.turn")
    assert mbd.topology(loops.mechanism).cut == cut
    close = loops.mechanism.joints["close"]
    assert (close.at.name, close.at_b.name) == ("end", "top")
    errors = loop_errors(loops, model_of(LOOPS))
    assert errors["rows"] == 3 + 3 + 2 + 6 + 6 + 2
    assert errors["closure"] < 1e-12 and errors["their closure"] < 1e-12
    assert errors["acceleration"] < 1e-10


def test_a_weld_that_turns_a_body():
    """It holds the pose that MuJoCo's does, from a drawn orientation 1.5 rad off at most."""
    text = """<mujoco><worldbody><body name="plate" pos="0 0 1"><freejoint/>
      <geom type="box" size="0.1 0.2 0.3"/></body></worldbody>
      <equality><weld body1="plate" relpose="{0}"/></equality></mujoco>"""
    for relpose in ("0.1 0.2 -0.9 1 0.3 -0.2 0.1", "0 0 -1 1 0.7 -0.3 0", "0 0 -1 1 1e-7 0 0"):
        model = load_mjcf(text.format(relpose))
        assert len(model.mechanism.joints) == 4
        qpos = model.coordinates.qpos(mbd.assemble(model.mechanism).q)
        place, turn = np.split(np.array(relpose.split(), float), [3])
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, turn / np.linalg.norm(turn))
        # The pose of the world in the plate.
        axes = axes.reshape(3, 3).T
        np.testing.assert_allclose(qpos[:3], -axes @ place, rtol=0, atol=1e-9)
        found = np.zeros(9)
        mujoco.mju_quat2Mat(found, np.asarray(qpos[3:]))
        np.testing.assert_allclose(found.reshape(3, 3), axes, rtol=0, atol=1e-9)


def test_an_imported_mechanism_can_be_saved(tmp_path):
    mech = load_mjcf(LOOPS).mechanism
    mbd.save(mech, tmp_path / "loops.json")
    again = mbd.load(tmp_path / "loops.json")
    assert again.structure == mech.structure


UNSAID = """
<mujoco>
  <option density="1.2"/>
  <asset><mesh name="shape" file="nowhere.stl"/><mesh file="gone.obj"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="given"><joint name="hinge" axis="0 1 0"/>
      <inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>
      <geom type="mesh" mesh="shape"/></body>
    <body name="lost" pos="1 0 0">
      <joint name="other" type="ball" stiffness="3" range="0 1" limited="true"/>
      <geom type="mesh" mesh="gone"/></body>
    <body name="hand" mocap="true" pos="0 0 1">
      <geom size="0.01" contype="0" conaffinity="0"/></body>
    <body name="round" pos="2 0 0"><joint name="third"/><geom name="stone" size="0.1"/>
      <site name="spot"/></body>
  </worldbody>
  <sensor><accelerometer name="where" site="spot"/></sensor>
  <tendon><fixed name="cord" stiffness="3" range="0 1" limited="true" springlength="0.1 0.2">
    <joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator>
    <motor name="pull" tendon="cord" armature="0.1"/>
    <motor name="push" site="spot" refsite="spot"/>
    <muscle name="biceps" joint="hinge" lengthrange="0.1 1"/>
  </actuator>
  <equality><joint name="off" joint1="hinge" active="false"/>
    <weld name="flip" body1="given" body2="round" relpose="2 0 0 0 1 0 0"/></equality>
</mujoco>
"""


def test_missing_meshes_and_what_has_no_equal():
    with pytest.warns(UserWarning, match=r"inertias of \['lost'\] are those of shapes"):
        model = load_mjcf(UNSAID)
    told = {x.what: x.names for x in model.left_out}
    assert told["missing files"] == ("gone", "shape")
    assert told["inertias"] == ("lost",) and not model.shapes.keys() & {"shape", "gone"}
    assert told["contact shapes"] == ("floor", "stone")
    assert told["springs of tendons"] == told["ranges of tendons"] == ("cord",)
    assert told["ranges of balls"] == ("other",) and told["sensors"] == ("where",)
    assert told["actuators of spatial tendons, sites on sites, adhesion"] == ("push",)
    assert told["armature and damping of actuators of tendons"] == ("pull",)
    assert told["actuators whose gain depends on the state"] == ("biceps",)
    assert told["equalities that are not active"] == ("off",)
    assert told["welds that turn a body by more than 80° from its drawn orientation"] == ("flip",)
    assert told["springs of balls and free joints"] == ("other",)
    assert told["mocap bodies"] == ("hand",) and told["media"] == ("density",)
    bodies = model.mechanism.bodies
    assert (float(bodies["given"].mass), float(bodies["lost"].mass)) == (2.0, 0.0)
    assert model.bodies["hand"] == "ground"


def test_files(tmp_path):
    """A path, with an include; a file that is missing, and one that is no model."""
    (tmp_path / "part.xml").write_text(
        '<mujoco><worldbody><body name="b"><joint/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    (tmp_path / "whole.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    assert list(load_mjcf(tmp_path / "whole.xml").mechanism.joints) == ["joint0"]
    with pytest.raises(FileNotFoundError, match="nowhere.xml"):
        load_mjcf(tmp_path / "nowhere.xml")
    with pytest.raises(ValueError, match="MuJoCo cannot read this text"):
        load_mjcf("<mujoco><wordbody/></mujoco>")
    with pytest.raises(ValueError, match="MuJoCo cannot compile"):
        load_mjcf("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>")


def test_disabled_physics():
    """What the model's flags switch off does not act."""
    off = '<option><flag gravity="disable" spring="disable" actuation="disable"/></option>'
    text = TREE.replace('<option gravity="0.3 0.1 -9.7"/>', off)
    model, names = load_mjcf(text), set(load_mjcf(text).mechanism.forces)
    assert not any(n.endswith((".spring", ".motor", ".gravcomp")) for n in names)
    assert not jnp.any(model.mechanism.gravity) and not model.actuators


def test_the_comparison_notices_a_wrong_model(tree):
    """A mass that is wrong by a millionth is an error of a millionth."""
    model = model_of(TREE)
    model.body_mass[model.body("knob").id] *= 1.0 + 1e-6
    errors = tree_errors(tree, model, states=1)
    assert errors["mass"] > 1e-8 and errors["acceleration"] > 1e-8
    assert simplified(model_of(TREE), tree) == list(ACTUATORS)


NAMES = """
<mujoco>
  <compiler angle="radian"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="a" euler="0.3 0.2 0.1">
      <joint name="j" axis="0 1 0" stiffness="4" damping="0.5" armature="0.3"/>
      <geom size="0.1" pos="0.3 0 0"/>
      <body name="b" pos="0.5 0 0" gravcomp="0.4">
        <joint name="k" axis="1 1 0" damping="0.2"/><geom size="0.1" pos="0.2 0 0"/>
        <site name="s" pos="0.1 0.2 0.3"/>
      </body>
    </body>
    <site name="world"/>
  </worldbody>
  <tendon>
    <fixed name="m" stiffness="5" springlength="0.3">
      <joint joint="j" coef="1"/><joint joint="k" coef="-2"/></fixed>
  </tendon>
  <actuator>
    <motor name="m" joint="j" gear="3"/>
    <motor name="j" joint="k" gear="-3"/>
    <motor name="j.motor" joint="j" gear="2"/>
    <motor name="j.spring" joint="k" gear="0.7"/>
    <motor name="k.drag" joint="k" gear="0.9"/>
    <motor name="j.rotor" joint="j" gear="1.1"/>
    <motor name="b.gravcomp" joint="j" gear="1.3"/>
    <motor name="load.torque" joint="k" gear="1.7"/>
    <general name="load" site="s" refsite="world" gear="1 2 3 0.3 0.2 0.1" biastype="affine"
      gainprm="0" biasprm="2"/>
  </actuator>
</mujoco>
"""


def test_forces_of_the_same_name_in_different_kinds_of_parts():
    compiled, model = model_of(NAMES), load_mjcf(NAMES)
    assert model.left_out == ()
    own = [compiled.actuator(i).name for i in range(compiled.nu)]
    assert list(model.actuators) == [n for n in own if n != "load"]
    assert model.actuators["m"] == "m" and model.actuators["j.motor"] == "j.motor"
    assert len(set(model.actuators.values())) == 8 and "m.tendon" in model.mechanism.forces
    loads = [type(model.mechanism.forces[n]) for n in ("load", "load.torque.load")]
    assert loads == [mbd.PointForce, mbd.Torque]
    # The comparison switches off the actuators that have no input.
    still = {"load": None, "load.torque.load": None}
    model = dataclasses.replace(model, mechanism=model.mechanism.replace(forces=still))
    errors = tree_errors(model, compiled)
    for name in ("mass", "bias", "acceleration", "coordinates"):
        assert errors[name] < 1e-11, (name, errors)


def test_a_weld_without_a_scale_of_its_torque_holds_a_point():
    text = LOOPS_OF_TWO % ""
    weld = load_mjcf(LOOPS_OF_TWO % "torquescale='0'").mechanism.joints["hold"]
    assert isinstance(load_mjcf(text).mechanism.joints["hold"], mbd.Fixed)
    assert isinstance(weld, mbd.Spherical)


LOOPS_OF_TWO = """
<mujoco><worldbody>
  <body name="a"><joint axis="0 1 0"/><geom size="0.1" pos="0.3 0 0" contype="0"/></body>
  <body name="b" pos="0.5 0 0"><freejoint/><geom size="0.1" contype="0" conaffinity="0"/></body>
</worldbody><equality><weld name="hold" body1="a" body2="b" %s/></equality></mujoco>
"""


def test_a_body_that_is_called_as_one_between_two_joints():
    text = """<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0"/>
      <joint name="k" axis="1 1 0"/><geom size="0.1" contype="0" pos="0.3 0 0"/>
      <body name="a.j" pos="0.5 0 0"><joint name="m" axis="1 1 0"/>
      <geom size="0.1" pos="0.2 0 0" contype="0" conaffinity="0"/></body></body>
      </worldbody></mujoco>"""
    assert list(load_mjcf(text).mechanism.bodies) == ["a.j.between", "a", "a.j"]


def test_two_bodies_between_joints_that_would_be_called_alike():
    """Joint b.c of body a, and joint c of body a.b."""
    text = """<mujoco><worldbody>
      <body name="a"><joint name="b.c"/><joint name="d" axis="1 0 0"/><geom size="0.1"/></body>
      <body name="a.b" pos="1 0 0"><joint name="c"/><joint name="e" axis="1 0 0"/>
        <geom size="0.1"/></body>
    </worldbody></mujoco>"""
    mech = load_mjcf(text).mechanism
    assert list(mech.bodies) == ["a.b.c", "a", "a.b.c.between", "a.b"]
    assert (mech.joint("d").a, mech.joint("e").a) == ("a.b.c", "a.b.c.between")
