"""Springs that carry the car: preloads, bars and heave springs against energies of a solver."""

import re
import warnings

import numpy as np
import pytest
from point_distances import Distances

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.suspension import TEMPLATES, example_hardpoints, preloaded
from jaxmbd.suspension.carried_load import warn_of_pull

G, LOAD, RADIUS = 9.81, 4200.0, 0.33
ARM = ("lower_arm_front", "lower_arm_rear", "lower_arm_ball")
UPPER = tuple(n.replace("lower", "upper") for n in ARM)
WHEEL = ("wheel_centre", "axle_inboard")
ROCKER = ("rocker_pivot_front", "rocker_pivot_rear", "pushrod_inboard", "spring_rocker")
BAR = ("bar_axis", "on_bar", "droplink_inboard")


def ends(*names):
    return [(f"{n}_inboard", f"{n}_outboard") for n in names]


def slope(f, x=0.0, h=1e-3):
    """Derivative to the fourth order."""
    return (8 * (f(x + h) - f(x - h)) - f(x + 2 * h) + f(x - 2 * h)) / (12 * h)


def solver(p, bodies, rods, fixed, straight=(), planes=()):
    moved = {n for x in bodies for n in x} | {n for x in rods for n in x}
    still = [n for n in moved if n.endswith(fixed) and n not in ("pushrod_inboard", *WHEEL)]
    still = [n for n in still if n != "droplink_inboard"]
    return Distances(p, bodies, rods, still, planes, straight)


INNER = ("_front", "_rear", "_inboard", "_top", "_chassis", "bar_axis", "on_bar", "_pivot")
CARRIER = ("lower_arm_ball", *WHEEL, "tierod_outboard")
KINDS = {
    "pushrod": (
        "double_wishbone", {"spring_by": "pushrod"},
        [(*ARM, "pushrod_outboard", "droplink_outboard"), UPPER, (*CARRIER, "upper_arm_ball"),
         (*ROCKER, "heave_spring"), BAR],
        ends("tierod", "pushrod", "droplink"), ("spring_chassis", "spring_rocker"),
    ),
    "strut": (
        "macpherson", {}, [ARM, (*CARRIER, "strut_bottom", "on_strut")], ends("tierod"),
        ("strut_top", "strut_bottom"),
    ),
}  # fmt: skip


def drawn(kind, **numbers):
    """A corner of a template, its points moved by millimetres, and the solver of its points."""
    template, options, bodies, rods, spring = KINDS[kind]
    rng = np.random.default_rng(5)
    p = {n: x + 0.005 * rng.normal(size=3) for n, x in example_hardpoints(template).items()}
    if options:
        p = example_hardpoints(template, **options)
        p = {n: x + 0.004 * rng.normal(size=3) for n, x in p.items()}
    if kind == "strut":
        p = {n: x for n, x in p.items() if not n.startswith(("bar", "droplink"))}
    mech, roles = TEMPLATES[template](p, **options, **numbers)
    q = {n: np.array(x) for n, x in mech.points.items()}
    q["on_bar"] = q.get("bar_axis", np.zeros(3)) + [0.0, 0.2, 0.0]
    if kind == "strut":
        q["on_strut"] = 0.3 * q["strut_top"] + 0.7 * q["strut_bottom"]
    straight = [("strut_top", "strut_bottom", "on_strut")] if kind == "strut" else []
    return mech, roles, solver(q, bodies, rods, INNER, straight), spring


@pytest.mark.parametrize("kind", ["pushrod", pytest.param("strut", marks=pytest.mark.slow)])
def test_a_template_carries_its_wheel_load_as_drawn(kind):
    """Virtual work of the load, of weights and of the spring, by differences of solved points."""
    masses = {"upright": 24.0, "lower_arm": 5.0}
    mech, roles, points, spring = drawn(kind, wheel_load=LOAD, masses=masses)
    z = points.p["wheel_centre"][2]

    def at(rise):
        x = points.solve({("wheel_centre", 2): z + rise})
        arm = np.mean([x[n][2] for n in ARM])
        length = np.linalg.norm(x[spring[0]] - x[spring[1]])
        return np.array([length, 24.0 * x["wheel_centre"][2] + 5.0 * arm])

    stretched, lifted = slope(at)
    tension = (LOAD - G * lifted) / stretched
    assert float(mech.forces["spring"].preload) == pytest.approx(tension, rel=1e-9)
    assert mech.forces["wheel_load"].force.tolist() == [0.0, 0.0, LOAD]
    rest = mbd.equilibrium(mech, known={"rack": 0.0})
    rise = mbd.point_position(mech, rest.q, "upright", "wheel_centre")[2] - z
    assert abs(rise) < 1e-12


