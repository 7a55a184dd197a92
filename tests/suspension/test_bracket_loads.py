"""Loads of brackets and mounts, against free bodies with a joint of forces at each bracket."""

import numpy as np
import pytest
from fails_cases.member_loads import Member, balance, ball, rod, slide, wheel

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.suspension import load_cases, member_loads

CASES = {
    "stop": {"vertical": 5200.0, "braking": 4800.0, "aligning": -60.0},
    "turn": {"vertical": 6100.0, "lateral": 5400.0, "overturning": 30.0},
}


def unit(x):
    return x / np.linalg.norm(x)


def across(a, b, at, axis):
    """Two forces across an axis."""
    first = unit(np.cross(axis, [0.3, 0.2, 1.0]))
    pair = np.stack([first, np.cross(axis, first)])
    return Member(a, b, at, np.hstack([np.zeros((2, 3)), pair]))


@pytest.fixture(scope="module")
def strut():
    points = suspension.example_hardpoints("macpherson")
    points = {n: x for n, x in points.items() if not n.startswith(("bar", "droplink"))}
    mech, roles = suspension.macpherson_corner(points, masses={"rack": 0.0})
    return mech, roles, load_cases(mech, roles, CASES)


def free_bodies(mech, roles, loads):
    """The front bracket takes the arm's axial force, the rear one none."""
    p = {n: np.asarray(x) for n, x in mech.points.items()}
    hinge = unit(p["lower_arm_front"] - p["lower_arm_rear"])
    axis = unit(p["strut_top"] - p["strut_bottom"])
    strut = slide("strut", "upright", p["strut_bottom"], axis)
    members = {
        "front": ball("ground", "lower_arm", p["lower_arm_front"]),
        "rear": across("ground", "lower_arm", p["lower_arm_rear"], hinge),
        "ball": ball("lower_arm", "upright", p["lower_arm_ball"]),
        "top": ball("ground", "strut", p["strut_top"]),
        "strut": strut._replace(columns=strut.columns[:-1]),
        "spring": rod("ground", "upright", p["strut_top"], p["strut_bottom"]),
        "tierod": rod("rack", "upright", p["tierod_inboard"], p["tierod_outboard"]),
        "rack": slide("ground", "rack", p["tierod_inboard"], np.array([0.0, 1.0, 0.0])),
    }
    centre, spin = p["wheel_centre"], unit(p["wheel_centre"] - p["axle_inboard"])
    weight = float(mech.bodies["upright"].mass) * np.asarray(mech.gravity)
    acting = [("upright", np.asarray(mech.point(mech.bodies["upright"].com)), weight, np.zeros(3))]
    found = balance(members, [*acting, *wheel(roles, loads, centre, spin, "upright")])
    return hinge, {n: found[n] @ members[n].columns[:, 3:] for n in members}


def test_brackets_and_the_mount_of_a_strut(strut):
    mech, roles, table = strut
    for case, loads in CASES.items():
        hinge, forces = free_bodies(mech, roles, loads)
        found = table.at(case)
        axial = forces["front"] @ hinge
        size = np.linalg.norm(forces["front"])
        for end in ("front", "rear"):
            radial = forces[end] - (forces[end] @ hinge) * hinge
            expected = radial + 0.5 * axial * hinge
            got = [found[f"lower_arm_{end}_force_{x}"] for x in "xyz"]
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * size)
            assert found[f"lower_arm_{end}_force"] == pytest.approx(np.linalg.norm(expected))
        assert abs(found["lower_arm_axial"]) == pytest.approx(abs(axial), rel=1e-9)
        total = -(forces["top"] + forces["spring"])
        got = [found[f"strut_top_mount_force_{x}"] for x in "xyz"]
        np.testing.assert_allclose(got, total, rtol=0, atol=1e-9 * np.linalg.norm(total))
        assert found["strut_top_mount_force"] < abs(found["spring"]) + found["strut_top_force"]


@pytest.mark.slow
def test_a_mount_with_springs_that_give_way_is_that_of_a_locked_one(strut):
    """At rest under a case the mount carries what it does with a locked one."""
    mech, roles, _ = strut
    names = [f"strut_top_mount_force_{x}" for x in "xyz"]
    carrying = suspension.preloaded(mech, roles, 4000.0)
    none = {"rest": {}}
    rest = load_cases(carrying, roles, none, travel=None, observe=names)
    held = load_cases(carrying, roles, none, observe=names)
    for name in names:
        np.testing.assert_allclose(rest[name], held[name], atol=1e-6)


@pytest.mark.slow
def test_a_mount_at_a_bracket_or_a_link_feels_that_end_alone():
    """Not the whole force of the hinge, whose other bracket bears the rest; and the rod, too."""
    points = suspension.example_hardpoints("double_wishbone", steering_by="fixed")
    mech, roles = suspension.double_wishbone_corner(points, steering_by="fixed")
    ends = {"spring": "upper_arm_front", "helper": "tierod_inboard"}
    springs = {
        name: mbd.SpringDamper("ground", "lower_arm", end, "spring_bottom", 3e4, preload=-500.0)
        for name, end in ends.items()
    }
    car = mech.replace(forces=springs)
    names = [f"{p}_{x}" for p in ("upper_arm_front_force", *_mounts(ends)) for x in "xyz"]
    table = load_cases(car, roles, {"stop": CASES["stop"]}, observe=[*names, "tierod", *ends])
    force = {n: np.array([table[f"{n}_{x}"][0] for x in "xyz"]) for n in _mounts(ends)}
    bracket = np.array([table[f"upper_arm_front_force_{x}"][0] for x in "xyz"])
    rod = table["tierod"][0] * unit(points["tierod_outboard"] - points["tierod_inboard"])
    for (name, end), held in zip(ends.items(), (-bracket, rod), strict=True):
        pull = table[name][0] * unit(points["spring_bottom"] - points[end])
        np.testing.assert_allclose(force[f"{end}_mount_force"], pull + held, rtol=0, atol=1e-6)


def _mounts(ends):
    return [f"{end}_mount_force" for end in ends.values()]


def test_every_hinge_through_two_points_has_brackets():
    points = suspension.example_hardpoints("double_wishbone", spring_by="pushrod")
    mech, roles = suspension.double_wishbone_corner(points, spring_by="pushrod")
    names = member_loads(mech, roles)
    for point in ("upper_arm_front", "lower_arm_rear", "rocker_pivot_rear"):
        assert {f"{point}_force", f"{point}_force_z"} <= set(names)
    assert "rocker_axial" in names and not any("mount" in n for n in names)
    about = names["upper_arm_rear_force_x"].about(mech)
    assert about.unit == "N" and "half of the axial force" in about.text
    strut = mbd.zoo.macpherson()
    assert "strut_top_mount_force" in member_loads(strut, suspension.zoo_corner("macpherson"))
