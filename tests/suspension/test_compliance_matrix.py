"""The compliance of an axle against differences of equilibria, and what follows from it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes, suspension
from jaxmbd.suspension.compliance_matrix import RESPONSES

CORNER = suspension.Corner("upright", "centre", tyre_radius=0.3, spindle=("inner", "centre"))


def _corner() -> mbd.Mechanism:
    """An upright on one bushing and one rigid track rod, under load."""
    rates = np.diag([3e3, 4e3, 2e3, 2e5, 3e5, 1e5])
    rates[0, 4] = rates[4, 0] = 5e3
    return mbd.Mechanism(
        bodies={"upright": mbd.Body(12.0, com=(0.0, 0.7, 0.3), inertia=(0.3, 0.4, 0.3))},
        joints={
            "upright": mbd.Free("ground", "upright"),
            "rod": mbd.Rod("ground", "upright", (-0.12, 0.3, 0.25), "rod_end"),
        },
        forces={
            "bushing": mbd.Bushing("ground", "upright", (0.02, 0.55, 0.35), rates),
            "load": mbd.PointForce("upright", "centre", (300.0, 200.0, 900.0)),
        },
        points={
            "centre": (0.01, 0.75, 0.3),
            "inner": (0.01, 0.65, 0.29),
            "rod_end": (-0.13, 0.7, 0.24),
        },
    )


BAR = mbd.AntiRollBar("upright", "upright", "rod_end", "rod_end", stiffness=4e4)
AXLE = suspension.axle(_corner(), anti_roll_bar=BAR)
WHEELS = suspension.axle_corners(AXLE, CORNER)
NAMES = (
    "points/left_rod_end/x",
    "points/right_centre/z",
    "points/left_bushing.at/y",
    "forces/left_bushing/stiffness/4/4",
    "forces/anti_roll_bar/stiffness",
)


@pytest.fixture(scope="module")
def found():
    return suspension.compliance(AXLE, WHEELS)


def _moved(mech, places, known, guess, wrenches):
    """Poses of the places at the equilibrium under each of the wrenches (m, 6 n)."""
    loads = {f"force_{k}": mbd.PointForce(*place) for k, place in enumerate(places)}
    loads |= {f"moment_{k}": mbd.Torque("ground", body) for k, (body, _) in enumerate(places)}
    loaded = mech.replace(forces=loads)

    def poses(wrench):
        forces = dict(loaded.forces)
        for k, (moment, force) in enumerate(wrench.reshape(-1, 2, 3)):
            forces[f"force_{k}"] = eqx.tree_at(lambda e: e.force, forces[f"force_{k}"], force)
            forces[f"moment_{k}"] = eqx.tree_at(lambda e: e.torque, forces[f"moment_{k}"], moment)
        now = eqx.tree_at(lambda m: m.forces, loaded, forces)
        q = mbd.equilibrium(now, known=known, guess=guess, throw=False).q
        turns = mbd.poses(now, q)
        return [(turns[b].rotation, mbd.point_position(now, q, b, p)) for b, p in places]

    return lanes.vmap(poses)(jnp.asarray(wrenches))


def _difference(mech, places, known, guess, columns, step):
    """Columns of the matrix by differences of equilibria, extrapolated twice."""
    steps = step * np.array([1.0, -1.0, 0.5, -0.5, 0.25, -0.25])
    wrenches = [h * np.eye(6 * len(places))[j] for j in columns for h in steps]
    out = []
    for turn, x in _moved(mech, places, known, guess, np.array(wrenches)):
        turn = np.asarray(turn).reshape(len(columns), 3, 2, 3, 3)
        x = np.asarray(x).reshape(len(columns), 3, 2, 3)
        between = turn[:, :, 0] @ np.swapaxes(turn[:, :, 1], -1, -2)
        skewed = 0.5 * (between - np.swapaxes(between, -1, -2))
        axis = np.stack([skewed[..., 2, 1], skewed[..., 0, 2], skewed[..., 1, 0]], axis=-1)
        sine = np.linalg.norm(axis, axis=-1, keepdims=True)
        axis = axis * np.where(sine > 0.0, np.arcsin(sine) / np.where(sine > 0.0, sine, 1.0), 1.0)
        out.append(np.concatenate([axis, x[:, :, 0] - x[:, :, 1]], axis=-1))
    by_step = np.concatenate(out, axis=-1) / (2.0 * steps[::2, None])
    once = (4.0 * by_step[:, 1:] - by_step[:, :-1]) / 3.0
    return ((16.0 * once[:, 1] - once[:, 0]) / 15.0).T


def test_the_matrix_is_that_of_differences_of_equilibria(found):
    places = [(f"{side}_upright", f"{side}_centre") for side in ("left", "right")]
    columns = [0, 2, 4, 11]
    expected = _difference(AXLE, places, None, found.q, columns, 8.0)
    got = np.asarray(found.matrix)[:, columns]
    assert np.abs(got - expected).max(axis=0) == pytest.approx(0.0, abs=1e-8 * np.abs(got).max())


def test_it_is_symmetric_and_the_bar_couples_the_sides(found):
    c = np.asarray(found.matrix)
    assert np.abs(c - c.T).max() < 1e-12 * np.abs(c).max()
    assert np.linalg.eigvalsh(0.5 * (c + c.T)).min() > -1e-12 * np.abs(c).max()
    assert np.abs(c[:6, 6:]).max() > 1e-3 * np.abs(c).max()


def _matrix(x):
    mech = mbd.set_variables(AXLE, dict(zip(NAMES, x, strict=True)))
    return suspension.compliance(mech, WHEELS, throw=False).matrix


@pytest.fixture(scope="module")
def columns():
    """The numbers, the derivative of the matrix by each of them, and differences; one kernel."""
    at = mbd.get_variables(AXLE, NAMES)
    x = np.array([float(at[n]) for n in NAMES])
    count, eye = len(x), np.eye(len(x))
    steps = np.array([4e-4, 4e-4, 4e-4, 0.02 * x[3], 0.02 * x[4]])
    shifts = np.array([1.0, -1.0, 0.5, -0.5])
    apart = [x + s * h * e for h, e in zip(steps, eye, strict=True) for s in shifts]
    places = np.concatenate([np.tile(x, (count, 1)), apart])
    directions = np.concatenate([eye, np.zeros((len(apart), count))])
    both = lanes.vmap(lambda x, dx: jax.jvp(_matrix, (x,), (dx,)))
    values, rates = map(np.asarray, both(places, directions))
    moved = values[count:].reshape(count, 2, 2, 12, 12)
    by_step = (moved[:, :, 0] - moved[:, :, 1]) / (2.0 * steps[:, None, None, None])
    by_step[:, 1] *= 2.0
    return x, values[0], rates[:count], (4.0 * by_step[:, 1] - by_step[:, 0]) / 3.0


def test_derivatives_by_hardpoints_and_rates(columns, found):
    """Against differences."""
    _, value, exact, difference = columns
    np.testing.assert_allclose(value, found.matrix, rtol=1e-9, atol=1e-15)
    for j, name in enumerate(NAMES):
        size = np.abs(exact[j]).max()
        assert size > 0.0
        assert np.abs(exact[j] - difference[j]).max() < 1e-6 * size, name


@pytest.mark.slow
def test_reverse_is_forward(columns):
    x, _, exact, _ = columns
    weights = np.random.default_rng(0).normal(size=(12, 12))
    reverse = jax.grad(lambda x: jnp.sum(weights * _matrix(x)))(jnp.asarray(x))
    np.testing.assert_allclose(reverse, np.sum(weights * exact, axis=(1, 2)), rtol=1e-9)


def test_coefficients_are_those_of_a_symmetric_axle(found):
    """Mirror images respond with mirrored signs; a force at the patch does work there."""
    c = found.coefficients()
    for load in ("lateral", "braking", "traction", "vertical", "aligning"):
        across = load in ("lateral", "aligning")  # parallel loads whose mirror image is opposed
        pattern = "opposed" if across else "parallel"
        for response in RESPONSES:
            left, right = c[f"{load}/{pattern}/{response}"]
            sign = -1.0 if response in ("steer", "y", "patch_y") else 1.0
            assert float(left) == pytest.approx(sign * float(right), rel=1e-9, abs=1e-15)
    assert float(c["lateral/parallel/patch_y"][0]) > 0.0 > float(c["lateral/parallel/camber"][0])
    assert float(c["braking/parallel/patch_x"][0]) < 0.0 < float(c["braking/parallel/windup"][0])
    assert float(c["vertical/parallel/z"][0]) > float(c["vertical/opposed/z"][0]) > 0.0
    assert float(c["aligning/parallel/steer"][1]) > 0.0
    assert "left steer [deg]" in str(found)


def test_angles_are_those_of_the_turned_wheel(found):
    """Steer, toe and camber per rotation, against the zoo's angles of the turned axis."""
    for k, sign in ((0, 1.0), (1, -1.0)):
        spin, matrix = found.spin[k], np.asarray(found.matrix)[6 * k : 6 * k + 6, 6 * k + 2]

        def angles(h, spin=spin, matrix=matrix, sign=sign):
            d = spin + h * jnp.cross(matrix[:3], spin)
            d = jnp.stack([d[0], sign * d[1], d[2]])  # as if it were a left wheel
            return jnp.stack([mbd.zoo.toe_angle(d), mbd.zoo.camber_angle(d)])

        toe, camber = jax.jvp(angles, (0.0,), (1.0,))[1]
        single = suspension.Compliance(
            found.matrix[6 * k : 6 * k + 6, 6 * k : 6 * k + 6],
            *(x[k : k + 1] for x in (found.centre, found.spin, found.patch)),
            found.q,
            found.status,
            (WHEELS[k].side,),
            ("outboard",),
            ("inboard",),
            found.rise[k : k + 1],
            (),
        ).coefficients()
        assert float(single["aligning/single/toe"][0]) == pytest.approx(float(toe), rel=1e-12)
        assert float(single["aligning/single/camber"][0]) == pytest.approx(float(camber), rel=1e-12)
        assert float(single["aligning/single/steer"][0]) == pytest.approx(
            -sign * float(toe), rel=1e-12
        )


