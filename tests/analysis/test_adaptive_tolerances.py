"""Tolerances of adaptive solvers are arguments, and say how many digits a run has."""

import diffrax
import jax
import numpy as np
import pytest

import jaxmbd as mbd


def last_angle(**tolerances):
    run = mbd.simulate(
        mbd.zoo.simple_pendulum(), [0.0], [0.0], t1=1.0, dt=1.0, method=diffrax.Dopri5(),
        outputs_only=True, **tolerances,
    )  # fmt: skip
    return float(run.q[-1, 0])


def test_a_looser_tolerance_errs_more():
    best = last_angle()
    assert last_angle(rtol=1e-10, atol=1e-12) == pytest.approx(best, rel=1e-9)
    assert 1e-7 < abs(last_angle(rtol=1e-4, atol=1e-4) - best) < 1e-2


@pytest.fixture(scope="module")
def squeezer():
    """Andrews' squeezing mechanism, times, and the motion by two methods that share nothing."""
    mech, t = mbd.zoo.andrews_squeezer(), np.linspace(0.0, 0.03, 11)
    methods = mbd.DormandPrince8(rtol=1e-13, atol=1e-14), mbd.DormandPrince(rtol=1e-12, atol=1e-14)
    best, other = (mbd.simulate(mech, mbd.neutral(mech), t=t, method=x) for x in methods)
    for x, y in ((best.q, other.q), (best.v, other.v)):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * abs(y).max())
    return mech, t, best


@pytest.mark.slow
@pytest.mark.parametrize("kind", [mbd.DormandPrince, mbd.DormandPrince8, mbd.Rodas])
def test_digits_that_were_asked_for(squeezer, kind):
    """Of the largest coordinate and speed, and for none of them many times the steps that it takes.

    Tolerances are those of a step, and errors of steps grow or die out with the motion. The digits
    that the run itself tells are fewer, as its estimates are those of methods of lower order.
    """
    mech, t, best = squeezer
    asked = np.arange(4.0, 11.0)

    @jax.jit
    @mbd.lanes.vmap
    def runs(rtol):
        method = kind(rtol=rtol, atol=rtol)
        return mbd.simulate(mech, mbd.neutral(mech), t=t, method=method, throw=False)

    run = runs(10.0**-asked)
    reached = -np.log10(
        [abs(x - y).max(axis=(1, 2)) / abs(y).max() for x, y in ((run.q, best.q), (run.v, best.v))]
    )
    told = -np.log10(run.error)
    names = ("asked", "reached in q", "reached in v", "told")
    for name, digits in zip(names, (asked, *reached, told), strict=True):
        print(f"{kind.__name__}, digits {name}:", *(f"{x:.1f}" for x in digits))
    assert not run.status.any()
    assert np.all(reached > asked - 0.2) and np.all(reached[1] < asked + 2.5)
    assert np.all(told < reached[1]) and np.all(told > asked - 1.5)
    assert np.all(np.diff(reached) > 0.3)
