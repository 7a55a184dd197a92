"""Roles of corners made by hand whose points look wrong: each told by its own name."""

import re
from dataclasses import replace

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.suspension import zoo_corner
from jaxmbd.suspension.plausible import corner_doubts

CORNERS = (
    "double_wishbone", "double_wishbone_kinematic", "macpherson", "macpherson_kinematic",
    "five_link_kinematic", "multi_link",
)  # fmt: skip


def moved(mech, factors=(1.0, 1.0, 1.0), **points):
    drawn = {n: np.asarray(mech.points[n]) * factors for n in mech.structure.points}
    return mech.replace(points=drawn | {n: drawn[n] + np.array(by) for n, by in points.items()})


@pytest.mark.parametrize("name", CORNERS)
def test_the_zoo_and_its_mirror_images_pass(name):
    mech, roles = getattr(mbd.zoo, name)(), zoo_corner(name)
    assert corner_doubts(mech, roles) == []
    image = moved(mech, (1.0, -1.0, 1.0))
    spindle = roles.spindle
    if spindle is not None and len(spindle) == 3:
        spindle = tuple(np.array(spindle) * (1.0, -1.0, 1.0))
    assert corner_doubts(image, replace(roles, side="right", spindle=spindle)) == []


@pytest.mark.parametrize(
    ("name", "factors", "points", "text"),
    [
        ("double_wishbone", (-1.0, 1.0, 1.0), {}, "'upper_arm_front' x = .*x is forward here"),
        ("macpherson", (-1.0, 1.0, 1.0), {}, "'lower_arm_front' x = .*x is forward here"),
        ("double_wishbone", (1.0, 1.0, 1.0), {"wheel_centre": (0.0, -0.4, 0.0)},
         "'wheel_centre' is at y = .*'upper_arm_ball' .*'tierod_outboard'"),
        ("five_link_kinematic", (1.0, 1.0, 1.0), {"axle_outboard": (0.0, -0.3, 0.0)},
         "'axle_outboard' is at y = .*inside of all"),
        ("double_wishbone_kinematic", (1.0, 1.0, 1.0),
         {"lower_wishbone_outboard": (0.0, -0.8, 0.0)}, "'lower_wishbone_outboard' is inside of"),
        ("double_wishbone_kinematic", (1.0, 1.0, 1.0), {"axle_inboard": (0.4, 0.0, 0.0)},
         "'axle_inboard' and 'axle_outboard': the wheel's axis leans"),
        ("double_wishbone", (1.0, 1.0, 1.0), {"tierod_inboard": (0.1, 0.6, 0.0)},
         "'tierod_inboard' is nearer to the wheel centre than 'tierod_outboard'"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_point(name, factors, points, text):
    mech = moved(getattr(mbd.zoo, name)(), factors, **points)
    found = corner_doubts(mech, zoo_corner(name))
    assert any(re.search(text, x) for x in found), found


def test_a_table_of_a_corner_warns():
    mech = moved(mbd.zoo.double_wishbone_kinematic(), (-1.0, 1.0, 1.0))
    roles = zoo_corner("double_wishbone_kinematic")
    with pytest.warns(UserWarning, match="x is forward here"):
        suspension.kinematics(mech, roles, travel=[0.0, 0.01], observe=["camber"])
