"""What a run was wrong by: the estimate against closed forms, and that it adds up and composes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.analysis import RunEnd

OK, INACCURATE = mbd.Status.OK, mbd.Status.INACCURATE


def sliding(stiffness, stop=0.0, gravity=0.0):
    """1 kg on a vertical slide with a spring to where it is drawn, and a lossless stop below."""
    forces = {
        "spring": mbd.TorsionSpring("slide", stiffness),
        "stop": mbd.JointLimit("slide", lower=0.0, stiffness=stop),
    }
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0.0, 0.1), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))},
        forces,
        gravity=jnp.stack([0.0 * gravity, 0.0 * gravity, -gravity]),
    )


@partial(jax.jit, static_argnums=(0, 1))
def runs(steps, method, stiffness, stop, gravity, q, v, dt):
    """Runs of masses on slides, one after another at each number."""

    def one(stiffness, stop, gravity, q, v, dt):  # q may be where a run ended, without v
        mech = sliding(stiffness, stop, gravity)
        options = {"steps": steps, "method": method, "accuracy": 1e-2}
        return mbd.simulate(mech, q, v, dt=dt, outputs_only=True, throw=False, **options)

    return lanes.vmap(one)(stiffness, stop, gravity, q, v, dt)


def from_rest(steps, method="rk4", stiffness=0.0, stop=0.0, gravity=0.0, q=1.0, v=0.0, dt=1.0):
    numbers = np.broadcast_arrays(stiffness, stop, gravity, q, v, dt)
    stiffness, stop, gravity, q, v, dt = map(np.atleast_1d, numbers)
    return runs(steps, method, stiffness, stop, gravity, q[:, None], v[:, None], dt)


@pytest.mark.parametrize(
    ("method", "steps", "ratio"),
    [
        ("rk4", (12, 15, 25, 40, 80), (0.9, 1.2)),
        ("semi_implicit_euler", (500, 1000), (1.0, 2.2)),
        ("generalized_alpha", (60, 100, 200, 400), (0.9, 1.2)),
        pytest.param("variational", (60, 100, 200, 400), (0.9, 1.2), marks=pytest.mark.slow),
        pytest.param(mbd.Variational(6), (12, 16, 25), (0.9, 1.2), marks=pytest.mark.slow),
    ],
)
def test_the_estimate_is_the_error_of_a_vibration(method, steps, ratio):
    """Of 4000 steps of a vibration, at the end of which its phase is arbitrary."""
    n, rate = 4000, 2.0 * np.pi / np.array(steps)
    run = from_rest(n, method, stiffness=rate**2)
    q, v = run.end.q[:, 0], run.end.v[:, 0] / rate
    wrong = np.hypot(q - np.cos(rate * n), v + np.sin(rate * n))
    small = wrong < 0.3
    if method == "semi_implicit_euler":  # where the speeds are largest, those half a step before
        wrong = np.maximum(wrong, 0.5 * rate)
    share = np.asarray(run.error) / wrong
    assert small.any() and np.all(share[small] > ratio[0]) and np.all(share[small] < ratio[1])
    np.testing.assert_array_equal(np.asarray(run.status) == OK, np.asarray(run.error) <= 1e-2)
    assert np.all(np.asarray(run.error)[~small] > 0.1)


def test_a_ruined_step_is_told_among_many_quiet_ones():
    """Lossless stops, hit at a step too long for them, in 30 000 steps, handed on 15 times."""
    stop, gravity = np.array([8e6, 1e8, 1e8]), np.array([0.0, 9.81, 9.81])
    dt, q, v = np.array([1e-3, 1e-4, 5e-5]), np.array([0.7, 1.0, 1.0]), np.array([-1.0, 0.0, 0.0])
    run = from_rest(2000, stop=stop, gravity=gravity, q=q, v=v, dt=dt)
    assert np.asarray(run.status).tolist() == [INACCURATE, OK, OK]
    hit = run.worst_at[0]
    for _ in range(14):
        run = runs(2000, "rk4", np.zeros(3), stop, gravity, run.end, None, dt)
    assert np.asarray(run.status).tolist() == [INACCURATE] * 3
    assert abs(hit - 0.7) < 2e-3 and abs(run.failed_at[1] - np.sqrt(2.0 / 9.81)) < 1e-3
    depth = np.maximum(-run.end.q[:, 0], 0.0)
    height = np.asarray(run.end.q[:, 0])
    energy = 0.5 * run.end.v[:, 0] ** 2 + gravity * height + 0.5 * stop * depth**2
    assert np.all(abs(energy / np.array([0.5, 9.81, 9.81]) - 1.0) > 0.01)
    fine = from_rest(2000, stop=8e6, dt=1e-5, q=0.005, v=-1.0)
    assert fine.status[0] == OK and abs(fine.end.v[0, 0] - 1.0) < 1e-2


def test_losses_add_up():
    """Undamped vibrations whose steps are each accurate, but which die out over the run."""
    per_period, periods = np.array([16.5, 20.9, 100.0]), np.array([3000, 10_000, 3000])
    stiffness = (2.0 * np.pi / per_period) ** 2
    run = from_rest(50_000, stiffness=stiffness)
    assert np.asarray(run.status).tolist() == [INACCURATE, INACCURATE, OK]
    assert np.all(np.asarray(run.worst_step) < 3e-3)
    energy = 0.5 * run.end.v[:, 0] ** 2 + 0.5 * stiffness * run.end.q[:, 0] ** 2
    assert energy[0] < 0.2 * 0.5 * stiffness[0] and energy[2] > 0.9999 * 0.5 * stiffness[2]
    assert periods[0] * per_period[0] <= 50_000


def test_friction_is_accurate_below_a_step_and_not_above():
    """Coulomb friction that brings a mass to rest, where it must be resolved."""

    def one(dt, steps):
        mech = mbd.Mechanism(
            {"block": mbd.Body(1.0, (0.1, 0.0, 0.0), np.eye(3))},
            {"guide": mbd.Prismatic("ground", "block", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))},
            {"rub": mbd.JointFriction("guide", 0.3, velocity_scale=1e-2)},
        )
        options = {"steps": steps, "outputs_only": True, "throw": False, "accuracy": 1e-2}
        return mbd.simulate(mech, [0.0], [1.0], dt=dt, **options)

    dt = np.array([0.03, 0.02, 0.015, 0.01, 0.005, 0.002])
    found = jax.jit(lanes.vmap(lambda dt: one(dt, 600)))(dt)
    told = np.asarray(found.status) == INACCURATE
    assert told.tolist() == sorted(told, reverse=True) and told[:-1].any() and not told[-1]
    assert np.all(np.abs(found.end.v[~told, 0]) < 1e-2)


@pytest.mark.parametrize(
    "method",
    [
        "rk4",
        "semi_implicit_euler",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("generalized_alpha", "variational")),
    ],
)
def test_how_a_motion_is_cut_changes_nothing(method):
    """100 steps at once, and in calls of 5: states to the bit, and the same verdicts."""
    dt = np.array([1e-3, 0.01, 0.05, 0.2, 0.3])
    whole = from_rest(100, method, stiffness=4.0, gravity=0.3, dt=dt)
    part = from_rest(5, method, stiffness=4.0, gravity=0.3, dt=dt)
    if method == "rk4":
        assert np.asarray(part.status).tolist() == [OK] * 5
    numbers = [np.full(5, x) for x in (4.0, 0.0, 0.3)]
    for _ in range(19):
        part = runs(5, method, *numbers, part.end, None, dt)
    assert set(np.asarray(whole.status).tolist()) == {OK, INACCURATE}
    np.testing.assert_array_equal(part.status, whole.status)
    np.testing.assert_array_equal(part.end.q, whole.end.q)
    np.testing.assert_array_equal(part.end.v, whole.end.v)
    np.testing.assert_allclose(part.error, whole.error, rtol=1e-12)
    np.testing.assert_allclose(part.failed_at, whole.failed_at, rtol=1e-12)


def test_the_end_of_a_run_has_its_speeds_and_its_time():
    mech = mbd.zoo.simple_pendulum()
    run = mbd.simulate(mech, [0.1], t1=0.02, dt=1e-3)
    assert isinstance(run.end, RunEnd)
    np.testing.assert_array_equal(run.end.q, run.q[-1])
    for wrong in ({"v0": [0.0]}, {"t0": 0.02}):
        with pytest.raises(ValueError, match="give no v0= and no t0="):
            mbd.simulate(mech, run.end, steps=1, dt=1e-3, **wrong)
    with pytest.raises(ValueError, match="need t1 > t0"):
        mbd.simulate(mech, run.end, t1=0.01, dt=1e-3)
    assert mbd.simulate(mech, run.end, t1=0.03, dt=1e-3).t[0] == 0.02
