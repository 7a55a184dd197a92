"""Member loads over load cases: against free bodies in NumPy, differences, and in odd corners."""

from dataclasses import replace

import numpy as np
import pytest
from fails_cases.member_loads import balance, ball, columns, hinge, rod, slide, wheel

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.observe import AxialForce, HoldingEffort
from jaxmbd.suspension import load_cases, load_sensitivities, load_sweep

CASES = {
    "stop": {"vertical": 5200.0, "braking": 4800.0, "aligning": -60.0},
    "turn": {"vertical": 6100.0, "lateral": 5400.0, "aligning": 140.0, "overturning": 30.0},
    "launch": {"vertical": 3900.0, "driving": 2500.0, "torque": 15.0},
    "kerb": {"centre_x": -6000.0, "centre_y": 900.0, "centre_z": 3000.0},
}
SPRING = mbd.SpringDamper("ground", "upright", "strut_top", "strut_bottom", stiffness=3e4)
FIVE = mbd.zoo.five_link_kinematic().replace(forces={"spring": SPRING})
FIVE_ROLES = replace(suspension.zoo_corner("five_link_kinematic"), spring="spring")
LINKS = ("upper_front_link", "upper_rear_link", "lower_front_link", "lower_rear_link")


def weights(mech):
    for name in mech.structure.bodies:
        com = np.asarray(mech.bodies[name].com)
        yield name, com, float(mech.bodies[name].mass) * np.asarray(mech.gravity), np.zeros(3)


BRACKETS = tuple(
    f"{point}{part}"
    for point in ("_front", "_rear")
    for part in ("_force", "_force_x", "_force_y", "_force_z")
)
BRACKETS += ("_axial",)


def check(table, mech, roles, members, rtol=1e-9):
    p = mech.points
    centre = np.asarray(p["axle_outboard"])
    spin = centre - np.asarray(p["axle_inboard"])
    spin /= np.linalg.norm(spin)
    for case, loads in CASES.items():
        acting = [*weights(mech), *wheel(roles, loads, centre, spin, "upright")]
        right = columns(members, balance(members, acting))
        found = table.at(case)
        assert set(right) == {n for n in found if not n.endswith(BRACKETS)}
        size = max(map(abs, right.values()))
        for name, value in right.items():
            assert abs(found[name] - value) < rtol * size, (case, name)


@pytest.fixture(scope="module")
def five():
    return load_cases(FIVE, FIVE_ROLES, CASES)


def test_five_links_and_a_spring_balance_the_upright(five):
    p = {n: np.asarray(x) for n, x in FIVE.points.items()}
    members = {n: rod("ground", "upright", p[f"{n}_inboard"], p[f"{n}_outboard"]) for n in LINKS}
    members["trackrod"] = rod("rack", "upright", p["trackrod_inboard"], p["trackrod_outboard"])
    members["spring"] = rod("ground", "upright", p["strut_top"], p["strut_bottom"])
    members["rack"] = slide("ground", "rack", p["trackrod_inboard"], (0.0, 1.0, 0.0))
    check(five, FIVE, FIVE_ROLES, members)


def test_worst_cases_table_and_csv(five, tmp_path):
    case, value = five.worst("trackrod")
    assert abs(value) == np.max(np.abs(five["trackrod"])) == abs(five.at(case)["trackrod"])
    assert f"{value:.4g}" in five.table(["trackrod"]) and case in five.table(["trackrod"])
    five.to_csv(tmp_path / "loads.csv")
    head, *rows = (tmp_path / "loads.csv").read_text().splitlines()
    assert head.split(",")[0] == "case" and "rack_moment_x [N m]" in head.split(",")
    back = [float(row.split(",")[1 + list(five.columns).index("spring")]) for row in rows]
    assert back == five["spring"].tolist()
    with pytest.raises(ValueError, match="did you mean 'trackrod'"):
        five["trackrods"]


