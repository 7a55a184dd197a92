"""Build and design tolerances, against calculations by hand and halves drawn apart by hand."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.tolerances import shared, split

ARM, ROD = 0.12, 0.4


def steering():
    """A wheel seen from above: its arm points back, the track rod leads across to the rack."""
    return mbd.Mechanism(
        {"wheel": mbd.Body(10.0, (0.0, 0.0), 0.5)},
        {
            "kingpin": mbd.Revolute("ground", "wheel", at="pivot"),
            "track_rod": mbd.Rod("ground", "wheel", at_a="rack", at_b="arm"),
        },
        points={"pivot": (0.0, 0.0), "arm": (-ARM, 0.0), "rack": (-ARM, -ROD)},
    )


def turn(mech):
    """Angle of the wheel [rad]."""
    found = mbd.assemble(mech)
    return found.q[0], found.status


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        # The rod pushes the arm's end by δ to the left: the wheel turns by −δ/arm.
        ("lengths/track_rod", 1e-4, -1e-4 / ARM),
        ("offsets/rack@ground", (0.0, 1e-4), -1e-4 / ARM),
        ("offsets/arm@wheel", (0.0, 1e-4), 1e-4 / ARM),
        ("offsets/arm@wheel", (1e-4, 0.0), 0.0),  # along the arm
        ("offsets/pivot@ground", (0.0, 1e-4), 1e-4 / ARM),
        ("offsets/pivot@wheel", (0.0, 1e-4), -1e-4 / ARM),
    ],
)
def test_a_steering_linkage_by_hand(path, value, expected):
    build = split(steering())
    assert list(build.variables) == [
        "offsets/pivot@ground",
        "offsets/pivot@wheel",
        "offsets/rack@ground",
        "offsets/arm@wheel",
        "lengths/track_rod",
    ]
    angle, status = turn(build({path: np.array(value)}))
    assert status == 0
    np.testing.assert_allclose(angle, expected, rtol=0, atol=2e-6)  # second order: (δ/arm)²


def test_shared_hardpoints_turn_nothing():
    design = shared(steering())
    assert list(design.variables) == [f"offsets/{n}" for n in ("pivot", "arm", "rack")]
    for path in design.variables:
        angle, status = turn(design({path: (1e-3, 2e-3)}))
        assert status == 0 and abs(angle) < 1e-12


def attitude(mech):
    """Toe and camber [rad] of the corner with its wheel centre as high as drawn, and its status."""
    height = mbd.PointCoordinate("upright", "wheel_centre", "z")
    found = mbd.assemble(mech, known={height: mech.point("wheel_centre")[2]})
    d = mbd.poses(mech, found.q)["upright"].rotation @ jnp.array([0, 1.0, 0])
    return jnp.stack([mbd.zoo.toe_angle(d), mbd.zoo.camber_angle(d)]), found.status


def test_one_half_of_the_published_corner():
    """Derivatives by the half's offset are differences of corners with the half drawn apart."""
    corner = mbd.zoo.multi_link()
    build = split(corner, "lateral_ball")

    def offset(e):
        return attitude(build({"offsets/lateral_ball@upright": e}))[0]

    def by_hand(e):
        at_b = corner.points["lateral_ball"] + e
        apart = mbd.Spherical("lateral", "upright", at="lateral_ball", at_b=at_b)
        angles, status = attitude(corner.replace(joints={"sph_lat": apart}))
        assert status == 0
        return np.asarray(angles)

    slopes, h = lanes.jit(jax.jacrev(offset))(np.zeros(3)), 1e-5
    differences = [(by_hand(h * e) - by_hand(-h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(slopes, np.transpose(differences), rtol=1e-6, atol=1e-7)
    assert np.degrees(np.abs(slopes).max() * 1e-3) > 0.2  # a millimetre on one part alone
    design = shared(corner, "lateral_*")
    moved = {
        "offsets/lateral_ball": 1e-3 * np.ones(3),
        "offsets/lateral_inboard": np.ones(3) * 1e-3,
    }
    np.testing.assert_allclose(attitude(design(moved))[0], 0.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("build", [mbd.zoo.multi_link, mbd.zoo.rsrrp])
def test_without_offsets_it_is_the_drawn_mechanism(build):
    mech = build()
    exact = split(mech)({})
    q, v = mbd.neutral(mech), 0.1 * np.ones(mbd.topology(mech).nv)
    assert mbd.topology(exact).layout == mbd.topology(mech).layout
    np.testing.assert_allclose(
        mbd.forward_dynamics(exact, q, v)[0], mbd.forward_dynamics(mech, q, v)[0], rtol=1e-9
    )


def test_a_shift_of_all_holes_of_a_part_only_moves_the_part():
    corner = mbd.zoo.multi_link()
    build = split(corner, brackets={"all holes": ["*@upright"]})
    e = np.array([1e-3, -2e-3, 3e-3])
    mech = build({"shifts/all holes": e})
    found = mbd.assemble(mech, known={"rev_ua": 0.0})
    before, after = mbd.poses(corner, mbd.neutral(corner)), mbd.poses(mech, found.q)
    assert found.status == 0
    for body in ("upper_arm", "lateral", "trailing", "upright"):
        np.testing.assert_allclose(after[body].rotation, np.eye(3), rtol=0, atol=1e-10)
    moved = mbd.point_position(mech, found.q, "upright", "wheel_centre")
    np.testing.assert_allclose(moved, corner.points["wheel_centre"] - e, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        after["lateral"].position, before["lateral"].position, rtol=0, atol=1e-10
    )


def test_an_axis_tilts_about_the_axes_that_are_named():
    build = split(mbd.zoo.multi_link(), "rev_spindle")
    on_upright = build.variables["tilts/rev_spindle@upright"]
    assert on_upright.unit == "rad" and on_upright.text.endswith("about (1, 0, 0) and (0, 0, 1)")
    mech = build({"tilts/rev_spindle@upright": (0.01, 0.02)})
    q = mbd.neutral(mech)
    spin = mbd.poses(mech, q)["spindle"].rotation @ np.array([0.0, 1.0, 0.0])
    np.testing.assert_allclose(spin / spin[1], [-0.02, 1.0, 0.01], rtol=0, atol=1e-12)


def test_springs_keep_their_length_and_designs_move_on():
    corner = mbd.zoo.five_point()
    corner = corner.replace(
        forces={
            "spring": mbd.SpringDamper("chassis", "lower_link", "spring_top", "strut_bottom", 5e4)
        }
    )
    drawn = float(np.linalg.norm(corner.points["spring_top"] - corner.points["strut_bottom"]))
    mech = split(corner)(
        {"offsets/strut_bottom@lower_link": (0.0, 0.0, -2e-3), "lengths/spring": "1 mm"}
    )
    np.testing.assert_allclose(mech.forces["spring"].free_length, drawn + 1e-3, rtol=1e-14)
    lower = np.array([0.0, 0.0, -0.01])
    mech = split(corner)({"points/strut_bottom": corner.points["strut_bottom"] + lower})
    place = mech.points["strut_bottom@lower_link"]
    np.testing.assert_allclose(place, corner.points["strut_bottom"] + lower)
    np.testing.assert_allclose(
        mech.forces["spring"].free_length,
        np.linalg.norm(corner.points["spring_top"] - place),
    )


def test_parts_out_of_plane_do_not_fit_a_four_bar_drawn_in_space():
    build = split(mbd.zoo.four_bar(), "B", "C", "D")
    known = {"A": 0.3}
    assert mbd.assemble(build({}), known).status == 0
    bent = jax.jit(lambda e: mbd.assemble(build({"tilts/B@coupler": e}), known).status)
    assert bent(np.array([0.0, 0.0])) == 0 and bent(np.array([0.01, 0.01])) != 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: split(m, "kinpin"), "no joint, spring or hardpoint 'kinpin'.*'kingpin'"),
        (lambda m: shared(m, "rak"), "no point 'rak'.*'rack'"),
        (
            lambda m: split(m, brackets={"plate": "rack@wheel"}),
            "'plate' 'rack@wheel'.*'rack@ground'",
        ),
        (lambda m: split(m)({"offsets/arm@ground": (0, 0)}), "'offsets/arm@ground'.*arm@wheel"),
        (lambda m: split(m)({"offsets/arm@wheel": 0.001}), "offset of 'arm'.*2 numbers"),
        (lambda m: split(m)({"lengths/track_rod": "1 kg"}), "in m, but '1 kg'"),
        (lambda m: split(m)({"points/amr": (0, 0)}), "no variable 'points/amr'"),
    ],
)
def test_what_is_wrong_is_told(call, words):
    with pytest.raises(ValueError, match=words):
        call(steering())


def test_it_travels_to_other_processes():
    build = split(steering(), brackets={"rack": ["rack@ground"]})
    again = pickle.loads(pickle.dumps(build))
    assert again.variables.units == build.variables.units
    offsets = {"shifts/rack": (0.0, 1e-3), "lengths/track_rod": 2e-3}
    assert turn(again(offsets))[0] == turn(build(offsets))[0]
