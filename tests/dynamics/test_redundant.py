"""Redundant rows: named, harmless for motion and its derivatives; passing singular positions."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

G = 9.81


def level(mech, turn):
    """Coordinates and speeds of parallel links turned by `turn` [rad], at one radian a second."""
    top = mbd.topology(mech)
    sign = np.zeros(top.nq)
    for name in top.tree:
        joint = mech.joints[name]
        turning = [b.startswith("crank") for b in (joint.a, joint.b)]
        sign[top.layout[name].q] = turning[1] - float(turning[0])
    return sign * turn, sign


@pytest.mark.parametrize("space", [False, True], ids=["plane", "space"])
def test_rows_are_named_and_counted(space):
    mech = mbd.zoo.double_parallel_crank()
    mech = mbd.in_space(mech) if space else mech
    q, v = level(mech, 0.4)
    found, top = mbd.mobility(mech, q), mbd.topology(mech)
    # In space 3 rows of each of two loops are out of the plane; both cranks but one give 1 more.
    assert (found.dof, len(found.redundant)) == (1, 7 if space else 1)
    assert top.nc - found.rank == len(found.redundant)
    assert found.kutzbach == (-6 if space else 0)
    assert all(name.split()[0] in top.cut for name in found.redundant)
    assert "redundant rows: B_" in str(found) and "points two coordinates (x, y)" in str(found)
    assert abs(mbd.constraint_jacobian(mech, q) @ v).max() < 1e-13


def exact_acceleration(turn, crank, masses):
    *cranks, platform = masses
    weight, inertia = sum(cranks) / 2 + platform, sum(cranks) / 3 + platform
    return weight * G * jnp.sin(turn) / (inertia * crank)


def acceleration(crank, masses, turn, space=False):
    mech = mbd.zoo.double_parallel_crank(crank=crank, masses=masses)
    mech = mbd.in_space(mech) if space else mech
    q, v = level(mech, 1.0)
    vdot, lam = mbd.forward_dynamics(mech, q * turn, 1.7 * v)
    return vdot[mbd.topology(mech).layout["A_1"].v][0], vdot, lam


MASSES = jnp.array([1.0, 1.5, 2.0, 4.0])


@pytest.mark.parametrize("space", [False, True], ids=["plane", "space"])
def test_accelerations_and_derivatives_are_those_of_the_closed_form(space):
    crank, turn = jnp.array(0.5), jnp.array(0.4)
    value = jax.jit(lambda *x: acceleration(*x, space)[0])
    assert float(value(crank, MASSES, turn)) == pytest.approx(
        float(exact_acceleration(turn, crank, MASSES)), rel=1e-12
    )
    found = jax.jit(jax.grad(lambda *x: acceleration(*x, space)[0], argnums=(0, 1, 2)))
    expected = jax.jit(jax.grad(exact_acceleration, argnums=(1, 2, 0)))(turn, crank, MASSES)
    slopes = found(crank, MASSES, turn)
    for one, other in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    h = 1e-5
    difference = (value(crank + h, MASSES, turn) - value(crank - h, MASSES, turn)) / (2 * h)
    assert float(slopes[0]) == pytest.approx(float(difference), rel=1e-7)


def test_multipliers_have_the_least_norm_and_balance():
    """Beside any other λ with the same Jᵀλ; scaled so that all are forces."""
    crank, turn = 0.5, 0.4
    _, vdot, lam = acceleration(crank, MASSES, turn)
    mech = mbd.zoo.double_parallel_crank(crank=crank, masses=MASSES)
    q, v = level(mech, turn)
    v = 1.7 * v
    rows = np.asarray(mbd.constraint_jacobian(mech, q))
    balance = mbd.mass_matrix(mech, q) @ vdot + mbd.bias(mech, q, v) - rows.T @ lam
    assert abs(balance).max() < 1e-11
    u, sizes, _ = np.linalg.svd(rows)
    null = u[:, np.sum(sizes > 1e-10) :]
    assert null.shape == (4, 1)
    np.testing.assert_allclose(null.T @ lam, 0.0, rtol=0, atol=1e-11)
    needed = mbd.mass_matrix(mech, q) @ vdot + mbd.bias(mech, q, v)
    np.testing.assert_allclose(lam, np.linalg.pinv(rows.T, rcond=1e-10) @ needed, rtol=0, atol=1e-9)


def test_a_batch_of_redundant_designs():
    cranks = jnp.linspace(0.3, 0.9, 7)
    found = lanes.vmap(lambda x: acceleration(x, MASSES, 0.4)[0])(cranks)
    np.testing.assert_allclose(found, exact_acceleration(0.4, cranks, MASSES), rtol=1e-11)


def turned_row(n, angle):
    """The N-four-bar, drawn in the plane turned by `angle`, gravity with it."""
    mech = mbd.zoo.n_four_bar(n, planar=True)
    c, s = np.cos(angle), np.sin(angle)
    r = np.array([[c, -s], [s, c]])
    bodies = {
        name: mbd.Body(mech.bodies[name].mass, r @ mech.bodies[name].com, mech.bodies[name].inertia)
        for name in mech.structure.bodies
    }
    points = {name: r @ np.asarray(mech.points[name]) for name in mech.structure.points}
    return mech.replace(bodies=bodies, points=points, gravity=r @ mech.gravity)


@cache
def passing(n, angle=0.0):
    """Energy gained [of the kinetic], status and last angle over 8 steps, for (δ, speed)."""
    mech = turned_row(n, angle)
    top = mbd.topology(mech)

    def run(delta, speed, dt):
        q, v = level(mech, 1.0)
        q, v = q * (delta - np.pi / 2), v * speed
        s = mbd.simulate(mech, q, v, t1=8e-3, dt=1e-3, throw=False)
        energy = [mbd.kinetic_energy(mech, *x) + mbd.potential_energy(mech, x[0])
                  for x in ((q, v), (s.q[-1], s.v[-1]))]  # fmt: skip
        kinetic = mbd.kinetic_energy(mech, q, v)
        return (energy[1] - energy[0]) / kinetic, s.status, s.q[-1, top.layout["ground_0"].q][0]

    return run


def one_step_before(n, speed, dt):
    """Distance from the singular position and speed `dt` before the links are level."""
    inertia, weight = (n + 1) / 3 + n, ((n + 1) / 2 + n) * G
    y = np.array([-np.pi / 2, speed])

    def rate(y):
        return np.array([y[1], weight / inertia * np.sin(y[0])])

    h = -dt / 100
    for _ in range(100):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3))
    return y[0] + np.pi / 2, y[1]


@pytest.mark.parametrize(
    ("n", "angle"), [(2, 0.0), (2, 0.5), pytest.param(5, 0.0, marks=pytest.mark.slow)]
)
def test_steps_that_end_next_to_a_singular_position(n, angle):
    """At any distance from there, 1e-13 to 0.1 rad: no jump in energy, and the right branch."""
    rng = np.random.default_rng(0)
    before, speed = one_step_before(n, -5.0, 1e-3)
    delta = 10.0 ** rng.uniform(-13, -5, 1000) * rng.choice([-1, 1], 1000)
    delta = np.concatenate([delta, rng.uniform(-0.1, 0.1, 500), [0.0]]) + before
    run = passing(n, angle)
    gained, status, last = lanes.vmap(lambda d: run(d, speed, 1e-3))(jnp.asarray(delta))
    assert not np.asarray(status).any()
    assert np.abs(gained).max() < 2e-7
    # The branch: all cranks keep parallel, so the angle is the pendulum's.
    travel = np.asarray(last) - (delta - np.pi / 2)
    np.testing.assert_allclose(travel, 8e-3 * speed, rtol=0.02)


@pytest.mark.parametrize("n", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_turning_over_and_over(n):
    """Ten seconds from IFToMM A02's start: ten level positions passed; the pendulum's motion."""
    mech = mbd.zoo.n_four_bar(n, planar=True)
    top, q = mbd.topology(mech), mbd.neutral(mech)
    v = mbd.assemble_velocity(mech, q, {"ground_0": -1.0})

    def energy(t, q, v):
        return mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q)

    run = mbd.simulate(mech, q, v, t1=10.0, dt=1e-3, save_every=20, outputs=energy)
    assert np.ptp(run.outputs) < 1e-10 * abs(float(run.outputs[0]))
    place = top.layout["ground_0"]
    angle, rate = np.asarray(run.q[:, place.q][:, 0]), np.asarray(run.v[:, place.v][:, 0])
    assert np.sum(np.diff(np.sign(np.cos(angle))) != 0) == 10
    inertia, weight = (n + 1) / 3 + n, ((n + 1) / 2 + n) * G
    exact = np.sqrt(1.0 + 2 * weight / inertia * (1.0 - np.cos(angle)))
    # Next to a level position the links' speeds differ by rounding over the distance from there.
    np.testing.assert_allclose(-rate, exact, rtol=1e-8)


@pytest.mark.slow
def test_the_energy_error_of_singular_passes_falls_with_the_step():
    """Two level positions in two seconds: fourth order, until rounding."""
    mech = mbd.zoo.n_four_bar(5, planar=True)
    q = mbd.neutral(mech)
    v = mbd.assemble_velocity(mech, q, {"ground_0": -1.0})

    def energy(t, q, v):
        return mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q)

    def error(dt):
        run = mbd.simulate(mech, q, v, t1=2.0, dt=dt, save_every=round(0.04 / dt), outputs=energy)
        assert np.sum(np.diff(np.sign(np.cos(run.q[:, 0]))) != 0) == 2
        return np.ptp(run.outputs) / abs(float(run.outputs[0]))

    errors = np.array([error(dt) for dt in (8e-3, 4e-3, 2e-3)])
    assert errors[-1] > 1e-13, "rounding, not the method's error, would be seen"
    assert np.all(errors[:-1] > 14.0 * errors[1:])
