"""Stages of USD as mechanisms: the same physics as by MJCF and by hand, nothing dropped."""

import json
import sys
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from accuracy_cases import usd_robot
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics
from scipy.spatial.transform import Rotation

import jaxmbd as mbd
from jaxmbd.io import load_mjcf, load_usd

DATA = Path(__file__).resolve().parent.parent / "data"
LEG = DATA / "stages/leg.usda"
LOOPS = ("coupler_rocker", "shank_foot")
# The six-bar leg of leg.usda.
AS_MJCF = """
<mujoco model="leg">
  <option gravity="0 0 -9.75"/>
  <worldbody>
    <body name="hip" pos="0 0 1">
      <freejoint name="hip.free"/>
      <inertial pos="0.25 0.125 0" mass="4"
        diaginertia="0.25 0.5 0.375"/>
      <body name="crank">
        <joint name="hip_crank" axis="0 1 0" armature="0.03125"/>
        <inertial pos="0 0 0.125" mass="0.5"
          diaginertia="0.0078125 0.00390625 0.0078125" quat="0.5 0.5 0.5 0.5"/>
        <body name="coupler" pos="0 0 0.25">
          <joint name="crank_coupler" axis="0 1 0"/>
          <inertial pos="0.25 0 0.125" mass="1"
            diaginertia="0.03125 0.0625 0.046875" quat="0.8 0 0.6 0"/>
          <body name="shank" pos="0.25 0 0.5">
            <joint name="coupler_shank" axis="0 1 0"/>
            <inertial pos="0.125 0.0625 -0.5" mass="1.25"
              diaginertia="0.125 0.125 0.015625" quat="0.6 0 0 0.8"/>
          </body>
        </body>
      </body>
      <body name="rocker" pos="0.5 0 0">
        <joint name="hip_rocker" axis="0 1 0" range="-45 90"/>
        <inertial pos="0.125 0 0.25" mass="0.75"
          diaginertia="0.015625 0.03125 0.0234375"/>
        <body name="foot" pos="0.25 0 0.625">
          <joint name="rocker_foot" axis="0 1 0"/>
          <inertial pos="-0.0625 0 -0.5" mass="1"
            diaginertia="0.0625 0.078125 0.03125"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality>
    <connect name="coupler_rocker" body1="coupler" body2="rocker" anchor="0.5 0 0.125"/>
    <connect name="shank_foot" body1="shank" body2="foot" anchor="0.375 0 -1"/>
  </equality>
  <actuator>
    <position name="motor" joint="hip_crank"
      kp="28.647889756541161" kv="3.5809862195676452" forcerange="-32 32"/>
  </actuator>
</mujoco>
"""


@cache
def leg():
    return load_usd(LEG)


@cache
def twin():
    return load_mjcf(AS_MJCF)


@cache
def equations():
    """A function of a mechanism, a state and the drive's target: M, accelerations, residual."""

    @jax.jit
    def of(mech, q, v, target):
        inputs = {name: target for name, f in mech.forces.items() if isinstance(f, mbd.Actuator)}
        vdot, _ = mbd.forward_dynamics(mech, q, v, inputs=inputs)
        return mbd.mass_matrix(mech, q), vdot, mbd.constraint_residual(mech, q)

    return of


def places(mech, part, names):
    """Where the numbers of joints are in q ("q") or v ("v")."""
    layout = mbd.topology(mech).layout
    return np.concatenate([np.r_[getattr(layout[n], part)] for n in names])


@cache
def a_state():
    """Coordinates and speeds of the leg on its constraints, and coordinates off them."""
    mech, rng = leg().mechanism, np.random.default_rng(0)
    top = mbd.topology(mech)
    off = np.asarray(mbd.neutral(mech)) + 0.1 * rng.normal(size=top.nq)
    free = top.layout["hip.free"].q
    off[free.start : free.start + 4] /= np.linalg.norm(off[free.start : free.start + 4])
    q = np.asarray(mbd.assemble(mech, guess=off).q)
    rows, v = np.asarray(mbd.constraint_jacobian(mech, q)), rng.normal(size=top.nv)
    return q, v - np.linalg.pinv(rows, rcond=1e-9) @ rows @ v, off


