"""Mechanisms written as MuJoCo models: the same one comes back, and nothing is lost silently."""

import inspect

import equinox as eqx
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from random_mechanisms import random_mechanism
from repository import ROOT
from written_models import round_trip

import jaxmbd as mbd
from jaxmbd.io import load_mjcf, save_mjcf
from jaxmbd.io.mujoco.equalities import polynomial
from jaxmbd.io.mujoco.forces import polynomial_of_a_tendon

pytestmark = pytest.mark.filterwarnings("ignore:.*triangle inequality")

# Forces and drives that MJCF does not have; all else of the zoo can be written.
LEFT_OUT = {
    "five_point": {"massless bodies", "forces of type Tyre"},
    "macpherson_steering": {"drives", "forces of type PacejkaTyre"},
    "rsrrp": {"torques with a law of their own"},
    "scissors": {"cut joints of type PointOnLine"},  # along a line in the plane of motion
}
ROBOTS = ROOT / "tests" / "data" / "models"
CUT_ELSEWHERE = {"quick_return", "rssr_revolutes"}


def mechanisms():
    found = [(name, getattr(mbd.zoo, name)) for name in mbd.zoo.__all__]
    made = [(n, inspect.signature(f).return_annotation) for n, f in found if callable(f)]
    return [name for name, kind in made if kind == "Mechanism"]


def check_zoo(name, tmp_path):
    mech = getattr(mbd.zoo, name)()
    trip = round_trip(mech, save_mjcf, load_mjcf, tmp_path / "model.xml")
    assert max(trip.errors.values()) < 1e-12, trip.errors
    assert {row.what for row in trip.written.left_out} == LEFT_OUT.get(name, set())
    assert trip.read.left_out == ()
    recut = mbd.topology(trip.written.mechanism).cut != mbd.topology(mech).cut
    assert recut == (name in CUT_ELSEWHERE)