@pytest.mark.slow
def test_a_bar_and_a_heave_spring_load_the_pads_by_their_energy():
    """Pad loads are derivatives of the springs' energy by the contacts' heights."""
    mech, roles, points, spring = drawn("pushrod", wheel_load=LOAD)
    rate, bar, heave = 30e3, 900.0, 25e3
    car, pair = suspension.template_axle(mech, roles, anti_roll_bar=bar, heave_spring=heave)
    left, right = [0.02, 0.03, -0.02, 0.0], [0.02, -0.02, 0.01, 0.03]
    table = suspension.axle_kinematics(
        car, pair, left=left, right=right, observe=["left_load", "right_load"]
    )
    p, preload = points.p, float(mech.forces["spring"].preload)

    def contact(x):
        s = x["wheel_centre"] - x["axle_inboard"]
        s = s / np.linalg.norm(s)
        up = np.array([0.0, 0.0, 1.0]) - s[2] * s
        return x["wheel_centre"][2] - RADIUS * up[2] / np.linalg.norm(up)

    def angle(x):
        lever = x["droplink_inboard"] - x["bar_axis"]
        return np.arctan2(lever[2], lever[0])

    first = points.solve({("wheel_centre", 2): p["wheel_centre"][2]})

    def side(rise):
        """Own energy, the bar's angle and the heave spring's end, at a height of the contact."""
        wheel = p["wheel_centre"][2] + rise
        for _ in range(8):
            x = points.solve({("wheel_centre", 2): wheel})
            wheel += rise - (contact(x) - contact(first))
        long = np.linalg.norm(x[spring[0]] - x[spring[1]])
        long -= np.linalg.norm(first[spring[0]] - first[spring[1]])
        weight = 30.0 * G * x["wheel_centre"][2] - LOAD * x["wheel_centre"][2]
        return weight + preload * long + 0.5 * rate * long**2, angle(x), x["heave_spring"]

    mirror = np.array([1.0, -1.0, 1.0])

    def energy(a, b):
        (va, ta, xa), (vb, tb, xb) = side(a), side(b)
        long = np.linalg.norm(xa - mirror * xb)
        long -= np.linalg.norm(p["heave_spring"] - mirror * p["heave_spring"])
        return va + vb + 0.5 * bar * (ta - tb) ** 2 + 0.5 * heave * long**2

    for k, (a, b) in enumerate(zip(left, right, strict=True)):
        found = table["left_load"][k], table["right_load"][k]
        expected = slope(lambda x, b=b: energy(x, b), a), slope(lambda x, a=a: energy(a, x), b)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * LOAD)


SIDES = "left", "right"


def of_sides(*names):
    return [[f"{side}_{n}" for n in names] for side in SIDES]


RIGID = of_sides(*WHEEL, "spring_bottom", "lower_link_outboard")
AXLES = {
    "twist_beam": (
        [[*x, "beam_centre", "on_beam"] for x in of_sides(*WHEEL, "spring_bottom", "arm_pivot")],
        [],
        [(f"{s}_arm_pivot", k) for s in SIDES for k in (0, 2)] + [("beam_centre", 1)],
    ),
    "rigid_axle": (
        [[*RIGID[0], *RIGID[1], "upper_link_outboard", "panhard_outboard"]],
        [*of_sides("lower_link_inboard", "lower_link_outboard"), *ends("upper_link", "panhard")],
        [],
    ),
}


@pytest.mark.parametrize(
    "template", ["rigid_axle", pytest.param("twist_beam", marks=pytest.mark.slow)]
)
def test_both_springs_of_an_axle_carry_their_wheels(template):
    """Virtual work of each wheel's rise with the other one held, loads unequal."""
    p = {n: x for n, x in example_hardpoints(template).items() if "bar" not in n}
    p = {n: x for n, x in p.items() if "droplink" not in n}
    plain, pair = TEMPLATES[template](p)
    loads = np.array([3100.0, 2500.0])
    car = preloaded(plain, pair, loads)
    x = {n: np.array(y) for n, y in plain.points.items()}
    x["on_beam"] = x.get("beam_centre", np.zeros(3)) + [0.0, 0.1, 0.0]
    bodies, rods, planes = AXLES[template]
    fixed = [n for n in x if n.endswith(("_top", "link_inboard", "panhard_inboard"))]
    points = Distances(x, bodies, rods, fixed, planes)
    z = x["left_wheel_centre"][2]

    def lengths(a, b):
        at = points.solve({("left_wheel_centre", 2): z + a, ("right_wheel_centre", 2): z + b})
        springs = of_sides("spring_bottom", "spring_top")
        return np.array([np.linalg.norm(at[i] - x[j]) for i, j in springs])

    stretched = np.stack([slope(lambda y: lengths(y, 0.0)), slope(lambda y: lengths(0.0, y))])
    tension = np.linalg.solve(stretched, loads - 30.0 * G)
    found = [float(car.forces[f"{s}_spring"].preload) for s in SIDES]
    np.testing.assert_allclose(found, tension, rtol=1e-8)


