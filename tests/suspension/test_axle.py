"""An axle on a rig, against a solver of lengths, energies, statics and closed forms."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.analysis import holding_efforts, parse_known, single_rows
from jaxmbd.observe import Snapshot
from jaxmbd.suspension import axle_kinematics, axle_sweep, on_rig
from jaxmbd.suspension.motions import wheel_key

WISHBONES = mbd.zoo.double_wishbone_kinematic()
CAR = suspension.axle(WISHBONES, shared=["rack"])
ROLES = suspension.axle_corners(CAR, suspension.zoo_corner("double_wishbone_kinematic"))
ROLLS = np.deg2rad([-3.0, -1.5, 0.0, 1.5, 3.0])
SLOPES = ("axle_steer", "left_camber_to_road", "track", "roll_moment")
SEEN = (
    *SLOPES, "heave", "ackermann_error", "ackermann_share", "turning_circle", "roll_centre_height",
    "roll_centre_height_forces", "left_steer_angle", "right_steer_angle", "left_wheel_travel",
    "left_toe", "right_toe",
)  # fmt: skip

OF_WHEELS = (
    "camber", "camber_to_road", "steer_angle", "half_track", "wheel_travel", "toe", "caster_trail",
    "load",
)  # fmt: skip


def event(**moved):
    """A table of one structure for all tests: of five places, moved as is said."""
    return axle_kinematics(CAR, ROLES, observe=SEEN, **moved)


@pytest.fixture(scope="module")
def table():
    sides = (f"{side}_{n}" for side in ("left", "right") for n in OF_WHEELS)
    seen = dict.fromkeys([*SEEN, "roll_centre_lateral", *sides])
    return axle_kinematics(CAR, ROLES, roll=ROLLS, observe=seen, gradients=SLOPES)


class Lengths:
    """One wheel by the lengths of its links: ball joints keep their distances, nothing else."""

    LINKS = (
        *(("lower_wishbone_inboard_front", "lower_wishbone_outboard"),),
        *(("lower_wishbone_inboard_rear", "lower_wishbone_outboard"),),
        *(("upper_wishbone_inboard_front", "upper_wishbone_outboard"),),
        *(("upper_wishbone_inboard_rear", "upper_wishbone_outboard"),),
        *(("trackrod_inboard", "trackrod_outboard"),),
    )

    def __init__(self, side):
        self.p = {n: np.array(CAR.points[n]) for n in CAR.structure.points if n.startswith(side)}
        self.side, self.sign = side, 1.0 if side == "left" else -1.0
        self.centre = self.p[f"{side}_axle_outboard"]
        spin = self.centre - self.p[f"{side}_axle_inboard"]
        self.spin = spin / np.linalg.norm(spin)
        self.guess, self.rack = np.zeros(6), 0.0

    def moved(self, x):
        turn = Rotation.from_rotvec(x[3:]).as_matrix()
        return turn, lambda point: self.centre + x[:3] + turn @ (point - self.centre)

    def contact(self, x, up):
        turn, at = self.moved(x)
        s = turn @ self.spin
        down = (up @ s) * s - up
        return at(self.centre) + 0.3136 * down / np.linalg.norm(down), s

    def solve(self, up, origin):
        """Wheel axis, contact and wheel centre with the contact on the plane through origin."""

        def residual(x):
            _, at = self.moved(x)
            found = []
            for a, b in self.LINKS:
                slid = np.array([0.0, self.rack if a == "trackrod_inboard" else 0.0, 0.0])
                a, b = self.p[f"{self.side}_{a}"], self.p[f"{self.side}_{b}"]
                found.append(np.linalg.norm(at(b) - a - slid) - np.linalg.norm(b - a))
            return np.array([*found, up @ (self.contact(x, up)[0] - origin)])

        h, x = 1e-6, self.guess
        for _ in range(8):
            slopes = [(residual(x + h * e) - residual(x - h * e)) / (2 * h) for e in np.eye(6)]
            x = x - np.linalg.solve(np.transpose(slopes), residual(x))
        assert np.max(np.abs(residual(x))) < 1e-14
        self.guess = x
        c, s = self.contact(self.guess, up)
        return s, c, self.moved(self.guess)[1](self.centre)


def rolled(angle):
    """(up, both wheels) of a road that rolls about the middle of the axle as drawn."""
    wheels = [Lengths(side) for side in ("left", "right")]
    z = np.array([0.0, 0.0, 1.0])
    drawn = [w.contact(np.zeros(6), z)[0] for w in wheels]
    origin = 0.5 * (drawn[0] + drawn[1])
    up = Rotation.from_rotvec([-angle, 0.0, 0.0]).apply(z)
    return up, [w.solve(up, origin) for w in wheels]


def test_roll_is_that_of_a_solver_of_lengths(table):
    for k, angle in enumerate(ROLLS):
        up, wheels = rolled(angle)
        for sign, side, (s, contact, centre) in zip(
            (1, -1), ("left", "right"), wheels, strict=True
        ):
            expected = {
                "camber": np.arctan2(-s[2], sign * s[1]),
                "camber_to_road": -np.arcsin(s @ up),
                "steer_angle": np.arctan2(-sign * s[0], sign * s[1]),
                "half_track": sign * contact[1],
                "wheel_travel": centre[2] - np.array(CAR.points[f"{side}_axle_outboard"])[2],
            }
            for name, y in expected.items():
                assert abs(table[f"{side}_{name}"][k] - y) < 1e-9, (name, side, angle)
        across = (wheels[0][1] - wheels[1][1])[1:]
        assert abs(table["track"][k] - np.linalg.norm(across)) < 1e-9


def test_the_roll_centre_is_that_of_paths_of_the_contacts(table):
    """Normals to the paths of the uprights' points at the contacts, by differences."""
    h = 1e-4
    for k in (2, 3):
        up, _ = rolled(ROLLS[k])
        lines = []
        for side in ("left", "right"):
            wheel = Lengths(side)
            z = np.array([0.0, 0.0, 1.0])
            origin = wheel.contact(np.zeros(6), z)[0] * [1, 0, 1]
            places = []
            for step in (-2, -1, 0, 1, 2):
                wheel.solve(
                    Rotation.from_rotvec([-(ROLLS[k] + step * h), 0.0, 0.0]).apply(z), origin
                )
                places.append(wheel.guess)
            middle = wheel.contact(places[2], up)[0]
            turn, at = wheel.moved(places[2])
            body = turn.T @ (middle - at(wheel.centre)) + wheel.centre
            path = np.array([wheel.moved(x)[1](body) for x in places])
            u = (np.array([1, -8, 0, 8, -1]) / 12 @ path)[1:]
            lines.append((middle[1:], u))
        (a, u), (b, w) = lines
        centre = np.linalg.solve([u, w], [u @ a, w @ b])
        normal = np.array([-(a - b)[1], (a - b)[0]]) / np.linalg.norm(a - b)
        assert abs(table["roll_centre_height"][k] - normal @ (centre - a)) < 1e-6
        assert abs(table["roll_centre_lateral"][k] - centre[0]) < 1e-5