def test_what_is_held_is_told_and_held(found):
    """Heights at a number are those of `known`, which the other tests hold against differences."""
    keys = [mbd.PointTravel(f"{s}_upright", f"{s}_centre", "z") for s in ("left", "right")]
    high = suspension.compliance(AXLE, WHEELS, travel=(0.01, 0.0))
    same = suspension.compliance(AXLE, WHEELS, known=dict(zip(keys, (0.01, 0.0), strict=True)))
    np.testing.assert_allclose(high.matrix, same.matrix, rtol=0, atol=1e-15)
    np.testing.assert_allclose(high.rise, (0.01, 0.0), rtol=0, atol=1e-12)
    assert np.abs(high.matrix[5::6]).max() < 1e-15 < np.abs(found.matrix[5::6]).max()
    assert "held: wheel centres; from where they are drawn: left +10.0 mm, right" in str(high)
    assert str(found).startswith("held: nothing; wheel centres go against the springs; from")


@pytest.mark.slow
def test_a_rack_is_held():
    steered = mbd.soften(mbd.zoo.double_wishbone_kinematic(), "lower_ball", 1e6)
    roles = suspension.zoo_corner("double_wishbone_kinematic")
    told = suspension.compliance(steered, roles, travel=0.0)
    assert told.held == ("rack", "wheel centres")
    assert float(told.coefficients()["lateral/single/y"][0]) > 1e-7