def changed_leg(change):
    """The leg's stage after a change."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(LEG.read_text(encoding="utf-8"))
    stage = Usd.Stage.Open(layer)
    change(stage)
    return stage


def test_a_closed_loop_robot_is_that_of_mjcf():
    """The same mass matrix and accelerations, and the three force rows of each loop."""
    usd, mjcf = leg().mechanism, twin().mechanism
    assert set(mbd.topology(usd).cut) == set(LOOPS) == set(mbd.topology(mjcf).cut)
    names = mbd.topology(usd).tree

    def theirs(x, part):
        out = np.zeros_like(x)
        out[places(mjcf, part, names)] = x[places(usd, part, names)]
        return out

    q, v, off = a_state()
    mass, vdot, _ = equations()(usd, q, v, 0.3)
    their_mass, their_vdot, _ = equations()(mjcf, theirs(q, "q"), theirs(v, "v"), 0.3)
    at, to = (places(m, "v", names) for m in (usd, mjcf))
    near = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(mass[np.ix_(at, at)], their_mass[np.ix_(to, to)], **near)
    np.testing.assert_allclose(vdot[at] / abs(vdot).max(), their_vdot[to] / abs(vdot).max(), **near)
    rows = equations()(usd, off, v, 0.3)[2]
    their_rows = equations()(mjcf, theirs(off, "q"), theirs(v, "v"), 0.3)[2]
    assert np.abs(rows).max() > 0.01
    for name in LOOPS:
        first, second = (mbd.topology(m).layout[name].rows.start for m in (usd, mjcf))
        ours = rows[first : first + 3]
        np.testing.assert_allclose(ours, their_rows[second : second + 3], **near)


def test_what_the_leg_has_and_has_not():
    found = leg()
    assert found.actuators == {"hip_crank": "hip_crank.drive"}
    np.testing.assert_allclose(found.limits["hip_rocker"], np.radians([-45, 90]), rtol=1e-15)
    assert found.bodies["/leg/stand"] == found.bodies["world"] == "ground"
    assert found.bodies["/leg/foot"] == "foot"
    assert {x.what: x.names for x in found.left_out} == {
        "kinematic bodies": ("stand",),
        "joints that are not enabled": ("clamp",),
        "joint limits": ("hip_rocker",),
        "contact shapes": ("sole",),
    }
    drive = found.mechanism.forces["hip_crank.drive"]
    np.testing.assert_allclose(drive.control, np.pi / 4, rtol=1e-15)
    np.testing.assert_allclose(drive.force_range, [-32, 32])
    with pytest.raises(ValueError, match="contact shapes"):
        load_usd(LEG, strict=True)
    stops = load_usd(LEG, limit_stiffness=100.0)
    assert isinstance(stops.mechanism.forces["hip_rocker.stop"], mbd.JointLimit)
    assert "joint limits" not in {x.what for x in stops.left_out}


def in_other_units(stage, metre, kilogram, y_up):
    """The same robot in other units, and with y up."""
    UsdGeom.SetStageMetersPerUnit(stage, metre)
    UsdPhysics.SetStageKilogramsPerUnit(stage, kilogram)
    moment = kilogram * metre**2
    scales = {
        **dict.fromkeys(("xformOp:translate", "localPos0", "localPos1", "centerOfMass"), metre),
        **{"physics:mass": kilogram, "diagonalInertia": moment, "armature": moment},
        **dict.fromkeys(("stiffness", "damping", "maxForce"), moment),
        "gravityMagnitude": metre,
    }
    for prim in stage.Traverse():
        for attribute in prim.GetAuthoredAttributes():
            scale = next((s for n, s in scales.items() if attribute.GetName().endswith(n)), None)
            if scale is not None:
                attribute.Set(attribute.Get() * (1.0 / scale))
    if y_up:
        UsdGeom.SetStageUpAxis(stage, "Y")
        UsdGeom.Xform(stage.GetPrimAtPath("/leg")).AddRotateXOp().Set(-90.0)
        scene = UsdPhysics.Scene(stage.GetPrimAtPath("/scene"))
        scene.GetGravityDirectionAttr().Set((0, -1, 0))


@pytest.mark.parametrize("units", [(0.01, 1.0, False), (1.0, 1e-3, True), (0.01, 0.45359237, True)])
def test_units_and_the_axis_that_is_up_do_not_change_the_physics(units):
    """To the digits of single precision, in which the changed numbers are stored."""
    other = load_usd(changed_leg(lambda stage: in_other_units(stage, *units))).mechanism
    mech = leg().mechanism
    assert mbd.topology(other).layout == mbd.topology(mech).layout
    q, v, off = a_state()
    for x, parts in ((q, slice(2)), (off, slice(2, 3))):
        found = [equations()(m, x, v, 0.3)[parts] for m in (mech, other)]
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-6 * np.abs(ours).max())


def disturbed(stage, size):
    """Joint frames that differ by `size` in each number."""
    rng = np.random.default_rng(1)
    for prim in stage.Traverse():
        if not prim.IsA(UsdPhysics.RevoluteJoint):
            continue
        joint = UsdPhysics.Joint(prim)
        for point in (joint.GetLocalPos0Attr(), joint.GetLocalPos1Attr()):
            point.Set(point.Get() + Gf.Vec3f(*map(float, size * rng.uniform(-1, 1, 3))))
        for turn in (joint.GetLocalRot0Attr(), joint.GetLocalRot1Attr()):
            turn.Set(Gf.Quatf(1.0, *map(float, size * rng.uniform(-1, 1, 3))))


def test_frames_that_agree_to_their_digits_become_one():
    """The redundant rows of planar loops then do not contradict each other as it moves."""
    found = load_usd(changed_leg(lambda stage: disturbed(stage, 2e-7)))
    changes = {x.what: x for x in found.left_out}
    for what in ("joint points that differ in their digits", "axes that differ in their digits"):
        assert len(changes[what].names) > 4 and "e-07" in changes[what].consequence
    axes = np.array([j.axis for j in found.mechanism.joints.values() if hasattr(j, "axis")])
    assert len(axes) == 7 and not np.ptp(axes, axis=0).any()
    assert all(j.at_b is None for j in found.mechanism.joints.values() if hasattr(j, "at_b"))
    strict = {"joint limits", "kinematic bodies", "joints that are not enabled", "contact shapes"}
    assert set(changes) - strict == {x for x in changes if "digits" in x}


def test_frames_that_differ_more_are_drawn_apart():
    found = load_usd(changed_leg(lambda stage: disturbed(stage, 1e-3)))
    joints = [j for n, j in found.mechanism.joints.items() if n != "hip.free"]
    assert all(j.at_b is not None and j.axis_b is not None for j in joints)
    assert not any("digits" in x.what for x in found.left_out)


def test_the_leg_closes_and_keeps_its_energy():
    mech = leg().mechanism.replace(forces={"hip_crank.drive": None})
    start = mbd.assemble(mech, {"hip_crank": 0.2})
    assert start.residual < 1e-12
    v = mbd.assemble_velocity(mech, start.q, {"hip_crank": 2.0})
    run = mbd.simulate(mech, start.q, v, t1=0.2, dt=1e-3, save_every=200)
    total = [
        float(mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q))
        for q, v in zip(run.q, run.v, strict=True)
    ]
    np.testing.assert_allclose(total[-1], total[0], rtol=1e-8)
    assert abs(float(mbd.kinetic_energy(mech, run.q[-1], run.v[-1])) - total[0]) > 1.0


def test_a_biped_of_six_loops_is_as_its_numbers():
    """Written with usd-core and read, against a mechanism made of the same numbers by hand."""
    data = json.loads((DATA / "groundtruth/six_loop_biped.json").read_text(encoding="utf-8"))
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, "Z")
    for name, body in data["bodies"].items():
        xform = UsdGeom.Xform.Define(stage, f"/{name}")
        xform.AddTranslateOp().Set(Gf.Vec3d(*body["translate"]))
        UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
        mass = UsdPhysics.MassAPI.Apply(xform.GetPrim())
        mass.CreateMassAttr(body["mass"])
        mass.CreateCenterOfMassAttr(Gf.Vec3f(*body["com"]))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*body["diagonalInertia"]))
        mass.CreatePrincipalAxesAttr(Gf.Quatf(*body["principalAxes_wxyz"]))
    for name, given in data["joints"].items():
        joint = UsdPhysics.RevoluteJoint.Define(stage, f"/{name}")
        for k in (0, 1):
            joint.GetPrim().GetRelationship(f"physics:body{k}").AddTarget(f"/{given[f'body{k}']}")
            joint.GetPrim().GetAttribute(f"physics:localPos{k}").Set(
                Gf.Vec3f(*given[f"localPos{k}"])
            )
            joint.GetPrim().GetAttribute(f"physics:localRot{k}").Set(
                Gf.Quatf(*given[f"localRot{k}_wxyz"])
            )
    mech, wanted = load_usd(stage).mechanism, usd_robot.build(data)
    assert mech.structure.bodies == wanted.structure.bodies
    for name, body in wanted.bodies.items():
        for part in ("mass", "com", "inertia"):
            ours, theirs = getattr(mech.bodies[name], part), getattr(body, part)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-15)
    for name in data["joints"]:
        ours, theirs = mech.joints[name], wanted.joints[name]
        assert (ours.a, ours.b, ours.at_b, ours.axis_b) == (theirs.a, theirs.b, None, None)
        np.testing.assert_allclose(ours.axis, theirs.axis, rtol=0, atol=1e-15)
        at, wanted_at = mech.points[f"{name}.at"], wanted.points[f"{name}.at"]
        np.testing.assert_allclose(at, wanted_at, rtol=0, atol=1e-15)
    assert isinstance(mech.joints["pelvis.free"], mbd.Free)


def read(text):
    """A stage of text, whose blocks may stand in one line."""
    return load_usd(text.replace("{ ", "{\n").replace(" }", "\n}"))


def test_coordinates_are_those_of_the_frames_in_the_stage():
    """Of the floating hip its frame's place, and all back again; a ball's as MuJoCo's."""
    found, rng = leg(), np.random.default_rng(4)
    turn = rng.normal(size=4)
    qpos = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn), rng.normal(size=5)])
    q, qvel = found.coordinates.q(qpos), rng.normal(size=11)
    np.testing.assert_allclose(found.coordinates.qpos(q), qpos, rtol=0, atol=1e-12)
    v = found.coordinates.v(qpos, qvel)
    np.testing.assert_allclose(found.coordinates.qvel(q, v), qvel, rtol=0, atol=1e-12)
    at = mbd.point_position(found.mechanism, q, "hip", (0, 0, 1))
    np.testing.assert_allclose(at, qpos[:3], rtol=0, atol=1e-12)
    rate = mbd.point_velocity(found.mechanism, q, v, "hip", (0, 0, 1))
    np.testing.assert_allclose(rate, qvel[:3], rtol=0, atol=1e-12)
    np.testing.assert_allclose(q[mbd.topology(found.mechanism).layout["hip_crank"].q], qpos[7])


