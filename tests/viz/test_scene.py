"""Scenes: everything is drawn, and moves with its body."""

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.model.numbers import GROUND
from jaxmbd.suspension import zoo_corner
from jaxmbd.viz import Scene, Wheel, corner_wheel
from jaxmbd.viz.glyphs import attachments, bars, inertia_box
from jaxmbd.viz.scene import camera
from jaxmbd.viz.solids import frame_along

pytestmark = pytest.mark.filterwarnings("ignore:.*triangle inequality")


def mechanisms():
    for name in mbd.zoo.__all__:
        try:
            mech = getattr(mbd.zoo, name)()
        except TypeError:
            continue  # a function of angles
        if isinstance(mech, mbd.Mechanism):
            yield name, mech


@pytest.fixture(scope="module")
def zoo():
    return dict(mechanisms())


def test_every_mechanism_of_the_zoo_is_drawn(zoo):
    assert len(zoo) > 20
    for name, mech in zoo.items():
        scene, space = Scene.of(mech), mbd.in_space(mech)
        bodies = {GROUND, *mech.structure.bodies}
        parts = [*scene.solids, *scene.spans]
        assert {x.body for x in scene.solids} <= bodies, name
        for part in parts:
            assert np.all(np.isfinite(part.mesh.vertices)), (name, part.name)
            assert part.mesh.faces.max() < len(part.mesh.vertices), (name, part.name)
        seen = {x.name for x in parts}
        for joint in mech.structure.joints:
            if joint.name not in mech.bodies:
                expected = bool(space.joint(joint.name).looks())
                assert (joint.name in seen) == expected, (name, joint.name)
        assert 0.0 < scene.glyph < 0.05 * scene.size


@pytest.mark.parametrize(
    "name",
    [
        "macpherson",
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("multi_link", "delta_robot", "five_point")
        ),
    ],
)
def test_what_is_between_two_bodies_stays_on_both(zoo, name):
    mech = zoo[name]
    scene = Scene.of(mech)
    q = np.asarray(mbd.assemble(mech).q)
    rng = np.random.default_rng(1)
    q = np.asarray(mbd.step_coordinates(mech, q, 0.05 * rng.normal(size=mbd.topology(mech).nv)))
    poses = mbd.poses(mech, q)
    assert scene.spans
    for span in scene.spans:
        put = scene.span_placement(span, poses)
        a, b = (
            np.asarray(mbd.point_position(mech, q, body, at))
            for body, at in ((span.a, span.at_a), (span.b, span.at_b))
        )
        length = np.linalg.norm(span.at_b - span.at_a)
        top = put.rotation @ (0.0, 0.0, put.stretch * length) + put.position
        ends = {"stretched": (a, b), "from a": (a, None), "from b": (b, None)}[span.fit]
        np.testing.assert_allclose(put.position, ends[0], rtol=0, atol=1e-12)
        towards = (a if span.fit == "from b" else b) - ends[0]
        np.testing.assert_allclose(
            put.rotation[:, 2], towards / np.linalg.norm(towards), rtol=0, atol=1e-12
        )
        if ends[1] is not None:
            np.testing.assert_allclose(top, b, rtol=0, atol=1e-12)


def test_solids_move_with_their_bodies(zoo):
    mech = zoo["rssr"]
    scene = Scene.of(mech)
    q = mbd.assemble(mech, {"crank": 0.7}).q
    poses = mbd.poses(mech, q)
    for solid in scene.solids:
        put, x = scene.solid_placement(solid.body, poses), solid.mesh.vertices[3]
        np.testing.assert_allclose(
            put.rotation @ x + put.position,
            mbd.point_position(mech, q, solid.body, x),
            rtol=0,
            atol=1e-14,
        )


def test_a_wishbone_has_two_legs_and_two_bearings(zoo):
    mech = zoo["double_wishbone"]
    scene = Scene.of(mech)
    points = attachments(mech)["uca"]
    assert len(points) == 3
    on_chassis = [x for x in scene.solids if x.name == "rev_uca" and x.body == GROUND]
    centres = [x.mesh.vertices.mean(axis=0) for x in on_chassis]
    for end in ("upper_arm_front", "upper_arm_rear"):
        assert min(np.linalg.norm(c - mech.points[end]) for c in centres) < 1e-9
    [arm] = [x.mesh.vertices for x in scene.solids if x.name == "uca"]
    axis = frame_along(mech.points["upper_arm_front"] - mech.points["upper_arm_rear"])[:, 2]
    middle = 0.5 * (mech.points["upper_arm_front"] + mech.points["upper_arm_rear"])
    near = np.linalg.norm(np.cross(arm - middle, axis), axis=1) < 2.0 * scene.glyph
    inside = np.abs((arm - middle) @ axis) < 2.0 * scene.glyph
    assert near.any() and not np.any(near & inside)  # no bar along the hinge


def test_bars_join_points_by_the_shortest_tree():
    points = np.array([[0.0, 0, 0], [2, 0, 0], [1, 0, 0], [1, 1.2, 0]])
    assert {frozenset(x) for x in bars(points)} == {frozenset(x) for x in ((0, 2), (1, 2), (2, 3))}
    apart = {frozenset(x) for x in bars(points, {(0, 2)})}
    assert frozenset((0, 2)) not in apart and len(apart) == 3


def test_a_soft_joint_looks_like_the_joint_that_it_replaces(zoo):
    rigid = zoo["double_wishbone"]
    soft = mbd.soften(rigid, "rev_lca", (1e5, 1e7))
    a, b = (
        {(x.name, x.body): x.mesh.vertices for x in Scene.of(mech).solids} for mech in (rigid, soft)
    )
    assert a.keys() == b.keys()
    for key in (("rev_lca", GROUND), ("rev_lca", "lca"), ("lca", "lca")):
        np.testing.assert_allclose(b[key].mean(axis=0), a[key].mean(axis=0), rtol=0, atol=1e-12)


