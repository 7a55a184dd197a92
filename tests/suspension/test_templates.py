"""Templates of corners and axles, against the zoo and an independent solver of distances."""

import numpy as np
import pytest
from point_distances import Distances

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.analysis import PointTravel
from jaxmbd.suspension import TEMPLATES, TemplateNumbers, example_hardpoints

MIRROR = np.array([1.0, -1.0, 1.0])
CHASSIS = ("_top", "_chassis", "_inboard", "_pivot", "_front", "_rear", "arm_outer", "arm_inner")


def shaken(template, seed=3, **options):
    """The example with all points moved by some millimetres."""
    rng = np.random.default_rng(seed)
    drawn = example_hardpoints(template, **options)
    p = {n: x + 0.006 * rng.normal(size=3) for n, x in drawn.items()}
    if "beam_centre" in p:
        p["beam_centre"][1] = 0.0
    return p


ARM = ("{}_front", "{}_rear", "{}_ball")


def arms(*names):
    return [tuple(x.format(n) for x in ARM) for n in names]


UPRIGHT = ("wheel_centre", "axle_inboard", "tierod_outboard")
LINKS = ("upper_front_link", "upper_rear_link", "lower_front_link", "lower_rear_link")


def ends(*names):
    return [(f"{n}_inboard", f"{n}_outboard") for n in names]


def wishbones(rod, on):
    """Bodies and rods of a double wishbone whose pushrod or pullrod starts from an arm."""
    upper, lower = arms("upper_arm", "lower_arm")
    bodies = [
        (*upper, *([f"{rod}_outboard"] if on == "upper_arm" else [])),
        (*lower, *([f"{rod}_outboard"] if on == "lower_arm" else [])),
        ("upper_arm_ball", "lower_arm_ball", *UPRIGHT),
        ("rocker_pivot_front", "rocker_pivot_rear", f"{rod}_inboard", "spring_rocker"),
    ]
    return bodies, ends("tierod", rod)


FIVE = (
    [("spring_bottom", "lower_rear_link_inboard", "lower_rear_link_outboard")],
    [*(f"{n}_outboard" for n in LINKS), *UPRIGHT],
)
SWING = ("wheel_centre", "axle_inboard", "spring_bottom", "arm_outer", "arm_inner")
STRUT = ("lower_arm_ball", *UPRIGHT, "strut_bottom", "on_strut")
CORNERS = {
    "pushrod": ("double_wishbone", {"spring_by": "pushrod"}, *wishbones("pushrod", "lower_arm")),
    "pullrod": ("double_wishbone", {"spring_by": "pullrod"}, *wishbones("pullrod", "upper_arm")),
    "strut": ("macpherson", {}, [*arms("lower_arm"), STRUT], ends("tierod")),
    "five links": ("five_link", {}, [FIVE[1] + ["spring_bottom"]], ends(*LINKS, "tierod")),
    "semi-trailing arm": ("semi_trailing_arm", {}, [SWING], []),
}


@pytest.mark.parametrize(
    "kind",
    ["pushrod", *(pytest.param(n, marks=pytest.mark.slow) for n in [*CORNERS][1:])],
)
def test_a_corner_is_that_of_a_solver_of_distances(kind):
    """Camber, toe, wheel place and spring length over ±60 mm; the motion ratio by differences."""
    template, options, bodies, rods = CORNERS[kind]
    p = shaken(template, **options)
    p = {n: x for n, x in p.items() if not n.startswith(("bar", "droplink", "shock", "heave"))}
    mech, roles = TEMPLATES[template](p, **options)
    assert int(mbd.mobility(mech).dof) == (2 if "rack" in mech.bodies else 1)
    assert not mbd.mobility(mech).redundant
    names = ("camber", "toe", "half_track", "recession", "spring_length", "motion_ratio")
    heights = np.array([-0.06, -0.03, 0.0, 0.03, 0.06])
    table = suspension.kinematics(mech, roles, travel=heights, observe=names, gradients=())
    p = {n: np.array(x) for n, x in mech.points.items()}
    fixed = [
        n for n in p if n.endswith(CHASSIS) and not n.startswith(("axle", "pushrod", "pullrod"))
    ]
    straight = []
    if kind == "strut":  # strut_top, which is fixed, stays on the line of two points of the upright
        p["on_strut"] = 0.3 * p["strut_top"] + 0.7 * p["strut_bottom"]
        straight = [("strut_top", "strut_bottom", "on_strut")]
    solver = Distances(p, bodies, rods, fixed, straight=straight)
    upper, lower = mech.forces["spring"].at_a.name, mech.forces["spring"].at_b.name

    def length(z):
        at = solver.solve({("wheel_centre", 2): p["wheel_centre"][2] + z})
        return np.linalg.norm(at[upper] - at[lower]), at

    for k, z in enumerate(heights):
        h = 1e-4
        slope = (8 * (length(z + h)[0] - length(z - h)[0]) - length(z + 2 * h)[0]
                 + length(z - 2 * h)[0]) / (12 * h)  # fmt: skip
        spring, at = length(z)
        s = at["wheel_centre"] - at["axle_inboard"]
        contact = at["wheel_centre"] - 0.33 * contact_direction(s)
        expected = {
            "camber": np.arctan2(-s[2], s[1]),
            "toe": np.arctan2(s[0], s[1]),
            "half_track": contact[1],
            "recession": p["wheel_centre"][0] - at["wheel_centre"][0],
            "spring_length": spring,
        }
        for name, y in expected.items():
            assert abs(table[name][k] - y) < 1e-9, (name, z)
        assert abs(table["motion_ratio"][k] + slope) < 1e-8, z