# Balls, rods, springs and loads; points on lines; a planar one that is cut elsewhere.
@pytest.mark.parametrize("name", ["andrews_squeezer", "double_wishbone", "quick_return"])
def test_a_mechanism_comes_back(name, tmp_path):
    check_zoo(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", mechanisms())
def test_the_whole_zoo_comes_back(name, tmp_path):
    check_zoo(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(x.name for x in ROBOTS.glob("*.xml")))
def test_public_robots_come_back(name, tmp_path):
    """Imported and written again, loops, tendons and motors too."""
    mech = load_mjcf(ROBOTS / name).mechanism
    trip = round_trip(mech, save_mjcf, load_mjcf, tmp_path / "model.xml")
    assert max(trip.errors.values()) < 1e-12, trip.errors
    assert trip.written.left_out == trip.read.left_out == ()


def check_random(seed, tmp_path):
    mech = random_mechanism(seed)
    trip = round_trip(mech, save_mjcf, load_mjcf, tmp_path / "model.xml", seed=seed)
    assert max(trip.errors.values()) < 1e-12, trip.errors
    assert trip.read.left_out == ()


def test_joints_of_all_types_in_either_direction(tmp_path):
    """Free bodies on others, screws, welds and cut revolutes among them."""
    check_random(5, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_random_mechanisms_come_back(seed, tmp_path):
    check_random(seed, tmp_path)


@pytest.fixture(scope="module")
def equipped():
    """Springs, drags, rotors, motors and limits, gears, a screw, and joints drawn apart."""
    bodies = {n: mbd.Body(1.0 + i, (i, 0.2, 0.1), 0.1) for i, n in enumerate("abcd")}
    return mbd.Mechanism(
        bodies,
        {
            "hinge": mbd.Revolute("ground", "a", (0, 0, 0), (0, 1, 0.1), axis_b=(0.1, 1, 0)),
            "slide": mbd.Prismatic("a", "b", (1, 0, 0), (1, 0, 0), at_b=(1.1, 0.05, 0)),
            "screw": mbd.Helical("c", "b", (2, 0, 0), (0, 0, 1), pitch=0.02),
            "ball": mbd.Spherical("c", "d", (3, 0, 0)),
        },
        {
            "torsion": mbd.TorsionSpring("hinge", 5.0, 0.3, free_angle=0.2),
            "second": mbd.TorsionSpring("hinge", 3.0, free_angle=-0.4),
            "bar": mbd.TorsionBar("hinge", "slide", 7.0, 0.2, ratio=1.5, offset=-0.1),
            "drag": mbd.JointDrag("ball", viscous=0.4),
            "dry": mbd.JointDrag("slide", dry=0.7, viscous=0.1),
            "rotor": mbd.Armature("screw", 0.03),
            "uneven": mbd.Armature("ball", (0.1, 0.2, 0.3)),
            "motor": mbd.Actuator(
                "slide",
                gear=3.0,
                gain=2.0,
                bias=(0.1, -4.0, -0.2),
                control=0.5,
                control_range=(-1.0, 1.0),
                force_range=(-9.0, 8.0),
            ),
            "differential": mbd.Actuator(("hinge", "slide"), gear=(2.0, -3.0), bias=(0.2, -5, -1)),
            "jet": mbd.BodyActuator(
                "d", (3, 0.1, 0), (1.0, 0.2, 0), (0, 0.3, 1.0), gain=2.0, bias=0.4, control=-0.7
            ),
            "thruster": mbd.BodyActuator("d", (3, 0, 0), (1.0, 0, 0), a="a"),
            "steady": mbd.JointTorque("hinge", 0.6),
            "limit": mbd.JointLimit("slide", upper=0.4, stiffness=1e3),
            "twist": mbd.Torque("a", "c", (0.1, 0.2, 0.3)),
            "stop": mbd.BumpStop("a", "c", (0, 0, 0), (2, 0, 0), 0.1, 1e3),
        },
        drives={"wave": mbd.Drive("hinge", lambda t, p: 0.1 * jnp.sin(t))},
        couplings={
            "belt": mbd.Gear("hinge", "screw", ratio=-2.0, offset=0.1),
            "cam": mbd.Coupling(("slide", "hinge"), polynomial, (0.1, 0.2, 0.3)),
            "sum": mbd.Coupling(
                ("hinge", "slide", "screw"),
                polynomial_of_a_tendon,
                {
                    "ratios": np.array([[1.0, 2, 0], [0, 0, -3]]),
                    "polynomial": np.array([0, 1, 0.5]),
                },
            ),
            "own": mbd.Coupling(("slide", "hinge"), lambda q, p: q[0] - q[1]),
        },
        points={"mark": (0.3, 0.1, 0.2), "world": (1, 1, 1)},
    )


def test_forces_and_couplings_come_back(equipped, tmp_path):
    trip = round_trip(equipped, save_mjcf, load_mjcf, tmp_path / "model.xml")
    drawn = trip.read.mechanism
    # Friction losses are regularised anew, by the import's own scale.
    assert max(trip.errors.values()) < 1e-12, trip.errors
    told = {x.what: x.names for x in trip.written.left_out}
    assert told == {
        "couplings by a function of one's own": ("own",),
        "drives": ("wave",),
        "what differs along the speeds of a ball": ("uneven",),
        "stiffnesses of joint limits": ("limit",),
        "actuators between two bodies": ("thruster",),
        "forces of type BumpStop": ("stop",),
    }
    assert trip.written.joints["screw"] == ("screw", "screw.travel")
    assert set(drawn.couplings) == {"screw.pitch", "belt", "cam", "sum"}
    again = drawn.forces["motor"]
    for field in ("gear", "gain", "bias", "control_range", "force_range"):
        np.testing.assert_array_equal(
            getattr(again, field), getattr(equipped.forces["motor"], field)
        )
    controls = {"motor": 0.5, "differential": 0.0, "jet": -0.7, "steady": 0.0}
    assert trip.read.states["controls"].inputs == controls  # too many couplings to close
    assert trip.read.limits["slide"][1] == 0.4
    assert "mark" in drawn.points


def test_coordinates_are_those_of_mujoco(tmp_path):
    """Bodies are where MuJoCo has them, at its qpos of our q."""
    mech = random_mechanism(1)
    written = save_mjcf(mech, tmp_path / "model.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "model.xml"))
    data = mujoco.MjData(model)
    top = mbd.topology(mech)
    change = np.random.default_rng(1).normal(size=top.nv)
    q = mbd.step_coordinates(mech, mbd.neutral(mech), change)
    data.qpos[:] = written.coordinates.qpos(q)
    mujoco.mj_kinematics(model, data)
    for name, pose in mbd.poses(mech, q).items():
        if name != "ground":
            np.testing.assert_allclose(data.body(name).xipos, pose.position, rtol=0, atol=1e-12)


def test_what_is_drawn_open_is_assembled_in_a_keyframe(tmp_path):
    open_loop = mbd.zoo.four_bar(ground=0.9)
    assert abs(mbd.constraint_residual(open_loop, mbd.neutral(open_loop))).max() > 1e-3
    save_mjcf(open_loop, tmp_path / "model.xml")
    read = load_mjcf(tmp_path / "model.xml")
    assert abs(mbd.constraint_residual(read.mechanism, read.states["assembled"].q)).max() < 1e-12
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "model.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("assembled").id)
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos).max() < 1e-12


def test_loops_hold_in_mujoco(tmp_path):
    """A corner under its wheel load, in MuJoCo's soft constraints with the written numbers."""
    save_mjcf(mbd.zoo.double_wishbone(), tmp_path / "model.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "model.xml"))
    data, widest = mujoco.MjData(model), 0.0
    for _ in range(200):
        mujoco.mj_step(model, data)
        widest = max(widest, np.abs(data.efc_pos[: data.ne]).max())
    assert widest < 1e-5 and np.isfinite(data.qpos).all()


def test_shapes_of_an_import_are_drawn(tmp_path):
    robot = load_mjcf(
        """<mujoco><asset><mesh name="tip" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset>
        <worldbody><geom name="floor" type="plane" size="2 3 1"/>
        <body name="arm" pos="0 0 1" euler="10 20 30"><joint axis="0 1 0"/>
        <geom name="rod" type="capsule" size="0.02" fromto="0 0 0 0.4 0.1 0" rgba="1 0 0 1"/>
        <geom name="end" type="mesh" mesh="tip" pos="0.1 0.2 0.3" euler="40 0 0"/>
        </body></worldbody></mujoco>"""
    )
    save_mjcf(robot.mechanism, tmp_path / "model.xml", shapes=robot.shapes)
    again = load_mjcf(tmp_path / "model.xml")
    assert again.left_out == ()
    for name, shape in robot.shapes.items():
        other = again.shapes[name]
        assert (other.body, other.kind, other.colour) == (shape.body, shape.kind, shape.colour)
        own = np.eye(3) if shape.vertices is None else shape.vertices
        theirs = np.eye(3) if other.vertices is None else other.vertices
        drawn, wanted = (
            np.asarray(x.position + v @ x.rotation.T) for x, v in ((other, theirs), (shape, own))
        )
        np.testing.assert_allclose(drawn, wanted, rtol=0, atol=1e-6)  # MuJoCo's meshes are float32


def test_what_is_refused(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text("kept")
    with pytest.raises(ValueError, match="has no equal") as error:
        save_mjcf(mbd.zoo.five_point(), path, strict=True)
    assert "forces of type Tyre" in str(error.value) and "tyre" in str(error.value)
    batch = eqx.tree_at(lambda m: m.gravity, mbd.zoo.rssr(), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="batch"):
        save_mjcf(batch, path)
    assert path.read_text() == "kept"


def test_bodies_that_mujoco_would_refuse(tmp_path):
    """A point mass, a flat inertia about one axis, and one that no body can have."""
    mech = mbd.Mechanism(
        {
            "point": mbd.Body(1.0, (1, 0, 0)),
            "flat": mbd.Body(1.0, (2, 0, 0), (0.0, 0.3, 0.0)),
            "odd": mbd.Body(1.0, (3, 0, 0), (0.1, 0.1, 0.5)),
        },
        {
            "one": mbd.Revolute("ground", "point", (0, 0, 0), (0, 1, 0)),
            "two": mbd.Revolute("point", "flat", (1, 0, 0), (0, 1, 0)),
            "three": mbd.Spherical("flat", "odd", (2, 0, 0)),
        },
    )
    sound = mech.replace(bodies={"odd": mbd.Body(1.0, (3, 0, 0), 0.2)})
    trip = round_trip(sound, save_mjcf, load_mjcf, tmp_path / "model.xml")
    assert max(trip.errors.values()) < 1e-12, trip.errors
    assert trip.written.left_out == ()
    told = save_mjcf(mech, tmp_path / "model.xml").left_out
    assert [(x.what, x.names) for x in told] == [("inertias that no body can have", ("odd",))]


def test_a_cut_weld_of_bodies_that_are_turned_from_their_drawn_orientation(tmp_path):
    mech = mbd.Mechanism(
        {"a": mbd.Body(1.0, (0.5, 0, 0), np.eye(3)), "b": mbd.Body(1.0, (0.5, 0.5, 0), np.eye(3))},
        {
            "A": mbd.Revolute("ground", "a", (0, 0, 0), (0, 1, 0), axis_b=(0, 0.9, 0.3)),
            "B": mbd.Free("ground", "b"),
            "W": mbd.Fixed("a", "b", (0.5, 0.2, 0)),
        },
        cut=("W",),
    )
    trip = round_trip(mech, save_mjcf, load_mjcf, tmp_path / "model.xml")
    assert np.abs(mbd.constraint_residual(mech, mbd.neutral(mech))).max() > 0.3
    assert trip.errors["closure"] < 1e-9, trip.errors


def test_springs_that_cancel_and_two_limits_of_one_coordinate(tmp_path):
    mech = mbd.Mechanism(
        {"b": mbd.Body(1.0, (0.5, 0, 0), np.eye(3))},
        {"A": mbd.Revolute("ground", "b", (0, 0, 0), (0, 1, 0))},
        {
            "one": mbd.TorsionSpring("A", 4.0, 0.1, free_angle=0.3),
            "other": mbd.TorsionSpring("A", -4.0, 0.2, free_angle=0.3),
            "lower": mbd.JointLimit("A", lower=-0.5, stiffness=100.0),
            "upper": mbd.JointLimit("A", upper=0.7, stiffness=100.0),
            "beyond": mbd.JointLimit("A", lower=0.8, stiffness=100.0),
        },
    )
    trip = round_trip(mech, save_mjcf, load_mjcf, tmp_path / "model.xml")
    assert trip.errors["bias"] < 1e-12 and trip.read.limits == {"A": (-0.5, 0.7)}
    told = {x.what: x.names for x in trip.written.left_out}
    assert told["joint limits that exclude each other"] == ("beyond",)
    assert "springs that cancel each other" not in told


def test_names_of_tendons_and_loads_do_not_meet(tmp_path):
    solid = mbd.Body(1.0, (0.5, 0, 0), np.eye(3))
    mech = mbd.Mechanism(
        {"a": solid, "b": solid},
        {
            "A": mbd.Revolute("ground", "a", (0, 0, 0), (0, 1, 0)),
            "B": mbd.Spherical("ground", "b", (0, 1, 0)),
            "R": mbd.Rod("a", "b", (0.5, 0, 0), (0.5, 1, 0)),
        },
        {
            "R.length": mbd.SpringDamper("ground", "a", (0, 0, 1), (0.5, 0, 0), 30.0, 2.0),
            "T": mbd.Torque("a", "b", (1.0, 2.0, 3.0)),
            "T.reaction": mbd.Torque("ground", "b", (0.0, 1.0, 0.0)),
        },
    )
    trip = round_trip(mech, save_mjcf, load_mjcf, tmp_path / "model.xml")
    assert trip.errors["bias"] < 1e-12 and trip.errors["closure"] < 1e-12
    assert trip.read.mechanism.joints["R"].a == "a"


def test_gear_pairs_come_back_as_ratios(tmp_path):
    """A planet on a fixed ring is a polynomial of two joints, one on a sun a tendon of three."""
    sun, planet, axis = 20, 15, {"axis": (0.0, 0.0, 1.0)}
    mech = mbd.Mechanism(
        {n: mbd.Body(1.0, (x, 0, 0), (0.1, 0.1, 0.1)) for n, x in (("s", 0), ("c", 0.1), ("p", 1))},
        {
            "sun": mbd.Revolute("ground", "s", at=(0, 0, 0), **axis),
            "arm": mbd.Revolute("ground", "c", at=(0, 0, 0), **axis),
            "pin": mbd.Revolute("c", "p", at=(1, 0, 0), **axis),
        },
        couplings={
            "inner": mbd.GearMesh("sun", "pin", sun, planet, carrier="arm"),
            "outer": mbd.GearMesh("arm", "pin", sun + 2 * planet, planet, kind="internal"),
        },
        gravity=(0.0, -9.81, 0.0),
    )
    trip = round_trip(mech, save_mjcf, load_mjcf, tmp_path / "model.xml")
    assert max(trip.errors.values()) < 1e-12, trip.errors
    assert trip.written.left_out == trip.read.left_out == ()
