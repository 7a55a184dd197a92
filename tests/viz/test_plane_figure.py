"""Kinematic diagrams: what is drawn where, names beside each other, DXF that reads back."""

import io

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.kinematics import Pose
from jaxmbd.viz import plane_figure, write_dxf
from jaxmbd.viz.course import smoothed
from jaxmbd.viz.kinematic_diagram import PIN, placed, plane_drawing
from jaxmbd.viz.plane_drawing import Circle, Line, draw
from jaxmbd.viz.plane_view import normal_of_motion, view_on

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.filterwarnings("ignore:.*triangle inequality")


def as_drawn(mech, plane=None, **more):
    """The diagram without assembly: all poses are those of the description."""
    space = mbd.in_space(mech)
    poses = {n: Pose(np.eye(3), np.asarray(space.com(n))) for n in space.structure.bodies}
    return draw(space, poses, view_on(mech, plane), **more)


def of(drawing, kind, layer, style=None):
    parts = [x for x in drawing.parts if isinstance(x, kind) and x.layer == layer]
    return [x for x in parts if style in (None, x.style)]


def arm(axis, **more):
    """A swinging arm of the length 2."""
    return mbd.Mechanism(
        {"arm": mbd.Body(1.0, com=(1.0, 0.0, 0.0), inertia=0.1)},
        {"hinge": mbd.Revolute("ground", "arm", (0.0, 0.0, 0.0), axis)},
        **more,
    )


def geared(**couplings):
    """Two wheels, 0.3 m apart, and a rack above the first."""
    centres = {"a": (0.0, 0.0), "b": (0.3, 0.0), "rack": (0.0, 0.1)}
    return mbd.Mechanism(
        {name: mbd.Body(1.0, com=x, inertia=0.01) for name, x in centres.items()},
        {
            "turn_a": mbd.Revolute("ground", "a", (0.0, 0.0)),
            "turn_b": mbd.Revolute("ground", "b", (0.3, 0.0)),
            "slide": mbd.Prismatic("ground", "rack", (0.0, 0.1), (1.0, 0.0)),
        },
        couplings=couplings,
    )


@pytest.mark.parametrize(
    ("name", "normal"),
    [("four_bar", (0, 1, 0)), ("slider_crank", (0, 0, 1)), ("rssr", None), ("bricard", None)],
)
def test_the_plane_of_motion(name, normal):
    found = normal_of_motion(getattr(mbd.zoo, name)())
    if normal is None:
        assert found is None
    else:
        assert found is not None and np.allclose(np.cross(found, normal), 0.0)


def test_views_are_upright():
    assert view_on(mbd.zoo.four_bar(), None).names() == ("x", "z")
    assert view_on(mbd.zoo.slider_crank(), None).names() == ("x", "y")
    view = view_on(mbd.zoo.rssr(), "-yz")
    assert view.names() == ("−y", "z") and np.allclose(view.normal, [-1, 0, 0])
    level = arm((0.0, 0.0, 1.0))  # gravity is along the normal
    assert view_on(level, None).names() == ("x", "y")
    tilted = view_on(arm((0.0, 1.0, 1.0)), None)
    assert tilted.names() == ("x", "") and tilted.axes[1] @ (0.0, 0.0, 1.0) > 0.7
    for wrong in ("xx", "zy ", "up", "x"):
        with pytest.raises(ValueError, match="axes to the right and upwards"):
            view_on(level, wrong)
    with pytest.raises(ValueError, match="does not move in a plane"):
        view_on(mbd.zoo.rssr(), None)


def test_links_pins_and_the_block_are_where_they_are():
    mech = mbd.zoo.slider_crank()
    q = mbd.assemble(mech, known={"O": 0.8}).q
    drawing = plane_drawing(mech, q)
    where = mbd.poses(mech, q)
    [pin] = of(drawing, Circle, "B")
    assert np.allclose(pin.centre, np.asarray(mbd.point_position(mech, q, "crank", "B"))[:2])
    [crank] = of(drawing, Line, "crank", "link")
    assert min(np.linalg.norm(crank.points - pin.centre, axis=1)) < 1e-12
    [block] = of(drawing, Line, "T", "symbol")
    assert block.closed and len(block.points) == 4
    assert np.allclose(block.points.mean(axis=0), np.asarray(where["slider"].position)[:2])
    assert pin.radius == drawing.pin and np.ptp(drawing.bounds(), axis=0).max() < 120 * drawing.pin


