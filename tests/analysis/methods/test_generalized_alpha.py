"""The generalised-α method: its spectrum, order, stiff loops, derivatives, batches, restarts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parallelograms import (
    check_a_bad_sample_leaves_its_neighbours_alone,
    numbers,
    swinging,
)
from scipy.integrate import solve_ivp

import jaxmbd as mbd
from jaxmbd.analysis.methods import Equations, chosen


def slide():
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))},
    )


@pytest.fixture(scope="module")
def matrix():
    """The matrix (3, 3) of a step of length 1 of a vibration of rate z, by ρ and z."""
    mech = slide()

    @jax.jit
    def step_of(rho, z):
        soft, none = -z * z * jnp.eye(1), jnp.zeros((1, 1))
        equations = Equations(
            mech,
            lambda t, q, v: soft @ q,
            lambda q, v, t: (q, v),
            slopes=lambda t, q, v: (soft, none, none[0]),
        )
        method = mbd.GeneralizedAlpha(rho)

        def one(y):  # of q, v and a − w, in units of z²
            w = -z * z * y[:1]
            memory = jnp.stack([z * z * y[2:], w, 0.0 * w])
            one = jnp.ones(())
            found = method.step(equations, 0.0 * one, y[:1], y[1:2], one, memory)
            return jnp.concatenate([found.q, found.v, found.memory[0] / z**2])

        return jax.jacfwd(one)(jnp.ones(3))

    return step_of


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 1.0])
def test_damping_is_that_of_the_spectral_radius(matrix, rho):
    """At an infinite rate all three eigenvalues are −ρ: their polynomial is (x + ρ)³."""
    np.testing.assert_allclose(np.poly(matrix(rho, 1e4)), np.poly(3 * [-rho]), atol=1e-5)

    def eigenvalues(z):
        return np.linalg.eigvals(np.asarray(matrix(rho, z)))

    for z in (0.3, 1.0, 3.0, 10.0, 100.0):
        assert np.abs(eigenvalues(z)).max() < 1.0 + 1e-9
    z = 0.02
    root = max(eigenvalues(z), key=lambda x: x.imag)
    damping = 0.5 * ((1.0 - rho) / (1.0 + rho)) ** 3
    behind = (11.0 * rho**2 - 14.0 * rho + 11.0) / (24.0 * (1.0 + rho) ** 2)
    assert abs(1.0 - np.abs(root) - damping * z**4) < 0.01 * z**4
    assert abs(z - np.angle(root) - behind * z**3) < 0.01 * z**3


@pytest.mark.slow
def test_order_of_steps_of_different_lengths():
    """Every other step is three times as long as the one before."""
    mech, wrong = mbd.zoo.simple_pendulum(), []
    best = mbd.simulate(mech, [1.0], t1=1.0, method="dormand_prince").q[-1]
    for runs in (1, 2, 4):
        end, ticks = ([1.0],), np.arange(31)
        for k in range(runs):
            t = (k + (ticks + 0.5 * (ticks % 2)) / 30.0) / runs
            run = mbd.simulate(mech, *end, t=t, save_every=1, method="generalized_alpha")
            end = run.q[-1], run.v[-1]
        wrong.append(np.abs(run.q[-1] - best).max())
    np.testing.assert_allclose(np.log2(np.array(wrong[:-1]) / wrong[1:]), 2.0, atol=0.1)


swings = swinging(40, method=mbd.GeneralizedAlpha(0.8))


def test_stiff_springs_are_stable_and_stay_on_the_constraints():
    """A spring of 1e9 N·m/rad, of a vibration of 24 000 1/s, at steps of 0.01 s."""
    run = swings(*numbers())
    rate = np.sqrt(1e9 / (5.0 / 3.0))
    assert np.all(np.abs(run.q[3, 1:, 0]) < 1.1e-3) and np.all(np.asarray(run.drift) < 1e-13)
    assert rate * 0.01 > 200.0 and abs(run.q[3, -1, 0]) < 1e-3 * 40**2 * 0.8**40
    assert np.asarray(run.status[:3]).tolist() == [mbd.Status.OK] * 3
    assert run.status[3] == mbd.Status.INACCURATE  # of the vibration nothing is right


@pytest.mark.slow
def test_a_stiff_bushing_in_a_loop():
    """A joint of 1e8 N/m in place of a rigid one, at steps in which RK4 is lost."""
    mech, n = mbd.soften(mbd.zoo.n_four_bar(1), "right_1", 1e8), 40
    options = {"t1": 0.4, "dt": 0.4 / n, "save_every": n, "throw": False}
    run = mbd.simulate(mech, [1.0, -1.0, 1.0], method="generalized_alpha", **options)
    rate = 2.0 * 9.81 / (5.0 / 3.0)  # of two cranks and a coupler, as slender rods
    rigid = solve_ivp(
        lambda _, x: [x[1], rate * np.sin(x[0])], (0.0, 0.4), [1.0, 0.0], "DOP853", rtol=1e-12
    ).y[:, -1]
    assert abs(run.q[-1, 0] - rigid[0]) < 4e-5 and abs(run.v[-1, 0] - rigid[1]) < 1e-3 * rigid[1]
    assert run.status == mbd.Status.OK and 1e-4 < run.error < 1e-2
    assert mbd.simulate(mech, [1.0, -1.0, 1.0], **options).status != mbd.Status.OK


@pytest.mark.slow
def test_lanes_agree_with_xla():
    for x, y in zip(
        *(swings(*numbers(), backend=b, steps=10)[1:3] for b in ("lanes", "xla")), strict=True
    ):
        np.testing.assert_allclose(x[:3], y[:3], rtol=0, atol=1e-12)


def test_a_bad_sample_leaves_its_neighbours_alone():
    check_a_bad_sample_leaves_its_neighbours_alone(swings)


def test_derivatives_in_both_modes():
    """With respect to a stiffness, the start and the step of a closed loop, against differences.

    The first step has no memory, which is NaN; no derivative by the step is.
    """
    at, along = np.array([30.0, 0.7, 1.0, 0.01]), np.array([5.0, 0.1, -0.2, 1e-3])

    def end(x):
        run = swings(*x[:, None])
        return jnp.concatenate([run.q[0, -1], run.v[0, -1]])

    value, slope = jax.jit(lambda x, d: jax.jvp(end, (x,), (d,)))(at, along)
    weights = np.array([1.0, -2.0, 0.5, 0.1, 0.3, -0.2])
    pulled = jax.jit(jax.grad(lambda x: weights @ end(x)))(at)
    np.testing.assert_allclose(pulled @ along, weights @ slope, rtol=1e-10)
    h = 1e-3 * np.array([-2.0, -1.0, 1.0, 2.0])
    moved = at + h[:, None] * along
    run = swings(*moved.T)
    ends = np.concatenate([run.q[:, -1], run.v[:, -1]], axis=1)
    differences = (ends[0] - 8.0 * ends[1] + 8.0 * ends[2] - ends[3]) / (12.0 * 1e-3)
    np.testing.assert_allclose(slope, differences, rtol=0, atol=1e-9 * np.abs(slope).max())
    np.testing.assert_allclose(value[:3], run.q[0, -1], atol=1e-1)


def test_a_spectral_radius_is_from_0_to_1():
    assert isinstance(chosen("generalized_alpha", float), mbd.GeneralizedAlpha)
    with pytest.raises(ValueError, match="spectral_radius=1.5; give a number from 0 to 1"):
        mbd.GeneralizedAlpha(1.5)


@pytest.mark.slow
def test_second_derivatives_in_all_orders_of_modes():
    """Against differences of first ones."""
    mech, method = mbd.zoo.double_pendulum(), mbd.GeneralizedAlpha(0.8)

    def last(share):
        v = jnp.full(2, share)
        run = mbd.simulate(mech, [0.7, 0.7], v, t1=0.04, dt=0.02, method=method, throw=False)
        return run.v[-1] @ jnp.array([1.0, 2.0])

    def forward(f):
        return lambda x: jax.jvp(f, (x,), (1.0,))[1]

    orders = (
        forward(forward(last)), forward(jax.grad(last)), jax.grad(forward(last)),
        jax.grad(jax.grad(last)),
    )  # fmt: skip
    found = jax.jit(lambda x: [f(x) for f in orders])(1.3)
    first, h = jax.jit(forward(last)), 1e-3
    near, far = ((first(1.3 + k * h) - first(1.3 - k * h)) / k for k in (1, 2))
    np.testing.assert_allclose(found, (4.0 * near - far) / (6.0 * h), rtol=1e-9)
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


@pytest.mark.slow
def test_loops_that_close_by_their_numbers_alone():
    """Three parallel arms turn at a constant rate; beside it their rows contradict each other."""
    arms, joints = range(3), {}
    bodies = {f"arm{i}": mbd.Body(1.0, (i, 0.5), 1.0) for i in arms}
    bodies["platform"] = mbd.Body(1.0, (1.0, 1.0), 1.0)
    for i in arms:
        joints[f"foot{i}"] = mbd.Revolute("ground", f"arm{i}", (i, 0.0))
        joints[f"top{i}"] = mbd.Revolute(f"arm{i}", "platform", (i, 1.0))
    mech = mbd.Mechanism(bodies, joints, gravity=(0.0, 0.0))
    q = mbd.assemble(mech, {"foot0": 0.1}).q

    def turned(rate):
        v = mbd.assemble_velocity(mech, q, {"foot0": rate})
        method = mbd.GeneralizedAlpha()
        return mbd.simulate(mech, q, v, t1=0.5, dt=0.05, method=method, throw=False).q[-1, 0]

    value, slope = jax.jit(jax.value_and_grad(turned))(1.0)
    np.testing.assert_allclose([value, slope], [0.6, 0.5], rtol=1e-12)
