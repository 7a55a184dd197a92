"""States between the saved ones of a run: their order, constraints, derivatives, and failures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

T = np.array([0.0021, 0.0104, 0.0333])


@pytest.mark.slow
def test_order_on_a_closed_loop_with_balls():
    """Sixth in q, fifth in v, against a run with all rows; multipliers follow the states."""
    mech = mbd.zoo.rssr()
    q = mbd.assemble(mech).q
    v = mbd.assemble_velocity(mech, q, {"crank": 10.0})
    fine = mbd.simulate(mech, q, v, t1=0.4, dt=1e-4)
    errors = np.zeros((3, 2))
    for k, every in enumerate((64, 32, 16)):
        for middle in (700, 1500, 2300, 3100):
            rows = middle + every * np.arange(-1, 3)
            run = fine._replace(t=fine.t[rows], q=fine.q[rows], v=fine.v[rows])
            ids = middle + every // 16 * np.arange(-16, 32)
            q, v = mbd.states_at(mech, run, fine.t[ids])
            found = abs(q - fine.q[ids]).max(), abs(v - fine.v[ids]).max()
            errors[k] = np.maximum(errors[k], found)
        opened = jax.vmap(lambda x: mbd.constraint_residual(mech, x))(q)
        slip = jax.vmap(lambda x, y: mbd.constraint_jacobian(mech, x) @ y)(q, v)
        assert abs(opened).max() < 1e-14 and abs(slip).max() < 1e-12
    slopes = np.log2(errors[:-1] / errors[1:])
    np.testing.assert_allclose(slopes, [[6.0, 5.0]] * 2, rtol=0, atol=0.3)
    exact = mbd.forward_dynamics(mech, fine.q[ids[7]], fine.v[ids[7]])[1]
    found = mbd.forward_dynamics(mech, q[7], v[7])[1]
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-7 * abs(exact).max())


def test_no_state_is_off_the_constraints():
    """Between rows half a turn apart some states are not found: they are NaN."""
    mech = mbd.zoo.rssr()
    q = mbd.assemble(mech).q
    v = mbd.assemble_velocity(mech, q, {"crank": 10.0})
    run = mbd.simulate(mech, q, v, t1=1.2, dt=1e-3, save_every=300)
    q, v = mbd.states_at(mech, run, np.linspace(0.0, 1.2, 101))
    opened = abs(jax.vmap(lambda x: mbd.constraint_residual(mech, x))(q)).max(axis=1)
    found = np.isfinite(opened)
    assert 20 < found.sum() < 80 and opened[found].max() < 1e-11
    np.testing.assert_array_equal(found, np.isfinite(v).all(axis=1))


def test_a_body_that_tumbles_freely():
    """A symmetric top spins about its axis and precesses about its angular momentum."""
    a, c = 2.0, 1.0  # moments of inertia across and along the axis z
    mech = mbd.Mechanism(
        {"top": mbd.Body(1.0, (0, 0, 0), np.diag([a, a, c]))},
        {"free": mbd.Free("ground", "top")},
        gravity=(0, 0, 0),
    )
    omega = np.array([1.5, 0.0, 4.0, 0.3, 0.0, 0.0])
    run = mbd.simulate(mech, mbd.neutral(mech), omega, t1=1.0, dt=5e-4, save_every=40)
    t = np.array([0.113, 0.57, 0.9999])
    q, v = mbd.states_at(mech, run, t)
    momentum = np.array([a * omega[0], 0.0, c * omega[2]])
    size = np.linalg.norm(momentum)
    turn, spin = size / a * t, omega[2] * (1.0 - c / a) * t
    axis = momentum / size

    def half(angle, axis):
        return np.r_[np.cos(angle / 2), np.sin(angle / 2) * np.asarray(axis)]

    def product(p, q):
        w = p[0] * q[0] - p[1:] @ q[1:]
        return np.r_[w, p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])]

    exact = [product(half(x, axis), half(y, (0, 0, 1))) for x, y in zip(turn, spin, strict=True)]
    np.testing.assert_allclose(q[:, :4], exact, rtol=0, atol=2e-9)
    np.testing.assert_allclose(q[:, 4], 0.3 * t, rtol=0, atol=1e-13)
    # The angular velocity is momentum / a and a spin about the body's axis.
    z = np.array([mbd.poses(mech, x)["top"].rotation[:, 2] for x in q])
    np.testing.assert_allclose(
        v[:, :3], momentum / a + omega[2] * (1.0 - c / a) * z, rtol=0, atol=1e-7
    )


@pytest.fixture(scope="module")
def pendulum():
    mech = mbd.zoo.simple_pendulum()
    return mech, mbd.simulate(mech, [0.1], t1=0.1, dt=5e-3)


def test_saved_times_shapes_and_the_ends(pendulum):
    mech, run = pendulum
    q, v = mbd.states_at(mech, run, run.t)
    np.testing.assert_allclose(q, run.q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(v, run.v, rtol=0, atol=1e-14)
    assert mbd.states_at(mech, run, 0.0301)[0].shape == (1,)
    assert mbd.states_at(mech, run, np.full((2, 3), 0.05))[1].shape == (2, 3, 1)
    np.testing.assert_allclose(mbd.states_at(mech, run, 0.1 + 1e-17)[0], run.q[-1], atol=1e-15)
    single = mbd.simulate(mech.astype(np.float32), [0.1], t1=0.1, dt=1e-3)
    t = 0.0305
    v = mbd.states_at(mech.astype(np.float32), single, np.float32(t))[1]
    assert v.dtype == np.float32
    np.testing.assert_allclose(v, mbd.states_at(mech, run, t)[1], rtol=2e-6)


def test_outside_and_where_the_run_failed(pendulum):
    mech, run = pendulum
    for t in (-0.01, 0.2):
        with pytest.raises(ValueError, match=r"not within the run, which is from 0 to 0\.1"):
            mbd.states_at(mech, run, [0.05, t])
        q, v = jax.jit(lambda s: mbd.states_at(mech, run, s))(np.array([0.05, t]))  # noqa: B023
        assert np.isfinite(q[0]).all() and np.isnan(q[1]).all() and np.isnan(v[1]).all()
    with pytest.raises(ValueError, match="outputs_only"):
        ends = mbd.simulate(mech, [0.1], t1=0.1, dt=5e-3, outputs_only=True)
        mbd.states_at(mech, ends, 0.05)
    failed = run._replace(q=run.q.at[11:].set(jnp.nan))
    q, _ = mbd.states_at(mech, failed, [0.049, 0.05, 0.051, 0.09])
    assert np.isfinite(q[:2]).all() and np.isnan(q[2:]).all()


@pytest.mark.slow
def test_transforms_agree():
    """By the mechanism, the inputs and the times: forward, reverse, differences; loop, lanes."""
    mech = mbd.zoo.n_four_bar(1, planar=True)
    q0 = mbd.assemble(mech, known={"ground_0": 1.0}).q

    def states(p, t):
        inputs = lambda s: {"ground_0": p * jnp.sin(30.0 * s)}  # noqa: E731
        own = mech.replace(gravity=(0.0, -9.81 * p))
        run = mbd.simulate(own, q0, t1=0.04, dt=4e-3, inputs=inputs, throw=False)
        return jnp.concatenate(mbd.states_at(own, run, t, inputs=inputs), axis=-1)

    @jax.jit
    def along(p, t, dp, dt):
        return jax.jvp(states, (p, t), (dp, dt))

    def value(p, t):
        return along(p, t, 0.0, 0.0 * T)[0]

    by_p, by_t = along(2.0, T, 1.0, 0.0 * T)[1], along(2.0, T, 0.0, 1.0 + 0.0 * T)[1]
    for found, (p, t) in ((by_p, (1e-4, 0.0)), (by_t, (0.0, 1e-6))):
        slope = (value(2.0 + p, T + t) - value(2.0 - p, T - t)) / (2.0 * (p + t))
        np.testing.assert_allclose(found, slope, rtol=0, atol=1e-6 * abs(slope).max())
    weight = np.cos(np.arange(by_p.size)).reshape(by_p.shape)
    reverse = jax.jit(jax.grad(lambda p, t: jnp.sum(weight * states(p, t)), (0, 1)))(2.0, T)
    np.testing.assert_allclose(reverse[0], np.sum(weight * by_p), rtol=1e-10)
    np.testing.assert_allclose(reverse[1], np.sum(weight * by_t, axis=1), rtol=1e-10)
    many = np.array([1.0, 2.0, 3.0])
    batch = mbd.lanes.vmap(states, in_axes=(0, None))(many, T)
    np.testing.assert_allclose(batch, [value(p, T) for p in many], rtol=1e-12, atol=1e-12)


def test_forgotten_inputs_are_told():
    mech = mbd.zoo.simple_pendulum()
    torque = {mbd.topology(mech).tree[0]: 1.0}
    run = mbd.simulate(mech, [0.1], t1=0.02, dt=1e-2, inputs=torque)
    with pytest.raises(ValueError, match="the run had inputs="):
        mbd.states_at(mech, run, 0.015)
    found = jax.jit(lambda run: mbd.states_at(mech, run, 0.015))(run)
    assert np.isnan(found[0]).all() and np.isfinite(
        mbd.states_at(mech, run, 0.015, inputs=torque)[0]
    )