def test_every_mechanism_of_the_zoo_is_drawn_from_three_sides():
    for name in ("double_wishbone", "delta_robot", "rsrrp", "spatial_slider_crank", "quick_return"):
        mech = getattr(mbd.zoo, name)()
        for plane in ("xy", "yz", "xz"):
            drawing = as_drawn(mech, plane)
            assert np.all(np.isfinite(drawing.bounds())), (name, plane)
            layers = {x.layer for x in drawing.parts}
            rods = {n for n, x in mech.joints.items() if isinstance(x, mbd.Rod)}
            assert rods | set(mech.structure.bodies) <= {x.layer for x in drawing.names}
            forces = {n for n, x in mech.forces.items() if isinstance(x, mbd.SpringDamper)}
            assert rods | forces <= layers, (name, plane)


def test_a_hinge_is_a_pin_or_is_seen_from_its_side():
    mech = arm((0.0, 1.0, 0.0))
    assert of(as_drawn(mech), Circle, "hinge")
    side = as_drawn(mech, "xy")
    [sleeve] = of(side, Line, "hinge", "symbol")
    assert not of(side, Circle, "hinge")
    assert np.ptp(sleeve.points[:, 1]) > 2.0 * np.ptp(sleeve.points[:, 0])  # along y


def test_a_pin_across_a_planar_loop_is_a_pin():
    drawing = as_drawn(mbd.zoo.andrews_squeezer())
    assert [x.style for x in of(drawing, Circle, "E23")] == ["symbol"]


def test_gears_roll_on_each_other_and_belts_are_tangents():
    drawing = as_drawn(geared(mesh=mbd.Gear("turn_a", "turn_b", ratio=-0.5)))
    [a], [b] = of(drawing, Circle, "a", "pitch"), of(drawing, Circle, "b", "pitch")
    assert np.isclose(a.radius + b.radius, 0.3) and np.isclose(a.radius / b.radius, 0.5)
    assert not of(drawing, Line, "mesh")
    drawing = as_drawn(geared(belt=mbd.Gear("turn_a", "turn_b", ratio=2.0)))
    [a], [b] = of(drawing, Circle, "a", "pitch"), of(drawing, Circle, "b", "pitch")
    assert np.isclose(a.radius / b.radius, 2.0) and a.radius + b.radius < 0.29
    for side in of(drawing, Line, "belt"):
        for end, wheel in zip(side.points, (a, b), strict=True):
            spoke = end - wheel.centre
            assert np.isclose(np.linalg.norm(spoke), wheel.radius)
            assert abs(spoke @ (side.points[1] - side.points[0])) < 1e-12
    drawing = as_drawn(geared(rack=mbd.RackAndPinion("turn_a", "slide", radius=-0.08)))
    [a], [line] = of(drawing, Circle, "a", "pitch"), of(drawing, Line, "rack", "pitch")
    assert np.isclose(a.radius, 0.08) and np.allclose(line.points[:, 1], 0.08)


def test_gear_meshes_are_drawn_with_their_working_radii():
    mech = geared(mesh=mbd.GearMesh("turn_a", "turn_b", 20, 40))
    drawing = as_drawn(mech)
    [a], [b] = of(drawing, Circle, "a", "pitch"), of(drawing, Circle, "b", "pitch")
    assert np.isclose(a.radius, 0.1) and np.isclose(b.radius, 0.2)
    mech = geared(mesh=mbd.GearMesh("turn_a", "turn_b", 20, 80, kind="internal"))
    [a], [b] = (of(as_drawn(mech), Circle, x, "pitch") for x in "ab")
    assert np.isclose(a.radius, 0.1) and np.isclose(b.radius, 0.4)
    assert not of(as_drawn(mech), Line, "mesh")


def test_gears_turn_with_their_bodies():
    mech = geared(mesh=mbd.Gear("turn_a", "turn_b", ratio=-0.5))
    mark = {}
    for angle in (0.0, np.pi / 2.0):
        drawing = plane_drawing(mech, np.array([angle, -0.5 * angle, 0.0]))
        mark[angle] = of(drawing, Line, "a", "line")[0].points[1]
    assert np.allclose(mark[0.0], (0.0, 0.1)) and np.allclose(mark[np.pi / 2.0], (-0.1, 0.0))