def test_sides_are_mirror_images_and_slopes_those_of_neighbours(table):
    for name in ("camber", "toe", "half_track", "caster_trail", "load", "camber_to_road"):
        left, right = table[f"left_{name}"], table[f"right_{name}"]
        np.testing.assert_allclose(left, right[::-1], rtol=0, atol=1e-11 * max(1, np.max(left)))
    h = 1e-4
    near = event(roll=ROLLS[3] + h * np.arange(-2, 3))
    for name in SLOPES:
        slope = np.array([1, -8, 0, 8, -1]) / 12 @ near[name] / h
        assert abs(table[f"{name}_gradient"][3] - slope) < 1e-6 * max(1.0, abs(slope)), name


STEER, NEAR = 0.02, np.array([1, -8, 0, 8, -1]) / 12
GEARED = tuple(replace(c, steering_gear=0.008) for c in ROLES)


@pytest.mark.slow
def test_the_racks_effort_is_that_of_virtual_work():
    """Of loads on both contacts, by differences of where the uprights are as the rack moves."""
    z, h = np.array([0.0, 0.0, 1.0]), 3e-4
    loads = {"aligning": 20.0, "lateral": 300.0, "braking": 250.0, "driving": 400.0}
    work, ratio = dict.fromkeys(loads, 0.0), 0.0
    for side in ("left", "right"):
        wheel = Lengths(side)
        origin, places = wheel.contact(np.zeros(6), z)[0] * [1, 0, 1], []
        for k in range(-2, 3):
            wheel.rack = STEER + k * h
            places.append((*wheel.solve(z, origin), wheel.guess))
        s, contact, centre, x = places[2]
        arm, heading = contact - centre, wheel.sign * np.cross(s, z)
        heading = heading / np.linalg.norm(heading)
        back = Rotation.from_rotvec(x[3:]).inv()
        turns = [(Rotation.from_rotvec(y[3:]) * back).as_rotvec() for *_, y in places]
        omega, move = NEAR @ np.array(turns) / h, NEAR @ np.array([c for _, _, c, _ in places]) / h
        shaft = omega - (omega @ s) * s  # a half shaft takes the driving torque
        work["aligning"] += omega[2]
        work["lateral"] += np.cross(z, heading) @ (move + np.cross(omega, arm))
        work["braking"] += -heading @ (move + np.cross(omega, arm))
        work["driving"] += heading @ (move + np.cross(shaft, arm))
        angles = [np.arctan2(-wheel.sign * y[0], wheel.sign * y[1]) for y, *_ in places]
        ratio += 0.5 * NEAR @ np.array(angles) / h
    alone = dict(zip(loads, np.diag([*loads.values()]), strict=True))
    found = axle_kinematics(
        CAR, GEARED, steer=STEER, settle=False, **{n: [0.0, *x] for n, x in alone.items()},
        observe=["steering_effort", "steering_wheel_torque", "steering_ratio"],
    )  # fmt: skip
    effort = found["steering_effort"]
    worked = [-value * work[load] for load, value in loads.items()]
    np.testing.assert_allclose(effort[1:] - effort[0], worked, rtol=1e-9)
    np.testing.assert_allclose(found["steering_wheel_torque"], 0.008 * effort, rtol=1e-14)
    np.testing.assert_allclose(found["steering_ratio"], 1.0 / (0.008 * ratio), rtol=1e-9)


