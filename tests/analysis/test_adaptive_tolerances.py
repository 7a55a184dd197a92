"""Tolerances of adaptive solvers are arguments: a looser one errs more, within what it says."""

import diffrax
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