def test_without_loads_it_is_that_of_the_drawing():
    """Rounding is more than the balance there; next to nothing as load gives the same matrix."""
    points = suspension.example_hardpoints("trailing_arm")

    def found(gravity):
        corner, roles = suspension.trailing_arm_corner(points, gravity=gravity)
        soft = mbd.soften(corner, "arm", (1e4, 5e6))
        return suspension.compliance(soft, roles, travel=0.0)

    none, little = found(0.0), found(1e-3)
    size = np.abs(little.matrix).max()
    np.testing.assert_allclose(none.matrix, little.matrix, rtol=0, atol=1e-6 * size)


@pytest.mark.slow
def test_a_settled_table_without_loads_asks_for_some():
    points = suspension.example_hardpoints("double_wishbone")
    corner, roles = suspension.double_wishbone_corner(points, gravity=0.0)
    soft = mbd.soften(corner, "lower_arm", (1e4, 5e6))
    with pytest.raises(ValueError, match="give a wheel load, gravity or a preload"):
        suspension.kinematics(soft, roles, travel=[0.0], observe=["toe"], settle=True)


@pytest.mark.slow
def test_an_axle_of_the_zoo_with_bushings_and_rods():
    """Four soft hinges, two rigid track rods, wheels that spin freely unless they are held."""
    corner = mbd.zoo.double_wishbone(wheel_load=3000.0)
    for hinge in ("rev_uca", "rev_lca"):
        corner = mbd.soften(corner, hinge, (1e4, 1e7), (10.0, 1e3))
    car = suspension.axle(corner)
    wheels = suspension.axle_corners(car, suspension.zoo_corner("double_wishbone"))
    held = {f"{side}_rev_spindle": 0.0 for side in ("left", "right")}
    found = suspension.compliance(car, wheels, known=held)
    free = suspension.compliance(car, wheels)
    c = np.asarray(found.matrix)
    np.testing.assert_allclose(free.matrix, c, rtol=1e-9, atol=1e-12 * np.abs(c).max())
    assert np.abs(c - c.T).max() < 1e-11 * np.abs(c).max()
    places = [(f"{side}_upright", f"{side}_wheel_centre") for side in ("left", "right")]
    expected = _difference(car, places, held, found.q, list(range(12)), 40.0)
    assert np.abs(c - expected).max() < 1e-8 * np.abs(c).max()
    assert (np.abs(c - expected).max(axis=0) < 1e-8 * np.abs(c).max(axis=0)).all()