def contact_direction(s):
    s = s / np.linalg.norm(s)
    up = np.array([0.0, 0.0, 1.0]) - s[2] * s
    return up / np.linalg.norm(up)


def both(*names):
    return [tuple(f"{side}_{n}" for n in names) for side in ("left", "right")]


def flat(sets):
    return [n for x in sets for n in x]


AXLE = flat(both("wheel_centre", "axle_inboard", "lower_link_outboard", "spring_bottom"))
BEAM = ("wheel_centre", "axle_inboard", "spring_bottom", "arm_pivot")
AXLES = {
    "panhard": (
        "rigid_axle", {}, [[*AXLE, "upper_link_outboard", "panhard_outboard"]],
        [*both("lower_link_inboard", "lower_link_outboard"), *ends("upper_link", "panhard")], [],
    ),
    "watts": (
        "rigid_axle", {"lateral": "watts"},
        [[*AXLE, "upper_link_outboard", "watts_pivot", "on_watts"],
         ["watts_pivot", "on_watts", "watts_left_outboard", "watts_right_outboard"]],
        [*both("lower_link_inboard", "lower_link_outboard"),
         *ends("upper_link", "watts_left", "watts_right")], [],
    ),
    "splayed links": (
        "rigid_axle", {"links": "four", "lateral": None},
        [[*AXLE, *flat(both("upper_link_outboard"))]],
        [*both("lower_link_inboard", "lower_link_outboard"),
         *both("upper_link_inboard", "upper_link_outboard")], [],
    ),
    "twist beam": (
        "twist_beam", {}, [[*x, "beam_centre", "on_beam"] for x in both(*BEAM)], [],
        [(f"{side}_arm_pivot", k) for side in ("left", "right") for k in (0, 2)]
        + [("beam_centre", 1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["twist beam", *(pytest.param(n, marks=pytest.mark.slow) for n in [*AXLES][:3])]
)
def test_an_axle_is_that_of_a_solver_of_distances(kind):
    """Points of both wheels in parallel, opposite and mixed travel."""
    template, options, bodies, rods, planes = AXLES[kind]
    p = shaken(template, **options)
    p = {n: x for n, x in p.items() if not n.startswith(("bar", "droplink"))}
    mech, (left, right) = TEMPLATES[template](p, **options)
    assert int(mbd.mobility(mech).dof) == 2 and not mbd.mobility(mech).redundant
    p = {n: np.array(x) for n, x in mech.points.items()}
    np.testing.assert_array_equal(p["right_wheel_centre"], MIRROR * p["left_wheel_centre"])
    extra = {"on_watts": ("watts_pivot", (0.1, 0, 0)), "on_beam": ("beam_centre", (0, 0.1, 0))}
    for name, (at, off) in extra.items():
        if at in p:
            p[name] = p[at] + off
    ground = ("_top", "_inboard") if template == "rigid_axle" else ("_top",)
    fixed = [n for n in p if n.endswith(ground) and "axle" not in n]
    solver = Distances(p, bodies, rods, fixed, planes)
    guess = mbd.neutral(mech)
    wheels = {c.side: PointTravel(c.upright, c.wheel_centre, "z") for c in (left, right)}
    for a, b in ((0.03, 0.03), (0.06, 0.06), (0.03, 0.0), (0.03, -0.03), (0.06, -0.06)):
        known = {wheels["left"]: a, wheels["right"]: b}
        found = mbd.assemble(mech, known=known, guess=guess)
        guess = found.q
        at = solver.solve({
            (f"{side}_wheel_centre", 2): p[f"{side}_wheel_centre"][2] + z
            for side, z in (("left", a), ("right", b))
        })  # fmt: skip
        for corner in (left, right):
            for name in ("wheel_centre", "axle_inboard", "spring_bottom"):
                point = f"{corner.side}_{name}"
                got = mbd.point_position(mech, found.q, corner.upright, point)
                np.testing.assert_allclose(got, at[point], rtol=0, atol=1e-9)


ZOO = {
    "double_wishbone_kinematic": ("double_wishbone", {"spring_by": None}, {}),
    "macpherson": ("macpherson", {"steering_by": "fixed", "wheelbase": 2.8, "cg_height": 0.6}, {}),
    "five_link_kinematic": ("five_link", {"spring_by": None, "steering_by": "rack"}, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_tables_are_those_of_the_zoo(name):
    template, options, _ = ZOO[name]
    roles = suspension.zoo_corner(name)
    numbers = {n: getattr(roles, n) for n in ("tyre_radius", "wheelbase", "cg_height")}
    mech, own = TEMPLATES[template](
        {n: x for n, x in example_hardpoints(template, **options).items()
         if not n.startswith(("bar", "droplink"))},
        **{**options, **numbers},
    )  # fmt: skip
    columns = [n for n in suspension.available(roles) if n in suspension.available(own)]
    columns = [n for n in columns if n not in ("wheel_force", "wheel_rate")]
    assert len(columns) > 20
    travel = [-0.06, -0.02, 0.0, 0.06]
    tables = [
        suspension.kinematics(m, r, travel=travel, observe=columns, gradients=())
        for m, r in ((getattr(mbd.zoo, name)(), roles), (mech, own))
    ]
    for column in columns:
        want = tables[0][column]
        np.testing.assert_allclose(
            tables[1][column], want, rtol=0, atol=1e-10 * max(1.0, np.abs(want).max())
        )


def test_the_other_side_is_the_image():
    """An axle of a template in opposite travel, and its bar, which works in that alone."""
    points = example_hardpoints("trailing_arm")
    car, pair = suspension.template_axle(
        *suspension.trailing_arm_corner(points, camber=-0.02), anti_roll_bar=700.0
    )
    names = ["left_load", "right_load", "left_camber", "right_camber"]
    table, bare = (
        suspension.axle_kinematics(
            mbd.set_variables(car, {"forces/anti_roll_bar/stiffness": rate}), pair,
            left=[-0.03, 0.03, 0.03], right=[0.03, -0.03, 0.03], observe=names,
        )
        for rate in (700.0, 0.0)
    )  # fmt: skip
    np.testing.assert_allclose(table["left_load"], table["right_load"][[1, 0, 2]], atol=1e-8)
    np.testing.assert_allclose(
        table["left_camber"], table["right_camber"][[1, 0, 2]], rtol=0, atol=1e-12
    )
    assert table["left_load"][0] < bare["left_load"][0] - 100.0
    assert abs(table["left_load"][2] - bare["left_load"][2]) < 1e-8


def test_numbers_reach_the_mechanism():
    points = example_hardpoints("double_wishbone", spring_by="pushrod")
    assert TemplateNumbers().spring_rate == 30e3
    mech, roles = suspension.double_wishbone_corner(
        points, spring_by="pushrod", masses={"upright": 20.0, "lower_arm": 3.0}, wheelbase=3.0,
        spring_rate=5e4, spring_preload=800.0,
    )  # fmt: skip
    assert roles.wheelbase == 3.0
    assert [float(mech.bodies[n].mass) for n in ("upright", "lower_arm", "rocker", "rack")] == [
        *(20.0, 3.0, 0.0, 3.0)
    ]
    x = np.stack([points[f"lower_arm_{n}"] for n in ("front", "rear", "ball")])
    d = x - x.mean(axis=0)
    np.testing.assert_allclose(
        mech.bodies["lower_arm"].inertia, np.eye(3) * (d * d).sum() - d.T @ d, atol=1e-15
    )
    assert float(mech.forces["spring"].preload) == -800.0
    car, _ = suspension.template_axle(mech, roles, heave_spring=2e4, anti_roll_bar=500.0)
    assert car.forces["heave_spring"].bodies == ("left_rocker", "right_rocker")
    assert int(mbd.mobility(car).dof) == 3


def test_templates_have_names():
    corners = [
        *(suspension.double_wishbone_corner, suspension.macpherson_corner),
        *(suspension.five_link_corner, suspension.trailing_arm_corner),
        *(suspension.semi_trailing_arm_corner, suspension.rigid_axle, suspension.twist_beam),
    ]
    assert list(TEMPLATES.values()) == corners


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_runs_as_it_stands(template):
    mech, roles = TEMPLATES[template](example_hardpoints(template))
    for corner in roles if isinstance(roles, tuple) else (roles,):
        assert corner.problems(mech) == []
    found = mbd.mobility(mech)
    assert int(found.dof) == found.kutzbach and not found.idle and not found.redundant


def wrong(change, template="double_wishbone", **options):
    points = example_hardpoints(template)
    change(points)
    with pytest.raises(ValueError) as caught:
        TEMPLATES[template](points, **options)
    return str(caught.value)


def test_errors_list_all_problems_with_their_cures():
    def misspelt(p):
        p["upper_arm_bal"] = p.pop("upper_arm_ball")
        del p["bar_axis"]
        p["spring_top"] = (0.0, np.nan, 0.0)

    text = wrong(misspelt)
    for part in (
        *(
            "'upper_arm_bal' here (did you mean 'upper_arm_ball'?)",
            "['upper_arm_ball'] are missing",
        ),
        *("['bar_axis'] belong to", "'spring_top' is", "finite numbers"),
    ):
        assert part in text, part

    def coincide(p):
        p["tierod_outboard"] = p["tierod_inboard"]
        p["spring_top"] = p["spring_bottom"]
        p["lower_arm_ball"] = 0.3 * p["lower_arm_front"] + 0.7 * p["lower_arm_rear"]

    text = wrong(coincide)
    assert "'tierod_inboard' and 'tierod_outboard' coincide" in text
    assert "'spring_top' and 'spring_bottom' coincide" in text
    assert "'lower_arm_ball' is on the line through" in text
    scaled = lambda factor: lambda p: p.update({n: factor * x for n, x in p.items()})  # noqa: E731
    assert "in mm they would fit. Give units='mm'" in wrong(scaled(1000.0))
    assert "the tyre's radius is 0.33 m" in wrong(scaled(1e-3))
    assert "mirrored = true" in wrong(lambda p: p.update({n: MIRROR * x for n, x in p.items()}))
    assert "'axle_inboard' says where" in wrong(lambda p: None, camber=0.01)
    assert "did you mean 'spring_rate'" in wrong(lambda p: None, spring_rat=1.0)
    assert "masses: there is no body 'uprigt'" in wrong(lambda p: None, masses={"uprigt": 1.0})
    assert "give y = 0" in wrong(lambda p: p["beam_centre"].__setitem__(1, 0.1), "twist_beam")
    assert "free sideways" in wrong(lambda p: None, "rigid_axle", lateral=None)
    assert "needs the hardpoints bar_axis" in wrong(
        lambda p: [p.pop(n) for n in ("bar_axis", "droplink_inboard", "droplink_outboard")],
        *("rigid_axle",),
        anti_roll_bar=100.0,
    )


def test_metres_read_as_millimetres_are_named(tmp_path):
    path = tmp_path / "points.csv"
    mbd.io.write_hardpoints(path, example_hardpoints("double_wishbone"), units="m")
    path.write_text(path.read_text("utf-8").replace(" [m]", ""), "utf-8")
    with pytest.raises(ValueError, match="read as mm, and in m they would fit. Give units='m'"):
        suspension.double_wishbone_corner(mbd.io.read_hardpoints(path))


@pytest.mark.slow
def test_a_twist_beam_that_hardly_bends_is_hinged():
    points, names = example_hardpoints("twist_beam"), ["left_camber", "left_toe", "left_half_track"]
    hinged, bent = (
        suspension.axle_kinematics(
            *suspension.twist_beam(points, bending_rate=rate),
            roll=[-0.03, 0.02, 0.04],
            observe=names,
            settle=rate is not None,
        )
        for rate in (None, 1e10)
    )
    for name in names:
        np.testing.assert_allclose(bent[name], hinged[name], rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("numbers", "cure"),
    [
        ({"camber": -1.0}, "one degree is 0.01745"),
        ({"toe": 5.0}, "one degree is 0.01745"),
        ({"tyre_radius": 325.0}, "330 mm is 0.33"),
    ],
)
def test_numbers_in_another_unit_are_told(numbers, cure):
    points = suspension.example_hardpoints("five_link")
    with pytest.raises(ValueError, match=cure):
        suspension.five_link_corner(points, **numbers)
