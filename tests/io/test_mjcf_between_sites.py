"""Straight tendons and constant loads of MuJoCo's models: springs, rods, forces and torques."""

import mujoco
import numpy as np
import pytest
from import_cases.against_mujoco import at_state, full_mass

import jaxmbd as mbd
from jaxmbd.io import load_mjcf

MODEL = """
<mujoco>
  <option><flag contact="disable"/></option>
  <worldbody>
    <site name="wall" pos="0.1 0.2 0.9" euler="0 30 10"/>
    <body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0"/>
      <geom size="0.1" pos="0.4 0 0"/><site name="eye" pos="0.3 0 0.1"/>
      <body name="hand" pos="0.5 0 0"><joint name="slide" type="slide" axis="1 0 1"/>
        <geom size="0.1 0.1 0.2" type="box" pos="0.3 0 0"/><site name="end" pos="0.5 0 0"/></body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="spring" stiffness="333" damping="3" springlength="0.2">
      <site site="eye"/><site site="wall"/></spatial>
    <spatial name="length"><site site="end"/><site site="wall"/></spatial>
    <spatial name="slack" stiffness="5" springlength="0.1 0.2">
      <site site="end"/><site site="wall"/></spatial>
    <spatial name="bent" stiffness="5">
      <site site="end"/><site site="eye"/><site site="wall"/></spatial>
    <spatial name="belt" range="0 1"><site site="eye"/><site site="wall"/></spatial>
  </tendon>
  <equality><tendon name="rod" tendon1="length" polycoef="0.01 0 0 0 0"/>
    <tendon name="pair" tendon1="length" tendon2="bent"/></equality>
  <actuator>
    <general name="load" site="end" refsite="wall" gear="1 2 3 0 0.5 1" gainprm="0"
      biastype="affine" biasprm="2"/>
    <motor name="jet" site="end" refsite="wall" gear="1 0 0 0 0 0"/>
  </actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def imported():
    return load_mjcf(MODEL)


def test_springs_and_loads_act_as_in_mujoco(imported):
    """Bias at a random state, without the tendons that are left out."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    for name in ("slack", "bent"):
        model.tendon_stiffness[model.tendon(name).id] = 0.0
    model.eq_active0[:] = 0
    rng = np.random.default_rng(0)
    qpos, qvel = 0.3 * rng.normal(size=2), rng.normal(size=2)
    data = at_state(model, qpos, qvel, np.zeros(2))
    open_loop = imported.mechanism.replace(joints={"rod": None}, cut=None)
    found = mbd.bias(open_loop, imported.coordinates.q(qpos), imported.coordinates.v(qpos, qvel))
    theirs = data.qfrc_bias - data.qfrc_passive - data.qfrc_actuator
    np.testing.assert_allclose(found, theirs, rtol=1e-12)


def test_a_tendon_held_in_length_is_a_rod(imported):
    model = mujoco.MjModel.from_xml_string(MODEL)
    mech, places = imported.mechanism, imported.coordinates
    assert mbd.topology(mech).cut == ("rod",)
    q = mbd.assemble(mech, guess=places.q(np.array([0.2, 0.1]))).q
    data = at_state(model, np.asarray(places.qpos(q)), np.zeros(2), np.zeros(2))
    tendon = model.tendon("length").id
    assert data.ten_length[tendon] - model.tendon_length0[tendon] == pytest.approx(0.01, abs=1e-12)
    # At rest the row is MuJoCo's own: J v̇ = 0.
    full = full_mass(model, data)
    row = np.asarray(mbd.constraint_jacobian(mech, q))
    np.testing.assert_allclose(mbd.mass_matrix(mech, q), full, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        np.abs(row), np.abs(np.atleast_2d(data.efc_J[:2])), rtol=0, atol=1e-12
    )


def test_what_is_left_out_is_told(imported):
    told = {x.what: (x.names, x.consequence) for x in imported.left_out}
    assert told == {
        "springs of tendons": (("slack", "bent"), "absent"),
        "ranges of tendons": (("belt",), "absent"),
        "equalities of spatial tendons": (("pair",), "absent"),
        "actuators of spatial tendons, sites on sites, adhesion": (("jet",), "absent"),
    }