def test_springs_lift_the_body_as_the_rack_moves():
    """The effort of an axle on preloaded springs is the slope of their energy on still pads."""
    points = suspension.example_hardpoints("double_wishbone")
    made = suspension.double_wishbone_corner(points, spring_preload=5e3, gravity=0.0)
    car, pair = suspension.template_axle(*made)
    sweep = axle_sweep(pair, steer=STEER + 1e-3 * np.arange(-2, 3), observe=["steering_effort"])
    rig, course = on_rig(car, pair), sweep.trajectory(car)
    energy = NEAR @ [float(mbd.potential_energy(rig, q)) for q in course.q] / 1e-3
    assert abs(energy) > 10.0
    assert abs(course.curves["steering_effort"][2] - energy) < 1e-8 * abs(energy)


def test_ackermann_of_an_axle_is_that_of_its_angles():
    table = event(steer=[-0.03, -0.01, 0.0, 0.01, 0.03])
    wheels = [Lengths(side) for side in ("left", "right")]
    z = np.array([0.0, 0.0, 1.0])
    drawn = [w.contact(np.zeros(6), z)[0] for w in wheels]
    track, line = abs(drawn[0][1] - drawn[1][1]), drawn[0][0] - ROLES[0].wheelbase
    assert np.isnan(table["ackermann_share"][2]) and np.isinf(table["turning_circle"][2])
    for k, (inner, outer) in ((0, ("right", "left")), (4, ("left", "right"))):
        own = {side: abs(table[f"{side}_steer_angle"][k]) for side in (inner, outer)}
        ideal = np.arctan(1.0 / (1.0 / np.tan(own[inner]) + track / ROLES[0].wheelbase))
        share = (own[inner] - own[outer]) / (own[inner] - ideal)
        assert abs(table["ackermann_error"][k] - (own[outer] - ideal)) < 1e-12
        assert abs(table["ackermann_share"][k] - share) < 1e-11
        wheel = wheels[outer == "right"]
        wheel.rack = table.x[k]
        contact = wheel.solve(z, drawn[0] * [0, 0, 1])[1]
        circle = 2.0 * (contact[0] - line) / np.sin(own[outer])
        assert abs(table["turning_circle"][k] - circle) < 1e-8 * circle