def test_the_wheel_of_a_corner(zoo):
    mech = zoo["multi_link"]
    wheel = corner_wheel(mech, zoo_corner("multi_link"))
    assert wheel.body == "spindle"
    scene = Scene.of(mech, wheels=[wheel])
    drawn = np.concatenate([x.mesh.vertices for x in scene.solids if x.name == "wheel"])
    away = drawn - mech.points["wheel_centre"]
    assert np.linalg.norm(away[:, [0, 2]], axis=1).max() == pytest.approx(0.33)
    assert scene.floor == pytest.approx(mech.points["wheel_centre"][2] - 0.33, abs=1e-3)
    with pytest.raises(ValueError, match="wheels on .'wheel'."):
        Scene.of(mech, wheels=[Wheel("wheel", (0, 0, 0), (0, 1, 0), 0.3)])


def test_a_body_without_hardpoints_is_a_box_of_its_inertia():
    a, b, c, mass = 0.1, 0.2, 0.3, 12.0
    inertia = mass / 3.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    mech = mbd.Mechanism(
        {"box": mbd.Body(mass, (1.0, 2.0, 3.0), inertia)}, {"free": mbd.Free("ground", "box")}
    )
    drawn = inertia_box(mech, "box", 0.01).vertices
    np.testing.assert_allclose(drawn.max(axis=0), [1.1, 2.2, 3.3])
    np.testing.assert_allclose(drawn.min(axis=0), [0.9, 1.8, 2.7])
    assert [x.name for x in Scene.of(mech).solids] == ["box"]


@pytest.mark.parametrize(
    ("name", "body", "point"),
    [("rssr", "coupler", (0.1, 0.3, 0.4)), ("simple_pendulum", "bob", (-1.5, 0.3, 0.0))],
)
def test_a_body_is_drawn_to_a_traced_point(zoo, name, body, point):
    """Also where it has but one hardpoint: then its bar to its centre of mass stays."""
    mech = zoo[name]
    plain, traced = (
        next(x.mesh.vertices for x in Scene.of(mech, marked=marked).solids if x.name == body)
        for marked in ([], [(body, point)])
    )
    near = 2.0 * Scene.of(mech).glyph
    for x in (point, *attachments(mech)[body]):
        assert np.linalg.norm(traced - np.asarray(x), axis=1).min() < near
    assert np.linalg.norm(plain - np.asarray(point), axis=1).min() > near
    if len(attachments(mech)[body]) == 1:
        np.testing.assert_array_equal(traced[: len(plain)], plain)


def test_joints_and_forces_of_every_kind_have_looks():
    ends = dict(at_a=(0, 0, 1.0), at_b=(0.4, 0, 0))
    mech = mbd.Mechanism(
        bodies={"a": mbd.Body(1.0, (0.2, 0, 0), 0.01), "b": mbd.Body(1.0, (0.6, 0, 0), 0.01)},
        joints={
            "screw": mbd.Helical("ground", "a", (0, 0, 0), (0, 0, 1), pitch=0.01),
            "ball": mbd.Spherical("a", "b", (0.4, 0, 0)),
            "rail": mbd.PointOnLine("ground", "b", (0.8, 0, 0), (0, 1, 0)),
        },
        forces={
            "stop": mbd.BumpStop("ground", "a", **ends, gap=0.1, stiffness=1e4),
            "rubber": mbd.Bushing("ground", "b", (0.8, 0, 0), [1.0] * 6),
            "tyre": mbd.Tyre("b", (0.8, 0, 0), 1e5, radius=0.2, road=-0.2),
            "coilover": mbd.SpringDamper("ground", "a", **ends, stiffness=1e4, damping=1e2),
        },
    )
    scene = Scene.of(mech)
    names = [x.name for x in scene.solids]
    assert {"screw", "ball", "rail", "rubber", "tyre"} <= set(names)
    spans = {x.name: x.fit for x in scene.spans}
    assert spans["coilover"] == "from b" and spans["coilover 3"] == "stretched"
    assert spans["stop"] == "from a"
    assert scene.floor < -0.19


def test_the_shapes_of_an_import_are_drawn():
    pytest.importorskip("mujoco")
    model = mbd.io.load_mjcf(
        """<mujoco><worldbody>
        <geom type="plane" size="1 1 0.1" pos="0 0 -0.3"/>
        <body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0" stiffness="2"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0.4 0 0" rgba="1 0 0 1"/>
          <geom type="box" size="0.1 0.02 0.03" pos="0.4 0 0" euler="0 0 90"/>
        </body></worldbody></mujoco>"""
    )
    scene = Scene.of(model)
    assert {x.body for x in scene.solids} <= {"arm", GROUND}
    drawn = np.concatenate([x.mesh.vertices for x in scene.solids if x.body == "arm"])
    np.testing.assert_allclose(drawn.max(axis=0), [0.42, 0.1, 1.03], rtol=0, atol=1e-9)
    assert scene.grounded and scene.floor == pytest.approx(-0.3)
    assert scene.solids[0].colour == (1.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("gravity, up", [(0.0, (0, 1, 0)), ((2.0, 0.0), (-1, 0, 0))])
def test_up_in_a_plane(gravity, up):
    """Without gravity along y, and the view is along the normal."""
    scene = Scene.of(mbd.zoo.five_bar(gravity=gravity))
    np.testing.assert_allclose(scene.up, up)
    axes = camera(scene).axes
    np.testing.assert_allclose(axes[1:], [up, (0, 0, 1)], atol=1e-15)
    assert Scene.of(mbd.zoo.four_bar(gravity=0.0)).up.tolist() == [0, 0, 1]
