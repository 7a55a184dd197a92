"""Formulas that Adams and MotionView publish for their 12 × 12 compliance matrix, beside ours.

`docs/theory/suspension.md` has them as a table with their sources. Their entries are C(i, j), from
1 to 6 the left wheel's displacements and rotations along x, y, z, from 7 to 12 the right wheel's,
with x rearwards, y to the right and z up. The axle is drawn in equilibrium with upright wheels, for
which they are exact.
"""

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import suspension

DRAWN = suspension.example_hardpoints("double_wishbone")
POINTS = {n: x for n, x in DRAWN.items() if n != "axle_inboard"}
OPTIONS = dict(gravity=0.0, spring_rate=30e3, wheelbase=2.7, cg_height=0.5, brake_share=0.7)
LIMIT = 1e-8
pytestmark = pytest.mark.slow


def _corner(**options):
    mech, roles = suspension.double_wishbone_corner(POINTS, **OPTIONS, **options)
    ends = "ground", "lower_arm", "spring_top", "spring_bottom"
    held = [mbd.SpringDamper(*ends, stiffness=0.0, preload=x) for x in (3e3, -3e3)]
    return mech.replace(forces={"pressed": held[0], "pressing": held[1]}), roles


def _soft(**options):
    mech, roles = _corner(**options)
    for joint, rates in (("upper_arm", (2e4, 4e6)), ("lower_arm", (3e4, 6e6))):
        mech = mbd.soften(mech, joint, rates)
    return mech, roles


def _entries(mech, roles, bar=None, **options):
    """C(i, j) of the axle of a corner, and our own coefficients."""
    car = suspension.axle(mech, ["rack"], anti_roll_bar=bar)
    found = suspension.compliance(car, suspension.axle_corners(car, roles), **options)
    assert np.all(np.abs(found.rise) < 1e-9) and np.all(np.abs(found.spin[:, ::2]) < 1e-12)
    order = [k + i for k in (0, 6) for i in (3, 4, 5, 0, 1, 2)]
    turned = np.tile([-1.0, -1.0, 1.0], 4)
    matrix = turned[:, None] * np.asarray(found.matrix)[np.ix_(order, order)] * turned
    return (lambda i, j: matrix[i - 1, j - 1]), found.coefficients()


SOFT, ROLES = _soft()
R, BASE, HEIGHT = ROLES.tyre_radius, OPTIONS["wheelbase"], OPTIONS["cg_height"]


@pytest.fixture(scope="module")
def entries():
    return _entries(SOFT, ROLES)


@pytest.fixture(scope="module")
def drawn():
    names = (
        "camber toe anti_dive anti_lift_driving front_centre_y front_centre_z side_centre_x "
        "side_centre_z half_track_change side_swing_arm"
    )
    table = suspension.kinematics(
        SOFT, ROLES, travel=[-1e-3, 0.0], settle=True, observe=names.split(),
        gradients=["camber", "toe", "half_track_change"],
    )  # fmt: skip
    return {n: x[1] for n, x in table.columns.items()}


def close(theirs, ours):
    assert abs(theirs - ours) < LIMIT * abs(ours)


def test_travel(entries, drawn):
    """Changes with the travel, swing arms and the track's change."""
    C, _ = entries  # noqa: N806
    rise = C(3, 3) + C(3, 9)
    close((C(4, 3) + C(4, 9)) / rise, drawn["camber_gradient"])
    close(-(C(6, 3) + C(6, 9)) / rise, drawn["toe_gradient"])
    turn = (C(5, 3) + C(5, 9)) / rise  # of the carrier, which they call the change of caster
    close(turn, 1.0 / drawn["side_swing_arm"])
    dx = C(1, 3) + C(1, 9)
    length = np.hypot(dx, rise) / abs(C(5, 3) + C(5, 9))
    close(length, np.hypot(drawn["side_centre_x"], drawn["side_centre_z"] - R))
    dy, dz, turned = (C(i, 3) - C(i, 9) for i in (2, 3, 4))
    across = drawn["front_centre_y"] - POINTS["wheel_centre"][1]
    close(np.hypot(dy, dz) / abs(turned), np.hypot(across, drawn["front_centre_z"] - R))
    tread = C(8, 3) + C(8, 9) - C(2, 3) - C(2, 9) + R * (C(10, 3) + C(10, 9) - C(4, 3) - C(4, 9))
    close(2.0 * tread / (C(3, 3) + C(3, 9) + C(9, 3) + C(9, 9)),
          2.0 * drawn["half_track_change_gradient"])  # fmt: skip


