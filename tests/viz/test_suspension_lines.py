"""Lines of a suspension and names of hardpoints in its picture."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import jaxmbd as mbd  # noqa: E402
from jaxmbd import suspension  # noqa: E402
from jaxmbd.viz import picture  # noqa: E402
from jaxmbd.viz.suspension_lines import suspension_lines  # noqa: E402

CORNER = mbd.zoo.double_wishbone_kinematic()
ROLES = suspension.zoo_corner("double_wishbone_kinematic")
PLACES = [-0.03, 0.0, 0.04]
SIZE = 3.0


@pytest.fixture(scope="module")
def course():
    names = ("roll_centre_height", "contact", "instant_axis_point", "instant_axis_direction")
    sweep = suspension.kinematics_sweep(ROLES, travel=PLACES, observe=names, gradients=())
    return sweep.trajectory(CORNER)


def off(point, ends):
    """Distance of a point from the line through two."""
    way = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    return np.linalg.norm(np.cross(point - ends[0], way))


def test_lines_of_a_corner(course):
    """Through the kingpin's balls, along the instant axis, and to the roll centre."""
    found, kinds = suspension_lines(CORNER, [ROLES], course.q, SIZE)
    assert kinds == ("instant axis", "steering axis", "roll centre")
    for k, q in enumerate(course.q):
        axis, kingpin, centre = found[k]
        for ball in ("lower_wishbone_outboard", "upper_wishbone_outboard"):
            assert off(np.asarray(mbd.point_position(CORNER, q, "upright", ball)), kingpin) < 1e-12
        assert off(course.curves["instant_axis_point"][k], axis) < 1e-12
        np.testing.assert_allclose(
            (axis[1] - axis[0]) / (0.6 * SIZE), course.curves["instant_axis_direction"][k]
        )
        contact = course.curves["contact"][k]
        np.testing.assert_allclose(centre[0], contact, rtol=0, atol=1e-12)
        height = contact[2] + course.curves["roll_centre_height"][k]
        np.testing.assert_allclose(centre[1], [contact[0], 0.0, height], rtol=0, atol=1e-12)
    assert np.all(np.isnan(suspension_lines(CORNER, [ROLES], course.q, 0.1)[0][:, 0]))


def test_a_picture_shows_lines_and_names(course):
    figure = picture(CORNER, course, frame=1, corners=ROLES, labels=["trackrod_inboard"])
    [ax] = figure.axes
    assert [len(x.get_segments()) for x in ax.collections if x.get_zorder() == 3] == [3]
    assert "trackrod_inboard" in [x.get_text() for x in ax.texts]
    every = picture(CORNER, course, labels=True).axes[0].texts
    assert {"upper_wishbone_outboard", "axle_outboard"} < {x.get_text() for x in every}
    with pytest.raises(ValueError, match="trackrod_inboard"):
        picture(CORNER, course, labels="trackrod_inbord")


@pytest.mark.slow
def test_an_axle_on_its_rig_has_lines_to_its_roll_centre():
    """A rigid axle that turns about a pin: both lines end there, also as it rolls."""
    rigid = mbd.Mechanism(
        bodies={"slider": mbd.Body(0.0, com=(0, 0, 0.3)),
                "axle": mbd.Body(80.0, com=(0, 0, 0.3), inertia=np.diag([12.0, 1.0, 12.0]))},
        joints={"slide": mbd.Prismatic("ground", "slider", at="pin", axis=(0, 0, 1)),
                "pin": mbd.Revolute("slider", "axle", at="pin", axis=(1, 0, 0))},
        points={"left": (0.0, 0.7, 0.3), "right": (0.0, -0.7, 0.3), "pin": (0.0, 0.0, 0.21)},
    )  # fmt: skip
    roles = [
        suspension.Corner("axle", side, 0.3, side=side, spindle=(0.0, sign, 0.0))
        for side, sign in (("left", 1.0), ("right", -1.0))
    ]
    plain, rig = suspension.axle_sweep(roles, roll=[0.0, 0.05], observe=["track"]).on(rigid)
    q = plain.trajectory(rig).q
    found, kinds = suspension_lines(rig, roles, q, SIZE)
    to_centre = [k for k, kind in enumerate(kinds) if kind == "roll centre"]
    assert len(to_centre) == 2
    for k, angle in enumerate((0.0, 0.05)):
        # On the axle's middle line, at the pin's height along the road's normal.
        normal = np.array([0.0, np.sin(angle), np.cos(angle)])
        height = normal @ (found[k, to_centre[0], 1] - found[k, to_centre[0], 0])
        lateral = 0.21 * np.tan(angle) / np.cos(angle)
        for line in found[k, to_centre]:
            np.testing.assert_allclose(line[1], found[k, to_centre[0], 1], rtol=0, atol=1e-12)
            assert abs(line[1][1] - lateral) < 1e-12
        table = suspension.axle_kinematics(
            rigid, roles, roll=[angle, angle + 0.01], observe=["roll_centre_height"]
        )
        assert abs(height - table["roll_centre_height"][0]) < 1e-12