def test_a_cam_is_its_curve_and_the_roller_touches_it():
    import jax.numpy as jnp

    def circle(u, radius):
        return jnp.stack([0.01 + radius * jnp.cos(u), radius * jnp.sin(u), 0.0 * u])

    mech = mbd.Mechanism(
        {
            "cam": mbd.Body(1.0, com=(0.0, 0.0, 0.0), inertia=0.01),
            "follower": mbd.Body(0.1, com=(0.01, 0.05, 0.0)),
        },
        {
            "shaft": mbd.Revolute("ground", "cam", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
            "guide": mbd.Prismatic("ground", "follower", (0.01, 0.09, 0.0), (0.0, 1.0, 0.0)),
            "contact": mbd.Cam(
                *("cam", "follower", (0.0, 0.0, 0.0), (0.01, 0.05, 0.0), circle, 0.04),
                normal=(0.0, 0.0, 1.0),
                radius=0.01,
            ),
        },
    )
    drawing = as_drawn(mech)
    [path] = of(drawing, Line, "cam", "plate")
    assert path.closed and len(path.points) > 100
    assert np.allclose(np.linalg.norm(path.points - (0.01, 0.0), axis=1), 0.04)
    [roller] = of(drawing, Circle, "follower", "symbol")
    assert roller.radius == 0.01 and np.allclose(roller.centre, (0.01, 0.05))


def test_paths_are_smooth_and_run_through_their_points():
    turn = np.linspace(0.0, 2.0 * np.pi, 25)
    points = np.stack([np.cos(turn), np.sin(turn), 0.0 * turn], axis=1)
    path = smoothed(points)
    assert np.all(np.min(np.linalg.norm(path[:, None] - points, axis=2), axis=0) < 1e-12)
    assert np.max(np.abs(np.linalg.norm(path, axis=1) - 1.0)) < 2e-4  # of chords 8.6e-3
    corner = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [2, 1, 0], [2, 2, 0]], float)
    assert smoothed(corner)[:, 0].max() < 2.0 + 2.0 / 27.0 + 1e-9  # of a parabola's tangent
    assert len(smoothed(np.zeros((7, 3)))) == 1


def test_a_traced_point_is_part_of_its_link():
    mech = mbd.zoo.four_bar()
    q = np.array([mbd.assemble(mech, known={"A": x}).q for x in (0.0, 0.1, 0.2)])
    drawing = plane_drawing(mech, q, traces=[("coupler", (0.5, 0.0, 0.6))], frame=-1)
    [plate], [path] = of(drawing, Line, "coupler", "plate"), of(drawing, Line, "coupler", "trace")
    ends = mbd.point_position(mech, q[-1], "coupler", (0.5, 0.0, 0.6))
    assert np.allclose(path.points[-1], np.asarray(ends)[[0, 2]])
    assert np.min(np.linalg.norm(plate.points - path.points[-1], axis=1)) < 1e-12
    along = plane_drawing(mech, q[2], traces=[("coupler", (0.5, 0.0, 0.6))], along=q)
    assert np.allclose(of(along, Line, "coupler", "trace")[0].points, path.points)
    with pytest.raises(ValueError, match="paths along a motion"):
        plane_drawing(mech, q[0], traces=[("coupler", "B")])
    with pytest.raises(ValueError, match="frame=3"):
        plane_drawing(mech, q, frame=3)


def test_names_do_not_cover_each_other():
    drawing = as_drawn(mbd.zoo.andrews_squeezer())
    scale = drawing.pin / PIN
    centres = placed(drawing.names, drawing, scale)
    for k, (name, at) in enumerate(zip(drawing.names, centres, strict=True)):
        assert np.linalg.norm(at - name.near) < 0.8 * scale, name
        for other, x in zip(drawing.names[:k], centres[:k], strict=True):
            wide = 0.5 * 7.5 / 72.0 * scale * 0.5 * (len(name.text) + len(other.text))
            assert abs(at - x)[0] > wide or abs(at - x)[1] > 7.5 / 72.0 * scale, (name, other)