def test_parallel_travel_is_that_of_one_corner():
    both = event(heave=[-0.03, -0.01, 0.0, 0.01, 0.03])
    one = suspension.kinematics(
        WISHBONES, travel=both["left_wheel_travel"], observe=["toe", "roll_centre_height"]
    )
    np.testing.assert_allclose(both["left_toe"], one["toe"], rtol=0, atol=1e-11)
    np.testing.assert_allclose(both["right_toe"], one["toe"], rtol=0, atol=1e-11)
    for name in ("roll_centre_height", "roll_centre_height_forces"):
        np.testing.assert_allclose(both[name], one["roll_centre_height"], rtol=0, atol=1e-10)


STRUT = mbd.zoo.macpherson(wheel_load=4000.0)
BAR = mbd.AntiRollBar("lca", "lca", "lower_arm_ball", "lower_arm_ball", stiffness=2e4)
SPRUNG = suspension.axle(STRUT, anti_roll_bar=BAR)
STRUTS = suspension.axle_corners(SPRUNG, suspension.zoo_corner("macpherson"))


def test_loads_are_the_slopes_of_the_energy():
    """Of the sprung axle with its bar at the places of the sweep, by differences."""
    h, names = 1e-3, ["roll_moment", "left_load", "right_load"]
    angles = 0.02 + h * np.arange(-2, 3)
    sweep = axle_sweep(STRUTS, roll=angles, observe=names)
    rig, course = on_rig(SPRUNG, STRUTS), sweep.trajectory(SPRUNG)
    energy = jax.vmap(lambda q: mbd.potential_energy(rig, q))(course.q)
    slope = float(np.array([1, -8, 0, 8, -1]) / 12 @ np.asarray(energy)) / h
    assert abs(course.curves["roll_moment"][2] - slope) < 1e-6 * abs(slope)


@pytest.mark.slow
def test_a_bar_adds_the_square_of_its_twist():
    """Its roll stiffness is ``k (dx/dφ)²`` where it has no load, x by differences of the balls."""
    h = 1e-4
    angles, slope = h * np.arange(-2, 3), dict(observe=["track"], gradients=["roll_moment"])
    found = [
        axle_kinematics(car, STRUTS, roll=angles, **slope)["roll_moment_gradient"][2]
        for car in (SPRUNG, suspension.axle(STRUT))
    ]
    q = axle_sweep(STRUTS, roll=angles, observe=["track"]).trajectory(SPRUNG).q
    rig = on_rig(SPRUNG, STRUTS)
    left, right = (
        np.array([mbd.point_position(rig, x, f"{side}_lca", f"{side}_lower_arm_ball") for x in q])
        for side in ("left", "right")
    )
    twist = np.array([1, -8, 0, 8, -1]) / 12 @ (left - right)[:, 2] / h
    assert abs(found[0] - found[1] - 2e4 * twist**2) < 1e-7 * found[0]


@pytest.mark.slow
def test_tyres_are_in_series():
    """Unloaded ones, so that their deflection does not move the wheels."""

    def stiffness(**options):
        names = dict(observe=["track", "axle_load"], gradients=["roll_moment"], heave=None)
        found = axle_kinematics(SPRUNG, STRUTS, roll=[0.0, 1e-3], **names, **options)
        assert np.max(np.abs(found["axle_load"])) < 1e-6
        return found["roll_moment_gradient"][0], found["track"][0]

    (rigid, track), (soft, _) = stiffness(), stiffness(tyre_rate=2e5)
    tyres = 0.5 * 2e5 * track**2
    assert abs(1.0 / soft - 1.0 / rigid - 1.0 / tyres) < 1e-7 / soft