@pytest.mark.slow
def test_double_wishbones_with_the_spring_on_the_lower_arm():
    mech = mbd.zoo.double_wishbone_kinematic()
    arms = [n for n in mech.structure.bodies if "wishbone" in n]
    lower = next(n for n in arms if "lower" in n)
    at = np.asarray(mech.points["lower_wishbone_outboard"]) * [1.0, 0.8, 1.0] + [0.0, 0.0, 0.03]
    spring = mbd.SpringDamper("ground", lower, (0.01, 0.45, 0.7), at, stiffness=4e4, damping=0.0)
    mech = mech.replace(forces={"spring": spring})
    roles = replace(suspension.zoo_corner("double_wishbone_kinematic"), spring="spring")
    p = {n: np.asarray(x) for n, x in mech.points.items()}
    members = {}
    for edge in mech.structure.joints:
        joint = mech.joints[edge.name]
        points = [p[x.name] for x in joint.points.values()]
        if isinstance(joint, mbd.Revolute):
            line = p[joint.axis.end] - p[joint.axis.start]
            members[edge.name] = hinge(joint.a, joint.b, points[0], line / np.linalg.norm(line))
        elif isinstance(joint, mbd.Spherical):
            members[edge.name] = ball(joint.a, joint.b, points[0])
        elif isinstance(joint, mbd.Rod):
            members[edge.name] = rod(joint.a, joint.b, *points)
        else:
            members[edge.name] = slide(joint.a, joint.b, points[0], (0.0, 1.0, 0.0))
    members["spring"] = rod("ground", lower, p["spring.at_a"], p["spring.at_b"])
    check(load_cases(mech, roles, CASES), mech, roles, members)


def test_derivatives_are_those_of_differences():
    wanted = ["trackrod", "spring", "rack_force", "lower_rear_link"]
    paths = ["points/trackrod_outboard", "points/strut_top/z"]
    options = dict(travel=0.02, observe=wanted)
    table = load_sensitivities(FIVE, FIVE_ROLES, CASES, vary=paths, **options)
    assert "change at case kerb" in str(table)
    h = 1e-5
    for j, path in enumerate(table.variables):
        x = mbd.get_variables(FIVE, [path])[path]
        ends = [
            load_cases(mbd.set_variables(FIVE, {path: x + s * h}), FIVE_ROLES, CASES, **options)
            for s in (-1, 1)
        ]
        for i, name in enumerate(wanted):
            slope = (ends[1][name] - ends[0][name]) / (2.0 * h)
            scale = np.max(np.abs(table.derivatives[:, i]))
            np.testing.assert_allclose(table.derivatives[:, i, j], slope, atol=1e-6 * scale)
            np.testing.assert_allclose(
                table.values[:, i], 0.5 * (ends[0][name] + ends[1][name]), rtol=1e-6
            )


def test_extrema_over_cases_are_those_of_the_cases():
    """Cases are no curve: nothing is between them, however smooth they look."""
    cases = {f"{k}": {"vertical": 1e3 * np.sin(0.35 * k + 0.1)} for k in range(9)}
    force = AxialForce("spring")
    seen = {"all": force, "worst": force.peak(), "low": force.min(), "span": force.span()}
    found = load_sweep(FIVE_ROLES, cases, observe=seen)(FIVE)
    x = np.asarray(found["all"])
    assert found["worst"] == np.max(np.abs(x)) and found["low"] == x.min()
    assert found["span"] == np.ptp(x)
    wrong = load_sweep(FIVE_ROLES, cases, observe={"mean": force.mean()})
    assert "mean is along a curve" in wrong.problems(FIVE)[0]


@pytest.mark.slow
def test_a_massless_link_with_an_idle_spin_carries_what_a_rod_does(five):
    name = LINKS[1]
    ends = f"{name}_inboard", f"{name}_outboard"
    middle = 0.5 * (np.asarray(FIVE.points[ends[0]]) + np.asarray(FIVE.points[ends[1]]))
    link = FIVE.replace(
        bodies={"link": mbd.Body(0.0, middle)},
        joints={
            **dict.fromkeys((name, "upright")),
            "inner": mbd.Spherical("ground", "link", ends[0]),
            "outer": mbd.Spherical("link", "upright", ends[1]),
        },
    )
    found = load_cases(link, FIVE_ROLES, CASES, observe=["inner_force", "outer_force", "trackrod"])
    for end in ("inner_force", "outer_force"):
        np.testing.assert_allclose(found[end], np.abs(five[name]), rtol=1e-9)
    np.testing.assert_allclose(found["trackrod"], five["trackrod"], rtol=1e-9)


