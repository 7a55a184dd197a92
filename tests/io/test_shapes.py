"""What imported models draw on their bodies."""

import mujoco
import numpy as np
import pytest
from import_cases.against_mujoco import at_state, random_state

import jaxmbd as mbd
from jaxmbd.io import Shape, load_mjcf, load_urdf, save_mjcf

MODEL = """
<mujoco>
  <asset>
    <material name="steel" rgba="0.2 0.3 0.4 1"/>
    <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 0.1"/>
    <body name="arm" pos="0.1 0.2 0.3" euler="20 30 40">
      <joint name="hinge" axis="0 1 0" ref="30"/>
      <geom name="bar" type="capsule" size="0.02" fromto="0 0 0 0.4 0 0.1" material="steel"/>
      <geom name="ring" type="cylinder" size="0.1 0.01" rgba="1 0 0 0.5" material="steel"/>
      <geom name="hull" group="3" size="0.3"/>
      <body name="plate" pos="0.4 0 0.1" euler="0 0 10">
        <geom name="wedge" type="mesh" mesh="wedge" pos="0.1 0 0" euler="0 40 0"/>
      </body>
      <body name="hand" pos="0.5 0 0">
        <joint name="wrist" type="ball"/>
        <geom name="touch" type="box" size="0.1 0.1 0.1"/>
        <geom name="look" type="ellipsoid" size="0.1 0.2 0.3" group="1" contype="0"
              conaffinity="0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def model():
    return load_mjcf(MODEL)


def test_kinds_sizes_and_colours(model):
    """A shape is hidden by its group, and where another one is to be looked at instead."""
    kinds = {n: (s.kind, s.body) for n, s in model.shapes.items()}
    assert kinds == {
        "floor": ("plane", "ground"),
        "bar": ("capsule", "arm"),
        "ring": ("cylinder", "arm"),
        "wedge": ("mesh", "arm"),
        "look": ("ellipsoid", "hand"),
    }
    assert model.shapes["bar"].colour == pytest.approx((0.2, 0.3, 0.4, 1.0))
    assert model.shapes["ring"].colour == pytest.approx((1.0, 0.0, 0.0, 0.5))
    assert model.shapes["bar"].size == pytest.approx([0.02, np.hypot(0.2, 0.05), 0.0])
    assert not model.shapes["floor"].size.any()


def test_shapes_move_with_their_bodies(model):
    """At a random state each is where MuJoCo has it, turned as MuJoCo turns it."""
    theirs = mujoco.MjModel.from_xml_string(MODEL)
    qpos, qvel, controls = random_state(theirs, np.random.default_rng(0))
    data = at_state(theirs, qpos, qvel, controls)
    mech = model.mechanism
    poses = mbd.poses(mech, model.coordinates.q(qpos))
    for name, shape in model.shapes.items():
        at, turn = shape.position, shape.rotation
        if shape.body != "ground":
            turn = poses[shape.body].rotation @ shape.rotation
            at = poses[shape.body].position + poses[shape.body].rotation @ (
                shape.position - mech.com(shape.body)
            )
        if shape.kind == "mesh":  # MuJoCo has its own origin and axes in a mesh
            at, turn = at + turn @ wedge_centre(theirs), turn @ wedge_axes(theirs)
        np.testing.assert_allclose(at, data.geom(name).xpos, rtol=0, atol=1e-12)
        np.testing.assert_allclose(turn, data.geom(name).xmat.reshape(3, 3), rtol=0, atol=1e-12)


def wedge_centre(theirs):
    return theirs.mesh_pos[0]


def wedge_axes(theirs):
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, theirs.mesh_quat[0])
    return turn.reshape(3, 3)


def test_meshes_are_where_they_are_drawn(model):
    """Vertices are as in the file, and globally where body and shape put them."""
    theirs = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(theirs)
    mujoco.mj_kinematics(theirs, data)
    tilt = np.radians(40.0)
    turn = np.array([[np.cos(tilt), 0, np.sin(tilt)], [0, 1, 0], [-np.sin(tilt), 0, np.cos(tilt)]])
    given = np.vstack([np.zeros(3), np.eye(3)]) @ turn.T + [0.1, 0.0, 0.0]
    plate = data.body("plate")
    given = plate.xpos + given @ plate.xmat.reshape(3, 3).T
    wedge = model.shapes["wedge"]
    np.testing.assert_allclose(
        wedge.vertices, np.vstack([np.zeros(3), np.eye(3)]), rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(wedge.size, 0.5 * np.ones(3), rtol=0, atol=1e-6)
    found = wedge.position + wedge.vertices @ wedge.rotation.T
    np.testing.assert_allclose(found, given, rtol=0, atol=1e-6)
    a, b, c = found[wedge.faces[0]]
    assert np.cross(b - a, c - a) @ (found.mean(axis=0) - a) < 0.0


def tetrahedron(path, size):
    """A binary STL file of a tetrahedron."""
    corners = size * np.vstack([np.zeros(3), np.eye(3)])
    faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    triangles = [
        np.vstack([np.zeros(3), corners[f]]).astype("<f4").tobytes() + b"xx" for f in faces
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b" " * 80 + len(faces).to_bytes(4, "little") + b"".join(triangles))


ROBOT = """
<robot name="r">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base">
    <visual><origin xyz="0 0 1"/><geometry><mesh filename="package://parts/meshes/base.stl"/>
      </geometry><material name="red"/></visual>
    <collision><geometry><box size="2 4 6"/></geometry></collision></link>
  <link name="arm">
    <visual><geometry><mesh filename="package://parts/meshes/arm.dae"/></geometry></visual>
    <collision><geometry><mesh filename="meshes/base.stl" scale="2 2 2"/></geometry></collision>
    </link>
  <link name="hand">
    <visual><geometry><mesh filename="meshes/hand.stl"/></geometry></visual></link>
  <link name="tool">
    <visual><geometry><sphere radius="0"/></geometry></visual>
    <visual><geometry><mesh filename="meshes/broken.stl"/></geometry></visual></link>
  <joint name="one" type="continuous"><parent link="base"/><child link="arm"/>
    <origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="two" type="fixed"><parent link="arm"/><child link="hand"/></joint>
  <joint name="three" type="fixed"><parent link="hand"/><child link="tool"/></joint>