@pytest.mark.parametrize("where", ["outboard", "inboard"])
def test_support(entries, where):
    """Anti-dive and -lift: deflections by longitudinal forces over those by the load transfer."""
    C, _ = entries  # noqa: N806
    arm = R if where == "outboard" else 0.0

    def share(force, weight):
        by_force = force * (C(3, 1) - arm * C(3, 5) + C(3, 7) - arm * C(3, 11))
        return -by_force / (weight * (C(3, 3) + C(3, 9)))

    for axle, names in (
        ("front", ("anti_dive", "anti_lift_driving")),
        ("rear", ("anti_lift_braking", "anti_squat")),
    ):
        mech, roles = _soft(brakes=where, drive=where, axle=axle)
        table = suspension.kinematics(
            mech, roles, travel=[-1e-3, 0.0], settle=True, observe=names, gradients=()
        )
        way = 1.0 if axle == "front" else -1.0
        close(share(0.7 / 2, way * HEIGHT / 2 / BASE), table[names[0]][1])
        close(share(-1.0 / 2, -way * HEIGHT / 2 / BASE), table[names[1]][1])


def test_loads(entries):
    """Steer, camber and deflection by side forces and aligning torques, stiffnesses."""
    C, ours = entries  # noqa: N806
    close(C(6, 6) + C(6, 12), ours["aligning/parallel/steer"][0])
    close(C(12, 6) + C(12, 12), ours["aligning/parallel/steer"][1])
    close(C(4, 6) + C(4, 12), ours["aligning/parallel/camber"][0])
    close(-(C(10, 6) + C(10, 12)), ours["aligning/parallel/camber"][1])
    for sign, pattern in ((1.0, "parallel"), (-1.0, "opposed")):

        def by_side(i, sign=sign):
            return C(i, 2) + C(i, 4) * R + sign * (C(i, 8) + C(i, 10) * R)

        close(by_side(2), ours[f"lateral/{pattern}/y"][0])
        close(by_side(8), ours[f"lateral/{pattern}/y"][1])
        close(-by_side(6), ours[f"lateral/{pattern}/steer"][0])
        close(-by_side(4), ours[f"lateral/{pattern}/camber"][0])
        close(by_side(2) + R * by_side(4), ours[f"lateral/{pattern}/patch_y"][0])
    close(C(1, 1) + C(1, 7), ours["traction/parallel/x"][0])


def test_roll_and_rates():
    """Ride and roll rates, roll steer and roll centre, of an axle with a bar and tyres."""
    bar = mbd.AntiRollBar("lower_arm", "lower_arm", *["lower_arm_ball"] * 2, stiffness=2e4)
    C, _ = _entries(SOFT, ROLES, bar=bar)  # noqa: N806
    car = suspension.axle(SOFT, ["rack"], anti_roll_bar=bar)
    pair = suspension.axle_corners(car, ROLES)
    heave = suspension.axle_kinematics(
        car, pair, heave=[0.0, 1e-3], observe=["track"], gradients=["axle_load"], settle=True,
        tyre_rate=2e5,
    )  # fmt: skip
    close(2.0 / (C(3, 3) + C(3, 9) + 1.0 / 2e5), heave["axle_load_gradient"][0])
    roll = suspension.axle_kinematics(
        car, pair, roll=[0.0, 1e-3], observe=["roll_centre_height", "track"], settle=True,
        gradients=["roll_moment", "axle_steer"],
    )  # fmt: skip
    apart, track = C(3, 3) - C(3, 9) - C(9, 3) + C(9, 9), roll["track"][0]
    close(track**2 / apart, roll["roll_moment_gradient"][0])
    steer = 0.5 * (C(6, 3) - C(6, 9) + C(12, 3) - C(12, 9))
    close(-steer * track / apart, roll["axle_steer_gradient"][0])  # their roll is to the left
    dy, dz, lean = (C(i, 3) - C(i, 9) for i in (2, 3, 4))
    close(0.5 * track * abs(dy + R * lean) / dz, roll["roll_centre_height"][0])


def test_the_steer_axis():
    """Of a rack on a spring: equal torques, while vertical forces keep the wheels' heights."""
    mech, roles = _corner()
    mech = mech.replace(forces={"rack_spring": mbd.TorsionSpring("rack", 1e5)})
    C, _ = _entries(mech, roles, steer=None)  # noqa: N806
    lift = np.array([[C(3, 3), C(3, 9)], [C(9, 3), C(9, 9)]])
    forces = np.linalg.solve(lift, [C(3, 6) + C(3, 12), C(9, 6) + C(9, 12)])
    twist = [C(i, 6) + C(i, 12) - C(i, 3) * forces[0] - C(i, 9) * forces[1] for i in range(1, 7)]
    v, w = np.split(np.array([-1, -1, 1, -1, -1, 1]) * twist, 2)  # x forward, y left
    names = ["virtual_caster", "virtual_kingpin_inclination", "virtual_scrub_radius",
             "virtual_caster_trail", "wheel_rate"]  # fmt: skip
    ours = suspension.kinematics(mech, roles, travel=[-1e-3, 0.0], observe=names, gradients=())
    caster, inclination, scrub, trail, rate = (ours[n][1] for n in names)
    close(np.arctan2(-w[0], w[2]), caster)
    close(np.arctan2(-w[1], w[2]), inclination)
    ground = np.cross(w, v) / (w @ w)
    ground = ground + w * (-R - ground[2]) / w[2]
    close(ground[0], trail)
    close(-ground[1], scrub)
    close(1.0 / (C(3, 3) + C(3, 9)), rate)