@pytest.mark.slow
def test_the_torque_of_inboard_brakes_stays_within_the_car():
    """Where brakes sit changes the links' forces, not what holds the chassis."""
    mech = mbd.zoo.five_point()
    case = {"stop": {"vertical": 4e3, "braking": 4e3}}
    roles = suspension.zoo_corner("five_point")
    held = [f"chassis_{n}" for n in ("force_x", "force_z", "moment_y", "effort_0")]
    inboard, outboard = (
        load_cases(mech, replace(roles, brakes=place), case, observe=[*held, "upper_front_link"])
        for place in ("inboard", "outboard")
    )
    for name in held:
        np.testing.assert_allclose(inboard[name], outboard[name], rtol=1e-9, atol=1e-6)
    assert not np.isclose(inboard["upper_front_link"], outboard["upper_front_link"], rtol=0.1)


def soft_arm():
    """A wheel on an arm that two bushings carry."""
    k = 2e5 * np.array([0.0, 0.0, 0.0, 1.0, 0.6, 1.4])
    spring = mbd.SpringDamper(
        "ground", "arm", "top", "low", stiffness=3e4, free_length=0.55, damping=0.0
    )
    return mbd.Mechanism(
        bodies={"arm": mbd.Body(20.0, com=(0.0, 0.5, 0.02), inertia=np.diag([0.5, 0.8, 1.0]))},
        joints={"joint": mbd.Free("ground", "arm")},
        forces={"spring": spring}
        | {n: mbd.Bushing("ground", "arm", at=n, stiffness=k) for n in ("front", "rear")},
        points={
            "front": (0.35, 0.25, 0.05),
            "rear": (-0.25, 0.35, 0.0),
            "wheel": (0.0, 0.75, 0.0),
            "low": (0.02, 0.6, 0.05),
            "top": (0.0, 0.5, 0.45),
        },
    )


@pytest.mark.slow
@pytest.mark.parametrize("travel", [None, 0.01])
def test_bushings_and_spring_balance_the_load_where_the_arm_comes_to_rest(travel):
    mech, roles = soft_arm(), suspension.Corner("arm", "wheel", 0.3, spring="spring")
    case = {"turn": {"vertical": 3500.0, "lateral": 900.0}}
    names = [f"{n}_force_{axis}" for n in ("front", "rear") for axis in "xyz"]
    observe = suspension.member_loads(mech, roles, travel=travel)
    course = load_sweep(roles, case, observe=observe, travel=travel).trajectory(mech)
    q, found = course.q[0], {n: float(x[0]) for n, x in course.curves.items()}
    ends = [mbd.point_position(mech, q, *x) for x in (("ground", "top"), ("arm", "low"))]
    along = np.asarray(ends[0] - ends[1])
    length = np.linalg.norm(along)
    if travel is None:
        assert found["spring"] == pytest.approx(3e4 * (length - 0.55), rel=1e-9)
    bushings = np.array([found[n] for n in names]).reshape(2, 3).sum(axis=0)
    # Axes of the bushings are the ground's.
    total = bushings + found["spring"] * along / length + [0.0, 0.0, 3500.0 - 20.0 * 9.81]
    turn = np.asarray(mbd.poses(mech, q)["arm"].rotation)
    heading = np.cross(turn[:, 1], [0.0, 0.0, 1.0])
    total = total + 900.0 * np.cross([0.0, 0.0, 1.0], heading / np.linalg.norm(heading))
    assert np.max(np.abs(total)) < 1e-6 * 3500.0


