"""Static reactions where a freedom idles, against force equilibrium in absolute coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.model.forces.spring_damper import distance
from jaxmbd.observe import (
    Configuration,
    Coordinate,
    Element,
    HoldingEffort,
    Motion,
    Reaction,
    Sweep,
)
from jaxmbd.viz.course import Track, arrows_along, tracks

ANGLES = (0.0, 0.5, 1.1)
GRAVITY = np.array([3.0, -4.0, -9.0])
LENGTHS = (0.050, 0.110, 0.100)
MASSES = (0.045, 0.091, 0.084)
LOADS = {
    "n": Reaction("A", axis="norm"),
    "peak": Reaction("A", axis="norm").peak(),
    "force": Reaction("A"),
    "foot": Reaction("rocker"),
    "moment": Reaction("rocker", "moment"),
    "hold": HoldingEffort("crank"),
}
TURN = Sweep({"crank": ANGLES}, LOADS)


def point_coupler(mech, com="middle", mass=MASSES[1]):
    """The RSSR with a point mass as its coupler."""
    if isinstance(com, str):
        com = 0.5 * (mech.points["A"] + mech.points["B"])
    return mech.replace(bodies={**mech.bodies, "coupler": mbd.Body(mass, com)})


def rssr(lengths=LENGTHS):
    return mbd.zoo.rssr(lengths=lengths, masses=MASSES, gravity=GRAVITY)


def oracle(angle, lengths=LENGTHS, mass=MASSES[1], beside=0.0):
    """Balance of three bodies: reactions at the four joints, and the moment on the crank.

    The unknowns are the force of each joint on its second body, the moments of the revolutes across
    their axes, the moment on the crank, and that about the coupler's line, which is zero if its
    mass is not `beside` it: 18, in 18 equations.
    """
    tilt, pivot = np.pi / 6, np.array([-0.130, -0.020, -0.02036])
    axis = np.array([0.0, -np.sin(tilt), np.cos(tilt)])
    across = np.array([0.0, np.cos(tilt), np.sin(tilt)])
    a = pivot + lengths[0] * (np.cos(angle) * np.array([1.0, 0, 0]) + np.sin(angle) * across)
    theta = float(mbd.zoo.rssr_theta(angle, lengths))
    b = lengths[2] * np.array([np.cos(theta), np.sin(theta), 0.0])
    line = (b - a) / np.linalg.norm(b - a)
    coms = 0.5 * (pivot + a), 0.5 * (a + b) + beside, 0.5 * b
    rows, load = np.zeros((18, 18)), np.zeros(18)
    for i, (m, com) in enumerate(zip((MASSES[0], mass, MASSES[2]), coms, strict=True)):
        load[6 * i + 3 : 6 * i + 6] = m * GRAVITY
        load[6 * i : 6 * i + 3] = np.cross(com, m * GRAVITY)

    def add(body, column, sign, at=None, moment=None):
        for k in range(3) if at is not None else [0]:
            e = np.eye(3)[k]
            n, f = (np.cross(at, e), e) if at is not None else (moment, np.zeros(3))
            rows[6 * body : 6 * body + 6, column + k] += sign * np.concatenate([n, f])

    add(0, 0, 1, at=pivot)  # ground on crank
    add(0, 3, -1, at=a), add(1, 3, 1, at=a)  # crank on coupler
    add(1, 6, -1, at=b), add(2, 6, 1, at=b)  # coupler on rocker
    add(2, 9, 1, at=np.zeros(3))  # ground on rocker
    add(0, 12, 1, moment=np.array([1.0, 0, 0])), add(0, 13, 1, moment=across)
    add(2, 14, 1, moment=np.eye(3)[0]), add(2, 15, 1, moment=np.eye(3)[1])
    add(0, 16, 1, moment=axis), add(1, 17, 1, moment=line)
    x = np.linalg.solve(rows, -load)
    assert np.any(beside) or abs(x[17]) < 1e-12
    moment = x[14] * np.eye(3)[0] + x[15] * np.eye(3)[1]
    return {"force": x[3:6], "foot": x[9:12], "moment": moment, "hold": x[16]}


def expected(lengths=LENGTHS, **changes):
    each = [oracle(angle, lengths, **changes) for angle in ANGLES]
    found = {k: np.array([x[k] for x in each]) for k in each[0]}
    n = np.linalg.norm(found["force"], axis=1)
    return found | {"n": n, "peak": n.max()}


def agree(found, right, rtol=1e-9):
    for name, x in right.items():
        scale = np.abs(x).max()
        np.testing.assert_allclose(found[name], x, rtol=0, atol=rtol * scale, err_msg=name)


def test_reactions_where_a_point_mass_may_spin_are_those_of_equilibrium():
    found = TURN(point_coupler(rssr()))
    assert found["status"] == 0
    agree(found, expected())
    # The same with an inertia about the line, which statics does not ask for.
    agree(TURN(rssr()), expected())


def test_a_massless_coupler_carries_along_its_line():
    found = TURN(point_coupler(rssr(), mass=0.0))
    assert found["status"] == 0
    agree(found, expected(mass=0.0))


@pytest.mark.slow
def test_scattered_hardpoints_and_derivatives():
    scattered = [(0.050 + 1e-3 * k, 0.110 - 2e-3 * k, 0.100 + 5e-4 * k) for k in range(3)]

    def peak(lengths):
        found = TURN.computed(point_coupler(rssr(lengths)))
        return found["peak"], found

    slopes, found = lanes.vmap(jax.grad(peak, has_aux=True))(jnp.array([*scattered, LENGTHS]))
    assert np.all(found["status"] == 0)
    for k, lengths in enumerate(scattered):
        agree({n: x[k] for n, x in found.items()}, expected(lengths))
    h = 1e-6
    differences = [
        (expected(LENGTHS + h * e)["peak"] - expected(LENGTHS - h * e)["peak"]) / (2 * h)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(slopes[-1], differences, rtol=1e-6)


def test_inverse_dynamics_needs_no_inertia_along_an_idle_spin():
    """Efforts of a given motion: those of the crank, and none along the spin."""
    mech, near = point_coupler(rssr()), rssr()
    q = mbd.assemble(near, {"crank": 0.7}).q
    v = mbd.assemble_velocity(near, q, {"crank": 2.0})
    vdot, _ = mbd.forward_dynamics(near, q, v)
    [tau, lam] = mbd.inverse_dynamics(mech, q, v, vdot)
    driven, same = mbd.inverse_dynamics(mech, q, v, vdot, actuated=["crank"])
    # Both carry the same load; that of all joints is a combination of it and the rows.
    push = np.asarray(mbd.constraint_jacobian(mech, q)).T
    np.testing.assert_allclose(tau + push @ lam, driven + push @ same, rtol=0, atol=1e-12)
    balanced = mbd.inverse_dynamics(mech, q, v, vdot, inputs={"crank": driven[0]})
    np.testing.assert_allclose(balanced[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(balanced[1], same, rtol=1e-9, atol=1e-12)


def test_a_mass_slightly_beside_the_line_is_held_by_a_moment_about_it():
    """As in a scattered drawing: without inertia about the line it would fall freely."""
    mech, beside = rssr(), np.array([1e-4, 2e-4, -1e-4])
    middle = 0.5 * (mech.points["A"] + mech.points["B"])
    right = {k: x for k, x in oracle(0.0, beside=beside).items()}
    found = Configuration({"crank": 0.0}, {k: LOADS[k] for k in right})(
        point_coupler(mech, middle + beside)
    )
    assert found["status"] == 0
    agree(found, right)
    assert abs(np.linalg.norm(right["force"]) - expected()["n"][0]) > 1e-4


@pytest.mark.parametrize("mass", [0.0, pytest.param(0.2, marks=pytest.mark.slow)])
def test_a_freedom_under_load_that_nothing_holds_is_not_at_rest(mass):
    """A mass far beside the coupler's line swings: nothing holds the crank at rest alone."""
    mech = rssr()
    beside = 0.5 * (mech.points["A"] + mech.points["B"]) + np.array([0.0, 0.0, 0.02])
    swings = point_coupler(mech, beside, mass)
    if not mass:
        push = mbd.PointForce("coupler", beside, (0.0, 1.0, 0.0))
        swings = swings.replace(forces={"push": push})
    asked = LOADS | {"rocker": Coordinate("rocker")}
    found = Sweep({"crank": ANGLES}, asked)(swings)
    assert found["status"] == mbd.Status.SINGULAR and found["failed_at"] == 0.0
    assert all(np.isnan(found[name]).all() for name in asked)
    kinematic = Sweep({"crank": ANGLES}, {"rocker": Coordinate("rocker")})(swings)
    assert kinematic["status"] == 0 and np.isfinite(kinematic["rocker"]).all()
    settled = Sweep({"crank": ANGLES}, {"n": LOADS["n"]}, settle=True)(swings)
    assert settled["status"] == 0 and np.isfinite(settled["n"]).all()