@pytest.mark.parametrize("ends", [("", "/arm"), ("/arm", "")])
def test_a_ball_to_the_world_either_way_round(ends):
    """Its qpos is the orientation of the arm's frame."""
    found = read(HEAD + body("arm") + joint("SphericalJoint", ends=ends))
    qpos = np.array([0.5, -0.5, 0.5, 0.5])
    tip = mbd.point_position(found.mechanism, found.coordinates.q(qpos), "arm", (1, 2, 3))
    turn = Rotation.from_quat(np.roll(qpos, -1))
    np.testing.assert_allclose(tip, turn.apply([1, 2, 3]), rtol=0, atol=1e-12)


HEAD = """#usda 1.0
(metersPerUnit = 1
 upAxis = "Z")
"""


def body(name, text="float physics:mass = 2", api=""):
    return f"""
def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"{api}])
{{
{text}
}}
"""


def joint(kind, text="", api="", ends=("", "/arm")):
    rels = "".join(f"rel physics:body{k} = <{x}>\n" for k, x in enumerate(ends) if x)
    return f"""
def Physics{kind} "hinge" ({api and f"prepend apiSchemas = [{api}]"})
{{
{rels}{text}
}}
"""


def test_principal_inertias_turn_with_axes_and_body():
    turns = Rotation.random(2, random_state=3)
    first, second = (np.roll(x, 1) for x in turns.as_quat())
    text = f"""
        float physics:mass = 3
        point3f physics:centerOfMass = (0.1, 0.2, 0.3)
        float3 physics:diagonalInertia = (0.1, 0.2, 0.25)
        quatf physics:principalAxes = {tuple(map(float, second))}
        double3 xformOp:translate = (1, 2, 3)
        quatd xformOp:orient = {tuple(map(float, first))}
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]
    """
    found = read(HEAD + body("arm", text)).mechanism.bodies["arm"]
    axes = (turns[0] * turns[1]).as_matrix()
    wanted = axes @ np.diag([0.1, 0.2, 0.25]) @ axes.T
    np.testing.assert_allclose(found.inertia, wanted, rtol=0, atol=1e-7)
    com = np.array([1, 2, 3]) + turns[0].apply([0.1, 0.2, 0.3])
    np.testing.assert_allclose(found.com, com, rtol=0, atol=1e-12)