def test_forces_about_the_roll_centre_have_no_moment(table):
    """Equal side forces at the contacts change the pads' loads as the height by forces says."""
    push, names = 100.0, ["left_load", "right_load", "roll_centre_height_forces"]
    found = axle_kinematics(CAR, ROLES, lateral=[0.0, push], observe=names, settle=False)
    assert (found.axis, found.unit) == ("lateral", "N")
    moment = 0.0
    for corner in ROLES:
        contact = suspension.contact_point(*suspension.drawn_wheel(CAR, corner), corner.tyre_radius)
        load = found[f"{corner.side}_load"]
        moment -= float(contact[1]) * (load[1] - load[0])
    assert abs(moment - 2 * push * table["roll_centre_height_forces"][2]) < 1e-9 * push
    for name in names:
        np.testing.assert_allclose(found[name][0], table[name][2], rtol=1e-9)
    for load in ("braking", "driving"):
        sweep = axle_sweep(ROLES, **{load: {"right": [0.0, push]}})
        assert sweep.axis_values(CAR).values == (0.0, push)


HEIGHT = 0.21


def pinned():
    """Both wheels on one body, which turns about a pin of known height on a slider; their roles."""
    wheels = {"left": (0.0, 0.7, 0.3), "right": (0.0, -0.7, 0.3)}
    rigid = mbd.Mechanism(
        bodies={"slider": mbd.Body(0.0, com=(0, 0, 0.3)), "axle": mbd.Body(80.0, com=(0, 0, 0.3),
                inertia=np.diag([12.0, 1.0, 12.0]))},
        joints={"slide": mbd.Prismatic("ground", "slider", at="pin", axis=(0, 0, 1)),
                "pin": mbd.Revolute("slider", "axle", at="pin", axis=(1, 0, 0))},
        points=wheels | {"pin": (0.0, 0.0, HEIGHT)},
    )  # fmt: skip
    return rigid, [
        suspension.Corner("axle", side, 0.3, side=side, spindle=(0.0, sign, 0.0))
        for side, sign in (("left", 1.0), ("right", -1.0))
    ]


def test_a_rigid_axle_rolls_about_its_pin():
    """And the slope by the pin's height."""
    rigid, roles = pinned()
    names = ["roll_centre_height", "roll_centre_lateral", "left_camber_to_road"]
    sweep = axle_sweep(roles, roll=[0.0, 0.05], observe=names)

    def columns(z):
        found = sweep(mbd.set_variables(rigid, {"points/pin/z": z}))
        return jnp.stack([found[name] for name in names])

    both = mbd.lanes.vmap(lambda z: jax.jvp(columns, (z,), (1.0,)))(np.array([HEIGHT]))
    (height, lateral, camber), slopes = (x[0] for x in both)
    np.testing.assert_allclose(camber, 0.0, atol=1e-12)
    assert abs(height[0] - HEIGHT) < 1e-12
    # The road turns about its middle: the pin, on the axle's middle line, is at height h / cos φ.
    off = np.array([0.0, np.tan(0.05) / np.cos(0.05)])
    np.testing.assert_allclose(lateral, HEIGHT * off, rtol=0, atol=1e-12)
    np.testing.assert_allclose(slopes[1], off, rtol=0, atol=1e-9)


