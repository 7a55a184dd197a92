"""Toe and camber are those of the wheel's own axis, as its bearing is drawn."""

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.observe import Camber, Configuration, Toe
from jaxmbd.suspension import Characteristic, Corner

AXIS = np.array([0.03, 1.0, -0.05])


def arm(sign=1.0, bearing=True, flipped=False):
    """A wheel whose spindle is drawn with toe-in and camber, on an arm hinged along x and z."""
    axis = AXIS * (1.0, sign, 1.0)
    parts = ("wheel", "arm") if flipped else ("arm", "wheel")
    own = mbd.Revolute(*parts, at="hub", axis=-axis if flipped else axis)
    other = mbd.Fixed(*parts, at="hub")
    solid = dict(mass=1.0, inertia=np.eye(3))
    return mbd.Mechanism(
        bodies={"arm": mbd.Body(com=(0, sign, 0), **solid), "wheel": mbd.Body(com="hub", **solid)},
        joints={
            "hinge": mbd.Revolute("ground", "arm", at=(0, 0, 0), axis=(1, 0.2, 0.3)),
            "bearing": own if bearing else other,
        },
        points={"hub": (0.0, sign, 0.0)},
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("flipped", [False, True])
def test_toe_and_camber_follow_a_spindle_drawn_with_camber(sign, flipped):
    mech, side = arm(sign, flipped=flipped), "left" if sign > 0 else "right"
    roles = Corner("arm", "hub", 0.3, side=side)
    seen = {
        "toe": Toe("arm", side),
        "camber": Camber("arm", side),
        "wheel": Toe("wheel", side),
        "column": Characteristic(roles, "camber"),
    }
    found = Configuration({"hinge": 0.2, "bearing": 0.7}, seen)(mech)
    k = np.array([1, 0.2, 0.3]) / np.linalg.norm([1, 0.2, 0.3])
    s = AXIS * (1.0, sign, 1.0)  # Rodrigues' formula turns the drawn axis
    s = s * np.cos(0.2) + np.cross(k, s) * np.sin(0.2) + k * (k @ s) * (1 - np.cos(0.2))
    toe, camber = np.arctan2(s[0], sign * s[1]), np.arctan2(-s[2], sign * s[1])
    got = [float(found[n]) for n in ("toe", "wheel", "camber", "column")]
    np.testing.assert_allclose(got, [toe, toe, camber, camber], atol=1e-14)


def test_without_a_bearing_or_with_a_direction_of_its_own():
    seen = {"along_y": Toe("arm"), "given": Toe("arm", spindle=AXIS)}
    welded, turning = (Configuration({}, seen)(arm(bearing=b)) for b in (False, True))
    assert float(welded["along_y"]) == 0.0
    for found in (welded, turning):
        assert float(found["given"]) == pytest.approx(np.arctan2(0.03, 1.0))
