"""The times of a run: saved times, steps between them, and what contradicts itself."""

import jax
import numpy as np
import pytest

import jaxmbd as mbd


def swing(**options):
    return mbd.simulate(mbd.zoo.simple_pendulum(), [0.5], **options)


def test_states_are_saved_at_the_times_given():
    t = np.array([0.2, 0.21, 0.5, 0.6])
    run = swing(t=t, dt=1e-3)
    np.testing.assert_array_equal(run.t, t)
    whole = swing(t0=0.2, t1=0.6, dt=1e-3)
    np.testing.assert_allclose(run.q[1:], whole.q[np.array([10, 300, 400])], rtol=0, atol=1e-10)
    assert run.steps == 3 * 290
    few = swing(t=t, save_every=2, throw=False)
    assert few.steps == 6
    traced = jax.jit(lambda t: swing(t=t, save_every=290).q)(t)
    np.testing.assert_allclose(traced, run.q, rtol=0, atol=1e-12)


def test_a_run_may_go_on_at_times():
    half = swing(t1=0.2, dt=1e-3)
    rest = mbd.simulate(mbd.zoo.simple_pendulum(), half.end, t=[0.2, 0.3], dt=1e-3)
    whole = swing(t1=0.3, dt=1e-3)
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="the run before ended at 0.2 s"):
        mbd.simulate(mbd.zoo.simple_pendulum(), half.end, t=[0.0, 0.3], dt=1e-3)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"t": [0.0, 1.0], "t1": 1.0}, "t1 beside t="),
        ({"t": [0.0]}, "two or more"),
        ({"t": [0.0, 0.0]}, "increasing"),
        ({"t": [0.0, np.nan]}, "finite"),
        ({"t": [0.0, 1.0], "dt": -1.0}, "dt > 0"),
        ({"t1": 1.0}, "give dt="),
        ({"dt": 1e-2}, "one of t1="),
    ],
)
def test_contradictions_are_told(options, text):
    with pytest.raises(ValueError, match=text):
        swing(**options)


def test_an_adaptive_method_needs_no_step():
    run = swing(t1=1.0, method="dormand_prince")
    assert run.q.shape == (2, 1)
    np.testing.assert_allclose(run.q[-1], swing(t1=1.0, dt=1e-3).q[-1], rtol=0, atol=1e-9)


def test_rows_of_an_inaccurate_run_are_kept_or_not():
    options = {"t1": 4.0, "dt": 0.1, "accuracy": 1e-4, "throw": False}
    run = swing(**options)
    assert run.status == mbd.Status.INACCURATE and np.isfinite(run.q).all()
    assert run.fine[0] and not run.fine[-1]
    blank = swing(**options, keep_inaccurate=False)
    np.testing.assert_array_equal(np.isnan(np.asarray(blank.q[:, 0])), ~np.asarray(run.fine))


def test_traced_times_that_do_not_increase_fail():
    run = jax.jit(lambda t: swing(t=t, method="dormand_prince", throw=False))
    assert run(np.array([0.0, 0.2, 0.1])).status != mbd.Status.OK
    assert run(np.array([0.0, 0.1, 0.2])).status == mbd.Status.OK


@pytest.mark.slow
def test_another_kind_of_method_goes_on():
    mech, half = mbd.zoo.simple_pendulum(), swing(t1=0.2, dt=1e-3)
    rest = mbd.simulate(mech, half.end, t1=0.4, method="dormand_prince")
    back = mbd.simulate(mech, rest.end, t1=0.6, dt=1e-3)
    np.testing.assert_allclose(back.q[-1], swing(t1=0.6, dt=1e-3).q[-1], rtol=0, atol=1e-9)
    rough = mbd.simulate(mech, half.end, t1=0.4, dt=1e-4, method="semi_implicit_euler")
    np.testing.assert_allclose(rough.q[-1], rest.q[-1], rtol=0, atol=1e-3)