def test_what_is_not_a_number_is_not_ok():
    """A law that is not defined beyond a place, seen by a curve, a pose and a motion."""
    root = mbd.TorsionSpring("hinge", 1.0, law=lambda x, _: jnp.sqrt(0.5 - x))
    mech = mbd.zoo.simple_pendulum().replace(forces={"root": root})
    effort = Element("root", "effort")
    for reduced in (effort, effort.peak(), effort.span(), effort.mean(), effort.rms()):
        found = Sweep({"hinge": (0.0, 0.4, 0.6, 0.8)}, {"x": reduced})(mech)
        assert found["status"] == mbd.Status.NON_FINITE and found["failed_at"] == 0.6
    assert Sweep({"hinge": (0.0, 0.4)}, {"x": effort})(mech)["status"] == 0
    assert Configuration({"hinge": 0.6}, {"x": effort})(mech)["status"] == mbd.Status.NON_FINITE
    assert np.isnan(distance(jnp.array([0.0, np.nan, 0.0]))[0])
    still = Motion(0.1, 0.05, {"n": LOADS["n"]})(point_coupler(rssr()))
    assert still["status"] != 0 and np.isnan(still["n"]).all()


def test_arrows_of_a_sweep_are_its_static_reactions():
    mech = point_coupler(rssr())
    [track] = tracks(mech, TURN.trajectory(mech))
    [force] = np.moveaxis(arrows_along(mech, track, ("A",))[:, :, 1], 1, 0)
    np.testing.assert_allclose(force, expected()["force"], rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="force arrows"):
        arrows_along(mech, Track(np.asarray(track.q)), ("A",))