DRIVEN = """
    uniform token physics:axis = "Y"
    quatf physics:localRot1 = (0.9659258, 0, 0.25881905, 0)
    float physics:lowerLimit = -90
    float drive:angular:physics:stiffness = 2
    float drive:angular:physics:damping = 0.5
    float drive:angular:physics:targetPosition = 45
    float drive:angular:physics:targetVelocity = 10
    float physxJoint:jointFriction = 0.1
    float physxJointAxis:angular:dynamicFrictionEffort = 0.25
    float physxJointAxis:angular:viscousFrictionCoefficient = 0.125
    float physxJointAxis:angular:armature = 0.5
"""


def test_coordinates_limits_and_drives_of_a_joint_that_is_not_drawn_at_zero():
    """The frame on the arm is turned by 30° from that on the ground: so is the coordinate."""
    text = HEAD + body("arm") + joint("RevoluteJoint", DRIVEN, '"PhysicsDriveAPI:angular"')
    found = read(text)
    q = found.coordinates.q(jnp.radians(jnp.array([45.0])))
    np.testing.assert_allclose(q, [np.pi / 12], rtol=1e-6)
    np.testing.assert_allclose(found.coordinates.qpos(q), [np.pi / 4], rtol=1e-12)
    lower, upper = found.limits["hinge"]
    assert (lower, upper) == (pytest.approx(-np.pi * 2 / 3, rel=1e-6), np.inf)
    mech = found.mechanism.replace(forces={"hinge.drag": None, "hinge.rotor": None})
    v = np.array([0.2])
    torque, _ = mbd.inverse_dynamics(mech, np.zeros(1), v, np.zeros(1))
    degrees, rate = 15.0, 10.0 - np.degrees(0.2)
    np.testing.assert_allclose(-torque, [2 * degrees + 0.5 * rate], rtol=1e-6)
    drag = found.mechanism.forces["hinge.drag"]
    np.testing.assert_allclose([drag.dry, drag.viscous], [0.25, np.degrees(0.125)], rtol=1e-12)
    assert float(found.mechanism.forces["hinge.rotor"].inertia) == 0.5
    assert ("friction coefficients of joints", ("hinge",)) in {x[:2] for x in found.left_out}


