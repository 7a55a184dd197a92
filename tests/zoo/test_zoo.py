"""The ready mechanisms: they build with any number traced, and are drawn as their sources say."""

import inspect
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import zoo
from jaxmbd.model import Mechanism, Rod, SpringDamper, Universal

pytestmark = pytest.mark.filterwarnings("ignore:.*triangle inequality:UserWarning")

SHIFT = jnp.array([1e-3, -2e-3, 3e-3])
THREE = jnp.array([1.0, 1.1, 0.9])

# Every mechanism, with each of its numeric arguments as a batch of three.
VARIANTS = {
    zoo.simple_pendulum: {"length": THREE, "mass": THREE, "gravity": THREE},
    zoo.double_pendulum: {"lengths": THREE[:, None] * jnp.ones(2), "masses": jnp.ones((3, 2))},
    zoo.four_bar: {
        "crank": 0.3 * THREE,
        "coupler": 0.8 * THREE,
        "rocker": 0.6 * THREE,
        "ground": 0.7 * THREE,
        "masses": THREE[:, None] * jnp.ones(3),
    },
    zoo.slider_crank: {"crank": 0.2 * THREE, "rod": 0.5 * THREE, "rod_com": 0.3 * THREE},
    zoo.n_four_bar: {"length": THREE, "mass": THREE},
    zoo.quick_return: {"crank": 0.2 * THREE, "masses": THREE[:, None] * jnp.ones(5)},
    zoo.double_parallel_crank: {"crank": 0.5 * THREE, "gravity": THREE},
    zoo.five_bar: {"proximal": 0.25 * THREE, "height": 0.45 * THREE},
    zoo.spatial_slider_crank: {"rod": 0.3 * THREE, "pivot": 0.1 + SHIFT[:, None] * jnp.ones(3)},
    zoo.stewart_gough: {"platform": 0.35 * THREE, "height": 0.8 * THREE},
    zoo.delta_robot: {"radii": THREE[:, None] * jnp.array([0.2, 0.05]), "drawn_angle": 0.2 * THREE},
    zoo.double_wishbone: {"spring_rate": 1e5 * THREE, "wheel_load": 8e3 * THREE},
    zoo.multi_link: {"damping": 1e4 * THREE, "free_length": 0.3 * THREE},
    zoo.macpherson: {"wheel_load": 1e3 * THREE, "gravity": THREE},
    zoo.double_wishbone_kinematic: {"gravity": THREE},
    zoo.macpherson_kinematic: {"gravity": THREE},
    zoo.five_link_kinematic: {"gravity": THREE},
    zoo.five_point: {"spring_rate": 5e4 * THREE, "tyre_radius": 0.35 * THREE},
    zoo.agile_wrist: {"masses": THREE[:, None] * jnp.ones(3), "gravity": THREE},
    zoo.andrews_squeezer: {"torque": 0.03 * THREE, "spring_rate": 4e3 * THREE},
    zoo.bennett: {"length": 0.5 * THREE, "twists": jnp.array([0.6, 1.1]) * THREE[:, None]},
    zoo.sarrus: {"side": 0.2 * THREE, "angle": 0.9 * THREE},
    zoo.scissors: {"angle": 0.5 * THREE, "masses": THREE[:, None] * jnp.ones(2)},
    zoo.bricard: {"length": THREE, "mass": THREE},
    zoo.flyball_governor: {"stiffness": 8e5 * THREE, "ball": 5.0 * THREE},
    zoo.macpherson_steering: {"spring_rate": 3e4 * THREE, "rack_mass": 2.5 * THREE},
    zoo.rsrrp: {"coupler": 0.5 * THREE, "masses": THREE[:, None] * jnp.ones(4)},
} | {
    build: {
        "lengths": THREE[:, None] * jnp.array([0.05, 0.11, 0.1]),
        "pivot": jnp.array([-0.13, -0.02, -0.02]) + SHIFT[:, None],
        "tilt": jnp.pi / 6 * THREE,
        "masses": THREE[:, None] * jnp.ones(3),
        "inertias": THREE[:, None, None] * jnp.ones((3, 2)),
    }
    for build in (zoo.rssr, zoo.rssr_revolutes)
}


