"""Hardpoints that a template can draw and that look wrong: each told, and no sensible one."""

import re
import warnings

import numpy as np
import pytest

from jaxmbd import suspension
from jaxmbd.suspension import TEMPLATES, TemplateNumbers, example_hardpoints
from jaxmbd.suspension.plausible import doubts

OPTIONS = {
    "double_wishbone": [
        {"spring_by": x}
        for x in ("lower_arm", "upper_arm", "upright", "pushrod", "pullrod", None)
    ],
    "macpherson": [{}], "five_link": [{}], "trailing_arm": [{}], "semi_trailing_arm": [{}],
    "rigid_axle": [{}, {"lateral": "watts"}, {"links": "four", "lateral": None}],
    "twist_beam": [{}],
}  # fmt: skip
STEERED = ("double_wishbone", "macpherson", "five_link")


@pytest.mark.parametrize("template", TEMPLATES)
def test_sensible_hardpoints_pass(template):
    """The examples and 60 of each that are 8 mm off, tyres, springs and loads of cars."""
    rng = np.random.default_rng(11)
    for options in OPTIONS[template]:
        drawn = example_hardpoints(template, **options)
        for k in range(60):
            p = {n: x + 0.008 * rng.normal(size=3) * (k > 0) for n, x in drawn.items()}
            for axle in ("front", "rear") if template in STEERED else ("rear",):
                numbers = TemplateNumbers(
                    tyre_radius=rng.uniform(0.26, 0.42), spring_rate=rng.uniform(8e3, 4e5),
                    wheel_load=rng.uniform(600.0, 9e3), axle=axle,
                )  # fmt: skip
                assert doubts(p, numbers) == [], (options, k)


def test_a_model_car_passes():
    """Of a tenth of the size, with springs and loads of its own."""
    p = {n: 0.1 * x for n, x in example_hardpoints("double_wishbone").items()}
    own = dict(spring_rate=300.0, wheel_load=5.0, wheelbase=0.27, cg_height=0.05)
    assert doubts(p, TemplateNumbers(tyre_radius=0.033, **own)) == []


def swapped(a, b):
    return lambda p: p.update({a: p[b], b: p[a]})


def flipped(p):
    p.update({n: x * [-1.0, 1.0, 1.0] for n, x in p.items()})


def inside(p):
    p.pop("axle_inboard")
    p["wheel_centre"] = p["wheel_centre"] - [0.0, 0.25, 0.0]


def moved(name, *by):
    return lambda p: p.update({name: p[name] + np.array(by)})


@pytest.mark.parametrize(
    ("template", "change", "options", "text"),
    [
        ("double_wishbone", None, {"spring_rate": 60.0}, "60 N/mm is spring_rate=60000"),
        ("double_wishbone", None, {"wheel_load": 4.0}, "4 kN are 4e3"),
        ("double_wishbone", None, {"wheelbase": 2700.0}, "wheelbase=2700 is in m"),
        ("double_wishbone", inside, {}, "'wheel_centre' is at y"),
        ("five_link", inside, {}, "inside of all that carries"),
        ("double_wishbone", flipped, {}, r"x = .*each front point is behind.*axes = \["),
        ("macpherson", flipped, {}, "each front point is behind its rear one"),
        ("five_link", flipped, {"axle": "rear"}, "all front links are behind the rear ones"),
        ("trailing_arm", flipped, {}, "'arm_pivot' x = .*runs rearwards to its pivot"),
        ("semi_trailing_arm", flipped, {}, "'arm_outer'"),
        ("twist_beam", flipped, {}, "'arm_pivot'"),
        ("rigid_axle", flipped, {}, "'lower_link_inboard'"),
        ("double_wishbone", moved("upper_arm_ball", 0.08, 0, 0), {}, "negative caster"),
        ("double_wishbone", swapped("upper_arm_front", "upper_arm_rear"), {},
         "'upper_arm_front' x = .*are they swapped"),
        ("double_wishbone", swapped("tierod_inboard", "tierod_outboard"), {},
         "'tierod_inboard' is nearer to the wheel centre"),
        ("five_link", swapped("upper_rear_link_inboard", "upper_rear_link_outboard"), {},
         "'upper_rear_link_inboard' is nearer"),
        ("double_wishbone", moved("lower_arm_ball", 0, -0.9, 0), {}, "'lower_arm_ball' is inside"),
        ("double_wishbone", swapped("spring_top", "spring_bottom"), {}, "'spring_top', on the"),
        ("double_wishbone", moved("axle_inboard", 0.4, 0, 0), {}, "off the y axis"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_hardpoint(template, change, options, text):
    p = example_hardpoints(template)
    if change is not None:
        change(p)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TEMPLATES[template](p, **options)
    found = [str(w.message) for w in caught]
    assert any(re.search(text, x) for x in found), found


def test_a_pushrod_the_wrong_way_and_a_soft_heave_spring_are_told():
    p = example_hardpoints("double_wishbone", spring_by="pushrod")
    mech, roles = suspension.double_wishbone_corner(p, spring_by="pushrod")
    with pytest.warns(UserWarning, match="50 N/mm is heave_spring=50000"):
        suspension.template_axle(mech, roles, heave_spring=50.0)
    p["pushrod_inboard"], p["pushrod_outboard"] = p["pushrod_outboard"], p["pushrod_inboard"]
    assert any("'pushrod_outboard' is inside" in x for x in doubts(p, TemplateNumbers()))


def test_a_spindle_without_length_is_named_as_such():
    mech, roles = suspension.double_wishbone_corner(example_hardpoints("double_wishbone"))
    flat = mech.replace(points={"axle_inboard": mech.points["wheel_centre"]})
    assert "so the wheel has no axis" in roles.problems(flat)[0]
