"""Events by Kutta's steps of equal length: order, impacts, derivatives; nothing else changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

G, DT = 9.81, 0.02
ROWS = np.array([30, 65, 80])
FIRST = np.array([0.8, 1.0])


@jax.jit
def bounced(p):
    """A mass dropped from h onto a floor with restitution e, by p = (e, h)."""
    mech = mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))},
        gravity=(0.0, 0.0, -G),
    )
    hit = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=p[0])
    run = mbd.simulate(mech, p[1:], dt=DT, t1=2.0, events={"hit": hit}, throw=False)
    return jnp.concatenate([run.events["hit"].t[:2], run.q[ROWS, 0], run.v[ROWS, 0]]), run


def exact(p):
    e, h = p
    first = jnp.sqrt(2.0 * h / G)
    speed, times = e * G * first, jnp.stack([first, (1.0 + 2.0 * e) * first])
    s = DT * ROWS - jnp.where(DT * ROWS > times[1], times[1], times[0])
    v = jnp.where(DT * ROWS > times[1], e, 1.0) * speed
    falls = DT * ROWS < first
    q = jnp.where(falls, h - 0.5 * G * (DT * ROWS) ** 2, v * s - 0.5 * G * s**2)
    return jnp.concatenate([times, q, jnp.where(falls, -G * DT * ROWS, v - G * s)])


def test_bounces():
    found, run = bounced(FIRST)
    np.testing.assert_allclose(found, exact(FIRST), rtol=0, atol=1e-12)
    assert run.status == mbd.Status.OK and run.steps < 100 + 10


@pytest.mark.parametrize("mode", [jax.jacfwd, pytest.param(jax.jacrev, marks=pytest.mark.slow)])
def test_derivatives(mode):
    slopes = jax.jit(mode(lambda p: bounced(p)[0]))(FIRST)
    np.testing.assert_allclose(slopes, jax.jit(jax.jacfwd(exact))(FIRST), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_batch_equals_single_runs():
    found, _ = bounced(FIRST)
    batch = jax.jit(lanes.vmap(lambda p: bounced(p)[0]))(np.stack([FIRST, [0.85, 1.2]]))
    np.testing.assert_allclose(batch[0], found, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(batch[1], exact(np.array([0.85, 1.2])), rtol=0, atol=1e-12)


def test_times_are_of_fourth_order_and_errors_those_of_the_run():
    mech = mbd.zoo.simple_pendulum()
    fast = mbd.Event(lambda t, q, v: v[0] - 0.5)
    given = {"t1": 1.5, "events": {"fast": fast}}
    best = mbd.simulate(mech, [0.1], method=mbd.DormandPrince(1e-12, 1e-14), **given)
    wrong = []
    for dt in (0.05, 0.025):
        run = mbd.simulate(mech, [0.1], dt=dt, **given)
        plain = mbd.simulate(mech, [0.1], dt=dt, t1=1.5)
        np.testing.assert_allclose(run.error, plain.error, rtol=0.05)
        assert run.events["fast"].count == best.events["fast"].count > 0
        wrong.append(np.nanmax(np.abs(run.events["fast"].t - best.events["fast"].t)))
    assert 3.7 < np.log2(wrong[0] / wrong[1]) < 4.3


def test_without_an_event_the_steps_are_those_of_rk4():
    mech, never = mbd.zoo.simple_pendulum(), mbd.Event(lambda t, q, v: t + 1.0)
    plain = mbd.simulate(mech, [0.1], t1=0.5, dt=0.01)
    run = mbd.simulate(mech, [0.1], t1=0.5, dt=0.01, events={"never": never})
    np.testing.assert_allclose(run.q, plain.q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(run.error, plain.error, rtol=1e-9)
    assert run.steps == 50 and run.rejected == 0