@pytest.mark.parametrize(
    ("gains", "effort"),
    [
        ("float drive:linear:physics:stiffness = 3", 3 * (0.7 - 0.5)),
        ("float drive:linear:physics:damping = 3", 3 * (0.7 - 0.2)),
        ("float drive:linear:physics:maxForce = 0.5", 0.5),
    ],
)
def test_controls_are_positions_velocities_or_efforts(gains, effort):
    """Of a slide, which is drawn half a metre out, at a speed of 0.2 m/s."""
    text = f"point3f physics:localPos1 = (0.5, 0, 0)\n{gains}"
    found = read(HEAD + body("arm") + joint("PrismaticJoint", text, '"PhysicsDriveAPI:linear"'))
    assert isinstance(found.mechanism.joints["hinge"], mbd.Prismatic)
    inputs, v = {"hinge.drive": 0.7}, np.array([0.2])
    torque, _ = mbd.inverse_dynamics(found.mechanism, np.zeros(1), v, np.zeros(1), inputs=inputs)
    np.testing.assert_allclose(-torque, [effort], rtol=1e-12)


AXES = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")


@pytest.mark.parametrize(
    ("free", "kind"),
    [
        ((), mbd.Fixed),
        (("rotY",), mbd.Revolute),
        (("transZ",), mbd.Prismatic),
        (("transX", "rotX"), mbd.Cylindrical),
        (AXES[3:], mbd.Spherical),
        (("rotX", "rotY"), None),
        (("transX", "rotY"), None),
        (AXES, None),
    ],
)
def test_generic_joints(free, kind):
    locked = [a for a in AXES if a not in free]
    text = "".join(
        f"float limit:{a}:physics:low = 1\nfloat limit:{a}:physics:high = -1\n" for a in locked
    )
    stage = HEAD + body("arm") + joint("Joint", text)
    if kind is None:
        with pytest.raises(ValueError, match=r"/hinge: a joint that leaves .* LimitAPI"):
            read(stage)
        return
    found = read(stage).mechanism.joints["hinge"]
    assert type(found) is kind
    if len(free) in (1, 2):
        np.testing.assert_array_equal(found.axis, np.eye(3)["XYZ".index(free[-1][-1])])