SOFT = mbd.soften(STRUT, "rev_lca", (1e4, 5e6))
STEPS = 20.0 * np.arange(-2, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "values"),
    [
        ("lateral", STEPS),
        ("braking", {"left": STEPS, "right": -STEPS}),
        ("driving", {"left": STEPS, "right": 0.0 * STEPS}),
        ("aligning", 0.1 * STEPS),
    ],
)
def test_small_loads_move_wheels_as_the_compliance_matrix_says(load, values):
    """Slopes of the events, against wrenches on the upright times the matrix of both wheels."""
    car = suspension.axle(SOFT)
    roles = suspension.axle_corners(car, suspension.zoo_corner("macpherson"))
    table = axle_kinematics(
        car, roles, observe=["left_steer_angle", "left_recession"], **{load: values}
    )
    held = dict.fromkeys(("rig_heave", "rig_roll", "rig_left", "rig_right"), 0.0)
    soft = suspension.compliance(on_rig(car, roles), roles, known=held)
    z, wrenches = np.array([0.0, 0.0, 1.0]), []
    for sign, spin, centre, patch in zip(
        (1, -1), *map(np.asarray, (soft.spin, soft.centre, soft.patch)), strict=True
    ):
        heading = sign * np.cross(spin, z) / np.linalg.norm(np.cross(spin, z))
        forces = {"lateral": np.cross(z, heading), "braking": -heading, "driving": heading}
        force, moment = forces.get(load, 0.0 * z), z if load == "aligning" else 0.0 * z
        if load != "driving":  # by a shaft from the body
            moment = moment + np.cross(patch - centre, force)
        wrenches.append(np.concatenate([moment, force]))
    sides = values if isinstance(values, dict) else {"left": values, "right": values}
    signs = [sides[side][-1] / sides["left"][-1] for side in ("left", "right")]
    twist = np.asarray(soft.matrix) @ np.concatenate(
        [s * w for s, w in zip(signs, wrenches, strict=True)]
    )
    s, ds = np.asarray(soft.spin)[0], np.cross(twist[:3], np.asarray(soft.spin)[0])
    expected = {
        "left_steer_angle": (s[0] * ds[1] - s[1] * ds[0]) / (s[0] ** 2 + s[1] ** 2),
        "left_recession": -twist[3],
    }
    step = sides["left"][-1] / 2
    for name, want in expected.items():
        slope = np.array([1, -8, 0, 8, -1]) / 12 @ table[name] / step
        assert abs(slope - want) < 1e-7 * abs(want), name


@pytest.mark.slow
def test_batches_and_derivatives_by_hardpoints():
    sweep = axle_sweep(ROLES, roll=[0.02], observe=["roll_centre_height"])

    def height(y):
        return sweep(mbd.set_variables(CAR, {"points/left_upper_wishbone_outboard/z": y}))[
            "roll_centre_height"
        ][0]

    y, h = float(CAR.points["left_upper_wishbone_outboard"][2]), 1e-5
    slope = (height(y + h) - height(y - h)) / (2 * h)
    assert abs(mbd.lanes.vmap(jax.grad(height))(np.array([y]))[0] - slope) < 1e-6 * abs(slope)


def test_errors_name_the_cure():
    with pytest.raises(ValueError, match="lists of values"):
        axle_sweep(ROLES)
    with pytest.raises(ValueError, match="a left and a right corner"):
        axle_kinematics(CAR, ROLES[::-1], heave=[0.0])
    with pytest.raises(ValueError, match="did you mean 'track'"):
        axle_sweep(ROLES, heave=[0.0], observe="trak")
    with pytest.raises(ValueError, match="turn on the way"):
        axle_sweep(ROLES, heave=[0.0, 0.1, 0.2], steer=[0.0, 0.0, 0.1], gradients="track")
    with pytest.raises(ValueError, match="settle"):
        axle_sweep(ROLES, roll=[0.1], heave=None, settle=False)
    with pytest.raises(ValueError, match="did you mean 'left'"):
        axle_sweep(ROLES, lateral={"lift": [1.0]})
    with pytest.raises(ValueError, match="compliance"):
        axle_sweep(ROLES, lateral=[0.0, 1.0], gradients="track")


@pytest.mark.slow
def test_beyond_its_reach_a_smaller_range_is_asked_for():
    with pytest.raises(ValueError, match="smaller range of heave"):
        event(heave=np.linspace(0.0, 0.9, len(ROLLS)))


def test_columns_are_those_that_the_roles_allow():
    bare = [
        suspension.Corner(f"{side}_upright", f"{side}_axle_outboard", 0.3136, side=side)
        for side in ("left", "right")
    ]
    missing = set(suspension.AXLE_CHARACTERISTICS) - set(suspension.axle_available(tuple(bare)))
    assert "left_caster" in missing
    assert "left_camber" not in missing
    sweep = axle_sweep(bare, heave=[0.0], observe="track")
    assert isinstance(sweep, suspension.AxleSweep)
    assert suspension.AxleCharacteristic(ROLES, "trak").problems(CAR)


