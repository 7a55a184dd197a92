"""Belts, bevel gears, worms, planets and racks in pictures, by plane geometry of their own."""

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.viz import Scene
from jaxmbd.viz.gear_glyphs import gear_wheels, racks
from jaxmbd.viz.kinematic_diagram import plane_drawing
from jaxmbd.viz.plane_drawing import Circle, Line

X, Y, Z = np.eye(3)


def body(at=(0.0, 0.0, 0.0)):
    return mbd.Body(1.0, at, np.ones(3))


def hinges(**places):
    """Bodies on the ground, each with its point and its axis."""
    return (
        {n: body(at) for n, (at, _) in places.items()},
        {n: mbd.Revolute("ground", n, at, axis) for n, (at, axis) in places.items()},
    )


def tensioned(crossed):
    """A belt from a motor to a pulley on an arm."""
    return mbd.Mechanism(
        {"motor": body(), "arm": body((0.2, 0.2, 0.0)), "pulley": body((0.4, 0.1, 0.0))},
        {
            "motor": mbd.Revolute("ground", "motor", 0 * X, Z),
            "pivot": mbd.Revolute("ground", "arm", (0.2, 0.3, 0.0), Z),
            "pulley": mbd.Revolute("arm", "pulley", (0.4, 0.1, 0.0), Z),
        },
        forces={"belt": mbd.Belt("motor", "pulley", 0.05, 0.12, 1e5, crossed=crossed)},
    )


@pytest.mark.parametrize("crossed", [False, True])
def test_strands_of_a_belt_are_tangents_wherever_the_pulleys_are(crossed):
    mech = tensioned(crossed)
    for q in (np.zeros(3), np.array([0.7, 0.3, -1.2])):
        drawing = plane_drawing(mech, q, plane="xy")
        c = np.cos(q[1]), np.sin(q[1])
        there = np.array([0.2, 0.3]) + np.array([[c[0], -c[1]], [c[1], c[0]]]) @ [0.2, -0.2]
        pulleys = {p.radius: p.centre for p in drawing.parts if isinstance(p, Circle)}
        np.testing.assert_allclose(pulleys[0.12], there, atol=1e-12)
        lines = [x.points for x in drawing.parts if isinstance(x, Line) and x.layer == "belt"]
        assert len(lines) == 2
        sides = []
        for a, b in lines:
            along, sides_of_line = b - a, []
            for end, centre, radius in ((a, np.zeros(2), 0.05), (b, there, 0.12)):
                np.testing.assert_allclose(np.linalg.norm(end - centre), radius, rtol=1e-12)
                np.testing.assert_allclose(along @ (end - centre), 0.0, atol=1e-13)
                away = end - centre
                sides_of_line.append(np.sign(along[0] * away[1] - along[1] * away[0]))
            assert (sides_of_line[0] == sides_of_line[1]) != crossed
            sides.append(sides_of_line[0])
        assert sides[0] == -sides[1]


def test_a_belt_seen_from_its_edge_is_a_line_and_one_in_space_has_its_length():
    drawing = plane_drawing(tensioned(False), np.zeros(3), plane="xz")
    lines = [x.points for x in drawing.parts if isinstance(x, Line) and x.layer == "belt"]
    np.testing.assert_allclose([x[:, 1] for x in lines], 0.0, atol=1e-15)
    spans = [x for x in Scene.of(tensioned(False)).spans if x.name.startswith("belt")]
    length = np.sqrt(0.4**2 + 0.1**2 - 0.07**2)
    ends = [np.linalg.norm(x.at_b - x.at_a) for x in spans]
    np.testing.assert_allclose(ends, [length, length], rtol=1e-12)
    assert [(x.a, x.b, x.fit) for x in spans] == [("ground", "arm", "stretched")] * 2