def softened():
    return mbd.soften(mbd.zoo.macpherson(), "rev_lca", (1e4, 5e6))


def test_bushings_that_carry_load_are_told():
    with pytest.raises(ValueError, match="settle=True lets it come to rest"):
        preloaded(softened(), suspension.zoo_corner("macpherson"), LOAD)


@pytest.mark.slow
def test_bushings_come_to_rest_under_the_load():
    soft, roles = softened(), suspension.zoo_corner("macpherson")
    held = preloaded(soft, roles, LOAD, settle=True)
    rest = mbd.equilibrium(held)
    z = mbd.point_position(held, rest.q, "upright", "wheel_centre")[2]
    assert abs(z - float(held.points["wheel_centre"][2])) < 1e-9
    assert held.forces["wheel_load"].bodies == ("upright",)


def test_what_carries_nothing_is_told():
    points = example_hardpoints("double_wishbone")
    for options, text in (
        ({"wheel_load": 4e3, "spring_preload": 1.0}, "leave spring_preload= out"),
        ({"wheel_load": -1.0}, "give a positive number"),
        ({"wheel_load": 4e3, "spring_by": None}, "no spring that carries it"),
    ):
        if "spring_by" in options:
            given = {n: x for n, x in points.items() if "spring" not in n}
        else:
            given = points
        with pytest.raises(ValueError, match=text):
            suspension.double_wishbone_corner(given, **options)
    mech, roles = suspension.double_wishbone_corner(points)
    crossed = mech.replace(points={"spring_bottom": 0.5 * sum(points[n] for n in ARM[:2])})
    with pytest.raises(ValueError, match="no preload carries the wheels"):
        preloaded(crossed, roles, LOAD)


def test_pads_that_pull_are_told():
    """Pads' loads come on top of the wheel load that the axle has itself."""
    points = example_hardpoints("trailing_arm")
    loads = {"left_load": np.array([0.0, -200.0]), "right_load": np.array([0.0, 200.0])}
    table = suspension.Kinematics("roll", np.array([0.0, 0.03]), loads, {}, unit="rad")
    told = {
        None: r"at roll \+1.719 deg the left pad pulls.*200 N.*no wheel load.*wheel_load=",
        100.0: "with 100 N beside the wheel load of 100 N.*would lift off",
        3e3: None,
    }
    for load, text in told.items():
        given = {} if load is None else {"wheel_load": load}
        car = suspension.template_axle(*suspension.trailing_arm_corner(points, **given))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_pull(*car, table)
        found = [str(w.message) for w in caught]
        assert len(found) == (text is not None) and all(re.search(str(text), x) for x in found)


@pytest.mark.slow
def test_a_table_tells_of_pads_that_pull():
    """A trailing arm has no coupling: the inner wheel of a car without weight is pulled."""
    points = example_hardpoints("trailing_arm")
    events = dict(heave=None, roll=[0.0, 0.03], observe=["left_load", "right_load"])
    car = suspension.template_axle(*suspension.trailing_arm_corner(points, wheel_load=100.0))
    with pytest.warns(UserWarning, match="beside the wheel load of 100 N.*would lift off"):
        table = suspension.axle_kinematics(*car, **events)
    assert table["left_load"][1] < -100.0
    level = suspension.template_axle(*suspension.trailing_arm_corner(points, wheel_load=3e3))
    found = suspension.axle_kinematics(*level, **events)
    assert abs(found["left_load"][0]) < 1e-8 and found["left_load"][1] > -3e3


@pytest.mark.slow
def test_a_setup_out_of_reach_names_the_missing_load():
    points = example_hardpoints("trailing_arm")
    empty = suspension.template_axle(*suspension.trailing_arm_corner(points))
    with pytest.raises(ValueError, match="out of reach.*carries no wheel load"):
        suspension.solve_setup(*empty, targets={"heave": 0.5}, by={"l": "left_spring"}, travel=None)