def test_a_distance_is_a_rod_and_only_excluded_joints_of_loops_are_cut():
    distance = "float physics:minDistance = 2\nfloat physics:maxDistance = 2"
    text = f"{distance}\npoint3f physics:localPos1 = (1, 0, 0)"
    rod = read(HEAD + body("arm") + joint("DistanceJoint", text)).mechanism
    assert float(rod.joints["hinge"].length) == 2.0 and mbd.topology(rod).cut == ("hinge",)
    assert isinstance(rod.joints["arm.free"], mbd.Free)
    alone = joint("RevoluteJoint", "bool physics:excludeFromArticulation = 1")
    hinged = read(HEAD + body("arm") + alone).mechanism
    assert mbd.topology(hinged).tree == ("hinge",)


@pytest.mark.parametrize(
    ("excluded", "cut"),
    [
        (("hip_rocker", "shank_foot"), {"hip_rocker", "shank_foot"}),
        ((), set(LOOPS)),  # as topology chooses
    ],
)
def test_the_file_says_what_is_cut(excluded, cut):
    def change(stage):
        for prim in stage.Traverse():
            if prim.IsA(UsdPhysics.Joint):
                flag = UsdPhysics.Joint(prim).GetExcludeFromArticulationAttr()
                flag.Set(prim.GetName() in excluded)

    assert set(mbd.topology(load_usd(changed_leg(change)).mechanism).cut) == cut


def test_a_slide_in_centimetres():
    text = """
        point3f physics:localPos1 = (50, 0, 0)
        float physics:lowerLimit = -20
        float physics:upperLimit = 80
        float physxJoint:armature = 0.25
        float physxJointAxis:linear:dynamicFrictionEffort = 100
        float drive:linear:physics:stiffness = 3
        float drive:linear:physics:maxForce = 200
    """
    stage = "#usda 1.0\n" + body("arm") + joint("PrismaticJoint", text, '"PhysicsDriveAPI:linear"')
    found = read(stage)
    forces = found.mechanism.forces
    np.testing.assert_allclose(found.limits["hinge"], (-0.7, 0.3), rtol=1e-12)
    assert float(forces["hinge.rotor"].inertia) == 0.25
    assert float(forces["hinge.drag"].dry) == pytest.approx(1.0, rel=1e-15)
    np.testing.assert_allclose(forces["hinge.drive"].force_range, (-2, 2), rtol=1e-15)
    np.testing.assert_allclose(forces["hinge.drive"].bias, (-1.5, -3, 0), rtol=1e-12)