def test_a_figure_is_written_in_a_scale_with_the_names_asked_for(tmp_path):
    mech = mbd.zoo.slider_crank()
    q = mbd.assemble(mech).q
    figure = plane_figure(mech, q, tmp_path / "crank.svg", names="link")
    assert "<svg" in (tmp_path / "crank.svg").read_text("utf-8")
    ax = figure.axes[0]
    texts = [x.get_text() for x in ax.texts]
    assert texts[:3] == ["crank", "rod", "slider"] and texts[3].endswith("x →  y ↑")
    width, height = figure.get_size_inches()
    assert np.isclose(np.ptp(ax.get_xlim()) / width, np.ptp(ax.get_ylim()) / height)
    with pytest.raises(ValueError, match="give True, False, or some of"):
        plane_figure(mech, q, names=["links"])
    # A file's text is the same each time but for its date and ids.
    again = io.BytesIO()
    plane_figure(mech, q, names=False).savefig(again, format="pdf")
    assert again.getvalue()[:4] == b"%PDF"


def test_a_small_drawing_has_room_for_its_scale():
    mech = mbd.Mechanism(
        {"ball": mbd.Body(1.0, (0.0, 0.0, 0.0), 1.0)}, {"f": mbd.Free("ground", "ball")}
    )
    figure = plane_figure(mech, np.array([1.0, 0, 0, 0, 0.1, 0, 0]), plane="xz")
    assert np.all(figure.get_size_inches() >= (2.2 - 1e-9, 1.4 - 1e-9))


def read_dxf(path):
    """Header variables, and entities as (type, layer, points, all groups)."""
    lines = path.read_text("ascii").splitlines()
    pairs = list(zip(map(int, lines[::2]), lines[1::2], strict=True))
    assert pairs[-1] == (0, "EOF")
    header = {}
    for (code, name), (_, value) in zip(pairs, pairs[1:], strict=False):
        if code == 9:
            header[name] = value
    begin = pairs.index((2, "ENTITIES")) + 1
    entities = []
    for code, value in pairs[begin : pairs.index((0, "ENDSEC"), begin)]:
        if code == 0 and value not in ("VERTEX", "SEQEND"):
            entities.append((value, []))
        entities[-1][1].append((code, value))
    return header, entities


def test_dxf_reads_back(tmp_path):
    mech = mbd.zoo.slider_crank()
    q = mbd.assemble(mech, known={"O": 0.8}).q
    drawing = plane_drawing(mech, q)
    for unit, factor, number in (("mm", 1e3, "4"), ("m", 1.0, "6"), ("in", 1.0 / 0.0254, "1")):
        header, entities = read_dxf(write_dxf(tmp_path / "crank.dxf", mech, q, unit=unit))
        assert header["$INSUNITS"] == number and header["$ACADVER"] == "AC1009"
        parts = [x for x in entities if x[0] != "TEXT"]
        assert len(parts) == len(drawing.parts)
        for (kind, groups), part in zip(parts, drawing.parts, strict=True):
            found = dict(groups)
            assert found[8] == part.layer.upper()
            if isinstance(part, Circle):
                read = np.array([found[10], found[20]], float), float(found[40])
                assert np.allclose(read[0], factor * part.centre)
                assert kind == "CIRCLE" and np.isclose(read[1], factor * part.radius)
                continue
            xs = [float(v) for c, v in groups if c in (10, 11)]
            ys = [float(v) for c, v in groups if c in (20, 21)]
            skipped = 0 if kind == "LINE" else 1  # a polyline has a point of its own
            assert np.allclose(np.stack([xs, ys], 1)[skipped:], factor * part.points)
            assert kind == ("LINE" if len(part.points) == 2 else "POLYLINE")
        texts = [dict(groups)[1] for kind, groups in entities if kind == "TEXT"]
        assert {"crank", "rod", "slider", "O"} <= set(texts)
    _, bare = read_dxf(write_dxf(tmp_path / "crank.dxf", mech, q, names=False))
    assert all(kind != "TEXT" for kind, _ in bare)
    with pytest.raises(ValueError, match="unit='ft'"):
        write_dxf(tmp_path / "crank.dxf", mech, q, unit="ft")


def test_names_of_dxf_are_letters_that_it_has(tmp_path):
    mech = mbd.Mechanism(
        {"bras à gauche": mbd.Body(1.0, com=(1.0, 0.0))},
        {"pivot": mbd.Revolute("ground", "bras à gauche", (0.0, 0.0))},
    )
    _, entities = read_dxf(write_dxf(tmp_path / "arm.dxf", mech))
    assert "BRAS___GAUCHE" in {dict(groups)[8] for _, groups in entities}
    assert "bras \\U+00E0 gauche" in {dict(groups).get(1) for _, groups in entities}
