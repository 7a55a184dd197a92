"""Digits that `verify` tells against the true ones, by runs of far smaller tolerances."""

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.analysis import Agreement, Difference, verification

SAVES, CONFIRMED = 10, 12.0


def slide(stiffness=0.0, damping=0.0, stop=0.0, loss=0.0, rub=0.0):
    """1 kg on a level guide; the stop is at x = 0."""
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))},
        {
            "spring": mbd.TorsionSpring("slide", stiffness, damping),
            "end": mbd.JointLimit("slide", lower=0.0, stiffness=stop, dissipation=loss),
            "rub": mbd.JointFriction("slide", rub),
        },
    )


SMOOTH, STIFF = (slide(1.0), 1.0, 0.0), (slide(1e4, 1e4), 1.0, 0.0)
RUB, STOP = (slide(1.0, rub=0.3), 1.0, 1.0), (slide(1.0, 0.0, 1e6, 0.2), 1e-3, -1.0)


def dp(tolerance):
    return mbd.DormandPrince(rtol=tolerance, atol=1e-2 * tolerance)


def rodas(tolerance):
    return mbd.Rodas(rtol=tolerance, atol=1e-2 * tolerance)


CASES = {  # motion, method, end [s], whether it is coarse
    "vibration, 63 steps": (SMOOTH, "rk4", 10.0, False),
    "vibration, 16 steps": (SMOOTH, "rk4", 40.0, False),
    "vibration, 7 steps": (SMOOTH, "rk4", 90.0, True),
    "vibration, half a step late": (SMOOTH, "semi_implicit_euler", 10.0, True),
    "vibration at 1e-4": (SMOOTH, dp(1e-4), 20.0, False),
    "vibration at 1e-8": (SMOOTH, dp(1e-8), 20.0, False),
    "vibration at 1e-6, order 8": (SMOOTH, mbd.DormandPrince8(rtol=1e-6, atol=1e-8), 20.0, False),
    "vibration at 1e-6, implicit": (SMOOTH, rodas(1e-6), 20.0, False),
    "stop, 60 steps in contact": (STOP, "rk4", 5e-3, False),
    "stop, 2 steps in contact": (STOP, "rk4", 0.2, True),
    "stop at 1e-6": (STOP, dp(1e-6), 0.01, False),
    "friction to rest": (RUB, "rk4", 0.5, False),
    "friction, steps too long": (RUB, "rk4", 1.5, True),
    "friction at 1e-7": (RUB, rodas(1e-7), 1.0, False),
    "stiff at 1e-5": (STIFF, rodas(1e-5), 2.0, False),
    "stiff, steps too long": (STIFF, "rk4", 0.05, True),
}