</robot>
"""


def test_shapes_of_a_urdf(tmp_path):
    """Files of packages above the description; what cannot be read is told, or warned of."""
    folder = tmp_path / "parts"
    tetrahedron(folder / "meshes" / "base.stl", 0.5)
    (folder / "meshes" / "arm.dae").write_text("<COLLADA/>")
    (folder / "meshes" / "broken.stl").write_text("solid of nothing")
    (folder / "urdf" / "meshes").mkdir(parents=True)
    tetrahedron(folder / "urdf" / "meshes" / "base.stl", 0.1)
    (folder / "urdf" / "meshes" / "broken.stl").write_text("solid of nothing")
    (folder / "urdf" / "robot.urdf").write_text(ROBOT)
    robot = load_urdf(folder / "urdf" / "robot.urdf")
    told = {x.what: x.names for x in robot.left_out}
    assert told == {
        "missing files": ("meshes/hand.stl",),
        "meshes in other formats": ("package://parts/meshes/arm.dae",),
    }
    with pytest.warns(UserWarning, match="refuses 2 shapes, which are not drawn: broken .*no size"):
        shapes = list(robot.shapes.values())
    base, arm = shapes
    assert (base.body, arm.body) == ("ground", "arm")
    assert base.colour == (1.0, 0.0, 0.0, 1.0)
    assert base.position == pytest.approx([0, 0, 1], abs=1e-6)
    assert base.size == pytest.approx([0.25] * 3) and arm.size == pytest.approx([0.1] * 3)


def test_meshes_are_not_read_where_no_inertia_needs_them(tmp_path):
    """A body with an inertia of its own keeps it; another one gets that of its shape."""
    tetrahedron(tmp_path / "solid.stl", 1.0)
    body = '<body name="{0}" pos="{1} 0 0"><joint/>{2}<geom type="mesh" mesh="solid"/></body>'
    own = '<inertial pos="0 0 0" mass="3" diaginertia="1 1 1"/>'
    text = f"""<mujoco><asset><mesh file="solid.stl"/></asset><worldbody>
      {body.format("given", 0, own)}{body.format("made", 3, "")}</worldbody></mujoco>"""
    (tmp_path / "model.xml").write_text(text)
    model, theirs = load_mjcf(tmp_path / "model.xml"), tmp_path / "model.xml"
    theirs = mujoco.MjModel.from_xml_path(str(theirs))
    for name in ("given", "made"):
        mass = float(model.mechanism.bodies[name].mass)
        assert mass == pytest.approx(theirs.body_mass[theirs.body(name).id], rel=1e-12)
    assert {s.body for s in model.shapes.values()} == {"given", "made"}
    hill = '<hfield name="hill" nrow="2" ncol="2" size="1 1 1 1" elevation="0 1 1 0"/>'
    ground = '<geom type="hfield" hfield="hill"/>'
    text = text.replace("<asset>", f"<asset>{hill}").replace("<worldbody>", f"<worldbody>{ground}")
    (tmp_path / "hill.xml").write_text(text)
    hilly = {x.what: x.names for x in load_mjcf(tmp_path / "hill.xml").left_out}
    assert hilly["height fields"] == ("hill",)
    (told,) = (x for x in model.left_out if x.what == "contact shapes")
    assert len(told.names) == 2


def test_shapes_of_ones_own_are_written(tmp_path):
    """They are given where the mechanism is drawn, and MuJoCo has them there at q = 0."""
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    size, place, colour = (
        np.array([0.3, 0.05, 0.02]),
        np.array([0.5, 0.1, 0.2]),
        (1.0, 0.5, 0.0, 1.0),
    )
    plank = Shape("bob", "box", size, place, turn, colour)
    save_mjcf(mbd.zoo.simple_pendulum(), tmp_path / "m.xml", shapes={"plank": plank})
    again = load_mjcf(tmp_path / "m.xml").shapes["plank"]
    assert (again.body, again.kind, again.colour) == ("bob", "box", pytest.approx(colour))
    for name in ("size", "position", "rotation"):
        np.testing.assert_allclose(getattr(again, name), getattr(plank, name), rtol=0, atol=1e-12)
