"""Corners of sampled inputs, at which adaptive steps end: against matrix exponentials."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.analysis.known import parse_inputs
from jaxmbd.analysis.methods import corners_of
from jaxmbd.model import next_time
from jaxmbd.model.sampled import Spline

RNG = np.random.default_rng(1)
TIMES, FORCES = np.sort(RNG.uniform(0.05, 2.0, 21)), 10.0 * RNG.normal(size=21)
STIFFNESS, DAMPING = 40.0, 0.5


def mass(**also):
    """1 kg on a slide with a spring and a damper."""
    spring = mbd.TorsionSpring("slide", STIFFNESS, damping=DAMPING)
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))},
        {"spring": spring, **also},
        gravity=(0.0, 0.0, 0.0),
    )


def exact(times, forces, kind, end=2.0):
    """(q, v) from rest, by an exponential for each interval; the force and its rate are states."""
    a = np.array([[0, 1, 0, 0], [-STIFFNESS, -DAMPING, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], float)
    state, ends = np.zeros(2), [0.0, *times, end]
    rates = np.diff(forces) / np.diff(times) if kind == "linear" else np.zeros(len(times) - 1)
    values, rates = [forces[0], *forces], [0.0, *rates, 0.0]
    for k, length in enumerate(np.diff(ends)):
        state = (expm(a * length) @ [*state, values[k], rates[k]])[:2]
    return state


@partial(jax.jit, static_argnums=(2, 3))
def pushed(times, forces, kind, method):
    samples = mbd.Sampled(times, forces, kind)
    run = mbd.simulate(
        mass(), [0.0], t=[0.0, 1.0, 2.0], method=method(), inputs={"slide": samples}, throw=False
    )
    return jnp.concatenate([run.q[-1], run.v[-1]]), run


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("hold", mbd.DormandPrince),
        pytest.param("linear", mbd.DormandPrince, marks=pytest.mark.slow),
        pytest.param("hold", mbd.Rodas, marks=pytest.mark.slow),
    ],
)
def test_corners_cost_no_steps_and_no_digits(kind, method):
    """A jump that an error control must find costs fifty tried steps, and three digits."""
    found, run = pushed(TIMES, FORCES, kind, method)
    np.testing.assert_allclose(found, exact(TIMES, FORCES, kind), rtol=0, atol=1e-10)
    assert run.status == mbd.Status.OK and run.rejected < 10 and run.steps < 700


def test_derivatives_by_values():
    """The motion from rest is linear in the forces."""

    @jax.jit
    def slopes(forces):
        def end(y):
            return pushed(TIMES, y, "hold", mbd.DormandPrince)[0]

        return end(forces), jax.jacfwd(end)(forces), jax.jacrev(end)(forces)

    end, forward, reverse = slopes(FORCES)
    np.testing.assert_allclose(forward @ FORCES, end, rtol=0, atol=1e-12)
    np.testing.assert_allclose(reverse, forward, rtol=0, atol=1e-13)


def test_each_sample_has_its_corners_and_disorder_is_told():
    times = np.stack([TIMES, TIMES[::-1].copy(), 0.9 * TIMES, TIMES])
    times[3, 7] = times[3, 6]
    all_of = jax.jit(lanes.vmap(lambda t: pushed(t, FORCES, "hold", mbd.DormandPrince)))
    ends, run = all_of(times)
    wrong = mbd.Status.DIVERGED
    assert np.asarray(run.status).tolist() == [mbd.Status.OK, wrong, mbd.Status.OK, wrong]
    assert np.isnan(ends[1::2]).all()
    for k in (0, 2):
        np.testing.assert_allclose(ends[k], exact(times[k], FORCES, "hold"), rtol=0, atol=1e-10)


def test_laws_of_time_and_drives():
    """A law of time is seen, one of a length is none; and a drive by lines at saved times."""
    law = mbd.JointTorque("slide", law=mbd.Sampled(TIMES, FORCES, "hold"))
    run = mbd.simulate(mass(push=law), [0.0], t1=2.0, method="dormand_prince")
    np.testing.assert_allclose(run.q[-1, 0], exact(TIMES, FORCES, "hold")[0], rtol=0, atol=1e-10)
    spring = mbd.TorsionSpring("slide", 1.0, law=mbd.Sampled([-1.0, 0.0, 1.0], [-2.0, 0.0, 1.0]))
    assert corners_of(mass(spring=spring), None) == ()
    lines = mbd.Sampled([0.0, 0.1, 0.3, 0.6], [0.0, 0.1, 0.0, 0.5])
    drive = mbd.Drive("slide", lines)
    run = mbd.simulate(
        mass().replace(drives={"drive": drive}), [0.0], t1=0.9, dt=0.1, method="dormand_prince"
    )
    np.testing.assert_allclose(run.q[:, 0], lines(run.t), rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        run.v[:, 0], [1.0, -0.5, -0.5, 5 / 3, 5 / 3, 5 / 3, 0.0, 0.0, 0.0, 0.0], atol=1e-12
    )


def push(samples, t):
    return {"slide": samples(t)}


def test_samples_that_a_function_has_as_data():
    """They are seen, and splines of them prepared once."""
    inputs = jax.tree_util.Partial(push, mbd.Sampled(TIMES, FORCES, "hold"))
    run = mbd.simulate(mass(), [0.0], t1=2.0, method="dormand_prince", inputs=inputs)
    np.testing.assert_allclose(run.q[-1, 0], exact(TIMES, FORCES, "hold")[0], rtol=0, atol=1e-10)
    assert run.rejected < 10 and run.steps < 700
    smooth = jax.tree_util.Partial(push, mbd.Sampled(TIMES, FORCES, "cubic"))
    assert isinstance(parse_inputs(mass(), smooth).args[0], Spline)


@pytest.mark.slow
def test_more_corners_than_a_quarter_of_the_steps_that_may_be_tried():
    """1100 points: a kernel for the run and its reverse-mode derivative, against a Richardson
    difference of runs."""
    times = np.linspace(0.05, 2.0, 1100)
    forces = np.random.default_rng(2).normal(size=1100)

    def end(stiffness):
        mech = mbd.set_variables(mass(), {"forces/spring/stiffness": stiffness})
        method = mbd.DormandPrince(rtol=1e-6)
        inputs = {"slide": mbd.Sampled(times, forces)}
        return mbd.simulate(mech, [0.0], t1=2.0, method=method, inputs=inputs).q[-1, 0]

    value, slope = jax.jit(lanes.jit(jax.value_and_grad(end), strict=True))(STIFFNESS)
    np.testing.assert_allclose(value, exact(times, forces, "linear")[0], rtol=1e-9)
    run = jax.jit(lanes.jit(end, strict=True))
    a, b = ((run(STIFFNESS + h) - run(STIFFNESS - h)) / (2 * h) for h in (0.01, 0.02))
    np.testing.assert_allclose(slope, (4 * a - b) / 3, rtol=1e-6)


def test_the_next_time():
    times = np.array([0.5, 0.6, 2.0])
    found = [float(next_time(t, times)) for t in (-1.0, 0.5, 0.55, 1.9, 2.0, 9.0)]
    assert found == [0.5, 0.6, 0.6, 2.0, np.inf, np.inf]
    assert [float(next_time(t, times[:1])) for t in (0.0, 0.5)] == [0.5, np.inf]