SLOW = (
    "vibration at 1e-4",
    "vibration, half a step late",
    "vibration at 1e-6, order 8",
    "vibration at 1e-6, implicit",
    "friction at 1e-7",
    "stiff at 1e-5",
)


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=pytest.mark.slow) if x in SLOW else x for x in CASES]
)
def test_the_digits_told_are_the_true_ones_within_one(name):
    (mech, q, v), method, t1, coarse = CASES[name]
    fixed = isinstance(method, str)
    times = {"dt": t1 / 100, "save_every": 10} if fixed else {"dt": t1 / SAVES}
    found = mbd.verify(mech, [q], [v], t1=t1, method=method, **times)
    run = found.solution
    exact = mbd.Rodas(rtol=1e-13, atol=1e-15, most=verification.TRIES // SAVES)
    fine = mbd.simulate(mech, [q], [v], t=run.t, method=exact)
    for told, a, b in ((found.digits_q, run.q - q, fine.q - q), (found.digits_v, run.v, fine.v)):
        rows = np.isfinite(a).all(axis=1)
        length = 1.0  # of a mechanism whose points coincide
        size = max(abs(a[rows]).max() / length, 1e-12)
        true = -np.log10(max(abs((b - a)[rows]).max() / length / size, 1e-15))
        assert abs(min(told, CONFIRMED) - min(true, CONFIRMED)) < 1.0
    assert coarse == ("too coarse" in found.summary)
    assert (run.status != mbd.Status.OK) == (str(found)[:4] in ("INAC", "DIVE"))


def test_what_is_told():
    """Whose speeds differ most, when, and by what; a motion that no explicit method can follow."""
    mech = mbd.zoo.double_pendulum()
    found = mbd.verify(mech, [0.5, 1.0], t1=1.0, dt=0.02)
    finer, other = found.finer, found.other
    assert isinstance(finer, Agreement) and isinstance(finer.q, Difference)
    exact = mbd.simulate(mech, [0.5, 1.0], t=found.solution.t, method="dormand_prince")
    wrong = abs(exact.v - found.solution.v)
    k, i = np.unravel_index(np.argmax(wrong), wrong.shape)
    assert other.v.name == mbd.topology(mech).speed_names[i]
    np.testing.assert_allclose(other.v.value, wrong[k, i], rtol=1e-3)
    np.testing.assert_allclose(other.v.t, found.solution.t[k], rtol=1e-12)
    assert other.by == "DormandPrince(rtol=1e-10)" and finer.by == "half the step"
    assert found.digits_v == min(finer.v.digits, other.v.digits) and found.summary == str(found)


@pytest.mark.slow
def test_a_body_that_tumbles_and_bounces_goes_on():
    """From the end of another run, at given times, with an impact."""
    ball = mbd.Mechanism(
        {"ball": mbd.Body(1.0, (0.0, 0.0, 0.0), np.diag([1.0, 2.0, 2.5]))},
        {"free": mbd.Free("ground", "ball")},
    )
    spin = np.array([1.0, 3.0, 0.1, 0.0, 0.0, 2.0])
    floor = mbd.Event(lambda t, q, v: q[6] + 0.3, direction=-1, restitution=0.5)
    start = mbd.simulate(ball, mbd.neutral(ball), spin, t1=0.5, dt=0.1, method=dp(1e-8)).end
    found = mbd.verify(ball, start, t=[0.5, 0.7, 0.8], method=dp(1e-8), events={"floor": floor})
    assert found.solution.events["floor"].count == 1 and found.solution.q.shape == (3, 7)
    assert 7.0 < found.digits_q < 14.0 and 7.0 < found.digits_v < 14.0


@pytest.mark.slow
def test_other_ways_of_giving_method_and_times():
    auto = mbd.verify(STIFF[0], [1.0], t1=2.0, dt=0.2, method="auto", rtol=1e-6)
    assert auto.other.by.startswith("DormandPrince") and auto.digits_q > 8.0
    steps = mbd.verify(slide(1.0), [1.0], steps=100, dt=0.1, save_every=10, outputs_only=True)
    assert steps.solution.q.shape == (2, 1) and steps.finer.v.t == 10.0


@pytest.mark.slow
def test_a_motion_that_no_explicit_method_follows():
    """The other method gives up: it is told until when it agrees."""
    hard = slide(1e7, 1e7)
    found = mbd.verify(hard, [1.0], t1=1.0, dt=0.1, method=rodas(1e-6))
    assert found.other.until < 1.0 and np.isnan(found.other.v.digits)
    assert "by DormandPrince(rtol=1e-12) there is no state to compare" in found.summary
    assert found.digits_q > 6.0 and found.finer.until == 1.0
    lost = mbd.verify(hard, [1.0], t1=1.0, dt=0.1)
    assert lost.digits_q == lost.digits_v == 0.0 and "the run is too coarse" in lost.summary
    assert lost.summary.startswith(mbd.Status(int(lost.solution.status)).name)


@pytest.mark.slow
def test_a_run_that_leaves_the_constraints_has_no_digits():
    corner = mbd.zoo.multi_link()
    lost = mbd.verify(corner, mbd.assemble(corner).q, t1=1.0, dt=2e-2)
    assert lost.solution.status == mbd.Status.DIVERGED
    assert lost.digits_q == 0.0 and lost.summary.startswith("DIVERGED from t = 0.02 s on; the run")


def test_misuse():
    mech = slide(1.0)
    for traced in (
        jax.jit(lambda q: mbd.verify(mech, q, t1=1.0, dt=0.1).solution.q),
        jax.jit(lambda q: mbd.verify(mech, [0.1], t1=1.0, dt=0.1).solution.q),
    ):
        with pytest.raises(ValueError, match="verify compares numbers, which are traced here"):
            traced(np.ones(1))
    loop = mbd.zoo.n_four_bar(1, planar=True)
    with pytest.raises(ValueError, match="violates the constraints"):
        mbd.verify(loop, mbd.neutral(loop) + np.array([0.1, 0.0, 0.0]), t1=0.1, dt=0.01)
    with pytest.raises(ValueError, match="give dt="):
        mbd.verify(mech, [0.1], t1=1.0)