def unit(x):
    """`x` over its length."""
    x = np.asarray(x)
    return x / np.linalg.norm(x)


def ends(mech, joint):
    rod = mech.joints[joint]
    return np.asarray(mech.point(rod.point_a)), np.asarray(mech.point(rod.point_b))


def assert_leaves_close(one, other):
    a, b = jax.tree_util.tree_leaves(one), jax.tree_util.tree_leaves(other)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)


def returns(thing):
    return getattr(thing, "__annotations__", {}).get("return")


def test_every_mechanism_is_tried():
    builders = {n for n in zoo.__all__ if returns(getattr(zoo, n)) == "Mechanism"}
    assert {build.__name__ for build in VARIANTS} == builders


@pytest.mark.parametrize(
    ("build", "name"),
    [(b, n) for b, names in VARIANTS.items() for n in names],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_vmap_equals_one_at_a_time(build, name):
    values = VARIANTS[build][name]
    batch = jax.vmap(lambda x: build(**{name: x}))(values)
    for i in range(3):
        one = jax.tree_util.tree_map(lambda x, i=i: x[i], batch)
        assert_leaves_close(one, build(**{name: values[i]}))


@pytest.mark.parametrize("build", VARIANTS, ids=lambda f: f.__name__)
def test_defaults(build):
    mech = build()
    assert isinstance(mech, Mechanism)
    assert mech.dtype == jnp.float64
    assert all(p.default is not p.empty for p in inspect.signature(build).parameters.values())
    for name in mech.structure.bodies:
        np.testing.assert_array_equal(mech.bodies[name].inertia, mech.bodies[name].inertia.T)


@pytest.mark.parametrize(
    ("build", "point"),
    [
        (zoo.double_wishbone, "upper_arm_front"),
        (zoo.double_wishbone, "spring_top"),
        (zoo.multi_link, "trailing_ball"),
        (zoo.macpherson, "strut_top"),
        (zoo.double_wishbone_kinematic, "lower_wishbone_inboard_rear"),
        (zoo.macpherson_kinematic, "strut_top"),
        (zoo.five_link_kinematic, "upper_rear_link_outboard"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_a_moved_hardpoint_moves_something_under_grad(build, point):
    def sum_of_squares(x):
        leaves = jax.tree_util.tree_leaves(build(points={point: x}))
        return sum(jnp.sum(leaf**2) for leaf in leaves)

    slope = jax.grad(sum_of_squares)(jnp.array([0.1, 0.6, 0.5]))
    assert np.all(np.isfinite(slope)) and np.any(slope != 0.0)


def test_an_unknown_hardpoint_is_named():
    with pytest.raises(ValueError, match="no_such_point.*upper_arm_ball"):
        zoo.double_wishbone(points={"no_such_point": (0, 0, 0)})


def test_rssr_closed_form():
    psi = np.radians(np.arange(0.0, 360.5, 0.5))
    theta = zoo.rssr_theta(psi)
    degrees = np.degrees(theta)
    assert degrees[0] == pytest.approx(122.102, abs=1e-3)
    assert degrees[-1] == pytest.approx(degrees[0], abs=1e-10)
    assert [degrees.min(), degrees.max()] == pytest.approx([105.061, 165.127], abs=1e-3)
    assert np.abs(np.diff(degrees)).max() < 2.0
    a = np.array([-0.13, -0.02, -0.02036]) + 0.05 * np.stack(
        [np.cos(psi), np.sin(psi) * np.cos(np.pi / 6), np.sin(psi) * 0.5], axis=1
    )
    b = 0.1 * np.stack([np.cos(theta), np.sin(theta), np.zeros_like(theta)], axis=1)
    np.testing.assert_allclose(np.linalg.norm(a - b, axis=1), 0.11, rtol=1e-13)
    np.testing.assert_allclose(jax.jit(zoo.rssr_theta)(psi), theta, rtol=1e-13)


@pytest.mark.parametrize("build", [zoo.rssr, zoo.rssr_revolutes], ids=lambda f: f.__name__)
def test_rssr_is_drawn_assembled(build):
    mech = build()
    points = {n: np.asarray(x) for n, x in mech.points.items()}
    length = {
        ("crank_pivot", "A"): 0.05,
        ("A", "B"): 0.11,
        ("rocker_pivot", "B"): 0.1,
    }
    for (p, q), expected in length.items():
        assert np.linalg.norm(points[q] - points[p]) == pytest.approx(expected, rel=1e-14)
    axis = np.asarray(mech.joints["crank"].axis)
    assert (points["A"] - points["crank_pivot"]) @ axis == pytest.approx(0.0, abs=1e-17)
    # The table's inertia about the origin: parallel axes brought back.
    coupler, half = mech.bodies["coupler"], (points["B"] - points["A"]) / 2
    about_a = coupler.inertia + coupler.mass * (half @ half * np.eye(3) - np.outer(half, half))
    np.testing.assert_allclose(np.linalg.eigvalsh(about_a), [1.53e-6, 371e-6, 371e-6], rtol=1e-12)


def test_rssr_revolutes_are_right_handed_triads():
    joints = zoo.rssr_revolutes().joints
    for ball in "AB":
        triad = np.stack([joints[f"{ball}{i}"].axis for i in (1, 2, 3)])
        np.testing.assert_allclose(triad @ triad.T, np.eye(3), rtol=0, atol=1e-14)
        assert np.linalg.det(triad) == pytest.approx(1.0)


def test_planar_linkages_as_drawn():
    mech = zoo.four_bar()
    coupler_end, rocker_end = ends(mech, "C")
    np.testing.assert_allclose(coupler_end, [0.8, 0, 0.3])
    np.testing.assert_allclose(rocker_end, [0.7, 0, 0.6])
    np.testing.assert_allclose(np.diagonal(mech.bodies["coupler"].inertia), [2.4e-4, 0.128, 0.128])
    rod = zoo.slider_crank()
    np.testing.assert_allclose(rod.com("rod") - rod.point("B"), [0.3, 0, 0])
    np.testing.assert_allclose(rod.point("A") - rod.com("rod"), [0.2, 0, 0])


def test_n_four_bar_counts():
    mech = zoo.n_four_bar(3)
    assert len(mech.structure.bodies) == 7 and len(mech.structure.joints) == 10
    np.testing.assert_allclose(mech.point("B_3"), [3, 1, 0])
    np.testing.assert_allclose(np.diagonal(mech.bodies["crank_1"].inertia) * 12, [1, 0, 1])
    np.testing.assert_allclose(np.diagonal(mech.bodies["coupler_1"].inertia) * 12, [0, 1, 1])


def test_double_wishbone_published_values():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mech = zoo.double_wishbone()
    assert sum("triangle inequality" in str(w.message) for w in caught) == 2
    np.testing.assert_allclose(mech.joint("rev_uca").axis, [0.499, -0.048, -0.006])
    np.testing.assert_allclose(mech.point(mech.joints["rev_uca"].at), [0.16, 0.539, 0.243])
    np.testing.assert_allclose(np.linalg.eigvalsh(mech.bodies["lca"].inertia), [0.4, 0.4, 0.8938])
    # The source's body axes: x along the hinge, z normal to the arm's plane.
    front_rear = np.array([0.499, -0.048, -0.006])
    rear_ball = np.array([-0.251, -0.221, 0.006])
    normal = np.cross(rear_ball, front_rear)
    np.testing.assert_allclose(
        mech.bodies["uca"].inertia @ normal, 0.06276 * normal, rtol=1e-6, atol=1e-9
    )
    assert mech.bodies["upright"].mass == 19.45
    assert mech.forces["shock"].damping == 22459.0
    np.testing.assert_allclose(mech.forces["wheel_load"].force, [0, 0, 8000])


def test_multi_link_and_macpherson_published_values():
    multi_link, strut = zoo.multi_link(), zoo.macpherson()
    lateral = multi_link.joints["univ_lat"]
    assert isinstance(lateral, Universal) and (lateral.a, lateral.b) == ("lateral", "ground")
    for joint in (lateral, multi_link.joints["univ_tl"], strut.joints["univ_strut"]):
        assert abs(joint.axis_a @ joint.axis_b) < 1e-15
    np.testing.assert_allclose(
        unit(strut.joint("cyl_strut").axis),
        [-0.12051262538976, -0.20085422859306, 0.97218017156181],
    )
    np.testing.assert_allclose(strut.com("strut"), [-0.094512535, 0.81914575, 0.4137268])
    spring = strut.forces["spring"]
    assert isinstance(spring, SpringDamper) and spring.b == "upright"
    assert spring.at_a == strut.joints["univ_strut"].at == strut.forces["shock"].at_a


def test_kinematic_corners_published_values():
    wishbones, strut = zoo.double_wishbone_kinematic(), zoo.macpherson_kinematic()
    np.testing.assert_allclose(
        wishbones.joint("upper_wishbone").axis, [0.5, 0, 0], rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(np.subtract(*ends(wishbones, "trackrod")), [-0.1, -0.6, -0.025])
    assert isinstance(wishbones.joints["trackrod"], Rod)
    # The published strut_bottom lies on the strut's line, at 0.35 of it.
    line = strut.joint("strut").axis
    start = strut.point("lower_wishbone_outboard")
    np.testing.assert_allclose(start + 0.35 * line, strut.point("strut_bottom"), rtol=0, atol=1e-15)
    universal = strut.joints["strut_top"]
    assert abs(universal.axis_b @ line) < 1e-15
    rods = [j for j in zoo.five_link_kinematic().joints.values() if isinstance(j, Rod)]
    assert len(rods) == 5


# Axle ends [mm], camber and toe [deg] computed by suspension-explorer-core 0.6.2 (9843fa7d): double
# wishbone at -80 mm of travel; the same at 30 mm with the rack at -30 mm; MacPherson, rack 20 mm.
AXLES = [
    (
        (-18.9508091426097, 792.404141212963, 228.144449826977),
        (-23.8479703385086, 942.314525692574, 233.426),
        -2.01777497450279,
        -1.87103064021954,
    ),
    (
        (-28.2640277839749, 801.895432299303, 337.363488124856),
        (-0.146424328349091, 949.196642954577, 343.426),
        -2.35680623470013,
        10.8069036159255,
    ),
    (
        (-12.712816885346, 796.586947170437, 337.980909214668),
        (-29.9554956818079, 945.577018467688, 343.426),
        -2.09303834547598,
        -6.60149491567526,
    ),
]


@pytest.mark.parametrize(("inboard", "outboard", "camber", "toe"), AXLES)
def test_wheel_angles(inboard, outboard, camber, toe):
    spindle = jnp.subtract(jnp.array(outboard), jnp.array(inboard))
    assert np.degrees(zoo.camber_angle(spindle)) == pytest.approx(camber, abs=1e-9)
    assert np.degrees(zoo.toe_angle(spindle)) == pytest.approx(toe, abs=1e-9)


def test_laws_of_drives_in_the_zoo():
    """The ramped drive is balanced at one speed; the rack's sine starts with its largest rate."""
    drive = zoo.RampedDrive(peak=10.0, start=5.0, speed=9.0)
    assert drive(2.5, 0.0, 1.8) == pytest.approx(5.0 - 2.0)
    assert drive(7.0, 0.0, 9.0) == pytest.approx(0.0, abs=1e-15)
    law = {"amplitude": 0.06, "period": 2.0}
    travel, rate = jax.jvp(lambda t: zoo.rack_sine(t, law), (0.0,), (1.0,))
    assert travel == 0.0 and rate == pytest.approx(0.06 * np.pi)
    assert zoo.rack_sine(1.5, law) == pytest.approx(-0.06)