def test_shapes():
    text = """
        float physics:mass = 2
        def Capsule "rod" { uniform token axis = "X"
            double height = 2
            double radius = 0.25 }
        def Sphere "egg" { float3 xformOp:scale = (1, 2, 3)
            uniform token[] xformOpOrder = ["xformOp:scale"] }
        def Cone "hat" {}
        def Mesh "plate" { point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
            int[] faceVertexCounts = [4]
            int[] faceVertexIndices = [0, 1, 2, 3]
            uniform token orientation = "leftHanded"
            color3f[] primvars:displayColor = [(1, 0, 0)] }
        def Cube "touch" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}
        def Cube "hidden" { uniform token purpose = "guide" }
        point3f physics:centerOfMass = (0, 0, 0)
        float3 physics:diagonalInertia = (1, 1, 1)
        double3 xformOp:translate = (100, 200, 300)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    """
    found = read("#usda 1.0\n" + body("arm", text))
    shapes = found.shapes
    assert set(shapes) == {"rod", "egg", "plate"}
    assert ("shapes of other kinds", ("hat",)) in {x[:2] for x in found.left_out}
    rod, egg, plate = shapes["rod"], shapes["egg"], shapes["plate"]
    np.testing.assert_allclose(rod.position, [1, -3, 2])  # in centimetres with y up
    np.testing.assert_allclose(np.abs(rod.rotation[:, 2]), [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(rod.size, [0.0025, 0.01, 0])
    assert egg.kind == "ellipsoid"
    np.testing.assert_allclose(np.abs(egg.rotation) @ egg.size, [0.01, 0.03, 0.02], atol=1e-15)
    assert plate.colour == (1.0, 0.0, 0.0, 1.0) and plate.body == "arm"
    a, b, c = (plate.vertices[k] for k in plate.faces.T)
    normal = np.cross(b - a, c - a)
    np.testing.assert_allclose(normal, [[0, 1e-4, 0]] * 2, atol=1e-18)


SHAPE = 'def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}'
SHEARED = """float physics:mass = 1
    matrix4d xformOp:transform = ((1,0,0,0), (0.5,1,0,0), (0,0,1,0), (0,0,0,1))
    uniform token[] xformOpOrder = ["xformOp:transform"]"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (body("arm", "float physics:density = 5"), "/arm leaves mass .*MassAPI"),
        (body("arm", f"float physics:mass = 1\n{SHAPE}"), "leaves centerOfMass, diagonalInertia"),
        (body("arm", SHEARED), "/arm: its transform shears"),
        ('def Xform "arm" {}', "no prim of this stage is a moving rigid body"),
        (body("arm") + joint("DistanceJoint"), "/hinge: it keeps a distance between -1 and -1"),
        (
            body("arm") + joint("RevoluteJoint", "quatf physics:localRot1 = (0, 0, 1, 0)"),
            "/hinge: its frames' axes are opposed",
        ),
        (
            body("arm") + joint("FixedJoint", "quatf physics:localRot1 = (0.9, 0, 0.1, 0)"),
            "/hinge: as the stage is drawn its frames are turned apart",
        ),
        (body("arm") + joint("FixedJoint", ends=("/none", "/arm")), "/hinge: its physics:body0"),
        (
            body("arm")
            + joint(
                "RevoluteJoint", "float physics:lowerLimit = 1e9\nfloat physics:upperLimit = 0"
            ),
            "/hinge: its lower limit",
        ),
        (
            body("arm") + 'def PhysicsScene "a" {}\ndef PhysicsScene "b" { float '
            "physics:gravityMagnitude = 1 }",
            "the scenes /a, /b differ in gravity",
        ),
        (
            body("arm", "float physics:mass = 1\nquatf physics:principalAxes = (nan, 0, 0, 0)"),
            "/arm: its physics:principalAxes is .*nan",
        ),
        ("def", "USD cannot read this text"),
    ],
)
def test_what_is_refused_is_named_with_its_cure(text, message):
    with pytest.raises(ValueError, match=message):
        read(HEAD + text)


def test_references_without_a_file_are_listed():
    found = read(HEAD + body("arm") + 'def Xform "x" (references = @./none.usda@) {}')
    assert ["references that USD cannot follow"] == [x.what for x in found.left_out]
    assert "none.usda" in found.left_out[0].names[0]


def test_files_that_are_not_there_and_names_that_are_twice(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.usda"):
        load_usd(tmp_path / "none.usda")
    text = HEAD + "".join(f'def Xform "{x}" {{ {body("arm")} }}\n' for x in ("left", "right"))
    assert set(read(text).mechanism.bodies) == {"left.arm", "right.arm"}


def test_without_usd_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxmbd\[usd\]'"):
        load_usd(LEG)