def test_events_of_as_many_places_are_one_structure(table):
    roll = axle_sweep(ROLES, roll=ROLLS, gradients=())
    other = axle_sweep(ROLES, left=0.01 * ROLLS, steer=0.02, heave=-0.01)
    (shape, numbers), (same, _) = roll.split(), other.split()
    assert shape == same and hash(shape) == hash(same)
    assert axle_sweep(ROLES, roll=ROLLS, heave=None).split()[0] != shape
    found = event(left=0.01 * ROLLS, steer=0.02, heave=-0.01)
    np.testing.assert_allclose(found["heave"], -0.01, atol=1e-12)
    assert found.axis == "left" and found.x.tolist() == (0.01 * ROLLS).tolist()
    again = shape.with_numbers(numbers)
    np.testing.assert_allclose(again.places, ROLLS)
    assert np.ptp(table["left_toe"]) > 1e-3


def test_holding_efforts_are_those_of_drives():
    car, roles = pinned()
    rig = on_rig(car, roles)
    keys, _ = parse_known(rig, {"rig_heave": 0.0, "rig_roll": 0.0})
    top = mbd.topology(rig)
    assert single_rows(top, (wheel_key(roles[0]).coordinate, keys[1])) == [
        (top.nc + 1, top.layout["rig_roll"].v.start)
    ]
    push = mbd.BodyActuator("axle", "left", force=(0.0, 1.0, 0.5))
    car, inputs = car.replace(forces={"push": push}), {"push": 800.0}
    keys, values = parse_known(car, {wheel_key(roles[0]).coordinate: 0.33, "pin": 0.01})

    def efforts(q):
        at = Snapshot(car, q, keys=keys, values=values, moving=False, inputs=inputs)
        held = [holding_efforts(at.motion, some, inputs) for some in (keys, keys[:1])]
        return *held, jnp.stack([at.holding(key) for key in keys])

    found, free, drives = jax.jit(efforts)(jnp.array([0.023, 0.01]))
    assert np.min(np.abs(drives)) > 100.0
    np.testing.assert_allclose(found, drives, rtol=1e-9, atol=1e-7)
    assert np.all(np.isnan(free))  # nothing holds the pin


@pytest.mark.slow
@pytest.mark.parametrize("where", ["outboard", "inboard"])
@pytest.mark.parametrize("template", ["double_wishbone", "semi_trailing_arm", "rigid_axle"])
def test_support_is_what_forces_on_the_contacts_do_to_the_loads(template, where):
    """A braking or driving force on both contacts changes the pads' loads as the columns say."""
    points = suspension.example_hardpoints(template)
    points.pop("axle_inboard", None)  # the wheels stand upright, and their heading is x
    numbers = dict(brakes=where, drive=where, brake_share=0.3, drive_share=0.8)
    if template == "rigid_axle":
        car, pair = suspension.rigid_axle(points, **numbers)
    else:
        car, pair = suspension.template_axle(*suspension.TEMPLATES[template](points, **numbers))
    force, front = 700.0, template == "double_wishbone"
    names = ["anti_dive", "anti_lift_driving"] if front else ["anti_lift_braking", "anti_squat"]
    found = axle_kinematics(
        car, pair, braking=[0.0, force, 0.0], driving=[0.0, 0.0, force], settle=False,
        observe=["axle_load", *names],
    )  # fmt: skip
    load = 0.5 * (found["axle_load"][1:] - found["axle_load"][0]) / force
    moved = 2.7 / 0.5 * load if front else -2.7 / 0.5 * load
    assert abs(0.3 * moved[0] - found[names[0]][0]) < 1e-10
    assert abs(-0.8 * moved[1] - found[names[1]][0]) < 1e-10


def test_the_differential_of_a_rigid_axle_is_on_it():
    points = suspension.example_hardpoints("rigid_axle")
    assert {c.drive for c in suspension.rigid_axle(points)[1]} == {"outboard"}
    assert {c.drive for c in suspension.rigid_axle(points, drive="inboard")[1]} == {"inboard"}