def test_bevel_gears_are_cones_that_touch():
    bodies, joints = hinges(p=(0.2 * Z, Z), g=(0.3 * X, X))
    teeth = {"bevel": mbd.GearMesh("p", "g", 20, 40, kind="bevel", at=(0.04, 0.0, 0.08))}
    mech = mbd.Mechanism(bodies, joints, couplings=teeth)
    drawing = plane_drawing(mech, np.zeros(2), plane="xz")
    lines = [x for x in drawing.parts if isinstance(x, Line) and x.style == "pitch"]
    cones = [x.points for x in lines if len(x.points) == 3]
    wanted = {
        "p": [(0, 0), (-0.04, 0.08), (0.04, 0.08)],
        "g": [(0, 0), (0.04, 0.08), (0.04, -0.08)],
    }
    for found, points in zip(cones, wanted.values(), strict=True):
        for x in points:
            np.testing.assert_allclose(np.linalg.norm(found - x, axis=1).min(), 0.0, atol=1e-12)
    solids = {x.body: x.mesh.vertices for x in Scene.of(mech).solids if x.name == "bevel"}
    for vertices in solids.values():
        near = np.linalg.norm(vertices - [0.04, 0.0, 0.08], axis=1).min()
        assert near < 0.05 * 0.08


def test_a_worm_is_a_cylinder_with_its_thread():
    lead, m = np.deg2rad(12.0), 2e-3
    r, wheel = m / np.sin(lead), m * 20 / np.cos(lead)
    bodies, joints = hinges(w=(0.01 * Z, Z), g=((r + wheel) * Y, X))
    teeth = {"worm": mbd.GearMesh("w", "g", 2, 40, kind="worm", helix=np.pi / 2 - lead)}
    mech = mbd.Mechanism(bodies, joints, couplings=teeth)
    drawing = plane_drawing(mech, np.zeros(2), plane="zy")
    box = next(x.points for x in drawing.parts if isinstance(x, Line) and x.layer == "w")
    outlines = [
        x.points for x in drawing.parts if isinstance(x, Line) and x.closed and x.layer == "w"
    ]
    np.testing.assert_allclose(np.ptp(outlines[0], axis=0), [2.5 * r, 2.0 * r], rtol=1e-9)
    assert len(box) == 2  # the shaft to the bearing
    (circle,) = (x for x in drawing.parts if isinstance(x, Circle) and x.radius > r)
    np.testing.assert_allclose(circle.radius, wheel, rtol=1e-9)
    worm = next(x for x in gear_wheels(mech) if x.body == "w")
    np.testing.assert_allclose(worm.thread, np.pi * m * 2 / np.cos(lead), rtol=1e-9)


def test_each_wheel_of_a_planetary_set_comes_once():
    m, sun, planet, ring = 2e-3, 20, 16, 52
    spots = {
        f"p{i}": m * 18 * np.array([np.cos(u), np.sin(u), 0.0])
        for i, u in enumerate(2 * np.pi * np.arange(3) / 3)
    }
    bodies, joints = hinges(sun=(0 * X, Z), arm=(0 * X, Z))
    couplings = {}
    for name, at in spots.items():
        bodies[name], joints[name] = body(at), mbd.Revolute("arm", name, at, Z)
        couplings[f"s{name}"] = mbd.GearMesh("sun", name, sun, planet, carrier="arm")
        couplings[f"r{name}"] = mbd.GearMesh("arm", name, ring, planet, kind="internal")
    found = gear_wheels(mbd.Mechanism(bodies, joints, couplings=couplings))
    radii = {x.body: x.radius for x in found}
    assert len(found) == 5 and [x.body for x in found if x.hollow] == ["ground"]
    want = {"sun": 20e-3, "ground": 52e-3} | dict.fromkeys(spots, 16e-3)
    assert radii == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"pressure_angle": 0.35}])
def test_a_rack_touches_its_pinion(options):
    bodies, joints = hinges(p=(0 * X, Z))
    bodies["r"], joints["r"] = (
        body((0.1, -0.02, 0)),
        mbd.Prismatic("ground", "r", (0.1, -0.02, 0), X),
    )
    teeth = {"t": mbd.RackAndPinion("p", "r", 0.02, **options)}
    mech = mbd.Mechanism(bodies, joints, couplings=teeth)
    (rack,) = racks(mech)
    np.testing.assert_allclose(rack.at, -0.02 * Y, atol=1e-15)
    assert rack.body == "r"
    bar = next(x for x in Scene.of(mech).solids if x.name == "t" and x.body == "r").mesh.vertices
    np.testing.assert_allclose(bar[:, 1].max(), -0.02, atol=1e-12)
    np.testing.assert_allclose(np.ptp(bar[:, 0]), 0.08, rtol=1e-9)