@pytest.mark.slow
def test_an_axle_has_loads_on_each_wheel_and_its_bar():
    bar = mbd.AntiRollBar(
        "upright", "upright", "strut_bottom", "strut_bottom", stiffness=2e4, up=(0.0, 0.0, 1.0)
    )
    car = suspension.axle(FIVE, shared=["rack"], anti_roll_bar=bar)
    roles = suspension.axle_corners(car, FIVE_ROLES)
    cases = {"both": {"vertical": 4e3}, "left": {"left_vertical": 4e3}}
    wanted = ["left_spring", "right_spring", "anti_roll_bar"]
    table = load_cases(car, roles, cases, observe=wanted)
    np.testing.assert_allclose(table["left_spring"][0], table["right_spring"][0], rtol=1e-9)
    np.testing.assert_allclose(table["left_spring"][1], table["left_spring"][0], rtol=1e-9)
    twisted = load_cases(car, roles, cases, observe=wanted, travel=[0.02, -0.02])
    assert abs(twisted["anti_roll_bar"][0]) > 0.9 * 2e4 * 0.04 * 0.8


def test_load_cases_of_a_file_and_what_is_wrong_with_them(tmp_path):
    file = tmp_path / "cases.csv"
    file.write_text("case,vertical [kN],left_aligning [N.m]\nstop,5.2,60\nturn,1e-1,0\n")
    read = suspension.read_load_cases(file)
    assert read["stop"] == {"vertical": 5200.0, "left_aligning": 60.0} and len(read) == 2
    file.write_text("case,verticl,aligning [kN],braking\nstop,1,2,x\nstop,3,4,5\n,1,2,3\n")
    with pytest.raises(ValueError, match="did you mean 'vertical'") as found:
        suspension.read_load_cases(file)
    for text in ("in N m or kN m", "'x' is no number", "'stop': again", "give it a name"):
        assert text in str(found.value)
    with pytest.raises(ValueError, match="no right wheel"):
        load_cases(FIVE, FIVE_ROLES, {"a": {"right_vertical": 1.0}})
    with pytest.raises(ValueError, match="vertical of the left wheel is given twice"):
        load_cases(FIVE, FIVE_ROLES, {"a": {"vertical": 1.0, "left_vertical": 1.0}})
    with pytest.raises(ValueError, match=r"name it, Corner\(spring=\)"):
        load_cases(FIVE, replace(FIVE_ROLES, spring=None), CASES)
    with pytest.raises(ValueError, match="load case"):
        load_cases(FIVE, FIVE_ROLES, {})
    with pytest.raises(ValueError, match="do not reach the travel"):
        load_cases(FIVE, FIVE_ROLES, CASES, travel=0.9)  # the program of the others


def test_a_rack_is_held_by_the_rod_along_it(five):
    """The effort of the rack is the track rod's share along it."""
    p = FIVE.points
    along = np.asarray(p["trackrod_outboard"]) - np.asarray(p["trackrod_inboard"])
    share = along[1] / np.linalg.norm(along)
    np.testing.assert_allclose(five["rack_effort"], -share * five["trackrod"], rtol=1e-9)
    assert HoldingEffort("rack").problems(FIVE) == []


def test_the_experiment_and_the_table_are_of_their_types(five):
    sweep = load_sweep(FIVE_ROLES, {"a": {}}, observe={"rod": AxialForce("trackrod")})
    assert isinstance(sweep, suspension.LoadSweep) and isinstance(five, suspension.LoadTable)
    assert sweep.loads == (((0.0,) * len(suspension.WHEEL_LOADS),),)
    assert sweep.declare(FIVE).coords["case"].values == ("a",)
    assert "there is no rod 'rack'" in AxialForce("rack").problems(FIVE)[0]


def test_loads_are_numbers_of_one_program():
    roles = suspension.zoo_corner("multi_link")

    def cases(force, travel=0.0):
        loads = {"stop": {"vertical": force, "braking": 5e3}, "turn": {"lateral": 0.5 * force}}
        observe = {"tierod": AxialForce("tierod")}
        return load_sweep(roles, loads, observe=observe, travel=travel)

    (one, numbers), (other, _) = cases(4e3, 0.01).split(), cases(0.0).split()
    assert one == other and hash(one) == hash(other)
    assert float(np.max(one.with_numbers(numbers).loads)) == 5e3
    assert cases(0.0, None).split()[0] != one  # springs carry the loads
